import { describe, expect, it } from 'vitest';
import { BUILTIN_PROFILES } from '../../../src/core/builtin-profiles.ts';
import {
  AutomationProfile,
  BUILTIN_PROFILE_NAMES,
  isReservedProfileName,
  type ParsedProfile,
  type ProfileContext,
  parseProfile,
  resolveProfile,
  THRESHOLD_NAMES,
} from '../../../src/core/profile.ts';
import type { FieldIssue } from '../../../src/core/refusal.ts';

const CONTEXT: ProfileContext = { lookup: (name) => BUILTIN_PROFILES.get(name) ?? null };

function accept(document: unknown, context: ProfileContext = CONTEXT): ParsedProfile {
  const parsed = parseProfile(document, context);
  if (!parsed.ok) throw new Error(parsed.error.message);
  return parsed.value;
}
function issuesOf(document: unknown, context: ProfileContext = CONTEXT): readonly FieldIssue[] {
  const parsed = parseProfile(document, context);
  if (parsed.ok) throw new Error('was accepted');
  if (parsed.error.kind !== 'invalid') throw new Error(`was refused as ${parsed.error.kind}`);
  return parsed.error.issues;
}
const fieldsOf = (document: unknown, context?: ProfileContext): readonly string[] =>
  issuesOf(document, context).map((issue) => issue.field);

describe('the eight built-in profiles', () => {
  // Columns: decompose, create, select, edit, execute, c_file, delete, network, install, modify, approve, sandbox, checkpoints, unsafe.
  const table = `
    manual     1  1  1 1  1  1  1  1  1  1  1  yes yes no
    review     0  1  1 0  .8 .8 .8 1  .8 0  .8 yes yes no
    supervised 0  .2 1 .2 .2 .2 .2 .2 .2 0  .2 yes yes no
    cautious   .7 .7 .7 .7 .7 .7 .7 .7 .7 .7 .7 yes yes no
    trusted    .3 .3 .3 .3 .3 .3 .3 .3 .3 .3 .3 yes yes no
    auto       0  0  0 0  0  0  0  0  0  0  0  yes yes no
    ci         0  0  0 0  0  0  0  0  0  0  0  yes yes no
    full-auto  0  0  0 0  0  0  0  0  0  0  0  no  no  yes`;
  const columns = [
    'decompose_task',
    'create_tool',
    'select_tool',
    'edit_code',
    'execute_command',
    'create_file',
    'delete_content',
    'access_network',
    'install_dependency',
    'modify_config',
    'approve_plan',
  ] as const;

  it.each(
    table
      .trim()
      .split('\n')
      .map((line) => line.trim().split(/\s+/)),
  )('%s is as in the table', (name = '', ...cells) => {
    const profile = BUILTIN_PROFILES.get(name);
    expect(columns.map((column) => profile?.[column])).toEqual(cells.slice(0, 11).map(Number));
    const { require_sandbox: sandbox, require_checkpoints: checkpoints, allow_unsafe_tools: unsafe } = profile?.safety ?? {};
    expect([sandbox, checkpoints, unsafe]).toEqual(cells.slice(11).map((cell) => cell === 'yes'));
    expect(profile?.unattended === true).toBe(name === 'ci');
    expect(profile?.description).toBeTruthy();
    expect(AutomationProfile.parse(profile)).toEqual(profile);
  });

  it('are these eight, in this order, and reserved however they are spelled', () => {
    expect([...BUILTIN_PROFILES.keys()]).toEqual([...BUILTIN_PROFILE_NAMES]);
    expect(BUILTIN_PROFILES.get('__proto__')).toBeUndefined();
    for (const name of BUILTIN_PROFILE_NAMES) expect(fieldsOf({ name })).toEqual(['name']);
    expect(fieldsOf({ name: 'Manual' })).toEqual(['name']);
    expect(isReservedProfileName('manual2')).toBe(false);
  });
});

