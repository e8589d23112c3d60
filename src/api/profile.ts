import * as z from 'zod';
import { COMMON_ERRORS, defineOperation } from './operation.ts';
import { jsonObject, nameReference, nextPageToken, optional, text, timestamp } from './schemas.ts';
import { thresholdView } from './views.ts';

/** An automation profile in the source's form; every threshold with its meaning. */
export const profileView = z.object({
  name: z.string(),
  description: z.string().nullable(),
  built_in: z.boolean(),
  /** Rises with every change of a custom profile, over a deletion too. */
  version: z.number(),
  /** Of the document; a plan that locked this profile carries the same. */
  digest: z.string(),
  /** Exactly the eleven. `is_default`: nobody gave it, so it is 1.0. */
  thresholds: z.array(thresholdView),
  safety: jsonObject,
  guard: jsonObject.nullable(),
  /** Questions become failures, since nobody answers. */
  unattended: z.boolean(),
  /** The whole profile, as it is locked into plans. */
  document: jsonObject,
  created_at: timestamp.nullable(),
  updated_at: timestamp.nullable(),
});
export type ProfileView = z.output<typeof profileView>;

const profileParam = optional(jsonObject.meta({ description: 'The profile as an object' }));
const yamlParam = optional(text(128 * 1024).meta({ description: 'The profile as YAML or JSON text, at most 64 kB' }));

function checkOneForm({ profile, yaml }: { readonly profile?: unknown; readonly yaml?: unknown }, context: z.RefinementCtx): void {
  const [isObject, isText] = [profile !== undefined, yaml !== undefined];
  if (isObject === isText)
    context.addIssue({ code: 'custom', path: isText ? ['yaml'] : [], message: 'give the profile once: as profile or as yaml' });
}

export const profileList = defineOperation({
  name: '_cleveragents/profile/list',
  summary: 'Automation profiles: the built-in ones, then those of the org by name',
  role: 'viewer',
  params: z.strictObject({}),
  result: z.object({ profiles: z.array(profileView), next_page_token: nextPageToken }),
  errors: COMMON_ERRORS,
  idempotent: true,
  cli: { command: ['automation-profile', 'list'] },
});

export const profileShow = defineOperation({
  name: '_cleveragents/profile/show',
  summary: 'One automation profile, each threshold with its meaning',
  role: 'viewer',
  params: z.strictObject({
    name: nameReference.meta({ description: 'Name of the profile' }),
    yaml: optional(z.boolean('must be true or false').meta({ description: 'As YAML, in the form that add takes' })),
  }),
  result: profileView.extend({ yaml: z.string().optional() }),
  errors: [...COMMON_ERRORS, 'not_found'],
  idempotent: true,
  cli: { command: ['automation-profile', 'show'], positional: ['name'], examples: ['supervised', 'strict-ci --yaml > strict-ci.yaml'] },
});

export const profileAdd = defineOperation({
  name: '_cleveragents/profile/add',
  change: { type: 'profile_saved', subject: [], named: ['name'], recorded: ['name', 'version', 'digest', 'document'] },
  summary: 'Add a custom automation profile',
  role: 'admin',
  humanOnly: true,
  freshKey: true,
  params: z.strictObject({ profile: profileParam, yaml: yamlParam }).superRefine(checkOneForm),
  result: profileView,
  errors: [...COMMON_ERRORS, 'already_exists'],
  cli: { command: ['automation-profile', 'add'], flagAliases: { config: 'yaml' }, examples: ['--config my-profile.yaml'] },
});

export const profileUpdate = defineOperation({
  name: '_cleveragents/profile/update',
  change: {
    type: 'profile_saved',
    subject: ['name'],
    shownBy: '_cleveragents/profile/show',
    recorded: ['name', 'version', 'digest', 'document'],
  },
  summary: 'Replace a custom automation profile; plans that locked it keep what they have',
  role: 'admin',
  humanOnly: true,
  freshKey: true,
  params: z
    .strictObject({ name: nameReference.meta({ description: 'Name of the profile' }), profile: profileParam, yaml: yamlParam })
    .superRefine(checkOneForm),
  result: profileView,
  errors: [...COMMON_ERRORS, 'not_found', 'invalid_state'],
  cli: {
    command: ['automation-profile', 'update'],
    positional: ['name'],
    flagAliases: { config: 'yaml' },
    examples: ['my-profile --config updated.yaml'],
  },
});

export const profileDelete = defineOperation({
  name: '_cleveragents/profile/delete',
  change: {
    type: 'profile_deleted',
    subject: ['name'],
    shownBy: '_cleveragents/profile/show',
    recorded: ['name', 'version', 'digest', 'deleted'],
  },
  summary: 'Delete a custom automation profile that no setting, no action and no other profile names',
  role: 'admin',
  humanOnly: true,
  freshKey: true,
  params: z.strictObject({ name: nameReference.meta({ description: 'Name of the profile' }) }),
  result: z.object({ name: z.string(), deleted: z.boolean(), version: z.number() }),
  errors: [...COMMON_ERRORS, 'not_found', 'invalid_state'],
  cli: { command: ['automation-profile', 'delete'], positional: ['name'], examples: ['my-profile'] },
});
