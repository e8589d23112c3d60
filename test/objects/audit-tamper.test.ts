/** Somebody with access to the storage of a plan, or to D1, changes what happened: `plan/guard/audit/verify` finds it and names it. */
import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { ulid } from 'ulid';
import { beforeEach, describe, expect, it } from 'vitest';
import type { ResultOf } from '../../src/api/operations.ts';
import { findOperation } from '../../src/api/operations.ts';
import { verifyAuditFile } from '../../src/api/verify-audit-file.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import { startPlan } from '../../src/app/start-plan.ts';
import type { SignedHead } from '../../src/core/audit/head.ts';
import { type ChainEvent, chainRow, genesisHash } from '../../src/core/plan/chain.ts';
import type { LogRow } from '../../src/core/plan/events.ts';
import type { Principal } from '../../src/core/principal.ts';
import { HeadStore } from '../../src/objects/plan/head-store.ts';
import { addAction, evict, isTerminal, logOf, newOrg, performed, services, sha256, stubOf, until } from './plan-support.ts';

const STEPS = [
  { id: 'one', call: { tool: 'test/counter', arguments: { label: 'tampered' } } },
  { id: 'two', call: { tool: 'test/counter', arguments: {} } },
];

let person: Principal;
let planId: string;

/** A plan that ran to its end. Made here and not by the helpers, whose checks after each test it would not pass any more. */
beforeEach(async () => {
  person = await newOrg();
  const actionName = await addAction(person, { name: `a-${ulid().toLowerCase()}`, execute: STEPS, apply: 'none' });
  const made = await startPlan(
    { actionName, arguments: {}, input: '', message: null, idempotency: null, fieldPrefix: '', automationProfile: 'auto' },
    person,
    services,
  );
  if (!made.ok) throw new Error(JSON.stringify(made.error));
  planId = made.value.plan.id;
  await until(person, planId, isTerminal);
  // The last rows are in D1, and the end is signed.
  await waitFor(
    async () =>
      (await verify()).head_signature === 'valid' &&
      (await verify()).trail === 'complete' &&
      (await verify()).signed_seq === (await logOf(person, planId)).length,
  );
});

