import * as z from 'zod';
import { COMMON_ERRORS, defineOperation } from './operation.ts';
import { jsonObject, nameReference, nextPageToken, timestamp } from './schemas.ts';

/** An action with its whole document. */
export const actionView = z.object({
  name: z.string(),
  description: z.string(),
  version: z.number(),
  document: jsonObject,
  created_at: timestamp,
  updated_at: timestamp,
});

/** One action in a list. `arguments` is the JSON Schema of its arguments. */
export const actionSummary = z.object({
  name: z.string(),
  description: z.string(),
  actor: z.string(),
  arguments: jsonObject.nullable(),
  project: z.string().nullable(),
  automation_profile: z.string().nullable(),
  public: z.boolean(),
  version: z.number(),
  created_at: timestamp,
});
export type ActionSummary = z.output<typeof actionSummary>;

/** Also the result of `registry/action/list`. */
export const actionListResult = z.object({ actions: z.array(actionSummary), next_page_token: nextPageToken });

export const actionAdd = defineOperation({
  name: '_cleveragents/action/add',
  change: { type: 'action_added', subject: [], named: ['name'], recorded: ['name', 'version', 'document'] },
  summary: 'Register an action: a template from which plans are made',
  role: 'admin',
  // An action names a profile: whoever could register one could choose what binds himself.
  humanOnly: true,
  freshKey: true,
  params: z.strictObject({ action: jsonObject.meta({ description: 'The action document' }) }),
  result: actionView,
  errors: [...COMMON_ERRORS, 'already_exists'],
  cli: { command: ['action', 'add'], positional: ['action'], examples: ['rename.json'] },
});

export const actionShow = defineOperation({
  name: '_cleveragents/action/show',
  summary: 'One action with its document',
  role: 'viewer',
  params: z.strictObject({ name: nameReference.meta({ description: 'Name of the action' }) }),
  result: actionView,
  errors: [...COMMON_ERRORS, 'not_found'],
  idempotent: true,
  cli: { command: ['action', 'show'], positional: ['name'] },
});

export const actionList = defineOperation({
  name: '_cleveragents/action/list',
  summary: 'Registered actions by name',
  role: 'viewer',
  params: z.strictObject({}),
  result: actionListResult,
  errors: COMMON_ERRORS,
  idempotent: true,
  cli: { command: ['action', 'list'] },
});
