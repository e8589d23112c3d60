import { runDurableObjectAlarm } from 'cloudflare:test';
import { ulid } from 'ulid';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { EXTENSION_URI } from '../../src/a2a/extension.ts';
import { findOperation, type OperationName, type ParamsInputOf, type ResultOf } from '../../src/api/operations.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import { FRESH_MS } from '../../src/app/left-above.ts';
import type { BudgetRef } from '../../src/app/ports.ts';
import type { Services } from '../../src/app/services.ts';
import { runStandard, runStream } from '../../src/app/standard.ts';
import type { Principal } from '../../src/core/principal.ts';
import { FAULTS } from '../worker/test-worker.ts';
import { eventually, newName, nodeStub } from './lease-player.ts';
import {
  addAction,
  addKey,
  auditOf,
  evict,
  isSettled,
  isTerminal,
  newOrg,
  onlyPending,
  pause,
  performed,
  planOf,
  rowsOf,
  services,
  start,
  stubOf,
  until,
} from './plan-support.ts';

afterEach(() => {
  vi.useRealTimers();
  FAULTS.between.clear();
});

async function call<N extends OperationName>(person: Principal, name: N, params: ParamsInputOf<N>): Promise<ResultOf<N>> {
  const result = await tryCall(person, name, params);
  if (!result.ok) throw new Error(`${name}: ${JSON.stringify(result.error)}`);
  return result.value as unknown as ResultOf<N>;
}

async function tryCall<N extends OperationName>(person: Principal, name: N, params: ParamsInputOf<N>) {
  const found = findOperation(name);
  if (found === null) throw new Error(`no operation ${name}`);
  return dispatchOperation(found, params, { principal: person, idempotencyKey: null }, services);
}

/** `remaining_usd` in the metadata of a task. */
async function remainingOf(principal: Principal, planId: string): Promise<unknown> {
  return (await taskOf(principal, planId)).metadata?.[EXTENSION_URI]?.['remaining_usd'];
}

/** The data parts in which a task asks. */
async function askedOf(principal: Principal, planId: string): Promise<readonly unknown[]> {
  const parts = (await taskOf(principal, planId)).status.message?.parts ?? [];
  return parts.flatMap((part) => (part.data === undefined ? [] : [part.data]));
}

interface ShownTask {
  readonly metadata?: Record<string, Record<string, unknown>>;
  readonly status: { readonly message?: { readonly parts: readonly { readonly data?: unknown }[] } };
}

async function taskOf(principal: Principal, planId: string): Promise<ShownTask> {
  const got = await runStandard(
    { op: 'get', params: { id: planId, historyLength: 0 } },
    { principal, idempotencyKey: null, version: '1.0', extensionActivated: false, signal: new AbortController().signal },
    services,
  );
  if (!got.ok) throw new Error(JSON.stringify(got.error));
  return got.value as ShownTask;
}

/** Priced calls cost $0.10 each. */
const priced = (label: string, count: number) =>
  Array.from({ length: count }, (_, n) => ({ tool: 'test/priced', arguments: { label, padding: `${n}` } }));

async function startIn(person: Principal, sessionId: string, calls: readonly object[], rest: object = {}): Promise<string> {
  const actionName = await addAction(person, { name: `a-${ulid().toLowerCase()}`, execute: [{ id: 'batch', calls }], apply: 'none' });
  return (await start(person, { actionName, automationProfile: 'auto', sessionId, ...rest })).plan.id;
}

const totalOf = ({ windows }: ResultOf<'_cleveragents/budget/show'>) => windows.find(({ window }) => window === 'total');

