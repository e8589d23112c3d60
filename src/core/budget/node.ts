import {
  chargeLate,
  daysOf,
  excessOf,
  isForgotten,
  isUnheard,
  mayCover,
  mergeReport,
  NOBODY,
  recallExcess,
  reportOverdraft,
} from './node-accounts.ts';
import {
  addSpent,
  beginDraft,
  closeLease,
  type Draft,
  dropAccount,
  dropLease,
  finishDraft,
  giveBack,
  isDry,
  leaseOf,
  mergeLease,
  type NodeStep,
  pushFreed,
  putCaps,
  putClosed,
  putLease,
  withEntry,
} from './node-draft.ts';
import { advance, answeredAbove, dismiss, EVERYTHING, recallHolders } from './node-queue.ts';
import { accountKey, type Caps, chargedOn, type Job, leaseFree, type NodeState } from './node-state.ts';
import {
  type Ask,
  type AskAnswer,
  type Close,
  DRY_MS,
  type Freed,
  PATIENCE_MS,
  REPEAT_MS,
  type Recall,
  type RecallReply,
  TELL_MS,
} from './protocol.ts';
import { CAP_WINDOWS, type Day, dayOf, windowEndMs } from './window.ts';

/**
 * A budget node, session, org or profile: the parent's side of leases, and for a session its own lease towards the org (design section 10).
 *
 * Promise: Σ outstanding + closed spending ≤ min(every cap, own lease) after every grant; caps lowered later only stop grants and
 * recall. Each transition is pure: state and message in; out come the next state, rows to commit, and what to send after that.
 * Nothing is held across a call: a reply is one more message, and what follows is decided from the state of that moment.
 *
 * The caller must report the end of every `ask` and `recall` it is told to send, with `null` where the other side was not reached
 * within `TIMEOUT_MS`. Calls on the way die with the state they belong to: after a crash their replies are dropped.
 */

/** A child asks for money. `call` names the child's waiting call; it is answered by an `answer` output of this or a later step. */
export function receiveAsk(
  state: NodeState,
  message: { readonly call: string; readonly child: string; readonly ask: Ask },
  nowMs: number,
): NodeStep {
  const draft = beginDraft(state, nowMs);
  const { call, child, ask } = message;
  const { day, seen } = ask;
  const key = accountKey(child, day);
  const answer = (given: AskAnswer): NodeStep => {
    draft.outputs.push({ kind: 'answer', call, child, answer: given });
    return settle(draft);
  };
  const granted = draft.accounts.get(key)?.g ?? 0;
  if (draft.closed.has(key) || seen.g > granted || isForgotten(day, nowMs)) return answer({ kind: 'closed', day });
  mergeReport(draft, child, day, seen);
  // A day that this node has closed with its parent has no money any more; the child's clock will follow.
  if (leaseOf(draft, day).phase !== 'open') return answer({ kind: 'busy', day });
  if (seen.g < granted) return answer({ kind: 'granted', day, g: granted });
  enqueue(draft, call, child, ask);
  return settle(draft);
}

/** The parent wants back what is unused. Answered by a `recall_reply` of this or a later step. */
export function receiveRecall(state: NodeState, message: { readonly call: string; readonly recall: Recall }, nowMs: number): NodeStep {
  const draft = beginDraft(state, nowMs);
  const { call, recall } = message;
  const { day, max } = recall;
  if (draft.jobs.some((job) => job.call === call)) return finishDraft(draft);
  const lease = leaseOf(draft, day);
  if (lease.phase !== 'open') {
    // Nothing of a closed account will ever be used, whatever was granted meanwhile.
    const { s, v } = chargedOn(draft, day);
    draft.outputs.push({ kind: 'recall_reply', call, reply: { day, r: Math.max(lease.r, recall.g - s), s, v, left: 0 } });
    return finishDraft(draft);
  }
  mergeLease(draft, day, recall.g);
  advance(draft);
  const returnedBefore = leaseOf(draft, day).r;
  const given = giveBack(draft, day, max);
  const pending =
    given >= max
      ? 0
      : recallHolders(
          draft,
          max - given,
          (account, key) => account.day === day && (recall.aside === true || !isDry(draft, key, nowMs)),
          call,
          recall.aside === true,
        );
  draft.jobs = [...draft.jobs, { kind: 'recall', call, day, max, returnedBefore, pending, startedMs: nowMs }];
  return settle(draft);
}

