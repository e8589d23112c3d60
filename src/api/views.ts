/** The shapes of a plan and of an approval as every operation answers them, and the pieces they share. */
import * as z from 'zod';
import { TASK_STATES } from '../a2a/model.ts';
import { APPROVAL_KINDS, type ApprovalStatus, HALT_LEVELS, PHASES, STATES } from '../core/plan/plan.ts';
import { PROFILE_LEVELS } from '../core/profile.ts';
import { RISK_CLASSES } from '../core/tool.ts';
import { approvalId, jsonObject, jsonValue, planId, timestamp } from './schemas.ts';

export const APPROVAL_STATUSES = [
  'pending',
  'approved',
  'denied',
  'answered',
  'expired',
  'revoked',
] as const satisfies readonly ApprovalStatus[];

/** One tool call as a human is asked about it. */
export const callView = z.object({
  tool: z.string(),
  arguments: jsonObject,
  class: z.enum(RISK_CLASSES).optional(),
  estimate_usd: z.number().optional(),
});

/** What changed in one file. `binary` files have no line counts. Blobs by digest. */
export const fileChange = z.object({
  path: z.string(),
  from_path: z.string().optional(),
  status: z.enum(['added', 'modified', 'deleted', 'renamed', 'mode_changed']),
  binary: z.boolean(),
  additions: z.number(),
  deletions: z.number(),
  mode_before: z.string().optional(),
  mode_after: z.string().optional(),
  blob_before: z.string().optional(),
  blob_after: z.string().optional(),
});
export type FileChange = z.output<typeof fileChange>;

export const diffTotals = z.object({ files: z.number(), additions: z.number(), deletions: z.number(), binary: z.number() });

/** The diff that an approval is about, without the contents where they are long. */
const diffSummary = z.object({
  digest: z.string(),
  /** Tree digests. */
  base: z.string(),
  result: z.string(),
  files: z.array(z.object({ path: z.string(), status: z.string(), additions: z.number(), deletions: z.number() })),
  additions: z.number(),
  deletions: z.number(),
  /** Absent when it is too long to be shown here; `plan/diff` has it. */
  patch: z.string().optional(),
});

/** A question to a human, bound by digest to exactly one thing (design sections 4 and 11). */
export const approvalView = z
  .object({
    approval_id: approvalId,
    plan_id: planId,
    kind: z.enum(APPROVAL_KINDS),
    status: z.enum(APPROVAL_STATUSES),
    /** Covers the subject, the locked profile and the guard revision; sent back with the decision. */
    digest: z.string(),
    reason: z.string(),
    gate: z.string().optional(),
    guard: z.string().optional(),
    call: callView.optional(),
    calls: z.array(callView).optional(),
    diff: diffSummary.optional(),
    question: z.string().optional(),
    decision: jsonObject.optional(),
    /** What else the human should see: arguments and profile, the strategy, a conflict report. */
    details: jsonObject.optional(),
    choices: z.array(z.string()).optional(),
    suggested_grant: jsonObject.optional(),
    estimate_usd: z.number().optional(),
    threshold: z.number().optional(),
    confidence: z.number().nullable().optional(),
    components: jsonObject.optional(),
    opened_at: timestamp,
    expires_at: timestamp.nullable(),
    decided_by: z.string().optional(),
    decided_at: timestamp.optional(),
  })
  .meta({ id: 'Approval' });
export type ApprovalView = z.output<typeof approvalView>;

const problem = z.object({ message: z.string(), at: timestamp });

const profileReference = z.object({
  name: z.string(),
  /** Which level chose it. */
  level: z.enum(PROFILE_LEVELS),
  digest: z.string(),
});

/** One plan as `plan/use`, `status`, `execute`, `apply`, `cancel` and `prompt` answer it. Amounts in US dollars. */
export const planView = z
  .object({
    plan_id: planId,
    task_id: z.string(),
    action_name: z.string(),
    project: z.string().nullable(),
    session_id: z.string(),
    phase: z.enum(PHASES),
    state: z.enum(STATES),
    /** Where a waiting plan goes on. */
    resume_state: z.string().optional(),
    task_state: z.enum(TASK_STATES),
    attempt: z.number(),
    /** Present where the executor is outside. */
    external: z.literal(true).optional(),
    profile: profileReference,
    budget: z.object({
      cap_usd: z.number().nullable(),
      cap_source: z.string().optional(),
      spent_usd: z.number(),
      reserved_usd: z.number(),
      overrun_usd: z.number(),
      remaining_usd: z.number().nullable(),
      /** Nothing that costs anything can be reserved in this plan: its cap is used up, or is 0. */
      exhausted: z.boolean(),
    }),
    steps: z.object({ used: z.number(), limit: z.number().nullable(), current: z.string().optional() }),
    wall_clock: z.object({ worked_seconds: z.number(), limit_seconds: z.number().nullable() }),
    pending: z.array(approvalView),
    created_at: timestamp,
    updated_at: timestamp,
    applied_at: timestamp.optional(),
    applied_head: z.string().optional(),
    error: z.object({ first: problem, last: problem }).optional(),
    cancel_reason: z.string().optional(),
    /** Where writes go to the project at once: what is there, whatever becomes of the plan. `paths` are the first 50 files. */
    written_at_once: z.object({ writes: z.number(), head: z.string(), files: z.number(), paths: z.array(z.string()) }).optional(),
    /** The kill switch is set: nothing is authorised. */
    halted: z.object({ level: z.enum(HALT_LEVELS), reason: z.string(), by: z.string(), at: timestamp }).optional(),
    /** Position and hash of the newest row of the plan's log. */
    seq: z.number(),
    head_hash: z.string(),
  })
  .meta({ id: 'Plan' });
export type PlanView = z.output<typeof planView>;

/** One plan in a list; from the index, which follows the plan by at most one write. */
export const planSummary = z.object({
  plan_id: planId,
  action_name: z.string(),
  project: z.string().nullable(),
  session_id: z.string(),
  profile: z.string(),
  phase: z.enum(PHASES),
  state: z.enum(STATES),
  task_state: z.enum(TASK_STATES),
  pending_approvals: z.number(),
  created_at: timestamp,
  updated_at: timestamp,
});
export type PlanSummary = z.output<typeof planSummary>;

/** A threshold is never shown without its meaning: the names of the source mislead. */
export const thresholdView = z.object({ name: z.string(), value: z.number(), meaning: z.string(), is_default: z.boolean().optional() });

/**
 * A threshold of a plan: `value` of the profile that it got, `effective` what its gates use. They differ where something stricter binds beside
 * the profile: that of the action where an agent chose another, the policy floor of the org, now or as it was set later.
 */
export const planThresholdView = thresholdView.extend({ effective: z.number(), tightened: z.boolean() });

/** One limit in force and where it comes from. */
export const limitView = z.object({ name: z.string(), value: jsonValue, origin: z.string() });
