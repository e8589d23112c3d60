/** The kill switches of session and org, and the org's floor, on real objects: what plans learn of them, and when. */
import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { ulid } from 'ulid';
import { afterEach, describe, expect, it } from 'vitest';
import { findOperation, type OperationName, type ParamsInputOf, type ResultOf } from '../../src/api/operations.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import { type StartRequest, startPlan } from '../../src/app/start-plan.ts';
import { commandOfWord } from '../../src/core/halt-word.ts';
import { haltOf } from '../../src/core/plan/plan.ts';
import type { Principal } from '../../src/core/principal.ts';
import type { Refusal } from '../../src/core/refusal.ts';
import type { Result } from '../../src/core/result.ts';
import { objectName } from '../../src/storage/objects.ts';
import { FAULTS } from '../worker/test-worker.ts';
import {
  addAction,
  addKey,
  answer,
  approve,
  callerOf,
  crash,
  evict,
  isSettled,
  isTerminal,
  isWaiting,
  logOf,
  newOrg,
  onlyPending,
  pause,
  performed,
  planOf,
  rowsOf,
  services,
  start,
  stateOf,
  track,
  until,
} from './plan-support.ts';

afterEach(() => {
  FAULTS.orders.clear();
  FAULTS.deaf.clear();
});

function dispatch(principal: Principal, name: OperationName, params: object): Promise<Result<unknown, Refusal>> {
  const found = findOperation(name);
  if (found === null) throw new Error(`no operation ${name}`);
  return dispatchOperation(found, params, { principal, idempotencyKey: null }, services);
}

async function call<N extends OperationName>(principal: Principal, name: N, params: ParamsInputOf<N>): Promise<ResultOf<N>> {
  const result = await dispatch(principal, name, params);
  if (!result.ok) throw new Error(`${name}: ${JSON.stringify(result.error)}`);
  return result.value as ResultOf<N>;
}

const haltOrg = (person: Principal, reason = 'stop') => call(person, '_cleveragents/halt/set', { level: 'org', reason });
const clearOrg = (person: Principal) => call(person, '_cleveragents/halt/clear', { level: 'org' });
const orgStub = (person: Principal) => env.ORGS.getByName(objectName(person.org, 'org', person.org));
const sessionStub = (person: Principal, id: string) => env.SESSIONS.getByName(objectName(person.org, 'session', id));

/** A word that is said and told to nobody: as if whoever set it had died, and the node had not come to it yet. */
const sayTo = (person: Principal, sessionId: string | null, reason: string | null) =>
  services.halts.change(person.org, sessionId === null ? { kind: 'org' } : { kind: 'session', id: sessionId }, {
    reason,
    by: callerOf(person).actor,
    at: new Date().toISOString(),
  });

/** A plan of one call per label and number; every one of them is free. */
async function startCalls(
  person: Principal,
  label: string,
  { count = 1, tool = 'test/slow', ms = 25, session = 's1', ask = false }: CallOptions = {},
): Promise<string> {
  const steps = Array.from({ length: count }, () => ({ call: { tool, arguments: { label, ms } } }));
  const actionName = await addAction(person, { name: `a-${ulid().toLowerCase()}`, execute: steps, apply: 'none' });
  const guardrails = ask ? { required_confirmations: [tool] } : {};
  return (await start(person, { actionName, automationProfile: 'full-auto', sessionId: session, guardrails })).plan.id;
}

interface CallOptions {
  readonly count?: number;
  readonly tool?: string;
  readonly ms?: number;
  readonly session?: string;
  /** Each call waits for a human. */
  readonly ask?: boolean;
}

/** What was authorised or sent behind the row that records the halt. */
async function afterHalt(person: Principal, planId: string) {
  const log = await logOf(person, planId);
  const at = log.findLastIndex((row) => row.type === 'halted');
  if (at < 0) throw new Error(`${planId} never heard of a halt`);
  return log.slice(at).filter((row) => row.type === 'call_sent' || (row.type === 'call_decided' && row.data.allowed));
}

const isHalted = (snapshot: { readonly plan: Parameters<typeof haltOf>[0] }): boolean => haltOf(snapshot.plan) !== null;

