import { addMicroUsd } from '../money.ts';
import type { BudgetRefusal, Counts, LeaseRow } from './protocol.ts';
import { CAP_WINDOWS, type CapWindow, type Day, sameWindow } from './window.ts';

/**
 * The state of a budget node (a session, an org, or what an org has spent under a profile) and what can be read from it.
 *
 * Promise: everything that counts is durable and comes back with `loadNode` from the rows that transitions ask to be written; what is
 * volatile (queue, marks, calls on the way) may be lost at any moment and costs a retry, never money.
 */
export interface NodeState {
  readonly level: NodeLevel;

  /* Durable. */
  readonly caps: Caps;
  readonly accounts: ReadonlyMap<AccountKey, Account>;
  readonly closed: ReadonlyMap<AccountKey, ClosedAccount>;
  /** `closedSpent` by day: what closed accounts settled. */
  readonly spent: ReadonlyMap<Day, Spent>;
  /** The node's own accounts with its parent; a session has one per day, a root none. */
  readonly leases: ReadonlyMap<Day, LeaseRow>;

  /* Volatile. */
  readonly queue: readonly QueuedAsk[];
  /** Account → until when its holder is known to have nothing left. */
  readonly dry: ReadonlyMap<AccountKey, number>;
  /** The parent has been told that nothing is left: what is freed goes up at once. Set after a load, since that may have been said before. */
  readonly watched: boolean;
  /** What the parent has acknowledged of a day: what was returned and what was charged. */
  readonly heard: ReadonlyMap<Day, Spent & { readonly r: number }>;
  /** What the parent was told last of the charges of a day, and when; heard or not. */
  readonly told: { readonly day: Day; readonly s: number; readonly atMs: number };
  readonly service: Service | null;
  readonly asking: {
    readonly call: number;
    readonly child: string;
    readonly day: Day;
    readonly headNeed: number;
    /** The `g` that would be all that was wanted. */
    readonly enough: number;
  } | null;
  /** The parent gave less than was wanted when it was asked last: what it gave is shared out. */
  readonly isScarce: boolean;
  readonly jobs: readonly Job[];
  /** Recalls on the way. */
  readonly calls: ReadonlyMap<number, OpenRecall>;
  readonly nextCall: number;
  /** Counts every time that money became available here. */
  readonly motion: number;
}

/** A session stands below its org. An org and a profile are roots; below a profile are plans, which bring the cap (`Ask.capMicroUsd`). */
export type NodeLevel = BudgetRefusal['level'];

/** Null: this window is not limited. All that are set apply at once. */
export type Caps = Readonly<Record<CapWindow, number | null>>;

/** Whether one cap in the place of another lets more be spent. */
export const isLooserCap = (cap: number | null, before: number | null): boolean => before !== null && (cap === null || cap > before);

export const NO_CAPS: Caps = { total: null, monthly: null, daily: null };

export type AccountKey = string;

export interface Account extends Counts {
  readonly child: string;
  readonly day: Day;
  /** What its holder brought with its asks: while it may have something unused, the node's total must not pass it. */
  readonly capMicroUsd: number | null;
}

/** What is left of a closed account: a late message finds it, a late cost is added. */
export interface ClosedAccount extends Spent {
  readonly child: string;
}

/** Final charges of a day: within leases, and beyond them. */
export interface Spent {
  readonly day: Day;
  readonly s: number;
  readonly v: number;
}

export interface QueuedAsk {
  /** The caller's handle of the call that waits for the answer. */
  readonly call: string;
  readonly child: string;
  readonly day: Day;
  readonly need: number;
  readonly want: number;
  readonly capMicroUsd: number | null;
  /** Arrival of the child's first ask in this place of the queue. */
  readonly sinceMs: number;
}

/** How far the node is with the head of its queue. */
export interface Service {
  readonly child: string;
  readonly stage: 'up' | 'recall' | 'end';
  readonly pending: number;
  readonly rounds: number;
  /** Rounds in a row that moved nothing. */
  readonly idle: number;
  /** In this round: `motion` at its start, whether anybody was called, whether somebody who may hold money could not give it. */
  readonly motion: number;
  readonly called: boolean;
  readonly blocked: boolean;
  readonly refusedAbove: BudgetRefusal | null;
}

