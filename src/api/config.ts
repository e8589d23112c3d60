import * as z from 'zod';
import { GUARDRAIL_SETTINGS, type GuardrailSetting } from '../core/guardrail-settings.ts';
import { DEFAULT_RETENTION_DAYS } from '../core/plan/external/external.ts';
import { APPROVAL_TASK_STATES } from '../core/plan/task-state.ts';
import { DEFAULT_SANDBOX, SANDBOX_STRATEGIES } from '../core/sandbox.ts';
import { sentenceOf } from '../core/schema-issues.ts';
import { guardrailParams } from './guardrail-params.ts';
import { COMMON_ERRORS, defineOperation } from './operation.ts';
import { jsonValue, nameReference, nextPageToken, optional } from './schemas.ts';

export const CONFIG_SCOPES = ['org', 'project'] as const;
export type ConfigScope = (typeof CONFIG_SCOPES)[number];

interface ConfigKeyRow {
  readonly meaning: string;
  readonly value: z.ZodType;
  readonly scopes: readonly ConfigScope[];
  /** What holds when nothing is set; null = no value. */
  readonly fallback: string | boolean | number | null;
}

/** Longest value, as JSON: what a setting says can be locked into every plan. */
const MAX_VALUE_CHARACTERS = 8 * 1024;

/**
 * `guardrails.<member>` for every member of the guardrails, for the org and for a project. They tighten every plan below and combine like
 * any other source; unlike the org's policy floor, an approval can do about them what it can do about a plan's own.
 */
const guardrailKeys = Object.fromEntries(
  GUARDRAIL_SETTINGS.map((name): [string, ConfigKeyRow] => {
    const value = guardrailSchema(name);
    const meaning = `${value.meta()?.description ?? name}, for every plan`;
    return [`guardrails.${name}`, { meaning, value, scopes: ['org', 'project'], fallback: null }];
  }),
) as unknown as Record<`guardrails.${GuardrailSetting}`, ConfigKeyRow>;

function guardrailSchema(name: GuardrailSetting): z.ZodType {
  const { actor_limits: limits, ...flat } = guardrailParams.shape;
  switch (name) {
    case 'actor_limits.max_tool_calls_per_invocation':
      return limits.unwrap().shape.max_tool_calls_per_invocation;
    case 'actor_limits.max_retries_per_failure':
      return limits.unwrap().shape.max_retries_per_failure;
    default:
      return flat[name];
  }
}

/** The closed list of settings. A key that is not here is refused by name (design sections 9, 11 and 12). */
export const CONFIG_KEYS = {
  'core.automation-profile': {
    meaning:
      'Automation profile of plans whose call and action name none: a default, which binds nobody who names another; what binds everybody is the policy floor of the org (org/policy)',
    value: nameReference,
    scopes: ['org', 'project'],
    fallback: null,
  },
  'core.default-action': { meaning: 'Action of messages that name none', value: nameReference, scopes: ['org'], fallback: null },
  'core.default-project': { meaning: 'Project of plans that name none', value: nameReference, scopes: ['org'], fallback: null },
  'core.external-plan-retention-days': {
    meaning: 'Days without any call or answer after which a plan of an executor outside ends by itself; locked when it is opened',
    value: z.int('must be a whole number of days').min(1, 'must be at least 1').max(3650, 'must be at most 3650'),
    scopes: ['org'],
    fallback: DEFAULT_RETENTION_DAYS,
  },
  'approvals.separate_requester': {
    meaning: 'Who started a plan may not approve it; unset = on as soon as the org has two approvers',
    value: z.boolean('must be true or false'),
    scopes: ['org'],
    fallback: null,
  },
  'approvals.require_digest': {
    meaning: 'Decisions, execute and apply must carry the digest of what was shown',
    value: z.boolean('must be true or false'),
    scopes: ['org'],
    fallback: false,
  },
  'sandbox.strategy': {
    meaning:
      "workspace: a plan's changes wait in it until they are applied; none: each write goes to the project's head at once; locked when a plan is made",
    value: z.enum(SANDBOX_STRATEGIES, `must be one of ${SANDBOX_STRATEGIES.join(', ')}`),
    scopes: ['org', 'project'],
    fallback: DEFAULT_SANDBOX.strategy,
  },
  'sandbox.checkpoint.enabled': {
    meaning: 'A checkpoint is recorded with each authorised write of a plan; locked when a plan is made',
    value: z.boolean('must be true or false'),
    scopes: ['org', 'project'],
    fallback: DEFAULT_SANDBOX.checkpointsEnabled,
  },
  'approvals.task_state': {
    meaning: 'What a task is called while its plan waits for nothing but approvals; locked when a plan is made',
    value: z.enum(APPROVAL_TASK_STATES, `must be one of ${APPROVAL_TASK_STATES.join(', ')}`),
    scopes: ['org', 'project'],
    fallback: 'input-required',
  },
  'guardrails.audit_max_entries': {
    meaning: 'Newest entries of a plan that plan/guard/audit shows; all are kept in the database and in exports',
    value: z.int('must be a whole number').min(1, 'must be at least 1').max(1_000_000, 'must be at most 1000000'),
    scopes: ['org'],
    fallback: 10_000,
  },
  ...guardrailKeys,
} as const satisfies Record<string, ConfigKeyRow>;
export type ConfigKey = keyof typeof CONFIG_KEYS;

