import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BUILTIN_PROFILES } from '../../../src/core/builtin-profiles.ts';
import { combinePolicies, effectiveLimit, type Guardrails, isGrantable, type PolicySource } from '../../../src/core/guard-policy.ts';
import { evaluateGuards } from '../../../src/core/guards/guards.ts';
import { canonicalJson } from '../../../src/core/json.ts';
import { applyFloor, floorSource, NO_FLOOR, type OrgPolicy, parseOrgPolicy } from '../../../src/core/org-policy.ts';
import { THRESHOLD_NAMES } from '../../../src/core/profile.ts';
import { factsOf, requestOf } from './fixtures.ts';

const profile = (name: string) => {
  const found = BUILTIN_PROFILES.get(name);
  if (found === undefined) throw new Error(name);
  return { origin: 'profile', profile: found } as const;
};

describe('a policy floor from outside', () => {
  it('holds guardrails, threshold minima and safety settings, all of them optional', () => {
    const floor = {
      guardrails: { tool_denylist: ['pay.send'], max_total_cost: 5 },
      threshold_minima: { select_tool: 1, execute_command: 0.5 },
      safety: {
        require_sandbox: true,
        allow_unsafe_tools: false,
        max_cost_per_plan: 2,
        max_retries_per_step: 1,
        allowed_skill_categories: ['files'],
      },
    };
    expect(parseOrgPolicy(floor)).toEqual({ ok: true, value: floor });
    expect(parseOrgPolicy({})).toEqual({ ok: true, value: {} });
  });

  it.each<[unknown, string]>([
    [{ guardrail: {} }, 'policy.guardrail'],
    [{ thresholds: {} }, 'policy.thresholds'],
    [{ guardrails: { max_steps: -1 } }, 'policy.guardrails.max_steps'],
    [{ guardrails: { max_steps: '3' } }, 'policy.guardrails.max_steps'],
    [{ guardrails: { tool_denylist: ['', ' '] } }, 'policy.guardrails.tool_denylist.0'],
    [{ guardrails: { tool_budget: Number.NaN } }, 'policy.guardrails.tool_budget'],
    [{ threshold_minima: { edit_coed: 1 } }, 'policy.threshold_minima.edit_coed'],
    [{ threshold_minima: { edit_code: 1.1 } }, 'policy.threshold_minima.edit_code'],
    [{ threshold_minima: { edit_code: 80 } }, 'policy.threshold_minima.edit_code'],
    [{ threshold_minima: { edit_code: '1' } }, 'policy.threshold_minima.edit_code'],
    [{ threshold_minima: { edit_code: null } }, 'policy.threshold_minima.edit_code'],
    [{ safety: { require_sandbox: false } }, 'policy.safety.require_sandbox'],
    [{ safety: { allow_unsafe_tools: true } }, 'policy.safety.allow_unsafe_tools'],
    [{ safety: { max_total_cost: 1 } }, 'policy.safety.max_total_cost'],
    [JSON.parse('{"__proto__":{"guardrails":{}}}'), 'policy.__proto__'],
    [JSON.parse('{"threshold_minima":{"constructor":1}}'), 'policy.threshold_minima.constructor'],
    [[], 'policy'],
    ['deny all', 'policy'],
    [null, 'policy'],
  ])('refuses %j naming %s', (value, field) => {
    expect(parseOrgPolicy(value)).toMatchObject({ ok: false, error: { kind: 'invalid', issues: [{ field }] } });
  });

  it('is refused when it is too deep or too long', () => {
    let deep: unknown = {};
    for (let n = 0; n < 100_000; n += 1) deep = { deep };
    expect(parseOrgPolicy(deep).ok).toBe(false);
    const long = { guardrails: { tool_denylist: Array.from({ length: 900 }, (_, n) => `a-rather-long-name-${n}`) } };
    expect(parseOrgPolicy(long)).toMatchObject({ ok: false, error: { kind: 'too_large' } });
  });
});

