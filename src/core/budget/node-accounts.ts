import { addMicroUsd } from '../money.ts';
import { addSpent, closeLease, type Draft, leaseOf, pushFreed, putAccount, putClosed } from './node-draft.ts';
import { recallHolders } from './node-queue.ts';
import { type Account, type AccountKey, accountKey, type ClosedAccount, chargedOn, type NodeState, usedIn } from './node-state.ts';
import { type Counts, REMEMBER_CLOSED_MS } from './protocol.ts';
import { CAP_WINDOWS, type CapWindow, type Day, dayOf, sameWindow } from './window.ts';

/**
 * What a node's accounts take in: returns, charges, overdrafts, late costs, and what has to cover an excess over a cap.
 *
 * Promise: counts only grow, whatever comes twice, late or out of order; no charge is counted twice and none is lost.
 */

/** Takes in what a child says of itself. Nobody returns more than was granted. */
export function mergeReport(draft: Draft, child: string, day: Day, { r, s, v }: Pick<Counts, 'r' | 's' | 'v'>): void {
  const key = accountKey(child, day);
  const closed = draft.closed.get(key);
  if (closed !== undefined) {
    chargeLate(draft, key, closed, s + v);
    return;
  }
  const known = draft.accounts.get(key);
  // An overdraft without any lease (a free call that cost something) opens an account; returns of an account that nobody knows open none.
  if (known === undefined && (v === 0 || r > 0 || isForgotten(day, draft.nowMs))) return;
  const account = known ?? { child, day, g: 0, r: 0, s: 0, v: 0, capMicroUsd: null };
  const next = { ...account, r: Math.max(account.r, Math.min(r, account.g)), s: Math.max(account.s, s), v: Math.max(account.v, v) };
  if (next.r === account.r && next.s === account.s && next.v === account.v) return;
  putAccount(draft, next);
  if (next.r > account.r) draft.motion += 1;
  if (next.v > account.v) reportOverdraft(draft, day);
}

/** The job of a recall whose reply is merged, and that nobody waits for. */
export const NOBODY = '';

/** The days of which a session owes its parent an account; a root none. */
export function daysOf(state: NodeState): readonly Day[] {
  if (state.level !== 'session') return [];
  return [...new Set([...state.leases.keys(), ...state.spent.keys(), ...[...state.accounts.values()].map((account) => account.day)])];
}

/** A cost that came after the account was closed: its lease has gone home, so all of it is overdrawn. */
export function chargeLate(draft: Draft, key: AccountKey, closed: ClosedAccount, total: number): void {
  const late = total - closed.s - closed.v;
  if (late <= 0) return;
  addSpent(draft, closed.day, { s: 0, v: late });
  putClosed(draft, key, { ...closed, v: addMicroUsd(closed.v, late) });
  reportOverdraft(draft, closed.day);
}

/** It counts at once, here and above. Where it exceeds a cap, what is unused elsewhere has to cover it. */
export function reportOverdraft(draft: Draft, day: Day): void {
  recallExcess(draft, day, NOBODY);
  if (draft.level !== 'session') return;
  if (leaseOf(draft, day).phase === 'open') pushFreed(draft, day);
  else closeLease(draft, day);
}

/** Whether the parent has not acknowledged an overdraft yet. */
export function isUnheard(state: NodeState, day: Day): boolean {
  return chargedOn(state, day).v > (state.heard.get(day)?.v ?? 0);
}

/** Recalls what may cover the excess over the caps of a day's windows; answers how many were asked. */
export function recallExcess(draft: Draft, day: Day, job: string): number {
  const exceeded = CAP_WINDOWS.filter((kind) => excessOf(draft, kind, day) > 0);
  const brought = [...draft.accounts.values()].map(({ capMicroUsd }) => capMicroUsd).filter((cap) => cap !== null);
  const total = brought.length === 0 ? 0 : usedIn(draft, 'total', day);
  const excess = Math.max(0, ...exceeded.map((kind) => excessOf(draft, kind, day)), ...brought.map((cap) => total - cap));
  return recallHolders(
    draft,
    excess,
    (account, key) =>
      exceeded.some((kind) => mayCover(draft, key, account, kind, day)) ||
      // One that has nothing left may have put something aside: whoever lowers a cap is told that nobody goes on under the old one.
      (job !== NOBODY && exceeded.some((kind) => sameWindow(kind, account.day, day))) ||
      // Above the cap that he brought he must not use what he has left.
      (account.capMicroUsd !== null && total > account.capMicroUsd && mayCover(draft, key, account, 'total', day)),
    job,
    true,
  );
}

/** A holder that has once said that nothing is left is watched until it is granted something: it will not use again what it frees. */
export function mayCover(state: NodeState, key: AccountKey, account: Account, kind: CapWindow, day: Day): boolean {
  return sameWindow(kind, account.day, day) && account.g - account.r > account.s && !state.dry.has(key);
}

/** How far a window is above its cap. */
export function excessOf(state: NodeState, kind: CapWindow, day: Day): number {
  const cap = state.caps[kind];
  return cap === null ? 0 : usedIn(state, kind, day) - cap;
}

/** Messages of a day that is so long ago that closed accounts of it are no longer remembered. */
export function isForgotten(day: Day, nowMs: number): boolean {
  return day < dayOf(nowMs - REMEMBER_CLOSED_MS);
}
