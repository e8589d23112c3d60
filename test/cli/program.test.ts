import { describe, expect, it } from 'vitest';
import { OPERATION_NAMES, OPERATIONS } from '../../src/api/operations.ts';
import { type CliCommand, cliCommands } from '../../src/cli/cli-command.ts';
import type { Flag } from '../../src/cli/flags.ts';
import { buildProgram, type Invocation } from '../../src/cli/program.ts';

const commands = cliCommands();
const table = commands.map((command): readonly [string, CliCommand] => [command.words.join(' '), command]);

/** A text for a flag, and what it must become. */
function sampleOf(flag: Flag): { readonly given: string | null; readonly expected: unknown } {
  switch (flag.kind) {
    case 'boolean':
      return { given: null, expected: true };
    case 'number':
      return { given: '2.5', expected: 2.5 };
    case 'list': {
      const [first = 'a', second = 'b'] = flag.choices ?? [];
      return { given: `${first},${second}`, expected: [first, second] };
    }
    case 'json':
      return { given: '{"a":[1,"x"]}', expected: { a: [1, 'x'] } };
    case 'any':
      return { given: 'supervised', expected: 'supervised' };
    case 'pairs':
      return { given: 'name=5', expected: { name: 5 } };
    case 'text':
      return { given: flag.choices?.[0] ?? '5', expected: flag.choices?.[0] ?? '5' };
  }
}

function parse(argv: readonly string[]): Invocation {
  let found: Invocation | undefined;
  const program = buildProgram(commands, {
    version: '1.0.0',
    output: { out: () => undefined, err: () => undefined },
    onInvocation: (invocation) => {
      found = invocation;
    },
  });
  program.parse([...argv], { from: 'user' });
  if (found === undefined) throw new Error('nothing was parsed');
  return found;
}

const valueAt = (params: unknown, path: readonly string[]): unknown =>
  path.reduce((at: unknown, name) => (typeof at === 'object' && at !== null ? (at as Record<string, unknown>)[name] : undefined), params);

describe.each(table)('agents %s', (_, command) => {
  const positions = command.positional.map((flag) => sampleOf(flag).given ?? 'x');
  const mandatory = command.flags.filter((flag) => flag.required);
  const argvOf = (flag: Flag): readonly string[] => {
    const { given } = sampleOf(flag);
    return given === null ? [`--${flag.name}`] : [`--${flag.name}`, given];
  };

  it('says false by --no-… and nothing by silence, for every switch', () => {
    for (const flag of command.flags.filter(({ kind }) => kind === 'boolean')) {
      const others = mandatory.filter((other) => other !== flag).flatMap(argvOf);
      const given = (...argv: readonly string[]) => valueAt(parse([...command.words, ...positions, ...others, ...argv]).params, flag.path);
      expect(given(`--no-${flag.name}`), flag.name).toBe(false);
      expect(given(`--no-${flag.name}`, `--${flag.name}`), flag.name).toBe(true);
      expect(given(`--${flag.name}`, `--no-${flag.name}`), flag.name).toBe(false);
      if (!flag.required) expect(given(), flag.name).toBeUndefined();
    }
  });

  it('puts each position and each flag where its row wants it, with its type', () => {
    for (const flag of command.flags) {
      const others = mandatory.filter((other) => other !== flag).flatMap(argvOf);
      const { params } = parse([...command.words, ...positions, ...others, ...argvOf(flag)]);
      expect(valueAt(params, flag.path), `--${flag.name}`).toEqual(sampleOf(flag).expected);
    }
    const { params } = parse([...command.words, ...positions, ...mandatory.flatMap(argvOf)]);
    for (const flag of command.positional) expect(valueAt(params, flag.path), flag.name).toEqual(sampleOf(flag).expected);
  });

  it('sends nothing that was not given', () => {
    const { params } = parse([...command.words, ...positions, ...mandatory.flatMap(argvOf)]);
    expect(Object.keys(params).sort()).toEqual([...new Set([...command.positional, ...mandatory].map((flag) => flag.path[0]))].sort());
  });

  it('has flags with names of their own', () => {
    const names = command.flags.map((flag) => flag.name);
    expect(new Set(names).size).toBe(names.length);
    for (const common of ['url', 'key', 'format', 'yes', 'help', 'version']) expect(names).not.toContain(common);
  });

  it('says what each flag means', () => {
    for (const flag of [...command.flags, ...command.positional]) {
      // Ids and names of enumerations speak for themselves.
      if (flag.choices !== null || /(?:^|-)(?:id|name|roles)$/.test(flag.name)) continue;
      expect(flag.description, `--${flag.name}`).not.toBe('');
    }
  });

  it('takes the common options after the command', () => {
    const argv = [...command.words, ...positions, ...mandatory.flatMap(argvOf)];
    expect(parse([...argv, '--url', 'http://h', '--key', 'k', '--format', 'json'])).toMatchObject({
      url: 'http://h',
      key: 'k',
      format: 'json',
    });
  });

  it('refuses a flag that does not exist', () => {
    expect(() => parse([...command.words, ...positions, ...mandatory.flatMap(argvOf), '--no-such-flag'])).toThrow(/unknown option/);
  });
});

