/** What is spent under a profile before it has a limit counts when it gets one (`safety.max_total_cost`, design sections 7 and 10). */
import { runDurableObjectAlarm } from 'cloudflare:test';
import { ulid } from 'ulid';
import { afterEach, describe, expect, it } from 'vitest';
import { findOperation, type OperationName, type ParamsInputOf, type ResultOf } from '../../src/api/operations.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import type { Principal } from '../../src/core/principal.ts';
import { FAULTS } from '../worker/test-worker.ts';
import { eventually, newName } from './lease-player.ts';
import {
  addAction,
  crash,
  evict,
  isTerminal,
  isWaiting,
  newOrg,
  onlyPending,
  performed,
  planOf,
  services,
  start,
  stubOf,
  until,
} from './plan-support.ts';

afterEach(() => FAULTS.between.clear());

async function call<N extends OperationName>(person: Principal, name: N, params: ParamsInputOf<N>): Promise<ResultOf<N>> {
  const found = findOperation(name);
  if (found === null) throw new Error(`no operation ${name}`);
  const result = await dispatchOperation(found, params, { principal: person, idempotencyKey: null }, services);
  if (!result.ok) throw new Error(`${name}: ${JSON.stringify(result.error)}`);
  return result.value as unknown as ResultOf<N>;
}

async function addProfile(person: Principal): Promise<string> {
  const name = newName('p');
  await call(person, '_cleveragents/profile/add', { profile: { name, extends: 'auto' } });
  return name;
}

/** Each priced call costs $0.10. */
const priced = (label: string, count: number, tool = 'test/priced') =>
  Array.from({ length: count }, (_, n) => ({ tool, arguments: { label, padding: `${n}` } }));

async function startUnder(person: Principal, profile: string, steps: readonly object[]): Promise<string> {
  const actionName = await addAction(person, { name: `a-${ulid().toLowerCase()}`, execute: steps, apply: 'none' });
  return (await start(person, { actionName, automationProfile: profile, sessionId: newName('s') })).plan.id;
}

const spend = (person: Principal, profile: string, count: number, label = ulid()) =>
  startUnder(person, profile, [{ id: 'batch', calls: priced(label, count) }]);

/** Counts what is said to the node of a profile. */
function listen(person: Principal): string[] {
  const heard: string[] = [];
  FAULTS.between.set(person.org, ({ operation }) => {
    if (operation.startsWith('profile.')) heard.push(operation);
    return null;
  });
  return heard;
}

const totalOf = ({ windows }: ResultOf<'_cleveragents/budget/show'>) => windows.find(({ window }) => window === 'total');
const show = (person: Principal, profile: string) => call(person, '_cleveragents/budget/show', { level: 'profile', profile });
const limit = (person: Principal, name: string, max: number) =>
  call(person, '_cleveragents/profile/update', { name, profile: { name, extends: 'auto', safety: { max_total_cost: max } } });