describe('the budget of a session that was created with a cap', () => {
  it('holds its plan at the cap, shows it at every level and by tool, and a raise sets the plan going', async () => {
    const person = await newOrg();
    const agent = await addKey(person.org, 'agent');
    const sessionId = newName('s');
    await call(agent, 'session.create', { session_id: sessionId, max_cost: 0.5 });
    const calls = [...priced(person.org, 7), { tool: 'test/counter', arguments: { label: person.org } }];
    const planId = await startIn(person, sessionId, calls);
    await until(person, planId, (snapshot) => isSettled(snapshot) && performed(person.org).length >= 6);
    const limit = onlyPending(await until(person, planId, (snapshot) => snapshot.plan.ledger.reservations.length === 0));
    expect(limit.reason).toMatch(/^Budget cap exceeded: \$0\.60 > \$0\.50\. Remediation: raise the budget of the session/);
    const asData = { exceeded_level: 'session', limit_field: 'session_budget', limit: 0.5, actual: 0.6, spent: 0.5 };
    expect((await call(agent, '_cleveragents/plan/status', { plan_id: planId })).pending).toMatchObject([{ details: asData }]);
    expect(await askedOf(agent, planId)).toMatchObject([{ approval_id: limit.id, kind: 'limit', details: asData }]);

    // It cannot be made to go on: what it waits for is refused before anything has begun.
    expect(await tryCall(person, '_cleveragents/plan/execute', { plan_id: planId })).toMatchObject({
      ok: false,
      error: { kind: 'budget_exceeded', details: { ...asData, plan_id: planId, approval_id: limit.id } },
    });

    const onSession = { level: 'session', session_id: sessionId } as const;
    const atCap = await eventually(
      () => call(agent, '_cleveragents/budget/show', onSession),
      (shown) => totalOf(shown)?.spent_usd === 0.5 && totalOf(shown)?.leased_usd === 0,
    );
    expect(totalOf(atCap)).toMatchObject({ cap_usd: 0.5, remaining_usd: 0, excess_usd: 0, exceeded: true, warned_at: expect.any(String) });
    expect(atCap.children).toEqual([{ level: 'plan', id: planId, spent_usd: 0.5, leased_usd: 0, reserved_usd: 0 }]);
    expect(atCap.told).toEqual({
      spent_usd: 0.5,
      reserved_usd: 0,
      tools: [{ tool: 'test/priced', spent_usd: 0.5, reserved_usd: 0 }],
      tool_count: 1,
      plans: [{ plan_id: planId, session_id: sessionId, spent_usd: 0.5, reserved_usd: 0, as_of: expect.any(String) }],
      plan_count: 1,
    });
    // A client that knows A2A alone sees what is left, too: at each level that has a cap.
    await call(person, '_cleveragents/budget/set', { level: 'org', monthly_usd: 20, daily_usd: 3 });
    expect(await remainingOf(agent, planId)).toEqual({ session: 0, org: 2.5 });
    const ofPlan = await call(agent, '_cleveragents/budget/show', { level: 'plan', plan_id: planId });
    expect(totalOf(ofPlan)).toMatchObject({ cap_usd: null, spent_usd: 0.5, leased_usd: 0, reserved_usd: 0, exceeded: false });
    expect(totalOf(atCap)).toMatchObject({ reserved_usd: 0 });
    expect(ofPlan.plan).toMatchObject({
      session_id: sessionId,
      days: [{ day: ofPlan.day, spent_usd: 0.5 }],
      tools: [
        { tool: 'test/priced', calls: 5, spent_usd: 0.5, reserved_usd: 0 },
        { tool: 'test/counter', calls: 1, spent_usd: 0, reserved_usd: 0 },
      ],
    });

    expect(await tryCall(agent, '_cleveragents/budget/set', { ...onSession, total_usd: 1 })).toMatchObject({
      ok: false,
      error: { kind: 'forbidden' },
    });
    const raised = await call(person, '_cleveragents/budget/set', { ...onSession, total_usd: 1 });
    expect([raised.unreached, raised.not_told]).toEqual([[], []]);
    const done = await until(person, planId, isTerminal);
    expect(done.plan.state).toBe('applied');
    expect(performed(person.org)).toHaveLength(8);
    const atOrg = await eventually(
      () => call(agent, '_cleveragents/budget/show', { level: 'org' }),
      (shown) => totalOf(shown)?.spent_usd === 0.7 && totalOf(shown)?.leased_usd === 0,
    );
    expect(atOrg.children).toEqual([{ level: 'session', id: sessionId, spent_usd: 0.7, leased_usd: 0, reserved_usd: 0 }]);
  });
});

