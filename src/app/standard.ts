/** The standard A2A operations over plans: neutral in, neutral out; the codecs are at the edge. */
import { isTerminal, type ListTasksPage, type SendResult, type StreamEvent, type Task, type TaskState } from '../a2a/model.ts';
import type { OperationParams } from '../a2a/operations.ts';
import { isPlanId } from '../core/plan/plan-id.ts';
import type { PlanSnapshot } from '../core/plan/snapshot.ts';
import { taskStateOf } from '../core/plan/task-state.ts';
import type { Refusal } from '../core/refusal.ts';
import { invalidState, notFound } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';
import { type AcceptedModes, acceptedModes } from './accepted-modes.ts';
import { actorOf } from './caller.ts';
import type { CallContext } from './handler.ts';
import { keptChanges } from './kept-changes.ts';
import { LeftReader } from './left-above.ts';
import { StorageUnavailable } from './ports.ts';
import { checkInlinePush, registerInlinePush } from './push-configs.ts';
import { readListed } from './read-listed.ts';
import { type Sent, sendMessage } from './send-message.ts';
import type { Services } from './services.ts';
import { eventsOf, isSettled, statusEventOf, taskOf } from './task-view.ts';

export interface StandardContext extends CallContext {
  readonly version: '1.0' | '0.3';
  readonly extensionActivated: boolean;
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal;
}

export type StandardRequest = {
  [O in 'send' | 'get' | 'list' | 'cancel']: { readonly op: O; readonly params: OperationParams[O] };
}['send' | 'get' | 'list' | 'cancel'];

export type StreamRequest = { [O in 'stream' | 'subscribe']: { readonly op: O; readonly params: OperationParams[O] } }[
  | 'stream'
  | 'subscribe'];

/** One event of a stream with its place in the plan's log, by which a client resumes. */
export interface NumberedEvent {
  readonly id: number | null;
  readonly event: StreamEvent;
}

/** Longest time that a blocking send waits (design section 12). */
const BLOCKING_MS = 5 * 60_000;

/** Longest time that one stream stays open (design section 4, invariant 9). */
const STREAM_MS = 60 * 60_000;

export async function runStandard(
  request: StandardRequest,
  call: StandardContext,
  services: Services,
): Promise<Result<SendResult | Task | ListTasksPage, Refusal>> {
  switch (request.op) {
    case 'send':
      return send(request.params, call, services);
    case 'get': {
      const read = await readTask(request.params.id, call, services);
      if (!read.ok) return read;
      const looked = await lookedUp(read.value, services);
      return ok(taskOf(read.value, { historyLength: request.params.historyLength, includeArtifacts: true, ...looked }));
    }
    case 'list':
      return list(request.params, call, services);
    case 'cancel':
      return cancel(request.params, call, services);
  }
}

export async function runStream(
  request: StreamRequest,
  call: StandardContext,
  services: Services,
  lastEventId: number | null,
): Promise<Result<AsyncIterable<NumberedEvent>, Refusal>> {
  if (request.op === 'subscribe') return subscribe(request.params.id, call, services, lastEventId);
  const sent = await sendWithWebhook(request.params, call, services);
  if (!sent.ok) return sent;
  if (sent.value.kind === 'reply') return ok(once({ id: null, event: { kind: 'message', message: sent.value.message } }));
  return ok(accepting(acceptedModes(request.params, call.extensionActivated), streamPlan(sent.value.snapshot, call, services, endsStream)));
}

/** Where a stream ends: with the task, or where words are needed. While an approval is awaited elsewhere (auth-required) it stays open. */
const endsStream = (state: TaskState): boolean => isTerminal(state) || state === 'input-required';

/** A webhook that is refused refuses the message; one that is taken is told everything that the message brings about. */
async function sendWithWebhook(params: OperationParams['send'], call: StandardContext, services: Services): Promise<Result<Sent, Refusal>> {
  const checked = await checkInlinePush(params, call, services);
  if (!checked.ok) return checked;
  const sent = await sendMessage(params, call, services);
  if (!sent.ok || sent.value.kind === 'reply') return sent;
  const { snapshot, beforeSeq } = sent.value;
  const registered = await registerInlinePush(params, { id: snapshot.plan.id, afterSeq: beforeSeq }, call, services);
  return registered.ok ? sent : registered;
}

