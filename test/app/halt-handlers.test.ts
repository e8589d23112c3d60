/** The kill switch of sessions and the org over the operations, and what cannot begin under it. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { OutsideCommand, PlanPort } from '../../src/app/ports.ts';
import { StorageUnavailable } from '../../src/app/ports.ts';
import { pushToPlans } from '../../src/app/push-to-plans.ts';
import { sendMessage } from '../../src/app/send-message.ts';
import { err, ok } from '../../src/core/result.ts';
import { makeService, type TestCaller, type TestService } from './service.ts';

let service: TestService;
let admin: TestCaller;
let operator: TestCaller;
/** Plans of this service that nobody reaches. */
let away: Set<string>;

beforeEach(async () => {
  away = new Set();
  service = withLostPlans(makeService(), away);
  admin = await service.caller('acme');
  operator = await service.caller('acme', { roles: ['operator'] });
  await addAction(admin);
});

const addAction = (caller: TestCaller) =>
  caller.call('_cleveragents/action/add', {
    action: {
      name: 'tidy',
      description: 'Tidies',
      actor: 'scripted/steps',
      apply: 'none',
      automation_profile: 'manual',
      execute: [{ say: 'Hi' }],
    },
  });

const SET = '_cleveragents/halt/set';
const CLEAR = '_cleveragents/halt/clear';
const SHOW = '_cleveragents/halt/show';

async function use(sessionId: string, caller: TestCaller = admin): Promise<string> {
  return (await caller.call('_cleveragents/plan/use', { action_name: 'tidy', session_id: sessionId })).plan_id;
}

const haltedOf = async (planId: string, caller: TestCaller = admin) =>
  (await caller.call('_cleveragents/plan/status', { plan_id: planId })).halted;

function withLostPlans(made: TestService, lost: ReadonlySet<string>): TestService {
  const { plans } = made.services;
  const services = {
    ...made.services,
    plans: {
      plan(org: string, planId: string): PlanPort {
        const port = plans.plan(org, planId);
        return {
          ...port,
          command: async (command: OutsideCommand) => {
            if (lost.has(planId)) throw new StorageUnavailable('plans.command', new Error('lost'));
            return port.command(command);
          },
        };
      },
    },
  };
  return makeService(services);
}

describe('the kill switch of a session', () => {
  it('halts its plans and no others, is shown at every level, and is cleared by a human who may approve', async () => {
    const mine = [await use('s1'), await use('s1')];
    const other = await use('s2');
    const set = await operator.call(SET, { level: 'session', session_id: 's1', reason: 'wrong project' });
    expect(set).toMatchObject({ level: 'session', session_id: 's1', halted: true, done: true, reached: 2, unreached: [] });
    expect(set.halts).toMatchObject([{ level: 'session', epoch: 1, reason: 'wrong project', halted_by: operator.principal.keyId }]);
    for (const planId of mine) expect(await haltedOf(planId)).toMatchObject({ level: 'session', reason: 'wrong project' });
    expect(await haltedOf(other)).toBeUndefined();
    expect(await admin.call(SHOW, { level: 'session', session_id: 's2' })).toMatchObject({ halted: false, halts: [] });
    expect(await admin.call(SHOW, { level: 'plan', plan_id: mine[0] ?? '' })).toMatchObject({
      halted: true,
      halts: [{ level: 'session' }],
    });

    const approvingAgent = await service.caller('acme', { kind: 'agent', roles: ['operator', 'approver'] });
    expect((await operator.refused(CLEAR, { level: 'session', session_id: 's1' })).kind).toBe('forbidden');
    expect((await approvingAgent.refused(CLEAR, { level: 'session', session_id: 's1' })).kind).toBe('forbidden');
    const approver = await service.caller('acme', { roles: ['approver'] });
    expect(await approver.call(CLEAR, { level: 'session', session_id: 's1' })).toMatchObject({ halted: false, done: true, reached: 2 });
    for (const planId of mine) expect(await haltedOf(planId)).toBeUndefined();
  });

  it('of an unknown or a foreign session is the same 404', async () => {
    const stranger = await service.caller('other');
    await use('s1');
    const foreign = await stranger.refused(SET, { level: 'session', session_id: 's1', reason: 'x' });
    expect(foreign).toEqual(await stranger.refused(SET, { level: 'session', session_id: 's1', reason: 'x' }));
    expect(foreign.kind).toBe('not_found');
    expect((await admin.refused(SET, { level: 'session', session_id: 'never', reason: 'x' })).kind).toBe('not_found');
    expect(await admin.call(SHOW, { level: 'session', session_id: 's1' })).toMatchObject({ halted: false });
  });

  it('set again keeps its first reason and tells those that were not reached; cleared again stays cleared', async () => {
    const [first, second] = [await use('s1'), await use('s1')];
    away.add(second);
    const partly = await admin.call(SET, { level: 'session', session_id: 's1', reason: 'one' });
    expect(partly).toMatchObject({ halted: true, done: false, reached: 1, unreached: [second] });
    expect(await haltedOf(first)).toBeDefined();
    expect(await haltedOf(second)).toBeUndefined();
    expect(await admin.call(SHOW, { level: 'plan', plan_id: second }), 'it holds for it all the same').toMatchObject({ halted: true });
    away.clear();
    expect(await admin.call(SET, { level: 'session', session_id: 's1', reason: 'two' })).toMatchObject({
      done: true,
      reached: 2,
      halts: [{ reason: 'one', epoch: 1 }],
    });
    expect(await haltedOf(second)).toMatchObject({ reason: 'one' });
    for (const _ of [1, 2])
      expect(await admin.call(CLEAR, { level: 'session', session_id: 's1' })).toMatchObject({ halted: false, done: true });
    expect(await admin.call(SET, { level: 'session', session_id: 's1', reason: 'three' })).toMatchObject({ halts: [{ epoch: 3 }] });
  });

  it('that was never set is cleared without a trace', async () => {
    const planId = await use('s1');
    expect(await admin.call(CLEAR, { level: 'session', session_id: 's1' })).toMatchObject({ halted: false, done: true, reached: 0 });
    expect(await service.services.halts.current('acme', 's1')).toEqual([]);
    expect(await haltedOf(planId)).toBeUndefined();
  });
});

