import { type Draft, giveBack, isDry, leaseOf, mergeLease, pushFreed, putAccount, withEntry } from './node-draft.ts';
import {
  type Account,
  accountKey,
  chargedOn,
  leaseFree,
  type OpenRecall,
  type QueuedAsk,
  type Service,
  tightestCap,
  usedIn,
} from './node-state.ts';
import { type AskAnswer, type BudgetRefusal, PATIENCE_MS } from './protocol.ts';

/**
 * The queue of asks of a node and how its head is served (design section 10, rule 3).
 *
 * Promise: first come, first served, and nobody overtakes. Each step decides from the state of that moment: grant if the money is
 * here; otherwise ask upward if only the lease is short; otherwise recall from every holder that may have something, in parallel.
 * `refused` only after a round in which everybody was reached and nothing moved; in every other case of failure `busy`.
 */
export function advance(draft: Draft): void {
  expire(draft);
  for (let head = draft.queue[0]; head !== undefined; head = draft.queue[0]) {
    if (draft.service?.child !== head.child) draft.service = freshService(head.child, draft.motion);
    const room = roomFor(draft, head);
    if (head.need === 0 || Math.min(room.cap, room.lease) >= head.need) grant(draft, head, room);
    else if (!pursue(draft, head, room, draft.service)) return;
  }
  draft.service = null;
}

/** At most so many rounds for one ask. */
const MAX_ROUNDS = 5;

/** So many rounds in a row that moved nothing are the proof that there is nothing. */
const MAX_IDLE_ROUNDS = 2;

/**
 * The `max` of a recall for the queue. Taking only what the head lacks leaves leftovers everywhere, and the next ask recalls them all
 * again; taking everything once makes the next asks find it here.
 */
export const EVERYTHING = Number.MAX_SAFE_INTEGER;

/** What the head could be granted by the node's own caps and the one it brings, and by the node's own lease. */
interface Room {
  readonly cap: number;
  readonly lease: number;
  readonly refusal: BudgetRefusal | null;
}

function roomFor(draft: Draft, head: QueuedAsk): Room {
  const { day, capMicroUsd } = head;
  const lease = leaseFree(draft, day);
  const tightest = tightestCap(draft, day, capMicroUsd);
  const others = roomUnderOthers(draft, head);
  // Nothing that is refused: it comes free when they have returned what they do not use.
  if (others < (tightest?.room ?? Number.POSITIVE_INFINITY)) return { cap: others, lease, refusal: null };
  if (tightest === null) return { cap: Number.POSITIVE_INFINITY, lease, refusal: null };
  const { cap, room, kind } = tightest;
  return { cap: room, lease, refusal: { level: draft.level, capMicroUsd: cap, usedMicroUsd: cap - room, window: kind } };
}

/**
 * What can be granted before somebody could authorise above the cap that he brought: whoever may hold something unused was granted it
 * while the total was within his cap, and would use it when it no longer is. One that said it has nothing left will not use what it frees.
 */
function roomUnderOthers(draft: Draft, { child, day }: QueuedAsk): number {
  let cap = Number.POSITIVE_INFINITY;
  for (const [key, account] of draft.accounts) {
    if (account.capMicroUsd === null || account.child === child || account.g - account.r <= account.s || draft.dry.has(key)) continue;
    cap = Math.min(cap, account.capMicroUsd);
  }
  return Number.isFinite(cap) ? cap - usedIn(draft, 'total', day) : cap;
}

function grant(draft: Draft, head: QueuedAsk, room: Room): void {
  const amount = draft.queue.length === 1 ? Math.max(head.need, wantGranted(draft, head, room)) : head.need;
  const key = accountKey(head.child, head.day);
  const account: Account = draft.accounts.get(key) ?? { child: head.child, day: head.day, g: 0, r: 0, s: 0, v: 0, capMicroUsd: null };
  if (amount > 0) {
    putAccount(draft, { ...account, g: account.g + amount, capMicroUsd: head.capMicroUsd });
    draft.dry = withEntry(draft.dry, key, null);
  }
  answerHead(draft, { kind: 'granted', day: head.day, g: account.g + amount });
}

/**
 * What is granted ahead of need: no more than an even share of what is free. So the last of a budget is not spread over holders that
 * have to be recalled for every call; for 1,000 calls of 50 plans against a tight cap this saves two of three recalls.
 */
function wantGranted(draft: Draft, { want }: QueuedAsk, room: Room): number {
  const scarce = draft.isScarce ? Math.min(room.cap, room.lease) : room.cap;
  const share = Number.isFinite(scarce) ? Math.floor(scarce / (holderCount(draft) + 1)) : want;
  return Math.max(0, Math.min(want, share, room.lease));
}

/** Those that only tell what they charged share nothing. */
function holderCount({ accounts }: Draft): number {
  let count = 0;
  for (const { g } of accounts.values()) if (g > 0) count += 1;
  return count;
}

/** The next thing to do for a head that cannot be served now. False: wait for what was sent. */
function pursue(draft: Draft, head: QueuedAsk, room: Room, service: Service): boolean {
  if (service.pending > 0) return false;
  if (service.stage === 'up') {
    if (room.cap >= head.need && room.lease < head.need) {
      if (draft.asking === null) askAbove(draft, head, room, service);
      return false;
    }
    draft.service = { ...service, stage: 'recall' };
    return true;
  }
  if (service.stage === 'recall') {
    // Not from the asker, who has given back already; but what he returned of a day that is over may still be on its way.
    const own = accountKey(head.child, head.day);
    const pending = recallHolders(draft, EVERYTHING, (_account, key) => key !== own && !isDry(draft, key, draft.nowMs), null);
    draft.service = { ...service, stage: 'end', pending, called: service.called || pending > 0 };
    return pending === 0;
  }
  return endRound(draft, head, room, service);
}

