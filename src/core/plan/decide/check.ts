/**
 * The questions of the source's guardrail service (guards.md "Enforcement Methods"): the caller keeps the numbers, the plan its limits, and
 * every answer is in the trail. A limit that is not set allows. Only the cost of an allowed `tool_budget` and the newest step are kept.
 *
 * What keeps money or a step begins something, as an authorisation does: under a kill switch it is refused and nothing is kept. The others
 * ask how one limit stands; they authorise nothing, so a halt does not change their answer, as in the source.
 */
import { actorCallsGuard } from '../../guards/actor-calls.ts';
import { budgetGuard } from '../../guards/budget.ts';
import { confirmationGuard } from '../../guards/confirmation.ts';
import type { Guard, GuardFacts, GuardRequest, GuardVerdict, UpperRefusal } from '../../guards/guard.ts';
import { evaluateWith } from '../../guards/guards.ts';
import { retryLimitGuard } from '../../guards/retry-limit.ts';
import { stateGuard } from '../../guards/state.ts';
import { stepLimitGuard } from '../../guards/step-limit.ts';
import { wallClockGuard } from '../../guards/wall-clock.ts';
import type { JsonObject } from '../../json.ts';
import { parseCostUsd } from '../../money.ts';
import type { Refusal } from '../../refusal.ts';
import { invalidField } from '../../refusal.ts';
import { err, ok, type Result } from '../../result.ts';
import type { CheckAnswer, CheckRequest, ExternalCommands } from '../external/commands.ts';
import type { Plan } from '../plan.ts';
import type { Work } from '../work.ts';
import { factsOf, warnOnce, workedMs } from './calls.ts';

/** One guard, and what it is to judge by. */
interface Question {
  readonly guard: Guard;
  readonly facts?: Partial<GuardFacts>;
  readonly request?: Partial<Pick<GuardRequest, 'costMicroUsd' | 'operation'>>;
  readonly context: JsonObject;
  /** What an allowed check records. */
  readonly records?: { readonly steps_used?: number; readonly charged_micro_usd?: number };
}

export function checkGuard(work: Work, { by, request }: ExternalCommands['check']): Result<CheckAnswer, Refusal> {
  const plan = work.plan();
  const question = questionOf(work, plan, request);
  if (!question.ok) return question;
  const verdict = judge(work, plan, question.value);
  const { allowed, reason } = verdict;
  work.emit('check_recorded', by, {
    check: request.check,
    event_type: verdict.eventType,
    guard: verdict.guard,
    allowed,
    reason,
    context: {
      ...question.value.context,
      ...(verdict.limitField === undefined ? {} : { limit_field: verdict.limitField }),
      ...(verdict.limit === undefined ? {} : { limit: verdict.limit }),
      ...(verdict.exceededLevel === undefined ? {} : { exceeded_level: verdict.exceededLevel }),
    },
    ...(allowed ? question.value.records : {}),
  });
  warnOnce(work);
  return ok({ allowed, reason, exceededLevel: verdict.exceededLevel ?? null });
}

function judge(work: Work, plan: Plan, question: Question): GuardVerdict {
  const own = judgeWith(work, plan, question, null);
  const costMicroUsd = question.request?.costMicroUsd ?? 0;
  const above = own.allowed ? work.refusalAbove(costMicroUsd) : null;
  return above === null ? own : judgeWith(work, plan, question, above);
}

function judgeWith(work: Work, plan: Plan, { guard, facts, request, records }: Question, upperRefusal: UpperRefusal | null): GuardVerdict {
  const report = evaluateWith(
    records === undefined ? [guard] : [stateGuard, guard],
    plan.policy,
    {
      toolName: '',
      catalogue: work.context.catalogue,
      unknownTools: 'accept',
      riskClass: null,
      costMicroUsd: 0,
      skillCategory: null,
      operation: null,
      protectedPaths: [],
      changesOutside: false,
      ...request,
    },
    { ...factsOf(plan, work.context.now, Math.max(1, plan.stepsUsed)), ...facts, upperRefusal },
  );
  const verdict = report.verdicts.find(({ allowed }) => !allowed) ?? report.verdicts.at(-1);
  if (verdict === undefined) throw new Error('a guard gave no verdict');
  return verdict;
}

function questionOf(work: Work, plan: Plan, request: CheckRequest): Result<Question, Refusal> {
  switch (request.check) {
    case 'step_limit': {
      const { currentStep } = request;
      return ok({
        guard: stepLimitGuard,
        facts: { stepNumber: currentStep },
        context: { current_step: currentStep },
        records: { steps_used: currentStep },
      });
    }
    case 'tool_budget':
    case 'budget_hierarchy': {
      const cost = parseCostUsd(request.costUsd);
      if (!cost.ok) return err(invalidField('tool_cost', cost.error));
      const records = request.check === 'tool_budget' ? { records: { charged_micro_usd: cost.value } } : {};
      return ok({ guard: budgetGuard, request: { costMicroUsd: cost.value }, context: { tool_cost: request.costUsd }, ...records });
    }
    case 'wall_clock':
      return ok({ guard: wallClockGuard, context: { worked_seconds: workedMs(plan, work.context.now) / 1000 } });
    case 'actor_tool_calls': {
      const { currentCalls } = request;
      return ok({ guard: actorCallsGuard, facts: { callsInInvocation: currentCalls }, context: { current_calls: currentCalls } });
    }
    case 'retries_per_failure': {
      // So many were made; asked is whether one more may be.
      const { currentRetries } = request;
      return ok({ guard: retryLimitGuard, facts: { retriesOfCall: currentRetries + 1 }, context: { current_retries: currentRetries } });
    }
    case 'confirmation_required': {
      const { operation } = request;
      return ok({ guard: confirmationGuard, request: { operation }, context: { operation } });
    }
  }
}