describe('a halt of the org', () => {
  it('while 20 plans of 5 sessions work: after the answer none authorises or begins anything; cleared, each goes on to its end', async () => {
    const person = await newOrg();
    const label = person.org;
    const planIds = await Promise.all(
      Array.from({ length: 20 }, (_, index) => startCalls(person, label, { count: 12, session: `s${index % 5}` })),
    );
    await until(person, planIds[19] ?? '', () => performed(label).length > 20);
    const set = await haltOrg(person, 'a key leaked');
    expect(set).toMatchObject({ halted: true, done: true, reached: 20, unreached: [] });
    const begun = performed(label).length;
    expect(begun, 'it came in the middle').toBeLessThan(20 * 12);
    await pause(300);
    expect(performed(label), 'nothing begins after the answer').toHaveLength(begun);
    for (const planId of planIds) {
      expect(await rowsOf(person, planId, 'halted')).toMatchObject([{ data: { level: 'org', epoch: 1, reason: 'a key leaked' } }]);
      expect(await afterHalt(person, planId)).toEqual([]);
      expect((await stateOf(person, planId)).terminal).toBe(false);
    }
    expect(await runInDurableObject(orgStub(person), (_object, state) => state.storage.sql.exec('SELECT * FROM pushes').toArray())).toEqual(
      [],
    );

    expect(await clearOrg(person)).toMatchObject({ halted: false, done: true, reached: 20 });
    for (const planId of planIds) await until(person, planId, isTerminal, 60_000);
    for (const planId of planIds) {
      const settled = await rowsOf(person, planId, 'call_settled');
      expect(settled.filter((row) => row.data.outcome === 'succeeded')).toHaveLength(12);
    }
  }, 120_000);

  it('names the plan that it did not reach, and the org tells it until it knows', async () => {
    const person = await newOrg();
    const [mine, deaf] = [
      await startCalls(person, `${person.org}.1`, { ask: true }),
      await startCalls(person, `${person.org}.2`, { ask: true }),
    ];
    for (const planId of [mine, deaf]) await until(person, planId, isWaiting);
    FAULTS.deaf.add(deaf);
    expect(await haltOrg(person)).toMatchObject({ halted: true, done: false, reached: 1, unreached: [deaf] });
    expect(isHalted({ plan: await stateOf(person, deaf) })).toBe(false);
    FAULTS.deaf.clear();
    await until(person, deaf, isHalted, 20_000);
    await until(person, deaf, () => true);
    const open = () =>
      runInDurableObject(orgStub(person), (_object, state) => state.storage.sql.exec('SELECT * FROM pushes').toArray().length);
    for (let tries = 0; (await open()) > 0 && tries < 100; tries += 1) await pause(50);
    expect(await open(), 'nothing is left to tell').toBe(0);
    await clearOrg(person);
  }, 60_000);

  it('that nobody could tell of, since the caller died, reaches the plans all the same, over a crash of the org', async () => {
    const person = await newOrg();
    const planId = await startCalls(person, person.org, { ask: true });
    await until(person, planId, isWaiting);
    await sayTo(person, null, 'said and gone');
    await runInDurableObject(orgStub(person), (_object, state) => state.abort('killed by a test')).catch(() => undefined);
    const { plan } = await until(person, planId, isHalted, 20_000);
    expect(haltOf(plan)).toMatchObject({ level: 'org', reason: 'said and gone', by: { id: person.keyId } });
    expect(await clearOrg(person)).toMatchObject({ done: true });
  }, 60_000);

  it('changes nothing in another org, whatever its sessions are called', async () => {
    const [person, stranger] = [await newOrg(), await newOrg()];
    const foreign = await startCalls(stranger, stranger.org, { count: 8, session: 'same' });
    const mine = await startCalls(person, person.org, { count: 8, session: 'same' });
    await haltOrg(person);
    await call(person, '_cleveragents/halt/set', { level: 'session', session_id: 'same', reason: 'stop' });
    await until(stranger, foreign, isTerminal);
    expect(performed(stranger.org)).toHaveLength(8);
    expect(await rowsOf(stranger, foreign, 'halted')).toEqual([]);
    await until(person, mine, isHalted);
    await clearOrg(person);
    await pause(100);
    expect(isHalted({ plan: await stateOf(person, mine) }), 'the session is halted as well').toBe(true);
    await call(person, '_cleveragents/halt/clear', { level: 'session', session_id: 'same' });
    await until(person, mine, isTerminal);
  }, 60_000);
});