describe('the kill switch of the org', () => {
  it('halts every plan of the org and none of another', async () => {
    const stranger = await service.caller('other');
    await addAction(stranger);
    const foreign = await use('s1', stranger);
    const mine = [await use('s1'), await use('s2'), await use('s3')];
    expect(await admin.call(SET, { level: 'org', reason: 'a key leaked' })).toMatchObject({
      level: 'org',
      halted: true,
      done: true,
      reached: 3,
    });
    for (const planId of mine) expect(await haltedOf(planId)).toMatchObject({ level: 'org', reason: 'a key leaked' });
    expect(await haltedOf(foreign, stranger)).toBeUndefined();
    expect(await stranger.call(SHOW, { level: 'org' })).toMatchObject({ halted: false, halts: [] });
    expect(await admin.call(SHOW, { level: 'session', session_id: 's2' })).toMatchObject({ halted: true, halts: [{ level: 'org' }] });
    expect((await stranger.call('_cleveragents/plan/use', { action_name: 'tidy' })).halted).toBeUndefined();
    expect(await admin.call(CLEAR, { level: 'org' })).toMatchObject({ halted: false, done: true, reached: 3 });
    for (const planId of mine) expect(await haltedOf(planId)).toBeUndefined();
  });

  it('is set by a human who may approve and cleared by an admin; nobody else changes anything', async () => {
    const approver = await service.caller('acme', { roles: ['approver', 'operator'] });
    const agent = await service.caller('acme', { kind: 'agent', roles: ['admin'] });
    for (const caller of [operator, agent]) {
      expect((await caller.refused(SET, { level: 'org', reason: 'x' })).kind).toBe('forbidden');
    }
    expect(await admin.call(SHOW, { level: 'org' })).toMatchObject({ halted: false });
    await approver.call(SET, { level: 'org', reason: 'x' });
    for (const caller of [operator, agent, approver]) expect((await caller.refused(CLEAR, { level: 'org' })).kind).toBe('forbidden');
    expect(await admin.call(SHOW, { level: 'org' })).toMatchObject({ halted: true });
    await admin.call(CLEAR, { level: 'org' });
  });

  it('is not told as done where the list of plans cannot be read, and holds', async () => {
    const planId = await use('s1');
    const broken = {
      ...service.services.planIndex,
      listLive: async () => {
        throw new StorageUnavailable('plans.listLive', new Error('lost'));
      },
    };
    const lost = makeService({ ...service.services, planIndex: broken });
    const caller = await lost.caller('acme');
    await expect(caller.call(SET, { level: 'org', reason: 'x' })).rejects.toThrow(StorageUnavailable);
    expect(await admin.call(SHOW, { level: 'plan', plan_id: planId })).toMatchObject({ halted: true, halts: [{ level: 'org' }] });
  });
});

