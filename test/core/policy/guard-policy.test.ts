import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BUILTIN_PROFILES } from '../../../src/core/builtin-profiles.ts';
import {
  combinePolicies,
  effectiveLimit,
  type GuardPolicy,
  Guardrails,
  isGrantable,
  POLICY_ORIGINS,
  type PolicySource,
  parseGuardrails,
} from '../../../src/core/guard-policy.ts';
import { evaluateGuards } from '../../../src/core/guards/guards.ts';
import { canonicalJson } from '../../../src/core/json.ts';
import { childTerms } from '../../../src/core/plan/child-terms.ts';
import type { AutomationProfile } from '../../../src/core/profile.ts';
import { parseProfile } from '../../../src/core/profile.ts';
import { CATALOGUE, factsOf, requestOf } from './fixtures.ts';

const lookup = (name: string): AutomationProfile | null => BUILTIN_PROFILES.get(name) ?? null;
function profileOf(document: object): AutomationProfile {
  const parsed = parseProfile({ name: 'custom', ...document }, { lookup });
  if (!parsed.ok) throw new Error(parsed.error.message);
  return parsed.value.profile;
}

describe('guardrails from outside', () => {
  it('accepts the flat union of both models', () => {
    const document = {
      max_tool_calls_per_step: 10,
      max_total_cost: 5,
      tool_allowlist: [],
      tool_denylist: ['shell_*'],
      require_approval_for_writes: true,
      require_approval_for_apply: false,
      max_steps: 100,
      tool_budget: 10,
      max_wall_clock_seconds: 3600.5,
      actor_limits: { max_tool_calls_per_invocation: 20, max_retries_per_failure: 3 },
      required_confirmations: ['delete_database'],
    };
    expect(parseGuardrails(document)).toEqual({ ok: true, value: document });
    expect(parseGuardrails({}).ok).toBe(true);
    expect(parseGuardrails({ max_steps: null, tool_budget: null, tool_allowlist: null }).ok).toBe(true);
  });

  it.each([
    [{ step_count: 3 }, 'guardrails.step_count'],
    [{ budget_spent: 0 }, 'guardrails.budget_spent'],
    [{ maxSteps: 3 }, 'guardrails.maxSteps'],
    [{ actor_limits: { max: 1 } }, 'guardrails.actor_limits.max'],
    [{ max_steps: -1 }, 'guardrails.max_steps'],
    [{ max_steps: 1.5 }, 'guardrails.max_steps'],
    [{ max_steps: '3' }, 'guardrails.max_steps'],
    [{ tool_budget: -0.01 }, 'guardrails.tool_budget'],
    [{ tool_budget: Number.NaN }, 'guardrails.tool_budget'],
    [{ tool_budget: Number.POSITIVE_INFINITY }, 'guardrails.tool_budget'],
    [{ tool_budget: '1' }, 'guardrails.tool_budget'],
    [{ max_wall_clock_seconds: -1 }, 'guardrails.max_wall_clock_seconds'],
    [{ tool_allowlist: ['', '  '] }, 'guardrails.tool_allowlist.0'],
    [{ tool_denylist: ['a', 5] }, 'guardrails.tool_denylist.1'],
    [{ tool_denylist: 'shell' }, 'guardrails.tool_denylist'],
    [{ required_confirmations: ['\u200b'] }, 'guardrails.required_confirmations.0'],
    [JSON.parse('{"__proto__":{"max_steps":1}}'), 'guardrails.__proto__'],
    [[], 'guardrails'],
    ['text', 'guardrails'],
    [null, 'guardrails'],
  ])('refuses %j naming %s', (value, field) => {
    const parsed = parseGuardrails(value);
    expect(parsed.ok ? null : parsed.error).toMatchObject({ kind: 'invalid', issues: [{ field }] });
  });

  it('refuses what nests too deeply before looking into it', () => {
    let deep: unknown = {};
    for (let n = 0; n < 100_000; n += 1) deep = { deep };
    expect(parseGuardrails(deep).ok).toBe(false);
  });
});

