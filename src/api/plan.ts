import * as z from 'zod';
import { PHASES, STATES } from '../core/plan/plan.ts';
import { DECISION_TYPES } from '../core/plan/proposal.ts';
import { PROFILE_LEVELS } from '../core/profile.ts';
import { guardrailParams } from './guardrail-params.ts';
import { COMMON_ERRORS, defineOperation } from './operation.ts';
import {
  digest,
  jsonObject,
  jsonValue,
  nameReference,
  nextPageToken,
  optional,
  pageSize,
  pageToken,
  planId,
  sessionId,
  text,
  timestamp,
} from './schemas.ts';
import { diffTotals, fileChange, planSummary, planThresholdView, planView } from './views.ts';

const onlyPlanId = z.strictObject({ plan_id: planId });

const onPlan = [...COMMON_ERRORS, 'not_found'] as const;
const changesPlan = [...onPlan, 'invalid_state', 'plan_error'] as const;

export const planUse = defineOperation({
  name: '_cleveragents/plan/use',
  summary: 'Make a plan from an action; it runs as far as its profile and guards let it',
  role: 'operator',
  params: z.strictObject({
    action_name: nameReference.meta({ description: 'Action to use' }),
    arguments: optional(jsonObject.meta({ description: "Arguments, checked against the action's schema" })),
    project: optional(nameReference.meta({ description: 'Project that the plan works on' })),
    automation_profile: optional(nameReference.meta({ description: 'Automation profile; wins over action, project and config' })),
    environment_profile: optional(nameReference.meta({ description: "Profile of the caller's environment; the lowest level" })),
    guardrails: optional(guardrailParams),
    session_id: optional(sessionId),
    idempotency_key: optional(text(256).meta({ description: 'The same key and body answer the same plan, for 7 days' })),
  }),
  result: planView,
  errors: [...changesPlan, 'already_exists', 'budget_exceeded'],
  aliases: ['plan.create'],
  cli: {
    command: ['plan', 'use'],
    positional: ['action_name'],
    flagAliases: { 'max-cost': 'guardrails.tool_budget', 'max-tool-calls': 'guardrails.max_tool_calls_per_step' },
    pairFlags: { arg: 'arguments' },
    examples: ['commands --arg text="read README.md"', 'refactor --project web --automation-profile supervised --max-cost 2'],
  },
});

export const planExecute = defineOperation({
  name: '_cleveragents/plan/execute',
  summary: "Let a plan go on: answers its own phase gates before Execute (the caller's approval), or starts a failed plan again",
  role: 'operator',
  alternativeRoles: ['approver'],
  freshKey: true,
  params: z.strictObject({
    plan_id: planId,
    digest: optional(digest.meta({ description: 'Digest of the approval that was shown; a mismatch refuses' })),
  }),
  result: planView,
  errors: [...changesPlan, 'budget_exceeded'],
  aliases: ['plan.execute'],
  cli: { command: ['plan', 'execute'], positional: ['plan_id'] },
});

export const planStatus = defineOperation({
  name: '_cleveragents/plan/status',
  summary: 'Phase, state, budget, limits and what is pending',
  role: 'viewer',
  params: onlyPlanId,
  result: planView,
  errors: onPlan,
  idempotent: true,
  aliases: ['plan.status'],
  cli: { command: ['plan', 'status'], positional: ['plan_id'] },
});

export const planDiff = defineOperation({
  name: '_cleveragents/plan/diff',
  summary: "What the plan changed against the project's head it started from",
  role: 'viewer',
  params: onlyPlanId,
  result: z.object({
    plan_id: planId,
    /** Tree digests. */
    base: z.string(),
    result: z.string(),
    /** Digest over the whole difference. */
    digest: z.string(),
    files: z.array(fileChange),
    totals: diffTotals,
    /** Unified patch; binary files are named only. */
    patch: z.string(),
    truncated: z.boolean().optional(),
  }),
  errors: onPlan,
  idempotent: true,
  aliases: ['plan.diff'],
  cli: { command: ['plan', 'diff'], positional: ['plan_id'] },
});

/** Exactly one of text, base64, url, data. */
const artifactPart = z.object({
  text: z.string().optional(),
  base64: z.string().optional(),
  url: z.string().optional(),
  data: jsonValue.optional(),
  media_type: z.string().optional(),
  filename: z.string().optional(),
  metadata: jsonObject.optional(),
});

