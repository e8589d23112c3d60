/** Idempotency keys of plans whose executor is outside, in workerd: they outlive the state's memory, the object and the index. */
import { runInDurableObject } from 'cloudflare:test';
import { ulid } from 'ulid';
import { describe, expect, it } from 'vitest';
import { findOperation, type OperationName, type ParamsInputOf, type ResultOf } from '../../src/api/operations.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import { REMEMBERED_DECISIONS } from '../../src/core/plan/external/external.ts';
import { KEY_TTL_MS, keyedIn } from '../../src/core/plan/external/keys.ts';
import type { Principal } from '../../src/core/principal.ts';
import { KeyMemory } from '../../src/objects/plan/key-memory.ts';
import { PlanStore } from '../../src/objects/plan/plan-store.ts';
import { crash, logOf, newOrg, rowsOf, services, stateOf, stubOf, track } from './plan-support.ts';

async function call<N extends OperationName>(principal: Principal, name: N, params: ParamsInputOf<N>): Promise<ResultOf<N>> {
  const found = findOperation(name);
  if (found === null) throw new Error(`no operation ${name}`);
  const result = await dispatchOperation(found, params, { principal, idempotencyKey: null }, services);
  if (!result.ok) throw new Error(`${name}: ${JSON.stringify(result.error)}`);
  return result.value as unknown as ResultOf<N>;
}

async function open({ isLong = false } = {}) {
  const person = await newOrg();
  const planId = ulid();
  await call(person, '_cleveragents/guard/configure', { plan_id: planId, automation_profile: 'auto', guardrails: { tool_budget: 50 } });
  // A log of many pages is not compared row by row at the end.
  if (!isLong) track(person, planId);
  const authorize = (rest: Omit<ParamsInputOf<'_cleveragents/guard/authorize'>, 'plan_id'> = {}) =>
    call(person, '_cleveragents/guard/authorize', { plan_id: planId, tool_name: 'own.pay', cost_usd: 0.01, ...rest });
  const settle = (decisionId: string) => call(person, '_cleveragents/guard/settle', { decision_id: decisionId, outcome: 'succeeded' });
  return { person, planId, authorize, settle };
}

/** The plan's index as an object made anew would have it. */
function memoryOf<T>(person: Principal, planId: string, ask: (memory: KeyMemory, sql: SqlStorage) => T, limit?: number): Promise<T> {
  return runInDurableObject(stubOf(person, planId), (_object, state) => {
    const { sql } = state.storage;
    return ask(new KeyMemory(sql, new PlanStore(sql), limit), sql);
  });
}

describe('an idempotency key', () => {
  it('stands for one decision of twenty requests at once', async () => {
    const { person, planId, authorize } = await open();
    const answers = await Promise.all(Array.from({ length: 20 }, () => authorize({ idempotency_key: 'k' })));
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    expect(await rowsOf(person, planId, 'call_decided')).toHaveLength(1);
    expect((await stateOf(person, planId)).ledger.reservations).toHaveLength(1);
  });

  it('still stands for its decision when the state has forgotten that, after a crash and without the index as well', async () => {
    const { person, planId, authorize, settle } = await open({ isLong: true });
    const first = await authorize({ idempotency_key: 'k' });
    await settle(first.decision_id);
    // A name that no tool has is refused at once, and closed.
    const by = { kind: 'agent', id: 'a' } as const;
    const rest = { toolName: 'no tool', isWrite: null, costUsd: null, step: null, operation: null, idempotencyKey: null };
    await runInDurableObject(stubOf(person, planId), (object) => {
      for (let n = 0; n < REMEMBERED_DECISIONS + 5; n += 1)
        object.execute({ type: 'authorize', by, request: { ...rest, arguments: { n } } });
    });
    expect((await stateOf(person, planId)).calls['c1'], 'the state has forgotten it').toBeUndefined();
    const { seq } = await stateOf(person, planId);
    const expectSame = async () => {
      const again = await authorize({ idempotency_key: 'k' });
      expect(again).toMatchObject({ decision_id: first.decision_id, allowed: false, requires_approval: false });
      expect(again.reason).toContain('settled: succeeded');
      expect(again.guards).toEqual(first.guards);
      await expect(authorize({ idempotency_key: 'k', cost_usd: 0.02 })).rejects.toThrow('already_exists');
    };
    await expectSame();
    await crash(person, planId);
    await expectSame();
    await memoryOf(person, planId, (_memory, sql) => sql.exec('DROP TABLE keys'));
    await crash(person, planId);
    await expectSame();
    expect((await stateOf(person, planId)).seq).toBe(seq);
  }, 60_000);
});

describe('the index of keys', () => {
  it('says what the log says, of each key and at any time', async () => {
    const { person, planId, authorize, settle } = await open();
    for (const key of ['a', 'b', 'c']) {
      const { decision_id } = await authorize({ idempotency_key: key, arguments: { key } });
      if (key !== 'c') await settle(decision_id);
    }
    const rows = await logOf(person, planId);
    const now = Date.now();
    for (const nowMs of [now, now + KEY_TTL_MS - 60_000, now + KEY_TTL_MS + 60_000]) {
      for (const key of ['a', 'b', 'c', 'd', '%', '"'])
        expect(await memoryOf(person, planId, (memory) => memory.about(key, nowMs)), key).toEqual(keyedIn(rows, key, nowMs));
    }
  });

  it('is full at its bound for keys that it does not know, until the oldest is seven days old', async () => {
    const { person, planId, authorize } = await open();
    for (const key of ['a', 'b', 'c']) await authorize({ idempotency_key: key, arguments: { key } });
    const [first] = await rowsOf(person, planId, 'call_decided');
    const full = Date.parse(first?.at ?? '') + KEY_TTL_MS;
    const [known, unknown, stillFull, later] = await memoryOf(
      person,
      planId,
      (memory) => [
        memory.about('b', Date.now()).isFullUntilMs,
        memory.about('x', Date.now()).isFullUntilMs,
        memory.about('x', full - 1).isFullUntilMs,
        memory.about('x', full).isFullUntilMs,
      ],
      3,
    );
    expect([known, unknown, stillFull]).toEqual([null, full, full]);
    expect(later).not.toBe(full);
  });
});
