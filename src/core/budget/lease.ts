import {
  chargesOf,
  daysOf,
  freeOn,
  isUnheard,
  type LeaseOutput,
  type LeaseState,
  type LeaseStep,
  type LedgerView,
  leaseCounts,
  rowOf,
  settledOn,
  type Ticket,
} from './lease-state.ts';
import { type AskAnswer, type Close, type Freed, type LeaseRow, REPEAT_MS, type Recall, WANT_CALLS } from './protocol.ts';
import { type Day, dayOf, windowEndMs } from './window.ts';

/**
 * A plan's side of its lease: the child's part of design section 10.
 *
 * Promise: settled (each up to its reservation) + reserved ≤ g − r on every day, since `ready` is only said while that much is free and
 * only what is free is returned. Pure transitions; the plan's handler of a recall makes no call.
 */

/** An authorisation of `needMicroUsd` is due: `ready` at once if it fits, otherwise it waits in line while the parent is asked. */
export function authorize(lease: LeaseState, ticket: { readonly id: string; readonly needMicroUsd: number }, nowMs: number): LeaseStep {
  const draft = begin(lease, nowMs);
  const entry = { ...ticket, asks: 0 };
  const today = dayOf(nowMs);
  // What costs nothing needs no money and so overtakes nobody.
  if (fits(draft, entry, today) && (draft.line.length === 0 || entry.needMicroUsd === 0)) promise(draft, entry, today);
  else draft.line = [...draft.line, entry];
  return finish(draft);
}

/** Asks for a first lease without waiting for it: after the plan's creation is committed. */
export function prefetch(lease: LeaseState, wantMicroUsd: number, nowMs: number): LeaseStep {
  const draft = begin(lease, nowMs);
  if (draft.asking === null && draft.line.length === 0) ask(draft, dayOf(nowMs), 0, wantMicroUsd);
  return finish(draft);
}

/** How an `ask` ended that was to be sent: the answer, or null where the parent was not reached within `TIMEOUT_MS.sessionAsk`. */
export function askAnswered(lease: LeaseState, call: number, answer: AskAnswer | null, nowMs: number): LeaseStep {
  const draft = begin(lease, nowMs);
  if (answer?.kind === 'granted') mergeGrant(draft, answer.day, answer.g);
  const { asking } = draft;
  if (asking?.call !== call) return finish(draft);
  draft.asking = null;
  // What was said of a day that is over says nothing of today: whoever waits asks again.
  const isStale = asking.day < dayOf(nowMs) && (answer?.kind === 'refused' || answer?.kind === 'closed');
  if (isStale) return finish(draft);
  if (answer?.kind === 'refused') {
    // What is not there for the head is not there for anything as large.
    fail(
      draft,
      (ticket) => ticket.needMicroUsd >= asking.headNeed,
      (ticket) => ({ kind: 'refused', ticket, refusal: answer.refusal }),
    );
  } else if (answer?.kind !== 'granted') {
    failBusy(draft);
  }
  return finish(draft);
}

/** The parent wants back what is unused. Commit, decide what became `ready`, then send the `recall_reply`, which comes last. */
export function recalled(lease: LeaseState, recall: Recall, nowMs: number): LeaseStep {
  const draft = begin(lease, nowMs);
  const { day, g, max } = recall;
  const row = rowOf(draft, day);
  if (row.phase !== 'open') {
    // Nothing of a closed account will ever be used, whatever was granted meanwhile.
    const { s, v } = leaseCounts(draft, day);
    return finish(draft, { kind: 'recall_reply', reply: { day, r: Math.max(row.r, g - s), s, v, left: 0 } });
  }
  mergeGrant(draft, day, g);
  serve(draft);
  const given = giveBack(draft, day, day < dayOf(nowMs) || draft.ledger.ended ? Number.POSITIVE_INFINITY : max);
  if (recall.aside === true && given < max) {
    draft.promised = draft.promised.filter((ticket) => ticket.day !== day);
    giveBack(draft, day, max - given);
  }
  const left = Math.max(0, freeOn(draft, day));
  if (left === 0) draft.watched = true;
  const { r, s, v } = leaseCounts(draft, day);
  return finish(draft, { kind: 'recall_reply', reply: { day, r, s, v, left } });
}