describe('combining', () => {
  it('of nothing is closed where it matters and limits nothing', () => {
    expect(combinePolicies([])).toMatchObject({
      allowUnsafeTools: false,
      requireSandbox: true,
      requireCheckpoints: true,
      planCapMicroUsd: null,
      denylist: [],
      allowlists: [],
    });
  });

  it.each([
    [{ guard: { max_total_cost: 3 }, safety: { max_cost_per_plan: 5 } }, { tool_budget: 4 }, 'max_total_cost', 3_000_000, 'profile'],
    [{ guard: { max_total_cost: 5 }, safety: { max_cost_per_plan: 3 } }, { tool_budget: 4 }, 'max_cost_per_plan', 3_000_000, 'profile'],
    [{ guard: { max_total_cost: 5 }, safety: { max_cost_per_plan: 4 } }, { tool_budget: 3 }, 'tool_budget', 3_000_000, 'plan'],
    [{}, { max_total_cost: 0, tool_budget: 3 }, 'max_total_cost', 0, 'plan'],
    [{ safety: { max_cost_per_plan: 0.000004 } }, {}, 'max_cost_per_plan', 4, 'profile'],
  ] as const)('takes the smallest plan cap of %j and %j: %s', (document, guardrails, field, value, origin) => {
    const policy = combinePolicies([
      { origin: 'profile', profile: profileOf(document) },
      { origin: 'plan', guardrails },
    ]);
    expect(policy.planCapMicroUsd).toEqual({ value, field, origin, ceiling: null });
  });

  it('does not let the cap of all plans under a profile bind one plan as its plan cap', () => {
    const policy = combinePolicies([{ origin: 'profile', profile: profileOf({ safety: { max_total_cost: 2 } }) }]);
    expect(policy.planCapMicroUsd).toBeNull();
    expect(policy.profileCapMicroUsd).toEqual({ value: 2_000_000, field: 'max_total_cost', origin: 'profile', ceiling: null });
  });

  it('takes the smaller of both retry limits', () => {
    const policy = (retries: number, failures: number | null) =>
      combinePolicies([
        {
          origin: 'profile',
          profile: profileOf({ safety: { max_retries_per_step: retries } }),
          guardrails: { actor_limits: { max_retries_per_failure: failures } },
        },
      ]).maxRetries;
    expect(policy(3, 1)).toMatchObject({ value: 1, field: 'max_retries_per_failure' });
    expect(policy(0, 1)).toMatchObject({ value: 0, field: 'max_retries_per_step' });
    expect(policy(3, null)).toMatchObject({ value: 3, field: 'max_retries_per_step' });
  });

  it('unites what is denied and remembers who denied it, intersects what is allowed', () => {
    const policy = combinePolicies([
      { origin: 'org', guardrails: { tool_denylist: ['pay.send'] } },
      { origin: 'profile', profile: profileOf({ guard: { tool_denylist: ['shell_*'], tool_allowlist: ['read_file', 'write_file'] } }) },
      { origin: 'plan', guardrails: { tool_denylist: ['shell_*'], tool_allowlist: ['read_file'] } },
    ]);
    expect(policy.denylist).toEqual([
      { pattern: 'pay.send', origin: 'org' },
      { pattern: 'shell_*', origin: 'profile' },
      { pattern: 'shell_*', origin: 'plan' },
    ]);
    const allowed = ['read_file', 'write_file'].filter((name) => evaluateGuards(policy, requestOf(name), factsOf()).allowed);
    expect(allowed).toEqual(['read_file']);
  });

  it('lets a plan that is wide open loosen nothing that is above it', () => {
    const org: PolicySource = {
      origin: 'org',
      guardrails: { tool_denylist: ['read_file'], max_steps: 5, tool_budget: 1, require_approval_for_writes: true },
    };
    const locked: PolicySource = { origin: 'profile', profile: lookup('cautious') as AutomationProfile };
    const open: PolicySource = {
      origin: 'plan',
      profile: lookup('full-auto') as AutomationProfile,
      guardrails: {
        tool_denylist: [],
        tool_allowlist: ['read_file'],
        max_steps: 1_000_000,
        tool_budget: 1_000_000,
        max_tool_calls_per_step: 1_000_000,
        require_approval_for_writes: false,
      },
    };
    const policy = combinePolicies([org, locked, open]);
    expect(policy).toMatchObject({
      maxSteps: { value: 5, origin: 'org', ceiling: 5 },
      planCapMicroUsd: { value: 1_000_000, origin: 'org' },
      requireApprovalForWrites: true,
      requireSandbox: true,
      allowUnsafeTools: false,
    });
    expect(policy.thresholds['select_tool']).toBe(0.7);
    expect(evaluateGuards(policy, requestOf('read_file'), factsOf())).toMatchObject({
      allowed: false,
      guard: 'denylist',
      approval: 'none',
    });
  });

  it('takes an empty allowlist for allowing nothing, no categories for allowing all', () => {
    const policy = combinePolicies([
      {
        origin: 'profile',
        profile: profileOf({ extends: 'auto', guard: { tool_allowlist: [] }, safety: { allowed_skill_categories: [] } }),
      },
    ]);
    expect(policy.allowlists).toEqual([{ origin: 'profile', entries: [] }]);
    expect(policy.skillCategories).toEqual([]);
    expect(evaluateGuards(policy, requestOf('read_file'), factsOf()).guard).toBe('allowlist');
  });

  it.each(['profile', 'action', 'plan', 'project', 'org_config'] as const)(
    'allows nothing where the allowlist of %s is empty, whatever the others allow and whoever approves',
    (origin) => {
      const open: PolicySource = { origin: 'org', guardrails: { tool_allowlist: ['*'] } };
      const empty: PolicySource =
        origin === 'profile'
          ? { origin, profile: profileOf({ extends: 'full-auto', guard: { tool_allowlist: [] } }) }
          : { origin, guardrails: { tool_allowlist: [] } };
      for (const policy of [combinePolicies([empty]), combinePolicies([open, empty]), combinePolicies([empty, open])]) {
        for (const name of ['read_file', 'write_file']) {
          expect(evaluateGuards(policy, requestOf(name), factsOf()).verdicts.find(({ guard }) => guard === 'allowlist')).toMatchObject({
            allowed: false,
            eventType: 'allowlist_blocked',
          });
        }
      }
      expect(combinePolicies([open]).allowlists).toHaveLength(1);
    },
  );

  it('is plain JSON with one canonical form', () => {
    const policy = combinePolicies([
      { origin: 'org', profile: lookup('ci') as AutomationProfile, guardrails: { max_steps: 3, tool_denylist: ['a'] } },
    ]);
    expect(JSON.parse(JSON.stringify(policy))).toEqual(policy);
    expect(canonicalJson(policy)).toBe(canonicalJson(JSON.parse(JSON.stringify(policy))));
    expect(policy.unattended).toBe(true);
  });
});