describe('a floor under a plan', () => {
  it('raises thresholds to its minima and leaves higher ones as they are', () => {
    const floor: OrgPolicy = { threshold_minima: { select_tool: 1, edit_code: 0.5, approve_plan: 0 } };
    const { thresholds } = combinePolicies([floorSource(floor), profile('trusted')]);
    expect(thresholds).toEqual({ ...Object.fromEntries(THRESHOLD_NAMES.map((name) => [name, 0.3])), select_tool: 1, edit_code: 0.5 });
    expect(combinePolicies([floorSource(floor), profile('manual')]).thresholds.edit_code).toBe(1);
  });

  it('does not make a policy without a profile less strict than one that asks always', () => {
    expect(combinePolicies([floorSource({ threshold_minima: { edit_code: 0.5 } })]).thresholds.edit_code).toBe(1);
  });

  it('takes back what full-auto gives: sandbox, checkpoints, unsafe tools', () => {
    const free = combinePolicies([profile('full-auto')]);
    expect(free).toMatchObject({ requireSandbox: false, requireCheckpoints: false, allowUnsafeTools: true });
    const floor: OrgPolicy = {
      safety: { require_sandbox: true, require_checkpoints: true, allow_unsafe_tools: false, require_human_approval: true },
    };
    expect(combinePolicies([floorSource(floor), profile('full-auto')])).toMatchObject({
      ...{ requireSandbox: true, requireCheckpoints: true, allowUnsafeTools: false, requireHumanApproval: true },
    });
    expect(combinePolicies([floorSource(NO_FLOOR), profile('full-auto')])).toEqual(free);
  });

  it('denies what a plan allows, with the strictest limits, and no approval overrides it', () => {
    const floor: OrgPolicy = { guardrails: { tool_denylist: ['http_post'], max_tool_calls_per_step: 5, tool_budget: 1 } };
    const policy = combinePolicies([
      floorSource(floor),
      profile('auto'),
      {
        origin: 'plan',
        guardrails: { tool_denylist: [], tool_allowlist: ['http_post'], max_tool_calls_per_step: 1e6, max_total_cost: 1e6 },
      },
    ]);
    const report = evaluateGuards(policy, requestOf('http_post'), factsOf({ approvedGuards: new Map([['denylist', 'a.1']]) }));
    expect(report).toMatchObject({ allowed: false, guard: 'denylist', approval: 'none' });
    expect(policy.maxCallsPerStep).toEqual({ value: 5, field: 'max_tool_calls_per_step', origin: 'org', ceiling: 5 });
    expect(policy.planCapMicroUsd).toMatchObject({ value: 1_000_000, origin: 'org', ceiling: 1_000_000 });
    expect(effectiveLimit(policy.maxCallsPerStep, 100)).toBe(5);
    expect(policy.planCapMicroUsd !== null && isGrantable(policy.planCapMicroUsd, 1)).toBe(false);
  });

  it('holds grants of a stricter plan below its own limit', () => {
    const policy = combinePolicies([floorSource({ guardrails: { max_steps: 10 } }), { origin: 'plan', guardrails: { max_steps: 4 } }]);
    expect(policy.maxSteps).toMatchObject({ value: 4, origin: 'plan', ceiling: 10 });
    expect(effectiveLimit(policy.maxSteps, 3)).toBe(7);
    expect(effectiveLimit(policy.maxSteps, 300)).toBe(10);
  });

  it('lets approvals do about settings of org and project what they can do about a profile', () => {
    for (const origin of ['org_config', 'project'] as const) {
      const policy = combinePolicies([profile('auto'), { origin, guardrails: { tool_denylist: ['read_file'], max_steps: 3 } }]);
      expect(evaluateGuards(policy, requestOf('read_file'), factsOf())).toMatchObject({
        allowed: false,
        guard: 'denylist',
        approval: 'call',
      });
      expect(effectiveLimit(policy.maxSteps, 2)).toBe(5);
    }
  });
});