/**
 * After every commit that changed the ledger. `decided` names tickets that were `ready`, whatever came of them. A parent from which nothing is
 * held is told later, by `reportLease` and its like, and not of every charge.
 */
export function ledgerChanged(lease: LeaseState, ledger: LedgerView, decided: readonly string[], nowMs: number): LeaseStep {
  if (!lease.covers) {
    const told = { ...lease, ledger: chargesOf(ledger) };
    return ledger.ended ? finish(begin(told, nowMs)) : { lease: told, changes: new Map(), outputs: [] };
  }
  const draft = begin({ ...lease, ledger, promised: lease.promised.filter((ticket) => !decided.includes(ticket.id)) }, nowMs);
  if (ledger.ended) failBusy(draft);
  return finish(draft);
}

/** The plan waits, is idle or has ended: everything unused goes back, and the parent hears what was settled. */
export function returnLease(lease: LeaseState, nowMs: number): LeaseStep {
  const draft = begin(lease, nowMs);
  if (draft.line.length > 0) return finish(draft);
  for (const day of daysOf(draft)) {
    if (rowOf(draft, day).phase !== 'open') continue;
    giveBack(draft, day);
    tell(draft, day);
  }
  return finish(draft);
}

/** Tells the parent what was charged since it heard last, and keeps what is unused: so it can show and warn while the plan works. */
export function reportLease(lease: LeaseState, nowMs: number): LeaseStep {
  const draft = begin(lease, nowMs);
  for (const day of daysOf(draft)) if (rowOf(draft, day).phase === 'open') tell(draft, day);
  return finish(draft);
}

/** The parent has acknowledged `close`. */
export function leaseClosed(lease: LeaseState, close: Close, nowMs: number): LeaseStep {
  return acknowledged(lease, nowMs, (draft) => {
    const row = draft.rows.get(close.day);
    if (row?.phase === 'closing' && row.closedMicroUsd === close.s + close.v) put(draft, { ...row, phase: 'closed' });
  });
}

/** The parent has acknowledged `freed`. */
export function freedHeard(lease: LeaseState, freed: Freed, nowMs: number): LeaseStep {
  return acknowledged(lease, nowMs, (draft) => {
    if (freed.v >= (draft.heard.get(freed.day)?.v ?? 0)) draft.heard.set(freed.day, freed);
  });
}

/** Time has passed: a day that is over is returned and closed; what the parent must hear and may not have heard is sent again. */
export function sweepLease(lease: LeaseState, nowMs: number): LeaseStep {
  const draft = begin(lease, nowMs);
  for (const day of daysOf(draft)) {
    const { phase } = rowOf(draft, day);
    const { s, v } = leaseCounts(draft, day);
    if (phase === 'closing') draft.outputs.push({ kind: 'close', close: { day, s, v } });
    else if (phase === 'open' && isUnheard(draft, day)) tell(draft, day);
  }
  return finish(draft);
}

/** Whether an idle plan has anything to give back or to tell. */
export function hasToReturn(lease: LeaseState): boolean {
  return daysOf(lease).some((day) => rowOf(lease, day).phase === 'open' && (freeOn(lease, day) > 0 || isUntold(lease, day)));
}

/** Whether there are charges of which a parent from which nothing is held was never told: `reportLease` is due, as soon as it may be. */
export function hasUnsaidCharges(lease: LeaseState): boolean {
  return !lease.covers && daysOf(lease).some((day) => freeOn(lease, day) < 0);
}

/** When `sweepLease` is due, for the host's alarm; null while nothing depends on time. */
export function nextLeaseSweepMs(lease: LeaseState, nowMs: number): number | null {
  const isOwing = daysOf(lease).some((day) => {
    const { phase } = rowOf(lease, day);
    return phase === 'closing' || (phase === 'open' && isUnheard(lease, day));
  });
  if (isOwing) return nowMs + REPEAT_MS;
  return [...lease.rows.values()].some((row) => row.phase === 'open') ? windowEndMs('daily', nowMs) : null;
}

