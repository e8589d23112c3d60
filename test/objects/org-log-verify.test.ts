/** What verifying the log of an org names: what was done to the log itself, and to the plans that it knows. */
import { evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { ulid } from 'ulid';
import { beforeAll, describe, expect, it } from 'vitest';
import { findOperation, type OperationName, type ParamsInputOf, type ResultOf } from '../../src/api/operations.ts';
import { verifyAuditFile } from '../../src/api/verify-audit-file.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import { startPlan } from '../../src/app/start-plan.ts';
import { type SignedHead, signHead } from '../../src/core/audit/head.ts';
import { orgAuditEntryOf } from '../../src/core/org-log/audit.ts';
import type { OrgLogRow } from '../../src/core/org-log/org-event.ts';
import { type ChainEvent, chainRow, genesisHash, ORG_LOG_ID } from '../../src/core/plan/chain.ts';
import type { Principal } from '../../src/core/principal.ts';
import { objectName } from '../../src/storage/objects.ts';
import { addAction, evict, isTerminal, newOrg, services, sha256, until } from './plan-support.ts';

async function call<N extends OperationName>(person: Principal, name: N, params: ParamsInputOf<N>): Promise<ResultOf<N>> {
  const found = findOperation(name);
  if (found === null) throw new Error(name);
  const result = await dispatchOperation(found, params, { principal: person, idempotencyKey: null }, services);
  if (!result.ok) throw new Error(JSON.stringify(result.error));
  return result.value as unknown as ResultOf<N>;
}

const verify = (person: Principal) => call(person, '_cleveragents/org/log/verify', {});

function inOrg(org: string, change: (sql: SqlStorage) => void): Promise<void> {
  return runInDurableObject(env.ORGS.getByName(objectName(org, 'org', org)), (_object, state) => change(state.storage.sql));
}

function inPlan(org: string, planId: string, change: (storage: DurableObjectStorage) => unknown): Promise<unknown> {
  return runInDurableObject(env.PLANS.getByName(objectName(org, 'plan', planId)), (_object, state) => change(state.storage));
}

/** A plan that has ended and of which the org's log knows so. */
async function endedPlan(person: Principal, name = `talk-${ulid().toLowerCase()}`): Promise<string> {
  const actionName = await addAction(person, { name, apply: 'none', execute: [{ say: 'one' }, { say: 'two' }] });
  // Not by `start`: a plan that is tampered with is not sound, which every other plan is held to afterwards.
  const started = await startPlan(
    { arguments: {}, input: '', message: null, idempotency: null, fieldPrefix: '', actionName, automationProfile: 'auto' },
    person,
    services,
  );
  if (!started.ok) throw new Error(started.error.message);
  const { id } = started.value.plan;
  await until(person, id, isTerminal);
  await expect.poll(async () => (await services.orgLog.plan(person.org, id))?.ended).toBe(true);
  return id;
}

async function change(person: Principal, value: number): Promise<void> {
  await call(person, '_cleveragents/config/set', { key: 'guardrails.max_steps', value });
}

/** Everything is in D1 and the end is signed. */
async function settled(org: string): Promise<number> {
  await expect
    .poll(async () => {
      const heads = await services.orgLog.heads(org, { sign: false });
      return heads !== null && heads.flushedSeq === heads.seq && heads.signed.at(-1)?.seq === heads.seq;
    })
    .toBe(true);
  return (await services.orgLog.heads(org, { sign: false }))?.seq ?? 0;
}

const bodyOf = (sql: SqlStorage, seq: number): string => String(sql.exec('SELECT body FROM org_log WHERE seq = ?', seq).one()['body']);

describe('the log of an org', () => {
  it('that nobody touched is valid, signed, and the same in D1; its plans are as they reported', async () => {
    const person = await newOrg();
    await change(person, 1);
    await endedPlan(person);
    await settled(person.org);
    expect(await verify(person)).toMatchObject({
      valid: true,
      log: { valid: true, entries: 4, head_signature: 'valid', signed_seq: 4, trail: 'complete' },
      plans_checked: 1,
      plan_problems: [],
    });
  });

  it('of an org in which nothing has happened is empty and valid', async () => {
    expect(await verify(await newOrg())).toMatchObject({ valid: true, log: { entries: 0 }, plans_checked: 0 });
  });

  const tampered: readonly {
    readonly what: string;
    readonly change: (sql: SqlStorage, org: string) => void;
    readonly seq: unknown;
    readonly problem: string;
  }[] = [
    {
      what: 'a flipped byte',
      change: (sql) => sql.exec('UPDATE org_log SET body = ? WHERE seq = 3', bodyOf(sql, 3).replace('max_steps', 'max_stepz')),
      seq: 3,
      problem: 'changed',
    },
    { what: 'a dropped row', change: (sql) => sql.exec('DELETE FROM org_log WHERE seq = 3'), seq: 4, problem: 'gap' },
    {
      what: 'two rows that changed places',
      change: (sql) => {
        const [third, fourth] = [bodyOf(sql, 3), bodyOf(sql, 4)];
        sql.exec('UPDATE org_log SET body = ? WHERE seq = 3', fourth);
        sql.exec('UPDATE org_log SET body = ? WHERE seq = 4', third);
      },
      seq: 4,
      problem: 'gap',
    },
    {
      what: 'an inserted row',
      change: (sql) => {
        sql.exec('UPDATE org_log SET seq = seq + 100 WHERE seq > 3');
        sql.exec('INSERT INTO org_log (seq, body) VALUES (4, ?)', bodyOf(sql, 3));
      },
      seq: 3,
      problem: 'gap',
    },
    { what: 'a cut end', change: (sql) => sql.exec('DELETE FROM org_log WHERE seq > 4'), seq: 5, problem: 'truncated' },
    {
      what: 'a row that is none any more',
      change: (sql) => sql.exec("UPDATE org_log SET body = '{' WHERE seq = 3"),
      seq: 3,
      problem: 'changed',
    },
    {
      what: 'a whole chain that was made again',
      change: (sql, org) => {
        let prev = genesisHash(sha256, org, ORG_LOG_ID);
        for (const { body } of sql.exec('SELECT body FROM org_log ORDER BY seq').toArray()) {
          const {
            v: _v,
            seq,
            prev: _prev,
            hash: _hash,
            ...event
          } = JSON.parse(String(body).replace('max_steps', 'max_stepz')) as OrgLogRow;
          const next = chainRow(sha256, prev, seq, event as ChainEvent);
          sql.exec('UPDATE org_log SET body = ? WHERE seq = ?', JSON.stringify(next), seq);
          prev = next.hash;
        }
      },
      // The first row that was signed: when that was depends on what came together.
      seq: expect.any(Number),
      problem: 'rewritten',
    },
    {
      what: 'a position of a plan that the rows do not say',
      change: (sql) => sql.exec('UPDATE org_log_plans SET seq = 1'),
      seq: 7,
      problem: 'state_differs',
    },
    {
      what: 'a plan that was taken out of what is known',
      change: (sql) => sql.exec('DELETE FROM org_log_plans'),
      seq: 7,
      problem: 'state_differs',
    },
  ];

  it.each(tampered)('names $what', async ({ change: tamper, seq, problem }) => {
    const person = await newOrg();
    for (const value of [1, 2, 3]) await change(person, value);
    await endedPlan(person);
    expect(await settled(person.org)).toBe(8);
    await inOrg(person.org, (sql) => tamper(sql, person.org));
    const verdict = await verify(person);
    expect(verdict.valid).toBe(false);
    expect(verdict.log).toMatchObject({ valid: false, problem, first_bad_seq: seq });
  });

  it('that was deleted as a whole is named: D1 has its entries', async () => {
    const person = await newOrg();
    await change(person, 1);
    await settled(person.org);
    await runInDurableObject(env.ORGS.getByName(objectName(person.org, 'org', person.org)), async (_object, state) => {
      for (const { name } of state.storage.sql
        .exec("SELECT name FROM sqlite_master WHERE name LIKE 'org_log%' OR name = 'heads'")
        .toArray()) {
        state.storage.sql.exec(`DROP TABLE ${String(name)}`);
      }
    });
    const fresh = await verifyFresh(person);
    expect(fresh.log).toMatchObject({ valid: false, problem: 'deleted' });
  });

  it('is contradicted by D1 where an entry there was changed or removed', async () => {
    const person = await newOrg();
    await change(person, 1);
    await change(person, 2);
    await settled(person.org);
    const { DB } = env;
    await DB.prepare("UPDATE audit_entries SET actor_id = 'somebody' WHERE org = ? AND plan_id = 'org' AND seq = 2").bind(person.org).run();
    expect((await verify(person)).log).toMatchObject({ valid: false, problem: 'trail_changed', first_bad_seq: 2 });
    await DB.prepare("DELETE FROM audit_entries WHERE org = ? AND plan_id = 'org' AND seq = 2").bind(person.org).run();
    expect((await verify(person)).log).toMatchObject({ valid: false, problem: 'trail_missing', first_bad_seq: 2 });
  });
});

describe('a long log', () => {
  /** Rows behind those that are there, as the object would have written them, in D1 and signed now and then. */
  async function lengthen(org: string, count: number): Promise<void> {
    const [last] = (await services.orgLog.page(org, { afterSeq: 1, limit: 1 }))?.rows ?? [];
    if (last === undefined) throw new Error('there is no row');
    const { v: _v, seq: _seq, prev: _prev, hash: _hash, ...event } = last;
    const rows: OrgLogRow[] = [];
    const heads: SignedHead[] = [];
    let prev = last.hash;
    for (let seq = last.seq + 1; seq <= last.seq + count; seq += 1) {
      const row = chainRow(sha256, prev, seq, event as ChainEvent) as OrgLogRow;
      prev = row.hash;
      rows.push(row);
      if (seq % 16 > 0 && seq !== last.seq + count) continue;
      const head = await signHead(services.auditKeys, { v: 1, org, plan_id: ORG_LOG_ID, seq, hash: row.hash, at: row.at });
      if (head !== null) heads.push(head);
    }
    const insert = (sql: SqlStorage, table: string, stored: readonly { readonly seq: number }[]): unknown =>
      sql.exec(`INSERT INTO ${table} (seq, body) SELECT value ->> 'seq', value FROM json_each(?)`, JSON.stringify(stored));
    await inOrg(org, (sql) => {
      for (let at = 0; at < rows.length; at += 1000) insert(sql, 'org_log', rows.slice(at, at + 1000));
      insert(sql, 'heads', heads);
      sql.exec("UPDATE org_log_meta SET value = ? WHERE key = 'flushed_seq'", last.seq + count);
    });
    const entries = rows.map((row) => {
      const { timestamp: at, actor, ...entry } = orgAuditEntryOf(row);
      return { org, planId: ORG_LOG_ID, ...entry, at, actorKind: actor.kind, actorId: actor.id };
    });
    for (let at = 0; at < entries.length; at += 500) await services.audit.append(entries.slice(at, at + 500));
  }

  /** All pages of a verification, and the last of them. */
  async function verifyAll(person: Principal) {
    const pages: ResultOf<'_cleveragents/org/log/verify'>[] = [];
    for (let token = ''; pages.length === 0 || token !== ''; ) {
      const page = await call(person, '_cleveragents/org/log/verify', token === '' ? {} : { page_token: token });
      pages.push(page);
      token = page.next_page_token;
    }
    const last = pages.at(-1);
    if (last === undefined) throw new Error('no page');
    return { pages, last };
  }

  it('of 12,000 rows is verified in pages of which each does so much and no more, and the last has the word on all', async () => {
    const person = await newOrg();
    await change(person, 1);
    await settled(person.org);
    await lengthen(person.org, 12_000);
    const { pages, last } = await verifyAll(person);
    expect(last).toMatchObject({ valid: true, log: { valid: true, entries: 12_002, head_signature: 'valid', trail: 'complete' } });
    expect(pages.map(({ log }) => log?.entries)).toEqual([5_000, 10_000, 12_002]);

    // An export of the same log: signed heads are where their rows are, so that no page grows with the log.
    let text = '';
    let largest = 0;
    for (let after = 0; after >= 0; ) {
      const page = await call(person, '_cleveragents/org/log/export', { limit: 1000, ...(after === 0 ? {} : { after_seq: after }) });
      text += page.content;
      largest = Math.max(largest, page.content.length);
      after = page.next_after_seq ?? -1;
    }
    expect(largest).toBeLessThan(2_000_000);
    const file = await verifyAuditFile(text, { sha256, jwks: { keys: services.auditKeys.publicKeys } });
    expect(file).toMatchObject({ valid: true, rows: 12_002 });

    // An entry of the database that was changed, of which the chain knows nothing: no later page forgets it.
    await env.DB.prepare("UPDATE audit_entries SET actor_id = 'somebody' WHERE org = ? AND plan_id = 'org' AND seq = 123")
      .bind(person.org)
      .run();
    // And a row in the middle, of which only the page that it is on can know.
    await inOrg(person.org, (sql) =>
      sql.exec('UPDATE org_log SET body = ? WHERE seq = 7777', bodyOf(sql, 7777).replace('max_steps', 'max_stepz')),
    );
    const tampered = await verifyAll(person);
    expect(tampered.pages.map(({ valid }) => valid)).toEqual([false, false]);
    expect(tampered.last.log).toMatchObject({ valid: false, problem: 'trail_changed', first_bad_seq: 123 });
    expect(tampered.pages.map(({ log }) => log?.findings?.slice(0, 1))).toEqual([
      [{ seq: 123, problem: 'trail_changed' }],
      [{ seq: 7777, problem: 'changed' }],
    ]);
  }, 60_000);

  it('takes no token that it did not make', async () => {
    const person = await newOrg();
    for (const page_token of ['', 'x', '1.1.-.r.5', '1.1.-.p.somebody', `1.2.-.r.5.${'a'.repeat(64)}`]) {
      await expect(call(person, '_cleveragents/org/log/verify', { page_token }), page_token).rejects.toThrow('page_token');
    }
  });
});

it('a position of a plan that no row has told is named by the plan', async () => {
  const person = await newOrg();
  const planId = await endedPlan(person);
  await settled(person.org);
  // As far as the plan itself goes, but the org has never heard of that row.
  const [row] = (await services.plans.plan(person.org, planId).log(2, 1)) ?? [];
  const known = await services.orgLog.plan(person.org, planId);
  expect(known).toMatchObject({ isRecorded: true, rowSeq: expect.any(Number) });
  await inOrg(person.org, (sql) => {
    sql.exec('DELETE FROM org_log WHERE seq > ?', (known?.rowSeq ?? 0) - 1);
    sql.exec('DELETE FROM heads WHERE seq > ?', (known?.rowSeq ?? 0) - 1);
  });
  expect(row?.seq).toBe(3);
  expect((await verify(person)).plan_problems).toEqual([
    { plan_id: planId, problem: 'unrecorded', reported_seq: known?.seq, seq: known?.seq },
  ]);
});

/** After the object has forgotten what it held in memory. */
async function verifyFresh(person: Principal): Promise<ResultOf<'_cleveragents/org/log/verify'>> {
  await evictOrg(person.org);
  return verify(person);
}

async function evictOrg(org: string): Promise<void> {
  await evictDurableObject(env.ORGS.getByName(objectName(org, 'org', org)));
}

describe('a plan that the log of its org knows', () => {
  let person: Principal;
  beforeAll(async () => {
    person = await newOrg();
  });

  async function problemOf(planId: string): Promise<object | undefined> {
    const verdict = await verify(person);
    const problem = verdict.plan_problems.find(({ plan_id }) => plan_id === planId);
    expect(verdict.valid).toBe(problem === undefined && verdict.plan_problems.length === 0);
    expect(verdict.log?.valid).toBe(true);
    const alone = await call(person, '_cleveragents/org/log/verify', { plan_id: planId });
    expect(alone.plan_problems[0]).toEqual(problem);
    return problem;
  }

  it('is named when its object was emptied, with its entries in D1 and its row of the index', async () => {
    const planId = await endedPlan(person);
    const { seq } = (await services.orgLog.plan(person.org, planId)) ?? { seq: 0 };
    expect(await problemOf(planId)).toBeUndefined();
    await inPlan(person.org, planId, (storage) => storage.deleteAll());
    await evict(person, planId);
    await env.DB.batch([
      env.DB.prepare('DELETE FROM audit_entries WHERE org = ? AND plan_id = ?').bind(person.org, planId),
      env.DB.prepare('DELETE FROM plans WHERE org = ? AND plan_id = ?').bind(person.org, planId),
    ]);
    expect(await problemOf(planId)).toEqual({ plan_id: planId, problem: 'deleted', reported_seq: seq });
  });

  it('is named when its log was cut, and its signatures, snapshot and entries in D1 with it', async () => {
    const planId = await endedPlan(person);
    const { seq } = (await services.orgLog.plan(person.org, planId)) ?? { seq: 0 };
    const end = seq - 2;
    await inPlan(person.org, planId, ({ sql }) => {
      sql.exec('DELETE FROM log WHERE seq > ?', end);
      sql.exec('DELETE FROM heads');
      sql.exec('DELETE FROM snapshot');
      sql.exec("UPDATE meta SET value = ? WHERE key = 'flushed_seq'", end);
    });
    await evict(person, planId);
    await env.DB.prepare('DELETE FROM audit_entries WHERE org = ? AND plan_id = ? AND seq > ?').bind(person.org, planId, end).run();
    expect(await problemOf(planId)).toEqual({ plan_id: planId, problem: 'truncated', reported_seq: seq, seq: end });
  });

  it('is named when another log stands in its place, whole and well made', async () => {
    const planId = await endedPlan(person);
    const { seq } = (await services.orgLog.plan(person.org, planId)) ?? { seq: 0 };
    await inPlan(person.org, planId, ({ sql }) => {
      let prev = genesisHash(sha256, person.org, planId);
      for (const { body } of sql.exec('SELECT body FROM log ORDER BY seq').toArray()) {
        const { v: _v, seq: at, prev: _prev, hash: _hash, ...event } = JSON.parse(String(body).replaceAll('"one"', '"eins"')) as OrgLogRow;
        const next = chainRow(sha256, prev, at, { ...event, at: '2026-01-01T00:00:00.000Z' } as ChainEvent);
        sql.exec('UPDATE log SET body = ? WHERE seq = ?', JSON.stringify(next), at);
        prev = next.hash;
      }
      sql.exec('DELETE FROM heads');
      sql.exec('DELETE FROM snapshot');
    });
    await evict(person, planId);
    expect(await problemOf(planId)).toMatchObject({ plan_id: planId, problem: 'replaced', reported_seq: seq });
  });

  it('is found on later pages too, and plans of other orgs on none', async () => {
    const other = await newOrg();
    const first = await endedPlan(other);
    const second = await endedPlan(other);
    const page = await call(other, '_cleveragents/org/log/verify', { limit: 1 });
    expect(page).toMatchObject({
      valid: true,
      plans_checked: 1,
      next_page_token: expect.stringContaining([first, second].sort()[0] ?? ''),
    });
    const next = await call(other, '_cleveragents/org/log/verify', { limit: 1, page_token: page.next_page_token });
    expect(next.log).toBeUndefined();
    expect(next).toMatchObject({ valid: true, plans_checked: 1, plan_problems: [] });
    await expect(call(person, '_cleveragents/org/log/verify', { plan_id: first })).rejects.toThrow('not_found');
  });
});

describe('an export of the log of an org', () => {
  it('is verified without the service, over its pages, and every tampering with the file is named', async () => {
    const person = await newOrg();
    for (let value = 1; value <= 3; value += 1) await change(person, value);
    let text = '';
    for (let after = 0; ; ) {
      const page = await call(person, '_cleveragents/org/log/export', { limit: 4, ...(after === 0 ? {} : { after_seq: after }) });
      expect(page).toMatchObject({ plan_id: 'org', signing: 'on' });
      text += page.content;
      if (page.next_after_seq === undefined) break;
      after = page.next_after_seq;
    }
    const jwks = { keys: services.auditKeys.publicKeys };
    const check = (file: string) => verifyAuditFile(file, { sha256, jwks });
    expect(await check(text)).toMatchObject({ valid: true, signature: 'valid', org: person.org, plan_id: 'org', rows: 6, masked_rows: 0 });
    const lines = text.trimEnd().split('\n');
    const row = lines.findIndex((line) => line.includes('"seq":3'));
    const without = [...lines.slice(0, row), ...lines.slice(row + 1)].join('\n');
    expect(await check(`${without}\n`)).toMatchObject({ valid: false, problem: 'gap', first_bad_seq: 3 });
    expect(await check(text.replace('"value":2', '"value":7'))).toMatchObject({ valid: false });
    expect(await check(`${lines.slice(0, -1).join('\n')}\n`)).toMatchObject({ valid: false, problem: 'truncated' });
    // The file of one org is not that of another, nor that of a plan.
    expect(await check(text.replaceAll(person.org, 'org-other'))).toMatchObject({ valid: false });
    const csv = await call(person, '_cleveragents/org/log/export', { format: 'csv' });
    expect(csv.content.split('\r\n')[1]).toMatch(/^org,1,/);
  });
});