describe('a profile without a limit', () => {
  it('shows what was spent under it, by plan and by tool, also one that is built in', async () => {
    const person = await newOrg();
    for (const profile of [await addProfile(person), 'auto']) {
      const planId = await spend(person, profile, 3);
      await until(person, planId, isTerminal);
      const shown = await eventually(
        () => show(person, profile),
        (seen) => totalOf(seen)?.spent_usd === 0.3,
      );
      expect(totalOf(shown)).toMatchObject({ cap_usd: null, spent_usd: 0.3, leased_usd: 0, remaining_usd: null });
      expect(shown.told).toMatchObject({ spent_usd: 0.3, tools: [{ tool: 'test/priced', spent_usd: 0.3 }], plans: [{ plan_id: planId }] });
    }
  });

  it('that gets one holds new plans to it, with all that was spent before', async () => {
    const person = await newOrg();
    const profile = await addProfile(person);
    for (const planId of [await spend(person, profile, 3), await spend(person, profile, 2)]) await until(person, planId, isTerminal);
    await limit(person, profile, 0.6);
    const shown = await eventually(
      () => show(person, profile),
      (seen) => totalOf(seen)?.spent_usd === 0.5,
    );
    expect(totalOf(shown)).toMatchObject({ cap_usd: 0.6, remaining_usd: 0.1 });
    const label = ulid();
    const held = await spend(person, profile, 3, label);
    const asked = onlyPending(await until(person, held, isWaiting));
    expect(asked).toMatchObject({ kind: 'limit' });
    expect(asked.reason).toMatch(/^Budget cap exceeded: \$0\.70 > \$0\.60\./);
    expect(performed(label)).toHaveLength(1);
  });

  it('is told of what plans charge that began before, and they are not held', async () => {
    const person = await newOrg();
    const profile = await addProfile(person);
    const label = ulid();
    const steps = [
      { id: 'one', calls: priced(label, 2) },
      { id: 'pause', ask: 'Go on?' },
      { id: 'two', calls: priced(label, 4) },
    ];
    const early = await startUnder(person, profile, steps);
    const question = onlyPending(await until(person, early, isWaiting));
    await limit(person, profile, 0.5);
    await call(person, '_cleveragents/approval/decide', { approval_id: question.id, decision: 'answer', text: 'yes' });
    expect((await until(person, early, isTerminal)).plan.state).toBe('applied');
    expect(performed(label)).toHaveLength(6);
    const shown = await eventually(
      () => show(person, profile),
      (seen) => totalOf(seen)?.spent_usd === 0.6,
    );
    expect(totalOf(shown)).toMatchObject({ cap_usd: 0.5, remaining_usd: 0, exceeded: true });
    const other = ulid();
    const late = await spend(person, profile, 1, other);
    expect(onlyPending(await until(person, late, isWaiting)).reason).toMatch(/^Budget cap exceeded: \$0\.70 > \$0\.50\./);
    expect(performed(other)).toHaveLength(0);
  });
});

describe('what is told', () => {
  it.each(['before', 'after', 'twice'] as const)('is told again where a message fails %s it was heard, and counts once', async (fault) => {
    const person = await newOrg();
    const profile = await addProfile(person);
    let failures = 0;
    FAULTS.between.set(person.org, ({ operation }) => {
      if (!operation.startsWith('profile.') || failures >= 2) return null;
      failures += 1;
      return fault;
    });
    const planId = await spend(person, profile, 3);
    await until(person, planId, isTerminal);
    await expect.poll(() => failures, { timeout: 10_000 }).toBe(2);
    FAULTS.between.clear();
    // Its object dies as well: what was not heard is known from its rows.
    await crash(person, planId);
    await planOf(person, planId).read();
    await expect
      .poll(
        async () => {
          await runDurableObjectAlarm(stubOf(person, planId));
          const node = services.budgets.node(person.org, { kind: 'profile', name: profile });
          return (await node.show(null)).caps.find(({ window }) => window === 'total')?.spentMicroUsd;
        },
        { timeout: 15_000 },
      )
      .toBe(300_000);
  });

  it('costs a plan of twenty calls a few messages, one that charges nothing none, and one under a built-in profile none', async () => {
    const person = await newOrg();
    const profile = await addProfile(person);
    const heard = listen(person);
    const free = await startUnder(person, profile, [{ id: 'batch', calls: priced(ulid(), 3, 'test/counter') }]);
    await until(person, free, isTerminal);
    await evict(person, free);
    await planOf(person, free).read();
    await until(person, await spend(person, 'auto', 3), isTerminal);
    expect(heard).toEqual([]);
    const label = ulid();
    const steps = priced(label, 20).map((each, n) => ({ id: `s${n}`, call: each }));
    await until(person, await startUnder(person, profile, steps), isTerminal);
    await eventually(
      () => show(person, profile),
      (seen) => totalOf(seen)?.spent_usd === 2,
    );
    await expect.poll(() => heard.at(-1), { timeout: 10_000 }).toBe('profile.close');
    expect(heard.length).toBeLessThanOrEqual(8);
    expect(new Set(heard)).toEqual(new Set(['profile.freed', 'profile.close']));
  });
});
