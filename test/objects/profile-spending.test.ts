/** What is spent under a profile before it has a limit counts when it gets one (`safety.max_total_cost`, design sections 7 and 10). */
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { ulid } from 'ulid';
import { afterEach, describe, expect, it } from 'vitest';
import { findOperation, type OperationName, type ParamsInputOf, type ResultOf } from '../../src/api/operations.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import type { Principal } from '../../src/core/principal.ts';
import { FAULTS } from '../worker/test-worker.ts';
import { crashNode, eventually, newName } from './lease-player.ts';
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

/** A plan whose calls are made outside, and which is asked about each of them. */
async function external(person: Principal, profile: string) {
  const planId = ulid();
  await call(person, '_cleveragents/guard/configure', { plan_id: planId, session_id: newName('s'), automation_profile: profile });
  const charge = async (usd: number) => {
    const params = { plan_id: planId, tool_name: 'own.model', is_write: false, cost_usd: usd };
    const { decision_id } = await call(person, '_cleveragents/guard/authorize', params);
    await call(person, '_cleveragents/guard/settle', { decision_id, outcome: 'succeeded', cost_usd: usd });
  };
  return { planId, charge };
}

/** What the node of a profile knows, which is what new plans are held to. */
async function knownMicroUsd(person: Principal, profile: string): Promise<number | undefined> {
  const { caps } = await services.budgets.node(person.org, { kind: 'profile', name: profile }).show(null);
  return caps.find(({ window }) => window === 'total')?.spentMicroUsd;
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

  it('that gets one counts what is not told yet, after every object has died and while it cannot be reached', async () => {
    const person = await newOrg();
    const profile = await addProfile(person);
    FAULTS.between.set(person.org, ({ operation }) => (operation.startsWith('profile.') ? 'before' : null));
    const plans = [await spend(person, profile, 3), await spend(person, profile, 2)];
    for (const planId of plans) await until(person, planId, isTerminal);
    for (const planId of plans) await evict(person, planId);
    await limit(person, profile, 0.6);
    expect(await knownMicroUsd(person, profile)).toBe(0);
    // Nobody answers for the profile: that is not taken for a budget that is used up, nor for one that is free.
    const label = ulid();
    const held = await spend(person, profile, 3, label);
    await crashNode(person.org, { kind: 'profile', name: profile });
    expect(performed(label)).toHaveLength(0);
    for (const planId of plans) await planOf(person, planId).read();
    FAULTS.between.set(person.org, ({ operation, child }) => (operation === 'profile.ask' && child === held ? 'before' : null));
    await expect
      .poll(
        async () => {
          for (const planId of plans) await runDurableObjectAlarm(stubOf(person, planId));
          return knownMicroUsd(person, profile);
        },
        { timeout: 15_000 },
      )
      .toBe(500_000);
    FAULTS.between.clear();
    await crashNode(person.org, { kind: 'profile', name: profile });
    const asked = onlyPending(await until(person, held, isWaiting, 60_000));
    expect(asked.reason).toMatch(/^Budget cap exceeded: \$0\.70 > \$0\.60\./);
    expect(performed(label)).toHaveLength(1);
  }, 90_000);

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
  it.each(['before', 'after', 'twice', 'silence'] as const)(
    'is told again where a message fails %s it was heard, and counts once',
    async (fault) => {
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
    },
  );

  it('holds nobody up: a plan of twenty calls ends while nobody answers any of it', async () => {
    const person = await newOrg();
    const profile = await addProfile(person);
    const heard: string[] = [];
    FAULTS.between.set(person.org, ({ operation }) => {
      if (!operation.startsWith('profile.')) return null;
      heard.push(operation);
      return 'silence';
    });
    const steps = priced(ulid(), 20).map((each, n) => ({ id: `s${n}`, call: each }));
    const planId = await startUnder(person, profile, steps);
    expect((await until(person, planId, isTerminal)).plan.state).toBe('applied');
    expect(heard.length).toBeGreaterThan(0);
    expect(heard.length).toBeLessThanOrEqual(8);
    expect(await knownMicroUsd(person, profile)).toBe(0);
    FAULTS.between.clear();
    const again = () => runDurableObjectAlarm(stubOf(person, planId)).then(() => knownMicroUsd(person, profile));
    await expect.poll(again, { timeout: 10_000 }).toBe(2_000_000);
  });

  it('comes soon from a plan that waits for its next call, and at most once a second however much it charges', async () => {
    const person = await newOrg();
    const profile = await addProfile(person);
    const heard = listen(person);
    const { charge } = await external(person, profile);
    const startedMs = Date.now();
    await charge(0.01);
    await expect.poll(() => knownMicroUsd(person, profile), { timeout: 5_000 }).toBe(10_000);
    // It has just given back what it does not use, and is not due to do so again for a while.
    await expect.poll(async () => heard.length, { timeout: 5_000 }).toBeGreaterThan(0);
    let charged = 1;
    for (; Date.now() - startedMs < 6_000; charged += 1) await charge(0.01);
    await expect.poll(() => knownMicroUsd(person, profile), { timeout: 5_000 }).toBe(charged * 10_000);
    expect(charged).toBeGreaterThan(20);
    expect(heard.length).toBeLessThanOrEqual((Date.now() - startedMs) / 1_000 + 2);
    expect(new Set(heard)).toEqual(new Set(['profile.freed']));
  }, 30_000);

  it('comes at most once a second from a plan that nobody answers', async () => {
    const person = await newOrg();
    const profile = await addProfile(person);
    const heard: string[] = [];
    FAULTS.between.set(person.org, ({ operation }) => {
      if (!operation.startsWith('profile.')) return null;
      heard.push(operation);
      return 'silence';
    });
    const { planId, charge } = await external(person, profile);
    const startedMs = Date.now();
    let charged = 0;
    for (; Date.now() - startedMs < 4_000; charged += 1) {
      await charge(0.01);
      // Whatever wakes the plan: what is on its way is not said again.
      await runDurableObjectAlarm(stubOf(person, planId));
    }
    expect(heard.length).toBeLessThanOrEqual((Date.now() - startedMs) / 1_000 + 2);
    FAULTS.between.clear();
    const again = () => runDurableObjectAlarm(stubOf(person, planId)).then(() => knownMicroUsd(person, profile));
    await expect.poll(again, { timeout: 15_000 }).toBe(charged * 10_000);
  }, 30_000);

  it.each(['waits', 'has ended'] as const)(
    'comes from a stored plan that never told anything when it wakes next: one that %s',
    async (how) => {
      const person = await newOrg();
      const profile = await addProfile(person);
      // As in a plan of which no such account was kept: nothing was said, and nothing is stored of it.
      FAULTS.between.set(person.org, ({ operation }) => (operation.startsWith('profile.') ? 'before' : null));
      const last = how === 'waits' ? [{ id: 'pause', ask: 'Go on?' }] : [];
      const planId = await startUnder(person, profile, [{ id: 'batch', calls: priced(ulid(), 3) }, ...last]);
      await until(person, planId, how === 'waits' ? isWaiting : isTerminal);
      await runInDurableObject(stubOf(person, planId), (_object, { storage }) => {
        storage.sql.exec("DELETE FROM lease WHERE parent LIKE 'profile:%'");
      });
      await evictDurableObject(stubOf(person, planId));
      FAULTS.between.clear();
      expect(await knownMicroUsd(person, profile)).toBe(0);
      await planOf(person, planId).wake();
      await expect.poll(() => knownMicroUsd(person, profile), { timeout: 15_000 }).toBe(300_000);
    },
  );

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
