/** The org's own log: its configuration, keys and refusals, and where the logs of its plans stood (design sections 3 and 12). */
import * as z from 'zod';
import { ORG_EVENT_TYPES } from '../core/org-log/org-event.ts';
import { ORG_LOG_ID } from '../core/plan/chain.ts';
import { AUDIT_FORMATS, signedHeadView } from './audit.ts';
import { auditEntryView, trailVerdictView } from './guard.ts';
import { COMMON_ERRORS, defineOperation } from './operation.ts';
import { count, nextPageToken, optional, pageToken, planId, timestamp } from './schemas.ts';

const afterSeq = optional(count(Number.MAX_SAFE_INTEGER).meta({ description: 'next_after_seq of the page before' }));

export const orgLogList = defineOperation({
  name: '_cleveragents/org/log/list',
  summary: "The org's own log, oldest first: changes to the configuration, keys, refused access, heads of the logs of plans",
  role: 'admin',
  freshKey: true,
  params: z.strictObject({
    type: optional(
      z
        .array(z.enum(ORG_EVENT_TYPES, `must be one of ${ORG_EVENT_TYPES.join(', ')}`))
        .max(ORG_EVENT_TYPES.length, 'each type once')
        .meta({ description: 'Only rows of these types' }),
    ),
    plan_id: optional(planId),
    since: optional(timestamp.meta({ description: 'Only rows of this time or later (ISO 8601, UTC)' })),
    limit: count(1000).min(1, 'must be 1 to 1000').default(100).meta({ description: 'Entries to answer, 1 to 1000' }),
    after_seq: afterSeq,
  }),
  result: z.object({
    entries: z.array(auditEntryView),
    /** Absent on the last page. A page may be empty and still not be the last: nothing fitted up to there. */
    next_after_seq: z.number().optional(),
  }),
  errors: COMMON_ERRORS,
  idempotent: true,
  cli: { command: ['org', 'log', 'list'], examples: ['--type key_created,key_revoked --since 2026-11-30T00:00:00Z'] },
});

export const orgLogVerify = defineOperation({
  name: '_cleveragents/org/log/verify',
  summary: "Check the org's own log, and every plan that it knows against what the plan once reported of its log",
  role: 'admin',
  freshKey: true,
  params: z.strictObject({
    plan_id: optional(planId.meta({ description: 'Of the plans only this one' })),
    page_token: pageToken,
    limit: count(400).min(1, 'must be 1 to 400').default(200).meta({ description: 'Plans to check, 1 to 400' }),
  }),
  result: z.object({
    /** Of this page and all before it, so that the last one has the word on everything; false as well where something could not be checked. */
    valid: z.boolean(),
    /**
     * The log itself comes first, 5,000 rows in a page; `entries` and `head` say how far it was verified, `findings` what this page found.
     * Absent on the pages after those.
     */
    log: trailVerdictView.optional(),
    plans_checked: z.number(),
    plan_problems: z.array(
      z.object({
        plan_id: planId,
        /** docs/audit.md "The org's own log" says what each means; `unreached`: it could not be asked now. */
        problem: z.enum(['deleted', 'truncated', 'replaced', 'damaged', 'unrecorded', 'unreached']),
        reported_seq: z.number(),
        /** Where its log ends now; absent where there is none. */
        seq: z.number().optional(),
      }),
    ),
    next_page_token: nextPageToken,
  }),
  errors: [...COMMON_ERRORS, 'not_found'],
  idempotent: true,
});

export const orgLogExport = defineOperation({
  name: '_cleveragents/org/log/export',
  summary: "A page of the org's own log for keeping: JSONL with signed heads, verifiable without the service, or its entries as CSV",
  role: 'admin',
  freshKey: true,
  params: z.strictObject({
    format: z
      .enum(AUDIT_FORMATS, 'must be jsonl or csv')
      .default('jsonl')
      .meta({ description: 'jsonl: rows and signed heads; csv: audit entries' }),
    after_seq: afterSeq,
    limit: count(1000).min(1, 'must be 1 to 1000').default(500).meta({ description: 'Rows of the log at most, 1 to 1000' }),
  }),
  result: z.object({
    /** Stands for a plan id in the file. */
    plan_id: z.literal(ORG_LOG_ID),
    format: z.enum(AUDIT_FORMATS),
    /** Pages in their order, put together, are the file. */
    content: z.string(),
    rows: z.number(),
    signing: z.enum(['on', 'off']),
    next_after_seq: z.number().optional(),
  }),
  errors: COMMON_ERRORS,
  idempotent: true,
});

export const orgLogHead = defineOperation({
  name: '_cleveragents/org/log/head',
  summary: "The end of the org's own log, signed: kept elsewhere, it shows later that nothing was cut off",
  role: 'admin',
  freshKey: true,
  params: z.strictObject({}),
  result: z.object({
    /** 0: the log has no row yet. */
    seq: z.number(),
    hash: z.string(),
    /** Null where the deployment does not sign. */
    signed_head: signedHeadView.extend({ plan_id: z.literal(ORG_LOG_ID) }).nullable(),
    signing: z.enum(['on', 'off']),
  }),
  errors: COMMON_ERRORS,
  idempotent: true,
  cli: { command: ['org', 'log', 'head'] },
});
