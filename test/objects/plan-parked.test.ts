/** Calls that wait for a human, on real plans: what one approval covers, and what has become stricter meanwhile (case H07). */
import { ulid } from 'ulid';
import { describe, expect, it } from 'vitest';
import { findOperation, type OperationName, type ParamsInputOf, type ResultOf } from '../../src/api/operations.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import type { Principal } from '../../src/core/principal.ts';
import { newName } from './lease-player.ts';
import {
  addAction,
  approve,
  isSettled,
  isTerminal,
  newOrg,
  onlyPending,
  performed,
  rowsOf,
  services,
  start,
  until,
} from './plan-support.ts';

async function call<N extends OperationName>(person: Principal, name: N, params: ParamsInputOf<N>): Promise<ResultOf<N>> {
  const found = findOperation(name);
  if (found === null) throw new Error(`no operation ${name}`);
  const result = await dispatchOperation(found, params, { principal: person, idempotencyKey: null }, services);
  if (!result.ok) throw new Error(`${name}: ${JSON.stringify(result.error)}`);
  return result.value as unknown as ResultOf<N>;
}

const calls = (label: string, count: number) =>
  Array.from({ length: count }, (_, n) => ({ tool: 'test/priced', arguments: { label, padding: `${n}` } }));

async function startWith(person: Principal, count: number, sessionId = newName('s')): Promise<string> {
  const execute = [{ id: 'batch', calls: calls(person.org, count) }];
  const actionName = await addAction(person, { name: `a-${ulid().toLowerCase()}`, execute, apply: 'none' });
  return (await start(person, { actionName, automationProfile: 'auto', sessionId })).plan.id;
}

describe('a step that requires human approval', () => {
  it('is asked about once, with its three calls, and one approval lets them run', async () => {
    const person = await newOrg();
    await call(person, '_cleveragents/org/policy/set', { policy: { safety: { require_human_approval: true } } });
    const planId = await startWith(person, 3);
    const asked = onlyPending(await until(person, planId, isSettled));
    expect(asked).toMatchObject({ kind: 'call', guard: 'step_approval', callIds: ['c1', 'c2', 'c3'] });
    expect(performed(person.org)).toEqual([]);
    await approve(person, planId, asked);
    const done = await until(person, planId, isTerminal);
    expect(done.plan.state).toBe('applied');
    expect(performed(person.org)).toHaveLength(3);
    const allowed = (await rowsOf(person, planId, 'call_decided')).filter(({ data }) => data.allowed);
    expect(allowed.map(({ data }) => data.consumed_approval)).toEqual([asked.id, asked.id, asked.id]);
  });
});

describe('a budget of the org that is lowered while a call waits for a human', () => {
  it('is met when the call is approved: nothing runs, and the raise at the org sets it going', async () => {
    const person = await newOrg();
    await call(person, '_cleveragents/org/policy/set', { policy: { guardrails: { required_confirmations: ['test/priced'] } } });
    const planId = await startWith(person, 1);
    const asked = onlyPending(await until(person, planId, isSettled));
    expect(asked).toMatchObject({ kind: 'call', guard: 'confirmation' });
    // Below what the call is estimated at ($0.10).
    await call(person, '_cleveragents/budget/set', { level: 'org', total_usd: 0.05 });
    await approve(person, planId, asked);
    const held = onlyPending(await until(person, planId, (snapshot) => isSettled(snapshot) && snapshot.plan.approvals.length === 2));
    expect(held).toMatchObject({ kind: 'limit', guard: 'budget_cap', suggestedGrant: null });
    expect(held.reason).toMatch(/^Budget cap exceeded: \$0\.10 > \$0\.05\. Remediation: raise the budget of the org/);
    expect(performed(person.org)).toEqual([]);
    await call(person, '_cleveragents/budget/set', { level: 'org', total_usd: 1 });
    const done = await until(person, planId, isTerminal);
    expect(done.plan.state).toBe('applied');
    expect(performed(person.org)).toHaveLength(1);
    // The trail names the policy at the question and at the run.
    const rows = await rowsOf(person, planId, 'call_decided');
    expect(rows.map(({ data }) => [data.guard, data.policy_digest === rows[0]?.data.policy_digest])).toEqual([
      ['confirmation', true],
      ['budget_cap', true],
      [null, true],
    ]);
  });
});
