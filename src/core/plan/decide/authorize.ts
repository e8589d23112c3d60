/**
 * A call that an executor outside wants to make: the whole pipeline of guards, gate, reservation and approval in one commit (design
 * section 7). The answer is the decision; what it allows is performed elsewhere and settled here.
 */
import type { Confidence } from '../../confidence.ts';
import { digestOf } from '../../digest.ts';
import { allowlistGuard } from '../../guards/allowlist.ts';
import { denylistGuard } from '../../guards/denylist.ts';
import type { GuardRequest, GuardVerdict } from '../../guards/guard.ts';
import { evaluateWith } from '../../guards/guards.ts';
import { skillCategoryGuard } from '../../guards/skill-category.ts';
import { stateGuard } from '../../guards/state.ts';
import { unsafeToolsGuard } from '../../guards/unsafe-tools.ts';
import type { JsonValue } from '../../json.ts';
import { parseCostUsd } from '../../money.ts';
import { MAX_TOOL_NAME_LENGTH } from '../../names.ts';
import type { Refusal } from '../../refusal.ts';
import { invalidField, invalidState } from '../../refusal.ts';
import { err, ok, type Result } from '../../result.ts';
import { withArticle } from '../../schema-issues.ts';
import { type RiskClass, riskierOf, type ToolSpec } from '../../tool.ts';
import { type CallFacts, NO_FACTS } from '../commands.ts';
import type { AuthorizationAnswer, AuthorizeRequest, ExternalCommands } from '../external/commands.ts';
import { pendingAbout } from '../external/evolve.ts';
import {
  type ExternalCall,
  isHeld,
  isOpen,
  isTaintedOutside,
  MAX_OPEN_AUTHORIZATIONS,
  NO_EXTERNAL_STATE,
  openAuthorizations,
} from '../external/external.ts';
import { answerForgotten, noRoomForKey, settledAs } from '../external/keys.ts';
import type { ActorRef, Approval, Call, Plan } from '../plan.ts';
import type { Work } from '../work.ts';
import { decideCalls, factsOf } from './calls.ts';
import { callConfidence } from './confidence-of.ts';

export function authorize(
  work: Work,
  { by, request, facts = NO_FACTS }: ExternalCommands['authorize'],
): Result<AuthorizationAnswer, Refusal> {
  const plan = work.plan();
  const toolName = request.toolName;
  const nameIssue = issueOfName(toolName);
  if (nameIssue !== null || typeof toolName !== 'string') return refuseMalformed(work, by, request, nameIssue ?? 'must be text');
  const { firstStep } = plan.external ?? NO_EXTERNAL_STATE;
  const step = request.step ?? Math.max(1, plan.stepsUsed);
  if (step < firstStep)
    return err(invalidField('step', `step ${step} is over: calls are counted from step ${firstStep} on`, { plan_id: plan.id }));

  const call = makeExternalCall(work, { by, request, facts, toolName, step });
  const earlier =
    request.idempotencyKey === null
      ? undefined
      : Object.values(plan.calls).find((each) => each.external?.idempotencyKey === request.idempotencyKey);
  if (earlier !== undefined) {
    if (earlier.external?.bodyDigest !== call.external.bodyDigest) return err(usedOtherwise(plan, request.idempotencyKey ?? '', earlier));
    // The same request again: it gets what it got, unless a human has meanwhile decided, or could be asked again.
    if (!isHeld(earlier) || pendingAbout(plan, earlier) !== null) {
      return ok(refusedMeanwhile(work, by, earlier) ?? answerFor(plan, earlier, null));
    }
  }
  const { keyed } = work.context;
  if (earlier === undefined && request.idempotencyKey !== null && keyed !== undefined) {
    const forgotten = keyed.decided?.data.call;
    if (forgotten !== undefined && forgotten.external?.bodyDigest !== call.external.bodyDigest)
      return err(usedOtherwise(plan, request.idempotencyKey, forgotten));
    const answer = answerForgotten(keyed);
    if (answer !== null) return ok(answer);
    if (keyed.isFullUntilMs !== null) return err(noRoomForKey(plan, keyed.isFullUntilMs));
  }
  const again = earlier ?? heldTwin(plan, call);
  const isNew = again === undefined;
  if (isNew && openAuthorizations(plan).length >= MAX_OPEN_AUTHORIZATIONS) {
    return err(invalidState(`${MAX_OPEN_AUTHORIZATIONS} authorisations are open; settle some of them first`, { plan_id: plan.id }));
  }
  const before = work.rows.length;
  const decidedCall = isNew ? call : asAskedNow(plan, again, call, work.context.now);
  decideCalls(work, [decidedCall], null, new Map([[decidedCall.id, facts.issues]]));
  const decided = work.rows.slice(before).find((row) => row.type === 'call_decided');
  const after = work.plan();
  const settled = after.calls[isNew ? call.id : again.id];
  if (settled === undefined || decided?.type !== 'call_decided') return err(invalidState('nothing was decided', { plan_id: plan.id }));
  return ok(answerFor(after, settled, decided.data.guards));
}

