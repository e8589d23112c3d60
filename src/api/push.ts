import * as z from 'zod';
import { MAX_PUSH_CONFIGS } from '../core/push/push-config.ts';
import { COMMON_ERRORS, defineOperation } from './operation.ts';
import { planId, text, timestamp } from './schemas.ts';

const pushConfig = z.object({
  config_id: z.string(),
  /** Its token and credentials are shown nowhere. */
  url: z.string(),
  /** The A2A version that it reads: that of the request which registered it. */
  version: z.enum(['1.0', '0.3']),
  created_at: timestamp,
  status: z.enum(['active', 'stopped']),
  /** Why it is stopped: the receiver answered 410; too many in a row were given up; nothing may be sent there any more. */
  reason: z.enum(['gone', 'failing', 'target_refused']).nullable(),
  delivered: z.number(),
  /** Notifications that are still to be delivered. */
  waiting: z.number(),
  /** Attempts of the next one so far. */
  tries: z.number(),
  next_try_at: timestamp.nullable(),
  last_error: z.string().nullable(),
  last_delivered_at: timestamp.nullable(),
  /** All that were given up. */
  given_up: z.number(),
  /** The newest of them that are kept, oldest first. */
  dead_letters: z.array(
    z.object({
      delivery_id: z.string(),
      sequence: z.number(),
      /** The row of the plan's log that it tells of. */
      seq: z.number(),
      reason: z.enum(['refused', 'expired']),
      tries: z.number(),
      last_error: z.string(),
      given_up_at: timestamp,
      /** It waits to be sent again. */
      queued: z.boolean(),
    }),
  ),
});

export const pushList = defineOperation({
  name: '_cleveragents/push/list',
  summary: `The webhooks of a plan (at most ${MAX_PUSH_CONFIGS}) and how their deliveries stand, with what was given up`,
  role: 'viewer',
  params: z.strictObject({ plan_id: planId }),
  result: z.object({ plan_id: planId, configs: z.array(pushConfig) }),
  errors: [...COMMON_ERRORS, 'not_found'],
  idempotent: true,
  cli: { command: ['push', 'list'], positional: ['plan_id'] },
});

export const pushRetry = defineOperation({
  name: '_cleveragents/push/retry',
  summary: 'Send again what could not be delivered to a webhook, under the same delivery ids, and go on where it was stopped',
  role: 'operator',
  params: z.strictObject({
    plan_id: planId,
    config_id: text(128).optional().meta({ description: 'Default: the one that was registered without an id' }),
    sequence: z.int().min(1).optional().meta({ description: 'Only the notification of this number; default: all that were given up' }),
  }),
  result: z.object({ plan_id: planId, config: pushConfig }),
  errors: [...COMMON_ERRORS, 'not_found', 'invalid_state'],
  cli: { command: ['push', 'retry'], positional: ['plan_id', 'config_id'] },
});
