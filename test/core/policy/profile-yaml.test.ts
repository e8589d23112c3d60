import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BUILTIN_PROFILES } from '../../../src/core/builtin-profiles.ts';
import { type AutomationProfile, AutomationProfile as Profile, parseProfile, THRESHOLD_NAMES } from '../../../src/core/profile.ts';
import { MAX_YAML_BYTES, readProfileYaml, writeProfileYaml } from '../../../src/core/profile-yaml.ts';

function read(text: string): unknown {
  const document = readProfileYaml(text);
  if (!document.ok) throw new Error(document.error.message);
  return document.value.value;
}
function refusalOf(text: string) {
  const document = readProfileYaml(text);
  if (document.ok) throw new Error(`was read as ${JSON.stringify(document.value.value)}`);
  return document.error;
}

const SOURCE_EXAMPLE = `name: strict-ci
decompose_task: 0.0
create_tool: 0.0
select_tool: 0.0
edit_code: 0.0
execute_command: 0.0
create_file: 0.0
delete_content: 0.5
access_network: 0.8
install_dependency: 0.3
modify_config: 0.7
approve_plan: 0.0
safety:
  require_sandbox: true
  require_checkpoints: true
  allow_unsafe_tools: false
  require_human_approval: false
  max_cost_per_plan: 2.00
  max_retries_per_step: 2
`;

describe('a profile in YAML', () => {
  it('is read as the source writes it', () => {
    const parsed = parseProfile(read(SOURCE_EXAMPLE), { lookup: () => null });
    expect(parsed).toMatchObject({
      ok: true,
      value: {
        profile: { name: 'strict-ci', access_network: 0.8, safety: { max_cost_per_plan: 2, max_retries_per_step: 2 } },
        defaulted: [],
      },
    });
  });

  it('may be JSON', () => {
    expect(read('{"name": "a", "guard": {"tool_denylist": ["shell_*", "x"]}}')).toEqual({
      name: 'a',
      guard: { tool_denylist: ['shell_*', 'x'] },
    });
  });

  it('takes words for what YAML 1.2 says: yes is a word, not true', () => {
    expect(read('a: yes\nb: true\nc: ~\nd: 1e3\ne: 010')).toEqual({ a: 'yes', b: true, c: null, d: 1000, e: 10 });
    expect(read('%YAML 1.1\n---\na: yes')).toEqual({ a: 'yes' });
  });

  it('keeps a member named __proto__, so that it is refused by name', () => {
    const value = read('name: a\n__proto__:\n  edit_code: 0');
    expect(Object.keys(value as object)).toEqual(['name', '__proto__']);
    expect(parseProfile(value, { lookup: () => null })).toMatchObject({ ok: false, error: { issues: [{ field: '__proto__' }] } });
  });

  it.each<[string, string, number, string]>([
    ['a list that is not closed', 'name: a\nguard:\n  tool_denylist: [a, b', 3, ''],
    ['a tab', 'name: a\nguard:\n\tmax_total_cost: 1', 3, 'Tabs'],
    ['a key twice', 'name: a\nedit_code: 1\nedit_code: 0', 3, 'unique'],
    ['a key that is no text', 'name: a\n? [b]\n: 1', 2, 'key'],
    ['an alias', 'a: &x 1\nb:\n  - *x', 3, 'aliases are not accepted'],
    ['a tag of its own', 'name: a\nedit_code: !secret 1', 2, ''],
    ['a tag for code', 'name: !!js/function "x"', 1, ''],
    ['a tag of YAML', 'name: a\nsafety: !!map {}', 2, 'tags are not accepted'],
    ['a tag on a scalar', 'name: !!str 5', 1, 'tags are not accepted'],
    ['binary data', 'name: !!binary aGk=', 1, 'tags are not accepted'],
  ])('with %s is refused, and the line is said', (_what, text, line, words) => {
    const refusal = refusalOf(text);
    expect(refusal).toMatchObject({ kind: 'invalid', issues: [{ field: 'yaml' }] });
    expect(refusal.message).toContain(`line ${line}: `);
    expect(refusal.message).toContain(words);
  });

  it('with a second document is refused', () => {
    expect(refusalOf('name: a\n---\nname: b')).toMatchObject({ kind: 'invalid' });
  });

  it('of more than 64 kB is refused as too large, counted in bytes', () => {
    expect(refusalOf(`# ${'x'.repeat(MAX_YAML_BYTES)}`)).toMatchObject({ kind: 'too_large', limitBytes: MAX_YAML_BYTES });
    expect(refusalOf(`# ${'ü'.repeat(MAX_YAML_BYTES / 2)}`)).toMatchObject({ kind: 'too_large' });
    expect(read(`name: a # ${'x'.repeat(MAX_YAML_BYTES - 10)}`)).toEqual({ name: 'a' });
  });

  // Unbounded, the first two end the process or the stack, and the last ones take seconds.
  it.each<[string, string]>([
    ['brackets', '['.repeat(65_000)],
    ['braces', '{a: '.repeat(16_000)],
    ['brackets behind closed ones in quotes', `[${'"]", ['.repeat(5000)}`],
    ['dashes', '- '.repeat(32_000)],
    ['question marks', '? '.repeat(32_000)],
    ['colons', ': '.repeat(32_000)],
    ['indentation', Array.from({ length: 350 }, (_, n) => `${' '.repeat(n)}a:`).join('\n')],
    ['lines', 'a: 1\n'.repeat(10_000)],
    ['keys on one line', `{${Array.from({ length: 5000 }, (_, n) => `k${n}: 1`).join(',')}}`],
  ])('with too many %s is refused before it is parsed', (_what, text) => {
    expect(refusalOf(text)).toMatchObject({ kind: 'invalid', issues: [{ field: 'yaml' }] });
  });

  it('says on which line a field stands, wherever the field was written', () => {
    const document = readProfileYaml(`name: a
edit_code: 2
max_cost_per_plan: 3
safety:
  max_total_cost: 1
guards:
  tool_denylist:
    - ok
    - ""
a.b: 1
`);
    if (!document.ok) throw new Error(document.error.message);
    const { lineOf } = document.value;
    const fields = [
      'name',
      'edit_code',
      'safety.max_cost_per_plan',
      'safety',
      'safety.max_total_cost',
      'guard.tool_denylist.1',
      'guard',
      'a.b',
    ];
    expect(fields.map(lineOf)).toEqual([1, 2, 3, 4, 5, 9, 6, 10]);
    // Not in the text: the line of what it would stand in, or none.
    expect(lineOf('safety.max_retries_per_step')).toBe(4);
    expect(lineOf('select_tool')).toBeNull();
    expect(lineOf('')).toBeNull();
  });

  it('never throws and never answers what JSON cannot hold in place of a refusal, whatever the text', () => {
    const piece = fc.constantFrom(
      ...[
        '- ',
        '? ',
        ': ',
        '[',
        ']',
        '{',
        '}',
        ',',
        '&a ',
        '*a',
        '!t ',
        '|',
        '>',
        '"',
        "'",
        '#',
        '%',
        '---',
        '...',
        '\n',
        '  ',
        '\t',
        'a',
        '1',
        '\r',
        '\0',
        '\ud800',
        '@',
        '`',
        '<<',
      ],
    );
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join('')),
        (text) => {
          const document = readProfileYaml(text);
          return document.ok || document.error.kind === 'invalid';
        },
      ),
      { numRuns: 3000 },
    );
  });
});