/* ---------------------------------------------------------------- the answer */

/** `guards` null: an answer to an earlier request, whose row has them. */
function answerFor(plan: Plan, call: Call, guards: readonly GuardVerdict[] | null): AuthorizationAnswer {
  const { external } = call;
  const held = isHeld(call);
  // A decision that was used, or that has expired, is no permission any more, whoever asks for it again.
  const allowed = external?.expiresAt != null && isOpen(call);
  const approval = held ? pendingAbout(plan, call) : null;
  return {
    callId: call.id,
    allowed,
    reason: allowed ? null : (closedReason(call) ?? call.reason),
    requiresApproval: held,
    approvalId: approval?.id ?? null,
    expiresAt: allowed ? external.expiresAt : (approval?.expiresAt ?? null),
    decidedSeq: external?.decidedSeq ?? plan.seq,
    guards,
  };
}

/** Why what was allowed once is allowed no more, however it ended; null where it is open, or never was allowed. */
function closedReason({ external, status }: Call): string | null {
  if (external?.expiresAt == null || status === 'sent') return null;
  if (external.settled !== null) return settledAs(external.settled.outcome);
  return `This authorisation expired at ${external.expiresAt} and was charged. Remediation: use a new idempotency key for a new call.`;
}

/** What can have changed since a call was allowed: a halt, and revisions of the plan's lists. What it reserved is reserved still. */
const CHANGING_GUARDS = [stateGuard, denylistGuard, allowlistGuard, unsafeToolsGuard, skillCategoryGuard];

/** What was allowed before a halt or under other lists is not allowed now. Its reservation stays: once they let it pass, the same request has it again. */
function refusedMeanwhile(work: Work, by: ActorRef, call: Call): AuthorizationAnswer | null {
  const plan = work.plan();
  if (call.external?.expiresAt == null || !isOpen(call)) return null;
  const facts = { ...factsOf(plan, work.context.now, call.step), approvedGuards: new Map(Object.entries(call.overridden)) };
  const { verdicts } = evaluateWith(CHANGING_GUARDS, plan.policy, requestAbout(work, call), facts);
  const verdict = verdicts.find(({ allowed }) => !allowed);
  if (verdict === undefined) return null;
  work.emit('check_recorded', by, {
    check: 'authorize',
    event_type: verdict.eventType,
    guard: verdict.guard,
    allowed: false,
    reason: verdict.reason,
    context: { decision_id: `${plan.id}.${call.id}`, tool: call.tool, arguments_digest: call.argumentsDigest },
  });
  return { ...answerFor(plan, call, verdicts), allowed: false, reason: verdict.reason };
}

