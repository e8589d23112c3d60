/**
 * The service as a decision point for executors outside (guards.md "AutonomyGuardrailService"): they open a plan under an id of their own,
 * ask before each call, and say how it ended. What records works on such plans only.
 */
import * as z from 'zod';
import { Guardrails } from '../core/guard-policy.ts';
import { GUARD_SCOPES } from '../core/guards/dry-run.ts';
import { AUDIT_EVENT_TYPES } from '../core/guards/guard.ts';
import type { JsonValue } from '../core/json.ts';
import { EXTERNAL_OUTCOMES } from '../core/plan/external/external.ts';
import { ULID_PATTERN } from '../core/plan/plan-id.ts';
import { PROFILE_LEVELS } from '../core/profile.ts';
import { guardrailParams } from './guardrail-params.ts';
import { COMMON_ERRORS, defineOperation } from './operation.ts';
import { approvalId, count, isJsonValue, jsonObject, nameReference, optional, planId, sessionId, text, timestamp } from './schemas.ts';
import { limitView, planView } from './views.ts';

const onPlan = [...COMMON_ERRORS, 'not_found'] as const;
const recordsOnPlan = [...onPlan, 'invalid_state'] as const;

/** A cost in US dollars. Infinite numbers and texts are none. */
const usd = z.number('must be a number of US dollars').min(0, 'must not be negative').max(1_000_000_000, 'must be at most 1000000000');

const decisionId = z
  .string()
  .regex(new RegExp(`^${ULID_PATTERN}\\.c[1-9][0-9]{0,9}$`), 'must be a decision id: <plan id>.c<number> as answered by guard/authorize')
  .meta({ description: 'Decision id: <plan id>.c<number>' });

const operationName = text(200)
  .refine((value) => value.trim() !== '', 'must not be blank')
  .meta({ description: 'What the call does, in the words of required_confirmations' });

/** Taken as it comes, so that a call that names no tool is refused by the plan, which records it. Bounded all the same. */
const anyToolName = z
  .custom<JsonValue>((value) => isJsonValue(value) && JSON.stringify(value).length <= 2000, 'must be the name of a tool')
  .meta({ type: 'string', description: 'Name of the tool, as the executor calls it' });

const onlyPlanId = z.strictObject({ plan_id: planId });

export const guardConfigure = defineOperation({
  name: '_cleveragents/guard/configure',
  summary: 'Open a plan whose executor is the caller, under an id of its own; on one that is open, tighten its guards',
  role: 'operator',
  params: z.strictObject({
    plan_id: planId.meta({ description: 'A ULID of your own choice: the plan is opened when the org has none of this id' }),
    guardrails: optional(guardrailParams),
    automation_profile: optional(
      nameReference.meta({ description: 'Automation profile; wins over config; locked when the plan is opened' }),
    ),
    session_id: optional(sessionId),
  }),
  result: z.object({
    plan_id: planId,
    /** False: it was there already. */
    opened: z.boolean(),
    session_id: z.string(),
    profile: z.object({ name: z.string(), level: z.enum(PROFILE_LEVELS), digest: z.string() }),
    revision: z.number(),
    digest: z.string(),
    limits: z.array(limitView),
    policy: jsonObject,
  }),
  errors: [...recordsOnPlan, 'already_exists', 'budget_exceeded'],
  cli: {
    command: ['guard', 'configure'],
    positional: ['plan_id'],
    flagAliases: { 'max-cost': 'guardrails.tool_budget', 'max-tool-calls': 'guardrails.max_tool_calls_per_step' },
    examples: ['01HXRCF1ABCDE12345678901AB --automation-profile auto --max-cost 5 --tool-denylist shell_exec'],
  },
});

const guardVerdictView = z.object({
  guard: z.string(),
  event_type: z.string(),
  result: z.enum(['allowed', 'denied']),
  reason: z.string().nullable(),
  limit: z.number().optional(),
  actual: z.number().optional(),
  exceeded_level: z.string().optional(),
});