describe('the commands', () => {
  it('are as many as the rows that name one, and nine that need several calls or none', () => {
    const named = OPERATION_NAMES.filter((name) => 'cli' in OPERATIONS[name]);
    expect(commands.length).toBe(named.length + 9);
    expect(new Set(table.map(([words]) => words)).size).toBe(commands.length);
  });

  it('offer the short flags of the source document', () => {
    const { params } = parse(['plan', 'use', 'a', '--max-cost', '10.00', '--max-tool-calls', '20']);
    expect(params).toEqual({ action_name: 'a', guardrails: { tool_budget: 10, max_tool_calls_per_step: 20 } });
  });

  it.each([
    [['plan', 'guard', 'set', 'P', '--max-cost', '10.00'], { plan_id: 'P', guardrails: { tool_budget: 10 } }],
    [['plan', 'guard', 'set', 'P', '--max-tool-calls', '20'], { plan_id: 'P', guardrails: { max_tool_calls_per_step: 20 } }],
    [['plan', 'guard', 'set', 'P', '--tool-allowlist', ''], { plan_id: 'P', guardrails: { tool_allowlist: [] } }],
    [['plan', 'guard', 'set', 'P', '--drop', 'tool_budget,max_steps'], { plan_id: 'P', drop: ['tool_budget', 'max_steps'] }],
    [['plan', 'guard', 'denylist', 'add', 'P', 'shell_exec'], { plan_id: 'P', tool: 'shell_exec' }],
    [['plan', 'guard', 'denylist', 'remove', 'P', 'shell_exec'], { plan_id: 'P', tool: 'shell_exec' }],
    [['halt', 'set', 'plan', 'P', '--reason', 'pays twice'], { level: 'plan', plan_id: 'P', reason: 'pays twice' }],
    [['halt', 'clear', 'plan', 'P'], { level: 'plan', plan_id: 'P' }],
  ] as const)('change a running plan: %j', (argv, params) => {
    expect(parse(argv).params).toEqual(params);
  });

  it.each([
    [
      ['guard', 'configure', 'P', '--max-cost', '5', '--session-id', 's'],
      { plan_id: 'P', guardrails: { tool_budget: 5 }, session_id: 's' },
    ],
    [
      ['guard', 'authorize', 'P', 'http_get', '--arg', 'n=1', '--cost-usd', '0.1', '--is-write', '--step', '2'],
      { plan_id: 'P', tool_name: 'http_get', arguments: { n: 1 }, cost_usd: 0.1, is_write: true, step: 2 },
    ],
    [['guard', 'settle', 'P.c1', 'failed', '--cost-usd', '0'], { decision_id: 'P.c1', outcome: 'failed', cost_usd: 0 }],
    [['guard', 'evaluate', 'x', '--calls-so-far', '3'], { tool_name: 'x', context: { calls_so_far: 3 } }],
    [['guard', 'associate', 'P', 's'], { plan_id: 'P', session_id: 's' }],
    [['guard', 'complete', 'P'], { plan_id: 'P' }],
  ] as const)('ask about calls that are made elsewhere: %j', (argv, params) => {
    expect(parse(argv).params).toEqual(params);
  });

  it('join repeated lists and pairs', () => {
    const { params } = parse([
      'plan',
      'use',
      'a',
      '--tool-denylist',
      'x,y',
      '--tool-denylist',
      'z',
      '--arg',
      'n=1',
      '--arg',
      'text=a=b',
      '--arg',
      'q="1"',
    ]);
    expect(params).toEqual({ action_name: 'a', guardrails: { tool_denylist: ['x', 'y', 'z'] }, arguments: { n: 1, text: 'a=b', q: '1' } });
  });

  it('add pairs to the arguments given as JSON', () => {
    const { params } = parse(['plan', 'use', 'a', '--arg', 'b=2', '--arguments', '{"a":1,"b":1}']);
    expect(params['arguments']).toEqual({ a: 1, b: 2 });
  });

  it.each([
    [['plan', 'use', 'a', '--max-steps', 'many'], /--max-steps: "many" is not a number/],
    [['plan', 'use', 'a', '--max-steps', ''], /is not a number/],
    [['plan', 'use', 'a', '--arguments', '{'], /--arguments: is not JSON/],
    [['plan', 'use', 'a', '--arg', '=x'], /expected name=value/],
    [['plan', 'list', '--state', 'happy'], /Allowed choices are/],
    [['plan', 'status'], /missing required argument 'plan_id'/],
    [['plan', 'status', 'a', 'b'], /too many arguments/],
    [['project', 'import', '.'], /--name/],
  ] as const)('refuse %j', (argv, message) => {
    expect(() => parse(argv)).toThrow(message);
  });
});
