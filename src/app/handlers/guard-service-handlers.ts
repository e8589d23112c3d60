import type { ResultOf } from '../../api/operations.ts';
import { maskJson, maskText } from '../../core/audit/mask.ts';
import { effectiveLimit, type Guardrails } from '../../core/guard-policy.ts';
import { type DryRun, dryRun, gateVerdict, NO_PLAN_FACTS } from '../../core/guards/dry-run.ts';
import { type GuardFacts, type GuardVerdict, NO_GRANTS } from '../../core/guards/guard.ts';
import type { JsonObject } from '../../core/json.ts';
import { spentMicroUsd } from '../../core/ledger.ts';
import { parseCostUsd, toUsd } from '../../core/money.ts';
import { writesAtOnce } from '../../core/plan/at-once.ts';
import { type CallFacts, NO_FACTS } from '../../core/plan/commands.ts';
import { factsOf } from '../../core/plan/decide/calls.ts';
import { callConfidence } from '../../core/plan/decide/confidence-of.ts';
import type { AuthorizationAnswer, CheckRequest, ExternalAnswers, ExternalCommand } from '../../core/plan/external/commands.ts';
import { mayBeTainted } from '../../core/plan/external/external.ts';
import type { PlanSnapshot, PublicPlan } from '../../core/plan/snapshot.ts';
import { stepsTaken } from '../../core/plan/steps-taken.ts';
import type { Refusal } from '../../core/refusal.ts';
import { invalidField, invalidState } from '../../core/refusal.ts';
import { err, ok, type Result } from '../../core/result.ts';
import type { RiskClass } from '../../core/tool.ts';
import { actorOf, approvingCaller } from '../caller.ts';
import { readGuardTrail } from '../guard-trail.ts';
import { guardViewOf } from '../guard-view.ts';
import type { CallContext, Handlers } from '../handler.ts';
import { openExternalPlan } from '../open-external-plan.ts';
import { policyForPlan } from '../plan-policy.ts';
import { planViewOf } from '../plan-view.ts';
import { lockProfile } from '../profiles.ts';
import type { Services } from '../services.ts';
import { enterSession } from '../start-plan.ts';
import { commandPlan, planPort, readPlan, unknownPlan } from './plan-handlers.ts';

