import * as z from 'zod';
import { logProblem } from './audit.ts';
import { COMMON_ERRORS, defineOperation } from './operation.ts';
import { count, jsonObject, optional, planId, timestamp } from './schemas.ts';
import { limitView } from './views.ts';

const onPlan = [...COMMON_ERRORS, 'not_found'] as const;

/** The guards of a plan, as every operation on them answers. */
export const planGuardView = z.object({
  plan_id: planId,
  /** Grows with every revision of the plan's guards. */
  revision: z.number(),
  digest: z.string(),
  /** What holds, grants of humans included. */
  limits: z.array(limitView),
  /** The combined policy, in the source's field names. */
  policy: jsonObject,
  /** What revisions of this plan have set; the rest is locked into it. */
  revised: jsonObject,
});
export type PlanGuardView = z.output<typeof planGuardView>;

export const planGuardShow = defineOperation({
  name: '_cleveragents/plan/guard/show',
  summary: 'The guards in force and the origin of each limit',
  role: 'viewer',
  params: z.strictObject({ plan_id: planId }),
  result: planGuardView,
  errors: onPlan,
  idempotent: true,
  cli: { command: ['plan', 'guard', 'show'], positional: ['plan_id'] },
});

/** The source's fields (guards.md "Audit Entry Fields") with the place in the log. */
export const auditEntryView = z.object({
  seq: z.number(),
  timestamp,
  event_type: z.string(),
  guard_name: z.string(),
  result: z.enum(['allowed', 'denied']),
  reason: z.string().nullable(),
  context: jsonObject,
  actor: z.object({ kind: z.string(), id: z.string(), name: z.string().optional() }),
  hash: z.string(),
});
export type AuditEntryView = z.output<typeof auditEntryView>;

export const planGuardAudit = defineOperation({
  name: '_cleveragents/plan/guard/audit',
  summary: 'The trail of guard decisions, oldest first',
  role: 'viewer',
  params: z.strictObject({
    plan_id: planId,
    limit: count(1000).min(1, 'must be 1 to 1000').default(100).meta({ description: 'Entries to answer, 1 to 1000' }),
    after_seq: optional(count(Number.MAX_SAFE_INTEGER).meta({ description: 'Only entries after this position of the log' })),
    expand: optional(
      z.boolean('must be true or false').meta({ description: 'One entry per guard instead of one per decision; limit counts decisions' }),
    ),
  }),
  result: z.object({
    plan_id: planId,
    /** Of the whole log, those that have left this view included. */
    allowed_count: z.number(),
    denied_count: z.number(),
    /** Oldest entries beyond `guardrails.audit_max_entries`, which this view leaves out; the export has them. */
    evicted_count: z.number(),
    entries: z.array(auditEntryView),
    truncated: z.boolean(),
    /** The log is damaged: these are the entries that can be read of it. */
    log_problem: logProblem.optional(),
    next_after_seq: z.number().optional(),
  }),
  errors: onPlan,
  idempotent: true,
  cli: { command: ['plan', 'guard', 'audit'], positional: ['plan_id'] },
});

/** What was found where the chain, its signed heads and the entries in the database were checked against each other. */
export const trailVerdictView = z.object({
  valid: z.boolean(),
  entries: z.number(),
  head: z.string(),
  /** Of the newest signed head. `missing`: none was signed yet; `off`: the deployment does not sign. */
  head_signature: z.enum(['valid', 'invalid', 'unknown_key', 'missing', 'off']),
  /** The row of the newest signed head. */
  signed_seq: z.number().optional(),
  /** The entries in the database; `behind`: the newest ones are on their way. */
  trail: z.enum(['complete', 'behind', 'changed']),
  first_bad_seq: z.number().optional(),
  /** The first of the findings (docs/audit.md "Verify" says what each means). */
  problem: z.string().optional(),
  /** Everything that was found, what the log says against itself first; at most 100. */
  findings: z.array(z.object({ seq: z.number(), problem: z.string() })).optional(),
});
export type TrailVerdictView = z.output<typeof trailVerdictView>;

export const planGuardAuditVerify = defineOperation({
  name: '_cleveragents/plan/guard/audit/verify',
  summary: 'Check the hash chain of the plan, its signed heads and the entries in the database against each other',
  role: 'viewer',
  params: z.strictObject({ plan_id: planId }),
  result: trailVerdictView.extend({ plan_id: planId }),
  errors: onPlan,
  idempotent: true,
  cli: { command: ['plan', 'guard', 'verify'], positional: ['plan_id'] },
});
