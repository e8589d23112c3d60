/** A plan whose log is damaged decides nothing any more; a person closes it, and the money that it held is spent. */
import { evictDurableObject, runDurableObjectAlarm } from 'cloudflare:test';
import { ulid } from 'ulid';
import { describe, expect, it } from 'vitest';
import type { BudgetView } from '../../src/api/budget.ts';
import type { BudgetRef } from '../../src/app/ports.ts';
import { NO_CAPS } from '../../src/core/budget/node-state.ts';
import type { Principal } from '../../src/core/principal.ts';
import { addKey, evict, newOrg, services, stubOf } from './plan-support.ts';
import { bodyOf, counting, endedPlan, type TamperedPlan, tamperedPlan } from './tamper-support.ts';

type SessionRef = Extract<BudgetRef, { readonly kind: 'session' }>;

const reason = 'the disk was restored, token ghp_0123456789abcdefghij0123456789abcdef';

/** An external plan in a session that has $1, with $0.30 reserved for a call of which nobody has told the end. */
async function reserving(
  profile = 'full-auto',
  by: Principal | null = null,
): Promise<{ readonly plan: TamperedPlan; readonly person: Principal; readonly ref: SessionRef }> {
  const person = by ?? (await newOrg());
  const planId = ulid();
  const plan = tamperedPlan(person, planId);
  const ref: SessionRef = { kind: 'session', id: `s-${planId.toLowerCase()}` };
  await services.budgets.node(person.org, ref).setCaps({ ...NO_CAPS, total: 1_000_000 }, { mayLoosen: true });
  expect(await plan.call('_cleveragents/guard/configure', { session_id: ref.id, automation_profile: profile })).toMatchObject({
    ok: true,
  });
  const asked = await plan.call('_cleveragents/guard/authorize', { tool_name: 'pay.send', arguments: {}, cost_usd: 0.3 });
  expect(asked).toMatchObject({ ok: true, value: { allowed: true } });
  // Nothing but what is reserved is left with it.
  await expect.poll(async () => usedOf(person, ref), { timeout: 15_000 }).toEqual({ used: 300_000, leased: 300_000 });
  return { plan, person, ref };
}

async function usedOf(person: Principal, ref: BudgetRef) {
  const { caps, children } = await services.budgets.node(person.org, ref).show(null);
  const total = caps.find(({ window }) => window === 'total');
  return {
    used: (total?.spentMicroUsd ?? 0) + (total?.leasedMicroUsd ?? 0),
    leased: children.reduce((sum, { leasedMicroUsd }) => sum + leasedMicroUsd, 0),
  };
}

async function damage(
  { plan, person }: { readonly plan: TamperedPlan; readonly person: Principal },
  also = (_sql: SqlStorage): void => {},
) {
  await plan.tamper((sql) => {
    sql.exec('UPDATE log SET body = ? WHERE seq = 2', bodyOf(sql, 2).replace('pay.send', 'pay.sent'));
    also(sql);
  });
  await evict(person, plan.planId).catch(() => evictDurableObject(stubOf(person, plan.planId)));
}

