import { beforeEach, describe, expect, it } from 'vitest';
import { makeService, type TestCaller, type TestService } from './service.ts';

let service: TestService;
let admin: TestCaller;
let approver: TestCaller;
let operator: TestCaller;
let agent: TestCaller;
beforeEach(async () => {
  service = makeService();
  admin = await service.caller('acme');
  approver = await service.caller('acme', { roles: ['viewer', 'operator', 'approver'] });
  operator = await service.caller('acme', { roles: ['viewer', 'operator'] });
  agent = await service.caller('acme', { kind: 'agent', roles: ['viewer', 'operator', 'approver', 'admin'] });
  await admin.call('session.create', { session_id: 's1' });
});

const onSession = { level: 'session', session_id: 's1' } as const;
const onOrg = { level: 'org' } as const;

async function totalOf(params: { readonly level: 'org' } | typeof onSession) {
  const { windows } = await operator.call('_cleveragents/budget/show', params);
  return windows.find(({ window }) => window === 'total');
}

describe('budget/set', () => {
  it('sets each window by itself, and removes by null', async () => {
    await admin.call('_cleveragents/budget/set', { ...onOrg, total_usd: 10, daily_usd: 1.5 });
    const {
      budget,
      unreached,
      not_told: notTold,
    } = await admin.call('_cleveragents/budget/set', { ...onOrg, monthly_usd: 5, daily_usd: null });
    expect(budget.windows.map(({ window, cap_usd: cap, remaining_usd: left }) => [window, cap, left])).toEqual([
      ['total', 10, 10],
      ['monthly', 5, 5],
      ['daily', null, null],
    ]);
    expect([unreached, notTold]).toEqual([[], []]);
  });

  it('removes by drop what null removes too, and refuses both at once', async () => {
    await admin.call('_cleveragents/budget/set', { ...onOrg, total_usd: 10, daily_usd: 5 });
    await admin.call('_cleveragents/budget/set', { ...onOrg, total_usd: 11, drop: ['daily'] });
    const { windows } = await operator.call('_cleveragents/budget/show', onOrg);
    expect(windows.map(({ cap_usd: cap }) => cap)).toEqual([11, null, null]);
    const twice = { ...onOrg, total_usd: 1, drop: ['total' as const] };
    expect(await admin.refused('_cleveragents/budget/set', twice)).toMatchObject({ kind: 'invalid', issues: [{ field: 'drop' }] });
  });

  it('keeps a cap to the micro-dollar and refuses a finer one', async () => {
    await operator.call('_cleveragents/budget/set', { ...onSession, total_usd: 0.000_001 });
    expect((await totalOf(onSession))?.cap_usd).toBe(0.000_001);
    const finer = { ...onSession, total_usd: 0.000_000_9 };
    expect(await operator.refused('_cleveragents/budget/set', finer)).toMatchObject({ kind: 'invalid', issues: [{ field: 'total_usd' }] });
    expect((await totalOf(onSession))?.cap_usd).toBe(0.000_001);
  });

  const people = () => ({ admin, approver, operator, agent });
  type Who = keyof ReturnType<typeof people>;

  it.each([
    ['session', 'admin', true],
    ['session', 'approver', true],
    ['session', 'operator', false],
    ['session', 'agent', false],
    ['org', 'admin', true],
    ['org', 'approver', false],
  ] as const)('of the %s may be lowered by the %s; raised and removed: %s', async (level, who, mayRaise) => {
    const caller = people()[who satisfies Who];
    const target = level === 'org' ? onOrg : onSession;
    await caller.call('_cleveragents/budget/set', { ...target, total_usd: 5 });
    await caller.call('_cleveragents/budget/set', { ...target, total_usd: 4 });
    expect((await totalOf(target))?.cap_usd).toBe(4);
    for (const total of [4.5, null]) {
      const raise = { ...target, total_usd: total };
      if (mayRaise) {
        await caller.call('_cleveragents/budget/set', raise);
        expect((await totalOf(target))?.cap_usd).toBe(total);
      } else {
        expect(await caller.refused('_cleveragents/budget/set', raise)).toMatchObject({
          kind: 'forbidden',
          details: { needed_kind: 'human' },
        });
        expect((await totalOf(target))?.cap_usd).toBe(4);
      }
    }
  });

  it.each(['operator', 'agent'] as const)('of the org are set by those who decide in it, so not by the %s', async (who) => {
    await admin.call('_cleveragents/budget/set', { ...onOrg, total_usd: 5 });
    for (const total of [0, 4, 5, 6, null]) {
      expect(await people()[who].refused('_cleveragents/budget/set', { ...onOrg, total_usd: total })).toMatchObject({
        kind: 'forbidden',
        details: { needed_role: 'approver', needed_kind: 'human' },
      });
    }
    expect((await totalOf(onOrg))?.cap_usd).toBe(5);
  });

  it('raises nothing when one of several windows may not be raised', async () => {
    await admin.call('_cleveragents/budget/set', { ...onSession, total_usd: 5, daily_usd: 5 });
    const mixed = { ...onSession, total_usd: 4, daily_usd: 6 };
    expect(await operator.refused('_cleveragents/budget/set', mixed)).toMatchObject({ kind: 'forbidden' });
    expect((await totalOf(onSession))?.cap_usd).toBe(5);
  });

  it('takes the right to raise from a key that was revoked a moment ago', async () => {
    await admin.call('_cleveragents/budget/set', { ...onSession, total_usd: 5 });
    await admin.call('_cleveragents/key/revoke', { key_id: approver.principal.keyId });
    expect(await approver.refused('_cleveragents/budget/set', { ...onSession, total_usd: 6 })).toMatchObject({ kind: 'unauthenticated' });
  });

  it.each([
    [{ level: 'org' }, 'total_usd'],
    [{ level: 'org', total_usd: -1 }, 'total_usd'],
    [{ level: 'org', daily_usd: '5' }, 'daily_usd'],
    [{ level: 'org', monthly_usd: 1e12 }, 'monthly_usd'],
    [{ level: 'org', total_usd: {} }, 'total_usd'],
    [{ level: 'org', session_id: 's1', total_usd: 1 }, 'session_id'],
    [{ level: 'session', total_usd: 1 }, 'session_id'],
    [{ level: 'plan', total_usd: 1 }, 'level'],
  ])('refuses %j by the field %s and changes nothing', async (params, field) => {
    const refused = await admin.refused('_cleveragents/budget/set', params as never);
    expect(refused).toMatchObject({ kind: 'invalid', issues: [{ field }] });
    expect((await totalOf(onOrg))?.cap_usd).toBeNull();
  });

  it('refuses a session that the org does not have', async () => {
    const other = await service.caller('other');
    expect(await other.refused('_cleveragents/budget/set', { ...onSession, total_usd: 1 })).toMatchObject({ kind: 'not_found' });
    expect((await totalOf(onSession))?.cap_usd).toBeNull();
  });
});

