import { beforeEach, describe, expect, it } from 'vitest';
import { StorageUnavailable } from '../../src/app/ports.ts';
import { makeService, START, type TestCaller, type TestService } from './service.ts';

let service: TestService;
let admin: TestCaller;
beforeEach(async () => {
  service = makeService();
  admin = await service.caller('acme');
});

describe('session.create', () => {
  it('makes a session with an id of its own and remembers the default actor', async () => {
    const made = await admin.call('session.create', { actor_name: 'openai/gpt-4o' });
    expect(made).toEqual({ session_id: expect.stringMatching(/^[0-9A-Z]{26}$/), status: 'created' });
    expect(await admin.call('session.show', { session_id: made.session_id })).toEqual({
      session_id: made.session_id,
      actor_name: 'openai/gpt-4o',
      status: 'open',
      created_at: '2026-11-30T12:00:00.000Z',
      closed_at: null,
      max_cost: null,
    });
    expect(await service.services.sessions.get('acme', made.session_id)).toMatchObject({ createdBy: admin.principal.keyId });
  });

  it('answers the session that exists when its id is given again, unchanged', async () => {
    await admin.call('session.create', { session_id: 'chat-1', actor_name: 'scripted/steps' });
    service.clock.ms += 1000;
    expect(await admin.call('session.create', { session_id: 'chat-1' })).toEqual({ session_id: 'chat-1', status: 'created' });
    const { sessions } = await admin.call('session.list', {});
    expect(sessions).toEqual([expect.objectContaining({ actor_name: 'scripted/steps', created_at: '2026-11-30T12:00:00.000Z' })]);
  });

  it('caps it with max_cost; on one that exists that may lower the cap and never raise it', async () => {
    const agent = await service.caller('acme', { kind: 'agent', roles: ['viewer', 'operator'] });
    const shown = async () => (await agent.call('session.show', { session_id: 'capped' })).max_cost;
    await agent.call('session.create', { session_id: 'capped', max_cost: 2.5 });
    expect(await shown()).toBe(2.5);
    await agent.call('session.create', { session_id: 'capped', max_cost: 2.5 });
    await agent.call('session.create', { session_id: 'capped', max_cost: 2 });
    expect(await shown()).toBe(2);
    for (const caller of [agent, admin]) {
      expect(await caller.refused('session.create', { session_id: 'capped', max_cost: 3 })).toMatchObject({ kind: 'invalid_state' });
    }
    await agent.call('session.create', { session_id: 'capped' });
    expect(await shown()).toBe(2);
  });

  it.each([-1, 1e18, '5', null, Number.NaN])('refuses the max_cost %j', async (maxCost) => {
    const params = { session_id: 'chat-1', max_cost: maxCost as number };
    expect(await admin.refused('session.create', params)).toMatchObject({ kind: 'invalid', issues: [{ field: 'max_cost' }] });
    expect((await admin.call('session.list', {})).sessions).toEqual([]);
  });

  it('does not say "created" of a session that is closed', async () => {
    await admin.call('session.create', { session_id: 'chat-1' });
    await admin.call('session.close', { session_id: 'chat-1' });
    expect(await admin.refused('session.create', { session_id: 'chat-1' })).toMatchObject({
      kind: 'invalid_state',
      details: { session_id: 'chat-1' },
    });
  });

  it.each(['task_01HXRCF1ABCDE12345678901AB', 'task_', 'a b', '', 'x'.repeat(129)])('refuses the id %j', async (id) => {
    expect(await admin.refused('session.create', { session_id: id })).toMatchObject({ kind: 'invalid', issues: [{ field: 'session_id' }] });
  });

  it('needs the role operator', async () => {
    const viewer = await service.caller('acme', { roles: ['viewer'] });
    expect(await viewer.refused('session.create', {})).toMatchObject({ kind: 'forbidden' });
  });
});

describe('session.list', () => {
  it('answers the newest first', async () => {
    for (const id of ['one', 'two', 'three']) {
      await admin.call('session.create', { session_id: id });
      service.clock.ms += 1;
    }
    const list = await admin.call('session.list', {});
    expect(list.sessions.map(({ session_id: id }) => id)).toEqual(['three', 'two', 'one']);
    expect(list.next_page_token).toBe('');
  });
});