function requestAbout(work: Work, call: Call): GuardRequest {
  return {
    toolName: call.named,
    catalogue: work.context.catalogue,
    unknownTools: 'accept',
    riskClass: call.riskClass,
    costMicroUsd: call.estimateMicroUsd,
    skillCategory: null,
    operation: call.external?.operation ?? null,
    protectedPaths: call.protectedPaths,
    hosts: call.hosts ?? null,
    changesOutside: false,
  };
}

/* ---------------------------------------------------------------- the call */

interface Asked {
  readonly by: ActorRef;
  readonly request: AuthorizeRequest;
  readonly facts: CallFacts;
  readonly toolName: string;
  readonly step: number;
}

function makeExternalCall(work: Work, { by, request, facts, toolName, step }: Asked): Call & { readonly external: ExternalCall } {
  const plan = work.plan();
  const { sha256, catalogue } = work.context;
  const spec = catalogue.find(toolName)?.spec ?? null;
  const tool = spec?.name ?? toolName;
  const riskClass = classOf(spec, request.isWrite);
  const cost = request.costUsd === null ? null : parseCostUsd(request.costUsd);
  const declaredMicroUsd = cost?.ok === true ? cost.value : 0;
  // The caller pays and knows what: what it says counts, but never below the price of a tool that is known.
  const estimateMicroUsd = Math.max(spec?.priceMicroUsd ?? 0, declaredMicroUsd);
  const argumentsDigest = digestOf(sha256, request.arguments);
  const id = `c${plan.nextCall}`;
  const { operation } = request;
  const context = { ...plan, tainted: isTaintedOutside(plan) };
  const confidence: Confidence = callConfidence(context, riskClass, { tool, arguments: request.arguments }, facts);
  return {
    id,
    step,
    index: 0,
    tool,
    named: toolName,
    arguments: work.store(request.arguments),
    argumentsDigest,
    digest: digestOf(sha256, { tool, arguments: argumentsDigest, estimate: estimateMicroUsd, step, class: riskClass, operation }),
    riskClass,
    // A tool of the caller's own works in the caller's own place; whether that is a sandbox is for the caller to keep.
    scope: spec?.scope ?? 'workspace',
    idempotent: spec?.idempotent ?? false,
    estimateMicroUsd,
    confidence,
    status: 'asked',
    attempt: attemptOf(plan, tool, argumentsDigest, step),
    retryAt: null,
    protectedPaths: facts.protectedPaths,
    ...(facts.hosts === undefined ? {} : { hosts: facts.hosts }),
    approvable: [],
    overridden: {},
    approvalId: null,
    gatePassed: false,
    idempotencyKey: `${plan.id}.${id}`,
    result: null,
    error: null,
    reason: null,
    external: {
      by,
      operation,
      isPriceKnown: spec !== null || request.costUsd !== null,
      idempotencyKey: request.idempotencyKey,
      bodyDigest: digestOf(sha256, {
        tool_name: toolName,
        arguments: argumentsDigest,
        is_write: request.isWrite,
        cost_usd: request.costUsd,
        step: request.step,
        operation,
      }),
      decidedSeq: 0,
      guard: null,
      expiresAt: null,
      isExpired: false,
      settled: null,
      ...(spec?.riskClass === 'external_read' ? { readsOutside: true as const } : {}),
    },
  };
}

/** What the caller says can only make a known tool riskier. Of a tool of its own that it says nothing about, the worst short of unsafe. */
function classOf(spec: ToolSpec | null, isWrite: boolean | null): RiskClass {
  if (isWrite === null) return spec?.riskClass ?? 'external_write';
  const said: RiskClass = isWrite ? 'write' : 'read';
  if (spec === null) return said;
  // What reads outside and changes something changes something outside.
  return isWrite && spec.riskClass === 'external_read' ? 'external_write' : riskierOf(spec.riskClass, said);
}

