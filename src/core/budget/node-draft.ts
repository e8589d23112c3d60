import { addMicroUsd } from '../money.ts';
import {
  type Account,
  type AccountKey,
  accountKey,
  type Caps,
  type ClosedAccount,
  chargedOn,
  leaseFree,
  type NodeChange,
  type NodeState,
} from './node-state.ts';
import { type Ask, type AskAnswer, type Close, emptyLease, type Freed, type LeaseRow, type Recall, type RecallReply } from './protocol.ts';
import type { Day } from './window.ts';

/**
 * One transition of a budget node in the making: the next state, the rows to write, what to send.
 *
 * Promise: the state that came in is not touched, and no durable member changes without a `NodeChange`.
 */
export interface Draft extends Mutable<NodeState> {
  readonly nowMs: number;
  readonly changes: NodeChange[];
  readonly outputs: NodeOutput[];
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** What a node sends, in this order, after its changes are committed. `call` of a question names the reply; of an answer, who waits for it. */
export type NodeOutput =
  | { readonly kind: 'answer'; readonly call: string; readonly child: string; readonly answer: AskAnswer }
  | { readonly kind: 'recall'; readonly call: number; readonly child: string; readonly recall: Recall }
  | { readonly kind: 'ask'; readonly call: number; readonly ask: Ask }
  | { readonly kind: 'freed'; readonly freed: Freed }
  | { readonly kind: 'close'; readonly close: Close }
  | { readonly kind: 'recall_reply'; readonly call: string; readonly reply: RecallReply }
  /** A changed cap is in force with every holder; `unreached` names children that may go on under the old one until their next contact. */
  | { readonly kind: 'caps_set'; readonly call: string; readonly unreached: readonly string[] };

/** What a transition answers: commit `changes`, then make `outputs` visible. */
export interface NodeStep {
  readonly state: NodeState;
  readonly changes: readonly NodeChange[];
  readonly outputs: readonly NodeOutput[];
}

export function beginDraft(state: NodeState, nowMs: number): Draft {
  return { ...state, nowMs, changes: [], outputs: [] };
}

export function finishDraft(draft: Draft): NodeStep {
  const { nowMs: _nowMs, changes, outputs, ...state } = draft;
  return { state, changes, outputs };
}

export function putCaps(draft: Draft, row: Caps): void {
  draft.caps = row;
  draft.changes.push({ table: 'caps', row });
}

export function putAccount(draft: Draft, row: Account): void {
  const key = accountKey(row.child, row.day);
  draft.accounts = withEntry(draft.accounts, key, row);
  draft.changes.push({ table: 'account', key, row });
}

export function dropAccount(draft: Draft, key: AccountKey): void {
  draft.accounts = withEntry(draft.accounts, key, null);
  draft.dry = withEntry(draft.dry, key, null);
  draft.changes.push({ table: 'account', key, row: null });
}

export function putClosed(draft: Draft, key: AccountKey, row: ClosedAccount | null): void {
  draft.closed = withEntry(draft.closed, key, row);
  draft.changes.push({ table: 'closed', key, row });
}

export function addSpent(draft: Draft, day: Day, charged: { readonly s: number; readonly v: number }): void {
  const before = draft.spent.get(day) ?? { s: 0, v: 0 };
  const row = { day, s: addMicroUsd(before.s, charged.s), v: addMicroUsd(before.v, charged.v) };
  draft.spent = withEntry(draft.spent, day, row);
  draft.changes.push({ table: 'spent', key: day, row });
}

export function putLease(draft: Draft, row: LeaseRow): void {
  draft.leases = withEntry(draft.leases, row.day, row);
  draft.changes.push({ table: 'lease', key: row.day, row });
}

export function dropLease(draft: Draft, day: Day): void {
  draft.leases = withEntry(draft.leases, day, null);
  draft.changes.push({ table: 'lease', key: day, row: null });
}

export function leaseOf(state: Pick<NodeState, 'leases'>, day: Day): LeaseRow {
  return state.leases.get(day) ?? emptyLease(day);
}

/** A grant that the node itself was given: merged by max. More than was known ends the watch. */
export function mergeLease(draft: Draft, day: Day, g: number): void {
  const lease = leaseOf(draft, day);
  if (g <= lease.g || lease.phase !== 'open') return;
  putLease(draft, { ...lease, g });
  draft.watched = false;
  draft.motion += 1;
}

/** Returns up to `max` of what is not handed out; answers the amount. The parent learns of it by what is sent next. */
export function giveBack(draft: Draft, day: Day, max = Number.POSITIVE_INFINITY): number {
  const lease = draft.leases.get(day);
  if (lease === undefined || lease.phase !== 'open') return 0;
  const amount = Math.min(leaseFree(draft, day), max);
  if (amount <= 0) return 0;
  putLease(draft, { ...lease, r: lease.r + amount });
  return amount;
}

/** Makes the own account of a day final, or final once more after a late cost. */
export function closeLease(draft: Draft, day: Day): void {
  const { s, v } = chargedOn(draft, day);
  putLease(draft, { ...leaseOf(draft, day), phase: 'closing', closedMicroUsd: s + v });
  draft.outputs.push({ kind: 'close', close: { day, s, v } });
}

/** Tells the parent where the own account of a day stands; the last word of a step is enough. */
export function pushFreed(draft: Draft, day: Day): void {
  const told = draft.outputs.findIndex((output) => output.kind === 'freed' && output.freed.day === day);
  if (told >= 0) draft.outputs.splice(told, 1);
  const charged = chargedOn(draft, day);
  draft.told = { day, s: charged.s, atMs: draft.nowMs };
  draft.outputs.push({ kind: 'freed', freed: { day, r: leaseOf(draft, day).r, ...charged } });
}

export function isDry(state: Pick<NodeState, 'dry'>, key: AccountKey, atMs: number): boolean {
  return (state.dry.get(key) ?? Number.NEGATIVE_INFINITY) > atMs;
}

export function withEntry<K, V>(map: ReadonlyMap<K, V>, key: K, value: V | null): ReadonlyMap<K, V> {
  const next = new Map(map);
  if (value === null) next.delete(key);
  else next.set(key, value);
  return next;
}
