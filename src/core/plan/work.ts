import { holdsSecret } from '../audit/mask.ts';
import type { Sha256 } from '../digest.ts';
import { canonicalJson, type JsonValue } from '../json.ts';
import type { ToolCatalogue } from '../tool.ts';
import { chainRow, genesisHash } from './chain.ts';
import type { EventBodies, EventType, LogRow, PlanEvent } from './events.ts';
import { evolve } from './evolve.ts';
import type { ActorRef, Plan, Stored } from './plan.ts';

/** What a decision may use besides plan and command: time comes in, nothing is read. */
export interface DecideContext {
  /** ISO instant with milliseconds, UTC. */
  readonly now: string;
  readonly sha256: Sha256;
  readonly catalogue: ToolCatalogue;
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
}

/** The plan itself, where no person or agent is behind an event. */
export const SYSTEM: ActorRef = { kind: 'system', id: 'plan' };

export function beginWork(plan: Plan | null, identity: { readonly org: string; readonly planId: string }, context: DecideContext): Work {
  const { sha256, now: at } = context;
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
      const row = chainRow(sha256, prev, (current?.seq ?? 0) + 1, { type, at, actor, data } as PlanEvent);
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
  };
}
