/** Plans whose executor is outside, in workerd: one object decides, however many ask at once, and nothing that it answered is lost. */
import { runDurableObjectAlarm } from 'cloudflare:test';
import { ulid } from 'ulid';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { findOperation, type OperationName, type ParamsInputOf, type ResultOf } from '../../src/api/operations.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import { windowEndMs } from '../../src/core/budget/window.ts';
import { AUTHORIZATION_TTL_MS } from '../../src/core/plan/external/external.ts';
import type { Principal } from '../../src/core/principal.ts';
import {
  addKey,
  alarmOf,
  approve,
  auditOf,
  crash,
  evict,
  expectSound,
  logOf,
  newOrg,
  onlyPending,
  planOf,
  rowsOf,
  services,
  stateOf,
  stubOf,
  track,
} from './plan-support.ts';

/** Objects share the clock of the test, which is moved; timers stay real. */
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now(), shouldAdvanceTime: true });
});
afterEach(() => {
  vi.useRealTimers();
});

async function call<N extends OperationName>(principal: Principal, name: N, params: ParamsInputOf<N>): Promise<ResultOf<N>> {
  const found = findOperation(name);
  if (found === null) throw new Error(`no operation ${name}`);
  const result = await dispatchOperation(found, params, { principal, idempotencyKey: null }, services);
  if (!result.ok) throw new Error(`${name}: ${JSON.stringify(result.error)}`);
  return result.value as unknown as ResultOf<N>;
}

interface Executor {
  readonly person: Principal;
  readonly agent: Principal;
  readonly planId: string;
  authorize(rest?: Omit<ParamsInputOf<'_cleveragents/guard/authorize'>, 'plan_id'>): Promise<ResultOf<'_cleveragents/guard/authorize'>>;
  settle(
    decisionId: string,
    rest?: { readonly cost_usd?: number; readonly outcome?: 'succeeded' | 'failed' | 'not_dispatched' },
  ): Promise<ResultOf<'_cleveragents/guard/settle'>>;
}

/** A plan of an agent's own, in an org with a person who may approve. */
async function open(
  guardrails: ParamsInputOf<'_cleveragents/guard/configure'>['guardrails'] = {},
  session?: string,
  profile = 'auto',
): Promise<Executor> {
  const person = await newOrg();
  const agent = await addKey(person.org, 'agent');
  const planId = ulid();
  await call(agent, '_cleveragents/guard/configure', {
    plan_id: planId,
    automation_profile: profile,
    guardrails,
    ...(session === undefined ? {} : { session_id: session }),
  });
  track(person, planId);
  return {
    person,
    agent,
    planId,
    authorize: (rest = {}) => call(agent, '_cleveragents/guard/authorize', { plan_id: planId, tool_name: 'own.tool', ...rest }),
    settle: (decisionId, { outcome = 'succeeded', ...rest } = {}) =>
      call(agent, '_cleveragents/guard/settle', { decision_id: decisionId, outcome, ...rest }),
  };
}