describe('a plan whose log is damaged', () => {
  it('is closed by an admin: what it held is spent, the org knows who did it, and it still can be read', async () => {
    const world = await reserving();
    const { plan, person, ref } = world;
    await damage(world);
    const good = (await services.plans.plan(person.org, plan.planId).log(0, 1))?.[0]?.hash;
    // Damaged, it keeps what it has, whoever else needs it.
    expect(await usedOf(person, ref)).toEqual({ used: 300_000, leased: 300_000 });
    expect(await plan.call('_cleveragents/plan/cancel')).toMatchObject({ ok: false, error: { details: { reason: 'LOG_DAMAGED' } } });

    const retired = await plan.call('_cleveragents/plan/retire', { reason });
    expect(retired).toMatchObject({
      ok: true,
      value: {
        problem: 'changed',
        first_bad_seq: 2,
        last_good: { seq: 1, hash: good },
        charged_usd: 0.3,
        retired_by: person.keyId,
      },
    });
    await expect.poll(() => usedOf(person, ref), { timeout: 15_000 }).toEqual({ used: 300_000, leased: 0 });

    // It is over for everybody who lists plans, and nothing is asked of anybody about it.
    expect(await services.planIndex.get(person.org, plan.planId)).toMatchObject({
      state: 'cancelled',
      taskState: 'canceled',
      wakeAt: null,
      pendingApprovals: 0,
    });
    const rows = (await services.orgLog.page(person.org, { afterSeq: 0, limit: 100, types: ['change_requested', 'plan_retired'] }))?.rows;
    expect(rows).toMatchObject([
      { type: 'change_requested', actor: { kind: 'human', id: person.keyId }, data: { change: 'plan_retired' } },
      {
        type: 'plan_retired',
        actor: { kind: 'human', id: person.keyId },
        data: {
          subject: { plan_id: plan.planId, reason: 'the disk was restored, token [masked]' },
          after: { problem: 'changed', first_bad_seq: 2, last_good: { seq: 1, hash: good }, charged_usd: 0.3 },
        },
      },
    ]);

    // Read and exported as before; everything else refused, with who closed it. Again the same answer, and no second row.
    await evictDurableObject(stubOf(person, plan.planId));
    expect(await plan.call('_cleveragents/plan/retire', { reason: 'again' })).toEqual(retired);
    expect(await plan.verify()).toMatchObject({ valid: false, problem: 'changed', first_bad_seq: 2 });
    expect(await plan.call('_cleveragents/audit/export')).toMatchObject({ ok: true, value: { log_problem: { first_bad_seq: 2 } } });
    for (const name of ['_cleveragents/plan/status', '_cleveragents/plan/cancel'] as const) {
      const error = { details: { reason: 'LOG_DAMAGED', retired_by: person.keyId, retired_at: expect.any(String) } };
      expect(await plan.call(name), name).toMatchObject({ ok: false, error });
    }
    const again = await services.orgLog.page(person.org, { afterSeq: 0, limit: 100, types: ['change_requested', 'plan_retired'] });
    expect(again?.rows).toHaveLength(2);
  }, 40_000);

  it('is counted as spent in every view of its session, and held nowhere', async () => {
    const world = await reserving();
    const { plan, ref } = world;
    const show = async (level: 'session' | 'org') => {
      const params = level === 'org' ? { level, plan_id: null } : { level, plan_id: null, session_id: ref.id };
      const shown = await plan.call('_cleveragents/budget/show', params);
      return shown.ok ? (shown.value as unknown as BudgetView) : expect.fail(JSON.stringify(shown.error));
    };
    await expect.poll(async () => (await show('session')).told?.reserved_usd, { timeout: 15_000 }).toBe(0.3);
    await damage(world);
    expect(await plan.call('_cleveragents/plan/retire', { reason })).toMatchObject({ ok: true, value: { charged_usd: 0.3 } });
    for (const level of ['session', 'org'] as const) {
      // The windows hear it from the plan, through its session.
      await expect.poll(async () => (await show(level)).windows[0]?.leased_usd, { timeout: 15_000 }).toBe(0);
      const { windows, children, told } = await show(level);
      for (const each of [...windows, ...children]) expect(each, level).toMatchObject({ spent_usd: 0.3, leased_usd: 0, reserved_usd: 0 });
      expect(told, level).toMatchObject({
        spent_usd: 0.3,
        reserved_usd: 0,
        tools: [{ tool: null, spent_usd: 0.3, reserved_usd: 0 }],
        plans: [{ plan_id: plan.planId, spent_usd: 0.3, reserved_usd: 0 }],
      });
    }
  }, 40_000);

  it('keeps its end where it had one', async () => {
    const plan = await endedPlan(counting(1));
    const { person, planId } = plan;
    const before = await services.planIndex.get(person.org, planId);
    expect(before).toMatchObject({ state: 'applied', taskState: 'completed' });
    await plan.tamper((sql) => sql.exec("UPDATE log SET body = replace(body, 'test/counter', 'test/countee')"));
    await evictDurableObject(stubOf(person, planId));
    expect(await plan.call('_cleveragents/plan/retire', { reason })).toMatchObject({ ok: true });
    const { wakeAt: _, ...kept } = before ?? expect.fail('no row');
    expect(await services.planIndex.get(person.org, planId)).toMatchObject({ ...kept, wakeAt: null, pendingApprovals: 0 });
  }, 40_000);

  it('gives nothing back whose account it has lost as well: what was granted stays used', async () => {
    const world = await reserving();
    const { plan, person, ref } = world;
    await damage(world, (sql) => sql.exec('DELETE FROM lease'));
    expect(await plan.call('_cleveragents/plan/retire', { reason })).toMatchObject({ ok: true, value: { charged_usd: 0 } });
    // The session asks for it when somebody needs the money, and hears that it is gone.
    const authorize = async (cost: number) => {
      const other = tamperedPlan(person, ulid());
      await other.call('_cleveragents/guard/configure', { session_id: ref.id, automation_profile: 'full-auto' });
      const asked = await other.call('_cleveragents/guard/authorize', { tool_name: 'pay.send', arguments: {}, cost_usd: cost });
      return asked.ok ? asked.value : asked.error;
    };
    expect(await authorize(0.8)).toMatchObject({ allowed: false, exceeded_level: 'session' });
    // Not spent, since nobody says so, and nobody's any more.
    expect(await usedOf(person, ref)).toEqual({ used: 300_000, leased: 300_000 });
    expect(await authorize(0.7)).toMatchObject({ allowed: true });
    await expect.poll(async () => (await usedOf(person, ref)).used, { timeout: 15_000 }).toBe(1_000_000);
  }, 40_000);

  it.each(['kept', 'lost'] as const)(
    'counts under a profile without a limit as much as in its session; what it has told before is %s',
    async (told) => {
      const person = await newOrg();
      const profile = `p-${ulid().toLowerCase()}`;
      const ref: BudgetRef = { kind: 'profile', name: profile };
      const add = {
        plan_id: null,
        profile: { name: profile, extends: 'full-auto', safety: { require_sandbox: true, require_checkpoints: true } },
      };
      expect(await tamperedPlan(person, ulid()).call('_cleveragents/profile/add', add)).toMatchObject({ ok: true });
      const world = await reserving(profile, person);
      const { plan } = world;
      const paid = await plan.call('_cleveragents/guard/authorize', { tool_name: 'pay.send', arguments: {}, cost_usd: 0.2 });
      const { decision_id } = paid.ok ? paid.value : expect.fail(JSON.stringify(paid.error));
      const settle = { plan_id: null, decision_id: `${decision_id}`, outcome: 'succeeded', cost_usd: 0.2 };
      expect(await plan.call('_cleveragents/guard/settle', settle)).toMatchObject({ ok: true });
      // It holds nothing there, and tells what is charged only.
      await expect.poll(() => usedOf(person, ref), { timeout: 15_000 }).toEqual({ used: 200_000, leased: 0 });
      await damage(world, (sql) => told === 'lost' && sql.exec("DELETE FROM lease WHERE parent LIKE 'profile:%'"));
      for (let time = 0; time < 2; time += 1) {
        const retired = await plan.call('_cleveragents/plan/retire', { reason });
        const charged = retired.ok ? Number(retired.value['charged_usd']) : expect.fail(JSON.stringify(retired.error));
        expect(charged).toBeGreaterThanOrEqual(0.5);
        for (const each of [ref, world.ref])
          await expect.poll(() => usedOf(person, each), { timeout: 15_000 }).toEqual({ used: Math.round(charged * 1e6), leased: 0 });
        await evictDurableObject(stubOf(person, plan.planId));
      }
    },
    40_000,
  );

  it('tells its session again after a crash, until it was heard', async () => {
    const world = await reserving();
    const { plan, person, ref } = world;
    await damage(world);
    expect(await plan.call('_cleveragents/plan/retire', { reason })).toMatchObject({ ok: true });
    // As if nothing of it had arrived: the account of the session stands open as before.
    await plan.tamper((sql) => sql.exec("UPDATE lease SET phase = 'closing'"));
    await evictDurableObject(stubOf(person, plan.planId));
    await plan.verify();
    await expect.poll(() => runDurableObjectAlarm(stubOf(person, plan.planId))).toBe(true);
    await expect.poll(() => usedOf(person, ref), { timeout: 15_000 }).toEqual({ used: 300_000, leased: 0 });
  }, 40_000);
});

it('one whose log is whole is not closed, nor is one that is not there; an agent closes none', async () => {
  const { plan, person } = await reserving();
  expect(await plan.call('_cleveragents/plan/retire', { reason })).toMatchObject({ ok: false, error: { kind: 'invalid_state' } });
  expect(await plan.call('_cleveragents/plan/retire', { plan_id: ulid(), reason })).toMatchObject({
    ok: false,
    error: { kind: 'not_found' },
  });
  const agent = await addKey(person.org, 'agent');
  const asAgent = tamperedPlan({ ...agent, roles: ['viewer', 'operator', 'approver', 'admin'] }, plan.planId);
  expect(await asAgent.call('_cleveragents/plan/retire', { reason })).toMatchObject({ ok: false, error: { kind: 'forbidden' } });
  const rows = await services.orgLog.page(person.org, { afterSeq: 0, limit: 100, types: ['change_requested', 'plan_retired'] });
  expect(rows?.rows).toEqual([]);
}, 30_000);