/** The service as a decision point for executors outside. What is decided is decided in the plan's object; here it is only shaped. */
export const guardServiceHandlers = {
  '_cleveragents/guard/configure': async (params, call, services) => {
    const existing = await planPort(params.plan_id, call, services).read();
    if (existing !== null) return configureAgain(existing, params, call, services);
    const { plan_id: planId, guardrails = {}, automation_profile: automationProfile, session_id: sessionId } = params;
    const opened = await openExternalPlan({ planId, guardrails, automationProfile, sessionId }, call.principal, services);
    if (opened.ok) return ok(configured(opened.value, true));
    // Somebody else was faster: the plan is there, and this call is about it.
    const other = opened.error.kind === 'already_exists' ? await planPort(planId, call, services).read() : null;
    return other === null ? opened : configureAgain(other, params, call, services);
  },

  '_cleveragents/guard/authorize': async (params, call, services) => {
    const answered = await ask(params.plan_id, call, services, {
      type: 'authorize',
      by: actorOf(call.principal),
      request: {
        toolName: params.tool_name,
        arguments: params.arguments ?? {},
        isWrite: params.is_write ?? null,
        costUsd: params.cost_usd ?? null,
        step: params.step ?? null,
        operation: params.operation ?? null,
        idempotencyKey: params.idempotency_key ?? call.idempotencyKey,
      },
    });
    if (!answered.ok) return answered;
    const guards = answered.value.guards ?? (await guardsOf(params.plan_id, answered.value, call, services));
    return ok(authorization(params.plan_id, answered.value, guards));
  },

  '_cleveragents/guard/settle': async (params, call, services) => {
    const [planId = '', callId = ''] = params.decision_id.split('.');
    const answered = await ask(planId, call, services, {
      type: 'settle_external',
      by: actorOf(call.principal),
      callId,
      outcome: params.outcome,
      costUsd: params.cost_usd ?? null,
    });
    if (!answered.ok) return answered;
    const { outcome, chargedMicroUsd, marks, isLate, ...budget } = answered.value;
    return ok({
      plan_id: planId,
      decision_id: params.decision_id,
      outcome,
      charged_usd: toUsd(chargedMicroUsd),
      marks: [...marks],
      late: isLate,
      budget: {
        spent_usd: toUsd(budget.spentMicroUsd),
        reserved_usd: toUsd(budget.reservedMicroUsd),
        remaining_usd: budget.remainingMicroUsd === null ? null : toUsd(budget.remainingMicroUsd),
      },
    });
  },

  '_cleveragents/guard/complete': async (params, call, services) => {
    const answered = await ask(params.plan_id, call, services, { type: 'complete', by: actorOf(call.principal) });
    if (!answered.ok) return answered;
    const read = await readPlan(params.plan_id, call, services);
    return read.ok ? ok(planViewOf(read.value, services.clock.nowMs())) : read;
  },

  '_cleveragents/guard/evaluate': async (params, call, services) => {
    if ((params.plan_id === undefined) === (params.automation_profile === undefined)) {
      return err(
        invalidField(params.plan_id === undefined ? 'plan_id' : 'automation_profile', 'give either plan_id or automation_profile'),
      );
    }
    const found =
      params.plan_id === undefined
        ? await ofProfile(params.automation_profile ?? '', call, services)
        : await ofPlan(params.plan_id, call, services);
    if (!found.ok) return found;
    const { context = {} } = params;
    const cost = context.cost_so_far === undefined ? null : parseCostUsd(context.cost_so_far);
    if (cost?.ok === false) return err(invalidField('context.cost_so_far', cost.error));
    const coming = parseCostUsd(context.cost_usd ?? 0);
    if (!coming.ok) return err(invalidField('context.cost_usd', coming.error));
    const { policy, unknownTools, facts, gate, writesAtOnce: atOnce, isStrategy, protectedPaths } = found.value;
    const isWrite = context.is_write ?? (params.plan_id === undefined ? false : null);
    const about =
      params.arguments === undefined
        ? null
        : services.callFacts({ toolName: params.tool_name, arguments: params.arguments, isWrite }, protectedPaths);
    // Whoever says what was spent so far, or asks about a profile alone, asks as the source does: what is not said is nothing.
    const isPriceNeeded = gate !== null && cost === null && (policy.planCapMicroUsd !== null || policy.profileCapMicroUsd !== null);
    const { allowed, reason, requiresApproval, guards } = dryRun(policy, {
      toolName: params.tool_name,
      catalogue: services.catalogue,
      unknownTools,
      // Of a profile alone it is as in the source: what nobody calls a write is none.
      isWrite,
      writesAtOnce: atOnce,
      costMicroUsd: context.cost_usd === undefined && isPriceNeeded ? null : coming.value,
      operation: context.operation ?? null,
      about,
      isStrategy,
      facts: {
        ...facts(context.step ?? null),
        ...(cost === null ? {} : { spentMicroUsd: cost.value, reservedMicroUsd: 0, overrunMicroUsd: 0 }),
        ...(context.calls_so_far === undefined ? {} : { callsInStep: context.calls_so_far }),
      },
      scope: context.scope ?? 'plan',
      gate: gate === null ? null : (riskClass) => gate(riskClass, about ?? NO_FACTS),
    });
    return ok({
      allowed,
      reason: reason === null ? null : maskText(reason),
      requires_approval: requiresApproval,
      guards: verdictViews(guards),
    });
  },

  '_cleveragents/guard/check_step_limit': (params, call, services) =>
    allowedOf(params.plan_id, call, services, { check: 'step_limit', currentStep: params.current_step }),
  '_cleveragents/guard/check_tool_budget': (params, call, services) =>
    allowedOf(params.plan_id, call, services, { check: 'tool_budget', costUsd: params.tool_cost }),
  '_cleveragents/guard/check_wall_clock': (params, call, services) => allowedOf(params.plan_id, call, services, { check: 'wall_clock' }),
  '_cleveragents/guard/check_actor_tool_calls': (params, call, services) =>
    allowedOf(params.plan_id, call, services, { check: 'actor_tool_calls', currentCalls: params.current_calls }),
  '_cleveragents/guard/check_retries_per_failure': (params, call, services) =>
    allowedOf(params.plan_id, call, services, { check: 'retries_per_failure', currentRetries: params.current_retries }),

  '_cleveragents/guard/check_confirmation_required': async (params, call, services) => {
    const answered = await check(params.plan_id, call, services, { check: 'confirmation_required', operation: params.operation });
    return answered.ok ? ok({ required: !answered.value.allowed }) : answered;
  },

  '_cleveragents/guard/check_budget_hierarchy': async (params, call, services) => {
    const answered = await check(params.plan_id, call, services, { check: 'budget_hierarchy', costUsd: params.tool_cost });
    if (!answered.ok) return answered;
    const { allowed, reason, exceededLevel } = answered.value;
    return ok({ allowed, reason, exceeded_level: exceededLevel });
  },

  '_cleveragents/guard/associate_plan_with_session': async (params, call, services) => {
    const read = await readExternal(params.plan_id, call, services);
    if (!read.ok) return read;
    const session = await enterSession(params.session_id, call.principal, services);
    if (!session.ok) return session;
    const answered = await ask(params.plan_id, call, services, {
      type: 'associate',
      by: actorOf(call.principal),
      sessionId: session.value,
    });
    return answered.ok ? ok({ plan_id: params.plan_id, session_id: session.value }) : answered;
  },

  '_cleveragents/guard/get_audit_trail': async (params, call, services) => {
    const read = await readPlan(params.plan_id, call, services);
    if (!read.ok) return read;
    const trail = await readGuardTrail(call.principal.org, read.value, planPort(params.plan_id, call, services), services);
    const { entries, maxEntries, allowed, denied } = trail;
    return ok({
      plan_id: params.plan_id,
      entries: entries.slice(params.last === undefined ? 0 : -params.last),
      max_entries: maxEntries,
      allowed_count: allowed,
      denied_count: denied,
      evicted_count: allowed + denied - entries.length,
    });
  },

  '_cleveragents/guard/get_audit_trail_as_metadata': async (params, call, services) => {
    const read = await readPlan(params.plan_id, call, services);
    if (!read.ok) return read;
    const { entries, maxEntries, allowed, denied } = await readGuardTrail(
      call.principal.org,
      read.value,
      planPort(params.plan_id, call, services),
      services,
    );
    return ok({
      plan_id: params.plan_id,
      metadata: {
        guardrail_audit_trail: { entries: [...entries], max_entries: maxEntries, allowed_count: allowed, denied_count: denied },
        autonomy_guardrails: maskJson(autonomyGuardrails(read.value.plan)) as JsonObject,
      },
    });
  },

  '_cleveragents/guard/load_from_metadata': async (params, call, services) => {
    const { guardrail_audit_trail: trail, autonomy_guardrails: kept } = params.metadata;
    const { step_count: stepCount, budget_spent: budgetSpentUsd, start_time: startTime = null, ...guardrails } = kept ?? {};
    const answered = await ask(params.plan_id, call, services, {
      type: 'import_state',
      by: actorOf(call.principal),
      state: {
        stepCount: stepCount ?? null,
        budgetSpentUsd: budgetSpentUsd ?? null,
        startTime: startTime === null ? null : new Date(startTime).toISOString(),
        entries: (trail?.entries ?? []) as unknown as readonly JsonObject[],
        maxEntries: trail?.max_entries ?? null,
        allowed: trail?.allowed_count ?? null,
        denied: trail?.denied_count ?? null,
        evicted: trail?.evicted_count ?? null,
        guardrails: guardrails as Guardrails,
      },
    });
    if (!answered.ok) return answered;
    const { entries, stepCount: steps, spentMicroUsd: spent } = answered.value;
    return ok({ plan_id: params.plan_id, entries, step_count: steps, budget_spent: toUsd(spent) });
  },
} satisfies Partial<Handlers>;