describe('what is spent and held above the plan', () => {
  it('is shown by session, by plan and by tool at every level, to the micro-dollar, as soon as the plans have told it', async () => {
    const person = await newOrg();
    const agent = await addKey(person.org, 'agent');
    const profile = newName('p');
    await call(person, '_cleveragents/profile/add', {
      profile: {
        name: profile,
        description: 'Total limit',
        extends: 'full-auto',
        safety: { max_total_cost: 5, require_sandbox: true, require_checkpoints: true },
      },
    });
    const [first, second] = [newName('s'), newName('s')];
    const open = async (sessionId: string, automationProfile: string) => {
      const planId = ulid();
      await call(agent, '_cleveragents/guard/configure', {
        plan_id: planId,
        session_id: sessionId,
        automation_profile: automationProfile,
      });
      const authorize = (toolName: string, costUsd: number) =>
        call(agent, '_cleveragents/guard/authorize', { plan_id: planId, tool_name: toolName, is_write: false, cost_usd: costUsd });
      return { planId, authorize };
    };
    const settle = (decisionId: string, costUsd: number) =>
      call(agent, '_cleveragents/guard/settle', { decision_id: decisionId, outcome: 'succeeded', cost_usd: costUsd });
    const [a, b, c] = [await open(first, profile), await open(first, 'full-auto'), await open(second, profile)];
    await settle((await a.authorize('own.model', 0.3)).decision_id, 0.200001);
    await a.authorize('own.search', 0.05);
    await settle((await b.authorize('own.model', 0.1)).decision_id, 0.1);
    // Dearer than it was held for.
    await settle((await c.authorize('own.search', 0.1)).decision_id, 0.4);
    const last = await c.authorize('own.model', 0.07);

    const plans = {
      a: { plan_id: a.planId, session_id: first, spent_usd: 0.200001, reserved_usd: 0.05, as_of: expect.any(String) },
      b: { plan_id: b.planId, session_id: first, spent_usd: 0.1, reserved_usd: 0, as_of: expect.any(String) },
      c: { plan_id: c.planId, session_id: second, spent_usd: 0.4, reserved_usd: 0.07, as_of: expect.any(String) },
    };
    const expected = [
      {
        of: { level: 'org' },
        told: {
          spent_usd: 0.700001,
          reserved_usd: 0.12,
          tools: [
            { tool: 'own.search', spent_usd: 0.4, reserved_usd: 0.05 },
            { tool: 'own.model', spent_usd: 0.300001, reserved_usd: 0.07 },
          ],
          tool_count: 2,
          plans: [plans.c, plans.a, plans.b],
          plan_count: 3,
        },
        reserved: { [first]: 0.05, [second]: 0.07 },
      },
      {
        of: { level: 'session', session_id: first },
        told: {
          spent_usd: 0.300001,
          reserved_usd: 0.05,
          tools: [
            { tool: 'own.model', spent_usd: 0.300001, reserved_usd: 0 },
            { tool: 'own.search', spent_usd: 0, reserved_usd: 0.05 },
          ],
          tool_count: 2,
          plans: [plans.a, plans.b],
          plan_count: 2,
        },
        reserved: { [a.planId]: 0.05, [b.planId]: 0 },
      },
      {
        of: { level: 'profile', profile },
        told: {
          spent_usd: 0.600001,
          reserved_usd: 0.12,
          tools: [
            { tool: 'own.search', spent_usd: 0.4, reserved_usd: 0.05 },
            { tool: 'own.model', spent_usd: 0.200001, reserved_usd: 0.07 },
          ],
          tool_count: 2,
          plans: [plans.c, plans.a],
          plan_count: 2,
        },
        reserved: { [a.planId]: 0.05, [c.planId]: 0.07 },
      },
    ] as const;
    for (const { of, told, reserved } of expected) {
      const shown = await eventually(
        () => call(agent, '_cleveragents/budget/show', of),
        (view) => view.told?.reserved_usd === told.reserved_usd && totalOf(view)?.spent_usd === told.spent_usd,
      );
      expect(shown.told, of.level).toEqual(told);
      expect(Object.fromEntries(shown.children.map(({ id, reserved_usd }) => [id, reserved_usd]))).toEqual(reserved);
      // The nodes hear of it by another way: once the plans have told, both say the same, and what is held is part of what is leased.
      const total = totalOf(shown);
      expect(total?.reserved_usd).toBe(told.reserved_usd);
      expect(total?.leased_usd).toBeGreaterThanOrEqual(told.reserved_usd);
    }
    // What was held and is not any more is told as well, also by a plan that was out of memory meanwhile.
    await evict(person, c.planId);
    await call(agent, '_cleveragents/guard/settle', { decision_id: last.decision_id, outcome: 'not_dispatched' });
    const after = await eventually(
      () => call(agent, '_cleveragents/budget/show', { level: 'session', session_id: second }),
      (view) => view.told?.reserved_usd === 0,
    );
    expect(after.told?.tools).toEqual([{ tool: 'own.search', spent_usd: 0.4, reserved_usd: 0 }]);
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
    const later = await call(agent, '_cleveragents/budget/show', { level: 'session', session_id: first, day: tomorrow });
    expect(later.windows.map(({ window, reserved_usd }) => [window, reserved_usd])).toEqual(
      expect.arrayContaining([
        ['total', 0.05],
        ['daily', 0],
      ]),
    );
  });
});

