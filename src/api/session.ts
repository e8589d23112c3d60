import * as z from 'zod';
import { COMMON_ERRORS, defineOperation } from './operation.ts';
import { nameReference, nextPageToken, optional, sessionId, timestamp, usdAmount } from './schemas.ts';

export const sessionView = z.object({
  session_id: z.string(),
  actor_name: z.string().nullable(),
  status: z.enum(['open', 'closed']),
  created_at: timestamp,
  closed_at: timestamp.nullable(),
  /** Cap in USD on everything spent in it, null without one. In session.show only; budget/show has the rest. */
  max_cost: z.number().nullable().optional(),
});
export type SessionView = z.output<typeof sessionView>;

const onSession = [...COMMON_ERRORS, 'not_found'] as const;

export const sessionCreate = defineOperation({
  name: 'session.create',
  change: {
    type: 'budget_caps_changed',
    subject: ['session_id', 'max_cost'],
    named: ['session_id'],
    shownBy: 'session.show',
    recorded: ['session_id', 'max_cost'],
    onlyWith: 'max_cost',
  },
  summary: 'Open a session; with a session_id that exists it answers that one',
  role: 'operator',
  params: z.strictObject({
    actor_name: optional(nameReference.meta({ description: "Default actor of the session's plans" })),
    session_id: optional(sessionId),
    max_cost: optional(
      usdAmount.meta({ description: 'Cap in USD on everything spent in the session; of one that exists it may only lower it' }),
    ),
  }),
  result: z.object({ session_id: z.string(), status: z.literal('created') }),
  errors: [...COMMON_ERRORS, 'invalid_state'],
  cli: { command: ['session', 'create'], examples: ['--actor-name scripted/commands'] },
});

export const sessionList = defineOperation({
  name: 'session.list',
  summary: 'Sessions, newest first',
  role: 'viewer',
  params: z.strictObject({}),
  result: z.object({ sessions: z.array(sessionView), next_page_token: nextPageToken }),
  errors: COMMON_ERRORS,
  idempotent: true,
  cli: { command: ['session', 'list'] },
});

export const sessionShow = defineOperation({
  name: 'session.show',
  summary: 'One session',
  role: 'viewer',
  params: z.strictObject({ session_id: sessionId }),
  result: sessionView,
  errors: onSession,
  idempotent: true,
  cli: { command: ['session', 'show'], positional: ['session_id'] },
});

export const sessionClose = defineOperation({
  name: 'session.close',
  summary: 'Close a session; its live plans go on unless they are cancelled with it',
  role: 'operator',
  params: z.strictObject({
    session_id: sessionId,
    cancel_plans: optional(z.boolean().meta({ description: 'Cancel its live plans too' })),
  }),
  result: z.object({ status: z.literal('closed'), cancelled_plans: z.array(z.string()).optional() }),
  errors: onSession,
  idempotent: true,
  cli: { command: ['session', 'close'], positional: ['session_id'] },
});
