/**
 * A log that was damaged while its plan was not in memory: the plan opens as damaged. Verifying, reading and heads answer and name the row,
 * nothing is decided, nothing is written, nothing is tried again.
 */
import { runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { ulid } from 'ulid';
import { describe, expect, it } from 'vitest';
import { LogDamaged } from '../../src/app/ports.ts';
import { startPlan } from '../../src/app/start-plan.ts';
import type { LogRow } from '../../src/core/plan/events.ts';
import type { Plan } from '../../src/core/plan/plan.ts';
import type { PlanObjectBase } from '../../src/objects/plan-object.ts';
import {
  addAction,
  alarmOf,
  answer,
  callerOf,
  evict,
  isTerminal,
  isWaiting,
  logOf,
  newOrg,
  onlyPending,
  planOf,
  services,
  sha256,
  stubOf,
  until,
} from './plan-support.ts';
import { bodyOf, counting, endedPlan, rechain, type TamperedPlan, tamperedPlan } from './tamper-support.ts';

/** Rows after which the newest snapshot was written. */
const SNAPSHOT = 32;

const dumpOf = (plan: TamperedPlan): Promise<string> =>
  runInDurableObject(stubOf(plan.person, plan.planId), (_object, state) => {
    const { sql } = state.storage;
    return JSON.stringify(['log', 'snapshot', 'meta', 'heads'].map((table) => sql.exec(`SELECT * FROM ${table}`).toArray()));
  });

/** A plan at rest that asks for something, with its id. */
async function waitingPlan(): Promise<TamperedPlan> {
  const person = await newOrg();
  const actionName = await addAction(person, {
    name: `a-${ulid().toLowerCase()}`,
    execute: [...counting(2), { ask: 'Go on?' }],
    apply: 'none',
  });
  const made = await startPlan(
    { actionName, arguments: {}, input: '', message: null, idempotency: null, fieldPrefix: '', automationProfile: 'auto' },
    person,
    services,
  );
  if (!made.ok) throw new Error(JSON.stringify(made.error));
  await until(person, made.value.plan.id, isWaiting);
  return tamperedPlan(person, made.value.plan.id);
}

const damages: readonly (readonly [
  name: string,
  change: (sql: SqlStorage, plan: TamperedPlan) => void,
  problem: string,
  seq: number | null,
])[] = [
  ['a row that is no JSON any more', (sql) => sql.exec('UPDATE log SET body = substr(body, 2) WHERE seq = 4'), 'changed', 4],
  ['a row that is JSON and no row', (sql) => sql.exec("UPDATE log SET body = '[4]' WHERE seq = 4"), 'changed', 4],
  [
    'a row nested without end',
    (sql) => sql.exec("UPDATE log SET body = replace(hex(zeroblob(20000)), '00', '[') WHERE seq = 4"),
    'changed',
    4,
  ],
  ['the first row unreadable', (sql) => sql.exec("UPDATE log SET body = 'x' WHERE seq = 1"), 'changed', 1],
  [
    'a row of a type that does not exist, in a chain that was made again',
    (sql, { person, planId }) => rechain(sql, { org: person.org, planId }, (row) => (row.seq === 4 ? { type: 'plan_blessed' } : {})),
    'changed',
    4,
  ],
  [
    'a row without what its type has, in a chain that was made again',
    (sql, { person, planId }) => rechain(sql, { org: person.org, planId }, (row) => (row.type === 'call_decided' ? { data: {} } : {})),
    'changed',
    null,
  ],
  [
    'a flipped byte',
    (sql) => sql.exec('UPDATE log SET body = ? WHERE seq = 4', bodyOf(sql, 4).replace('"at":"2', '"at":"1')),
    'changed',
    4,
  ],
  ['a dropped row', (sql) => sql.exec('DELETE FROM log WHERE seq = 4'), 'gap', 5],
  ['a snapshot that is no JSON', (sql) => sql.exec("INSERT INTO snapshot (part, body) VALUES (0, '{')"), 'state_differs', 1],
  ['a snapshot that is no plan', (sql) => sql.exec("INSERT INTO snapshot (part, body) VALUES (0, '{}')"), 'state_differs', 1],
  ['the end cut off', (sql) => sql.exec('DELETE FROM log WHERE seq > 5'), 'truncated', 6],
  [
    'the whole log put there from another plan',
    (sql, { person }) => rechain(sql, { org: person.org, planId: 'another' }, () => ({})),
    'broken_link',
    1,
  ],
];

describe('a plan that waits, whose log is damaged', () => {
  it.each(damages)('opens as damaged and names the row: %s', async (_, change, problem, seq) => {
    const plan = await waitingPlan();
    const { person, planId } = plan;
    const port = planOf(person, planId);
    const approval = (await port.read())?.plan.approvals.find((each) => each.status === 'pending');
    if (approval === undefined) throw new Error('nothing is pending');
    await evict(person, planId);
    await plan.tamper((sql) => change(sql, plan));
    const before = await dumpOf(plan);
    await evict(person, planId);

    const verdict = await plan.verify();
    expect(verdict).toMatchObject({ valid: false, problem, first_bad_seq: seq ?? verdict.first_bad_seq });
    const refusal = { kind: 'invalid_state', message: expect.stringContaining('damaged'), details: { reason: 'LOG_DAMAGED' } };

    // What is left of it is shown, with the problem.
    const named = { log_problem: { problem: expect.any(String), first_bad_seq: expect.any(Number) } };
    expect(await plan.call('_cleveragents/plan/guard/audit')).toMatchObject({ ok: true, value: named });
    expect(await plan.call('_cleveragents/audit/export', { format: 'csv' })).toMatchObject({ ok: true, value: named });
    expect(await plan.call('_cleveragents/audit/export')).toMatchObject({ ok: true, value: named });
    expect(await plan.call('_cleveragents/audit/head')).toMatchObject({ ok: true, value: named });
    // Of a log that is whole, with a state that is not, the export is as good as ever.
    expect(await plan.exported()).toMatchObject({ valid: problem === 'state_differs' });

    // Nothing is decided, whoever asks for it.
    const by = callerOf(person);
    const answer = {
      approvalId: approval.id,
      decision: 'answer',
      digest: approval.digest,
      reason: null,
      text: 'yes',
      grant: null,
    } as const;
    expect(await port.command({ type: 'answer', by, answer })).toMatchObject({ ok: false, error: refusal });
    expect(await port.command({ type: 'cancel', by: by.actor, reason: null })).toMatchObject({ ok: false, error: refusal });
    expect(await plan.call('_cleveragents/plan/execute')).toMatchObject({ ok: false, error: refusal });
    expect(await plan.call('_cleveragents/plan/apply')).toMatchObject({ ok: false, error: refusal });
    await expect(port.read()).rejects.toBeInstanceOf(LogDamaged);
    await expect(port.diff()).rejects.toMatchObject({ refusal });
    await expect(port.follow({ afterSeq: 2, signal: AbortSignal.timeout(5000), maxMs: 5000 })).rejects.toMatchObject({ refusal });
    // The others of the org are listed as before.
    expect(await plan.call('_cleveragents/approval/list', { plan_id: null })).toMatchObject({
      ok: true,
      value: { approvals: [] },
    });

    // Nothing moves by itself, and nothing was put right.
    await port.wake();
    expect(await runDurableObjectAlarm(stubOf(person, planId)), 'the alarm that stood before fires, once').toBe(true);
    expect(await alarmOf(person, planId)).toBeNull();
    expect(await dumpOf(plan)).toBe(before);
  });
});

describe('a plan with a snapshot', () => {
  const forge = (sql: SqlStorage, change: (plan: Plan) => object): void => {
    const parts = sql.exec('SELECT body FROM snapshot ORDER BY part').toArray();
    const kept = JSON.parse(parts.map((part) => String(part['body'])).join('')) as Plan;
    sql.exec('DELETE FROM snapshot');
    sql.exec('INSERT INTO snapshot (part, body) VALUES (0, ?)', JSON.stringify({ ...kept, ...change(kept) }));
  };

  it.each([
    ['unreadable', (sql: SqlStorage) => sql.exec('UPDATE snapshot SET body = substr(body, 9)'), 'state_differs', true],
    ['of another end', (sql: SqlStorage) => forge(sql, () => ({ headHash: 'f'.repeat(64) })), 'changed', true],
    ['of rows that are not there', (sql: SqlStorage) => forge(sql, () => ({ seq: 9999 })), 'truncated', true],
    [
      'that tells something else',
      (sql: SqlStorage) => forge(sql, ({ requester }) => ({ requester: { ...requester, id: 'nobody' } })),
      'state_differs',
      false,
    ],
  ])('that is %s is named, whether the plan starts with it or has it in memory', async (_, change, problem, refusesAll) => {
    const plan = await endedPlan(counting(14));
    expect((await logOf(plan.person, plan.planId)).length).toBeGreaterThan(SNAPSHOT);
    await plan.tamper((sql) => void change(sql));
    // In memory the state is right; what the next start would begin with is not.
    expect(await plan.verify()).toMatchObject({ valid: false, problem: 'state_differs' });
    await evict(plan.person, plan.planId);
    expect(await plan.verify()).toMatchObject({ valid: false, problem });
    if (refusesAll) await expect(planOf(plan.person, plan.planId).read()).rejects.toBeInstanceOf(LogDamaged);
    expect(await runInDurableObject(stubOf(plan.person, plan.planId), (object) => (object as unknown as PlanObjectBase).isSound())).toBe(
      false,
    );
  });

  it('that was made by another version of the service is left aside: the log says the same', async () => {
    const plan = await endedPlan(counting(14));
    const before = await planOf(plan.person, plan.planId).read();
    await plan.tamper((sql) => forge(sql, () => ({ v: 1, ledger: { settledMicroUsd: 5 } })));
    await evict(plan.person, plan.planId);
    expect(await plan.verify()).toMatchObject({ valid: true });
    expect(await planOf(plan.person, plan.planId).read()).toEqual(before);
  });

  it('whose early rows are damaged is named, applies nothing, and tells its followers why there is nothing to follow', async () => {
    const plan = await endedPlan(counting(14));
    await plan.tamper((sql) => sql.exec("UPDATE log SET body = '{' WHERE seq = 3"));
    await evict(plan.person, plan.planId);
    const port = planOf(plan.person, plan.planId);
    expect(await plan.verify()).toMatchObject({ valid: false, problem: 'changed', first_bad_seq: 3 });
    expect((await port.read())?.plan.terminal).toBe(true);
    expect(await runInDurableObject(stubOf(plan.person, plan.planId), (object) => (object as unknown as PlanObjectBase).isSound())).toBe(
      false,
    );
    await expect(port.follow({ afterSeq: 1, signal: AbortSignal.timeout(5000), maxMs: 5000 })).rejects.toMatchObject({
      refusal: { details: { reason: 'LOG_DAMAGED', first_bad_seq: 3 } },
    });
  });
});

describe('values beside the log', () => {
  const LONG = 'x'.repeat(40_000);
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the template language of actions
  const steps = [{ call: { tool: 'test/counter', arguments: { label: '${args.label}' } } }];

  it.each([
    ['changed', 'UPDATE blobs SET bytes = substr(bytes, 2)', 'value_changed'],
    ['gone', 'DELETE FROM blobs', 'value_missing'],
  ])('that are %s are named by the row that refers to them, in memory and after a restart', async (_, sql, problem) => {
    const plan = await endedPlan(steps, { label: LONG });
    const first = (await logOf(plan.person, plan.planId)).find((row) => JSON.stringify(row).includes('"blob":"'))?.seq;
    expect(first).toBe(1);
    await plan.tamper((storage) => storage.exec(sql));
    expect(await plan.verify()).toMatchObject({ valid: false, problem, first_bad_seq: first });
    await evict(plan.person, plan.planId);
    expect(await plan.verify()).toMatchObject({ valid: false, problem, first_bad_seq: first });
  });

  it('are not looked for where a caller wrote something that looks like one', async () => {
    const plan = await endedPlan(steps, { label: JSON.stringify({ blob: sha256('nothing'), bytes: 1 }) });
    expect(await plan.verify()).toMatchObject({ valid: true });
  });
});

describe('a row that is kept in parts', () => {
  it.each([
    ['gone', 'DELETE FROM log_parts WHERE part = 1'],
    ['all gone', 'DELETE FROM log_parts'],
    ['swapped', 'UPDATE log_parts SET part = part + 10; UPDATE log_parts SET part = 11 - part'],
    ['changed', "UPDATE log_parts SET body = replace(body, 'yyy', 'yyz') WHERE part = 1"],
  ])('of which one is %s is named', async (_, sql) => {
    const plan = await endedPlan(counting(2));
    await plan.tamper((storage) => {
      // The second row becomes a long one, in a chain that is made again: as the store keeps it.
      rechain(storage, { org: plan.person.org, planId: plan.planId }, (row: LogRow) =>
        row.seq === 2 ? { data: { ...row.data, reason: 'y'.repeat(200_000) } } : {},
      );
      const body = bodyOf(storage, 2);
      const half = Math.floor(body.length / 2);
      for (const [part, text] of [body.slice(0, half), body.slice(half)].entries())
        storage.exec('INSERT INTO log_parts (seq, part, body) VALUES (2, ?, ?)', part, text);
      storage.exec("UPDATE log SET body = '' WHERE seq = 2");
      storage.exec('DELETE FROM heads');
    });
    const read = (await logOf(plan.person, plan.planId))[1];
    expect(JSON.stringify(read)).toContain('y'.repeat(200_000));
    await plan.tamper((storage) => void storage.exec(sql));
    expect(await plan.verify()).toMatchObject({ valid: false, problem: 'changed', first_bad_seq: 2 });
    await evict(plan.person, plan.planId);
    expect(await plan.verify()).toMatchObject({ valid: false, problem: 'changed', first_bad_seq: 2 });
  });
});

describe('a plan that nobody touched', () => {
  it('with values, a snapshot and long rows is valid before and after a restart', async () => {
    const plan = await endedPlan([...counting(14), { say: 'z'.repeat(15_000) }]);
    expect(await plan.verify()).toMatchObject({ valid: true });
    await evict(plan.person, plan.planId);
    expect(await plan.verify()).toMatchObject({ valid: true });
    expect((await until(plan.person, plan.planId, isTerminal)).plan.terminal).toBe(true);
  });
});

describe('the end of a plan', () => {
  it('has its whole log looked at: an early row that was changed while the plan went on is in the log of the org, and the plan is closed', async () => {
    const plan = await waitingPlan();
    const { person, planId } = plan;
    const approval = onlyPending(await until(person, planId, isWaiting));
    // Behind the back of the object, which goes on with what it has in memory.
    await plan.tamper((sql) => sql.exec('UPDATE log SET body = ? WHERE seq = 3', bodyOf(sql, 3).replace('test/counter', 'test/countes')));
    await plan.tamper((sql) => sql.exec('UPDATE log SET body = ? WHERE seq = 2', `${bodyOf(sql, 2)} `.replace('"at":"2', '"at":"1')));
    await answer(person, planId, approval, { decision: 'answer', text: 'yes' });
    const ends = async () => (await services.orgLog.page(person.org, { afterSeq: 0, limit: 100, types: ['plan_ended'] }))?.rows ?? [];
    await expect.poll(ends, { timeout: 10_000 }).toMatchObject([{ data: { plan_id: planId, verified: false } }]);
    await expect(planOf(person, planId).read()).rejects.toBeInstanceOf(LogDamaged);
    expect(await plan.verify()).toMatchObject({ valid: false, problem: 'changed', first_bad_seq: 2 });
    const entry = (await services.audit.list(person.org, 'org', 0, 100)).find(({ eventType }) => eventType === 'plan_ended');
    expect(entry).toMatchObject({ result: 'denied', reason: expect.stringContaining('did not hold') });
  });

  it('of one that nobody touched says that its log held', async () => {
    const plan = await endedPlan(counting(40));
    const { rows } = (await services.orgLog.page(plan.person.org, { afterSeq: 0, limit: 100, types: ['plan_ended'] })) ?? { rows: [] };
    expect(rows).toMatchObject([{ data: { plan_id: plan.planId, verified: true } }]);
  });
});