describe('a plan that was not told', () => {
  it('and slept reads it when somebody wakes it: an approval is refused, and nothing was authorised', async () => {
    const person = await newOrg();
    const planId = await startCalls(person, person.org, { ask: true });
    const asked = onlyPending(await until(person, planId, isWaiting));
    await evict(person, planId);
    FAULTS.deaf.add(planId);
    await sayTo(person, 's1', 'look first');
    expect(await answer(person, planId, asked)).toMatchObject({
      ok: false,
      error: { kind: 'invalid_state', details: { halted: { level: 'session', reason: 'look first' } } },
    });
    expect(await afterHalt(person, planId)).toEqual([]);
    expect(performed(person.org)).toEqual([]);
    FAULTS.deaf.clear();
    await call(person, '_cleveragents/halt/clear', { level: 'session', session_id: 's1' });
    await approve(person, planId, onlyPending(await until(person, planId, isWaiting)));
    await until(person, planId, isTerminal);
    expect(performed(person.org)).toHaveLength(1);
  });

  it('and worked reads it at its next alarm, before anything of it begins', async () => {
    const person = await newOrg();
    const planId = await startCalls(person, person.org, { ask: true });
    const asked = onlyPending(await until(person, planId, isWaiting));
    FAULTS.deaf.add(planId);
    // It has read what holds since it woke up; the word comes between its decision and its alarm.
    await planOf(person, planId).command({
      type: 'extend',
      by: callerOf(person),
      approvalId: asked.id,
      expiresAt: new Date(Date.now() + 9e8).toISOString(),
    });
    const going = answer(person, planId, asked);
    await sayTo(person, null, 'now');
    await going;
    await until(person, planId, (snapshot) => isHalted(snapshot) || isTerminal(snapshot), 20_000);
    const heard = (await rowsOf(person, planId, 'halted')).length > 0;
    if (heard) expect(await afterHalt(person, planId)).toEqual([]);
    FAULTS.deaf.clear();
    await clearOrg(person);
    await until(person, planId, isTerminal);
    expect(performed(person.org)).toHaveLength(1);
  }, 60_000);

  it('that is made from what was read before the halt does not act: its first alarm reads again', async () => {
    const person = await newOrg();
    const label = person.org;
    const actionName = await addAction(person, {
      name: 'race',
      execute: [{ call: { tool: 'test/slow', arguments: { label, ms: 1 } } }],
      apply: 'none',
    });
    await sayTo(person, null, 'in between');
    const late = { ...services, halts: { ...services.halts, current: async () => [] } };
    const request: StartRequest = {
      ...{ actionName, arguments: {}, input: '', message: null, idempotency: null, fieldPrefix: '', automationProfile: 'full-auto' },
      sessionId: 's1',
    };
    const made = await startPlan(request, person, late);
    if (!made.ok) throw new Error(JSON.stringify(made.error));
    const { id } = made.value.plan;
    track(person, id);
    await until(person, id, isHalted);
    await pause(100);
    expect(performed(label)).toEqual([]);
    expect(await rowsOf(person, id, 'call_decided')).toEqual([]);
    await clearOrg(person);
    await until(person, id, isTerminal);
    expect(performed(label)).toHaveLength(1);
  });

  it('because it was made at the same instant: whatever the order, nothing begins after the answer (30 at once)', async () => {
    const person = await newOrg();
    const label = person.org;
    const actionName = await addAction(person, {
      name: 'race',
      execute: Array.from({ length: 6 }, () => ({ call: { tool: 'test/slow', arguments: { label, ms: 20 } } })),
      apply: 'none',
    });
    const request: StartRequest = {
      ...{ actionName, arguments: {}, input: '', message: null, idempotency: null, fieldPrefix: '', automationProfile: 'full-auto' },
    };
    const starting = Array.from({ length: 30 }, async (_, index) => {
      await pause(index * 8);
      return startPlan({ ...request, sessionId: `s${index % 4}` }, person, services);
    });
    await pause(100);
    const set = await haltOrg(person);
    const made = await Promise.all(starting);
    await pause(200);
    const begun = performed(label).length;
    const planIds = made.flatMap((each) => (each.ok ? [each.value.plan.id] : []));
    for (const each of made)
      if (!each.ok) expect(each.error).toMatchObject({ kind: 'invalid_state', details: { halted: { level: 'org' } } });
    for (const planId of planIds) track(person, planId);
    expect(set.done).toBe(true);
    expect(planIds.length, 'some were faster').toBeGreaterThan(0);
    await pause(400);
    expect(performed(label)).toHaveLength(begun);
    for (const planId of planIds) {
      const { terminal } = await stateOf(person, planId);
      if (!terminal) expect(await afterHalt(person, planId)).toEqual([]);
    }
    await clearOrg(person);
    for (const planId of planIds) await until(person, planId, isTerminal, 30_000);
  }, 120_000);

  it('because it does not reach its session and its org does nothing until it does, and answers that the call can be repeated', async () => {
    const person = await newOrg();
    const planId = await startCalls(person, person.org, { ask: true });
    const asked = onlyPending(await until(person, planId, isWaiting));
    await evict(person, planId);
    FAULTS.orders.add(person.org);
    expect(await answer(person, planId, asked)).toMatchObject({ ok: false, error: { kind: 'unavailable', retryAfterSeconds: 2 } });
    expect(await answer(person, planId, { id: 'x', digest: 'x' }, { decision: 'deny' }), 'a no is no question').toMatchObject({
      ok: false,
      error: { kind: 'not_found' },
    });
    FAULTS.orders.clear();
    await approve(person, planId, asked);
    await until(person, planId, isTerminal);

    FAULTS.orders.add(person.org);
    const second = await startCalls(person, `${person.org}.2`);
    await pause(300);
    expect(performed(`${person.org}.2`)).toEqual([]);
    expect((await stateOf(person, second)).terminal).toBe(false);
    FAULTS.orders.clear();
    await until(person, second, isTerminal, 20_000);
    expect(performed(`${person.org}.2`)).toHaveLength(1);
  }, 60_000);
});