const guardrails: fc.Arbitrary<Guardrails> = fc.record(
  {
    max_tool_calls_per_step: fc.option(fc.nat(9)),
    max_total_cost: fc.option(fc.nat(9)),
    tool_allowlist: fc.option(fc.subarray(['read_file', 'write_file', 'http_post'])),
    tool_denylist: fc.option(fc.subarray(['read_file', 'shell_*', 'http_post'])),
    require_approval_for_writes: fc.boolean(),
    require_approval_for_apply: fc.boolean(),
    max_steps: fc.option(fc.nat(9)),
    tool_budget: fc.option(fc.nat(9)),
    max_wall_clock_seconds: fc.option(fc.nat(9)),
    actor_limits: fc.record(
      { max_tool_calls_per_invocation: fc.option(fc.nat(9)), max_retries_per_failure: fc.option(fc.nat(9)) },
      { requiredKeys: [] },
    ),
    required_confirmations: fc.subarray(['read_file', 'write_file']),
  },
  { requiredKeys: [] },
);
const hosts = fc.subarray(['a.test', 'b.test', '*.example.com', 'x.example.com']);
const floors: fc.Arbitrary<OrgPolicy> = fc.record(
  {
    guardrails,
    threshold_minima: fc.record({ edit_code: fc.constantFrom(0, 0.5, 1), select_tool: fc.constantFrom(0, 0.5, 1) }, { requiredKeys: [] }),
    safety: fc.record(
      {
        require_sandbox: fc.constant(true as const),
        require_checkpoints: fc.constant(true as const),
        require_human_approval: fc.constant(true as const),
        allow_unsafe_tools: fc.constant(false as const),
        allowed_skill_categories: fc.subarray(['network', 'files']),
        max_cost_per_plan: fc.option(fc.nat(9)),
        max_retries_per_step: fc.nat(9),
        tainted_write_hosts: hosts,
      },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: [] },
);
const sources: fc.Arbitrary<readonly PolicySource[]> = fc
  .record({ name: fc.constantFrom(...BUILTIN_PROFILES.keys()), hosts, rails: fc.array(guardrails, { maxLength: 3 }) })
  .map(({ name, hosts: own, rails }) => [
    withHosts(profile(name), own),
    ...rails.map((each): PolicySource => ({ origin: 'plan', guardrails: each })),
  ]);

function withHosts(source: PolicySource, tainted_write_hosts: string[]): PolicySource {
  const { profile } = source;
  return profile === undefined ? source : { ...source, profile: { ...profile, safety: { ...profile.safety, tainted_write_hosts } } };
}

describe('hosts for writes of a tainted plan', () => {
  const open = withHosts(profile('auto'), ['a.test', 'b.test']);
  const listsOf = (floor: OrgPolicy): unknown =>
    combinePolicies([floorSource(floor), open]).taintedWriteHosts.map(({ origin, entries }) => [origin, ...entries]);

  it.each([
    ['says nothing of them', {}, [['profile', 'a.test', 'b.test']]],
    [
      'names some',
      { tainted_write_hosts: ['a.test'] },
      [
        ['org', 'a.test'],
        ['profile', 'a.test', 'b.test'],
      ],
    ],
    ['forbids all', { tainted_write_hosts: [] }, []],
  ])('under a floor that %s', (_case, safety, expected) => {
    expect(listsOf({ safety })).toEqual(expected);
  });

  it('are opened by a profile only: a floor alone, or under a profile that names none, opens nothing', () => {
    const floor: OrgPolicy = { safety: { tainted_write_hosts: ['a.test'] } };
    expect(combinePolicies([floorSource(floor)]).taintedWriteHosts).toEqual([]);
    expect(combinePolicies([floorSource(floor), profile('full-auto')]).taintedWriteHosts).toEqual([]);
    expect(applyFloor(combinePolicies([profile('full-auto')]), floor).taintedWriteHosts).toEqual([]);
  });

  it.each([
    ['a blank', ['']],
    ['a star alone', ['*']],
    ['no list', 'a.test'],
  ])('are refused in a floor that holds %s, by the field', (_case, tainted_write_hosts) => {
    const parsed = parseOrgPolicy({ safety: { tainted_write_hosts } });
    expect(!parsed.ok && parsed.error.message).toMatch(/safety\.tainted_write_hosts/);
  });
});

describe('a floor that comes later', () => {
  it('makes the policy that the plan would have had under it from the start', () => {
    fc.assert(
      fc.property(sources, floors, (given, floor) => {
        expect(applyFloor(combinePolicies(given), floor)).toEqual(combinePolicies([floorSource(floor), ...given]));
      }),
      { numRuns: 2000 },
    );
  });

  it('changes nothing when it is applied again, and nothing at all when it is empty', () => {
    fc.assert(
      fc.property(sources, floors, (given, floor) => {
        const once = applyFloor(combinePolicies(given), floor);
        expect(canonicalJson(applyFloor(once, floor))).toBe(canonicalJson(once));
        expect(canonicalJson(applyFloor(once, NO_FLOOR))).toBe(canonicalJson(once));
      }),
      { numRuns: 1000 },
    );
  });

  it('never allows what was refused, whatever the floor says', () => {
    const tools = fc.constantFrom('read_file', 'write_file', 'http_post', 'shell_exec');
    const facts = fc.record({
      callsInStep: fc.nat(9),
      stepNumber: fc.integer({ min: 1, max: 9 }),
      spentMicroUsd: fc.nat(9_000_000),
      tainted: fc.boolean(),
    });
    const reached = fc.subarray(['a.test', 'b.test', 'x.example.com', 'y.example.com']);
    fc.assert(
      fc.property(sources, floors, tools, reached, facts, (given, floor, name, to, state) => {
        const before = combinePolicies(given);
        const after = applyFloor(before, floor);
        const wasAllowed = evaluateGuards(before, requestOf(name, { hosts: to }), factsOf(state)).allowed;
        const isAllowed = evaluateGuards(after, requestOf(name, { hosts: to }), factsOf(state)).allowed;
        expect(wasAllowed || !isAllowed).toBe(true);
        for (const each of THRESHOLD_NAMES) expect(after.thresholds[each]).toBeGreaterThanOrEqual(before.thresholds[each]);
      }),
      { numRuns: 2000 },
    );
  });
});