describe('the kill switch of a plan', () => {
  it('stops it although its session and its org are not reached', async () => {
    const planId = await use('s1');
    const lostHalts = {
      ...service.services.halts,
      current: async () => {
        throw new StorageUnavailable('halts.show', new Error('lost'));
      },
    };
    const caller = await makeService({ ...service.services, halts: lostHalts }).caller('acme');
    expect(await caller.call(SET, { level: 'plan', plan_id: planId, reason: 'it pays twice' })).toMatchObject({ halted: true, done: true });
    expect(await haltedOf(planId)).toMatchObject({ level: 'plan', reason: 'it pays twice' });
  });
});

describe('a plan that would begin', () => {
  const start = (sessionId: string, key?: string, text = 'hello', action = 'tidy') =>
    sendMessage(
      {
        message: {
          messageId: service.services.ids.ulid(),
          role: 'user',
          parts: [{ kind: 'text', text }],
          contextId: sessionId,
          metadata: { 'urn:cleveragents:extensions:v1': { action, ...(key === undefined ? {} : { idempotency_key: key }) } },
        },
        configuration: { returnImmediately: true },
      } as never,
      { principal: admin.principal, idempotencyKey: null },
      service.services,
    );

  const external = () =>
    admin.refused('_cleveragents/guard/configure', { plan_id: service.services.ids.ulid(), guardrails: {}, session_id: 's1' });

  const count = async () => (await admin.call('_cleveragents/plan/list', {})).total_size;

  const forbid: readonly (readonly [string, () => Promise<unknown>, object, RegExp])[] = [
    [
      'under a halted org',
      () => admin.call(SET, { level: 'org', reason: 'a key leaked' }),
      { kind: 'invalid_state', details: { halted: { level: 'org', reason: 'a key leaked' } } },
      /the org is halted: a key leaked/,
    ],
    [
      'in a halted session',
      async () => {
        await admin.call('session.create', { session_id: 's1' });
        await admin.call(SET, { level: 'session', session_id: 's1', reason: 'look first' });
      },
      { kind: 'invalid_state', details: { halted: { level: 'session' } } },
      /the session is halted: look first/,
    ],
    [
      'under an org whose budget is used up',
      () => service.services.budgets.node('acme', { kind: 'org' }).setCaps({ total: 0 }, { mayLoosen: true }),
      { kind: 'budget_exceeded', details: { exceeded_level: 'org', window: 'total', cap_usd: 0 } },
      /budget of the org is used up/,
    ],
    [
      'under an org whose budget of the day is used up',
      () => service.services.budgets.node('acme', { kind: 'org' }).setCaps({ daily: 0 }, { mayLoosen: true }),
      { kind: 'budget_exceeded', details: { exceeded_level: 'org', window: 'daily' } },
      /daily budget of the org is used up/,
    ],
  ];

  it.each(forbid)('%s is refused by an operation and makes nothing', async (_case, arrange, refusal) => {
    await arrange();
    expect(await admin.refused('_cleveragents/plan/use', { action_name: 'tidy', session_id: 's1' })).toMatchObject(refusal);
    expect(await external()).toMatchObject(refusal);
    expect(await count()).toBe(0);
  });

  it.each(forbid)(
    '%s by a message becomes a task that is rejected with the reason; the same key answers the same task',
    async (_case, arrange, _refusal, reason) => {
      await arrange();
      const sent = await start('s1', 'once');
      if (!sent.ok || sent.value.kind !== 'plan') throw new Error(JSON.stringify(sent));
      const { plan } = sent.value.snapshot;
      expect(plan).toMatchObject({ phase: 'action', state: 'rejected', terminal: true });
      expect(plan.failure?.last.message).toMatch(reason);
      expect(await start('s1', 'once')).toMatchObject({ ok: true, value: { snapshot: { plan: { id: plan.id, state: 'rejected' } } } });
      expect(await count()).toBe(1);
    },
  );

  it('in a session that has nothing to spend is made, by every way: what is free costs nothing there', async () => {
    expect(await admin.call('session.create', { session_id: 's1', max_cost: 0 })).toBeDefined();
    expect((await admin.call('_cleveragents/plan/use', { action_name: 'tidy', session_id: 's1' })).state).toBe('waiting');
    expect(await start('s1')).toMatchObject({ ok: true, value: { snapshot: { plan: { terminal: false } } } });
    const planId = service.services.ids.ulid();
    expect(await admin.call('_cleveragents/guard/configure', { plan_id: planId, guardrails: {}, session_id: 's1' })).toMatchObject({
      plan_id: planId,
    });
    expect(await count()).toBe(3);
  });

  it('where the project allows no sandbox and the floor requires one is refused, or rejected', async () => {
    await admin.call('_cleveragents/project/create', { name: 'web' });
    await admin.call('_cleveragents/config/set', { key: 'core.default-project', value: 'web' });
    const action = { name: 'change', description: 'Changes', actor: 'scripted/steps', apply: 'project', execute: [{ say: 'Hi' }] };
    await admin.call('_cleveragents/action/add', { action });
    await admin.call('_cleveragents/config/set', { key: 'sandbox.strategy', value: 'none' });
    await admin.call('_cleveragents/org/policy/set', { policy: { safety: { require_sandbox: true } } });
    expect((await admin.refused('_cleveragents/plan/use', { action_name: 'change' })).kind).toBe('invalid_state');
    const sent = await start('s1', undefined, 'hello', 'change');
    expect(sent).toMatchObject({ ok: true, value: { snapshot: { plan: { state: 'rejected' } } } });
  });

  it('with a mistake in it is refused as one, halted or not, and makes no task', async () => {
    await admin.call(SET, { level: 'org', reason: 'x' });
    expect(await admin.refused('_cleveragents/plan/use', { action_name: 'none' })).toMatchObject({ kind: 'not_found' });
    expect(await count()).toBe(0);
  });

  it('goes ahead after the halt is cleared, with the same key as well where nothing was made', async () => {
    await admin.call(SET, { level: 'org', reason: 'x' });
    const params = { action_name: 'tidy', session_id: 's1', idempotency_key: 'again' };
    expect((await admin.refused('_cleveragents/plan/use', params)).kind).toBe('invalid_state');
    await admin.call(CLEAR, { level: 'org' });
    expect((await admin.call('_cleveragents/plan/use', params)).state).toBe('waiting');
  });

  it('is not told that a budget is used up where it cannot be read: the call can be repeated', async () => {
    const unread = {
      node: () => ({
        show: async () => {
          throw new StorageUnavailable('budgets.show', new Error('lost'));
        },
      }),
    };
    const lost = makeService({ ...service.services, budgets: unread as never });
    const caller = await lost.caller('acme');
    await expect(caller.call('_cleveragents/plan/use', { action_name: 'tidy' })).rejects.toThrow(StorageUnavailable);
  });
});