describe('a plan whose executor is outside', () => {
  it('allows exactly ten of 50 concurrent calls of $0.10 under $1.00, and every dollar is accounted for afterwards', async () => {
    const { person, planId, authorize, settle } = await open({ tool_budget: 1 });
    const answers = await Promise.all(Array.from({ length: 50 }, () => authorize({ cost_usd: 0.1 })));
    const allowed = answers.filter((each) => each.allowed);
    expect(allowed).toHaveLength(10);
    expect(new Set(allowed.map((each) => each.decision_id)).size).toBe(10);
    for (const refused of answers.filter((each) => !each.allowed)) {
      expect(refused).toMatchObject({ requires_approval: true, exceeded_level: 'plan' });
      expect(refused.reason).toContain('Budget cap exceeded: $1.10 > $1.00');
    }
    expect((await stateOf(person, planId)).ledger.reservations).toHaveLength(10);
    await Promise.all(allowed.map((each, n) => settle(each.decision_id, n < 5 ? { cost_usd: 0.04 } : {})));
    const { ledger } = await stateOf(person, planId);
    expect(ledger).toMatchObject({ settledMicroUsd: 700_000, overrunMicroUsd: 0, reservations: [] });
    const decided = await rowsOf(person, planId, 'call_decided');
    expect(decided.filter((row) => row.data.allowed)).toHaveLength(10);
    expect(decided).toHaveLength(50);
    // What the calls did not use up is there for others.
    expect(await authorize({ cost_usd: 0.3, arguments: { more: true } })).toMatchObject({ allowed: true });
  });

  it('keeps to the cap whatever the calls cost and however they end, all at once', async () => {
    const { person, planId, authorize, settle } = await open({ tool_budget: 1 });
    const costs = Array.from({ length: 60 }, (_each, n) => ((n * 7) % 23) / 100 + 0.01);
    let over = 0;
    await Promise.all(
      costs.map(async (cost, n) => {
        const answer = await authorize({ cost_usd: cost, arguments: { n } });
        const { ledger } = await stateOf(person, planId);
        const held = ledger.reservations.reduce((sum, each) => sum + each.amountMicroUsd, 0);
        if (ledger.settledMicroUsd + held > 1_000_000) over += 1;
        if (!answer.allowed) return;
        await settle(
          answer.decision_id,
          n % 3 === 0 ? { outcome: 'not_dispatched' } : n % 3 === 1 ? { outcome: 'failed' } : { cost_usd: cost / 2 },
        );
      }),
    );
    expect(over).toBe(0);
    expect((await stateOf(person, planId)).ledger.reservations).toEqual([]);
  });

  it('gives one decision for one idempotency key, whoever is first', async () => {
    const { person, planId, authorize } = await open({ tool_budget: 1 });
    const answers = await Promise.all(Array.from({ length: 20 }, () => authorize({ cost_usd: 0.1, idempotency_key: 'once' })));
    expect(new Set(answers.map((each) => each.decision_id)).size).toBe(1);
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    expect(answers[0]?.guards.length).toBeGreaterThan(10);
    expect(await rowsOf(person, planId, 'call_decided')).toHaveLength(1);
    expect((await stateOf(person, planId)).ledger.reservations).toHaveLength(1);
  });

  it('is opened once, whoever is first, and shown as a task of its session', async () => {
    const person = await newOrg();
    const planId = ulid();
    const params = { plan_id: planId, automation_profile: 'auto', guardrails: { max_steps: 3 }, session_id: 'together' };
    const opened = await Promise.all(Array.from({ length: 5 }, () => call(person, '_cleveragents/guard/configure', params)));
    track(person, planId);
    expect(opened.filter((each) => each.opened).length).toBeGreaterThanOrEqual(1);
    expect(new Set(opened.map((each) => each.digest)).size).toBe(1);
    expect((await logOf(person, planId)).filter((row) => row.type === 'plan_created')).toHaveLength(1);
    const { rows } = await listed(person, 'together');
    expect(rows).toMatchObject([{ planId, taskState: 'working', actionName: 'external' }]);
  });

  it('moves in the index with the session that it is put into', async () => {
    const { person, agent, planId } = await open({}, 'first');
    await call(agent, '_cleveragents/guard/associate_plan_with_session', { plan_id: planId, session_id: 'second' });
    await expect.poll(async () => (await listed(person, 'second')).rows.map((row) => row.planId)).toEqual([planId]);
    expect((await listed(person, 'first')).rows).toEqual([]);
  });

  it('holds what it authorised across evictions and crashes, and settles it once', async () => {
    const { person, planId, authorize, settle } = await open({ tool_budget: 1 });
    const first = await authorize({ cost_usd: 0.6 });
    await evict(person, planId);
    expect(await authorize({ cost_usd: 0.6, arguments: { n: 2 } })).toMatchObject({ allowed: false });
    await crash(person, planId);
    const settled = await settle(first.decision_id, { cost_usd: 0.1 });
    expect(settled).toMatchObject({ charged_usd: 0.1, late: false });
    await crash(person, planId);
    expect(await settle(first.decision_id, { cost_usd: 0.1 })).toEqual(settled);
    // Asked again, with the money there now: the question that was open about it goes.
    expect(await authorize({ cost_usd: 0.6, arguments: { n: 2 } })).toMatchObject({ allowed: true });
    expect((await stateOf(person, planId)).state).toBe('running');
  });

  it('sets its alarm for the end of an authorisation, and charges it then, also after the plan has ended', async () => {
    const { person, agent, planId, authorize } = await open({ tool_budget: 1 });
    const { expires_at: at } = await authorize({ cost_usd: 0.25 });
    const due = Date.parse(at ?? '');
    // An idle plan gives back what it does not use a moment later; its lease of today is closed with the day.
    await expect.poll(() => alarmOf(person, planId), { timeout: 15_000 }).toBe(Math.min(due, windowEndMs('daily', Date.now()) ?? due));
    await authorize({ cost_usd: 0.5, arguments: { n: 2 } });
    await call(agent, '_cleveragents/plan/cancel', { plan_id: planId });
    await expect.poll(() => alarmOf(person, planId), { timeout: 15_000 }).toBe(Math.min(due, windowEndMs('daily', Date.now()) ?? due));
    await evict(person, planId);
    vi.setSystemTime(due + AUTHORIZATION_TTL_MS);
    await runDurableObjectAlarm(stubOf(person, planId));
    const { ledger, state } = await stateOf(person, planId);
    expect({ state, ...ledger }).toMatchObject({ state: 'cancelled', settledMicroUsd: 750_000, reservations: [] });
    await expectSound(person, planId);
    expect((await auditOf(person, planId)).filter((row) => row.eventType === 'authorisation_expired')).toHaveLength(2);
    expect(await alarmOf(person, planId)).toBeNull();
  });

  it('lets a call pass once a person has approved it and it is asked for again, and nothing before', async () => {
    const { person, planId, authorize } = await open({ tool_denylist: ['own.deploy'] });
    const deploy = { tool_name: 'own.deploy', arguments: { to: 'prod' }, cost_usd: 0.1 };
    const refused = await authorize(deploy);
    const snapshot = await planOf(person, planId).read();
    if (snapshot === null) throw new Error('there is no such plan');
    await approve(person, planId, onlyPending(snapshot));
    expect((await stateOf(person, planId)).ledger.reservations).toEqual([]);
    // Of several that ask at once exactly one gets it.
    const answers = await Promise.all(Array.from({ length: 5 }, () => authorize(deploy)));
    expect(answers.filter((each) => each.allowed)).toMatchObject([{ decision_id: refused.decision_id }]);
    const consumed = (await rowsOf(person, planId, 'call_decided')).filter((row) => row.data.consumed_approval !== undefined);
    expect(consumed.map((row) => row.data.consumed_approval)).toEqual([refused.approval_id]);
  });

  it('keeps arguments of any size beside the log, and a loaded trail too', async () => {
    const { person, agent, planId } = await open();
    const context = { note: 'x'.repeat(2000) };
    const entry = {
      timestamp: '2026-01-01T00:00:00Z',
      event_type: 'step_allowed',
      guard_name: 'step_limit',
      result: 'allowed',
      reason: null,
      context,
    } as const;
    const entries = Array.from({ length: 200 }, () => entry);
    await call(agent, '_cleveragents/guard/load_from_metadata', { plan_id: planId, metadata: { guardrail_audit_trail: { entries } } });
    await call(agent, '_cleveragents/guard/authorize', {
      plan_id: planId,
      tool_name: 'own.tool',
      arguments: { text: 'y'.repeat(500_000) },
    });
    const trail = await call(person, '_cleveragents/guard/get_audit_trail', { plan_id: planId });
    expect(trail.entries).toHaveLength(201);
    expect(trail.entries[0]).toEqual(entry);
    expect(trail).toMatchObject({ allowed_count: 201, denied_count: 0, evicted_count: 0 });
  });

  it('ends by complete as an A2A task that is done, and its chain verifies', async () => {
    const { person, agent, planId, authorize, settle } = await open();
    await settle((await authorize()).decision_id);
    expect(await call(agent, '_cleveragents/guard/complete', { plan_id: planId })).toMatchObject({ task_state: 'completed' });
    await expectSound(person, planId);
    expect(await call(person, '_cleveragents/plan/guard/audit/verify', { plan_id: planId })).toMatchObject({
      valid: true,
      trail: 'complete',
    });
  });
});