describe('a profile document', () => {
  it('may leave everything out but its name: thresholds are 1.0 and named as defaults', () => {
    const { profile, defaulted } = accept({ name: 'mine' });
    expect(THRESHOLD_NAMES.map((name) => profile[name])).toEqual(THRESHOLD_NAMES.map(() => 1));
    expect(defaulted).toEqual([...THRESHOLD_NAMES]);
    expect(profile.safety).toEqual({
      require_sandbox: true,
      require_checkpoints: true,
      allow_unsafe_tools: false,
      require_human_approval: false,
      allowed_skill_categories: [],
      max_cost_per_plan: null,
      max_total_cost: null,
      max_retries_per_step: 3,
      tainted_write_hosts: [],
    });
    expect(profile.guard).toBeNull();
    expect(accept({ name: 'mine', edit_code: 0 }).defaulted).not.toContain('edit_code');
  });

  it('is accepted as the source writes it', () => {
    const { profile } = accept({
      name: 'strict-review',
      decompose_task: 0,
      create_tool: 0.8,
      select_tool: 1,
      edit_code: 0.9,
      execute_command: 1,
      safety: {
        require_sandbox: true,
        require_checkpoints: true,
        allow_unsafe_tools: false,
        require_human_approval: false,
        max_cost_per_plan: 5,
        max_retries_per_step: 2,
      },
      guard: {
        max_tool_calls_per_step: 15,
        max_total_cost: 5,
        tool_denylist: ['shell_exec', 'network_request'],
        require_approval_for_writes: true,
        require_approval_for_apply: true,
      },
    });
    expect(profile.guard).toMatchObject({ max_tool_calls_per_step: 15, tool_allowlist: null, require_approval_for_apply: true });
    expect(profile.safety.max_retries_per_step).toBe(2);
  });

  it('means the same with safety nested or at top level, with guard or guards, or both alike', () => {
    const safety = { require_sandbox: true, max_cost_per_plan: 2, allowed_skill_categories: ['a'] };
    const guard = { max_total_cost: 5 };
    const expected = accept({ name: 'mine', safety, guard });
    expect(accept({ name: 'mine', ...safety, guards: guard })).toEqual(expected);
    expect(accept({ name: 'mine', ...safety, safety, guard, guards: { ...guard } })).toEqual(expected);
  });

  it.each([
    [{ require_sandbox: true, safety: { require_sandbox: false } }, 'require_sandbox'],
    [{ max_cost_per_plan: 1, safety: { max_cost_per_plan: 2 } }, 'max_cost_per_plan'],
    [{ guard: { max_total_cost: 1 }, guards: { max_total_cost: 2 } }, 'guards'],
    [{ guard: null, guards: { max_total_cost: 2 } }, 'guards'],
  ])('is refused when it contradicts itself: %j', (document, field) => {
    expect(fieldsOf({ name: 'mine', ...document })).toEqual([field]);
  });

  it.each([
    [{ edit_code: -0.1 }, 'edit_code'],
    [{ edit_code: 1.01 }, 'edit_code'],
    [{ edit_code: 80 }, 'edit_code'],
    [{ edit_code: '0.9' }, 'edit_code'],
    [{ edit_code: null }, 'edit_code'],
    [{ edit_code: true }, 'edit_code'],
    [{ edit_code: Number.NaN }, 'edit_code'],
    [{ edit_coed: 0.5 }, 'edit_coed'],
    [{ constructor: 1 }, 'constructor'],
    [JSON.parse('{"__proto__":{"edit_code":0}}'), '__proto__'],
    [JSON.parse('{"safety":{"__proto__":{}}}'), 'safety.__proto__'],
    [{ safety: { require_sandboxes: true } }, 'safety.require_sandboxes'],
    [{ safety: { require_sandbox: 'yes' } }, 'safety.require_sandbox'],
    [{ safety: [] }, 'safety'],
    [{ safety: 'none' }, 'safety'],
    [{ guard: { tool_denylst: [] } }, 'guard.tool_denylst'],
    [{ guards: { max_tool_calls_per_step: 1.5 } }, 'guard.max_tool_calls_per_step'],
    [{ guard: { max_total_cost: -1 } }, 'guard.max_total_cost'],
    [{ guard: { max_total_cost: Number.POSITIVE_INFINITY } }, 'guard.max_total_cost'],
    [{ guard: { tool_allowlist: ['', '  '] } }, 'guard.tool_allowlist.0'],
    [{ guard: { tool_denylist: ['a', 5] } }, 'guard.tool_denylist.1'],
    [{ guard: 'strict' }, 'guard'],
    [{ safety: { allowed_skill_categories: [' '] } }, 'safety.allowed_skill_categories.0'],
    [{ safety: { tainted_write_hosts: ['a.test', ''] } }, 'safety.tainted_write_hosts.1'],
    [{ tainted_write_hosts: [' '] }, 'safety.tainted_write_hosts.0'],
    [{ safety: { tainted_write_hosts: ['*'] } }, 'safety.tainted_write_hosts.0'],
    [{ safety: { tainted_write_hosts: ['api*.example.com'] } }, 'safety.tainted_write_hosts.0'],
    [{ safety: { tainted_write_hosts: ['*example.com'] } }, 'safety.tainted_write_hosts.0'],
    [{ safety: { tainted_write_hosts: ['api.*'] } }, 'safety.tainted_write_hosts.0'],
    [{ safety: { tainted_write_hosts: ['https://a.test'] } }, 'safety.tainted_write_hosts.0'],
    [{ safety: { tainted_write_hosts: ['a.test:443'] } }, 'safety.tainted_write_hosts.0'],
    [{ safety: { tainted_write_hosts: ['A.test'] } }, 'safety.tainted_write_hosts.0'],
    [{ safety: { tainted_write_hosts: ['a.test.'] } }, 'safety.tainted_write_hosts.0'],
    [{ safety: { tainted_write_hosts: ['а.test'] } }, 'safety.tainted_write_hosts.0'],
    [{ safety: { tainted_write_hosts: [5] } }, 'safety.tainted_write_hosts.0'],
    [{ safety: { tainted_write_hosts: 'a.test' } }, 'safety.tainted_write_hosts'],
    [{ safety: { tainted_write_hosts: null } }, 'safety.tainted_write_hosts'],
    [{ safety: { max_retries_per_step: -1 } }, 'safety.max_retries_per_step'],
    [{ safety: { max_retries_per_step: null } }, 'safety.max_retries_per_step'],
    [{ safety: { max_cost_per_plan: 5, max_total_cost: 4.99 } }, 'safety.max_cost_per_plan'],
    [{ extends: 'nobody' }, 'extends'],
    [{ extends: 5 }, 'extends'],
  ])('is refused for %j naming %s', (document, field) => {
    // Spread would lose an own __proto__ member; defineProperty keeps it.
    const whole = Object.defineProperty(document as object, 'name', { value: 'mine', enumerable: true });
    expect(fieldsOf(whole)).toEqual([field]);
  });

  it.each([[null], [undefined], [[]], ['name: x'], [5]])('is refused when it is %j', (document) => {
    expect(fieldsOf(document)).toEqual(['profile']);
  });

  it('names everything that is wrong at once', () => {
    expect(fieldsOf({ name: 'a b', edit_code: 2, colour: 'red', max_cost_per_plan: -1 }).toSorted()).toEqual([
      'colour',
      'edit_code',
      'name',
      'safety.max_cost_per_plan',
    ]);
  });

  it.each(['strict-ci', 'acme/ci', 'srv1:acme/ci', 'a', 'my_profile.v2'])('may be named %s', (name) => {
    expect(accept({ name }).profile.name).toBe(name);
  });

  it.each(['a//b', '/x', 'x/', 'a b', '', 'a:b', 'a/b/c', ':a/b', 'a:/b', 'ci\n', 'ｃi', '-x', 'a'.repeat(129)])(
    'may not be named %j',
    (name) => {
      expect(fieldsOf({ name })).toContain('name');
    },
  );

  it('may set equal caps, and caps of 0', () => {
    expect(accept({ name: 'mine', safety: { max_cost_per_plan: 5, max_total_cost: 5 } }).profile.safety.max_total_cost).toBe(5);
    expect(accept({ name: 'mine', safety: { max_cost_per_plan: 0 }, guard: { max_total_cost: 0 } }).profile.guard?.max_total_cost).toBe(0);
  });

  it('can drop the sandbox and the checkpoints only where both are off', () => {
    const none = { ...CONTEXT, sandbox: { strategy: 'none', checkpointsEnabled: false } } as const;
    const workspace = { ...CONTEXT, sandbox: { strategy: 'workspace', checkpointsEnabled: true } } as const;
    const document = { name: 'mine', require_sandbox: false, require_checkpoints: false };
    expect(accept(document, none).profile.safety.require_sandbox).toBe(false);
    expect(fieldsOf(document, workspace)).toEqual(['safety.require_sandbox', 'safety.require_checkpoints']);
  });

  it('names no entry that can match no tool', () => {
    const guard = { tool_allowlist: ['db.read', 'db..read'], tool_denylist: ['shell_*', 'rm -rf *', 'a?c'] };
    expect(fieldsOf({ name: 'mine', guard })).toEqual(['guard.tool_allowlist.1', 'guard.tool_denylist.1', 'guard.tool_denylist.2']);
    expect(issuesOf({ name: 'mine', guard })[0]?.message).toContain('can match no tool');
  });

  it('is refused when it is longer than a plan can hold', () => {
    const long = Array.from({ length: 900 }, (_, n) => `a-rather-long-name-${n}`);
    expect(parseProfile({ name: 'mine', guard: { tool_denylist: long } }, CONTEXT)).toMatchObject({
      ok: false,
      error: { kind: 'too_large' },
    });
  });

  it('reads back what it printed', () => {
    const { profile } = accept({ name: 'mine', extends: 'ci', edit_code: 0.5, guard: { tool_denylist: ['x'] } });
    expect(accept(JSON.parse(JSON.stringify(profile))).profile).toEqual(profile);
  });
});