const CONFIG_KEY_NAMES = Object.keys(CONFIG_KEYS) as [ConfigKey, ...ConfigKey[]];

const scope = z.enum(CONFIG_SCOPES, 'must be org or project').default('org').meta({ description: 'Where the setting holds' });
const project = optional(nameReference.meta({ description: 'Required with scope project' }));
const key = z.enum(CONFIG_KEY_NAMES, `must be one of ${CONFIG_KEY_NAMES.join(', ')}`).meta({ description: 'Name of the setting' });

interface Scoped {
  readonly scope: ConfigScope;
  readonly project?: string;
}

function checkScope(value: Scoped, context: z.RefinementCtx): void {
  if (value.scope === 'project' && value.project === undefined) {
    context.addIssue({ code: 'custom', path: ['project'], message: 'is required with scope project' });
  }
  if (value.scope === 'org' && value.project !== undefined) {
    context.addIssue({ code: 'custom', path: ['project'], message: 'needs scope project' });
  }
}

function checkKeyScope(value: Scoped & { readonly key: ConfigKey }, context: z.RefinementCtx): void {
  const scopes: readonly ConfigScope[] = CONFIG_KEYS[value.key].scopes;
  if (!scopes.includes(value.scope)) {
    context.addIssue({ code: 'custom', path: ['scope'], message: `${value.key} can be set for: ${scopes.join(', ')}` });
  }
}

export const configEntryView = z.object({
  scope: z.enum(CONFIG_SCOPES),
  project: z.string().nullable(),
  key: z.string(),
  value: jsonValue,
  is_default: z.boolean(),
  meaning: z.string(),
});
export type ConfigEntryView = z.output<typeof configEntryView>;

export const configGet = defineOperation({
  name: '_cleveragents/config/get',
  summary: 'One setting',
  role: 'viewer',
  params: z.strictObject({ scope, project, key }).superRefine((value, context) => {
    checkScope(value, context);
    checkKeyScope(value, context);
  }),
  result: configEntryView,
  errors: [...COMMON_ERRORS, 'not_found'],
  idempotent: true,
  cli: { command: ['config', 'get'], positional: ['key'] },
});

export const configSet = defineOperation({
  name: '_cleveragents/config/set',
  change: {
    type: 'configuration_changed',
    subject: ['scope', 'project', 'key'],
    shownBy: '_cleveragents/config/get',
    recorded: ['value', 'is_default'],
  },
  summary: 'Change one setting; null removes it',
  role: 'admin',
  humanOnly: true,
  freshKey: true,
  params: z
    .strictObject({ scope, project, key, value: jsonValue.meta({ description: 'The value; null removes the setting' }) })
    .superRefine((value, context) => {
      checkScope(value, context);
      checkKeyScope(value, context);
      if (value.value === null) return;
      const checked = CONFIG_KEYS[value.key].value.safeParse(value.value);
      if (!checked.success) {
        for (const issue of checked.error.issues)
          context.addIssue({ code: 'custom', path: ['value', ...issue.path], message: sentenceOf(issue) });
      } else if ((JSON.stringify(value.value) ?? '').length > MAX_VALUE_CHARACTERS) {
        context.addIssue({ code: 'custom', path: ['value'], message: `must have at most ${MAX_VALUE_CHARACTERS} characters` });
      }
    }),
  result: configEntryView,
  errors: [...COMMON_ERRORS, 'not_found'],
  idempotent: true,
  cli: { command: ['config', 'set'], positional: ['key', 'value'], examples: ['core.automation-profile supervised'] },
});

export const configList = defineOperation({
  name: '_cleveragents/config/list',
  summary: 'All settings with their values and meanings',
  role: 'viewer',
  params: z.strictObject({ scope, project }).superRefine(checkScope),
  result: z.object({ settings: z.array(configEntryView), next_page_token: nextPageToken }),
  errors: [...COMMON_ERRORS, 'not_found'],
  idempotent: true,
  cli: { command: ['config', 'list'] },
});
