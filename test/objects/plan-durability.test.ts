import { runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { describe, expect, it } from 'vitest';
import { sweep } from '../../src/app/sweep.ts';
import { APPROVAL_TTL_MS, REMINDER_MS } from '../../src/core/plan/decide/open-approval.ts';
import {
  addAction,
  addProject,
  alarmOf,
  answer,
  approve,
  callerOf,
  crash,
  evict,
  fileOf,
  isAt,
  isSettled,
  isTerminal,
  newOrg,
  onlyPending,
  pause,
  pendingOf,
  performed,
  planOf,
  rowsOf,
  services,
  start,
  startSteps,
  stateOf,
  stubOf,
  until,
} from './plan-support.ts';

describe('a plan whose object leaves memory', () => {
  it('between every two commands of the story is the same plan as one that stayed', async () => {
    const person = await newOrg();
    const project = await addProject(person, { 'a.txt': 'old a\n', 'b.txt': 'old b\n' });
    const actionName = await addAction(person, {
      name: 'edit',
      execute: [
        { id: 'one', call: { tool: 'write_file', arguments: { path: 'a.txt', content: 'new a\n' } } },
        { id: 'count', call: { tool: 'test/counter', arguments: { label: person.org } } },
        { id: 'two', call: { tool: 'edit_file', arguments: { path: 'b.txt', old_text: 'old', new_text: 'new' } } },
      ],
    });
    const { plan } = await start(person, {
      actionName,
      project,
      automationProfile: 'manual',
      guardrails: { tool_denylist: ['test/counter'] },
    });
    const asked: string[] = [];
    for (;;) {
      const before = await until(person, plan.id, isSettled);
      const state = await stateOf(person, plan.id);
      await evict(person, plan.id);
      expect(await stateOf(person, plan.id)).toEqual(state);
      expect(await planOf(person, plan.id).read()).toEqual(before);
      const [approval] = pendingOf(before);
      if (approval === undefined) break;
      asked.push(approval.gate ?? approval.guard ?? approval.kind);
      await approve(person, plan.id, approval);
      await evict(person, plan.id);
    }
    expect(asked).toEqual(['decompose_task', 'create_tool', 'execute_command', 'denylist', 'execute_command', 'select_tool']);
    expect(performed(person.org)).toHaveLength(1);
    expect(await fileOf(person, project, 'a.txt')).toBe('new a\n');
    expect(await fileOf(person, project, 'b.txt')).toBe('new b\n');
  });

  it('in the middle of a script of 40 steps, again and again, performs each step once and in order', async () => {
    const person = await newOrg();
    const steps = Array.from({ length: 40 }, (_, index) => ({
      id: `s${index}`,
      call: { tool: 'test/slow', arguments: { label: person.org, ms: 5, padding: `${index}` } },
    }));
    const planId = await startSteps(person, steps);
    for (let kill = 0; kill < 8; kill += 1) {
      await pause(25);
      await crash(person, planId);
      await planOf(person, planId)
        .read()
        .catch(() => null);
    }
    await until(person, planId, isTerminal, 30_000);
    // A call that was killed on its way is repeated with its own key, never with another one.
    const keys = performed(person.org).map((each) => each.key);
    expect(new Set(keys).size).toBe(40);
    const firsts = [...new Set(performed(person.org).map((each) => each.args['padding']))];
    expect(firsts).toEqual(Array.from({ length: 40 }, (_, index) => `${index}`));
    expect((await rowsOf(person, planId, 'call_settled')).map((row) => row.data.outcome)).toEqual(
      Array.from({ length: 40 }, () => 'succeeded'),
    );
  });
});

describe('the alarm', () => {
  it('run twice for one due step performs it once', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [{ call: { tool: 'test/slow', arguments: { label: person.org, ms: 200 } } }], {
      profile: 'manual',
    });
    for (const _gate of ['decompose_task', 'create_tool']) {
      const approval = onlyPending(await until(person, planId, isSettled));
      await approve(person, planId, approval);
      await until(person, planId, (snapshot) => isSettled(snapshot) && pendingOf(snapshot)[0]?.id !== approval.id);
    }
    await approve(person, planId, onlyPending(await until(person, planId, isSettled)));
    await Promise.all([
      runDurableObjectAlarm(stubOf(person, planId)),
      runDurableObjectAlarm(stubOf(person, planId)),
      planOf(person, planId).wake(),
    ]);
    await until(person, planId, isTerminal);
    expect(performed(person.org)).toHaveLength(1);
  });

  it('of a waiting plan is set for the reminder of its approval, and running it early changes nothing', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [{ say: 'done' }], { profile: 'manual' });
    const waiting = await until(person, planId, isSettled);
    const opened = Date.parse(onlyPending(waiting).openedAt);
    await expect.poll(() => alarmOf(person, planId)).toBe(opened + APPROVAL_TTL_MS - REMINDER_MS);
    expect(await runDurableObjectAlarm(stubOf(person, planId))).toBe(true);
    expect(await planOf(person, planId).read()).toEqual(waiting);
    expect(await alarmOf(person, planId)).toBe(opened + APPROVAL_TTL_MS - REMINDER_MS);
  });

  it('that was lost is set again by whoever wakes the object', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [{ say: 'done' }], { profile: 'manual' });
    const due = Date.parse(onlyPending(await until(person, planId, isSettled)).openedAt) + APPROVAL_TTL_MS - REMINDER_MS;
    await expect.poll(() => alarmOf(person, planId)).toBe(due);
    await runInDurableObject(stubOf(person, planId), (_object, state) => state.storage.deleteAlarm());
    await evict(person, planId);
    await planOf(person, planId).read();
    expect(await alarmOf(person, planId)).toBe(due);
    // In memory the sweeper's wake does the same.
    await runInDurableObject(stubOf(person, planId), (_object, state) => state.storage.deleteAlarm());
    await planOf(person, planId).wake();
    expect(await alarmOf(person, planId)).toBe(due);
  });

  it('of an overdue plan is set by the sweeper, from what the index says', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [{ call: { tool: 'test/fail_transient', arguments: { label: person.org, times: 1 } } }]);
    await until(person, planId, () => performed(person.org).length === 1);
    await until(person, planId, ({ plan }) => plan.ledger.reservations.length === 0);
    await expect.poll(async () => (await services.planIndex.get(person.org, planId))?.seq).toBe((await stateOf(person, planId)).seq);
    await runInDurableObject(stubOf(person, planId), (_object, state) => state.storage.deleteAlarm());
    const clock = { nowMs: () => Date.now() + 10 * 60_000 };
    await sweep({ ...services, clock });
    await until(person, planId, isTerminal);
    expect(performed(person.org)).toHaveLength(2);
  });
});