describe('a profile written as YAML', () => {
  const threshold = fc.double({ min: 0, max: 1, noNaN: true });
  const list = fc.array(
    fc.string({ minLength: 1, maxLength: 12 }).filter((text) => /[a-z0-9]/.test(text)),
    { maxLength: 5 },
  );
  const tools = fc.array(fc.stringMatching(/^[A-Za-z*]([a-z0-9_*][.:/-])?[a-z0-9_*]{1,8}$/), { maxLength: 5 });
  const usd = fc.option(fc.integer({ min: 0, max: 10_000_000 }).map((cents) => cents / 100));
  const profiles: fc.Arbitrary<AutomationProfile> = fc
    .record({
      name: fc.constantFrom('a', 'acme/ci', 'srv1:acme/ci'),
      description: fc.option(fc.string({ maxLength: 80 }), { nil: undefined }),
      thresholds: fc.array(threshold, { minLength: 11, maxLength: 11 }),
      perPlan: usd,
      guard: fc.option(
        fc.record({
          max_tool_calls_per_step: fc.option(fc.nat()),
          max_total_cost: usd,
          tool_allowlist: fc.option(tools),
          tool_denylist: fc.option(tools),
          require_approval_for_writes: fc.boolean(),
          require_approval_for_apply: fc.boolean(),
        }),
      ),
      categories: list,
      retries: fc.nat(),
      hosts: fc.subarray(['a.test', '*.example.com', 'xn--bcher-kva.test', '127.0.0.1', 'localhost']),
    })
    .map(({ name, description, thresholds, perPlan, guard, categories, retries, hosts }) =>
      Profile.parse({
        name,
        ...(description === undefined ? {} : { description }),
        ...Object.fromEntries(THRESHOLD_NAMES.map((each, index) => [each, thresholds[index]])),
        safety: {
          max_cost_per_plan: perPlan,
          allowed_skill_categories: categories,
          max_retries_per_step: retries,
          tainted_write_hosts: hosts,
        },
        guard,
      }),
    );

  it('reads back as the same profile, whatever is in it', () => {
    fc.assert(
      fc.property(profiles, (profile) => {
        const parsed = parseProfile(read(writeProfileYaml(profile)), { lookup: () => null });
        expect(parsed).toEqual({ ok: true, value: { profile, defaulted: [] } });
      }),
      { numRuns: 500 },
    );
  });

  it('has the form of the source: name first, thresholds by name, safety and guard nested', () => {
    const parsed = parseProfile(
      {
        name: 'mine',
        description: 'no: colon is plain',
        extends: 'ci',
        edit_code: 0.5,
        guards: { tool_denylist: ['shell_*'] },
        max_cost_per_plan: 2,
      },
      { lookup: (name) => BUILTIN_PROFILES.get(name) ?? null },
    );
    if (!parsed.ok) throw new Error(parsed.error.message);
    expect(writeProfileYaml(parsed.value.profile)).toBe(`name: mine
description: "no: colon is plain"
extends: ci
decompose_task: 0
create_tool: 0
select_tool: 0
edit_code: 0.5
execute_command: 0
create_file: 0
delete_content: 0
access_network: 0
install_dependency: 0
modify_config: 0
approve_plan: 0
safety:
  require_sandbox: true
  require_checkpoints: true
  allow_unsafe_tools: false
  require_human_approval: false
  allowed_skill_categories: []
  max_cost_per_plan: 2
  max_total_cost: null
  max_retries_per_step: 3
  tainted_write_hosts: []
guard:
  max_tool_calls_per_step: null
  max_total_cost: null
  tool_allowlist: null
  tool_denylist:
    - shell_*
  require_approval_for_writes: false
  require_approval_for_apply: false
unattended: true
`);
  });
});
