import * as z from 'zod';
import { MAX_CHECKPOINTS } from '../core/plan/checkpoint.ts';
import { PHASES } from '../core/plan/plan.ts';
import { COMMON_ERRORS, defineOperation } from './operation.ts';
import { jsonValue, nextPageToken, planId, timestamp } from './schemas.ts';

export const checkpointList = defineOperation({
  name: '_cleveragents/plan/checkpoint/list',
  summary: `What was recorded before each authorised write of a plan, newest first; the newest ${MAX_CHECKPOINTS} are kept`,
  role: 'viewer',
  params: z.strictObject({ plan_id: planId }),
  result: z.object({
    plan_id: planId,
    /** Locked when the plan was made (`sandbox.checkpoint.enabled`). */
    enabled: z.boolean(),
    /** By the guards of the plan as they are now. */
    required: z.boolean(),
    /** All that were made, and those of them that were let go. */
    made: z.number(),
    dropped: z.number(),
    checkpoints: z.array(
      z.object({
        checkpoint_id: z.string(),
        /** The row of the plan's log that authorised the write. */
        seq: z.number(),
        at: timestamp,
        /** Digest of the files before the write. */
        tree: z.string(),
        phase: z.enum(PHASES),
        /** Where the actor stood before the step; a long one as `{ digest, bytes }`. */
        decision_cursor: jsonValue,
        /** The newest decision that held. */
        decision_id: z.string().nullable(),
        counters: z.object({
          attempt: z.number(),
          step: z.number(),
          calls_in_step: z.number(),
          calls_in_invocation: z.number(),
          decisions: z.number(),
          results: z.number(),
          spent_usd: z.number(),
        }),
        reason: z.string(),
      }),
    ),
    next_page_token: nextPageToken,
  }),
  errors: [...COMMON_ERRORS, 'not_found'],
  idempotent: true,
  cli: { command: ['plan', 'checkpoint', 'list'], positional: ['plan_id'] },
});