function endRound(draft: Draft, head: QueuedAsk, room: Room, service: Service): true {
  const moved = draft.motion !== service.motion;
  const rounds = service.rounds + 1;
  const idle = moved ? 0 : service.idle + 1;
  // A round that neither called anybody nor moved anything would only repeat itself.
  if (idle >= MAX_IDLE_ROUNDS || rounds >= MAX_ROUNDS || (!moved && !service.called)) {
    const refusal = room.cap < head.need ? room.refusal : service.refusedAbove;
    const isProven = !moved && !service.blocked && refusal !== null;
    answerHead(draft, isProven ? { kind: 'refused', day: head.day, refusal } : { kind: 'busy', day: head.day });
    return true;
  }
  draft.service = { ...service, stage: 'up', rounds, idle, motion: draft.motion, called: false, blocked: false, refusedAbove: null };
  return true;
}

/** Rule 1, one level up: everything that is not handed out goes back first, so that no node hoards a part while it asks for the rest. */
function askAbove(draft: Draft, head: QueuedAsk, room: Room, service: Service): void {
  for (const day of draft.leases.keys()) if (giveBack(draft, day) > 0 && day !== head.day) pushFreed(draft, day);
  const { g, r } = leaseOf(draft, head.day);
  const behind = draft.queue.slice(1).reduce((sum, entry) => sum + (entry.day === head.day ? entry.need : 0), 0);
  const call = draft.nextCall;
  draft.nextCall += 1;
  const want = Math.max(head.need, Math.min(head.want + behind, room.cap));
  draft.asking = { call, child: head.child, day: head.day, headNeed: head.need, enough: g + want };
  draft.service = { ...service, called: true };
  draft.outputs.push({
    kind: 'ask',
    call,
    // A cap that the asker brings is one on this node's total, and means nothing above.
    ask: { day: head.day, seen: { g, r, ...chargedOn(draft, head.day) }, need: head.need, want, capMicroUsd: null },
  });
}

/** Recalls from every holder that may have unused money and is `wanted`, if `aside` also what it has put aside; answers how many were asked. */
export function recallHolders(
  draft: Draft,
  max: number,
  wanted: (account: Account, key: string) => boolean,
  job: string | null,
  aside = false,
): number {
  let sent = 0;
  for (const [key, account] of draft.accounts) {
    if (account.g - account.r <= account.s || !wanted(account, key)) continue;
    const call = draft.nextCall;
    draft.nextCall += 1;
    const open: OpenRecall = { key, g: account.g, max, returnedBefore: account.r, job };
    draft.calls = withEntry(draft.calls, call, open);
    draft.outputs.push({
      kind: 'recall',
      call,
      child: account.child,
      recall: { day: account.day, g: account.g, max, ...(aside ? { aside } : {}) },
    });
    sent += 1;
  }
  return sent;
}

/** The answer from above, or null where it was not reached. It may come after the head it was for has gone. */
export function answeredAbove(draft: Draft, call: number, answer: AskAnswer | null): void {
  if (answer?.kind === 'granted') mergeLease(draft, answer.day, answer.g);
  const { asking, service } = draft;
  if (asking?.call !== call) return;
  draft.asking = null;
  if (answer?.kind === 'granted') draft.isScarce = answer.g < asking.enough;
  // What was said of another head, another day or a larger need proves nothing for this one: it asks again.
  const head = draft.queue[0];
  if (service?.stage !== 'up' || head?.child !== asking.child || head.day !== asking.day || head.need < asking.headNeed) return;
  draft.service = {
    ...service,
    stage: 'recall',
    blocked: service.blocked || answer === null || answer.kind === 'busy' || answer.kind === 'closed',
    refusedAbove: answer?.kind === 'refused' ? answer.refusal : null,
  };
}

function expire(draft: Draft): void {
  const patience = PATIENCE_MS[draft.level];
  for (const entry of draft.queue) if (draft.nowMs - entry.sinceMs >= patience) dismiss(draft, entry, { kind: 'busy', day: entry.day });
}

/** Takes an ask out of the queue with an answer; if it was the head, what is on the way for it is on the way for nobody. */
export function dismiss(draft: Draft, entry: QueuedAsk, answer: AskAnswer): void {
  if (draft.queue[0] === entry) {
    answerHead(draft, answer);
    return;
  }
  draft.queue = draft.queue.filter((each) => each !== entry);
  draft.outputs.push({ kind: 'answer', call: entry.call, child: entry.child, answer });
}

function answerHead(draft: Draft, answer: AskAnswer): void {
  const [head, ...rest] = draft.queue;
  if (head === undefined) return;
  draft.queue = rest;
  endService(draft);
  draft.outputs.push({ kind: 'answer', call: head.call, child: head.child, answer });
}

/** Replies to the recalls of a service that ended are merged, but nobody waits for them. */
function endService(draft: Draft): void {
  draft.service = null;
  draft.calls = new Map([...draft.calls].map(([call, open]) => [call, open.job === null ? { ...open, job: '' } : open]));
}

function freshService(child: string, motion: number): Service {
  return { child, stage: 'up', pending: 0, rounds: 0, idle: 0, motion, called: false, blocked: false, refusedAbove: null };
}