describe('budget/show', () => {
  it.each([
    [{ level: 'session' }, 'session_id'],
    [{ level: 'plan' }, 'plan_id'],
    [{ level: 'profile' }, 'profile'],
    [{ level: 'org', profile: 'auto' }, 'profile'],
    [{ level: 'org', day: '2026-13-01' }, 'day'],
    [{ level: 'galaxy' }, 'level'],
  ])('refuses %j by the field %s', async (params, field) => {
    expect(await admin.refused('_cleveragents/budget/show', params as never)).toMatchObject({ kind: 'invalid', issues: [{ field }] });
  });

  it('shows what was spent on the day that is asked for, and those below by what they took', async () => {
    const node = service.services.budgets.node('acme', { kind: 'org' });
    await node.close('s1', { day: '2026-11-29', s: 1_000_000, v: 0 });
    await node.close('s2', { day: '2026-11-30', s: 2_000_000, v: 500_000 });
    await admin.call('_cleveragents/budget/set', { ...onOrg, total_usd: 3, daily_usd: 4 });
    const today = await operator.call('_cleveragents/budget/show', onOrg);
    expect(today).toMatchObject({
      id: 'acme',
      day: '2026-11-30',
      children: [
        { level: 'session', id: 's2', spent_usd: 2.5, leased_usd: 0 },
        { level: 'session', id: 's1', spent_usd: 1, leased_usd: 0 },
      ],
      child_count: 2,
    });
    expect(today.windows).toMatchObject([
      { window: 'total', spent_usd: 3.5, remaining_usd: 0, excess_usd: 0.5, exceeded: true },
      { window: 'monthly', cap_usd: null, spent_usd: 3.5, exceeded: false },
      { window: 'daily', spent_usd: 2.5, remaining_usd: 1.5, exceeded: false },
    ]);
    const yesterday = await operator.call('_cleveragents/budget/show', { ...onOrg, day: '2026-11-29' });
    expect(yesterday.windows.at(-1)).toMatchObject({ window: 'daily', spent_usd: 1 });
  });

  it('shows a profile by its lifetime limit, and names an unknown one', async () => {
    await admin.call('_cleveragents/profile/add', { profile: { name: 'careful', description: 'x', safety: { max_total_cost: 7 } } });
    const { windows } = await operator.call('_cleveragents/budget/show', { level: 'profile', profile: 'careful' });
    expect(windows[0]).toMatchObject({ window: 'total', cap_usd: 7, remaining_usd: 7 });
    expect(await operator.refused('_cleveragents/budget/show', { level: 'profile', profile: 'nobody' })).toMatchObject({
      kind: 'not_found',
    });
  });
});