/* ---------------------------------------------------------------- configure */

type Configure = Parameters<Handlers['_cleveragents/guard/configure']>[0];

/** On a plan that is there: tightens its guards, by the same revisions as any plan's. What was locked when it was opened stays. */
async function configureAgain(
  { plan }: PlanSnapshot,
  { automation_profile: profile, session_id: session, guardrails }: Configure,
  call: CallContext,
  services: Services,
): Promise<Result<ResultOf<'_cleveragents/guard/configure'>, Refusal>> {
  const context = { plan_id: plan.id, phase: plan.phase, state: plan.state };
  if (plan.external === undefined) return err(invalidState('the plan is run here; plan/guard/set changes its guards', context));
  if (profile !== undefined && profile !== plan.profile.name) {
    return err(
      invalidState(`the plan is open under the profile '${plan.profile.name}', which is locked`, {
        ...context,
        profile: plan.profile.name,
      }),
    );
  }
  if (session !== undefined && session !== plan.sessionId) {
    return err(
      invalidState(`the plan is in session '${plan.sessionId}'; associate_plan_with_session moves it`, {
        ...context,
        session_id: plan.sessionId,
      }),
    );
  }
  const by = await approvingCaller(call.principal, services);
  if (!by.ok) return by;
  const change = { kind: 'set', guardrails: guardrails ?? {} } as const;
  const revised = await commandPlan(plan.id, call, services, { type: 'revise_guard', by: by.value, change });
  return revised.ok ? ok(configured(revised.value, false)) : revised;
}