/* ---------------------------------------------------------------- inside */

interface Draft extends LeaseState {
  rows: ReadonlyMap<Day, LeaseRow>;
  watched: boolean;
  line: readonly Ticket[];
  promised: LeaseState['promised'];
  asking: LeaseState['asking'];
  nextCall: number;
  recentMicroUsd: number;
  readonly heard: Map<Day, Freed>;
  readonly nowMs: number;
  readonly changes: Map<Day, LeaseRow>;
  readonly outputs: LeaseOutput[];
}

/** After so many asks for one ticket whose grants were taken back before they could be used. */
const MAX_ASKS = 5;

/** A parent from which nothing is held would otherwise hear of the next charges as soon as it has heard of some, however many there are. */
function acknowledged(lease: LeaseState, nowMs: number, take: (draft: Draft) => void): LeaseStep {
  const draft = lease.covers ? begin(lease, nowMs) : draftOf(lease, nowMs);
  take(draft);
  return lease.covers ? finish(draft) : stepOf(draft);
}

function draftOf(lease: LeaseState, nowMs: number): Draft {
  return { ...lease, heard: new Map(lease.heard), nowMs, changes: new Map(), outputs: [] };
}

function stepOf({ nowMs: _nowMs, changes, outputs, ...lease }: Draft): LeaseStep {
  return { lease, changes, outputs };
}

function begin(lease: LeaseState, nowMs: number): Draft {
  const draft = draftOf(lease, nowMs);
  // First of all, so that nothing is said of `s` that is not covered by the lease: a crash may have come between charge and lease row.
  for (const day of daysOf(draft)) {
    const overdrawn = -freeOn(draft, day);
    if (overdrawn <= 0) continue;
    put(draft, { ...rowOf(draft, day), v: rowOf(draft, day).v + overdrawn });
    // It counts against the caps above at once, so they must hear of it.
    if (rowOf(draft, day).phase === 'open') tell(draft, day);
  }
  return draft;
}

/** What follows from any change: watched money goes back, the line is served, what is over is closed, and whoever is short asks. */
function finish(draft: Draft, last: LeaseOutput | null = null): LeaseStep {
  const today = dayOf(draft.nowMs);
  for (const day of daysOf(draft)) {
    if (rowOf(draft, day).phase !== 'open') continue;
    const isOver = draft.ledger.ended || day < today;
    if ((draft.watched || isOver) && giveBack(draft, day) > 0) tell(draft, day);
  }
  serve(draft);
  closeDays(draft, today);
  if (draft.asking === null) askForHead(draft, today);
  if (last !== null) draft.outputs.push(last);
  return stepOf(draft);
}

function serve(draft: Draft): void {
  const today = dayOf(draft.nowMs);
  for (let head = draft.line[0]; head !== undefined && fits(draft, head, today); head = draft.line[0]) {
    draft.line = draft.line.slice(1);
    promise(draft, head, today);
  }
}

function fits(draft: Draft, ticket: Ticket, day: Day): boolean {
  return !draft.ledger.ended && freeOn(draft, day) >= ticket.needMicroUsd;
}

function promise(draft: Draft, ticket: Ticket, day: Day): void {
  draft.promised = [...draft.promised, { ...ticket, day }];
  if (ticket.needMicroUsd > 0) {
    draft.recentMicroUsd =
      draft.recentMicroUsd === 0 ? ticket.needMicroUsd : Math.ceil((3 * draft.recentMicroUsd + ticket.needMicroUsd) / 4);
  }
  draft.outputs.push({ kind: 'ready', ticket: ticket.id, day });
}

