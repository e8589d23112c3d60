/** What the operations of guards, budgets, profiles and plans refuse before anything is done: by its field, and nothing changes. */
import { ulid } from 'ulid';
import { beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { OPERATION_NAMES, OPERATIONS, type OperationName } from '../../src/api/operations.ts';
import { makeService, type TestCaller, type TestService } from './service.ts';

let service: TestService;
let admin: TestCaller;
beforeEach(async () => {
  service = makeService();
  admin = await service.caller('acme');
});

const refused = (name: OperationName, params: object) => admin.refused(name, params as never);
const fieldsOf = (refusal: object): readonly string[] => {
  const { issues = [] } = refusal as { readonly issues?: readonly { readonly field: string }[] };
  return issues.map(({ field }) => field);
};

const planId = '01JPLAN0000000000000000000';
const decisionId = `${planId}.c1`;
const COSTS = [-1, -0.01, '5', {}, [], true, 1e300];
/** A cap is what it says: an amount below a micro-dollar is not made a cap of nothing. */
const CAPS = [...COSTS, 1e-7, 0.1234567];
const COUNTS = [-1, 1.5, '3', {}, [3], 1e300];

describe('an amount or a number that is none', () => {
  const fields: readonly (readonly [OperationName, string, readonly unknown[], (value: unknown) => object])[] = [
    ['_cleveragents/guard/authorize', 'cost_usd', COSTS, (cost_usd) => ({ plan_id: planId, tool_name: 'x', cost_usd })],
    ['_cleveragents/guard/authorize', 'step', [0, ...COUNTS], (step) => ({ plan_id: planId, tool_name: 'x', step })],
    ['_cleveragents/guard/settle', 'cost_usd', COSTS, (cost_usd) => ({ decision_id: decisionId, outcome: 'failed', cost_usd })],
    ['_cleveragents/guard/check_tool_budget', 'tool_cost', COSTS, (tool_cost) => ({ plan_id: planId, tool_cost })],
    ['_cleveragents/guard/check_budget_hierarchy', 'tool_cost', COSTS, (tool_cost) => ({ plan_id: planId, tool_cost })],
    ['_cleveragents/guard/check_step_limit', 'current_step', COUNTS, (current_step) => ({ plan_id: planId, current_step })],
    ['_cleveragents/guard/check_actor_tool_calls', 'current_calls', COUNTS, (current_calls) => ({ plan_id: planId, current_calls })],
    [
      '_cleveragents/guard/check_retries_per_failure',
      'current_retries',
      COUNTS,
      (current_retries) => ({ plan_id: planId, current_retries }),
    ],
    [
      '_cleveragents/guard/evaluate',
      'context.cost_so_far',
      COSTS,
      (cost) => ({ automation_profile: 'auto', tool_name: 'x', context: { cost_so_far: cost } }),
    ],
    [
      '_cleveragents/guard/evaluate',
      'context.calls_so_far',
      COUNTS,
      (calls) => ({ automation_profile: 'auto', tool_name: 'x', context: { calls_so_far: calls } }),
    ],
    ['_cleveragents/guard/configure', 'guardrails.tool_budget', CAPS, (tool_budget) => ({ plan_id: planId, guardrails: { tool_budget } })],
    ['_cleveragents/guard/configure', 'guardrails.max_steps', COUNTS, (max_steps) => ({ plan_id: planId, guardrails: { max_steps } })],
    [
      '_cleveragents/plan/use',
      'guardrails.max_total_cost',
      CAPS,
      (max_total_cost) => ({ action_name: 'a', guardrails: { max_total_cost } }),
    ],
    ['_cleveragents/plan/guard/set', 'guardrails.max_steps', COUNTS, (max_steps) => ({ plan_id: planId, guardrails: { max_steps } })],
    [
      '_cleveragents/plan/guard/set',
      'guardrails.max_total_cost',
      CAPS,
      (max_total_cost) => ({ plan_id: planId, guardrails: { max_total_cost } }),
    ],
    ['session.create', 'max_cost', CAPS, (max_cost) => ({ session_id: 's', max_cost })],
    ['_cleveragents/budget/set', 'total_usd', CAPS, (total_usd) => ({ level: 'org', total_usd })],
    ['_cleveragents/budget/set', 'daily_usd', CAPS, (daily_usd) => ({ level: 'org', daily_usd })],
    [
      '_cleveragents/profile/add',
      'profile.guard.max_total_cost',
      CAPS,
      (max_total_cost) => ({ profile: { name: 'p', guard: { max_total_cost } } }),
    ],
    [
      '_cleveragents/profile/add',
      'profile.safety.max_cost_per_plan',
      CAPS,
      (max_cost_per_plan) => ({ profile: { name: 'p', safety: { max_cost_per_plan } } }),
    ],
    [
      '_cleveragents/org/policy/set',
      'policy.guardrails.max_total_cost',
      CAPS,
      (max_total_cost) => ({ policy: { guardrails: { max_total_cost } } }),
    ],
  ];
  const cells = fields.flatMap(([name, field, values, make]) => values.map((value) => [name, field, value, make(value)] as const));

  it.each(cells)('%s refuses %s: %j', async (name, field, _value, params) => {
    const refusal = await refused(name, params);
    expect(refusal.kind).toBe('invalid');
    expect(fieldsOf(refusal).map((each) => each.startsWith(field))).toContain(true);
    expect((await admin.call('_cleveragents/plan/list', {})).total_size).toBe(0);
  });
});

describe('a list, a threshold or a member that is none', () => {
  it.each([
    ['_cleveragents/guard/configure', 'guardrails.tool_denylist.1', { plan_id: planId, guardrails: { tool_denylist: ['a', ' '] } }],
    ['_cleveragents/guard/configure', 'guardrails.tool_allowlist', { plan_id: planId, guardrails: { tool_allowlist: 'a' } }],
    ['_cleveragents/guard/configure', 'guardrails.max_stepz', { plan_id: planId, guardrails: { max_stepz: 1 } }],
    ['_cleveragents/guard/configure', 'guardrail', { plan_id: planId, guardrail: {} }],
    ['_cleveragents/guard/settle', 'outcome', { decision_id: decisionId, outcome: 'fine' }],
    ['_cleveragents/guard/settle', 'decision_id', { decision_id: planId, outcome: 'failed' }],
    ['_cleveragents/guard/evaluate', 'tool_name', { automation_profile: 'auto', tool_name: '  ' }],
    ['_cleveragents/guard/evaluate', 'context.scope', { automation_profile: 'auto', tool_name: 'x', context: { scope: 'org' } }],
    ['_cleveragents/org/policy/set', 'threshold_minima.edit_code', { policy: { threshold_minima: { edit_code: 1.5 } } }],
    ['_cleveragents/org/policy/set', 'threshold_minima.edit_code', { policy: { threshold_minima: { edit_code: '1' } } }],
    ['_cleveragents/org/policy/set', 'safety.tainted_write_hosts.0', { policy: { safety: { tainted_write_hosts: ['*'] } } }],
    ['_cleveragents/org/policy/set', 'safety.require_sandbox', { policy: { safety: { require_sandbox: false } } }],
    ['_cleveragents/profile/add', 'edit_code', { profile: { name: 'p', edit_code: -0.1 } }],
    ['_cleveragents/profile/add', 'guard.tool_denylist.0', { profile: { name: 'p', guard: { tool_denylist: [''] } } }],
    [
      '_cleveragents/profile/add',
      'safety.tainted_write_hosts.0',
      { profile: { name: 'p', safety: { tainted_write_hosts: ['http://a'] } } },
    ],
    ['session.close', 'session_id', {}],
    ['session.close', 'session_id', { session_id: '' }],
    ['session.close', 'session_id', { session_id: '   ' }],
    ['session.close', 'session_id', { session_id: 5 }],
  ] as const)('%s refuses %s', async (name, field, params) => {
    const refusal = await refused(name, params);
    expect(refusal.kind).toBe('invalid');
    expect(
      fieldsOf(refusal).some((each) => each.endsWith(field)),
      fieldsOf(refusal).join(),
    ).toBe(true);
    expect(await service.services.orgPolicies.latest('acme')).toBeNull();
    expect(await service.services.profiles.list('acme')).toEqual([]);
    expect((await admin.call('session.list', {})).sessions).toEqual([]);
  });
});

describe('a plan that is not named, not there, or not the caller’s', () => {
  const onOnePlan = OPERATION_NAMES.filter((name) => {
    const { required = [] } = z.toJSONSchema(OPERATIONS[name].params, { io: 'input', unrepresentable: 'any' });
    return required.includes('plan_id');
  });

  it.each(onOnePlan.flatMap((name) => [undefined, '', 'latest', 5].map((value) => [name, value] as const)))(
    '%s takes no other plan for %j',
    async (name, value) => {
      const refusal = await refused(name, value === undefined ? {} : { plan_id: value });
      expect(refusal.kind).toBe('invalid');
      expect(fieldsOf(refusal)).toContain('plan_id');
    },
  );

  it('has execute and apply among them', () => {
    expect(onOnePlan).toEqual(
      expect.arrayContaining(['_cleveragents/plan/execute', '_cleveragents/plan/apply', '_cleveragents/guard/authorize']),
    );
  });

  it.each([
    ['_cleveragents/guard/authorize', { tool_name: 'x' }],
    ['_cleveragents/guard/complete', {}],
    ['_cleveragents/guard/check_wall_clock', {}],
    ['_cleveragents/guard/check_tool_budget', { tool_cost: 1 }],
    ['_cleveragents/guard/associate_plan_with_session', { session_id: 's' }],
    ['_cleveragents/guard/get_audit_trail', {}],
    ['_cleveragents/plan/execute', {}],
    ['_cleveragents/plan/apply', {}],
    ['_cleveragents/plan/guard/show', {}],
  ] as const)('%s answers the same for an unknown plan and for one of another org, which stays as it is', async (name, params) => {
    const other = await service.caller('umbrella');
    const foreign = ulid();
    await other.call('_cleveragents/guard/configure', { plan_id: foreign, automation_profile: 'auto' });
    const before = await other.call('_cleveragents/plan/status', { plan_id: foreign });
    const unknown = await refused(name, { plan_id: ulid(), ...params });
    const theirs = await refused(name, { plan_id: foreign, ...params });
    expect(unknown.kind).toBe('not_found');
    expect(theirs.kind).toBe('not_found');
    expect(Object.keys(theirs).sort()).toEqual(Object.keys(unknown).sort());
    expect(await other.call('_cleveragents/plan/status', { plan_id: foreign })).toEqual(before);
  });
});
