/** The sixth guard of the source, the apply approval, comes after all others: it is asked when the calls are done (guards.md, design section 7). */
import { expect, it } from 'vitest';
import type { Guardrails } from '../../../src/core/guard-policy.ts';
import { call, PlanDriver } from './plan-driver.ts';

const CASES: readonly (readonly [string, Guardrails])[] = [
  ['denylist', { tool_denylist: ['files.write'] }],
  ['allowlist', { tool_allowlist: ['files.read'] }],
  ['budget_cap', { tool_budget: 0 }],
  ['tool_call_limit', { max_tool_calls_per_step: 0 }],
  ['write_approval', { require_approval_for_writes: true }],
];

it.each(CASES)('of %s and apply_approval the first is the reason; the other is asked once the call has run', (guard, guardrails) => {
  const driver = PlanDriver.run(
    { guardrails: { ...guardrails, require_approval_for_apply: true } },
    { execute: [{ calls: [{ ...call('files.write', { path: 'a' }), declaredCostUsd: 0.1 }] }] },
  );
  expect(driver.rowsOf('call_decided')[0]?.data).toMatchObject({ allowed: false, guard });
  const asksForApply = () => driver.rowsOf('gate_decided').filter(({ data }) => data.gate === 'select_tool');
  expect(asksForApply()).toEqual([]);
  expect(driver.tools).toEqual([]);
  const { only } = driver;
  driver.approve(only, only.kind === 'limit' ? { grant: guard === 'budget_cap' ? { cost_usd: 1 } : { calls: 1 } } : {});
  driver.run();
  expect(driver.tools).toEqual(['files.write']);
  expect(asksForApply()).toMatchObject([{ data: { outcome: 'ask' } }]);
  expect(driver.only).toMatchObject({ kind: 'gate', gate: 'select_tool' });
});