async function waitFor(holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await holds()); tries += 1) {
    if (tries > 300) throw new Error(`not reached: ${JSON.stringify(await verify())}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function call(name: string, params: object) {
  const found = findOperation(name);
  if (found === null) throw new Error(`no operation ${name}`);
  return dispatchOperation(found, params, { principal: person, idempotencyKey: null }, services);
}

async function verify(): Promise<ResultOf<'_cleveragents/plan/guard/audit/verify'>> {
  const answer = await call('_cleveragents/plan/guard/audit/verify', { plan_id: planId });
  if (!answer.ok) throw new Error(JSON.stringify(answer.error));
  return answer.value as unknown as ResultOf<'_cleveragents/plan/guard/audit/verify'>;
}

async function exported() {
  const answer = await call('_cleveragents/audit/export', { plan_id: planId, limit: 1000 });
  if (!answer.ok) throw new Error(JSON.stringify(answer.error));
  const { content } = answer.value as { content: string };
  return verifyAuditFile(content, { sha256, jwks: { keys: services.auditKeys.publicKeys } });
}

const tamper = (change: (sql: SqlStorage) => void): Promise<void> =>
  runInDurableObject(stubOf(person, planId), (_object, state) => change(state.storage.sql));

const bodyOf = (sql: SqlStorage, seq: number): string => String(sql.exec('SELECT body FROM log WHERE seq = ?', seq).one()['body']);

/** Makes the chain again from a row on, as somebody would who knows how it is made. */
function rechain(sql: SqlStorage, org: string, change: (row: LogRow) => object): void {
  let prev = genesisHash(sha256, org, planId);
  for (const { body } of sql.exec('SELECT body FROM log ORDER BY seq').toArray()) {
    const row = JSON.parse(String(body)) as LogRow;
    const { v: _v, seq, prev: _prev, hash: _hash, ...event } = { ...row, ...change(row) } as LogRow;
    const next = chainRow(sha256, prev, seq, event as ChainEvent);
    sql.exec('UPDATE log SET body = ? WHERE seq = ?', JSON.stringify(next), seq);
    prev = next.hash;
  }
}

describe('the log of a plan', () => {
  it('that nobody touched is valid, signed, and the same in D1', async () => {
    const log = await logOf(person, planId);
    expect(await verify()).toMatchObject({
      valid: true,
      entries: log.length,
      head_signature: 'valid',
      signed_seq: log.length,
      trail: 'complete',
    });
    expect(await exported()).toMatchObject({ valid: true, signature: 'valid', rows: log.length });
  });

  const cases: readonly (readonly [
    name: string,
    change: (sql: SqlStorage, last: number) => void,
    problem: string,
    seq: number | 'last' | undefined,
    inExport: RegExp,
  ])[] = [
    [
      'a flipped byte',
      (sql) => sql.exec('UPDATE log SET body = ? WHERE seq = 3', bodyOf(sql, 3).replace('"at":"2', '"at":"1')),
      'changed',
      3,
      /^changed$/,
    ],
    [
      'a byte that makes it unreadable',
      (sql) => sql.exec('UPDATE log SET body = substr(body, 2) WHERE seq = 3'),
      'changed',
      3,
      /^truncated$/,
    ],
    ['a dropped row', (sql) => sql.exec('DELETE FROM log WHERE seq = 3'), 'gap', 4, /^gap$/],
    [
      'two rows swapped',
      (sql) => {
        const [three, four] = [bodyOf(sql, 3), bodyOf(sql, 4)];
        sql.exec('UPDATE log SET body = ? WHERE seq = 3', four);
        sql.exec('UPDATE log SET body = ? WHERE seq = 4', three);
      },
      'gap',
      4,
      /^gap$/,
    ],
    [
      'a row put in behind the end',
      (sql, last) => {
        const { hash, ...row } = JSON.parse(bodyOf(sql, last)) as LogRow;
        const { v: _v, seq: _seq, prev: _prev, ...event } = row;
        sql.exec('INSERT INTO log (seq, body) VALUES (?, ?)', last + 1, JSON.stringify(chainRow(sha256, hash, last + 1, event as never)));
      },
      'added',
      undefined,
      /^unsigned$/,
    ],
    ['the last row cut off', (sql, last) => sql.exec('DELETE FROM log WHERE seq = ?', last), 'truncated', 'last', /^truncated$/],
    [
      'the second half cut off',
      (sql, last) => sql.exec('DELETE FROM log WHERE seq > ?', Math.floor(last / 2)),
      'truncated',
      undefined,
      /^truncated$/,
    ],
    ['all rows deleted', (sql) => sql.exec('DELETE FROM log'), 'deleted', 1, /^empty$/],
    [
      'a forged signature',
      (sql) => {
        for (const head of new HeadStore(sql).list())
          sql.exec('UPDATE heads SET body = ? WHERE seq = ?', JSON.stringify({ ...head, at: '2020-01-01T00:00:00.000Z' }), head.seq);
      },
      'bad_signature',
      undefined,
      /^bad_signature$/,
    ],
  ];

  it.each(cases)('shows: %s', async (_, change, problem, seq, inExport) => {
    const last = (await logOf(person, planId)).length;
    await tamper((sql) => change(sql, last));
    const verdict = await verify();
    expect(verdict).toMatchObject({ valid: false, problem });
    if (seq !== undefined)
      expect(verdict.first_bad_seq).toBe(seq === 'last' ? (problem === 'truncated' ? last : verdict.first_bad_seq) : seq);
    const file = await exported();
    expect(file.valid).toBe(false);
    expect(file.problem).toMatch(inExport);
  });

  it('shows a change although the whole chain was made again: it is not the chain that was signed', async () => {
    await tamper((sql) => rechain(sql, person.org, (row) => (row.seq === 1 ? { actor: { kind: 'human', id: 'somebody-else' } } : {})));
    const [first] = (await storedHeads()).map(({ seq }) => seq);
    expect(await verify()).toMatchObject({ valid: false, problem: 'rewritten', first_bad_seq: first });
    expect(await exported()).toMatchObject({ valid: false, problem: 'rewritten' });
  });

  it('shows the same by D1 when the signatures were taken away as well', async () => {
    await tamper((sql) => {
      rechain(sql, person.org, (row) => (row.seq === 1 ? { actor: { kind: 'human', id: 'somebody-else' } } : {}));
      sql.exec('DELETE FROM heads');
    });
    expect(await verify()).toMatchObject({ valid: false, problem: 'trail_changed', first_bad_seq: 1, head_signature: 'missing' });
  });

  it('shows that its end is gone when the signatures went with it and the object has forgotten', async () => {
    const last = (await logOf(person, planId)).length;
    await tamper((sql) => {
      sql.exec('DELETE FROM log WHERE seq > 2');
      sql.exec('DELETE FROM heads');
      sql.exec('DELETE FROM snapshot');
    });
    await evict(person, planId);
    expect(last).toBeGreaterThan(3);
    expect(await verify()).toMatchObject({ valid: false, problem: 'truncated', first_bad_seq: 3 });
  });

  it('shows that all of it is gone, as long as the index or the trail knows the plan', async () => {
    await runInDurableObject(stubOf(person, planId), (_object, state) => state.storage.deleteAll());
    await runInDurableObject(stubOf(person, planId), (_object, state) => state.abort('forget')).catch(() => undefined);
    expect(await verify()).toMatchObject({ valid: false, problem: 'deleted', first_bad_seq: 1, entries: 0 });
    await env.DB.prepare('DELETE FROM plans WHERE plan_id = ?').bind(planId).run();
    expect(await verify()).toMatchObject({ valid: false, problem: 'deleted' });
    const stranger = await newOrg();
    const found = findOperation('_cleveragents/plan/guard/audit/verify');
    if (found === null) throw new Error('no operation');
    const foreign = await dispatchOperation(found, { plan_id: planId }, { principal: stranger, idempotencyKey: null }, services);
    expect(foreign).toMatchObject({ ok: false, error: { kind: 'not_found' } });
  });
});

describe("a plan's entries in D1", () => {
  const changed: readonly (readonly [name: string, sql: string])[] = [
    [
      'another result',
      "UPDATE audit_entries SET result = iif(result = 'allowed', 'denied', 'allowed') WHERE plan_id = ?1 AND seq = (SELECT max(seq) FROM audit_entries WHERE plan_id = ?1)",
    ],
    [
      'another reason',
      "UPDATE audit_entries SET reason = 'because' WHERE plan_id = ?1 AND seq = (SELECT max(seq) FROM audit_entries WHERE plan_id = ?1)",
    ],
    [
      'another actor',
      "UPDATE audit_entries SET actor_id = 'nobody' WHERE plan_id = ?1 AND seq = (SELECT max(seq) FROM audit_entries WHERE plan_id = ?1)",
    ],
    ['a deleted entry', 'DELETE FROM audit_entries WHERE plan_id = ?1 AND seq = (SELECT max(seq) FROM audit_entries WHERE plan_id = ?1)'],
    [
      'a moved entry',
      'UPDATE audit_entries SET seq = seq + 1 WHERE plan_id = ?1 AND seq = (SELECT max(seq) FROM audit_entries WHERE plan_id = ?1)',
    ],
    ['all deleted', 'DELETE FROM audit_entries WHERE plan_id = ?1'],
  ];
  it.each(changed)('are held against the log: %s', async (_, sql) => {
    await env.DB.prepare(sql).bind(planId).run();
    const verdict = await verify();
    expect(verdict.valid).toBe(false);
    expect(verdict.problem).toMatch(/^(?:trail_changed|truncated)$/);
    expect(await exported()).toMatchObject({ valid: true });
  });
});

async function storedHeads(): Promise<readonly SignedHead[]> {
  return runInDurableObject(stubOf(person, planId), (_object, state) => new HeadStore(state.storage.sql).list());
}

describe('signed heads', () => {
  it('are made when a plan comes to rest, each of a row that the log has', async () => {
    const log = await logOf(person, planId);
    const heads = await storedHeads();
    expect(heads.length).toBeGreaterThan(0);
    expect(heads.at(-1)?.seq).toBe(log.length);
    for (const head of heads) expect(head).toMatchObject({ org: person.org, plan_id: planId, hash: log[head.seq - 1]?.hash });
  });

  it('are made again when they were lost between the signature and its row', async () => {
    await tamper((sql) => sql.exec('DELETE FROM heads'));
    await evict(person, planId);
    expect(await verify()).toMatchObject({ valid: true, head_signature: 'missing' });
    const log = await logOf(person, planId);
    const answer = await call('_cleveragents/audit/head', { plan_id: planId });
    expect(answer).toMatchObject({ ok: true, value: { seq: log.length, signed_head: { seq: log.length, hash: log.at(-1)?.hash } } });
    expect(await verify()).toMatchObject({ valid: true, head_signature: 'valid', signed_seq: log.length });
    await call('_cleveragents/audit/head', { plan_id: planId });
    expect(await storedHeads()).toHaveLength(1);
  });

  it('are not made of a row that is not in the log', async () => {
    const log = await logOf(person, planId);
    await tamper((sql) => {
      sql.exec('DELETE FROM heads');
      sql.exec('DELETE FROM log WHERE seq = ?', log.length);
    });
    expect(await call('_cleveragents/audit/head', { plan_id: planId })).toMatchObject({ ok: true, value: { signed_head: null } });
    expect(await storedHeads()).toEqual([]);
  });
});

describe('secrets in the arguments of a call', () => {
  it('reach the tool as they are, and are in no row of the log', async () => {
    const secret = `sk-${'Ab3dEf6hIj9k'.repeat(3)}`;
    const label = `label-${ulid()} ${secret}`;
    const actionName = await addAction(person, {
      name: `a-${ulid().toLowerCase()}`,
      arguments: { type: 'object', properties: { label: { type: 'string' } } },
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the template language of actions
      execute: [{ id: 'one', call: { tool: 'test/counter', arguments: { label: '${args.label}' } } }],
      apply: 'none',
    });
    const made = await startPlan(
      { actionName, arguments: { label }, input: '', message: null, idempotency: null, fieldPrefix: '', automationProfile: 'auto' },
      person,
      services,
    );
    if (!made.ok) throw new Error(JSON.stringify(made.error));
    planId = made.value.plan.id;
    const done = await until(person, planId, isTerminal);
    expect(done.plan.failure).toBeNull();
    expect(performed(label)).toHaveLength(1);
    expect(JSON.stringify(await logOf(person, planId))).not.toContain(secret);
    const rows = await runInDurableObject(stubOf(person, planId), (_object, state) =>
      state.storage.sql.exec('SELECT body FROM log UNION ALL SELECT body FROM log_parts').toArray(),
    );
    expect(JSON.stringify(rows)).not.toContain(secret);
  });
});
