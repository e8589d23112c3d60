import { holdsSecret } from '../audit/mask.ts';
import type { BudgetRefusal } from '../budget/protocol.ts';
import { dayOfInstant } from '../budget/window.ts';
import type { Sha256 } from '../digest.ts';
import type { UpperRefusal } from '../guards/guard.ts';
import { canonicalJson, type JsonValue } from '../json.ts';
import { usedOn } from '../ledger.ts';
import type { ToolCatalogue } from '../tool.ts';
import { aboutOf } from './about.ts';
import { chainRow, genesisHash } from './chain.ts';
import type { Traced } from './commands.ts';
import type { EventBodies, EventType, LogRow, PlanEvent } from './events.ts';
import { evolve } from './evolve.ts';
import type { KeyedDecision } from './external/keys.ts';
import type { ActorRef, Plan, Stored } from './plan.ts';

/** What a decision may use besides plan and command: time comes in, nothing is read. */
export interface DecideContext {
  /** ISO instant with milliseconds, UTC. */
  readonly now: string;
  readonly sha256: Sha256;
  readonly catalogue: ToolCatalogue;
  readonly money: MoneyAbove;
  /** What the log says of the idempotency key of an `authorize`; absent: nothing. */
  readonly keyed?: KeyedDecision;
}

/**
 * What the budgets above the plan (session, org, profile) let one decision reserve. The decision asks nobody: where this is not enough it
 * says how much it lacks, is not committed, and is made again once that was asked for.
 */
export interface MoneyAbove {
  /** May be reserved today beyond what is reserved already. */
  readonly freeMicroUsd: number;
  /** It was asked for so much, and this was the answer; whatever is more than that leaves is refused. */
  readonly refused: { readonly needMicroUsd: number; readonly refusal: BudgetRefusal } | null;
  /** Nobody could be asked, and the decision cannot wait: what is not covered is refused. */
  readonly isUnreachable: boolean;
  /** Whether any cap above is set, so that every price has to be known; null: not known yet. */
  readonly isLimited: boolean | null;
}

/** For a plan above which nothing is limited. */
export const NO_LIMIT_ABOVE: MoneyAbove = {
  freeMicroUsd: Number.MAX_SAFE_INTEGER,
  refused: null,
  isUnreachable: false,
  isLimited: false,
};

/** What a decision would have needed to know or to hold. */
export interface Lack {
  /** To reserve in all, today. */
  readonly needMicroUsd: number;
  /** To know whether any cap above is set. */
  readonly limits: boolean;
}

/** Values above this size, as canonical JSON, are kept as blobs beside the log. An event's body stays below 64 kB with room for several. */
export const INLINE_BYTES = 8 * 1024;

/**
 * One decision in the making: events are folded as they are written, so that what is decided next sees what was decided before.
 * The caller commits `rows` and `blobs` together or not at all.
 */
export interface Work {
  readonly context: DecideContext;
  readonly rows: readonly LogRow[];
  readonly blobs: ReadonlyMap<string, Uint8Array>;
  /** The plan after everything written so far. */
  plan(): Plan;
  emit<T extends EventType>(type: T, actor: ActorRef, data: EventBodies[T]): void;
  /** The number that the next event will have; names what the event opens. */
  nextSeq(): number;
  /** In the row if it is short and holds no secret, else as a blob: a secret is not written into the log (core/audit/mask.ts). */
  store<T extends JsonValue>(value: T): Stored<T>;
  storeBytes(bytes: Uint8Array): string;
  /** What the budgets above say to reserving so much more in this decision; null: it is covered, or it is noted in `lack`. */
  refusalAbove(costMicroUsd: number): UpperRefusal | null;
  /** Whether any cap above is set. Not known counts as set, and is noted in `lack`. */
  isLimitedAbove(): boolean;
  /** What was missing: then nothing of this decision may be committed. */
  lack(): Lack | null;
}

