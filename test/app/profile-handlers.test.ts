import { beforeEach, describe, expect, it } from 'vitest';
import { digestOf } from '../../src/core/digest.ts';
import { BUILTIN_PROFILE_NAMES, THRESHOLD_NAMES, THRESHOLDS } from '../../src/core/profile.ts';
import type { FieldIssue, Refusal } from '../../src/core/refusal.ts';
import { sha256 } from '../../src/objects/sha256.ts';
import { makeMemoryNames } from '../../src/storage/memory/registry.ts';
import { makeService, type TestCaller, type TestService } from './service.ts';

let service: TestService;
let admin: TestCaller;
beforeEach(async () => {
  service = makeService();
  admin = await service.caller('acme');
});

const ADD = '_cleveragents/profile/add';
const UPDATE = '_cleveragents/profile/update';
const DELETE = '_cleveragents/profile/delete';
const add = (profile: object) => admin.call(ADD, { profile: profile as Record<string, never> });
const addYaml = (yaml: string) => admin.call(ADD, { yaml });
const refusedAdd = (profile: object) => admin.refused(ADD, { profile: profile as Record<string, never> });
const show = (name: string) => admin.call('_cleveragents/profile/show', { name });
const names = async () => (await admin.call('_cleveragents/profile/list', {})).profiles.map(({ name }) => name);
const FIX = { name: 'fix', description: 'Fixes', actor: 'scripted/steps', execute: [{ say: 'done' }] };
const noCall = async (): Promise<void> => {};
const later = () => {
  service.clock.ms += 1000;
};
function issuesOf(refusal: Refusal): readonly FieldIssue[] {
  if (refusal.kind !== 'invalid') throw new Error(`was refused as ${refusal.kind}`);
  return refusal.issues;
}
const fieldsOf = (refusal: Refusal) => issuesOf(refusal).map(({ field }) => field);