describe('grants', () => {
  const bound = { value: 5, field: 'max_steps', origin: 'profile', ceiling: 7 } as const;
  it('raise a limit up to the own limit of the org', () => {
    expect([0, 1, 2, 3].map((granted) => effectiveLimit(bound, granted))).toEqual([5, 6, 7, 7]);
    expect([0, 1, 2, 3].map((granted) => isGrantable(bound, granted))).toEqual([true, true, false, false]);
    expect(effectiveLimit({ ...bound, ceiling: null }, 100)).toBe(105);
    expect(effectiveLimit(null, 100)).toBeNull();
  });
});

const nullable = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null });
const toolName = fc.constantFrom('read_file', 'write_file', 'delete_file', 'rm_file', 'shell_exec', 'db.*', '*', 'fs.delete', 'http_post');
const guardrails: fc.Arbitrary<Guardrails> = fc.record(
  {
    max_tool_calls_per_step: nullable(fc.nat(9)),
    max_total_cost: nullable(fc.nat(9)),
    tool_allowlist: nullable(fc.array(toolName, { maxLength: 4 })),
    tool_denylist: nullable(fc.array(toolName, { maxLength: 2 })),
    require_approval_for_writes: fc.boolean(),
    require_approval_for_apply: fc.boolean(),
    max_steps: nullable(fc.nat(9)),
    tool_budget: nullable(fc.nat(9)),
    max_wall_clock_seconds: nullable(fc.nat(9)),
    actor_limits: fc.record(
      { max_tool_calls_per_invocation: nullable(fc.nat(9)), max_retries_per_failure: nullable(fc.nat(9)) },
      { requiredKeys: [] },
    ),
    required_confirmations: fc.array(toolName, { maxLength: 2 }),
  },
  { requiredKeys: [] },
);
const source: fc.Arbitrary<PolicySource> = fc.record(
  { origin: fc.constantFrom(...POLICY_ORIGINS), guardrails, profile: fc.constantFrom(...BUILTIN_PROFILES.values()) },
  { requiredKeys: ['origin'] },
);
const request = fc
  .record({
    name: fc.constantFrom(...CATALOGUE.specs().map((spec) => spec.name)),
    costMicroUsd: fc.nat(3_000_000),
    changesOutside: fc.boolean(),
  })
  .map(({ name, ...rest }) => requestOf(name, rest));