/** A recall round that somebody waits for: the parent, or whoever lowered a cap. */
export type Job = { readonly call: string; readonly pending: number; readonly startedMs: number } & (
  | { readonly kind: 'recall'; readonly day: Day; readonly max: number; readonly returnedBefore: number }
  | { readonly kind: 'caps'; readonly unreached: readonly string[] }
);

export interface OpenRecall {
  readonly key: AccountKey;
  /** What was granted when the recall was sent; only that the reply speaks of. */
  readonly g: number;
  readonly max: number;
  readonly returnedBefore: number;
  /** `null`: the head of the queue waits for it; otherwise the call of a job, or blank once nobody waits any more. */
  readonly job: string | null;
}

/** One row to be written, or removed, before any output of the same step becomes visible. */
export type NodeChange =
  | { readonly table: 'caps'; readonly row: Caps }
  | { readonly table: 'account'; readonly key: AccountKey; readonly row: Account | null }
  | { readonly table: 'closed'; readonly key: AccountKey; readonly row: ClosedAccount | null }
  | { readonly table: 'spent'; readonly key: Day; readonly row: Spent }
  | { readonly table: 'lease'; readonly key: Day; readonly row: LeaseRow | null };

/** The rows of a node as they are stored. */
export interface NodeRows {
  readonly caps: Caps;
  readonly accounts: Iterable<Account>;
  readonly closed: Iterable<ClosedAccount>;
  readonly spent: Iterable<Spent>;
  readonly leases: Iterable<LeaseRow>;
}

export const NO_ROWS: NodeRows = { caps: NO_CAPS, accounts: [], closed: [], spent: [], leases: [] };

/** A node as it is after a start, a crash or an eviction. */
export function loadNode(level: NodeLevel, rows: NodeRows): NodeState {
  const keyed = <T extends { readonly child: string; readonly day: Day }>(items: Iterable<T>) =>
    new Map([...items].map((item) => [accountKey(item.child, item.day), item]));
  return {
    level,
    caps: rows.caps,
    accounts: keyed(rows.accounts),
    closed: keyed(rows.closed),
    spent: new Map([...rows.spent].map((row) => [row.day, row])),
    leases: new Map([...rows.leases].map((row) => [row.day, row])),
    queue: [],
    dry: new Map(),
    watched: level === 'session',
    heard: new Map(),
    told: { day: '', s: 0, atMs: 0 },
    service: null,
    asking: null,
    isScarce: false,
    jobs: [],
    calls: new Map(),
    nextCall: 1,
    motion: 0,
  };
}

/** A day never holds a blank, so the key is unambiguous whatever the child is called. */
export function accountKey(child: string, day: Day): AccountKey {
  return `${day} ${child}`;
}

/** What an account counts for: what its holder may use, and what it charged beyond that. */
export function outstandingOf({ g, r, s, v }: Counts): number {
  return addMicroUsd(Math.max(g - r, s), v);
}

/** Outstanding and closed money of the window of `kind` that holds `day`. */
export function usedIn(state: Pick<NodeState, 'accounts' | 'spent'>, kind: CapWindow, day: Day): number {
  let sum = 0;
  for (const account of state.accounts.values()) if (sameWindow(kind, account.day, day)) sum = addMicroUsd(sum, outstandingOf(account));
  for (const spent of state.spent.values()) if (sameWindow(kind, spent.day, day)) sum = addMicroUsd(sum, spent.s, spent.v);
  return sum;
}

/** The node's own `s` and `v` towards its parent: what its children have charged on a day, closed accounts included. */
export function chargedOn(state: Pick<NodeState, 'accounts' | 'spent'>, day: Day): { readonly s: number; readonly v: number } {
  let { s, v } = state.spent.get(day) ?? { s: 0, v: 0 };
  for (const account of state.accounts.values()) {
    if (account.day !== day) continue;
    s = addMicroUsd(s, account.s);
    v = addMicroUsd(v, account.v);
  }
  return { s, v };
}