export const guardAuthorize = defineOperation({
  name: '_cleveragents/guard/authorize',
  summary: 'May this call be made? All guards, gate, reservation and approval in one decision; settle it when the call has ended',
  role: 'operator',
  params: z.strictObject({
    plan_id: planId,
    tool_name: optional(anyToolName),
    arguments: optional(jsonObject.meta({ description: 'Arguments of the call; an approval is for exactly these' })),
    is_write: optional(
      z.boolean().meta({ description: 'Whether the call changes something; a known tool is never taken for less than it is' }),
    ),
    cost_usd: optional(
      usd.meta({ description: 'What the call will cost at most; needed under a cap, unless the price of the tool is known' }),
    ),
    step: optional(count(1_000_000_000).min(1, 'must be at least 1').meta({ description: 'Number of the step; absent: the newest one' })),
    operation: optional(operationName),
    idempotency_key: optional(
      text(256).meta({
        description:
          'The same key and call answer the same decision while it is open; one that was settled or has expired is no permission any more',
      }),
    ),
  }),
  result: z.object({
    plan_id: planId,
    /** Of the same call asked for again it stays the same until that is allowed. */
    decision_id: decisionId,
    allowed: z.boolean(),
    reason: z.string().nullable(),
    /** A human may let it pass; ask again after that. */
    requires_approval: z.boolean(),
    /** Of the authorisation: charged in full unless it is settled by then. Of a refusal: of the question that is open. */
    expires_at: timestamp.nullable(),
    approval_id: approvalId.optional(),
    exceeded_level: z.string().optional(),
    guards: z.array(guardVerdictView),
  }),
  errors: [...recordsOnPlan, 'already_exists'],
  cli: {
    command: ['guard', 'authorize'],
    positional: ['plan_id', 'tool_name'],
    pairFlags: { arg: 'arguments' },
    examples: ['01HXRCF1ABCDE12345678901AB http_get --arg url=https://example.com --cost-usd 0.10'],
  },
});

export const guardSettle = defineOperation({
  name: '_cleveragents/guard/settle',
  summary: 'Say how an authorised call ended and what it cost; once, the same again answers the same',
  role: 'operator',
  params: z.strictObject({
    decision_id: decisionId,
    cost_usd: optional(usd.meta({ description: 'What it really cost; absent: what was reserved' })),
    outcome: z.enum(EXTERNAL_OUTCOMES, `must be one of ${EXTERNAL_OUTCOMES.join(', ')}`),
  }),
  result: z.object({
    plan_id: planId,
    decision_id: decisionId,
    outcome: z.enum(EXTERNAL_OUTCOMES),
    charged_usd: z.number(),
    /** estimated: nothing was said, what was reserved is charged; overrun: it cost more than was reserved. */
    marks: z.array(z.string()),
    /** After its expiry or after the end of the plan: recorded as cost, nothing else follows. */
    late: z.boolean(),
    budget: z.object({ spent_usd: z.number(), reserved_usd: z.number(), remaining_usd: z.number().nullable() }),
  }),
  errors: recordsOnPlan,
  cli: {
    command: ['guard', 'settle'],
    positional: ['decision_id', 'outcome'],
    examples: ['01HXRCF1ABCDE12345678901AB.c1 succeeded --cost-usd 0.08', '01HXRCF1ABCDE12345678901AB.c2 not_dispatched'],
  },
});

export const guardComplete = defineOperation({
  name: '_cleveragents/guard/complete',
  summary: 'The executor is done: ends its plan. What is open has to be settled first',
  role: 'operator',
  params: onlyPlanId,
  result: planView,
  errors: recordsOnPlan,
  cli: { command: ['guard', 'complete'], positional: ['plan_id'] },
});