/** What can still be asked for after a refusal: what it says is left at its level, and less than what it was about. */
function leftAfter({ needMicroUsd, refusal }: NonNullable<MoneyAbove['refused']>, freeMicroUsd: number): number {
  return Math.max(freeMicroUsd, Math.min(needMicroUsd - 1, refusal.capMicroUsd - refusal.usedMicroUsd));
}

/** The plan itself, where no person or agent is behind an event. */
export const SYSTEM: ActorRef = { kind: 'system', id: 'plan' };

export function beginWork(
  plan: Plan | null,
  identity: { readonly org: string; readonly planId: string },
  context: DecideContext,
  { traceId }: Traced = {},
): Work {
  const { sha256, now: at, money } = context;
  const today = dayOfInstant(at);
  const usedBefore = plan === null ? 0 : usedOn(plan.ledger, today);
  let lackMicroUsd = 0;
  let lacksLimits = false;
  const rows: LogRow[] = [];
  const blobs = new Map<string, Uint8Array>();
  let current = plan;
  const storeBytes = (bytes: Uint8Array): string => {
    const digest = sha256(bytes);
    blobs.set(digest, bytes);
    return digest;
  };
  return {
    context,
    rows,
    blobs,
    plan: () => {
      if (current === null) throw new Error('no plan yet');
      return current;
    },
    emit: (type, actor, data) => {
      const prev = current?.headHash ?? genesisHash(sha256, identity.org, identity.planId);
      const row = chainRow(sha256, prev, (current?.seq ?? 0) + 1, {
        type,
        at,
        actor,
        data,
        ...traceOf(traceId ?? current?.traceId),
        ...behalfOf(actor, current),
        ...aboutIn(current, { type, data } as PlanEvent),
      } as PlanEvent);
      rows.push(row);
      current = evolve(current, row);
    },
    nextSeq: () => (current?.seq ?? 0) + 1,
    store: (value) => {
      const text = canonicalJson(value);
      // Length in UTF-16 units is a lower bound of the bytes; the exact count is only taken near the limit.
      if (text.length <= INLINE_BYTES / 3 && !holdsSecret(value)) return { inline: value };
      const bytes = new TextEncoder().encode(text);
      return bytes.byteLength <= INLINE_BYTES && !holdsSecret(value)
        ? { inline: value }
        : { blob: storeBytes(bytes), bytes: bytes.byteLength };
    },
    storeBytes,
    refusalAbove: (costMicroUsd) => {
      if (costMicroUsd === 0) return null;
      const usedNow = current === null ? 0 : usedOn(current.ledger, today);
      const needMicroUsd = usedNow - usedBefore + costMicroUsd;
      if (needMicroUsd <= money.freeMicroUsd) return null;
      const { refused } = money;
      if (refused !== null && needMicroUsd > leftAfter(refused, money.freeMicroUsd)) return { kind: 'exceeded', ...refused.refusal };
      if (money.isUnreachable) return { kind: 'unreachable' };
      lackMicroUsd = Math.max(lackMicroUsd, needMicroUsd);
      return null;
    },
    isLimitedAbove: () => {
      if (money.isLimited === null && !money.isUnreachable) lacksLimits = true;
      return money.isLimited ?? true;
    },
    lack: () => (lackMicroUsd === 0 && !lacksLimits ? null : { needMicroUsd: lackMicroUsd, limits: lacksLimits }),
  };
}

/** So that every line of the trail leads to a caller, also where the plan itself or its actor is the one who acts. */
const behalfOf = ({ kind }: ActorRef, plan: Plan | null) =>
  plan === null || kind === 'human' || kind === 'agent' ? {} : { on_behalf_of: plan.requester };

const aboutIn = (plan: Plan | null, event: PlanEvent) => {
  const about = plan === null ? null : aboutOf(plan, event);
  return about === null ? {} : { about };
};

const traceOf = (traceId: string | undefined) => (traceId === undefined ? {} : { trace_id: traceId });