describe('profile/add', () => {
  it('stores a complete document, marks what nobody gave, and answers what show answers', async () => {
    const added = await add({ name: 'strict', edit_code: 0.5, max_cost_per_plan: 2, guards: { tool_denylist: ['shell_*'] } });
    expect(added).toMatchObject({ name: 'strict', built_in: false, version: 1, unattended: false, created_at: '2026-11-30T12:00:00.000Z' });
    expect(added.safety).toEqual({
      require_sandbox: true,
      require_checkpoints: true,
      allow_unsafe_tools: false,
      require_human_approval: false,
      allowed_skill_categories: [],
      max_cost_per_plan: 2,
      max_total_cost: null,
      max_retries_per_step: 3,
      tainted_write_hosts: [],
    });
    expect(added.guard).toMatchObject({ tool_denylist: ['shell_*'], max_total_cost: null });
    expect(added.document).not.toHaveProperty('guards');
    expect(added.digest).toBe(digestOf(sha256, added.document));
    expect(await show('strict')).toEqual(added);
  });

  it('prints exactly the eleven thresholds, each with its meaning, and says which are defaults', async () => {
    const { thresholds } = await add({ name: 'strict', edit_code: 0.5 });
    expect(thresholds).toEqual(
      THRESHOLD_NAMES.map((name) => ({
        name,
        value: name === 'edit_code' ? 0.5 : 1,
        meaning: THRESHOLDS[name],
        ...(name === 'edit_code' ? {} : { is_default: true }),
      })),
    );
    const other = await add({ name: 'other', extends: 'auto' });
    expect(other.thresholds.some((each) => each.is_default === true)).toBe(false);
    // The flags stand apart from them, each under its own name.
    expect(Object.keys(other.safety).sort()).toEqual([
      'allow_unsafe_tools',
      'allowed_skill_categories',
      'max_cost_per_plan',
      'max_retries_per_step',
      'max_total_cost',
      'require_checkpoints',
      'require_human_approval',
      'require_sandbox',
      'tainted_write_hosts',
    ]);
  });

  it('means the same by safety nested and at top level, by guard and guards, by object, YAML and JSON text', async () => {
    const nested = { safety: { require_sandbox: true, max_cost_per_plan: 2 }, guard: { max_total_cost: 5 } };
    const first = await add({ name: 'p', ...nested });
    const same = [
      { profile: { name: 'p', ...nested.safety, guards: nested.guard } },
      { yaml: 'name: p\nrequire_sandbox: true\nsafety:\n  max_cost_per_plan: 2.00\nguards:\n  max_total_cost: 5\n' },
      { yaml: JSON.stringify({ name: 'p', ...nested }) },
    ];
    for (const params of same) {
      await admin.call(DELETE, { name: 'p' });
      expect((await admin.call(ADD, params)).document).toEqual(first.document);
    }
  });

  it.each(['strict-ci', 'acme/ci', 'srv1:acme/ci'])('takes the name %s, and finds it again', async (name) => {
    await add({ name });
    expect((await show(name)).name).toBe(name);
  });

  it.each(['a//b', '/x', 'x/', 'a b', '', 'a:b', 'ｃi'])('does not take the name %j', async (name) => {
    expect(fieldsOf(await refusedAdd({ name }))).toEqual(['profile.name']);
    expect(fieldsOf(await admin.refused(ADD, { yaml: `name: ${JSON.stringify(name)}` }))).toEqual(['yaml.name']);
  });

  it.each([...BUILTIN_PROFILE_NAMES, 'Manual'])('does not take the reserved name %s', async (name) => {
    const refusal = await refusedAdd({ name });
    expect(fieldsOf(refusal)).toEqual(['profile.name']);
    expect(refusal.message).toContain('reserved');
  });

  it('refuses a name that is taken, and keeps the first', async () => {
    const first = await add({ name: 'strict', edit_code: 0.5 });
    expect(await refusedAdd({ name: 'strict', edit_code: 0 })).toMatchObject({ kind: 'already_exists', entity: 'profile', id: 'strict' });
    expect(await show('strict')).toEqual(first);
  });

  it('gives the name to one of two that come at the same instant', async () => {
    const both = await Promise.allSettled([add({ name: 'p', edit_code: 0.1 }), add({ name: 'p', edit_code: 0.2 })]);
    expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    expect((await service.services.profiles.versions('acme', 'p')).length).toBe(1);
  });

  // Every validation of the source's constraints and of the decisions beside them. The object is asked first, then the same as text.
  it.each<[string, object, string]>([
    ['a threshold below 0', { edit_code: -0.1 }, 'edit_code'],
    ['a threshold above 1', { edit_code: 1.1 }, 'edit_code'],
    ['a threshold in percent', { edit_code: 80 }, 'edit_code'],
    ['a threshold as text', { edit_code: '0.9' }, 'edit_code'],
    ['a threshold that is null', { edit_code: null }, 'edit_code'],
    ['an unknown field', { edit_coed: 1 }, 'edit_coed'],
    ['an unknown safety field', { safety: { sandbox: true } }, 'safety.sandbox'],
    ['an unknown guard field', { guard: { denylist: [] } }, 'guard.denylist'],
    ['a contradiction between top level and safety', { require_sandbox: true, safety: { require_sandbox: false } }, 'require_sandbox'],
    ['a contradiction between guard and guards', { guard: { max_total_cost: 1 }, guards: { max_total_cost: 2 } }, 'guards'],
    ['blank entries in an allowlist', { guard: { tool_allowlist: ['', '  '] } }, 'guard.tool_allowlist.0'],
    ['an entry that is no text', { guard: { tool_denylist: ['a', 5] } }, 'guard.tool_denylist.1'],
    ['a negative cap', { safety: { max_cost_per_plan: -1 } }, 'safety.max_cost_per_plan'],
    ['a plan cap above the total cap', { max_cost_per_plan: 5, max_total_cost: 4 }, 'safety.max_cost_per_plan'],
    ['a limit with a fraction', { guard: { max_tool_calls_per_step: 1.5 } }, 'guard.max_tool_calls_per_step'],
    ['no sandbox while the strategy is workspace', { require_sandbox: false }, 'safety.require_sandbox'],
    ['no checkpoints while they are enabled', { safety: { require_checkpoints: false } }, 'safety.require_checkpoints'],
    ['an unknown base', { extends: 'balancd' }, 'extends'],
    ['itself as its base', { extends: 'mine' }, 'extends'],
    ['unattended without ci', { unattended: true }, 'unattended'],
  ])('refuses %s by its field, and in a text by its line', async (_what, rest, field) => {
    expect(fieldsOf(await refusedAdd({ name: 'mine', ...rest }))).toEqual([`profile.${field}`]);
    const text = Object.entries(rest).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
    const issues = issuesOf(await admin.refused(ADD, { yaml: ['name: mine', '# a comment', ...text].join('\n') }));
    expect(issues.map((issue) => issue.field)).toEqual([`yaml.${field}`]);
    const last = Object.keys(rest).findIndex((name) => [field, field.split('.')[0], field.split('.')[1]].includes(name));
    expect(issues[0]?.message).toMatch(new RegExp(`^line ${3 + last}: `));
    expect(await names()).toEqual([...BUILTIN_PROFILE_NAMES]);
  });

  it('judges the two constraints by the sandbox of the org', async () => {
    await admin.call('_cleveragents/config/set', { key: 'sandbox.strategy', value: 'none' });
    await admin.call('_cleveragents/config/set', { key: 'sandbox.checkpoint.enabled', value: false });
    const { safety } = await add({ name: 'free', extends: 'full-auto' });
    expect(safety).toMatchObject({ require_sandbox: false, require_checkpoints: false, allow_unsafe_tools: true });
    const other = await service.caller('other');
    expect(fieldsOf(await other.refused(ADD, { profile: { name: 'free', extends: 'full-auto' } }))).toEqual([
      'profile.safety.require_sandbox',
      'profile.safety.require_checkpoints',
    ]);
  });

  it('names every field that is wrong at once, with its line', async () => {
    const issues = issuesOf(await admin.refused(ADD, { yaml: 'name: a b\nedit_code: 2\ncolour: red\n' }));
    expect(issues.map(({ field, message }) => [field, message.slice(0, 7)]).toSorted()).toEqual([
      ['yaml.colour', 'line 3:'],
      ['yaml.edit_code', 'line 2:'],
      ['yaml.name', 'line 1:'],
    ]);
  });

  it('refuses text that is no YAML, by its line', async () => {
    expect(issuesOf(await admin.refused(ADD, { yaml: 'name: a\nguard: [x' }))[0]).toMatchObject({
      field: 'yaml',
      message: expect.stringMatching(/^line 2: /),
    });
    expect(fieldsOf(await admin.refused(ADD, { yaml: '- a\n- b' }))).toEqual(['yaml']);
    expect(fieldsOf(await admin.refused(ADD, { yaml: '# nothing' }))).toEqual(['yaml']);
    expect(await admin.refused(ADD, { yaml: `# ${'x'.repeat(70_000)}` })).toMatchObject({ kind: 'too_large' });
  });

  it.each<[string, object]>([
    ['neither form', {}],
    ['both forms', { profile: { name: 'a' }, yaml: 'name: a' }],
  ])('wants the profile once: refuses %s', async (_what, params) => {
    expect((await admin.refused(ADD, params)).message).toContain('give the profile once');
  });
});