function configured({ plan }: PlanSnapshot, opened: boolean): ResultOf<'_cleveragents/guard/configure'> {
  const { revision, digest, limits, policy } = guardViewOf(plan);
  const { name, level, digest: profileDigest } = plan.profile;
  return {
    plan_id: plan.id,
    opened,
    session_id: plan.sessionId,
    profile: { name, level, digest: profileDigest },
    revision,
    digest,
    limits,
    policy,
  };
}

/* ---------------------------------------------------------------- asking the plan */

async function ask<C extends ExternalCommand>(
  planId: string,
  call: CallContext,
  services: Services,
  command: C,
): Promise<Result<ExternalAnswers[C['type']], Refusal>> {
  return (await planPort(planId, call, services).external(command)) ?? unknownPlan(planId);
}

function check(planId: string, call: CallContext, services: Services, request: CheckRequest) {
  return ask(planId, call, services, { type: 'check', by: actorOf(call.principal), request });
}

async function allowedOf(planId: string, call: CallContext, services: Services, request: CheckRequest) {
  const answered = await check(planId, call, services, request);
  return answered.ok ? ok({ allowed: answered.value.allowed }) : answered;
}

async function readExternal(planId: string, call: CallContext, services: Services): Promise<Result<PlanSnapshot, Refusal>> {
  const read = await readPlan(planId, call, services);
  if (!read.ok || read.value.plan.external !== undefined) return read;
  return err(invalidState('the plan is run here; this is for plans whose executor is outside', { plan_id: planId }));
}

/* ---------------------------------------------------------------- answers */

/** The verdicts of an earlier decision, from its row. */
async function guardsOf(
  planId: string,
  { decidedSeq }: AuthorizationAnswer,
  call: CallContext,
  services: Services,
): Promise<readonly GuardVerdict[]> {
  const [row] = (await planPort(planId, call, services).log(decidedSeq - 1, 1)) ?? [];
  return row?.type === 'call_decided' ? row.data.guards : [];
}

function authorization(
  planId: string,
  answer: AuthorizationAnswer,
  guards: readonly GuardVerdict[],
): ResultOf<'_cleveragents/guard/authorize'> {
  const exceeded = answer.allowed ? undefined : guards.find((verdict) => !verdict.allowed)?.exceededLevel;
  return {
    plan_id: planId,
    decision_id: `${planId}.${answer.callId}`,
    allowed: answer.allowed,
    reason: answer.reason === null ? null : maskText(answer.reason),
    requires_approval: answer.requiresApproval,
    expires_at: answer.expiresAt,
    ...(answer.approvalId === null ? {} : { approval_id: answer.approvalId }),
    ...(exceeded === undefined ? {} : { exceeded_level: exceeded }),
    guards: verdictViews(guards),
  };
}

function verdictViews(guards: readonly GuardVerdict[]): ResultOf<'_cleveragents/guard/authorize'>['guards'] {
  return guards.map(({ guard, eventType, allowed, reason, limit, actual, exceededLevel }) => ({
    guard,
    event_type: eventType,
    result: allowed ? 'allowed' : 'denied',
    reason: reason === null ? null : maskText(reason),
    ...(limit === undefined ? {} : { limit }),
    ...(actual === undefined ? {} : { actual }),
    ...(exceededLevel === undefined ? {} : { exceeded_level: exceededLevel }),
  }));
}

