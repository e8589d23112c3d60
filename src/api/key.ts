import * as z from 'zod';
import { ROLES } from '../core/principal.ts';
import { COMMON_ERRORS, defineOperation } from './operation.ts';
import { keyId, nextPageToken, optional, text, timestamp } from './schemas.ts';

export const keyView = z.object({
  key_id: z.string(),
  name: z.string(),
  kind: z.enum(['human', 'agent']),
  roles: z.array(z.enum(ROLES)),
  created_at: timestamp,
  expires_at: timestamp.nullable(),
  revoked_at: timestamp.nullable(),
});
export type KeyView = z.output<typeof keyView>;

export const keyCreate = defineOperation({
  name: '_cleveragents/key/create',
  change: {
    type: 'key_created',
    subject: ['name', 'kind', 'roles'],
    named: ['key_id'],
    recorded: ['key_id', 'name', 'kind', 'roles', 'expires_at'],
  },
  summary: 'Make a key; its secret is answered once and never again',
  role: 'admin',
  humanOnly: true,
  freshKey: true,
  params: z.strictObject({
    name: text(100).meta({ description: 'For people' }),
    kind: z.enum(['human', 'agent'], 'must be human or agent').meta({ description: 'A key of kind agent never approves anything' }),
    roles: z
      .array(z.enum(ROLES, `must be one of ${ROLES.join(', ')}`))
      .min(1, 'at least one role')
      .max(ROLES.length, 'each role once'),
    expires_at: optional(timestamp.meta({ description: 'ISO 8601 time in UTC' })),
  }),
  result: keyView.extend({ key: z.string() }),
  errors: COMMON_ERRORS,
  cli: { command: ['key', 'create'], positional: ['name'], examples: ['ci --kind agent --roles operator'] },
});

export const keyList = defineOperation({
  name: '_cleveragents/key/list',
  summary: 'Keys of the org, without their secrets',
  role: 'admin',
  freshKey: true,
  params: z.strictObject({}),
  result: z.object({ keys: z.array(keyView), next_page_token: nextPageToken }),
  errors: COMMON_ERRORS,
  idempotent: true,
  cli: { command: ['key', 'list'] },
});

export const keyRevoke = defineOperation({
  name: '_cleveragents/key/revoke',
  change: { type: 'key_revoked', subject: ['key_id'], recorded: ['key_id', 'name', 'kind', 'roles', 'revoked_at'] },
  summary: 'Revoke a key; effective everywhere within 30 seconds, for approvals and administration at once',
  role: 'admin',
  humanOnly: true,
  freshKey: true,
  params: z.strictObject({ key_id: keyId }),
  result: keyView,
  errors: [...COMMON_ERRORS, 'not_found', 'invalid_state'],
  idempotent: true,
  cli: { command: ['key', 'revoke'], positional: ['key_id'] },
});