async function send(params: OperationParams['send'], call: StandardContext, services: Services): Promise<Result<SendResult, Refusal>> {
  const sent = await sendWithWebhook(params, call, services);
  if (!sent.ok) return sent;
  if (sent.value.kind === 'reply') return ok({ kind: 'message', message: sent.value.message });
  const { historyLength, returnImmediately } = params.configuration;
  const { plan } = sent.value.snapshot;
  if (!returnImmediately && !isSettled(taskStateOf(plan))) await settled(plan.id, call, services);
  const snapshot = (await services.plans.plan(call.principal.org, plan.id).read()) ?? sent.value.snapshot;
  const looked = await lookedUp(snapshot, services);
  const accepted = acceptedModes(params, call.extensionActivated);
  return ok({ kind: 'task', task: accepted.task(taskOf(snapshot, { historyLength, includeArtifacts: true, ...looked })) });
}

/** What a task shows that is not in its plan's state. A task is shown without what cannot be looked up now: plan/artifacts says that. */
async function lookedUp(snapshot: PlanSnapshot, services: Services) {
  const { org, id } = snapshot.plan;
  const kept = keptChanges(snapshot, services.plans.plan(org, id)).catch((cause: unknown) => {
    if (cause instanceof StorageUnavailable) return null;
    throw cause;
  });
  const [above, changes] = await Promise.all([new LeftReader(services).of(snapshot.plan), kept]);
  return { above, kept: changes };
}

/** Returns when the plan is terminal or waits for somebody, when the client has gone, or after the longest wait. */
async function settled(planId: string, call: StandardContext, services: Services): Promise<void> {
  const feed = await services.plans.plan(call.principal.org, planId).follow({ afterSeq: null, signal: call.signal, maxMs: BLOCKING_MS });
  if (feed === null) return;
  for await (const item of feed) {
    const snapshot = item.kind === 'snapshot' ? item.snapshot : item.update.snapshot;
    if (isSettled(taskStateOf(snapshot.plan))) return;
  }
}

async function list(params: OperationParams['list'], call: StandardContext, services: Services): Promise<Result<ListTasksPage, Refusal>> {
  const { org } = call.principal;
  const page = await services.planIndex.list({
    org,
    pageSize: params.pageSize,
    ...(params.contextId === undefined ? {} : { sessionId: params.contextId }),
    ...(params.state === undefined ? {} : { taskState: params.state }),
    ...(params.statusTimestampAfter === undefined ? {} : { statusAtOrAfter: params.statusTimestampAfter }),
    ...(params.pageToken === undefined ? {} : { pageToken: params.pageToken }),
  });
  if (!page.ok) return page;
  const snapshots = await readListed(page.value.rows, services);
  const { historyLength, includeArtifacts } = params;
  const left = new LeftReader(services);
  const tasks = await Promise.all(
    snapshots.map(async (snapshot) => taskOf(snapshot, { historyLength, includeArtifacts, above: await left.of(snapshot.plan) })),
  );
  return ok({ tasks, nextPageToken: page.value.nextPageToken, pageSize: params.pageSize, totalSize: page.value.totalSize });
}

async function cancel(params: OperationParams['cancel'], call: StandardContext, services: Services): Promise<Result<Task, Refusal>> {
  const reason = params.metadata?.['reason'];
  if (!isPlanId(params.id)) return err(notFound('task', params.id));
  const result = await services.plans
    .plan(call.principal.org, params.id)
    .command({ type: 'cancel', by: actorOf(call.principal), reason: typeof reason === 'string' ? reason.slice(0, 2000) : null });
  if (result === null) return err(notFound('task', params.id));
  return result.ok ? ok(taskOf(result.value, { includeArtifacts: true })) : result;
}