/** The source's `AutonomyGuardrails` with what it tracks at run time. */
function autonomyGuardrails(plan: PublicPlan): JsonObject {
  const { policy, grants, ledger } = plan;
  const cap = effectiveLimit(policy.planCapMicroUsd, ledger.grantedMicroUsd);
  return {
    max_steps: effectiveLimit(policy.maxSteps, grants.steps),
    tool_budget: cap === null ? null : toUsd(cap),
    max_wall_clock_seconds: effectiveLimit(policy.maxWallClockSeconds, grants.seconds),
    actor_limits: {
      max_tool_calls_per_invocation: policy.maxCallsPerInvocation?.value ?? null,
      max_retries_per_failure: effectiveLimit(policy.maxRetries, grants.retries),
    },
    required_confirmations: [...new Set(policy.requiredConfirmations.map(({ pattern }) => pattern))],
    step_count: stepsTaken(plan),
    budget_spent: toUsd(spentMicroUsd(ledger)),
    // What was loaded without one has none: its entries may be older than the plan.
    start_time: plan.external?.imported ? plan.external.imported.startTime : plan.createdAt,
  };
}

/* ---------------------------------------------------------------- whose guards a dry run asks */

interface Evaluated extends Pick<DryRun, 'unknownTools' | 'writesAtOnce' | 'isStrategy'> {
  /** Null: nobody knows how confident a plan would be. */
  readonly gate: ((riskClass: RiskClass, facts: CallFacts) => GuardVerdict) | null;
  readonly protectedPaths: readonly string[] | null;
  readonly policy: PublicPlan['policy'];
  /** Of a call in this step; null: in the newest one. */
  readonly facts: (step: number | null) => GuardFacts;
}

/** As the plan stands now. What budgets above it would say is asked of them alone (check_budget_hierarchy), since asking moves money. */
async function ofPlan(planId: string, call: CallContext, services: Services): Promise<Result<Evaluated, Refusal>> {
  const read = await readPlan(planId, call, services);
  if (!read.ok) return read;
  const { plan } = read.value;
  const { policy, stepsUsed, external, phase } = plan;
  const now = new Date(services.clock.nowMs()).toISOString();
  const tainted = mayBeTainted(plan, services.catalogue);
  return ok({
    policy,
    unknownTools: external === undefined ? 'refuse' : 'accept',
    writesAtOnce: external === undefined && writesAtOnce(plan),
    isStrategy: phase === 'strategize',
    protectedPaths: external === undefined ? (plan.project?.protectedPaths ?? []) : null,
    facts: (step) => ({ ...factsOf(plan, now, step ?? (external === undefined ? stepsUsed : Math.max(1, stepsUsed))), tainted }),
    gate: (riskClass, facts) =>
      gateVerdict(
        policy,
        phase === 'strategize' ? 'edit_code' : 'execute_command',
        callConfidence({ ...plan, tainted }, riskClass, { tool: '', arguments: {} }, facts).value,
      ),
  });
}

/** The guards that a plan under this profile would have in this org: its floor and its settings count as well. */
async function ofProfile(name: string, call: CallContext, services: Services): Promise<Result<Evaluated, Refusal>> {
  const { org } = call.principal;
  const profile = await lockProfile({ plan: name, action: null, project: null, global: null, environment: null }, org, services, '');
  if (!profile.ok) return profile;
  const orgConfig = await services.config.list(org, 'org');
  const policy = await policyForPlan(
    {
      org,
      orgConfig,
      projectConfig: new Map(),
      profile: profile.value.document,
      actionProfile: null,
      actionGuardrails: undefined,
      planGuardrails: {},
    },
    services,
  );
  if (!policy.ok) return policy;
  const facts = { ...NO_PLAN_FACTS, callsInStep: 0, spentMicroUsd: 0, grants: NO_GRANTS };
  return ok({
    policy: policy.value,
    unknownTools: 'accept',
    writesAtOnce: false,
    isStrategy: false,
    protectedPaths: null,
    gate: null,
    facts: (step) => ({ ...facts, stepNumber: step ?? 1 }),
  });
}
