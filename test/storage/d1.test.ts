import { env } from 'cloudflare:workers';
import { getTableColumns, getTableName, is } from 'drizzle-orm';
import { SQLiteTable } from 'drizzle-orm/sqlite-core';
import { describe, expect, it } from 'vitest';
import { StorageUnavailable } from '../../src/app/ports.ts';
import { makeActionStore } from '../../src/storage/d1/action-store.ts';
import { makeAuditStore } from '../../src/storage/d1/audit-store.ts';
import { makeConfigStore } from '../../src/storage/d1/config-store.ts';
import { makeIdempotencyStore } from '../../src/storage/d1/idempotency-store.ts';
import { makeKeyStore } from '../../src/storage/d1/key-store.ts';
import { makeOrgPolicyStore } from '../../src/storage/d1/org-policy-store.ts';
import { makeOrgStore } from '../../src/storage/d1/org-store.ts';
import { JUDGED, makeOutcomeStore, RECENT_CALLS, RECENT_PLANS } from '../../src/storage/d1/outcome-store.ts';
import { makePlanIndex } from '../../src/storage/d1/plan-index.ts';
import { makeProfileStore } from '../../src/storage/d1/profile-store.ts';
import { makeProjectStore } from '../../src/storage/d1/project-store.ts';
import * as schema from '../../src/storage/d1/schema.ts';
import { makeSessionStore } from '../../src/storage/d1/session-store.ts';
import { portSuite } from './port-suite.ts';

const db = env.DB;

portSuite('D1', {
  orgs: makeOrgStore(db),
  keys: makeKeyStore(db),
  actions: makeActionStore(db),
  profiles: makeProfileStore(db),
  orgPolicies: makeOrgPolicyStore(db),
  projects: makeProjectStore(db),
  sessions: makeSessionStore(db),
  config: makeConfigStore(db),
  plans: makePlanIndex(db),
  audit: makeAuditStore(db),
  idempotency: makeIdempotencyStore(db),
  outcomes: makeOutcomeStore(db),
});

describe('the schema of D1', () => {
  const tables = Object.values(schema).filter((value) => is(value, SQLiteTable));

  it.each(tables.map((table) => [getTableName(table), table] as const))(
    'has in migrations and in code the same columns of %s',
    async (name, table) => {
      const { results } = await db.prepare('SELECT name, "notnull" AS required FROM pragma_table_info(?1)').bind(name).all();
      const inCode = Object.values(getTableColumns(table)).map((column) => ({ name: column.name, required: column.notNull ? 1 : 0 }));
      expect(results.toSorted(byName)).toEqual(inCode.toSorted(byName));
    },
  );

  it('writes one row per audit entry', async () => {
    const result = await db
      .prepare("INSERT INTO audit_entries VALUES (?1, 'p', 1, '', '', '', 'allowed', NULL, '', '', '{}', '')")
      .bind(crypto.randomUUID())
      .run();
    expect(result.meta.rows_written).toBe(1);
  });

  it.each([
    ['a list', "SELECT * FROM plans WHERE org = 'o' AND seq > 0 ORDER BY status_at DESC, plan_id LIMIT 5", 'plans_by_status'],
    [
      'a later page',
      "SELECT * FROM plans WHERE org = 'o' AND status_at <= 'x' ORDER BY status_at DESC, plan_id LIMIT 5",
      'plans_by_status',
    ],
    ['a session', "SELECT * FROM plans WHERE org = 'o' AND session_id = 's' ORDER BY status_at DESC, plan_id", 'plans_by_session'],
    ['a task state', "SELECT * FROM plans WHERE org = 'o' AND task_state = 's' ORDER BY status_at DESC, plan_id", 'plans_by_task_state'],
    ['the overdue', "SELECT * FROM plans WHERE wake_at < 'x' ORDER BY wake_at LIMIT 5", 'plans_overdue'],
  ])('reads %s by its index, without sorting', async (_, query, index) => {
    const { results } = await db.prepare(`EXPLAIN QUERY PLAN ${query}`).all<{ detail: string }>();
    const plan = results.map(({ detail }) => detail).join('; ');
    expect(plan).toContain(index);
    expect(plan).not.toContain('TEMP B-TREE');
  });

  it.each([
    ['recent calls', RECENT_CALLS, ['o', null, 'a', 'write', 50], 'outcomes_of_calls (org=? AND project=? AND actor=? AND risk_class=?)'],
    ['recent plans', RECENT_PLANS, ['o', 'a', 'p', 50], 'plan_outcomes_recent (org=? AND action=? AND project=?)'],
  ])('reads %s by index alone, newest first, and stops at the last that counts', async (_, query, bound, index) => {
    const { results } = await db
      .prepare(`EXPLAIN QUERY PLAN ${query}`)
      .bind(...bound)
      .all<{ detail: string }>();
    const plan = results.map(({ detail }) => detail).join('; ');
    expect(plan).toContain(index);
    expect(plan).not.toContain('TEMP B-TREE');
    expect(plan).not.toContain('SCAN outcomes');
  });

  it('reads at most 50 outcomes for a statistic, however many there are', async () => {
    const org = crypto.randomUUID();
    const common = { org, planId: 'p', actor: 'a', action: 'a', project: 'p', at: '2026' } as const;
    const judged = { kind: 'call', riskClass: 'write', confidence: 0.5, threshold: 0.7, gate: 'execute_command', outcome: 'ok' } as const;
    const seqs = Array.from({ length: 400 }, (_, n) => n + 1);
    await makeOutcomeStore(db).record(seqs.map((seq) => ({ ...common, ...judged, seq })));
    await makeOutcomeStore(db).record(seqs.map((seq) => ({ ...common, kind: 'plan', planId: `p${seq}`, seq, outcome: 'ok' })));
    const calls = await db.prepare(RECENT_CALLS).bind(org, 'p', 'a', 'write', 50).all();
    const plans = await db.prepare(RECENT_PLANS).bind(org, 'a', 'p', 50).all();
    for (const { results, meta } of [calls, plans]) {
      expect(results).toEqual([{ ok: 50, total: 50 }]);
      // The subquery's rows and what is counted of them.
      expect(meta.rows_read).toBeLessThanOrEqual(150);
    }
  });

  it('reads what was judged by the primary key, newest plans first', async () => {
    const { results } = await db.prepare(`EXPLAIN QUERY PLAN ${JUDGED}`).bind('o', null, null, null, 10).all<{ detail: string }>();
    const plan = results.map(({ detail }) => detail).join('; ');
    expect(plan).toContain('SEARCH o USING PRIMARY KEY (org=?)');
    expect(plan).not.toContain('TEMP B-TREE FOR ORDER BY');
  });
});

