import * as z from 'zod';
import { RISK_CLASSES } from '../core/tool.ts';
import { actionListResult } from './action.ts';
import { COMMON_ERRORS, defineOperation } from './operation.ts';
import { projectListResult } from './project.ts';
import { jsonObject, nameReference, nextPageToken, optional } from './schemas.ts';

export const registryToolList = defineOperation({
  name: '_cleveragents/registry/tool/list',
  summary: 'Tools that plans can call',
  role: 'viewer',
  params: z.strictObject({
    namespace: optional(nameReference.meta({ description: 'Only tools of which a name starts with namespace/ or namespace:' })),
  }),
  result: z.object({
    tools: z.array(
      z.object({
        name: z.string(),
        aliases: z.array(z.string()),
        description: z.string(),
        class: z.enum(RISK_CLASSES),
        skill: z.string().nullable(),
        /** Null = unknown: refused wherever a budget binds. */
        price_usd: z.number().nullable(),
        idempotent: z.boolean(),
        input_schema: jsonObject,
      }),
    ),
    next_page_token: nextPageToken,
  }),
  errors: COMMON_ERRORS,
  idempotent: true,
  aliases: ['registry.list_tools'],
  cli: { command: ['tool', 'list'] },
});

export const registryActorList = defineOperation({
  name: '_cleveragents/registry/actor/list',
  summary: 'Actors that can drive a plan',
  role: 'viewer',
  params: z.strictObject({}),
  result: z.object({ actors: z.array(z.object({ name: z.string() })), next_page_token: nextPageToken }),
  errors: COMMON_ERRORS,
  idempotent: true,
  cli: { command: ['actor', 'list'] },
});

export const registryActionList = defineOperation({
  name: '_cleveragents/registry/action/list',
  summary: 'Registered actions by name (the same answer as action/list)',
  role: 'viewer',
  params: z.strictObject({}),
  result: actionListResult,
  errors: COMMON_ERRORS,
  idempotent: true,
});

export const registryProjectList = defineOperation({
  name: '_cleveragents/registry/project/list',
  summary: 'Projects by name (the same answer as project/list)',
  role: 'viewer',
  params: z.strictObject({}),
  result: projectListResult,
  errors: COMMON_ERRORS,
  idempotent: true,
});