async function subscribe(
  id: string,
  call: StandardContext,
  services: Services,
  lastEventId: number | null,
): Promise<Result<AsyncIterable<NumberedEvent>, Refusal>> {
  const read = await readTask(id, call, services);
  if (!read.ok) return read;
  const { plan } = read.value;
  if (plan.terminal && lastEventId === null) {
    if (call.version === '0.3')
      return ok(
        once({
          id: plan.seq,
          event: { kind: 'task', task: taskOf(read.value, { includeArtifacts: true, ...(await lookedUp(read.value, services)) }) },
        }),
      );
    return err(
      invalidState(`the task is ${plan.state}; there is nothing to subscribe to. Read it with GetTask.`, {
        reason: 'UNSUPPORTED_OPERATION',
        phase: plan.phase,
        state: plan.state,
      }),
    );
  }
  // 1.0 ends a subscription only with the task; 0.3 readers expect the end at input-required, told by `final`.
  const closes = call.version === '0.3' ? endsStream : isTerminal;
  return ok(followPlan(plan.id, call, services, closes, lastEventId));
}

async function readTask(id: string, call: StandardContext, services: Services): Promise<Result<PlanSnapshot, Refusal>> {
  const snapshot = isPlanId(id) ? await services.plans.plan(call.principal.org, id).read() : null;
  return snapshot === null ? err(notFound('task', id)) : ok(snapshot);
}

async function* accepting(modes: AcceptedModes, events: AsyncIterable<NumberedEvent>): AsyncGenerator<NumberedEvent> {
  for await (const { id, event } of events) yield { id, event: modes.event(event) };
}

async function* once(event: NumberedEvent): AsyncGenerator<NumberedEvent> {
  yield event;
}

/** A stream that a message began: the task first; if it already stands where streams end, its status says so and nothing is followed. */
async function* streamPlan(
  first: PlanSnapshot,
  call: StandardContext,
  services: Services,
  closes: (state: TaskState) => boolean,
): AsyncGenerator<NumberedEvent> {
  const left = new LeftReader(services);
  const above = await left.of(first.plan);
  yield { id: first.plan.seq, event: { kind: 'task', task: taskOf(first, { includeArtifacts: true, above }) } };
  if (closes(taskStateOf(first.plan))) {
    yield { id: first.plan.seq, event: statusEventOf(first, null, closes, above) };
    return;
  }
  yield* updates(first.plan.id, call, services, closes, first.plan.seq, left);
}

async function* followPlan(
  planId: string,
  call: StandardContext,
  services: Services,
  closes: (state: TaskState) => boolean,
  afterSeq: number | null,
): AsyncGenerator<NumberedEvent> {
  const left = new LeftReader(services);
  if (afterSeq !== null) {
    yield* updates(planId, call, services, closes, afterSeq, left);
    return;
  }
  const feed = await services.plans.plan(call.principal.org, planId).follow({ afterSeq: null, signal: call.signal, maxMs: STREAM_MS });
  for await (const item of feed ?? []) {
    if (item.kind === 'snapshot') {
      const { snapshot } = item;
      yield {
        id: snapshot.plan.seq,
        event: { kind: 'task', task: taskOf(snapshot, { includeArtifacts: true, above: await left.of(snapshot.plan) }) },
      };
      // It may have ended since it was looked at; the end is delivered all the same.
      if (snapshot.plan.terminal) yield { id: snapshot.plan.seq, event: statusEventOf(snapshot, null, closes) };
      continue;
    }
    const above = await left.of(item.update.snapshot.plan);
    for (const event of eventsOf(item.update, closes, above)) yield { id: item.update.seq, event };
    if (item.update.kind === 'status' && closes(taskStateOf(item.update.snapshot.plan))) return;
  }
}

async function* updates(
  planId: string,
  call: StandardContext,
  services: Services,
  closes: (state: TaskState) => boolean,
  afterSeq: number,
  left: LeftReader,
): AsyncGenerator<NumberedEvent> {
  const feed = await services.plans.plan(call.principal.org, planId).follow({ afterSeq, signal: call.signal, maxMs: STREAM_MS });
  for await (const item of feed ?? []) {
    if (item.kind !== 'update') continue;
    const above = await left.of(item.update.snapshot.plan);
    for (const event of eventsOf(item.update, closes, above)) yield { id: item.update.seq, event };
    if (item.update.kind === 'status' && closes(taskStateOf(item.update.snapshot.plan))) return;
  }
}