describe('a budget that is spent to the last micro-dollar', () => {
  it.each(['plan', 'session', 'org'] as const)(
    'of the %s refuses the next paid call of every plan under it with that level, and lets what is free run',
    async (level) => {
      const person = await newOrg();
      const agent = await addKey(person.org, 'agent');
      const sessionId = newName('s');
      await call(agent, 'session.create', { session_id: sessionId, ...(level === 'session' ? { max_cost: 1 } : {}) });
      if (level === 'org') await call(person, '_cleveragents/budget/set', { level, total_usd: 1 });
      const open = async () => {
        const planId = ulid();
        await call(agent, '_cleveragents/guard/configure', {
          plan_id: planId,
          session_id: sessionId,
          automation_profile: 'full-auto',
          ...(level === 'plan' ? { guardrails: { tool_budget: 1 } } : {}),
        });
        return (costUsd: number, n: number) =>
          call(agent, '_cleveragents/guard/authorize', {
            plan_id: planId,
            tool_name: 'own.tool',
            arguments: { n },
            is_write: false,
            cost_usd: costUsd,
          });
      };
      const [first, sibling] = [await open(), await open()];
      const { decision_id } = await first(1, 1);
      await call(agent, '_cleveragents/guard/settle', { decision_id, outcome: 'succeeded', cost_usd: 1 });
      const held = level === 'plan' ? [first] : [first, sibling];
      for (const authorize of held) {
        expect(await authorize(0.000001, 2)).toMatchObject({ allowed: false, exceeded_level: level });
        expect(await authorize(0, 3)).toMatchObject({ allowed: true });
      }
      if (level === 'plan') expect(await sibling(0.5, 2), 'only its own').toMatchObject({ allowed: true });
      const used = await tryCall(person, '_cleveragents/plan/use', { action_name: await freeAction(person), session_id: sessionId });
      if (level === 'org') {
        await expect
          .poll(() => tryCall(person, '_cleveragents/plan/use', { action_name: 'free', session_id: sessionId }), { timeout: 10_000 })
          .toMatchObject({ ok: false, error: { kind: 'budget_exceeded', details: { exceeded_level: 'org' } } });
      } else expect(used.ok).toBe(true);
    },
  );

  const freeAction = (person: Principal) =>
    addAction(person, {
      name: 'free',
      execute: [{ id: 'free', call: { tool: 'test/counter', arguments: { label: 'x' } } }],
      apply: 'none',
    });
});