const facts = fc
  .record({
    workedMs: fc.nat(9000),
    stepNumber: fc.integer({ min: 1, max: 9 }),
    callsInStep: fc.nat(9),
    callsInInvocation: fc.nat(9),
    retriesOfCall: fc.nat(4),
    spentMicroUsd: fc.nat(9_000_000),
  })
  .map(factsOf);

it('never allows with one source more what it refuses without it', () => {
  fc.assert(
    fc.property(fc.array(source, { minLength: 1, maxLength: 3 }), source, request, facts, (sources, more, call, now) => {
      // A profile among the sources stands for the locked one, which is always there.
      const base: readonly PolicySource[] = [{ origin: 'profile', profile: lookup('full-auto') as AutomationProfile }, ...sources];
      const without = evaluateGuards(combinePolicies(base), call, now);
      const withMore = evaluateGuards(combinePolicies([...base, more]), call, now);
      if (withMore.allowed) expect(without.allowed).toBe(true);
      const refused = new Set(withMore.verdicts.filter((verdict) => !verdict.allowed).map((verdict) => verdict.guard));
      for (const verdict of without.verdicts) if (!verdict.allowed) expect(refused.has(verdict.guard)).toBe(true);
    }),
    { numRuns: 2000 },
  );
});

it('allows nothing to a child plan that it does not allow to the parent, and asks no less', () => {
  const profile = { name: 'full-auto', level: 'plan', document: lookup('full-auto') as AutomationProfile, digest: 'd' } as const;
  fc.assert(
    fc.property(
      fc.array(source, { maxLength: 3 }),
      guardrails,
      fc.option(fc.nat(5_000_000)),
      request,
      facts,
      (sources, own, carved, call, now) => {
        const policy = combinePolicies([{ origin: 'profile', profile: profile.document }, ...sources]);
        const child = childTerms({ profile, policy }, own, carved);
        expect(child.profile).toBe(profile);
        expect(child.policy.thresholds).toEqual(policy.thresholds);
        expect(child.policy.unattended).toBe(policy.unattended);
        const [ofParent, ofChild] = [evaluateGuards(policy, call, now), evaluateGuards(child.policy, call, now)];
        if (ofChild.allowed) expect(ofParent.allowed).toBe(true);
        const refused = new Set(ofChild.verdicts.filter((verdict) => !verdict.allowed).map((verdict) => verdict.guard));
        for (const verdict of ofParent.verdicts) if (!verdict.allowed) expect(refused.has(verdict.guard)).toBe(true);
        if (carved !== null) expect(child.policy.planCapMicroUsd?.value).toBeLessThanOrEqual(carved);
      },
    ),
    { numRuns: 2000 },
  );
});

it('is not changed by a plan guard that is looser than what it joins', () => {
  const loosen = (rails: Guardrails, by: number): Guardrails => {
    const more = (value: number | null | undefined): number | null => (value === null || value === undefined ? null : value + by);
    return {
      max_tool_calls_per_step: more(rails.max_tool_calls_per_step),
      max_total_cost: more(rails.max_total_cost),
      max_steps: more(rails.max_steps),
      tool_budget: more(rails.tool_budget),
      max_wall_clock_seconds: more(rails.max_wall_clock_seconds),
      actor_limits: {
        max_tool_calls_per_invocation: more(rails.actor_limits?.max_tool_calls_per_invocation),
        max_retries_per_failure: more(rails.actor_limits?.max_retries_per_failure),
      },
      tool_denylist: [],
      require_approval_for_writes: false,
      require_approval_for_apply: false,
      required_confirmations: [],
    };
  };
  fc.assert(
    fc.property(guardrails, fc.nat(1000), fc.constantFrom(...BUILTIN_PROFILES.values()), (rails, by, profile) => {
      const base: readonly PolicySource[] = [{ origin: 'profile', profile, guardrails: rails }];
      const expected: GuardPolicy = combinePolicies(base);
      expect(combinePolicies([...base, { origin: 'plan', guardrails: loosen(rails, by) }])).toEqual(expected);
      expect(combinePolicies([...base, { origin: 'plan' }])).toEqual(expected);
    }),
    { numRuns: 2000 },
  );
});

it('reads back every policy document it would print', () => {
  fc.assert(
    fc.property(guardrails, (rails) => {
      expect(Guardrails.parse(JSON.parse(JSON.stringify(rails)))).toEqual(rails);
    }),
    { numRuns: 1000 },
  );
});