describe('session.close', () => {
  const HELLO = { name: 'hello', description: 'Says hello', actor: 'scripted/steps', automation_profile: 'manual', apply: 'none' };

  /** A plan that waits at its first gate. */
  const usePlan = async (sessionId: string) => {
    const plan = await admin.call('_cleveragents/plan/use', { action_name: 'hello', session_id: sessionId });
    expect(plan.state).toBe('waiting');
    return plan.plan_id;
  };
  const stateOf = async (planId: string) => (await admin.call('_cleveragents/plan/status', { plan_id: planId })).state;

  beforeEach(async () => {
    await admin.call('_cleveragents/action/add', { action: { ...HELLO, execute: [{ say: 'Hello' }] } });
    await admin.call('session.create', { session_id: 'chat' });
  });

  it('closes once: a second time answers the same and keeps the first time', async () => {
    expect(await admin.call('session.close', { session_id: 'chat' })).toEqual({ status: 'closed' });
    service.clock.ms += 5000;
    expect(await admin.call('session.close', { session_id: 'chat' })).toEqual({ status: 'closed' });
    expect(await admin.call('session.show', { session_id: 'chat' })).toMatchObject({
      status: 'closed',
      closed_at: new Date(START).toISOString(),
    });
  });

  it('lets its plans go on unless it is told to cancel them', async () => {
    const planId = await usePlan('chat');
    expect(await admin.call('session.close', { session_id: 'chat' })).toEqual({ status: 'closed' });
    expect(await stateOf(planId)).toBe('waiting');
  });

  it('cancels its live plans with it, names them, and leaves those of other sessions alone', async () => {
    const plans = [await usePlan('chat'), await usePlan('chat')];
    const ended = await usePlan('chat');
    await admin.call('_cleveragents/plan/cancel', { plan_id: ended, reason: 'by hand' });
    const other = await usePlan('other');
    const closed = await admin.call('session.close', { session_id: 'chat', cancel_plans: true });
    expect(closed.cancelled_plans?.toSorted()).toEqual(plans.toSorted());
    for (const planId of plans) {
      const plan = await admin.call('_cleveragents/plan/status', { plan_id: planId });
      expect(plan).toMatchObject({ state: 'cancelled', cancel_reason: 'The session was closed' });
    }
    expect((await admin.call('_cleveragents/plan/status', { plan_id: ended })).cancel_reason).toBe('by hand');
    expect(await stateOf(other)).toBe('waiting');
  });

  it('finds all of its plans, however many there are', async () => {
    const plans: string[] = [];
    for (let n = 0; n < 120; n += 1) plans.push(await usePlan('chat'));
    const { cancelled_plans: cancelled } = await admin.call('session.close', { session_id: 'chat', cancel_plans: true });
    expect(cancelled?.toSorted()).toEqual(plans.toSorted());
  });

  it('is closed even if a plan cannot be reached; closing again cancels what was left', async () => {
    const [away, near] = [await usePlan('chat'), await usePlan('chat')];
    const { plans } = service.services;
    const broken = makeService({
      ...service.services,
      plans: {
        plan: (org, planId) =>
          planId === away
            ? { ...plans.plan(org, planId), command: () => Promise.reject(new StorageUnavailable('plans.command', null)) }
            : plans.plan(org, planId),
      },
    });
    const caller = await broken.caller('acme');
    expect(await caller.call('session.close', { session_id: 'chat', cancel_plans: true })).toEqual({
      status: 'closed',
      cancelled_plans: [near],
    });
    expect((await admin.call('session.close', { session_id: 'chat', cancel_plans: true })).cancelled_plans).toEqual([away]);
    expect(await stateOf(away)).toBe('cancelled');
  });

  it('of an unknown session says so, and makes none', async () => {
    expect(await admin.refused('session.close', { session_id: 'nope' })).toMatchObject({
      kind: 'not_found',
      entity: 'session',
      id: 'nope',
    });
    expect(await admin.refused('session.show', { session_id: 'nope' })).toMatchObject({ kind: 'not_found' });
  });

  it('keeps new plans out', async () => {
    await admin.call('session.close', { session_id: 'chat' });
    const use = { action_name: 'hello', session_id: 'chat' };
    expect(await admin.refused('_cleveragents/plan/use', use)).toMatchObject({ kind: 'invalid_state' });
  });
});
