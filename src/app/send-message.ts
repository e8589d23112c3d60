/**
 * What a message does (design section 11): it starts a plan, answers one that waits, or gives one at work guidance. One place decides
 * it for every binding, version, blocking or streamed.
 */
import { EXTENSION_URI, readApprovalAnswers, readStartPlan } from '../a2a/extension.ts';
import { isInterrupted, type Message, type SendRequest } from '../a2a/model.ts';
import { parsePlainDecision } from '../a2a/plain-decision.ts';
import { validateArguments } from '../core/action.ts';
import type { JsonObject, JsonValue } from '../core/json.ts';
import { isPlanId } from '../core/plan/plan-id.ts';
import type { PlanSnapshot } from '../core/plan/snapshot.ts';
import { taskStateOf } from '../core/plan/task-state.ts';
import { hasRole } from '../core/principal.ts';
import type { Refusal } from '../core/refusal.ts';
import { invalidField, invalidState, notFound, withFieldPrefix } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';
import { approvingCaller } from './caller.ts';
import { findAction } from './examine-plan.ts';
import type { CallContext } from './handler.ts';
import type { OutsideCommand } from './ports.ts';
import type { Services } from './services.ts';
import { startPlan } from './start-plan.ts';
import { contentOf } from './task-view.ts';

/** Where the message went: to a plan (made or existing), or it was answered without one. */
export type Sent =
  /** `beforeSeq`: the row of the plan's log before the message; 0 for a plan that it made. */
  | { readonly kind: 'plan'; readonly snapshot: PlanSnapshot; readonly beforeSeq: number }
  | { readonly kind: 'reply'; readonly message: Message };

const SESSION_ID = /^[A-Za-z0-9._:-]{1,128}$/;
const PLAN_CONTEXT = 'task_';

/** Plans of one context that are looked at for a waiting one. */
const CONTEXT_PLANS = 20;

export async function sendMessage(request: SendRequest, call: CallContext, services: Services): Promise<Result<Sent, Refusal>> {
  const sent = await receive(request, call, services);
  return sent.ok ? sent : err(namingField(sent.error, request.message));
}

async function receive(request: SendRequest, call: CallContext, services: Services): Promise<Result<Sent, Refusal>> {
  const { message } = request;
  const start = readStartPlan(message);
  if (!start.ok) return start;
  const answers = readApprovalAnswers(message);
  if (!answers.ok) return answers;
  const target = await findTarget(
    message,
    answers.value.map((answer) => answer.approval_id),
    start.value !== null,
    call,
    services,
  );
  if (!target.ok) return target;
  if (target.value !== null) return toPlan(target.value, request, call, services);
  return toNewPlan(request, start.value, call, services);
}

/** A2A knows unknown tasks only. An unknown project or approval is a wrong value of the message, and the refusal says where it stands. */
function namingField(refusal: Refusal, message: Message): Refusal {
  if (refusal.kind !== 'not_found') return refusal;
  const { entity, id, details } = refusal;
  if (entity === 'project') {
    const start = readStartPlan(message);
    const isNamed = start.ok && start.value?.project === id;
    return isNamed
      ? invalidField(`message.metadata.${EXTENSION_URI}.project`, `no project is named '${id}'`, details)
      : invalidField(`message.metadata.${EXTENSION_URI}.action`, `its project '${id}' does not exist`, details);
  }
  if (entity === 'approval') {
    const index = message.parts.findIndex((part) => part.kind === 'data' && approvalIdIn(part.data) === id);
    return invalidField(`message.parts.${index}.data.approval_id`, `no approval has the id '${id}'`, details);
  }
  return refusal;
}

function approvalIdIn(data: JsonValue): JsonValue | undefined {
  return typeof data === 'object' && data !== null && !Array.isArray(data) ? (data as JsonObject)['approval_id'] : undefined;
}

