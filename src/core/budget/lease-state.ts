import {
  type Ask,
  type BudgetRefusal,
  type Close,
  type Counts,
  emptyLease,
  type Freed,
  type LeaseRow,
  type RecallReply,
} from './protocol.ts';
import type { Day } from './window.ts';

/**
 * The state of a plan's lease: what is stored, what comes from the plan's log, and what may be lost.
 *
 * Where the parts are kept. What is settled and reserved per day is the plan's own ledger, a fold of its log, and is handed in
 * (`LedgerView`), so there is no second set of books and a decision stays one event row. Only `LeaseRow` (day, g, r, phase) is stored,
 * in a small table of its own and not as events: grants and returns are positions towards the session and not decisions of the
 * plan, they come in bursts that would bury the trail, and replaying the log must give the plan whatever its neighbours did. The rows
 * are written in the transaction of the decision they belong to, and before anything of the step is sent.
 */
export interface LeaseState {
  /**
   * Whether what the plan reserves has to be covered from here. False: nothing is asked for and nothing is held back; the parent is told what
   * was charged, as overdrawn, so that those who are limited by it count it.
   */
  readonly covers: boolean;
  /** What the plan brings with each ask (`Ask.capMicroUsd`): its locked limit on everything under its profile; null towards a session. */
  readonly capMicroUsd: number | null;
  /* Durable. */
  readonly rows: ReadonlyMap<Day, LeaseRow>;
  /* From the plan's log. */
  readonly ledger: LedgerView;
  /* Volatile. */
  /** The parent knows that nothing is left here: what is freed goes back at once. Set after a load, since that may have been said before. */
  readonly watched: boolean;
  /** Authorisations that wait for money, first come, first served. */
  readonly line: readonly Ticket[];
  /** Put aside for tickets that are `ready` and not decided yet. */
  readonly promised: readonly (Ticket & { readonly day: Day })[];
  readonly asking: { readonly call: number; readonly day: Day; readonly headNeed: number } | null;
  readonly nextCall: number;
  readonly recentMicroUsd: number;
  /** What the parent has acknowledged, by day. */
  readonly heard: ReadonlyMap<Day, Freed>;
}

/** What the plan's log says of its money: by the UTC day on which it was reserved. `ended`: nothing will be authorised any more. */
export interface LedgerView {
  readonly days: ReadonlyMap<Day, { readonly settledMicroUsd: number; readonly reservedMicroUsd: number }>;
  readonly ended: boolean;
}

/** One authorisation that is being decided; the id is the host's. */
export interface Ticket {
  readonly id: string;
  readonly needMicroUsd: number;
  /** How often it was asked for. */
  readonly asks: number;
}

export type LeaseOutput =
  /** Decide this authorisation now, in the same turn, reserving on `day`; then report it with `ledgerChanged`. */
  | { readonly kind: 'ready'; readonly ticket: string; readonly day: Day }
  /** There is no money for it: decide with this refusal. */
  | { readonly kind: 'refused'; readonly ticket: string; readonly refusal: BudgetRefusal }
  /** "budget busy", retryable. */
  | { readonly kind: 'busy'; readonly ticket: string }
  | { readonly kind: 'ask'; readonly call: number; readonly ask: Ask }
  | { readonly kind: 'freed'; readonly freed: Freed }
  | { readonly kind: 'close'; readonly close: Close }
  | { readonly kind: 'recall_reply'; readonly reply: RecallReply };

/** What a transition answers: commit `changes` (rows by day), then act on `outputs` in order. */
export interface LeaseStep {
  readonly lease: LeaseState;
  readonly changes: ReadonlyMap<Day, LeaseRow>;
  readonly outputs: readonly LeaseOutput[];
}

/** Two steps as one: written together, acted on in order. */
export function inOrder(first: LeaseStep, second: LeaseStep): LeaseStep {
  return {
    lease: second.lease,
    changes: new Map([...first.changes, ...second.changes]),
    outputs: [...first.outputs, ...second.outputs],
  };
}

/** A lease as it is when the plan is made, or after a crash or an eviction. */
export function openLease(
  rows: Iterable<LeaseRow>,
  ledger: LedgerView,
  { capMicroUsd = null, covers = true }: { readonly capMicroUsd?: number | null; readonly covers?: boolean } = {},
): LeaseState {
  return {
    covers,
    capMicroUsd,
    rows: new Map([...rows].map((row) => [row.day, row])),
    ledger: covers ? ledger : chargesOf(ledger),
    watched: true,
    line: [],
    promised: [],
    asking: null,
    nextCall: 1,
    recentMicroUsd: 0,
    heard: new Map(),
  };
}

/** Only what was charged: all that a parent is told of which nothing is held. A day on which nothing was is none. */
export function chargesOf({ days, ended }: LedgerView): LedgerView {
  const charged = [...days].flatMap(([day, { settledMicroUsd }]) =>
    settledMicroUsd === 0 ? [] : [[day, { settledMicroUsd, reservedMicroUsd: 0 }] as const],
  );
  return { days: new Map(charged), ended };
}

/** What can be authorised on a day without asking. */
export function leaseFreeMicroUsd(lease: LeaseState, day: Day): number {
  return freeOn(lease, day);
}

/** The counts of a day as the parent would see them if it were told now. */
export function leaseCounts(lease: LeaseState, day: Day): Counts {
  const { g, r, v } = rowOf(lease, day);
  return { g, r, s: settledOn(lease, day) - v, v };
}

/** Whether an overdraft was not acknowledged yet. */
export function isUnheard(lease: LeaseState, day: Day): boolean {
  return rowOf(lease, day).v > (lease.heard.get(day)?.v ?? 0);
}

/** The row of a day, also where none is stored yet. */
export function rowOf(lease: Pick<LeaseState, 'rows'>, day: Day): LeaseRow {
  return lease.rows.get(day) ?? emptyLease(day);
}

/** A day without a row may have charges: what a free call cost after all. */
export function daysOf({ rows, ledger }: Pick<LeaseState, 'rows' | 'ledger'>): readonly Day[] {
  return [...new Set([...rows.keys(), ...ledger.days.keys()])];
}

/** All that was charged on a day, overruns included. */
export function settledOn(lease: Pick<LeaseState, 'ledger'>, day: Day): number {
  return lease.ledger.days.get(day)?.settledMicroUsd ?? 0;
}

/** Below 0 only until the next step takes an overrun in as overdrawn. */
export function freeOn(lease: LeaseState, day: Day): number {
  const { g, r, v } = rowOf(lease, day);
  const promised = lease.promised.reduce((sum, ticket) => sum + (ticket.day === day ? ticket.needMicroUsd : 0), 0);
  return g - r + v - settledOn(lease, day) - (lease.ledger.days.get(day)?.reservedMicroUsd ?? 0) - promised;
}