/** What of the node's own lease is not handed out. Without limit for a root. */
export function leaseFree(state: NodeState, day: Day): number {
  if (state.level !== 'session') return Number.POSITIVE_INFINITY;
  const lease = state.leases.get(day);
  if (lease === undefined) return 0;
  let free = lease.g - lease.r - (state.spent.get(day)?.s ?? 0);
  for (const account of state.accounts.values()) if (account.day === day) free -= Math.max(account.g - account.r, account.s);
  return free;
}

/**
 * The cap that leaves least for a day, with `askersCap` beside the node's own total; null where nothing is limited. `room` is below 0
 * above a lowered cap or after an overrun.
 */
export function tightestCap(
  state: NodeState,
  day: Day,
  askersCap: number | null,
): { readonly kind: CapWindow; readonly cap: number; readonly room: number } | null {
  let tightest: { kind: CapWindow; cap: number; room: number } | null = null;
  for (const kind of CAP_WINDOWS) {
    const own = state.caps[kind];
    const cap = kind !== 'total' || askersCap === null ? own : Math.min(askersCap, own ?? askersCap);
    if (cap === null) continue;
    const room = cap - usedIn(state, kind, day);
    if (tightest === null || room < tightest.room) tightest = { kind, cap, room };
  }
  return tightest;
}

/** One cap of a node as people see it. */
export interface CapView {
  readonly window: CapWindow;
  /** Null: not limited. */
  readonly capMicroUsd: number | null;
  /** Settled, as far as children have told; it is exact once they have returned or closed. */
  readonly spentMicroUsd: number;
  /** With the children and not settled: reserved by them, or leased and not used yet. */
  readonly leasedMicroUsd: number;
  /** What can still be handed out, never below 0; null without a cap. cap = spent + leased + remaining, but for an excess. */
  readonly remainingMicroUsd: number | null;
  /** How far spent and leased are above the cap: after an overrun, or after the cap was lowered. */
  readonly excessMicroUsd: number;
}

export interface ChildView {
  readonly child: string;
  readonly spentMicroUsd: number;
  readonly leasedMicroUsd: number;
}

/** `budget/show` of a node for the windows that hold a day. Children are listed until a week after they closed. */
export function showNode(state: NodeState, day: Day): { readonly caps: readonly CapView[]; readonly children: readonly ChildView[] } {
  const caps = CAP_WINDOWS.map((window): CapView => {
    const capMicroUsd = state.caps[window];
    let spentMicroUsd = 0;
    for (const spent of state.spent.values())
      if (sameWindow(window, spent.day, day)) spentMicroUsd = addMicroUsd(spentMicroUsd, spent.s, spent.v);
    for (const account of state.accounts.values()) {
      if (sameWindow(window, account.day, day)) spentMicroUsd = addMicroUsd(spentMicroUsd, account.s, account.v);
    }
    const used = usedIn(state, window, day);
    return {
      window,
      capMicroUsd,
      spentMicroUsd,
      leasedMicroUsd: used - spentMicroUsd,
      remainingMicroUsd: capMicroUsd === null ? null : Math.max(0, capMicroUsd - used),
      excessMicroUsd: capMicroUsd === null ? 0 : Math.max(0, used - capMicroUsd),
    };
  });
  const children = new Map<string, ChildView>();
  const add = (child: string, spentMicroUsd: number, leasedMicroUsd: number): void => {
    const before = children.get(child);
    children.set(child, {
      child,
      spentMicroUsd: addMicroUsd(before?.spentMicroUsd ?? 0, spentMicroUsd),
      leasedMicroUsd: addMicroUsd(before?.leasedMicroUsd ?? 0, leasedMicroUsd),
    });
  };
  for (const account of state.accounts.values()) {
    const spentMicroUsd = addMicroUsd(account.s, account.v);
    add(account.child, spentMicroUsd, outstandingOf(account) - spentMicroUsd);
  }
  for (const account of state.closed.values()) add(account.child, addMicroUsd(account.s, account.v), 0);
  return { caps, children: [...children.values()] };
}