/** The plan that the message is for, or null when it starts one. */
async function findTarget(
  message: Message,
  approvalIds: readonly string[],
  starts: boolean,
  call: CallContext,
  services: Services,
): Promise<Result<PlanSnapshot | null, Refusal>> {
  const { taskId, contextId } = message;
  const named = taskId ?? (contextId?.startsWith(PLAN_CONTEXT) === true ? contextId.slice(PLAN_CONTEXT.length) : undefined);
  if (named !== undefined) {
    if (starts) return err(invalidField('message.taskId', 'a message that starts a plan cannot name a task; leave taskId out'));
    const snapshot = isPlanId(named) ? await services.plans.plan(call.principal.org, named).read() : null;
    if (snapshot === null) return err(notFound('task', named));
    const isOwn = contextId === undefined || contextId === snapshot.plan.sessionId || contextId === `${PLAN_CONTEXT}${snapshot.plan.id}`;
    return isOwn ? ok(snapshot) : err(invalidField('message.contextId', `task ${named} belongs to another context`));
  }
  if (contextId !== undefined && !SESSION_ID.test(contextId)) {
    return err(invalidField('message.contextId', 'must be 1 to 128 characters of A-Z a-z 0-9 . _ : -'));
  }
  if (starts) return ok(null);
  const byApproval = approvalIds[0]?.split('.')[0];
  if (byApproval !== undefined) {
    const snapshot = isPlanId(byApproval) ? await services.plans.plan(call.principal.org, byApproval).read() : null;
    if (snapshot === null) return err(notFound('approval', approvalIds[0] ?? ''));
    return contextId === undefined || contextId === snapshot.plan.sessionId
      ? ok(snapshot)
      : err(invalidField('message.contextId', 'the approval belongs to a task of another context'));
  }
  if (contextId === undefined) return ok(null);
  // Its live plans go on and are answered by task; into the conversation itself nothing more is said.
  const session = await services.sessions.get(call.principal.org, contextId);
  if (session?.status === 'closed')
    return err(invalidState('the session is closed; name a task, or use another contextId', { session_id: contextId }));
  return findWaiting(contextId, call, services);
}

/** The one plan that waits in a context. With several, nothing is guessed and nothing is started: the sender has to say which. */
async function findWaiting(contextId: string, call: CallContext, services: Services): Promise<Result<PlanSnapshot | null, Refusal>> {
  const { org } = call.principal;
  // The index may lag behind by one write, so plans it calls working are asked themselves.
  const [page, known] = await Promise.all([
    services.planIndex.list({ org, sessionId: contextId, pageSize: CONTEXT_PLANS }),
    services.planIndex.listWaiting(org, contextId, CONTEXT_PLANS),
  ]);
  if (!page.ok) return page;
  const atWork = page.value.rows.filter((row) => row.taskState === 'submitted' || row.taskState === 'working');
  const live = new Set([...known, ...atWork].map((row) => row.planId));
  const snapshots = await Promise.all([...live].map((planId) => services.plans.plan(org, planId).read()));
  const waiting = snapshots.filter((snapshot): snapshot is PlanSnapshot => snapshot !== null && isInterrupted(taskStateOf(snapshot.plan)));
  const [only, second] = waiting;
  if (second === undefined) return ok(only ?? null);
  const pending = waiting.map(({ plan }) => ({
    task_id: plan.id,
    approval_ids: plan.approvals.filter((each) => each.status === 'pending').map((each) => each.id),
  }));
  const names = pending.map((each) => `${each.task_id} (${each.approval_ids.join(', ')})`).join('; ');
  return err(invalidField('message.taskId', `several tasks wait in this context; name one: ${names}`, { waiting: pending }));
}