describe('what is left of the budgets above a plan', () => {
  const standard = (principal: Principal) => ({
    principal,
    idempotencyKey: null,
    version: '1.0' as const,
    extensionActivated: false,
    signal: new AbortController().signal,
  });
  const leftIn = (shown: { readonly metadata?: unknown }) =>
    (shown.metadata as ShownTask['metadata'])?.[EXTENSION_URI]?.['remaining_usd'] as Record<string, number> | undefined;

  /** Counts what is asked of the nodes. */
  const counting = (asked: string[]): Services => ({
    ...services,
    budgets: {
      node: (org, ref: BudgetRef) => ({
        ...services.budgets.node(org, ref),
        show: (day) => {
          asked.push(ref.kind);
          return services.budgets.node(org, ref).show(day);
        },
      }),
    },
  });

  async function capped(person: Principal) {
    const sessionId = newName('s');
    const profile = newName('p');
    await call(person, '_cleveragents/profile/add', {
      profile: { name: profile, description: 'Total limit', extends: 'auto', safety: { max_total_cost: 2 } },
    });
    await call(person, 'session.create', { session_id: sessionId, max_cost: 0.5 });
    await call(person, '_cleveragents/budget/set', { level: 'org', monthly_usd: 20 });
    const planId = await startIn(person, sessionId, priced(person.org, 7), { automationProfile: profile });
    await until(person, planId, (snapshot) => isSettled(snapshot) && performed(person.org).length >= 5);
    return { sessionId, planId, profile };
  }

  it('is in every task of a list, and each budget is asked once for all of them', async () => {
    const person = await newOrg();
    const { sessionId, planId, profile } = await capped(person);
    const second = await startIn(person, sessionId, priced(person.org, 1), { automationProfile: profile });
    await until(person, second, isSettled);
    const asked: string[] = [];
    const list = async () => {
      asked.length = 0;
      const params = { contextId: sessionId, pageSize: 10, includeArtifacts: false };
      const got = await runStandard({ op: 'list', params }, standard(person), counting(asked));
      if (!got.ok || !('tasks' in got.value)) throw new Error(JSON.stringify(got));
      return got.value.tasks;
    };
    const tasks = await eventually(list, (seen) => seen.every((task) => leftIn(task)?.['org'] === 19.5));
    expect(tasks.map(({ id }) => id).sort()).toEqual([planId, second].sort());
    for (const task of tasks) expect(leftIn(task)).toEqual({ session: 0, org: 19.5, profile: 1.5 });
    expect([...asked].sort()).toEqual(['org', 'profile', 'session']);
  });

  it('is in the updates of a stream, as it is at that moment, and not in what a plan says when it has ended', async () => {
    const person = await newOrg();
    const { sessionId, planId } = await capped(person);
    const stream = await runStream({ op: 'subscribe', params: { id: planId } }, standard(person), services, null);
    if (!stream.ok) throw new Error(JSON.stringify(stream.error));
    const seen: { readonly state: string; readonly left: Record<string, number> | undefined }[] = [];
    for await (const { event } of stream.value) {
      if (event.kind === 'task') {
        // What was read for the task is used again for a moment.
        await pause(FRESH_MS);
        await call(person, '_cleveragents/budget/set', { level: 'session', session_id: sessionId, total_usd: 3 });
      } else if (event.kind === 'status') seen.push({ state: event.status.state, left: leftIn(event) });
    }
    const working = seen.filter(({ state }) => state === 'working');
    expect(working.length).toBeGreaterThan(0);
    for (const { left } of working) expect(Object.keys(left ?? {}).sort()).toEqual(['org', 'profile', 'session']);
    expect(working.at(-1)?.left?.['session'], 'of the raised cap').toBeGreaterThan(2);
    expect(seen.at(-1)).toEqual({ state: 'completed', left: undefined });
  });

  it('is left out for a level that is silent, which holds up nothing', async () => {
    const person = await newOrg();
    const { planId } = await capped(person);
    const silent: Services = {
      ...services,
      budgets: {
        node: (org, ref) => {
          const node = services.budgets.node(org, ref);
          return ref.kind === 'session' ? { ...node, show: () => new Promise(() => {}) } : node;
        },
      },
    };
    const got = await runStandard({ op: 'get', params: { id: planId, historyLength: 0 } }, standard(person), silent);
    if (!got.ok) throw new Error(JSON.stringify(got.error));
    expect(Object.keys(leftIn(got.value as ShownTask) ?? {}).sort()).toEqual(['org', 'profile']);
  });
});

describe('a session that may spend nothing', () => {
  it('takes plans and runs what is free in them; what costs something waits with the level, the cap and what is spent as data', async () => {
    const person = await newOrg();
    const sessionId = newName('s');
    await call(person, 'session.create', { session_id: sessionId, max_cost: 0 });
    const free = await addAction(person, {
      name: `a-${ulid().toLowerCase()}`,
      execute: [{ id: 'free', call: { tool: 'test/counter', arguments: { label: person.org } } }],
      apply: 'none',
    });
    const used = await call(person, '_cleveragents/plan/use', { action_name: free, automation_profile: 'auto', session_id: sessionId });
    expect((await until(person, used.plan_id, isTerminal)).plan.state).toBe('applied');
    expect(performed(person.org).map(({ tool }) => tool)).toEqual(['test/counter']);

    const planId = await startIn(person, sessionId, priced(person.org, 1));
    const waiting = await until(person, planId, isSettled);
    const limit = onlyPending(waiting);
    expect(limit.reason).toMatch(/^Budget cap exceeded: \$0\.10 > \$0\.00\. Remediation: raise the budget of the session/);
    expect(limit.subject.details).toEqual({
      exceeded_level: 'session',
      limit_field: 'session_budget',
      limit: 0,
      actual: 0.1,
      spent: 0,
    });
    expect(performed(person.org)).toHaveLength(1);
  });
});

