import * as z from 'zod';
import { COMMON_ERRORS, defineOperation } from './operation.ts';
import { planId, text, timestamp } from './schemas.ts';

export const planRetire = defineOperation({
  name: '_cleveragents/plan/retire',
  change: {
    type: 'plan_retired',
    subject: ['plan_id', 'reason'],
    recorded: ['problem', 'first_bad_seq', 'last_good', 'charged_usd'],
  },
  summary: 'Close a plan whose log is damaged for good: it can still be read, and whatever budget it holds counts as spent',
  role: 'admin',
  freshKey: true,
  humanOnly: true,
  params: z.strictObject({ plan_id: planId, reason: text(2000).meta({ description: "Why; kept in the org's log" }) }),
  result: z.object({
    plan_id: planId,
    /** What is wrong with the log, and the first row that is. */
    problem: z.string(),
    first_bad_seq: z.number(),
    /** The last row up to which the chain holds. */
    last_good: z.object({ seq: z.number(), hash: z.string() }),
    /**
     * What its session is told that the plan has spent: all that was granted to it and never came back, since nobody can say any more what of
     * that was free.
     */
    charged_usd: z.number(),
    retired_by: z.string(),
    retired_at: timestamp,
  }),
  errors: [...COMMON_ERRORS, 'not_found', 'invalid_state'],
  idempotent: true,
  cli: { command: ['plan', 'retire'], positional: ['plan_id'], examples: ['01HXRCF1ABCDE12345678901AB --reason "the disk was restored"'] },
});