export const guardEvaluate = defineOperation({
  name: '_cleveragents/guard/evaluate',
  summary: 'What all guards of a plan or of a profile would say of a call, as authorize would; nothing is reserved, recorded or authorised',
  role: 'viewer',
  params: z.strictObject({
    plan_id: optional(planId),
    automation_profile: optional(
      nameReference.meta({ description: 'Instead of a plan: the guards that a plan under this profile would have' }),
    ),
    tool_name: text(200)
      .refine((name) => name.trim() !== '', 'must not be blank')
      .meta({ description: 'Name of the tool' }),
    arguments: optional(
      jsonObject.meta({
        description: 'Arguments of the call, for the guards that look at paths and hosts; absent: nothing is said of them',
      }),
    ),
    context: optional(
      z.strictObject({
        is_write: optional(z.boolean().meta({ description: 'Whether the call changes something' })),
        cost_so_far: optional(usd.meta({ description: 'What was spent before; absent: what the plan has spent' })),
        calls_so_far: optional(count(1_000_000_000).meta({ description: 'Calls made before in this step' })),
        cost_usd: optional(usd.meta({ description: 'What the call would cost at most; absent: the price of the tool' })),
        operation: optional(operationName),
        step: optional(
          count(1_000_000_000).min(1, 'must be at least 1').meta({ description: 'Number of the step; absent: the newest one' }),
        ),
        scope: optional(z.enum(GUARD_SCOPES, `must be one of ${GUARD_SCOPES.join(', ')}`)),
      }),
    ),
  }),
  result: z.object({
    allowed: z.boolean(),
    /** Of the first guard that refuses. */
    reason: z.string().nullable(),
    requires_approval: z.boolean(),
    /** All of them, in their order; of a plan with its confidence gate. */
    guards: z.array(guardVerdictView),
  }),
  errors: onPlan,
  idempotent: true,
  cli: {
    command: ['guard', 'evaluate'],
    positional: ['tool_name'],
    pairFlags: { arg: 'arguments' },
    examples: ['shell_exec --automation-profile supervised', 'write_file --plan-id 01HXRCF1ABCDE12345678901AB --is-write'],
  },
});

/**
 * One row per question of the source's service; each is answered and recorded. Under a halt, what keeps a step or money is refused; the
 * other questions authorise nothing and are answered by their one limit, as in the source.
 */
const check = <const N extends string, P extends z.ZodRawShape, R extends z.ZodRawShape>(name: N, summary: string, params: P, result: R) =>
  defineOperation({
    name: `_cleveragents/guard/${name}` as const,
    summary,
    role: 'operator',
    params: z.strictObject({ plan_id: planId, ...params }),
    result: z.object(result),
    errors: recordsOnPlan,
  });

const allowed = { allowed: z.boolean() };
const number = (description: string) => count(1_000_000_000).meta({ description });

export const guardCheckStepLimit = check(
  'check_step_limit',
  'Whether this step is within max_steps; if it is, it is the newest. Never while the plan is halted',
  { current_step: number('Number of the step, from 1') },
  allowed,
);

export const guardCheckToolBudget = check(
  'check_tool_budget',
  'Whether this cost is within the budget; if it is, it is spent. Never while the plan is halted',
  { tool_cost: usd.meta({ description: 'Cost in US dollars' }) },
  allowed,
);

export const guardCheckWallClock = check('check_wall_clock', 'Whether the plan is within its time, halted or not', {}, allowed);

export const guardCheckActorToolCalls = check(
  'check_actor_tool_calls',
  'Whether another call of the actor is within the limit of its invocation, halted or not',
  { current_calls: number('Calls made so far in this invocation') },
  allowed,
);

export const guardCheckRetriesPerFailure = check(
  'check_retries_per_failure',
  'Whether one more try of what failed is within the limit, halted or not',
  { current_retries: number('Retries made so far') },
  allowed,
);

export const guardCheckConfirmationRequired = check(
  'check_confirmation_required',
  'Whether this operation needs the confirmation of a human, halted or not',
  { operation: operationName },
  { required: z.boolean() },
);

export const guardCheckBudgetHierarchy = check(
  'check_budget_hierarchy',
  'Whether this cost is within the budgets of plan, session and org, halted or not; nothing is spent',
  { tool_cost: usd.meta({ description: 'Cost in US dollars' }) },
  { allowed: z.boolean(), reason: z.string().nullable(), exceeded_level: z.string().nullable() },
);

export const guardAssociatePlanWithSession = defineOperation({
  name: '_cleveragents/guard/associate_plan_with_session',
  summary: 'Put a plan that has spent nothing yet into a session, whose budget then counts',
  role: 'operator',
  params: z.strictObject({ plan_id: planId, session_id: sessionId }),
  result: z.object({ plan_id: planId, session_id: z.string() }),
  errors: recordsOnPlan,
  cli: { command: ['guard', 'associate'], positional: ['plan_id', 'session_id'] },
});