describe('a plan whose executor is outside', () => {
  async function open(session = 's1') {
    const person = await newOrg();
    const agent = await addKey(person.org, 'agent');
    const planId = ulid();
    await call(agent, '_cleveragents/guard/configure', { plan_id: planId, automation_profile: 'auto', session_id: session });
    track(person, planId);
    const authorize = () => dispatch(agent, '_cleveragents/guard/authorize', { plan_id: planId, tool_name: 'own.tool' });
    return { person, agent, planId, authorize };
  }

  it('that was not told is refused its first call after a wake, and the next one after the halt is cleared is allowed', async () => {
    const { person, planId, authorize } = await open();
    expect(await authorize()).toMatchObject({ ok: true, value: { allowed: true } });
    await evict(person, planId);
    FAULTS.deaf.add(planId);
    await sayTo(person, null, 'stop');
    expect(await authorize()).toMatchObject({ ok: true, value: { allowed: false, reason: expect.stringContaining('stop') } });
    expect(await rowsOf(person, planId, 'halted')).toHaveLength(1);
    FAULTS.deaf.clear();
    await clearOrg(person);
    expect(await authorize()).toMatchObject({ ok: true, value: { allowed: true } });
    await call(person, '_cleveragents/plan/cancel', { plan_id: planId });
  });

  it('is told at once while it is awake', async () => {
    const { person, planId, authorize } = await open();
    expect(await authorize()).toMatchObject({ ok: true, value: { allowed: true } });
    expect(await haltOrg(person)).toMatchObject({ done: true, reached: 1 });
    const refused = await Promise.all(Array.from({ length: 10 }, authorize));
    for (const each of refused) expect(each).toMatchObject({ ok: true, value: { allowed: false } });
    expect(await afterHalt(person, planId)).toEqual([]);
    await clearOrg(person);
    await call(person, '_cleveragents/plan/cancel', { plan_id: planId });
  });

  it('that was moved into a halted session is under its halt from then on', async () => {
    const { person, agent, planId, authorize } = await open('first');
    // It has read what holds in its first session.
    expect(await call(agent, '_cleveragents/guard/check_step_limit', { plan_id: planId, current_step: 1 })).toMatchObject({
      allowed: true,
    });
    await call(person, 'session.create', { session_id: 'second' });
    await sayTo(person, 'second', 'not here');
    await call(agent, '_cleveragents/guard/associate_plan_with_session', { plan_id: planId, session_id: 'second' });
    expect(await authorize()).toMatchObject({ ok: true, value: { allowed: false, reason: expect.stringContaining('not here') } });
    await call(person, '_cleveragents/plan/cancel', { plan_id: planId });
  });

  it('that was moved hears its new session although the one before has said more, and nothing of that one any more', async () => {
    const { person, agent, planId, authorize } = await open('first');
    const move = (session: string) =>
      call(agent, '_cleveragents/guard/associate_plan_with_session', { plan_id: planId, session_id: session });
    const halt = (session: string, reason: string) =>
      call(person, '_cleveragents/halt/set', { level: 'session', session_id: session, reason });
    const shown = () => call(person, '_cleveragents/halt/show', { level: 'plan', plan_id: planId });
    for (const session of ['second', 'third']) await call(person, 'session.create', { session_id: session });
    await halt('first', 'one');
    await call(person, '_cleveragents/halt/clear', { level: 'session', session_id: 'first' });
    await move('second');
    await until(person, planId, ({ plan }) => plan.sessionId === 'second');
    await halt('second', 'two');
    expect(await authorize()).toMatchObject({ ok: true, value: { allowed: false, reason: expect.stringContaining('two') } });
    expect(await shown()).toMatchObject({ halted: true, halts: [{ reason: 'two' }] });
    // Nobody walks out of a halt.
    await expect(move('third')).rejects.toThrow('invalid_state');
    await call(person, '_cleveragents/halt/clear', { level: 'session', session_id: 'second' });
    await move('third');
    expect(await shown()).toMatchObject({ halted: false });
    const late = await services.halts.change(
      person.org,
      { kind: 'session', id: 'first' },
      { reason: 'late', by: callerOf(person).actor, at: '' },
    );
    if (late === null) throw new Error('it was set');
    await planOf(person, planId).command(commandOfWord(late, 'first'));
    expect(await shown()).toMatchObject({ halted: false });
    // What was said in a session while the plan was away is read when it is back, also where nothing was asked meanwhile.
    await call(person, '_cleveragents/halt/clear', { level: 'session', session_id: 'first' });
    await move('first');
    expect(await call(agent, '_cleveragents/guard/check_wall_clock', { plan_id: planId })).toMatchObject({ allowed: true });
    await move('third');
    await sayTo(person, 'first', 'while away');
    await move('first');
    expect(await authorize()).toMatchObject({ ok: true, value: { allowed: false, reason: expect.stringContaining('while away') } });
    await call(person, '_cleveragents/plan/cancel', { plan_id: planId });
  });

  it('that cannot ask is told to come again, and nothing is allowed meanwhile', async () => {
    const { person, planId, authorize } = await open();
    FAULTS.orders.add(person.org);
    expect(await authorize()).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
    expect(await rowsOf(person, planId, 'call_decided')).toEqual([]);
    FAULTS.orders.clear();
    expect(await authorize()).toMatchObject({ ok: true, value: { allowed: true } });
    await call(person, '_cleveragents/plan/cancel', { plan_id: planId });
  });
});