async function listed(person: Principal, sessionId: string) {
  const page = await services.planIndex.list({ org: person.org, sessionId, pageSize: 10 });
  if (!page.ok) throw new Error(page.error.message);
  return page.value;
}

describe('evaluate with the arguments of a call', () => {
  it.each([
    ['write_file', { path: 'src/a.ts', content: 'x' }],
    ['write_file', { path: '/home/me/repo/.github/workflows/x.yml', content: 'x' }],
    ['write_file', { path: '.env', content: 'x' }],
    ['write_file', {}],
    ['edit_file', { path: '.git/config', old_text: 'a', new_text: 'b' }],
    ['move_file', { from: 'a', to: '.env.local' }],
    ['delete_file', { path: 'b' }],
    ['read_file', { path: '.env' }],
    ['read_file', {}],
    ['own.tool', { path: '.env' }],
    ['test/unsafe', { label: 'x' }],
  ] as const)('says of %s %j what authorize says', async (tool, args) => {
    for (const profile of ['auto', 'cautious', 'ci']) {
      const { planId, agent } = await open({}, undefined, profile);
      const params = { plan_id: planId, tool_name: tool, arguments: args };
      const dry = await call(agent, '_cleveragents/guard/evaluate', { ...params, context: { cost_usd: 0 } });
      const { allowed, reason, requires_approval, guards } = await call(agent, '_cleveragents/guard/authorize', { ...params, cost_usd: 0 });
      expect(dry, profile).toEqual({ allowed, reason, requires_approval, guards });
    }
  });
});