describe('extends', () => {
  it('takes what is missing from the base, threshold by threshold and member by member', () => {
    const base = accept({
      name: 'base',
      edit_code: 0.1,
      safety: { max_retries_per_step: 1, max_cost_per_plan: 2 },
      guard: { max_total_cost: 9, tool_denylist: ['x'] },
    }).profile;
    const { profile, defaulted } = accept(
      { name: 'mine', extends: 'base', select_tool: 0.4, max_cost_per_plan: 1, guard: { max_total_cost: 3 } },
      { lookup: (name) => (name === 'base' ? base : null) },
    );
    expect(profile).toMatchObject({
      name: 'mine',
      edit_code: 0.1,
      select_tool: 0.4,
      safety: { max_retries_per_step: 1, max_cost_per_plan: 1 },
      guard: { max_total_cost: 3, tool_denylist: ['x'] },
    });
    expect(defaulted).toEqual([]);
  });

  it('of ci makes a profile that nobody answers for', () => {
    expect(accept({ name: 'strict-ci', extends: 'ci', select_tool: 0.5 }).profile).toMatchObject({
      unattended: true,
      select_tool: 0.5,
      edit_code: 0,
    });
    expect(accept({ name: 'mine', extends: 'auto' }).profile.unattended).toBeUndefined();
  });

  it.each<[object, string]>([
    [{ unattended: true }, 'unattended'],
    [{ extends: 'auto', unattended: true }, 'unattended'],
    [{ extends: 'ci', unattended: false }, 'unattended'],
    [{ extends: 'ci', unattended: 'yes' }, 'unattended'],
  ])('of ci is the only way to that, and there is no way back: %j', (document, field) => {
    expect(fieldsOf({ name: 'mine', ...document })).toEqual([field]);
  });

  it('of a profile that extends ci has it too, and a document that says so in full is the same', () => {
    const base = accept({ name: 'strict-ci', extends: 'ci' }).profile;
    const context = { lookup: (name: string) => (name === 'strict-ci' ? base : null) };
    expect(accept({ name: 'mine', extends: 'strict-ci' }, context).profile.unattended).toBe(true);
    expect(accept({ name: 'mine', extends: 'strict-ci', unattended: true }, context).profile.unattended).toBe(true);
    expect(accept({ name: 'mine', unattended: false }).profile).not.toHaveProperty('unattended');
  });

  it('keeps the guard of the base when the document has none, drops it when it says null', () => {
    const base = accept({ name: 'base', guard: { max_total_cost: 9 } }).profile;
    const context = { lookup: () => base };
    expect(accept({ name: 'mine', extends: 'base' }, context).profile.guard?.max_total_cost).toBe(9);
    expect(accept({ name: 'mine', extends: 'base', guard: null }, context).profile.guard).toBeNull();
  });

  it('of an unknown profile lists the valid names', () => {
    const message = issuesOf({ name: 'mine', extends: 'balancd' })[0]?.message ?? '';
    for (const name of BUILTIN_PROFILE_NAMES) expect(message).toContain(name);
    const context = { lookup: () => null, names: ['auto', 'acme/own'] };
    expect(issuesOf({ name: 'mine', extends: 'balancd' }, context)[0]?.message).toContain('acme/own');
  });
});

describe('which profile a plan gets', () => {
  const levels = ['plan', 'action', 'project', 'global', 'environment'] as const;
  const rows = Array.from({ length: 2 ** levels.length }, (_, mask) => levels.filter((_level, index) => (mask & (1 << index)) !== 0));

  it.each(rows.map((set) => [set.join(', ') || 'nothing', set] as const))('with %s set: the first of them, or manual', (_text, set) => {
    const choice = Object.fromEntries(levels.map((level) => [level, set.includes(level) ? `by-${level}` : null]));
    const winner = set[0];
    expect(resolveProfile(choice)).toEqual(
      winner === undefined ? { name: 'manual', level: 'default' } : { name: `by-${winner}`, level: winner },
    );
  });

  it('takes an empty environment variable for not set, and passes on every other name as it is', () => {
    expect(resolveProfile({ environment: '' })).toEqual({ name: 'manual', level: 'default' });
    expect(resolveProfile({ plan: '', global: 'auto' })).toEqual({ name: '', level: 'plan' });
    expect(resolveProfile({ project: 'balancd', global: 'auto' })).toEqual({ name: 'balancd', level: 'project' });
  });
});