describe('extends', () => {
  it('takes from a built-in or an own profile what is missing; ci brings that nobody answers', async () => {
    await add({ name: 'base/ci', extends: 'ci', select_tool: 0.4, guard: { tool_denylist: ['x'] } });
    const derived = await add({ name: 'derived', extends: 'base/ci', edit_code: 0.9 });
    expect(derived).toMatchObject({ unattended: true, document: { select_tool: 0.4, edit_code: 0.9, guard: { tool_denylist: ['x'] } } });
  });

  it('is followed once: later changes of the base change nothing, and two may have come from each other', async () => {
    await add({ name: 'base', extends: 'auto' });
    const derived = await add({ name: 'derived', extends: 'base' });
    await admin.call(UPDATE, { name: 'base', profile: { extends: 'derived', edit_code: 1 } });
    expect(await show('derived')).toEqual(derived);
    // Each is named by the other, until one of them stands alone.
    for (const name of ['base', 'derived']) expect(await admin.refused(DELETE, { name })).toMatchObject({ kind: 'invalid_state' });
    await admin.call(UPDATE, { name: 'base', profile: { edit_code: 1 } });
    expect(await admin.call(DELETE, { name: 'derived' })).toMatchObject({ deleted: true });
    expect(await admin.call(DELETE, { name: 'base' })).toMatchObject({ deleted: true });
  });

  it('of an unknown name lists the valid ones, the own ones too, and never those of others', async () => {
    await add({ name: 'acme/own' });
    const other = await service.caller('other');
    await other.call(ADD, { profile: { name: 'theirs' } });
    const { message } = await refusedAdd({ name: 'mine', extends: 'theirs' });
    for (const name of [...BUILTIN_PROFILE_NAMES, 'acme/own']) expect(message).toContain(name);
    expect(message.split('valid names:')[1]).not.toContain('theirs');
  });
});

