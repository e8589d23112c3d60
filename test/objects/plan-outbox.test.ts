import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { afterEach, describe, expect, it } from 'vitest';
import { StorageUnavailable } from '../../src/app/ports.ts';
import { startPlan } from '../../src/app/start-plan.ts';
import { objectName } from '../../src/storage/objects.ts';
import { connect, FAULTS } from '../worker/test-worker.ts';
import {
  addAction,
  alarmOf,
  answer,
  auditOf,
  evict,
  isSettled,
  isTerminal,
  newOrg,
  onlyPending,
  performed,
  planOf,
  services,
  startSteps,
  stateOf,
  until,
} from './plan-support.ts';

afterEach(() => FAULTS.d1.clear());

describe('while D1 does not answer', () => {
  it('a command is decided, answered and acted upon; index and trail catch up by the alarm', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [{ call: { tool: 'test/counter', arguments: { label: person.org } } }], {
      guardrails: { tool_denylist: ['test/counter'] },
    });
    const approval = onlyPending(await until(person, planId, isSettled));
    await expect.poll(async () => (await services.planIndex.get(person.org, planId))?.state).toBe('waiting');
    const before = await auditOf(person, planId);
    FAULTS.d1.add(person.org);
    expect((await answer(person, planId, approval)).ok).toBe(true);
    await until(person, planId, isTerminal);
    expect(performed(person.org)).toHaveLength(1);
    expect((await services.planIndex.get(person.org, planId))?.state).toBe('waiting');
    expect(await auditOf(person, planId)).toEqual(before);
    // Even an ended plan wakes again for what it still owes.
    const alarm = await alarmOf(person, planId);
    expect(alarm).toBeGreaterThan(Date.now());
    expect(alarm).toBeLessThan(Date.now() + 10_000);
    await evict(person, planId);
    FAULTS.d1.delete(person.org);
    await expect.poll(async () => (await services.planIndex.get(person.org, planId))?.state, { timeout: 15_000 }).toBe('applied');
  });

  it('the outbox is a cursor: rows that were written before the failure are not written again, none is left out', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [{ ask: 'Go on?' }, { say: 'one' }, { ask: 'And now?' }, { say: 'two' }]);
    for (let question = 0; question < 2; question += 1) {
      const asked = onlyPending(
        await until(
          person,
          planId,
          (snapshot) => isSettled(snapshot) && onlyPending(snapshot).subject.question === ['Go on?', 'And now?'][question],
        ),
      );
      FAULTS.d1[question % 2 === 0 ? 'add' : 'delete'](person.org);
      await answer(person, planId, asked, { decision: 'answer', text: 'yes' });
    }
    await until(person, planId, isTerminal);
    // expectSound compares the whole trail afterwards.
  });

  it('a plan that waits owes its rows to no one for longer than the retry', async () => {
    const person = await newOrg();
    FAULTS.d1.add(person.org);
    const planId = await startSteps(person, [{ ask: 'Go on?' }]);
    await until(person, planId, isSettled);
    const alarm = await alarmOf(person, planId);
    expect((alarm ?? 0) - Date.now()).toBeLessThan(5_500);
    FAULTS.d1.delete(person.org);
  });

  it('nothing is made: creating a plan is refused as unavailable, and there is no plan, no row and no storage', async () => {
    const person = await newOrg();
    const actionName = await addAction(person, { name: 'hello', execute: [{ say: 'hello' }] });
    const made: string[] = [];
    const broken = connect({ ...env, DB: env.DB } as never);
    const request = { actionName, arguments: {}, input: '', message: null, idempotency: null, fieldPrefix: '' };
    const ids = { ...broken.ids, ulid: () => made[made.push(services.ids.ulid()) - 1] ?? '' };
    const down = async (): Promise<never> => {
      throw new StorageUnavailable('plans.reserve', new Error('D1 is down'));
    };
    await expect(startPlan(request, person, { ...broken, ids, planIndex: { ...broken.planIndex, reserve: down } })).rejects.toBeInstanceOf(
      StorageUnavailable,
    );
    const [planId = ''] = made;
    expect(planId).not.toBe('');
    expect(await planOf(person, planId).read()).toBeNull();
    expect(await services.planIndex.get(person.org, planId)).toBeNull();
    const stub = env.PLANS.getByName(objectName(person.org, 'plan', planId));
    expect(await runInDurableObject(stub, (_object, state) => state.storage.sql.exec('SELECT name FROM sqlite_master').toArray())).toEqual(
      [],
    );
  });

  it('a plan that was reserved but never made is in no list', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [{ say: 'hello' }]);
    await until(person, planId, isTerminal);
    const row = await services.planIndex.get(person.org, planId);
    if (row === null) throw new Error('no row');
    await services.planIndex.reserve({ ...row, planId: services.ids.ulid(), seq: 0 });
    const page = await services.planIndex.list({ org: person.org, pageSize: 10 });
    expect(page.ok && page.value.rows.map((each) => each.planId)).toEqual([planId]);
    expect((await stateOf(person, planId)).terminal).toBe(true);
  });
});