describe('the budget of the org', () => {
  it('warns once in the org log, for the session and for the org', async () => {
    const person = await newOrg();
    const sessionId = newName('s');
    await call(person, 'session.create', { session_id: sessionId, max_cost: 1 });
    await call(person, '_cleveragents/budget/set', { level: 'org', monthly_usd: 1 });
    const planId = await startIn(person, sessionId, priced(person.org, 10));
    await until(person, planId, isTerminal);
    const warned = async () => {
      const page = await services.orgLog.page(person.org, { afterSeq: 0, limit: 100 });
      return (page?.rows ?? []).flatMap((row) => (row.type === 'budget_warning' ? [row.data] : []));
    };
    const seen = await eventually(warned, (rows) => rows.length >= 2);
    expect(seen).toHaveLength(2);
    expect(seen).toContainEqual(
      expect.objectContaining({ level: 'session', id: sessionId, window: 'total', cap_micro_usd: 1_000_000, used_micro_usd: 1_000_000 }),
    );
    expect(seen).toContainEqual(expect.objectContaining({ level: 'org', id: person.org, window: 'monthly', cap_micro_usd: 1_000_000 }));
  });
});

describe('a plan whose budgets do not answer', () => {
  it.each(['session', 'org'])(
    'runs nothing while the %s is away, tries for a minute, and then is refused with the reason in its trail',
    async (level) => {
      const person = await newOrg();
      const sessionId = newName('s');
      await call(person, 'session.create', { session_id: sessionId, max_cost: 5 });
      await call(person, '_cleveragents/budget/set', { level: 'org', monthly_usd: 5 });
      let asked = 0;
      FAULTS.between.set(person.org, ({ operation }) => {
        if (operation !== `${level}.ask`) return null;
        asked += 1;
        return 'before';
      });
      const planId = await startIn(person, sessionId, priced(person.org, 1));
      await until(person, planId, ({ plan }) => plan.phase === 'execute' && asked > 0);
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now(), shouldAdvanceTime: false });
      const done = await eventually(
        async () => {
          vi.setSystemTime(Date.now() + 25_000);
          await runDurableObjectAlarm(stubOf(person, planId));
          return planOf(person, planId).read();
        },
        (snapshot) => snapshot !== null && isSettled(snapshot),
      );
      FAULTS.between.delete(person.org);
      expect(done?.plan.state).toBe('errored');
      expect(asked).toBeGreaterThan(1);
      expect(performed(person.org)).toEqual([]);
      const refused = await rowsOf(person, planId, 'call_decided');
      expect(refused.map(({ data }) => [data.allowed, data.guard, data.reserved_micro_usd])).toEqual([[false, 'budget_cap', 0]]);
      expect(refused[0]?.data.reason).toContain('could not be asked');
      await expect
        .poll(async () => (await auditOf(person, planId)).filter(({ guardName }) => guardName === 'budget_cap'))
        .toMatchObject([{ eventType: 'budget_blocked', result: 'denied', reason: expect.stringContaining('could not be asked') }]);
    },
  );
});

describe('a plan that is held by the cap of a day', () => {
  it('goes on by itself when the next day has begun', async () => {
    const person = await newOrg();
    const sessionId = newName('s');
    await call(person, 'session.create', { session_id: sessionId });
    await call(person, '_cleveragents/budget/set', { level: 'session', session_id: sessionId, daily_usd: 0.3 });
    const planId = await startIn(person, sessionId, priced(person.org, 5));
    await until(person, planId, (snapshot) => isSettled(snapshot) && performed(person.org).length === 3);
    onlyPending(await until(person, planId, (snapshot) => snapshot.plan.ledger.reservations.length === 0));
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 86_400_000, shouldAdvanceTime: false });
    const session = nodeStub(person.org, { kind: 'session', id: sessionId }) as DurableObjectStub;
    await runDurableObjectAlarm(session);
    // What was to be told is told after a while, so that whoever raised a cap comes first.
    vi.setSystemTime(Date.now() + 10_000);
    await runDurableObjectAlarm(session);
    const done = await eventually(
      // The platform's clock was not moved: what the plan sets its alarm to does not come by itself.
      async () => {
        await runDurableObjectAlarm(stubOf(person, planId));
        return planOf(person, planId).read();
      },
      (snapshot) => snapshot?.plan.terminal === true,
    );
    expect(done?.plan.state).toBe('applied');
    expect(performed(person.org)).toHaveLength(5);
  });
});