export const planArtifacts = defineOperation({
  name: '_cleveragents/plan/artifacts',
  summary: 'What the plan produced; drafts until it is applied',
  role: 'viewer',
  params: onlyPlanId,
  result: z.object({
    artifacts: z.array(
      z.object({
        artifact_id: z.string(),
        name: z.string().optional(),
        description: z.string().optional(),
        draft: z.boolean(),
        parts: z.array(artifactPart),
      }),
    ),
    next_page_token: nextPageToken,
  }),
  errors: onPlan,
  idempotent: true,
  cli: { command: ['plan', 'artifacts'], positional: ['plan_id'] },
});

export const planTree = defineOperation({
  name: '_cleveragents/plan/tree',
  summary: 'The decision tree with rationale, confidence and its components',
  role: 'viewer',
  params: onlyPlanId,
  result: z.object({
    plan_id: planId,
    root: z.string().nullable(),
    decisions: z.array(
      z.object({
        decision_id: z.string(),
        parent_id: z.string().nullable(),
        type: z.enum(DECISION_TYPES),
        question: z.string(),
        chosen: z.string(),
        alternatives: z.array(z.string()),
        rationale: z.string(),
        confidence: z.number().nullable(),
        components: jsonObject.nullable(),
        threshold: z.number().nullable(),
        superseded: z.boolean(),
        step: z.number(),
        attempt: z.number(),
        created_at: timestamp,
      }),
    ),
  }),
  errors: onPlan,
  idempotent: true,
  cli: { command: ['plan', 'tree'], positional: ['plan_id'] },
});

export const planApply = defineOperation({
  name: '_cleveragents/plan/apply',
  summary: "Apply a plan's changes to its project: the caller's approval of the diff that was shown",
  role: 'approver',
  freshKey: true,
  params: z.strictObject({
    plan_id: planId,
    digest: optional(digest.meta({ description: 'Digest of the approval that was shown; a mismatch refuses' })),
    approve: optional(z.boolean().meta({ description: 'Required with the digest under require_approval_for_apply' })),
  }),
  result: planView,
  errors: changesPlan,
  aliases: ['plan.apply'],
  cli: { command: ['plan', 'apply'], positional: ['plan_id'] },
});

export const planCancel = defineOperation({
  name: '_cleveragents/plan/cancel',
  summary: 'Cancel a plan; its project stays as it is, with what the plan has written there at once under sandbox.strategy none',
  role: 'operator',
  params: z.strictObject({ plan_id: planId, reason: optional(text(2000).meta({ description: 'Why; kept in the log' })) }),
  result: planView,
  errors: changesPlan,
  cli: { command: ['plan', 'cancel'], positional: ['plan_id'], examples: ['01HXRCF1ABCDE12345678901AB --reason "wrong branch"'] },
});

export const planList = defineOperation({
  name: '_cleveragents/plan/list',
  summary: 'Plans, newest status first',
  role: 'viewer',
  params: z.strictObject({
    session_id: optional(sessionId),
    action_name: optional(nameReference.meta({ description: 'Only plans of this action' })),
    project: optional(nameReference.meta({ description: 'Only plans on this project' })),
    phase: optional(z.enum(PHASES).meta({ description: 'Only plans in this phase' })),
    state: optional(z.enum(STATES).meta({ description: 'Only plans in this state' })),
    page_size: pageSize,
    page_token: pageToken,
  }),
  result: z.object({ plans: z.array(planSummary), next_page_token: nextPageToken, total_size: z.number() }),
  errors: COMMON_ERRORS,
  idempotent: true,
  cli: { command: ['plan', 'list'] },
});

export const planPrompt = defineOperation({
  name: '_cleveragents/plan/prompt',
  summary: 'Give a plan guidance for its next step',
  role: 'operator',
  params: z.strictObject({ plan_id: planId, guidance: text(20_000).meta({ description: 'What the actor should take into account' }) }),
  result: planView,
  errors: changesPlan,
  cli: { command: ['plan', 'prompt'], positional: ['plan_id', 'guidance'] },
});

export const planProfileShow = defineOperation({
  name: '_cleveragents/plan/profile/show',
  summary: 'The profile that is locked to the plan, each threshold with its meaning, and what binds the plan beside it',
  role: 'viewer',
  params: onlyPlanId,
  result: z.object({
    plan_id: planId,
    name: z.string(),
    level: z.enum(PROFILE_LEVELS),
    digest: z.string(),
    document: jsonObject,
    thresholds: z.array(planThresholdView),
    /** Everything that binds the plan, combined to the strictest, in the form of a profile; where each comes from is in `plan/guard/show`. */
    effective: jsonObject,
  }),
  errors: onPlan,
  idempotent: true,
  cli: { command: ['plan', 'profile', 'show'], positional: ['plan_id'] },
});