describe('profile/update', () => {
  it('replaces the whole document with the next version, and keeps the earlier ones', async () => {
    const first = await add({ name: 'p', edit_code: 0.5, guard: { tool_denylist: ['x'] } });
    later();
    const second = await admin.call(UPDATE, { name: 'p', yaml: 'select_tool: 0.25\n' });
    expect(second).toMatchObject({ version: 2, guard: null, created_at: first.created_at, updated_at: '2026-11-30T12:00:01.000Z' });
    expect(second.document).toMatchObject({ name: 'p', edit_code: 1, select_tool: 0.25 });
    expect(second.digest).not.toBe(first.digest);
    const versions = await service.services.profiles.versions('acme', 'p');
    expect(versions.map(({ version, document, savedBy }) => [version, document, savedBy])).toEqual([
      [1, first.document, admin.principal.keyId],
      [2, second.document, admin.principal.keyId],
    ]);
  });

  it('cannot rename, and cannot make a profile its own base', async () => {
    const before = await add({ name: 'p' });
    expect(fieldsOf(await admin.refused(UPDATE, { name: 'p', profile: { name: 'q' } }))).toEqual(['profile.name']);
    expect(fieldsOf(await admin.refused(UPDATE, { name: 'p', profile: { extends: 'p' } }))).toEqual(['profile.extends']);
    expect(issuesOf(await admin.refused(UPDATE, { name: 'p', yaml: 'edit_code: 1\nname: q' }))[0]?.message).toMatch(/^line 2: /);
    expect(await show('p')).toEqual(before);
  });

  it('that empties an allowlist allows nothing, not everything', async () => {
    await add({ name: 'p', guard: { tool_allowlist: ['read_file'] } });
    expect((await admin.call(UPDATE, { name: 'p', profile: { guard: { tool_allowlist: [] } } })).guard).toMatchObject({
      tool_allowlist: [],
    });
  });

  it('of two at the same instant takes one and refuses the other', async () => {
    await add({ name: 'p' });
    const update = (value: number) => admin.call(UPDATE, { name: 'p', profile: { edit_code: value } });
    const both = await Promise.allSettled([update(0.1), update(0.2)]);
    expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    expect((await show('p')).version).toBe(2);
  });
});