describe('a floor of the org', () => {
  it('binds the live plans, names those that were not reached, and binds them when it is set again', async () => {
    const [first, second] = [await use('s1'), await use('s2')];
    const stepsOf = async (planId: string) => (await admin.call('_cleveragents/plan/guard/show', { plan_id: planId })).policy.max_steps;
    away.add(second);
    const policy = { guardrails: { max_steps: 3 } };
    expect(await admin.call('_cleveragents/org/policy/set', { policy })).toMatchObject({
      version: 1,
      done: false,
      reached: 1,
      unreached: [second],
    });
    expect([await stepsOf(first), await stepsOf(second)]).toEqual([3, null]);
    expect(await service.services.floors.current('acme'), 'the unreached reads it before it acts').toMatchObject({ version: 1, policy });
    away.clear();
    expect(await admin.call('_cleveragents/org/policy/set', { policy })).toMatchObject({ version: 2, done: true, reached: 2 });
    expect(await stepsOf(second)).toBe(3);
  });
});

describe('a word to many plans', () => {
  it('reaches all of them over any number of parts, a few at a time, and names every one that did not answer', async () => {
    const ids = Array.from({ length: 450 }, (_, index) => `p${String(index).padStart(4, '0')}`);
    let now = 0;
    let most = 0;
    const told: string[] = [];
    const plans = {
      plan: (_org: string, planId: string) => ({
        command: async () => {
          now += 1;
          most = Math.max(most, now);
          await new Promise((resolve) => setTimeout(resolve, 0));
          now -= 1;
          told.push(planId);
          const n = Number(planId.slice(1));
          if (n % 50 === 1) throw new StorageUnavailable('plans.command', new Error('lost'));
          if (n % 50 === 2) throw new TypeError('a bug of one plan');
          if (n % 50 === 3) return err({ kind: 'unavailable', message: 'busy', retryAfterSeconds: 1 });
          if (n % 50 === 4) return err({ kind: 'invalid_state', message: 'ended' });
          return n % 50 === 5 ? null : ok({});
        },
      }),
    };
    const planIndex = {
      listLive: async ({ afterPlanId, limit }: { afterPlanId: string; limit: number }) =>
        ids.filter((id) => id > afterPlanId).slice(0, limit),
    };
    const pushed = await pushToPlans({ org: 'acme', sessionId: null }, { type: 'retry_budget' }, { planIndex, plans: plans as never });
    expect(new Set(told).size).toBe(450);
    expect(told).toHaveLength(450);
    expect(most).toBeLessThanOrEqual(16);
    expect(pushed.unreached).toEqual(ids.filter((id) => [1, 2, 3].includes(Number(id.slice(1)) % 50)));
    expect(pushed.reached).toBe(450 - 27 - 9 - 9);
  });
});
