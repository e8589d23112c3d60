import { evictDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { ulid } from 'ulid';
import { describe, expect, it } from 'vitest';
import type { BudgetRef } from '../../src/app/ports.ts';
import { NO_CAPS } from '../../src/core/budget/node-state.ts';
import type { Principal } from '../../src/core/principal.ts';
import { objectName } from '../../src/storage/objects.ts';
import {
  addAction,
  answer,
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