describe('the word of a node', () => {
  it('is not stored before it is first set, and outlives crash and eviction', async () => {
    const person = await newOrg();
    const tables = () =>
      runInDurableObject(sessionStub(person, 'quiet'), (_object, state) =>
        state.storage.sql.exec("SELECT name FROM sqlite_master WHERE name IN ('halt_word', 'pushes')").toArray(),
      );
    expect(await services.halts.show(person.org, { kind: 'session', id: 'quiet' })).toBeNull();
    expect(
      await services.halts.change(person.org, { kind: 'session', id: 'quiet' }, { reason: null, by: callerOf(person).actor, at: '' }),
    ).toBeNull();
    expect(await tables()).toEqual([]);
    const word = await sayTo(person, 'quiet', 'shh');
    await runInDurableObject(sessionStub(person, 'quiet'), (_object, state) => state.abort('killed by a test')).catch(() => undefined);
    expect(await services.halts.show(person.org, { kind: 'session', id: 'quiet' })).toEqual(word);
    expect(await services.halts.current(person.org, 'quiet')).toEqual([word]);
    expect(await services.halts.current(person.org, 'other')).toEqual([]);
  });

  it('late, twice and out of order, over crash and eviction of the plan, leaves it with the newest', async () => {
    const person = await newOrg();
    const planId = await startCalls(person, person.org, { ask: true });
    await until(person, planId, isWaiting);
    const words = [];
    for (const reason of ['one', null, 'three']) words.push(await sayTo(person, 's1', reason));
    for (const index of [2, 0, 1, 2, 0]) {
      const word = words[index];
      if (word === undefined || word === null) throw new Error('three words were said');
      await planOf(person, planId).command(commandOfWord(word, 's1'));
      await (index === 0 ? crash(person, planId) : evict(person, planId));
    }
    expect((await stateOf(person, planId)).halts).toMatchObject([{ level: 'session', epoch: 3, reason: 'three' }]);
    expect(await rowsOf(person, planId, 'halted')).toHaveLength(1);
    await call(person, '_cleveragents/plan/cancel', { plan_id: planId });
  });
});