/** The same call in the same step after it failed is a retry of it. */
function attemptOf(plan: Plan, tool: string, argumentsDigest: string, step: number): number {
  const last = Object.values(plan.calls).findLast(
    (each) =>
      each.tool === tool &&
      each.argumentsDigest === argumentsDigest &&
      each.step === step &&
      (each.status === 'failed' || each.status === 'succeeded'),
  );
  if (last === undefined || last.status === 'succeeded') return 1;
  return last.external?.settled?.outcome === 'not_dispatched' ? last.attempt : last.attempt + 1;
}

/** The same call, refused so far: asking for it again is about that one, and not a second one. One that a human has let pass comes first. */
function heldTwin(plan: Plan, call: Call & { readonly external: ExternalCall }): Call | undefined {
  const { idempotencyKey: key } = call.external;
  const twins = Object.values(plan.calls).filter(
    (each) =>
      isHeld(each) &&
      each.digest === call.digest &&
      (key === null || each.external?.idempotencyKey === null || each.external?.idempotencyKey === key),
  );
  return twins.find((each) => givenFor(plan, each) !== null) ?? twins[0];
}

function givenFor(plan: Plan, { approvalId }: Call): Approval | null {
  const approval = plan.approvals.find((each) => each.id === approvalId);
  return approval?.status === 'approved' ? approval : null;
}

/** An approval holds as long as its question would have: one that comes to be used later than that is asked for again. */
function asAskedNow(plan: Plan, held: Call, { external }: { readonly external: ExternalCall }, now: string): Call {
  const given = givenFor(plan, held);
  const isOver = given !== null && given.expiresAt !== null && given.expiresAt <= now;
  const asked = { ...held, external: { ...external, idempotencyKey: external.idempotencyKey ?? held.external?.idempotencyKey ?? null } };
  return isOver ? { ...asked, overridden: {}, gatePassed: false, approvalId: null } : asked;
}

function usedOtherwise(plan: Plan, key: string, earlier: Pick<Call, 'id'>): Refusal {
  return {
    kind: 'already_exists',
    message: 'this idempotency key was used with another request; use a new key for a new request',
    entity: 'idempotency_key',
    id: key,
    details: { idempotency_key: key, plan_id: plan.id, decision_id: `${plan.id}.${earlier.id}` },
  };
}

/* ---------------------------------------------------------------- names that are none */

/** Longest name that goes through the guards; a tool's is at most 128 characters long. */
const MAX_NAME_CHARACTERS = 2 * MAX_TOOL_NAME_LENGTH;

function issueOfName(name: JsonValue | undefined): string | null {
  if (name === undefined) return 'is required';
  if (typeof name !== 'string')
    return `must be text, not ${withArticle(name === null ? 'null' : Array.isArray(name) ? 'array' : typeof name)}`;
  if (name.trim() === '') return 'must not be blank';
  if (name.length > MAX_NAME_CHARACTERS) return `must be at most ${MAX_NAME_CHARACTERS} characters`;
  return name.isWellFormed() ? null : 'must be well-formed text';
}

/** A call that names no tool passes no guard, and does not pass unrecorded either. */
function refuseMalformed(work: Work, by: ActorRef, request: AuthorizeRequest, issue: string): Result<never, Refusal> {
  work.emit('check_recorded', by, {
    check: 'authorize',
    event_type: 'tool_blocked',
    guard: 'tool',
    allowed: false,
    reason: `tool_name ${issue}. Remediation: name a tool.`,
    context: {
      arguments_digest: digestOf(work.context.sha256, request.arguments),
      ...(request.step === null ? {} : { step: request.step }),
      ...(request.costUsd === null ? {} : { cost_usd: request.costUsd }),
    },
  });
  const { toolName } = request;
  const tool = typeof toolName === 'string' ? toolName.slice(0, MAX_NAME_CHARACTERS).toWellFormed() : (toolName ?? null);
  return err(invalidField('tool_name', issue, { plan_id: work.plan().id, guard: 'tool', tool }));
}