/** How a recall ended that this node was told to send: the reply, or null where the child was not reached. */
export function recallEnded(state: NodeState, call: number, reply: RecallReply | null, nowMs: number): NodeStep {
  const draft = beginDraft(state, nowMs);
  const open = draft.calls.get(call);
  if (open === undefined) return finishDraft(draft);
  draft.calls = withEntry(draft.calls, call, null);
  const child = open.key.slice(open.key.indexOf(' ') + 1);
  if (reply !== null) {
    mergeReport(draft, child, reply.day, reply);
    // The reply speaks of what was granted when it was asked for; a grant since then may be unused.
    if (reply.left === 0 && draft.accounts.get(open.key)?.g === open.g) draft.dry = withEntry(draft.dry, open.key, nowMs + DRY_MS);
  }
  const isBlocked = reply === null || (reply.left > 0 && reply.r - open.returnedBefore < open.max);
  if (open.job === null && draft.service !== null) {
    draft.service = { ...draft.service, pending: draft.service.pending - 1, blocked: draft.service.blocked || isBlocked };
  } else {
    draft.jobs = draft.jobs.map((job) => (job.call === open.job ? withReply(job, child, isBlocked) : job));
  }
  return settle(draft);
}

/** How an ask ended that this node was told to send: the answer, or null where the parent was not reached. */
export function askEnded(state: NodeState, call: number, answer: AskAnswer | null, nowMs: number): NodeStep {
  const draft = beginDraft(state, nowMs);
  answeredAbove(draft, call, answer);
  return settle(draft);
}

/** A child has returned something, or has overdrawn. Acknowledge it once the changes are committed. */
export function receiveFreed(state: NodeState, message: { readonly child: string; readonly freed: Freed }, nowMs: number): NodeStep {
  const draft = beginDraft(state, nowMs);
  mergeReport(draft, message.child, message.freed.day, message.freed);
  return settle(draft);
}

/** A child will use nothing more of a day. Acknowledge it once the changes are committed; it comes again until then. */
export function receiveClose(state: NodeState, message: { readonly child: string; readonly close: Close }, nowMs: number): NodeStep {
  const draft = beginDraft(state, nowMs);
  const { child, close } = message;
  const { day, s, v } = close;
  const key = accountKey(child, day);
  const account = draft.accounts.get(key);
  const closed = draft.closed.get(key);
  if (closed !== undefined) chargeLate(draft, key, closed, s + v);
  else if (account !== undefined || !isForgotten(day, nowMs)) {
    const spent = { s: Math.max(account?.s ?? 0, s), v: Math.max(account?.v ?? 0, v) };
    if (account !== undefined) dropAccount(draft, key);
    if (spent.s + spent.v > 0) addSpent(draft, day, spent);
    putClosed(draft, key, { child, day, ...spent });
    draft.motion += 1;
    if (spent.v > (account?.v ?? 0)) reportOverdraft(draft, day);
  }
  for (const entry of draft.queue) if (entry.child === child && entry.day === day) dismiss(draft, entry, { kind: 'closed', day });
  return settle(draft);
}

/**
 * Sets the caps. Raising serves whoever waits. Lowering stops grants and recalls what is unused, and takes back nothing that is
 * reserved; `caps_set` follows when every holder has answered or was not reached.
 */
export function setCaps(state: NodeState, message: { readonly call: string; readonly caps: Caps }, nowMs: number): NodeStep {
  const draft = beginDraft(state, nowMs);
  const { call, caps } = message;
  putCaps(draft, caps);
  draft.motion += 1;
  advance(draft);
  const pending = recallExcess(draft, dayOf(nowMs), call);
  draft.jobs = [...draft.jobs, { kind: 'caps', call, pending, startedMs: nowMs, unreached: [] }];
  return settle(draft);
}

/** The parent has acknowledged `close`. */
export function closeAcknowledged(state: NodeState, close: Close, nowMs: number): NodeStep {
  const draft = beginDraft(state, nowMs);
  const lease = draft.leases.get(close.day);
  if (lease?.phase === 'closing' && lease.closedMicroUsd === close.s + close.v) putLease(draft, { ...lease, phase: 'closed' });
  return finishDraft(draft);
}