describe('an external call that was on its way when the object was killed', () => {
  async function killedOnTheWay(tool: string, options: { readonly guardrails?: object; readonly profile?: string } = {}) {
    const person = await newOrg();
    const steps = [{ id: 'send', call: { tool, arguments: { label: person.org, ms: 60_000 } }, cost_usd: 0.1 }];
    // Only full-auto lets a call write outside before the apply.
    const planId = await startSteps(person, steps, { profile: 'full-auto', ...options });
    await until(person, planId, () => performed(person.org).length === 1);
    await crash(person, planId);
    return { person, planId };
  }

  it('is repeated with the same key if its tool promises that this is harmless', async () => {
    const { person, planId } = await killedOnTheWay('test/external_write');
    await until(person, planId, () => performed(person.org).length === 2, 20_000);
    const [first, second] = performed(person.org);
    expect(second?.key).toBe(first?.key);
    expect(await rowsOf(person, planId, 'call_sent')).toHaveLength(1);
    const plan = await stateOf(person, planId);
    expect(plan.ledger.reservations).toHaveLength(1);
    await planOf(person, planId).command({ type: 'cancel', by: callerOf(person).actor, reason: null });
    await until(person, planId, ({ plan: { ledger } }) => ledger.reservations.length === 0);
    expect((await stateOf(person, planId)).ledger).toMatchObject({ settledMicroUsd: 100_000 });
  });

  it('is asked about if it may have happened, and stays reserved meanwhile', async () => {
    const { person, planId } = await killedOnTheWay('test/external_once');
    const approval = onlyPending(await until(person, planId, isSettled, 20_000));
    expect(approval).toMatchObject({ kind: 'unknown_outcome' });
    expect(approval.subject.choices).toEqual(['done', 'failed', 'retry']);
    expect((await stateOf(person, planId)).ledger.reservations).toHaveLength(1);
    await evict(person, planId);
    expect(await answer(person, planId, approval)).toMatchObject({ ok: false });
    expect(await answer(person, planId, approval, { decision: 'answer', text: 'perhaps' })).toMatchObject({ ok: false });
    expect((await answer(person, planId, approval, { decision: 'answer', text: 'done' })).ok).toBe(true);
    const done = await until(person, planId, isTerminal);
    expect(done.plan.state).toBe('applied');
    expect(done.plan.ledger).toMatchObject({ settledMicroUsd: 100_000, reservations: [] });
    expect(performed(person.org)).toHaveLength(1);
  });

  it('is a failure of its step when a human says so, and is paid for', async () => {
    const { person, planId } = await killedOnTheWay('test/external_once');
    const approval = onlyPending(await until(person, planId, isSettled, 20_000));
    expect((await answer(person, planId, approval, { decision: 'answer', text: 'failed' })).ok).toBe(true);
    const failed = await until(person, planId, isAt('execute', 'errored'));
    expect(failed.plan.failure?.last.message).toContain('marked failed');
    expect(failed.plan.ledger).toMatchObject({ settledMicroUsd: 100_000, reservations: [] });
    expect(performed(person.org)).toHaveLength(1);
  });

  it('is sent once more when a human says retry, charged for both', async () => {
    const { person, planId } = await killedOnTheWay('test/external_once');
    const approval = onlyPending(await until(person, planId, isSettled, 20_000));
    expect((await answer(person, planId, approval, { decision: 'answer', text: 'retry' })).ok).toBe(true);
    await until(person, planId, () => performed(person.org).length === 2);
    expect((await answer(person, planId, approval, { decision: 'answer', text: 'retry' })).ok).toBe(false);
    await planOf(person, planId).command({ type: 'cancel', by: callerOf(person).actor, reason: null });
    await until(person, planId, ({ plan: { ledger } }) => ledger.reservations.length === 0);
    expect((await stateOf(person, planId)).ledger).toMatchObject({ settledMicroUsd: 200_000 });
    expect(performed(person.org)).toHaveLength(2);
  });

  it('ends an unattended plan as failed, charged in full', async () => {
    const { person, planId } = await killedOnTheWay('test/counter', { profile: 'ci' });
    const done = await until(person, planId, isTerminal, 20_000);
    expect(done.plan).toMatchObject({ state: 'errored', ledger: { settledMicroUsd: 100_000, reservations: [] } });
  });
});

