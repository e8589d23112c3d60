import { evictDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { ulid } from 'ulid';
import { describe, expect, it } from 'vitest';
import { findOperation, type OperationName, type ParamsInputOf, type ResultOf } from '../../src/api/operations.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import type { BudgetRef } from '../../src/app/ports.ts';
import { NO_CAPS } from '../../src/core/budget/node-state.ts';
import type { Principal } from '../../src/core/principal.ts';
import { objectName } from '../../src/storage/objects.ts';
import {
  addAction,
  answer,
  cancel,
  crash,
  isSettled,
  isTerminal,
  newOrg,
  onlyPending,
  pendingOf,
  performed,
  planOf,
  rowsOf,
  services,
  start,
  stateOf,
  track,
  until,
} from './plan-support.ts';

const priced = (label: string, n: number) => ({ tool: 'test/priced', arguments: { label, padding: `${n}` } });
const calls = (label: string, count: number) => Array.from({ length: count }, (_, n) => priced(label, n));

const nodeOf = (person: Principal, ref: BudgetRef) => services.budgets.node(person.org, ref);
const capOf = async (person: Principal, ref: BudgetRef) =>
  (await nodeOf(person, ref).show(null)).caps.find(({ window }) => window === 'total');

/** A plan of one batch of priced calls ($0.10 each) in a session. */
async function startIn(person: Principal, sessionId: string, steps: readonly object[], rest: object = {}): Promise<string> {
  const actionName = await addAction(person, { name: `a-${ulid().toLowerCase()}`, execute: steps, apply: 'none' });
  const made = await start(person, { actionName, automationProfile: 'auto', sessionId, ...rest });
  return made.plan.id;
}

/** A node that nobody has spoken to yet is in no memory. */
const evictNode = (stub: DurableObjectStub): Promise<void> => evictDurableObject(stub).catch(() => {});

const session = (): string => `s-${ulid().toLowerCase()}`;

describe('a session with a cap', () => {
  it('lets a plan spend exactly that, asks for the rest naming the level, and the plan goes on by itself after a raise', async () => {
    const person = await newOrg();
    const id = session();
    const ref: BudgetRef = { kind: 'session', id };
    await nodeOf(person, ref).setCaps({ ...NO_CAPS, total: 1_000_000 }, { mayLoosen: true });
    const planId = await startIn(person, id, [{ id: 'batch', calls: calls(person.org, 15) }]);
    await until(person, planId, (snapshot) => isSettled(snapshot) && performed(person.org).length >= 10);
    const limit = onlyPending(await until(person, planId, (snapshot) => snapshot.plan.ledger.reservations.length === 0));
    expect(limit).toMatchObject({ kind: 'limit', guard: 'budget_cap', suggestedGrant: null });
    expect(limit.reason).toMatch(
      /^Budget cap exceeded: \$1\.10 > \$1\.00\. Remediation: raise the budget of the session, or lower cost\.$/,
    );
    expect(performed(person.org)).toHaveLength(10);
    const refused = (await rowsOf(person, planId, 'call_decided')).filter((row) => !row.data.allowed);
    expect(refused).toHaveLength(5);
    for (const row of refused) {
      expect(row.data.guards.find(({ guard }) => guard === 'budget_cap')).toMatchObject({ allowed: false, exceededLevel: 'session' });
    }
    // Nobody can grant it in the plan; approving only tries again.
    expect(await answer(person, planId, limit, { grant: { cost_usd: 1 } })).toMatchObject({ ok: false, error: { kind: 'invalid' } });
    await answer(person, planId, limit);
    const again = onlyPending(await until(person, planId, (snapshot) => pendingOf(snapshot).length === 1));
    expect(again.id).not.toBe(limit.id);
    expect(performed(person.org)).toHaveLength(10);

    await nodeOf(person, ref).setCaps({ ...NO_CAPS, total: 2_000_000 }, { mayLoosen: true });
    expect((await planOf(person, planId).command({ type: 'retry_budget' }))?.ok).toBe(true);
    const done = await until(person, planId, isTerminal);
    expect(done.plan.state).toBe('applied');
    expect(performed(person.org)).toHaveLength(15);
    await expect.poll(() => capOf(person, ref)).toMatchObject({ spentMicroUsd: 1_500_000, leasedMicroUsd: 0, remainingMicroUsd: 500_000 });
  });

  it('is never exceeded by many plans at once, and every micro-dollar is accounted for afterwards', async () => {
    const person = await newOrg();
    const id = session();
    const ref: BudgetRef = { kind: 'session', id };
    await nodeOf(person, ref).setCaps({ ...NO_CAPS, total: 2_350_000 }, { mayLoosen: true });
    const plans = await Promise.all(Array.from({ length: 6 }, () => startIn(person, id, [{ id: 'batch', calls: calls(person.org, 8) }])));
    for (const planId of plans) {
      await until(person, planId, (snapshot) => isSettled(snapshot) && snapshot.plan.ledger.reservations.length === 0, 60_000);
    }
    expect(performed(person.org)).toHaveLength(23);
    await expect.poll(() => capOf(person, ref)).toMatchObject({ spentMicroUsd: 2_300_000, leasedMicroUsd: 0, remainingMicroUsd: 50_000 });
    for (const planId of plans)
      await planOf(person, planId).command({ type: 'cancel', by: { kind: 'human', id: person.keyId }, reason: null });
    await expect.poll(() => capOf(person, ref)).toMatchObject({ spentMicroUsd: 2_300_000, leasedMicroUsd: 0 });
  });

  it('gives nothing twice across evictions and crashes of plan, session and org', async () => {
    const person = await newOrg();
    const id = session();
    await nodeOf(person, { kind: 'org' }).setCaps({ ...NO_CAPS, total: 1_000_000 }, { mayLoosen: true });
    const steps = Array.from({ length: 14 }, (_, n) => ({ id: `s${n}`, call: priced(person.org, n) }));
    const made = await startIn(person, id, steps);
    for (let n = 0; n < 4; n += 1) {
      await crash(person, made);
      await evictNode(env.SESSIONS.getByName(objectName(person.org, 'session', id)));
      await evictNode(env.ORGS.getByName(objectName(person.org, 'org', person.org)));
    }
    const limit = onlyPending(await until(person, made, (snapshot) => isSettled(snapshot) && pendingOf(snapshot).length === 1, 60_000));
    expect(limit.reason).toMatch(/raise the budget of the org/);
    expect((await stateOf(person, made)).ledger.settledMicroUsd).toBe(1_000_000);
    await expect
      .poll(() => capOf(person, { kind: 'org' }))
      .toMatchObject({ spentMicroUsd: 1_000_000, leasedMicroUsd: 0, remainingMicroUsd: 0 });
  });

  it('fails a plan under ci, which has nobody to wait for', async () => {
    const person = await newOrg();
    const id = session();
    await nodeOf(person, { kind: 'session', id }).setCaps({ ...NO_CAPS, total: 100_000 }, { mayLoosen: true });
    const planId = await startIn(person, id, [{ id: 'batch', calls: calls(person.org, 2) }], { automationProfile: 'ci' });
    const done = await until(person, planId, isTerminal);
    expect(done.plan.state).toBe('errored');
    expect(done.plan.failure?.last.message).toMatch(/^Budget cap exceeded: .* raise the budget of the session/);
    expect(performed(person.org)).toHaveLength(0);
    await expect.poll(() => capOf(person, { kind: 'session', id })).toMatchObject({ spentMicroUsd: 0, leasedMicroUsd: 0 });
  });
});

describe('a plan that rests or goes away', () => {
  it('that has failed for now gives back its lease, and those above know what it spent', async () => {
    const person = await newOrg();
    const id = session();
    await nodeOf(person, { kind: 'session', id }).setCaps({ ...NO_CAPS, total: 1_000_000 }, { mayLoosen: true });
    const planId = await startIn(person, id, [
      { call: priced(person.org, 0) },
      { call: { tool: 'test/fail_permanent', arguments: { label: person.org } } },
    ]);
    await until(person, planId, (snapshot) => snapshot.plan.state === 'errored');
    await expect
      .poll(() => capOf(person, { kind: 'session', id }))
      .toMatchObject({ spentMicroUsd: 100_000, leasedMicroUsd: 0, remainingMicroUsd: 900_000 });
  });

  it('whose executor is outside is shown as spending while it works, is warned about at 90 %, and gives back what it does not use', async () => {
    const { person, id, authorize } = await openOutside();
    await nodeOf(person, { kind: 'session', id }).setCaps({ ...NO_CAPS, total: 1_000_000 }, { mayLoosen: true });
    for (let n = 0; n < 10; n += 1) {
      const { decision_id, allowed } = await authorize({ cost_usd: 0.092, arguments: { n } });
      expect(allowed).toBe(true);
      await settleOutside(person, decision_id);
    }
    const view = async () => nodeOf(person, { kind: 'session', id }).show(null);
    await expect.poll(async () => (await view()).warnings.map(({ window }) => window), { timeout: 20_000 }).toEqual(['total']);
    await expect
      .poll(() => capOf(person, { kind: 'session', id }), { timeout: 20_000 })
      .toMatchObject({ spentMicroUsd: 920_000, leasedMicroUsd: 0 });
  });

  it('that comes back to a session that it left gets money there, and none of it is counted in the other', async () => {
    const { person, id, planId, authorize, associate } = await openOutside();
    const other = session();
    for (const at of [id, other, id, other, id]) {
      await associate(at);
      const { allowed, decision_id } = await authorize({ cost_usd: 0.1, arguments: { at } });
      expect(allowed, at).toBe(true);
      await settleOutside(person, decision_id, 'not_dispatched');
    }
    const { allowed } = await authorize({ cost_usd: 0.3, arguments: { last: true } });
    expect(allowed).toBe(true);
    await cancel(person, planId);
    await expect
      .poll(() => capOf(person, { kind: 'session', id: other }), { timeout: 20_000 })
      .toMatchObject({ spentMicroUsd: 0, leasedMicroUsd: 0 });
  });

  it('has to know every price from the moment on at which a cap above it is set', async () => {
    const { person, id, authorize } = await openOutside();
    const unpriced = async (n: number) => (await authorize({ tool_name: 'own.model', arguments: { n } })).allowed;
    expect(await unpriced(1)).toBe(true);
    await nodeOf(person, { kind: 'session', id }).setCaps({ ...NO_CAPS, total: 1_000_000 }, { mayLoosen: true });
    expect(await unpriced(2)).toBe(false);
    await nodeOf(person, { kind: 'session', id }).setCaps(NO_CAPS, { mayLoosen: true });
    expect(await unpriced(3)).toBe(true);
    await nodeOf(person, { kind: 'org' }).setCaps({ ...NO_CAPS, daily: 1_000_000 }, { mayLoosen: true });
    expect(await unpriced(4)).toBe(false);
  });
});

async function openOutside() {
  const person = await newOrg();
  const id = session();
  const planId = ulid();
  await call(person, '_cleveragents/guard/configure', { plan_id: planId, automation_profile: 'full-auto', session_id: id });
  track(person, planId);
  return {
    person,
    id,
    planId,
    authorize: (rest: Omit<ParamsInputOf<'_cleveragents/guard/authorize'>, 'plan_id' | 'tool_name'> & { tool_name?: string }) =>
      call(person, '_cleveragents/guard/authorize', { plan_id: planId, tool_name: 'own.tool', is_write: false, ...rest }),
    associate: (sessionId: string) =>
      call(person, '_cleveragents/guard/associate_plan_with_session', { plan_id: planId, session_id: sessionId }),
  };
}

const settleOutside = (person: Principal, decisionId: string, outcome: 'succeeded' | 'not_dispatched' = 'succeeded') =>
  call(person, '_cleveragents/guard/settle', { decision_id: decisionId, outcome });

async function call<N extends OperationName>(principal: Principal, name: N, params: ParamsInputOf<N>): Promise<ResultOf<N>> {
  const found = findOperation(name);
  if (found === null) throw new Error(`no operation ${name}`);
  const result = await dispatchOperation(found, params, { principal, idempotencyKey: null }, services);
  if (!result.ok) throw new Error(`${name}: ${JSON.stringify(result.error)}`);
  return result.value as unknown as ResultOf<N>;
}
