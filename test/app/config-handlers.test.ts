import { beforeEach, describe, expect, it } from 'vitest';
import { CONFIG_KEYS, type ConfigKey } from '../../src/api/config.ts';
import { Guardrails } from '../../src/core/guard-policy.ts';
import { BUILTIN_PROFILE_NAMES } from '../../src/core/profile.ts';
import { makeService, type TestCaller, type TestService } from './service.ts';

let service: TestService;
let admin: TestCaller;
beforeEach(async () => {
  service = makeService();
  admin = await service.caller('acme');
  await admin.call('_cleveragents/project/create', { name: 'web' });
  await admin.call('_cleveragents/action/add', {
    action: { name: 'tidy', description: 'Tidies', actor: 'scripted/commands' },
  });
  await admin.call('_cleveragents/profile/add', { profile: { name: 'acme/strict' } });
});

/** How much of a trail is shown is a setting beside the guardrails, and limits no plan. */
const GUARDRAIL_KEYS = Object.keys(CONFIG_KEYS).filter((key) => key.startsWith('guardrails.') && key !== 'guardrails.audit_max_entries');

const get = (key: ConfigKey, place: object = {}) => admin.call('_cleveragents/config/get', { key, ...place });
const set = (key: ConfigKey, value: unknown, place: object = {}) =>
  admin.call('_cleveragents/config/set', { key, value: value as string, ...place });
const refusedSet = (key: string, value: unknown, place: object = {}) =>
  admin.refused('_cleveragents/config/set', { key: key as ConfigKey, value: value as string, ...place });