function askForHead(draft: Draft, today: Day): void {
  const [head, ...rest] = draft.line;
  if (head === undefined) return;
  if (head.asks >= MAX_ASKS || draft.ledger.ended || rowOf(draft, today).phase !== 'open') {
    failBusy(draft);
    return;
  }
  draft.line = [{ ...head, asks: head.asks + 1 }, ...rest];
  const line = draft.line.reduce((sum, ticket) => sum + ticket.needMicroUsd, 0);
  ask(draft, today, head.needMicroUsd, line + WANT_CALLS * (draft.recentMicroUsd || head.needMicroUsd));
}

/** Everything unused goes back first, so that nobody hoards a part while he asks for the rest. */
function ask(draft: Draft, day: Day, need: number, want: number): void {
  for (const row of draft.rows.values()) if (row.phase === 'open' && giveBack(draft, row.day) > 0 && row.day !== day) tell(draft, row.day);
  const call = draft.nextCall;
  draft.nextCall += 1;
  draft.asking = { call, day, headNeed: need };
  draft.outputs.push({ kind: 'ask', call, ask: { day, seen: leaseCounts(draft, day), need, want, capMicroUsd: draft.capMicroUsd } });
}

/** Nothing is reserved and nothing will be: the account is final. A late cost makes it final once more. */
function closeDays(draft: Draft, today: Day): void {
  for (const day of daysOf(draft)) {
    const row = rowOf(draft, day);
    const total = settledOn(draft, day);
    if (row.phase !== 'open') {
      if (row.closedMicroUsd !== total) close(draft, day);
      continue;
    }
    const isOver = draft.ledger.ended || day < today;
    const isNeeded = (draft.ledger.days.get(day)?.reservedMicroUsd ?? 0) > 0 || draft.promised.some((ticket) => ticket.day === day);
    if (isOver && !isNeeded && (draft.rows.has(day) || total > 0)) close(draft, day);
  }
}

function close(draft: Draft, day: Day): void {
  const { s, v } = leaseCounts(draft, day);
  put(draft, { ...rowOf(draft, day), phase: 'closing', closedMicroUsd: s + v });
  draft.outputs.push({ kind: 'close', close: { day, s, v } });
}

function tell(draft: Draft, day: Day): void {
  if (!isUntold(draft, day)) return;
  const { r, s, v } = leaseCounts(draft, day);
  // What was to be said of the day earlier in the step is part of it.
  const earlier = draft.outputs.findIndex((output) => output.kind === 'freed' && output.freed.day === day);
  if (earlier >= 0) draft.outputs.splice(earlier, 1);
  draft.outputs.push({ kind: 'freed', freed: { day, r, s, v } });
}

/** Whether the parent may know less of a day than there is to know; a day on which nothing happened is none. */
function isUntold(lease: LeaseState, day: Day): boolean {
  const { r, s, v } = leaseCounts(lease, day);
  const heard = lease.heard.get(day);
  return heard?.r !== r || heard.s !== s || heard.v !== v;
}

function mergeGrant(draft: Draft, day: Day, g: number): void {
  const row = rowOf(draft, day);
  if (g <= row.g || row.phase !== 'open') return;
  put(draft, { ...row, g });
  draft.watched = false;
}

function giveBack(draft: Draft, day: Day, max = Number.POSITIVE_INFINITY): number {
  const amount = Math.min(freeOn(draft, day), max);
  if (amount <= 0) return 0;
  const row = rowOf(draft, day);
  put(draft, { ...row, r: row.r + amount });
  return amount;
}

function fail(draft: Draft, which: (ticket: Ticket) => boolean, output: (ticket: string) => LeaseOutput): void {
  const failed = draft.line.filter(which);
  draft.line = draft.line.filter((ticket) => !which(ticket));
  for (const ticket of failed) draft.outputs.push(output(ticket.id));
}

function failBusy(draft: Draft): void {
  fail(
    draft,
    () => true,
    (ticket) => ({ kind: 'busy', ticket }),
  );
}

function put(draft: Draft, row: LeaseRow): void {
  draft.rows = new Map(draft.rows).set(row.day, row);
  draft.changes.set(row.day, row);
}