describe('profile/delete', () => {
  it('takes the name away; added again, it goes on counting', async () => {
    await add({ name: 'p', edit_code: 0.5 });
    expect(await admin.call(DELETE, { name: 'p' })).toEqual({ name: 'p', deleted: true, version: 2 });
    expect(await names()).toEqual([...BUILTIN_PROFILE_NAMES]);
    expect(await admin.refused('_cleveragents/profile/show', { name: 'p' })).toMatchObject({ kind: 'not_found' });
    expect(await admin.refused(DELETE, { name: 'p' })).toMatchObject({ kind: 'not_found' });
    expect(await admin.refused(UPDATE, { name: 'p', profile: {} })).toMatchObject({ kind: 'not_found' });
    later();
    expect(await add({ name: 'p' })).toMatchObject({ version: 3, created_at: '2026-11-30T12:00:01.000Z' });
  });

  it('is refused while a setting or an action names it, says which, and changes nothing', async () => {
    await add({ name: 'p', edit_code: 0.5 });
    await admin.call('_cleveragents/project/create', { name: 'web' });
    const config = (value: string | null, project?: string) =>
      admin.call('_cleveragents/config/set', {
        ...(project === undefined ? { scope: 'org' as const } : { scope: 'project' as const, project }),
        key: 'core.automation-profile',
        value,
      });
    await config('p');
    await config('p', 'web');
    expect(await admin.refused(DELETE, { name: 'p' })).toEqual({
      kind: 'invalid_state',
      message:
        "profile 'p' is named by core.automation-profile of the org, core.automation-profile of the project 'web'; first set another value there, or null",
      details: { profile_name: 'p', actions: [], settings: ['org', 'project:web'], profiles: [] },
    });
    await config(null);
    await config('auto', 'web');
    await admin.call('_cleveragents/action/add', {
      action: { ...FIX, automation_profile: 'p' },
    });
    expect(await admin.refused(DELETE, { name: 'p' })).toMatchObject({
      message:
        "profile 'p' is named by the action 'fix'; an action keeps the profile that it was added with, so update this one instead of deleting it",
      details: { actions: ['fix'], settings: [] },
    });
    expect(await show('p')).toMatchObject({ version: 1 });
  });

  it('is refused while another profile extends it, which could not be saved again as it is shown', async () => {
    await add({ name: 'base', edit_code: 0.5 });
    const made = await add({ name: 'own', extends: 'base' });
    expect(await admin.refused(DELETE, { name: 'base' })).toEqual({
      kind: 'invalid_state',
      message: "profile 'base' is named by the profile 'own', which extends it; first update or delete what extends it",
      details: { profile_name: 'base', actions: [], settings: [], profiles: ['own'] },
    });
    const { yaml = '' } = await admin.call('_cleveragents/profile/show', { name: 'own', yaml: true });
    expect((await admin.call(UPDATE, { name: 'own', yaml })).document).toEqual(made.document);
    await admin.call(UPDATE, { name: 'own', profile: { extends: 'auto' } });
    expect(await admin.call(DELETE, { name: 'base' })).toMatchObject({ deleted: true });
  });

  /** Another call comes through between what this one has looked at and what it stores. */
  describe('at the same moment as something comes to name it', () => {
    const base = makeMemoryNames();
    const between = { set: noCall, add: noCall, save: noCall };
    const config = {
      ...base.config,
      set: (...given: Parameters<typeof base.config.set>) => between.set().then(() => base.config.set(...given)),
    };
    const actions = {
      ...base.actions,
      add: (...given: Parameters<typeof base.actions.add>) => between.add().then(() => base.actions.add(...given)),
    };
    const profiles = {
      ...base.profiles,
      save: (...given: Parameters<typeof base.profiles.save>) => between.save().then(() => base.profiles.save(...given)),
    };
    const name = {
      setting: () => admin.call('_cleveragents/config/set', { scope: 'org', key: 'core.automation-profile', value: 'p' }),
      action: () => admin.call('_cleveragents/action/add', { action: { ...FIX, automation_profile: 'p' } }),
      profile: () => add({ name: 'own', extends: 'p' }),
    };
    let org = 0;
    beforeEach(async () => {
      Object.assign(between, { set: noCall, add: noCall, save: noCall });
      org += 1;
      admin = await makeService({ config, actions, profiles }).caller(`org${org}`);
      await add({ name: 'p' });
    });

    it.each(['setting', 'action', 'profile'] as const)('a %s that is stored first keeps it', async (kind) => {
      between.save = async () => {
        between.save = noCall;
        await name[kind]();
      };
      expect(await admin.refused(DELETE, { name: 'p' })).toMatchObject({
        kind: 'invalid_state',
        message: expect.stringMatching(/^profile 'p' is named by /),
      });
      expect(await show('p')).toMatchObject({ version: 1 });
    });

    it('a setting that is stored later is refused, and stored nowhere', async () => {
      between.set = async () => void (await admin.call(DELETE, { name: 'p' }));
      const refused = await admin.refused('_cleveragents/config/set', { scope: 'org', key: 'core.automation-profile', value: 'p' });
      expect(issuesOf(refused)).toMatchObject([
        { field: 'value', message: expect.stringMatching(/^no profile is named 'p'; valid names: /) },
      ]);
      expect(await admin.call('_cleveragents/config/get', { scope: 'org', key: 'core.automation-profile' })).toMatchObject({ value: null });
    });

    it('an action that is stored later is refused, and stored nowhere', async () => {
      between.add = async () => void (await admin.call(DELETE, { name: 'p' }));
      const refused = await admin.refused('_cleveragents/action/add', { action: { ...FIX, automation_profile: 'p' } });
      expect(issuesOf(refused)).toMatchObject([
        { field: 'action.automation_profile', message: expect.stringMatching(/^no profile is named 'p'; valid names: /) },
      ]);
      expect(await admin.refused('_cleveragents/action/show', { name: 'fix' })).toMatchObject({ kind: 'not_found' });
    });

    it.each(['added', 'updated'] as const)('a profile that is %s later, to extend it, is refused and stored nowhere', async (how) => {
      if (how === 'updated') await add({ name: 'own' });
      between.save = async () => {
        between.save = noCall;
        await admin.call(DELETE, { name: 'p' });
      };
      const profile = { name: 'own', extends: 'p' };
      const refused = how === 'added' ? await refusedAdd(profile) : await admin.refused(UPDATE, { name: 'own', profile });
      expect(issuesOf(refused)).toMatchObject([
        { field: 'profile.extends', message: expect.stringMatching(/^no profile is named "p"; valid names: /) },
      ]);
      if (how === 'updated')
        expect(await show('own')).toMatchObject({ version: 1, document: expect.not.objectContaining({ extends: 'p' }) });
      else expect(await admin.refused('_cleveragents/profile/show', { name: 'own' })).toMatchObject({ kind: 'not_found' });
    });
  });
});