describe('config', () => {
  it.each<[ConfigKey, unknown]>([
    ['core.automation-profile', 'cautious'],
    ['core.default-action', 'tidy'],
    ['core.default-project', 'web'],
    ['approvals.separate_requester', false],
    ['approvals.require_digest', true],
    ['guardrails.max_steps', 0],
    ['guardrails.tool_budget', 0.25],
    ['guardrails.max_wall_clock_seconds', 1.5],
    ['guardrails.tool_allowlist', []],
    ['guardrails.tool_denylist', ['shell_*']],
    ['guardrails.require_approval_for_writes', true],
    ['guardrails.actor_limits.max_retries_per_failure', 1],
    ['guardrails.required_confirmations', ['delete_file']],
    ['core.automation-profile', 'acme/strict'],
    ['sandbox.strategy', 'none'],
    ['approvals.task_state', 'auth-required'],
    ['sandbox.checkpoint.enabled', false],
  ])('%s can be set, read, listed and removed', async (key, value) => {
    const { fallback, meaning } = CONFIG_KEYS[key];
    const unset = { scope: 'org', project: null, key, value: fallback, is_default: true, meaning };
    expect(await get(key)).toEqual(unset);
    expect(await set(key, value)).toEqual({ ...unset, value, is_default: false });
    expect(await get(key)).toMatchObject({ value, is_default: false });
    const { settings } = await admin.call('_cleveragents/config/list', {});
    expect(settings.find((setting) => setting.key === key)).toMatchObject({ value, is_default: false });
    expect(await set(key, null)).toEqual(unset);
    expect(await get(key)).toEqual(unset);
  });

  it('lists every key with its meaning, set or not', async () => {
    const { settings } = await admin.call('_cleveragents/config/list', {});
    expect(settings.map(({ key }) => key)).toEqual(Object.keys(CONFIG_KEYS));
    expect(settings.every(({ meaning }) => meaning.length > 10)).toBe(true);
  });

  it('keeps a project apart from the org, and lists what a project can have', async () => {
    const place = { scope: 'project', project: 'web' } as const;
    await set('core.automation-profile', 'auto', place);
    expect(await get('core.automation-profile', place)).toMatchObject({ scope: 'project', project: 'web', value: 'auto' });
    expect(await get('core.automation-profile')).toMatchObject({ value: null, is_default: true });
    const { settings } = await admin.call('_cleveragents/config/list', place);
    expect(settings.filter(({ is_default: isDefault }) => !isDefault).map(({ key, value }) => [key, value])).toEqual([
      ['core.automation-profile', 'auto'],
    ]);
    const own = ['core.automation-profile', 'sandbox.strategy', 'sandbox.checkpoint.enabled', 'approvals.task_state'];
    expect(settings.map(({ key }) => key)).toEqual([...own, ...GUARDRAIL_KEYS]);
  });

  it.each<[string, unknown, readonly string[]]>([
    ['core.automation-profile', 'yolo', BUILTIN_PROFILE_NAMES],
    ['core.automation-profile', 'Manual', BUILTIN_PROFILE_NAMES],
    ['core.default-action', 'nothing', ['nothing']],
    ['core.default-project', 'nothing', ['nothing']],
    ['approvals.separate_requester', 'yes', ['true or false']],
    ['sandbox.strategy', 'None', ['workspace', 'none']],
    ['approvals.task_state', 'working', ['input-required', 'auth-required']],
    ['sandbox.strategy', false, ['workspace', 'none']],
    ['sandbox.checkpoint.enabled', 'off', ['true or false']],
  ])('%s does not take %j, and says what it takes', async (key, value, words) => {
    const refusal = await refusedSet(key, value);
    expect(refusal).toMatchObject({ kind: 'invalid', issues: [{ field: 'value' }] });
    for (const word of words) expect(refusal.message).toContain(word);
    expect(await get(key as ConfigKey)).toMatchObject({ is_default: true });
  });

  it('has one setting for each guardrail, and none besides', () => {
    const { actor_limits: limits, ...flat } = Guardrails.shape;
    const nested = Object.keys(limits.unwrap().shape).map((name) => `actor_limits.${name}`);
    expect(GUARDRAIL_KEYS.toSorted()).toEqual([...Object.keys(flat), ...nested].map((name) => `guardrails.${name}`).toSorted());
  });

  it.each<[string, unknown, string]>([
    ['guardrails.max_steps', -1, 'value'],
    ['guardrails.max_steps', 1.5, 'value'],
    ['guardrails.max_steps', '3', 'value'],
    ['guardrails.tool_budget', -0.01, 'value'],
    ['guardrails.tool_budget', { usd: 1 }, 'value'],
    ['guardrails.max_total_cost', '1', 'value'],
    ['guardrails.max_wall_clock_seconds', -1, 'value'],
    ['guardrails.tool_allowlist', ['', '  '], 'value.0'],
    ['guardrails.tool_denylist', ['a', 5], 'value.1'],
    ['guardrails.tool_denylist', 'shell', 'value'],
    ['guardrails.tool_denylist', Array.from({ length: 900 }, (_, n) => `a-rather-long-name-${n}`), 'value'],
    ['guardrails.require_approval_for_apply', 1, 'value'],
    ['guardrails.required_confirmations', ['\u200b'], 'value.0'],
    ['guardrails.actor_limits.max_retries_per_failure', 0.5, 'value'],
  ])('%s does not take %j, and the field is %s', async (key, value, field) => {
    const refusal = await refusedSet(key, value);
    expect(refusal).toMatchObject({ kind: 'invalid' });
    expect(refusal.kind === 'invalid' && refusal.issues[0]?.field).toBe(field);
    expect(await get(key as ConfigKey)).toMatchObject({ is_default: true, value: null });
  });

  it.each(['core.colour', 'sandbox', 'sandbox.checkpoint', 'guardrails.step_count', 'guardrails.actor_limits', '__proto__', ''])(
    'refuses the key %j by its field, and names those that exist',
    async (key) => {
      const refusal = await refusedSet(key, 'none');
      expect(refusal).toMatchObject({ kind: 'invalid', issues: [{ field: 'key' }] });
      expect(refusal.message).toContain('core.default-action');
    },
  );

  it.each<[string, object, string]>([
    ['a project without its name', { scope: 'project' }, 'project'],
    ['a name without the scope', { project: 'web' }, 'project'],
    ["a key that is the org's only", { scope: 'project', project: 'web', key: 'core.default-action' }, 'scope'],
  ])('refuses %s', async (_what, place, field) => {
    const refusal = await admin.refused('_cleveragents/config/get', { key: 'core.automation-profile', ...place });
    expect(refusal).toMatchObject({ kind: 'invalid', issues: [{ field }] });
  });

  it('knows no settings of an unknown project', async () => {
    const place = { scope: 'project', project: 'nope' } as const;
    const expected = { kind: 'not_found', entity: 'project', details: { project: 'nope' } };
    expect(await admin.refused('_cleveragents/config/get', { key: 'core.automation-profile', ...place })).toMatchObject(expected);
    expect(await refusedSet('core.automation-profile', 'auto', place)).toMatchObject(expected);
    expect(await admin.refused('_cleveragents/config/list', place)).toMatchObject(expected);
    expect((await service.services.config.list('acme', 'project:nope')).size).toBe(0);
  });

  it('is read by viewers and changed by admins', async () => {
    const viewer = await service.caller('acme', { roles: ['viewer'] });
    await viewer.call('_cleveragents/config/list', {});
    const change = { key: 'approvals.require_digest', value: true } as const;
    expect(await viewer.refused('_cleveragents/config/set', change)).toMatchObject({ kind: 'forbidden' });
  });
});
