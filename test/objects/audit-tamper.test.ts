/** Somebody with access to the storage of a plan, or to D1, changes what happened: `plan/guard/audit/verify` finds it and names it. */
import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { ulid } from 'ulid';
import { beforeEach, describe, expect, it } from 'vitest';
import { findOperation } from '../../src/api/operations.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import { verifyTrail } from '../../src/app/verify-trail.ts';
import type { SignedHead } from '../../src/core/audit/head.ts';
import { chainRow } from '../../src/core/plan/chain.ts';
import type { LogRow, PlanEvent } from '../../src/core/plan/events.ts';
import type { Principal } from '../../src/core/principal.ts';
import { HeadStore } from '../../src/objects/plan/head-store.ts';
import { auditOf, evict, logOf, newOrg, performed, planOf, services, sha256, stubOf } from './plan-support.ts';
import { bodyOf, counting, endedPlan, rechain, type TamperedPlan } from './tamper-support.ts';

let plan: TamperedPlan;
let person: Principal;
let planId: string;

beforeEach(async () => {
  plan = await endedPlan(counting(2));
  ({ person, planId } = plan);
});

const of = () => ({ org: person.org, planId });

describe('the log of a plan', () => {
  it('that nobody touched is valid, signed, and the same in D1', async () => {
    const log = await logOf(person, planId);
    expect(await plan.verify()).toMatchObject({
      valid: true,
      entries: log.length,
      head_signature: 'valid',
      signed_seq: log.length,
      trail: 'complete',
    });
    expect(await plan.exported()).toMatchObject({ valid: true, signature: 'valid', rows: log.length });
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
        sql.exec(
          'INSERT INTO log (seq, body) VALUES (?, ?)',
          last + 1,
          JSON.stringify(chainRow(sha256, hash, last + 1, event as PlanEvent)),
        );
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

  const moments = ['while the plan is in memory', 'after a restart'] as const;
  const both = cases.flatMap((row) => moments.map((moment) => [moment, ...row] as const));

  it.each(both)('shows %s: %s', async (moment, name, change, problem, seq, inExport) => {
    const last = (await logOf(person, planId)).length;
    await plan.tamper((sql) => change(sql, last));
    if (moment === 'after a restart') await evict(person, planId);
    // What was put in behind the end is a row like any other for a plan that starts with it.
    if (moment === 'after a restart' && name === 'a row put in behind the end') return expectAdded(last);
    const verdict = await plan.verify();
    expect(verdict).toMatchObject({ valid: false, problem });
    if (seq !== undefined)
      expect(verdict.first_bad_seq).toBe(seq === 'last' ? (problem === 'truncated' ? last : verdict.first_bad_seq) : seq);
    const file = await plan.exported();
    expect(file.valid).toBe(false);
    expect(file.problem).toMatch(inExport);
  });

  /** Such a row is not in what was signed before, nor in an export that was kept. */
  async function expectAdded(last: number): Promise<void> {
    expect(await plan.verify()).toMatchObject({ entries: last + 1, signed_seq: last });
    expect((await storedHeads()).at(-1)?.seq).toBe(last);
  }

  it('shows a change although the whole chain was made again: it is not the chain that was signed', async () => {
    await plan.tamper((sql) => rechain(sql, of(), (row) => (row.seq === 1 ? { actor: { kind: 'human', id: 'somebody-else' } } : {})));
    const [first] = (await storedHeads()).map(({ seq }) => seq);
    expect(await plan.verify()).toMatchObject({ valid: false, problem: 'rewritten', first_bad_seq: first });
    expect(await plan.exported()).toMatchObject({ valid: false, problem: 'rewritten' });
  });

  it('shows the same by D1 when the signatures were taken away as well', async () => {
    await plan.tamper((sql) => {
      rechain(sql, of(), (row) => (row.seq === 1 ? { actor: { kind: 'human', id: 'somebody-else' } } : {}));
      sql.exec('DELETE FROM heads');
    });
    expect(await plan.verify()).toMatchObject({ valid: false, problem: 'trail_changed', first_bad_seq: 1, head_signature: 'missing' });
  });

  it('shows that its end is gone when the signatures went with it and the object has forgotten', async () => {
    const last = (await logOf(person, planId)).length;
    await plan.tamper((sql) => {
      sql.exec('DELETE FROM log WHERE seq > 2');
      sql.exec('DELETE FROM heads');
      sql.exec('DELETE FROM snapshot');
    });
    await evict(person, planId);
    expect(last).toBeGreaterThan(3);
    expect(await plan.verify()).toMatchObject({ valid: false, problem: 'truncated', first_bad_seq: 3 });
  });

  it('shows that all of it is gone, as long as the index or the trail knows the plan', async () => {
    await runInDurableObject(stubOf(person, planId), (_object, state) => state.storage.deleteAll());
    await runInDurableObject(stubOf(person, planId), (_object, state) => state.abort('forget')).catch(() => undefined);
    expect(await plan.verify()).toMatchObject({ valid: false, problem: 'deleted', first_bad_seq: 1, entries: 0 });
    await env.DB.prepare('DELETE FROM plans WHERE plan_id = ?').bind(planId).run();
    expect(await plan.verify()).toMatchObject({ valid: false, problem: 'deleted' });
    const stranger = await newOrg();
    const found = findOperation('_cleveragents/plan/guard/audit/verify');
    if (found === null) throw new Error('no operation');
    const foreign = await dispatchOperation(found, { plan_id: planId }, { principal: stranger, idempotencyKey: null }, services);
    expect(foreign).toMatchObject({ ok: false, error: { kind: 'not_found' } });
  });
});

describe("a plan's entries in D1", () => {
  const LAST = '(SELECT max(seq) FROM audit_entries WHERE plan_id = ?1)';
  const SECOND =
    '(SELECT min(seq) FROM audit_entries WHERE plan_id = ?1 AND seq > (SELECT min(seq) FROM audit_entries WHERE plan_id = ?1))';
  type Seqs = readonly number[];
  const last = (seqs: Seqs): Seqs => seqs.slice(-1);
  const second = (seqs: Seqs): Seqs => seqs.slice(1, 2);
  const changed: readonly (readonly [name: string, sql: string, problem: string, at: (seqs: Seqs) => Seqs])[] = [
    [
      'another result',
      `UPDATE audit_entries SET result = iif(result = 'allowed', 'denied', 'allowed') WHERE plan_id = ?1 AND seq = ${LAST}`,
      'trail_changed',
      last,
    ],
    ['another reason', `UPDATE audit_entries SET reason = 'because' WHERE plan_id = ?1 AND seq = ${LAST}`, 'trail_changed', last],
    ['another actor', `UPDATE audit_entries SET actor_id = 'nobody' WHERE plan_id = ?1 AND seq = ${SECOND}`, 'trail_changed', second],
    ['another context', `UPDATE audit_entries SET context = '{}' WHERE plan_id = ?1 AND seq = ${SECOND}`, 'trail_changed', second],
    ['a deleted entry', `DELETE FROM audit_entries WHERE plan_id = ?1 AND seq = ${SECOND}`, 'trail_missing', second],
    ['the last entry deleted', `DELETE FROM audit_entries WHERE plan_id = ?1 AND seq = ${LAST}`, 'trail_missing', last],
    [
      'two deleted',
      `DELETE FROM audit_entries WHERE plan_id = ?1 AND seq IN (${SECOND}, ${LAST})`,
      'trail_missing',
      (seqs) => [...second(seqs), ...last(seqs)],
    ],
    ['all deleted', 'DELETE FROM audit_entries WHERE plan_id = ?1', 'trail_missing', (seqs) => seqs],
  ];
  it.each(changed)('are held against the log, each named by its row: %s', async (_, sql, problem, at) => {
    const seqs = (await auditOf(person, planId)).map((entry) => entry.seq);
    await env.DB.prepare(sql).bind(planId).run();
    const findings = at(seqs).map((seq) => ({ seq, problem }));
    expect(await plan.verify()).toMatchObject({ valid: false, trail: 'changed', problem, first_bad_seq: findings[0]?.seq, findings });
    expect(await plan.exported()).toMatchObject({ valid: true });
  });

  it('of which the log has no row are named: one put between, one moved behind the end', async () => {
    const seqs = (await auditOf(person, planId)).map((entry) => entry.seq);
    const free = Array.from({ length: seqs.at(-1) ?? 0 }, (_, index) => index + 1).find((seq) => !seqs.includes(seq)) ?? 0;
    expect(free).toBeGreaterThan(1);
    await env.DB.prepare(
      `INSERT INTO audit_entries SELECT org, plan_id, ?2, at, event_type, guard_name, result, reason, actor_kind, actor_id, context, hash
       FROM audit_entries WHERE plan_id = ?1 AND seq = 1`,
    )
      .bind(planId, free)
      .run();
    expect(await plan.verify()).toMatchObject({ valid: false, findings: [{ seq: free, problem: 'trail_extra' }] });
    await env.DB.prepare('DELETE FROM audit_entries WHERE plan_id = ?1 AND seq = ?2').bind(planId, free).run();
    const end = seqs.at(-1) ?? 0;
    await env.DB.prepare('UPDATE audit_entries SET seq = seq + 1 WHERE plan_id = ?1 AND seq = ?2').bind(planId, end).run();
    // D1 knows a row more than the log has: the log may as well have been cut.
    expect((await plan.verify()).findings).toEqual([
      { seq: end + 1, problem: 'truncated' },
      { seq: end, problem: 'trail_missing' },
    ]);
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
    await plan.tamper((sql) => sql.exec('DELETE FROM heads'));
    await evict(person, planId);
    expect(await plan.verify()).toMatchObject({ valid: true, head_signature: 'missing' });
    const log = await logOf(person, planId);
    const answer = await plan.call('_cleveragents/audit/head');
    expect(answer).toMatchObject({ ok: true, value: { seq: log.length, signed_head: { seq: log.length, hash: log.at(-1)?.hash } } });
    expect(await plan.verify()).toMatchObject({ valid: true, head_signature: 'valid', signed_seq: log.length });
    await plan.call('_cleveragents/audit/head');
    expect(await storedHeads()).toHaveLength(1);
  });

  it('that must be there and are not are a finding of their own', async () => {
    await plan.tamper((sql) => sql.exec('DELETE FROM heads'));
    await evict(person, planId);
    const later = { ...services, clock: { nowMs: () => Date.now() + 3_600_000 } };
    const finding = { seq: 1, problem: 'unsigned' };
    expect(await verifyTrail(person.org, planId, later)).toMatchObject({ valid: false, headSignature: 'missing', findings: [finding] });
    const off = { ...later, auditKeys: { ...services.auditKeys, signs: false } };
    expect(await verifyTrail(person.org, planId, off)).toMatchObject({ valid: true, headSignature: 'off', findings: [] });
  });

  it('are not made of a row that is not in the log', async () => {
    const log = await logOf(person, planId);
    await plan.tamper((sql) => {
      sql.exec('DELETE FROM heads');
      sql.exec('DELETE FROM log WHERE seq = ?', log.length);
    });
    expect(await plan.call('_cleveragents/audit/head')).toMatchObject({ ok: true, value: { signed_head: null } });
    expect(await storedHeads()).toEqual([]);
  });
});

describe('secrets in the arguments of a call', () => {
  it('reach the tool as they are, and are in no row of the log', async () => {
    const secret = `sk-${'Ab3dEf6hIj9k'.repeat(3)}`;
    const label = `label-${ulid()} ${secret}`;
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the template language of actions
    plan = await endedPlan([{ id: 'one', call: { tool: 'test/counter', arguments: { label: '${args.label}' } } }], { label });
    ({ person, planId } = plan);
    expect((await planOf(person, planId).read())?.plan.failure).toBeNull();
    expect(performed(label)).toHaveLength(1);
    expect(JSON.stringify(await logOf(person, planId))).not.toContain(secret);
    const rows = await runInDurableObject(stubOf(person, planId), (_object, state) =>
      state.storage.sql.exec('SELECT body FROM log UNION ALL SELECT body FROM log_parts').toArray(),
    );
    expect(JSON.stringify(rows)).not.toContain(secret);
  });
});