describe('a floor of the org', () => {
  const floor = { guardrails: { tool_denylist: ['test/external_write'] } };

  async function twoCalls(person: Principal): Promise<string> {
    const { org } = person;
    const actionName = await addAction(person, {
      name: `a-${ulid().toLowerCase()}`,
      execute: ['test/slow', 'test/external_write'].map((tool) => ({ call: { tool, arguments: { label: `${org}.${tool}`, ms: 1 } } })),
      apply: 'none',
    });
    const guardrails = { required_confirmations: ['test/slow'] };
    return (await start(person, { actionName, automationProfile: 'full-auto', sessionId: 's1', guardrails })).plan.id;
  }

  it('that did not reach a sleeping plan binds it before it acts', async () => {
    const person = await newOrg();
    const planId = await twoCalls(person);
    const asked = onlyPending(await until(person, planId, isWaiting));
    await evict(person, planId);
    FAULTS.deaf.add(planId);
    expect(await call(person, '_cleveragents/org/policy/set', { policy: floor })).toMatchObject({ done: false, unreached: [planId] });
    expect((await answer(person, planId, asked)).ok, 'what was asked under the old floor is asked again').toBe(false);
    FAULTS.deaf.clear();
    await approve(person, planId, onlyPending(await until(person, planId, isWaiting)));
    const { plan } = await until(person, planId, ({ plan: { state } }) => state === 'errored');
    expect(plan.failure?.last.message).toContain(
      "'test/external_write' is on the denylist. Remediation: remove it from the denylist of the org",
    );
    expect(performed(`${person.org}.test/slow`)).toHaveLength(1);
    expect(performed(`${person.org}.test/external_write`)).toEqual([]);
    expect(await rowsOf(person, planId, 'guard_revised')).toMatchObject([{ data: { origin: 'org' } }]);
    await call(person, '_cleveragents/plan/cancel', { plan_id: planId });
  });

  it('that was saved and told to nobody, since the caller died, is found by the org and binds the live plans', async () => {
    const person = await newOrg();
    const planId = await twoCalls(person);
    await until(person, planId, isWaiting);
    await services.floors.announce(person.org, 1);
    await services.orgPolicies.save({
      org: person.org,
      version: 1,
      policy: floor,
      savedAt: new Date().toISOString(),
      savedBy: person.keyId,
    });
    await until(person, planId, ({ plan }) => plan.policy.denylist.some((entry) => entry.origin === 'org'), 20_000);
    expect(await services.floors.current(person.org)).toMatchObject({ version: 1, policy: floor });
    await call(person, '_cleveragents/plan/cancel', { plan_id: planId });
  }, 60_000);

  it('that was announced and never saved binds nobody, and the org goes on looking for it', async () => {
    const person = await newOrg();
    const planId = await twoCalls(person);
    await until(person, planId, isWaiting);
    await services.floors.announce(person.org, 1);
    await pause(3_500);
    expect(await services.floors.current(person.org)).toBeNull();
    expect((await stateOf(person, planId)).guards.revision).toBe(1);
    expect(await runInDurableObject(orgStub(person), (_object, state) => state.storage.getAlarm())).not.toBeNull();
    expect(await call(person, '_cleveragents/org/policy/set', { policy: floor })).toMatchObject({ version: 1, done: true, reached: 1 });
    expect((await stateOf(person, planId)).guards.revision).toBe(2);
    await call(person, '_cleveragents/plan/cancel', { plan_id: planId });
    await until(person, planId, isSettled);
  }, 60_000);
});
