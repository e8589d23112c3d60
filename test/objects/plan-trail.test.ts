import { runInDurableObject } from 'cloudflare:test';
import { describe, expect, it } from 'vitest';
import { findOperation } from '../../src/api/operations.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import type { LogRow } from '../../src/core/plan/events.ts';
import {
  addAction,
  answer,
  auditOf,
  cancel,
  isSettled,
  isTerminal,
  logOf,
  newOrg,
  onlyPending,
  pendingOf,
  performed,
  planOf,
  services,
  start,
  startSteps,
  stubOf,
  until,
} from './plan-support.ts';

const counting = (label: string, size: number) =>
  Array.from({ length: size }, (_, index) => ({ call: { tool: 'test/counter', arguments: { label, padding: `${index}` } } }));

describe('the chain of a plan', () => {
  it('holds over 20 plans of one org that work at once, without a gap', async () => {
    const person = await newOrg();
    const plans = await Promise.all(Array.from({ length: 20 }, () => startSteps(person, counting(person.org, 10))));
    for (const planId of plans) {
      await until(person, planId, isTerminal, 30_000);
      const log = await logOf(person, planId);
      expect(log.map((row) => row.seq)).toEqual(log.map((_, index) => index + 1));
      expect(await planOf(person, planId).verify()).toMatchObject({ valid: true, entries: log.length });
    }
  }, 60_000);

  it.each([
    [
      'a changed field',
      (rows: LogRow[]) => replaceRow(rows, 4, (row) => ({ ...row, actor: { kind: 'human', id: 'somebody' } })),
      5,
      'changed',
    ],
    ['a changed amount', (rows: LogRow[]) => replaceRow(rows, 6, (row) => ({ ...row, at: '2020-01-01T00:00:00.000Z' })), 7, 'changed'],
    ['a row that is gone', (rows: LogRow[]) => rows.filter((row) => row.seq !== 6), 7, 'gap'],
    ['two rows swapped', (rows: LogRow[]) => swap(rows, 4, 5), 5, 'broken_link'],
  ])('names the row of %s', async (_what, tamper, seq, problem) => {
    const person = await newOrg();
    const planId = await startSteps(person, counting(person.org, 3));
    await until(person, planId, isTerminal);
    const rows = [...(await logOf(person, planId))];
    const write = (changed: readonly LogRow[]) =>
      runInDurableObject(stubOf(person, planId), (_object, state) => {
        state.storage.sql.exec('DELETE FROM log');
        for (const row of changed) state.storage.sql.exec('INSERT INTO log (seq, body) VALUES (?, ?)', row.seq, JSON.stringify(row));
      });
    await write(tamper(rows));
    expect(await planOf(person, planId).verify()).toMatchObject({ valid: false, seq, problem });
    await write(rows);
    expect(await planOf(person, planId).verify()).toMatchObject({ valid: true });
  });
});

