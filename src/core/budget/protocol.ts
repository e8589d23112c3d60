import type { CapWindow, Day } from './window.ts';

/**
 * What plans, sessions and the org say to each other about money (design section 10). Every amount is an integer number of micro-USD.
 *
 * Promise: counts are cumulative and never decrease, both sides merge them by max, so a message that comes twice, late or out of order
 * changes nothing. A message that is lost leaves money on the safe side: counted as used until the next ask or recall.
 */

/**
 * One account between a parent and a child for one day: granted, returned, settled within the lease, overdrawn. The design writes
 * capitals for the parent's copy. The child commits a return before the parent sees it, the parent commits a grant before the child sees
 * it; hence child.g ≤ parent.g and child.r ≥ parent.r, and what the child may use, g − r, is at most what the parent counts, G − R.
 *
 * `v` is what tools charged beyond their reservations when the lease had nothing free to cover it. It counts on top of g − r at every
 * level, for good. (Were it left in `s`, with max(G − R, S) outstanding, one plan's overdraft would hide at the org behind what
 * another plan of the session has leased and not settled, and other sessions would be granted money that is gone.)
 */
export interface Counts {
  readonly g: number;
  readonly r: number;
  readonly s: number;
  readonly v: number;
}

/** Child → parent, answered by `AskAnswer`. The child has given back everything unused before it asks. */
export interface Ask {
  readonly day: Day;
  readonly seen: Counts;
  /** What the child cannot go on without; 0 asks for a first lease only. */
  readonly need: number;
  /** What would save it the next asks; counts only while nobody else waits. */
  readonly want: number;
  /**
   * The asker's own limit on what the node's total may be after the grant, beside the node's caps; null: none. A plan brings the
   * `safety.max_total_cost` of the profile document that is locked in it, so plans under other versions of a profile share one account.
   */
  readonly capMicroUsd: number | null;
}

export type AskAnswer =
  | { readonly kind: 'granted'; readonly day: Day; readonly g: number }
  | { readonly kind: 'refused'; readonly day: Day; readonly refusal: BudgetRefusal }
  /** Retryable: somebody who may hold money was not reached, or it took too long. Never says that the budget is used up. */
  | { readonly kind: 'busy'; readonly day: Day }
  /** The account of this child and day is closed for good. */
  | { readonly kind: 'closed'; readonly day: Day };

/** Which level is exhausted. Fits the guards' `UpperRefusal`. */
export interface BudgetRefusal {
  readonly level: 'session' | 'org' | 'profile';
  readonly capMicroUsd: number;
  /** Settled and reserved of that cap, when it was refused. */
  readonly usedMicroUsd: number;
  readonly window: CapWindow;
}

/** Parent → child, answered by `RecallReply`: give back at most `max` of what is unused. `g` is all that was ever granted. */
export interface Recall {
  readonly day: Day;
  readonly g: number;
  readonly max: number;
  /**
   * As far as what is unused is not enough, what a plan has put aside for a decision that is not made yet goes back as well: that decision
   * is made again, from what is there then. Said where a cap is exceeded; whoever only waits for money lets others finish.
   */
  readonly aside?: true;
}

/** `left` is 0 only if neither the child nor anything below it has unused money; otherwise an upper bound of what is left. */
export interface RecallReply {
  readonly day: Day;
  readonly r: number;
  readonly s: number;
  readonly v: number;
  readonly left: number;
}

/** Child → parent: something was returned, or overdrawn. Lost returns do no harm; an overdraft is told again until it is acknowledged. */
export interface Freed {
  readonly day: Day;
  readonly r: number;
  readonly s: number;
  readonly v: number;
}

/** Child → parent, repeated until acknowledged: nothing is reserved and nothing will be; a late cost raises `v` and closes once more. */
export interface Close {
  readonly day: Day;
  readonly s: number;
  readonly v: number;
}

/** Where an own account stands: in use; final and to be told until it is acknowledged; acknowledged. */
export type LeasePhase = 'open' | 'closing' | 'closed';

/** The durable row of a child about its account with the parent. What is settled while it is open is known from the child's own books. */
export interface LeaseRow {
  readonly day: Day;
  readonly g: number;
  readonly r: number;
  /** A plan's overdraft. A session's is the sum of its plans', and 0 here. */
  readonly v: number;
  readonly phase: LeasePhase;
  /** s + v when it was last closed; 0 while it is open. */
  readonly closedMicroUsd: number;
}

export function emptyLease(day: Day): LeaseRow {
  return { day, g: 0, r: 0, v: 0, phase: 'open', closedMicroUsd: 0 };
}

/** A holder that had nothing left is not recalled again for so long, unless it is granted something. */
export const DRY_MS = 5_000;

/** The cost of so many calls is asked for at once. */
export const WANT_CALLS = 64;

/**
 * How long a caller waits before it counts the other side as not reached. Each waits longer than everything below it may take:
 * plan.recall < session.recall < org.ask < session.ask (design section 10, liveness).
 */
export const TIMEOUT_MS = { planRecall: 1_000, sessionRecall: 1_500, orgAsk: 4_000, sessionAsk: 5_000 } as const;

/** How long a node lets an ask wait in its queue before it answers `busy`. */
export const PATIENCE_MS = { session: 4_500, org: 3_000, profile: 4_500 } as const;

/** How long a closed account is remembered, so that a message from before is not taken for a new child. */
export const REMEMBER_CLOSED_MS = 7 * 24 * 60 * 60 * 1000;

/** How often at most a node that is at work tells what was charged below it, so that those above can show it and warn. */
export const TELL_MS = 1_000;

/** How long until a close that is not acknowledged, or an overdraft that was not heard, is told again. */
export const REPEAT_MS = 30_000;