/** The parent has acknowledged `freed`. */
export function freedAcknowledged(state: NodeState, freed: Freed, nowMs: number): NodeStep {
  const draft = beginDraft(state, nowMs);
  const { day, r, s, v } = freed;
  const before = draft.heard.get(day) ?? { r: 0, s: 0, v: 0 };
  draft.heard = withEntry(draft.heard, day, { day, r: Math.max(r, before.r), s: Math.max(s, before.s), v: Math.max(v, before.v) });
  return finishDraft(draft);
}

/** Time has passed: days that are over are returned and closed; what the parent must hear and may not have heard is sent again; old marks are dropped. */
export function sweepNode(state: NodeState, nowMs: number): NodeStep {
  const draft = beginDraft(state, nowMs);
  for (const day of daysOf(draft)) {
    const { phase } = leaseOf(draft, day);
    if (phase === 'closing') draft.outputs.push({ kind: 'close', close: { day, ...chargedOn(draft, day) } });
    else if (phase === 'closed' && isForgotten(day, nowMs)) dropLease(draft, day);
    else if (phase === 'open' && isOwed(draft, day)) pushFreed(draft, day);
  }
  // A holder that never learned of a grant cannot return it: on a day that is over it is asked, which makes it close.
  const today = dayOf(nowMs);
  recallHolders(draft, EVERYTHING, (account) => account.day < today, NOBODY);
  recallExcess(draft, today, NOBODY);
  for (const [key, { day }] of draft.closed) if (isForgotten(day, nowMs)) putClosed(draft, key, null);
  return settle(draft);
}

/** Nothing was said, but whoever has waited for `PATIENCE_MS` gets his answer: for the host's timer while asks wait. */
export function patienceEnded(state: NodeState, nowMs: number): NodeStep {
  return settle(beginDraft(state, nowMs));
}

/** When the first ask that waits will have waited for too long; null while none waits. */
export function patienceEndsMs(state: NodeState): number | null {
  if (state.queue.length === 0) return null;
  return Math.min(...state.queue.map((entry) => entry.sinceMs)) + PATIENCE_MS[state.level];
}

/** When `sweepNode` is due, for the host's alarm; null while nothing depends on time. */
export function nextSweepMs(state: NodeState, nowMs: number): number | null {
  const isOwing = daysOf(state).some((day) => {
    const { phase } = leaseOf(state, day);
    return phase === 'closing' || (phase === 'open' && isOwed(state, day));
  });
  const today = dayOf(nowMs);
  const isUncovered = CAP_WINDOWS.some(
    (kind) => excessOf(state, kind, today) > 0 && [...state.accounts].some(([key, account]) => mayCover(state, key, account, kind, today)),
  );
  const isInUse = state.accounts.size > 0 || [...state.leases.values()].some(({ phase }) => phase === 'open');
  const due = [isOwing || isUncovered ? nowMs + REPEAT_MS : null, isInUse ? windowEndMs('daily', nowMs) : null];
  const tells = state.level === 'session' ? tellsAtMs(state, today) : Number.POSITIVE_INFINITY;
  const atMs = Math.min(tells, ...due.filter((at) => at !== null));
  return Number.isFinite(atMs) ? Math.max(atMs, nowMs) : null;
}

/* ---------------------------------------------------------------- inside */

/** What follows from any change: watched money goes up, the queue and the jobs go on, what nobody needs goes home. */
function settle(draft: Draft): NodeStep {
  if (draft.watched) returnAll(draft, () => true);
  advance(draft);
  finishJobs(draft);
  if (draft.level === 'session') rest(draft);
  return finishDraft(draft);
}

/** One entry per child: a later ask replaces the earlier in its place. */
function enqueue(draft: Draft, call: string, child: string, { day, need, want, capMicroUsd }: Ask): void {
  const earlier = draft.queue.find((entry) => entry.child === child);
  const entry = { call, child, day, need, want, capMicroUsd, sinceMs: earlier?.sinceMs ?? draft.nowMs };
  if (earlier === undefined) {
    draft.queue = [...draft.queue, entry];
    return;
  }
  draft.queue = draft.queue.map((each) => (each === earlier ? entry : each));
  if (earlier.call !== call) draft.outputs.push({ kind: 'answer', call: earlier.call, child, answer: { kind: 'busy', day: earlier.day } });
}