describe('failures that pass', () => {
  it.each([0, 2])('with %i retries are tried exactly that often again, each attempt charged', async (retries) => {
    const person = await newOrg();
    const planId = await startSteps(person, [{ call: { tool: 'test/fail_transient', arguments: { label: person.org } } }], {
      guardrails: { actor_limits: { max_retries_per_failure: retries } },
    });
    const limit = onlyPending(await until(person, planId, isSettled));
    expect(limit).toMatchObject({ kind: 'limit', guard: 'retry_limit', suggestedGrant: { retries: 1 } });
    expect(performed(person.org)).toHaveLength(retries + 1);
    expect(new Set(performed(person.org).map((each) => each.key)).size).toBe(1);
    expect((await stateOf(person, planId)).ledger).toMatchObject({ settledMicroUsd: (retries + 1) * 100_000, reservations: [] });
    expect((await stateOf(person, planId)).stepsUsed).toBe(1);
    await approve(person, planId, limit);
    await until(person, planId, (snapshot) => isSettled(snapshot) && performed(person.org).length === retries + 2);
  });

  it('are retried by an alarm after an eviction in the pause, until they pass', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [{ call: { tool: 'test/fail_transient', arguments: { label: person.org, times: 2 } } }]);
    await until(person, planId, () => performed(person.org).length === 1);
    await pause(50);
    await evict(person, planId);
    const done = await until(person, planId, isTerminal);
    expect(done.plan.state).toBe('applied');
    expect(performed(person.org)).toHaveLength(3);
  });
});
