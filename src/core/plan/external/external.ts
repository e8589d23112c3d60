import type { ToolCatalogue } from '../../tool.ts';
import type { ActorRef, Call, Plan, Stored } from '../plan.ts';

/**
 * External plans (design section 7): the executor is the caller, and this is its decision point. The plan is like any other, but nobody
 * here proposes or performs: calls are authorised on request, and whoever performs them says how they ended.
 */

/** How long an authorisation may stay open. After that it is charged in full: whoever got it may have acted on it. */
export const AUTHORIZATION_TTL_MS = 3600 * 1000;

/** Authorisations that are open at once; more mean that nobody settles them. */
export const MAX_OPEN_AUTHORIZATIONS = 1000;

/** Questions to humans that are open at once; what is refused beyond opens none. */
export const MAX_PENDING_APPROVALS = 100;

/** Calls that one question about a limit shows at most; those beyond are asked about once it is answered. */
export const MAX_CALLS_OF_A_QUESTION = 50;

/** Days without anything happening after which a plan ends by itself, unless the org says another number. */
export const DEFAULT_RETENTION_DAYS = 30;

/** Decisions that the state remembers beside the open ones: for settling twice and retries. Idempotency keys hold longer (keys.ts). */
export const REMEMBERED_DECISIONS = 1000;

/** Steps whose calls are counted; one that is further back is over. */
export const COUNTED_STEPS = 100;

export const EXTERNAL_OUTCOMES = ['succeeded', 'failed', 'not_dispatched'] as const;
export type ExternalOutcome = (typeof EXTERNAL_OUTCOMES)[number];

/** What a plan knows beyond a hosted one. */
export interface ExternalState {
  /** Calls authorised so far, by number of the step. */
  readonly callsByStep: Readonly<Record<string, number>>;
  /** Steps before this one are over: their calls are not counted any more. */
  readonly firstStep: number;
  readonly imported: ImportedTrail | null;
  /** Locked when the plan was opened; absent: it stays open for ever. */
  readonly retentionDays?: number;
}

/** The trail that was loaded from metadata, with its entries as they came. */
export interface ImportedTrail {
  readonly trail: Stored;
  readonly entries: number;
  readonly allowed: number;
  readonly denied: number;
  readonly startTime: string | null;
  /** How many entries it showed at most; absent: it did not say. */
  readonly maxEntries?: number;
}

export const NO_EXTERNAL_STATE: ExternalState = { callsByStep: {}, firstStep: 1, imported: null };

/** What a call knows beyond one that is performed here. */
export interface ExternalCall {
  /** Who asked last. */
  readonly by: ActorRef;
  readonly operation: string | null;
  /** Whether the price is the tool's or the caller's; an unknown one is refused where a cap is in force. */
  readonly isPriceKnown: boolean;
  readonly idempotencyKey: string | null;
  /** Of everything that was asked under the key. */
  readonly bodyDigest: string;
  /** The row of its newest decision, and the guard that refused it there. */
  readonly decidedSeq: number;
  readonly guard: string | null;
  /** Of an authorisation; null while it is none. */
  readonly expiresAt: string | null;
  readonly isExpired: boolean;
  readonly settled: ExternalSettlement | null;
  /** What it answers is content from outside. */
  readonly readsOutside?: true;
}

export interface ExternalSettlement {
  readonly outcome: ExternalOutcome;
  readonly costUsd: number | null;
  readonly chargedMicroUsd: number;
  readonly marks: readonly string[];
  /** After the authorisation had expired or the plan had ended. */
  readonly isLate: boolean;
}

export function isExternal(plan: Pick<Plan, 'external'>): boolean {
  return plan.external !== undefined;
}

const DAY_MS = 24 * 3600 * 1000;

/**
 * When the plan ends by itself: so many days after whatever happened in it last, at the end of that day (UTC), so that a busy plan does
 * not move its alarm with every call. Null: never.
 */
export function retentionEndsMs({ external, terminal, updatedAt }: Pick<Plan, 'external' | 'terminal' | 'updatedAt'>): number | null {
  if (terminal || external?.retentionDays === undefined) return null;
  return Math.ceil((Date.parse(updatedAt) + external.retentionDays * DAY_MS) / DAY_MS) * DAY_MS;
}

/** A call that was refused so far and may be asked for again. */
export function isHeld(call: Call): boolean {
  return call.status === 'asked' || call.status === 'cleared';
}

/** An authorisation that holds money and waits for its outcome. Whoever got it may act at once, so it counts as sent. */
export function isOpen(call: Call): boolean {
  return call.status === 'sent';
}

/**
 * Whether content from outside may be in the executor's context: it was read, or it may have been by whoever has an authorisation that is
 * open still. That no longer counts once it is said that nothing was dispatched.
 */
export function isTaintedOutside(plan: Pick<Plan, 'calls' | 'tainted'>): boolean {
  return plan.tainted || openAuthorizations(plan).some((call) => call.external?.readsOutside === true);
}

/** The same by what is reserved, for whoever does not see the calls: each of them holds a reservation until it has ended. */
export function mayBeTainted(
  { tainted, external, ledger }: Pick<Plan, 'tainted' | 'external' | 'ledger'>,
  catalogue: ToolCatalogue,
): boolean {
  const readsOutside = (tool: string | null | undefined) => tool != null && catalogue.find(tool)?.spec.riskClass === 'external_read';
  return tainted || (external !== undefined && ledger.reservations.some(({ tool }) => readsOutside(tool)));
}

export function openAuthorizations(plan: Pick<Plan, 'calls'>): readonly Call[] {
  return Object.values(plan.calls).filter(isOpen);
}