describe('page tokens of D1', () => {
  it('expire after an hour of the database clock', async () => {
    const org = `org-${crypto.randomUUID()}`;
    const index = makePlanIndex(db);
    const row = {
      ...{ org, planId: 'a', sessionId: 's', actionName: 'a', project: null, profile: 'manual', phase: 'execute', state: 'running' },
      ...{ taskState: 'working', createdBy: 'k', createdAt: '', updatedAt: '', statusAt: '', seq: 1, wakeAt: null, pendingApprovals: 0 },
    };
    await index.upsert(row);
    await index.upsert({ ...row, planId: 'b' });
    const first = await index.list({ org, pageSize: 1 });
    if (!first.ok) throw new Error(first.error.message);
    const token: unknown[] = JSON.parse(atob(first.value.nextPageToken.replaceAll('-', '+').replaceAll('_', '/')));
    const aged = (seconds: number) =>
      btoa(JSON.stringify(token.with(2, Number(token[2]) - seconds)))
        .replaceAll('+', '-')
        .replaceAll('/', '_')
        .replaceAll('=', '');
    expect(await index.list({ org, pageSize: 1, pageToken: aged(3_500) })).toMatchObject({ ok: true, value: { rows: [{ planId: 'b' }] } });
    expect(await index.list({ org, pageSize: 1, pageToken: aged(3_700) })).toMatchObject({
      ok: false,
      error: { kind: 'invalid', issues: [{ field: 'page_token', message: 'has expired; start again without a token' }] },
    });
  });

  it('are no reason to keep earlier states for ever', async () => {
    const org = `org-${crypto.randomUUID()}`;
    await db.prepare('INSERT INTO plan_moves (moved_at_seconds, org, plan_id) VALUES (unixepoch() - 7300, ?1, ?2)').bind(org, 'old').run();
    const index = makePlanIndex(db);
    const kept = () => db.prepare('SELECT count(*) AS n FROM plan_moves WHERE org = ?1').bind(org).first<number>('n');
    expect(await kept()).toBe(1);
    // The oldest go first; what other tests left behind is younger and stays.
    await db.prepare('UPDATE plan_moves SET id = (SELECT min(id) - 1 FROM plan_moves) WHERE org = ?1').bind(org).run();
    await index.upsert({
      ...{
        org: `org-${crypto.randomUUID()}`,
        planId: 'a',
        sessionId: 's',
        actionName: 'a',
        project: null,
        profile: 'manual',
        phase: 'execute',
      },
      ...{ state: 'running', taskState: 'working', createdBy: 'k', createdAt: '', updatedAt: '', statusAt: '', seq: 1, wakeAt: null },
      pendingApprovals: 0,
    });
    expect(await kept()).toBe(0);
  });
});

describe('a database that does not answer', () => {
  /** A real database without our tables, as after a deployment whose migrations have not run: every statement fails inside D1. */
  const broken: D1Database = new Proxy(db, {
    get(target, member) {
      if (member === 'prepare')
        return (text: string) => target.prepare(text.replaceAll(/\b(plans|plan_moves|keys|audit_entries)\b/g, 'absent_$1'));
      const value: unknown = Reflect.get(target, member);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });

  it.each([
    ['keys.find', () => makeKeyStore(broken).find('k')],
    ['plans.get', () => makePlanIndex(broken).get('o', 'p')],
    ['plans.list', () => makePlanIndex(broken).list({ org: 'o', pageSize: 1 })],
    ['audit.list', () => makeAuditStore(broken).list('o', 'p', 0, 1)],
  ])('is told apart from a bug: %s', async (operation, call) => {
    const error = await call().then(
      () => null,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(StorageUnavailable);
    expect(error).toMatchObject({ message: `storage unavailable: ${operation}` });
  });
});

function byName(a: Record<string, unknown>, b: Record<string, unknown>): number {
  return String(a['name']) < String(b['name']) ? -1 : 1;
}