function withReply(job: Job, child: string, isBlocked: boolean): Job {
  const pending = job.pending - 1;
  if (job.kind === 'recall') return { ...job, pending };
  return { ...job, pending, unreached: isBlocked && !job.unreached.includes(child) ? [...job.unreached, child] : job.unreached };
}

function finishJobs(draft: Draft): void {
  for (const job of draft.jobs) {
    if (job.kind === 'caps') {
      if (job.pending > 0) continue;
      draft.outputs.push({ kind: 'caps_set', call: job.call, unreached: job.unreached });
    } else {
      giveBack(draft, job.day, job.max - (leaseOf(draft, job.day).r - job.returnedBefore));
      const { r } = leaseOf(draft, job.day);
      if (job.pending > 0 && r - job.returnedBefore < job.max) continue;
      const left = unusedAtMost(draft, job.day, job.startedMs);
      if (left === 0) draft.watched = true;
      draft.outputs.push({ kind: 'recall_reply', call: job.call, reply: { day: job.day, r, ...chargedOn(draft, job.day), left } });
    }
    draft.jobs = draft.jobs.filter((each) => each !== job);
  }
}

/** What may be unused here and below: 0 only if everybody who holds anything is known to have nothing left. */
function unusedAtMost(draft: Draft, day: Day, sinceMs: number): number {
  let sum = Math.max(0, leaseFree(draft, day));
  for (const [key, account] of draft.accounts) {
    if (account.day === day && !isDry(draft, key, sinceMs)) sum += Math.max(0, account.g - account.r - account.s);
  }
  return sum;
}

/** A session keeps money only while somebody below uses it or waits for it, and only for today; a day that is over is closed. */
function rest(draft: Draft): void {
  const today = dayOf(draft.nowMs);
  const isWaitedFor = (day: Day): boolean => draft.queue.some((entry) => entry.day === day);
  const isHeld = [...draft.accounts.values()].some((account) => account.g - account.r > account.s);
  if (draft.queue.length === 0 && !isHeld) {
    returnAll(draft, () => true);
    // So that the org shows what was spent, and not only what was leased.
    if (isUntold(draft, today)) pushFreed(draft, today);
  } else {
    returnAll(draft, (day) => day < today && !isWaitedFor(day));
    // A call may be held for hours; what others have charged meanwhile is not kept back for it.
    if (draft.nowMs >= tellsAtMs(draft, today)) pushFreed(draft, today);
  }
  const openDays = new Set([...draft.accounts.values()].map((account) => account.day));
  for (const day of daysOf(draft)) {
    if (day >= today || openDays.has(day) || isWaitedFor(day) || isForgotten(day, draft.nowMs)) continue;
    if (leaseOf(draft, day).phase === 'open') closeLease(draft, day);
  }
}

/** Whether a message about a day may have been lost: until it is told again, the parent counts as leased what was returned or charged. */
function isOwed(state: NodeState, day: Day): boolean {
  return isUnheard(state, day) || isUntold(state, day) || leaseOf(state, day).r > (state.heard.get(day)?.r ?? 0);
}

/** Whether the parent may know less of the charges of a day than there is to know. */
function isUntold(state: NodeState, day: Day): boolean {
  return chargedOn(state, day).s > (state.heard.get(day)?.s ?? 0);
}

/** When a session that is at work tells what was charged on a day since it told last; never, where there is nothing new. */
function tellsAtMs(state: NodeState, day: Day): number {
  const { told } = state;
  const isNew = isUntold(state, day) && (told.day !== day || chargedOn(state, day).s > told.s);
  return isNew && leaseOf(state, day).phase === 'open' ? told.atMs + TELL_MS : Number.POSITIVE_INFINITY;
}

function returnAll(draft: Draft, wanted: (day: Day) => boolean): void {
  for (const day of draft.leases.keys()) if (wanted(day) && giveBack(draft, day) > 0) pushFreed(draft, day);
}