describe('the trail of a plan', () => {
  it('says of every decision who, when, why, and by which numbers', async () => {
    const person = await newOrg();
    const planId = await startSteps(
      person,
      [
        { id: 'asked', on_refused: 'continue', call: { tool: 'test/priced', arguments: { label: person.org } } },
        { id: 'free', call: { tool: 'test/counter', arguments: { label: person.org } } },
        { ask: 'Go on?' },
      ],
      { guardrails: { tool_denylist: ['test/priced'] } },
    );
    const call = onlyPending(await until(person, planId, isSettled));
    await answer(person, planId, { ...call, digest: 'wrong' });
    await answer(person, planId, call, { decision: 'deny', reason: 'too dear' });
    await until(person, planId, (snapshot) => isSettled(snapshot) && pendingOf(snapshot)[0]?.kind === 'question');
    await cancel(person, planId, 'enough');
    await expect.poll(async () => (await auditOf(person, planId)).at(-1)?.eventType).toBe('plan_cancelled');
    const entries = await auditOf(person, planId);
    const of = (eventType: string) => entries.filter((entry) => entry.eventType === eventType);
    expect(of('plan_created')).toMatchObject([
      {
        actorKind: 'human',
        actorId: person.keyId,
        context: { action: expect.any(String), profile: 'auto', profile_digest: expect.any(String) },
      },
    ]);
    // Gates that passed by themselves say so, with threshold and confidence.
    expect(of('gate_allowed').map((entry) => entry.guardName)).toEqual(['decompose_task', 'create_tool']);
    for (const entry of of('gate_allowed'))
      expect(entry).toMatchObject({
        actorKind: 'system',
        context: { via: 'threshold', threshold: 0, confidence: { value: expect.any(Number) } },
      });
    expect(of('denylist_blocked')).toMatchObject([
      {
        guardName: 'denylist',
        result: 'denied',
        context: {
          tool: 'test/priced',
          step: 1,
          arguments_digest: expect.any(String),
          estimate_micro_usd: 100_000,
          confidence: { value: expect.any(Number) },
        },
      },
    ]);
    expect(of('approval_refused')).toMatchObject([{ actorId: person.keyId, context: { approval_id: call.id } }]);
    expect(of('approval_decided')).toMatchObject([
      {
        actorKind: 'human',
        actorId: person.keyId,
        result: 'denied',
        reason: 'too dear',
        context: { approval_id: call.id, decision: 'deny', digest: call.digest },
      },
    ]);
    expect(of('call_allowed')).toMatchObject([
      { result: 'allowed', context: { tool: 'test/counter', step: 2, guards: expect.any(Array) } },
    ]);
    expect(of('plan_cancelled')).toMatchObject([{ actorId: person.keyId, reason: 'enough' }]);
    // Every entry names the caller, also where the plan or its actor did it by itself.
    for (const entry of entries) {
      if (entry.actorKind === 'human') expect([entry.actorId, entry.context['on_behalf_of']]).toEqual([person.keyId, undefined]);
      else expect(entry.context['on_behalf_of'], entry.eventType).toEqual({ kind: 'human', id: person.keyId, name: person.name });
    }
    expect(new Set(of('effect_settled').map((entry) => entry.actorKind))).toEqual(new Set(['system']));
    expect(entries.every((entry) => /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(entry.at) && /^[0-9a-f]{64}$/.test(entry.hash))).toBe(true);
    expect(entries.map((entry) => entry.at)).toEqual(entries.map((entry) => entry.at).sort());
  });

  it('has a row for a call that never could have run: unknown tool, arguments that miss the schema, unknown members', async () => {
    const person = await newOrg();
    const steps = [
      { on_refused: 'continue', call: { tool: 'no_such_tool', arguments: { label: person.org } } },
      { on_refused: 'continue', call: { tool: 'test/counter', arguments: { label: 7 } } },
      { on_refused: 'continue', call: { tool: 'test/counter', arguments: { label: person.org, surprise: true } } },
      { on_refused: 'continue', call: { tool: 'write_file', arguments: { path: '../outside', content: 'x' } } },
    ];
    const planId = await startSteps(person, steps);
    await until(person, planId, isTerminal);
    await expect.poll(async () => (await auditOf(person, planId)).at(-1)?.eventType).toBe('plan_applied');
    const blocked = (await auditOf(person, planId)).filter((entry) => entry.result === 'denied');
    expect(blocked).toHaveLength(4);
    expect(blocked.map((entry) => entry.reason)).toEqual([
      expect.stringContaining('no_such_tool'),
      expect.stringContaining('label'),
      expect.stringContaining('surprise'),
      expect.stringContaining('path'),
    ]);
  });
});

describe('a message that calls a tool by something that is no name', () => {
  it.each(['fs..delete', '__proto__', 'test/counter\u200b', 'test\u2044counter', '.', 'constructor'])(
    'of %j runs nothing, and is one refused entry of the guard for names',
    async (named) => {
      const person = await newOrg();
      const actionName = await addAction(person, { name: `a-${person.org}`, actor: 'scripted/commands', apply: 'none' });
      const { plan } = await start(person, {
        actionName,
        automationProfile: 'auto',
        input: `call ${named} {"label": "${person.org}"}`,
      });
      await until(person, plan.id, isSettled);
      const denied = async () => (await auditOf(person, plan.id)).filter((entry) => entry.context['call_id'] !== undefined);
      await expect
        .poll(denied)
        .toMatchObject([{ eventType: 'tool_blocked', guardName: 'tool', result: 'denied', context: { tool: named } }]);
      expect(performed(person.org)).toEqual([]);
      const audit = findOperation('_cleveragents/plan/guard/audit');
      if (audit === null) throw new Error('there is no such operation');
      const shown = await dispatchOperation(audit, { plan_id: plan.id }, { principal: person, idempotencyKey: null }, services);
      // The call, and the plan that ended by it.
      expect(shown).toMatchObject({ ok: true, value: { denied_count: 2 } });
    },
  );
});

function replaceRow(rows: readonly LogRow[], index: number, change: (row: LogRow) => object): LogRow[] {
  return rows.map((row, at) => (at === index ? (change(row) as LogRow) : row));
}

/** The contents of two rows change places; each keeps the number that the other had. */
function swap(rows: readonly LogRow[], first: number, second: number): LogRow[] {
  const [a, b] = [rows[first], rows[second]];
  if (a === undefined || b === undefined) return [...rows];
  return rows.map((row, at) => (at === first ? { ...b, seq: a.seq } : at === second ? { ...a, seq: b.seq } : row));
}