async function toPlan(snapshot: PlanSnapshot, request: SendRequest, call: CallContext, services: Services): Promise<Result<Sent, Refusal>> {
  const { message } = request;
  const answers = readApprovalAnswers(message);
  if (!answers.ok) return answers;
  const text = textOfMessage(message);
  // Words decide only when they are all there is: with a file or data beside them the message says more than its text. Beside a
  // structured answer they are read to see whether the two agree.
  const isWordsAlone = message.parts.every((part) => part.kind === 'text');
  const plain = isWordsAlone || answers.value.length > 0 ? parsePlainDecision(text) : null;
  // Any text may be an answer: a plan that asks for the next step takes it as guidance, from somebody who may decide.
  const caller = await approvingCaller(call.principal, services);
  if (!caller.ok) return caller;
  const command: OutsideCommand = {
    type: 'message',
    by: caller.value,
    messageId: message.messageId,
    parts: contentOf(message.parts),
    metadata: metadataOfMessage(message),
    text,
    plain: plain === null ? null : { decision: plain.decision, phase: plain.phase ?? null },
    answers: answers.value.map((answer) => ({
      approvalId: answer.approval_id,
      decision: answer.decision,
      digest: answer.digest,
      reason: answer.reason ?? null,
      text: answer.text ?? null,
      grant: withoutAbsent(answer.grant),
    })),
  };
  const taken = await services.plans.plan(call.principal.org, snapshot.plan.id).command(command);
  if (taken === null) return err(notFound('task', snapshot.plan.id));
  return taken.ok ? ok({ kind: 'plan', snapshot: taken.value, beforeSeq: snapshot.plan.seq }) : taken;
}

async function toNewPlan(
  request: SendRequest,
  start: {
    readonly action: string;
    readonly arguments?: JsonObject | undefined;
    readonly project?: string | undefined;
    readonly automation_profile?: string | undefined;
    readonly guardrails?: JsonObject | undefined;
    readonly idempotency_key?: string | undefined;
  } | null,
  call: CallContext,
  services: Services,
): Promise<Result<Sent, Refusal>> {
  const { message } = request;
  if (!hasRole(call.principal.roles, 'operator')) return err(needsOperator('starting a plan'));
  const fallback = start === null ? await services.config.get(call.principal.org, 'org', 'core.default-action') : null;
  const actionName = start?.action ?? (typeof fallback === 'string' ? fallback : null);
  if (actionName === null) {
    return err(
      invalidField(`message.metadata.${EXTENSION_URI}.action`, 'names no action, and the org has no core.default-action; name an action'),
    );
  }
  const action = await findAction(actionName, call.principal, services);
  if (!action.ok)
    return err(invalidField(`message.metadata.${EXTENSION_URI}.action`, `no action is named '${actionName}'`, { action_name: actionName }));
  const text = textOfMessage(message);
  const args = validateArguments(action.value, start?.arguments);
  if (!args.ok) return err(withFieldPrefix(args.error, `message.metadata.${EXTENSION_URI}.`));
  const reply = services.actors.immediateReply(action.value, args.value, { text, messageId: message.messageId });
  if (reply !== null) {
    const contextId = message.contextId ?? services.ids.ulid();
    return ok({
      kind: 'reply',
      message: { messageId: services.ids.ulid(), role: 'agent', parts: [{ kind: 'text', text: reply }], contextId },
    });
  }
  const key = start?.idempotency_key ?? call.idempotencyKey;
  const parts = contentOf(message.parts);
  const metadata = metadataOfMessage(message);
  const started = await startPlan(
    {
      actionName,
      arguments: start?.arguments,
      project: start?.project,
      automationProfile: start?.automation_profile,
      guardrails: start?.guardrails,
      sessionId: message.contextId,
      input: text,
      message: { messageId: message.messageId, role: 'user', parts, ...(metadata === null ? {} : { metadata }) },
      idempotency: key === null ? null : { key, body: { operation: 'send', parts, metadata, context: message.contextId ?? null } },
      ifForbidden: 'plan',
      fieldPrefix: `message.metadata.${EXTENSION_URI}.`,
    },
    call.principal,
    services,
  );
  return started.ok ? ok({ kind: 'plan', snapshot: started.value, beforeSeq: 0 }) : started;
}

/** A key that only approves may answer what is pending, and no more. */
function needsOperator(what: string): Refusal {
  return { kind: 'forbidden', message: `${what} needs the role operator`, details: { needed_role: 'operator' } };
}

function textOfMessage(message: Message): string {
  return message.parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('\n');
}

function metadataOfMessage(message: Message): JsonObject | null {
  return message.metadata ?? null;
}

function withoutAbsent<T extends object>(value: T | undefined): { readonly [K in keyof T]?: Exclude<T[K], undefined> } | null {
  return value === undefined
    ? null
    : (JSON.parse(JSON.stringify(value)) as { readonly [K in keyof T]?: Exclude<T[K], undefined> } & JsonValue);
}
