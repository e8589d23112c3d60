import * as z from 'zod';
import { COMMON_ERRORS, defineOperation } from './operation.ts';
import { count, optional, planId, timestamp } from './schemas.ts';

const onPlan = [...COMMON_ERRORS, 'not_found'] as const;

export const AUDIT_FORMATS = ['jsonl', 'csv'] as const;

/** Why a plan decides nothing any more: the first row of its log that is wrong, and what is wrong with it. */
export const logProblem = z.object({ problem: z.string(), first_bad_seq: z.number(), detail: z.string() });

/** Signed: the log of this plan had a row of this number and hash at that time. */
export const signedHeadView = z.object({
  v: z.literal(1),
  org: z.string(),
  plan_id: planId,
  seq: z.number(),
  hash: z.string(),
  at: timestamp,
  /** Which of the keys at /.well-known/jwks.json. */
  kid: z.string(),
  /** Ed25519, base64url without padding. */
  signature: z.string(),
});

export const auditExport = defineOperation({
  name: '_cleveragents/audit/export',
  summary: "A page of a plan's log for keeping: JSONL with signed heads, verifiable without the service, or its audit entries as CSV",
  role: 'viewer',
  params: z.strictObject({
    plan_id: planId,
    format: z
      .enum(AUDIT_FORMATS, 'must be jsonl or csv')
      .default('jsonl')
      .meta({ description: 'jsonl: rows and signed heads; csv: audit entries' }),
    after_seq: optional(count(Number.MAX_SAFE_INTEGER).meta({ description: 'next_after_seq of the page before' })),
    limit: count(1000).min(1, 'must be 1 to 1000').default(500).meta({ description: 'Rows of the log at most, 1 to 1000' }),
  }),
  result: z.object({
    plan_id: planId,
    format: z.enum(AUDIT_FORMATS),
    /** Pages in their order, put together, are the file. */
    content: z.string(),
    rows: z.number(),
    /** Whether the deployment signs heads and pages. */
    signing: z.enum(['on', 'off']),
    /** The log is damaged: these are the rows that can be read of it. */
    log_problem: logProblem.optional(),
    /** Absent on the last page. */
    next_after_seq: z.number().optional(),
  }),
  errors: onPlan,
  idempotent: true,
});

export const auditHead = defineOperation({
  name: '_cleveragents/audit/head',
  summary: "The end of a plan's log, signed: kept elsewhere, it shows later that nothing was cut off",
  role: 'viewer',
  params: z.strictObject({ plan_id: planId }),
  result: z.object({
    plan_id: planId,
    seq: z.number(),
    hash: z.string(),
    /** Null where the deployment does not sign. */
    signed_head: signedHeadView.nullable(),
    signing: z.enum(['on', 'off']),
    /** The log is damaged: its last row that can be read is shown, and nothing of it is signed any more. */
    log_problem: logProblem.optional(),
  }),
  errors: onPlan,
  idempotent: true,
  cli: { command: ['audit', 'head'], positional: ['plan_id'] },
});