/** The source's fields (guards.md "Audit Entry Fields"). */
const trailEntry = z.object({
  timestamp: z.iso.datetime({ offset: true, error: 'must be an ISO 8601 time with its offset' }),
  event_type: z.enum(AUDIT_EVENT_TYPES, 'must be a type of guard event'),
  guard_name: text(200),
  result: z.enum(['allowed', 'denied'], 'must be allowed or denied'),
  reason: text(64_000).nullable(),
  context: jsonObject,
});
export type TrailEntry = z.output<typeof trailEntry>;

/** As another service may have written it: what it had nothing to say of is left out. */
const loadedEntry = z.strictObject({ ...trailEntry.shape, reason: trailEntry.shape.reason.default(null), context: jsonObject.default({}) });

const trailShape = {
  entries: z.array(trailEntry),
  max_entries: z.number(),
  allowed_count: z.number(),
  denied_count: z.number(),
};

export const guardGetAuditTrail = defineOperation({
  name: '_cleveragents/guard/get_audit_trail',
  summary: 'The decisions of the guards, oldest first; the newest so many, as guardrails.audit_max_entries says',
  role: 'viewer',
  params: z.strictObject({
    plan_id: planId,
    last: optional(count(10_000).min(1, 'must be 1 to 10000').meta({ description: 'Only the newest so many entries, 1 to 10000' })),
  }),
  result: z.object({
    plan_id: planId,
    ...trailShape,
    /** Counts are of all decisions ever; so many of them have left this view. */
    evicted_count: z.number(),
  }),
  errors: onPlan,
  idempotent: true,
});

export const guardGetAuditTrailAsMetadata = defineOperation({
  name: '_cleveragents/guard/get_audit_trail_as_metadata',
  summary: 'Trail and counters in the form in which they are kept in the metadata of a plan',
  role: 'viewer',
  params: onlyPlanId,
  result: z.object({
    plan_id: planId,
    metadata: z.object({ guardrail_audit_trail: z.object(trailShape), autonomy_guardrails: jsonObject }),
  }),
  errors: onPlan,
  idempotent: true,
});

/** As long as a trail can be; more is no trail of the source's service. */
const MAX_LOADED_ENTRIES = 10_000;

/** Counters above this are none: their sum would not be exact any more. */
const MAX_COUNTED = 1_000_000_000_000;

const { max_steps, tool_budget, max_wall_clock_seconds, actor_limits, required_confirmations } = Guardrails.shape;

export const guardLoadFromMetadata = defineOperation({
  name: '_cleveragents/guard/load_from_metadata',
  summary: 'Take over trail and counters from metadata, into a plan that was just opened; all or nothing',
  role: 'operator',
  params: z.strictObject({
    plan_id: planId,
    metadata: z
      .strictObject({
        guardrail_audit_trail: optional(
          z.strictObject({
            entries: z.array(loadedEntry).max(MAX_LOADED_ENTRIES, `must have at most ${MAX_LOADED_ENTRIES} entries`),
            max_entries: optional(count(MAX_COUNTED).min(1, 'must be at least 1')),
            allowed_count: optional(count(MAX_COUNTED)),
            denied_count: optional(count(MAX_COUNTED)),
            evicted_count: optional(count(2 * MAX_COUNTED)),
          }),
        ),
        autonomy_guardrails: optional(
          z.strictObject({
            max_steps,
            tool_budget,
            max_wall_clock_seconds,
            actor_limits,
            required_confirmations,
            step_count: optional(count(1_000_000_000)),
            budget_spent: optional(usd),
            start_time: optional(z.iso.datetime({ offset: true, error: 'must be an ISO 8601 time with its offset' }).nullable()),
          }),
        ),
      })
      .refine(
        ({ guardrail_audit_trail: trail, autonomy_guardrails: guardrails }) => trail !== undefined || guardrails !== undefined,
        'must have guardrail_audit_trail or autonomy_guardrails',
      ),
  }),
  result: z.object({ plan_id: planId, entries: z.number(), step_count: z.number(), budget_spent: z.number() }),
  errors: recordsOnPlan,
});