describe('a profile that cannot be changed', () => {
  it.each([...BUILTIN_PROFILE_NAMES, 'AUTO'])('%s is neither updated nor deleted', async (name) => {
    expect(fieldsOf(await admin.refused(UPDATE, { name, profile: { edit_code: 0 } }))).toEqual(['name']);
    expect(fieldsOf(await admin.refused(DELETE, { name }))).toEqual(['name']);
  });

  it('an unknown one is not found, with the names there are', async () => {
    await add({ name: 'acme/own' });
    const refusals = [
      await admin.refused('_cleveragents/profile/show', { name: 'balancd' }),
      await admin.refused(UPDATE, { name: 'balancd', profile: {} }),
      await admin.refused(DELETE, { name: 'balancd' }),
    ];
    for (const refusal of refusals) {
      expect(refusal).toMatchObject({
        kind: 'not_found',
        details: { profile_name: 'balancd', valid_names: [...BUILTIN_PROFILE_NAMES, 'acme/own'] },
      });
    }
  });

  it.each(['__proto__', 'constructor', 'toString'])('%s is nothing', async (name) => {
    expect(await admin.refused('_cleveragents/profile/show', { name })).toMatchObject({ kind: 'not_found' });
  });
});

describe('profiles', () => {
  it('are listed with the built-in ones first, then by name', async () => {
    for (const name of ['b', 'a/z', 'c']) await add({ name });
    expect(await names()).toEqual([...BUILTIN_PROFILE_NAMES, 'a/z', 'b', 'c']);
  });

  it('show as YAML what add takes, so that a copy is the same profile', async () => {
    await add({
      name: 'p',
      description: 'yes: "no"\n# not a comment',
      extends: 'ci',
      edit_code: 0.5,
      guard: { tool_denylist: ['*', 'true', 'null', 'no', '*0x1'] },
    });
    const { yaml, ...shown } = await admin.call('_cleveragents/profile/show', { name: 'p', yaml: true });
    expect(shown).toEqual(await show('p'));
    const other = await service.caller('other');
    expect(await other.call(ADD, { yaml: yaml ?? '' })).toMatchObject({ digest: shown.digest });
  });

  it('that are built in show as YAML too', async () => {
    const { yaml } = await admin.call('_cleveragents/profile/show', { name: 'supervised', yaml: true });
    await addYaml((yaml ?? '').replace('name: supervised', 'name: mine'));
    expect((await show('mine')).document).toEqual({ ...(await show('supervised')).document, name: 'mine' });
  });

  it('are read by viewers and changed by admins only', async () => {
    const viewer = await service.caller('acme', { roles: ['viewer'] });
    await viewer.call('_cleveragents/profile/list', {});
    for (const roles of [['viewer'], ['operator'], ['approver']] as const) {
      const caller = await service.caller('acme', { roles });
      expect(await caller.refused(ADD, { profile: { name: 'p' } })).toMatchObject({ kind: 'forbidden' });
      expect(await caller.refused(UPDATE, { name: 'p', profile: {} })).toMatchObject({ kind: 'forbidden' });
      expect(await caller.refused(DELETE, { name: 'p' })).toMatchObject({ kind: 'forbidden' });
    }
    expect(await service.services.profiles.list('acme')).toEqual([]);
  });

  it('that no longer read do not hide the others, and say what is wrong when they are shown', async () => {
    await add({ name: 'good' });
    const at = '2026-01-01T00:00:00.000Z';
    const old = {
      org: 'acme',
      name: 'old',
      version: 1,
      document: { name: 'old', colour: 'red' },
      defaulted: [],
      createdAt: at,
      savedAt: at,
      savedBy: 'k',
    };
    await service.services.profiles.save(old);
    expect(await names()).toEqual([...BUILTIN_PROFILE_NAMES, 'good']);
    const refusal = await admin.refused('_cleveragents/profile/show', { name: 'old' });
    expect(refusal).toMatchObject({ kind: 'invalid' });
    expect(refusal.message).toContain("stored profile 'old'");
  });
});
