import * as z from 'zod';
import { SANDBOX_STRATEGIES } from '../core/sandbox.ts';
import { COMMON_ERRORS, defineOperation } from './operation.ts';
import { planUse } from './plan.ts';
import { jsonObject } from './schemas.ts';
import { planThresholdView } from './views.ts';

/** What stands before a plan, in the order in which `plan/use` would answer the first that fails. */
export const PREFLIGHT_CHECKS = [
  'action',
  'arguments',
  'guardrails',
  'project',
  'profile',
  'policy',
  'sandbox',
  'checkpoints',
  'halts',
  'budget',
  'session',
] as const;

export const planPreflight = defineOperation({
  name: '_cleveragents/plan/preflight',
  summary: 'Whether plan/use would make a plan now: the same checks, each with its answer; nothing is changed',
  role: 'operator',
  params: planUse.params.omit({ idempotency_key: true }),
  result: z.object({
    /** plan/use with the same parameters would make a plan, which then runs as far as its profile and guards let it. */
    would_run: z.boolean(),
    /** The profile that the plan would get, and which level chose it; null: it could not be told. */
    profile: z.string().nullable(),
    profile_level: z.string().nullable(),
    /** What would bind the plan, as `plan/profile/show` says of one that was made; null: it could not be told. */
    thresholds: z.array(planThresholdView).nullable(),
    effective: jsonObject.nullable(),
    project: z.string().nullable(),
    sandbox_strategy: z.enum(SANDBOX_STRATEGIES).nullable(),
    checkpoints_enabled: z.boolean().nullable(),
    checks: z.array(
      z.object({
        name: z.enum(PREFLIGHT_CHECKS),
        ok: z.boolean(),
        reason: z.string().optional(),
        remediation: z.string().optional(),
      }),
    ),
  }),
  errors: COMMON_ERRORS,
  idempotent: true,
  cli: {
    command: ['plan', 'preflight'],
    positional: ['action_name'],
    flagAliases: { 'max-cost': 'guardrails.tool_budget', 'max-tool-calls': 'guardrails.max_tool_calls_per_step' },
    pairFlags: { arg: 'arguments' },
    examples: ['refactor --project web --automation-profile supervised'],
  },
});
