import type { PlanIndexRow, PlanListPage, PlanListQuery } from '../../app/ports.ts';
import type { Refusal } from '../../core/refusal.ts';
import { err, ok, type Result } from '../../core/result.ts';
import { decodePageToken, encodePageToken, expiredToken, PAGE_TOKEN_TTL_SECONDS, type PlanPageToken } from '../page-token.ts';
import { d1Call } from './d1-call.ts';
import { PLAN_COLUMNS } from './plan-moves.ts';

/**
 * One page of a list of plans: newest status first, then id ascending.
 *
 * Promise: a walk from the first page to the last sees the list as it was when the first page was made. No plan is lost and none is
 * repeated, however often plans change meanwhile; filters, order, rows and `totalSize` are all of that moment. Plans made later are not
 * in it. A walk may take an hour; a later token is refused.
 *
 * How: each change that shows in a list leaves the plan's earlier row in `plan_moves`, numbered. The first page notes the last number.
 * Later pages take every plan that has not moved since as it is, and each of the others from its first move since.
 */
export async function listPlans(db: D1Database, query: PlanListQuery): Promise<Result<PlanListPage, Refusal>> {
  const pageSize = Math.max(1, Math.floor(query.pageSize));
  const token = query.pageToken === undefined || query.pageToken === '' ? null : decodePageToken(query.pageToken, query);
  if (token !== null && !token.ok) return token;
  const at = token === null ? null : token.value;
  // Bound to one transaction, so that the page, the count and the moment belong together.
  const [moment, page, size] = await d1Call('plans.list', () =>
    db.batch<Record<string, unknown>>([
      db.prepare('SELECT unixepoch() AS now, (SELECT coalesce(max(id), 0) FROM plan_moves) AS last_move'),
      at === null ? firstPage(db, query, pageSize + 1) : laterPage(db, query, at, pageSize + 1),
      ...(at === null ? [countAll(db, query)] : []),
    ]),
  );
  const now = numberOf(moment?.results[0]?.['now']);
  if (at !== null && now - at.takenAtSeconds > PAGE_TOKEN_TTL_SECONDS) return err(expiredToken());
  const walk = at ?? {
    lastMove: numberOf(moment?.results[0]?.['last_move']),
    takenAtSeconds: now,
    totalSize: numberOf(size?.results[0]?.['size']),
  };
  const found = (page?.results ?? []).map(rowOf);
  const rows = found.slice(0, pageSize);
  const last = rows.at(-1);
  const nextPageToken =
    found.length > pageSize && last !== undefined ? encodePageToken({ ...walk, statusAt: last.statusAt, planId: last.planId }, query) : '';
  return ok({ rows, nextPageToken, totalSize: walk.totalSize });
}

const ORDER = 'ORDER BY status_at DESC, plan_id';
const COLUMNS = PLAN_COLUMNS.join(', ');

function firstPage(db: D1Database, query: PlanListQuery, limit: number): D1PreparedStatement {
  const bound = new Parameters();
  return bound.prepare(db, `SELECT ${COLUMNS} FROM plans WHERE ${filters(query, bound)} ${ORDER} LIMIT ${bound.add(limit)}`);
}

function countAll(db: D1Database, query: PlanListQuery): D1PreparedStatement {
  const bound = new Parameters();
  return bound.prepare(db, `SELECT count(*) AS size FROM plans WHERE ${filters(query, bound)}`);
}

function laterPage(db: D1Database, query: PlanListQuery, at: PlanPageToken, limit: number): D1PreparedStatement {
  const bound = new Parameters();
  const where = `${filters(query, bound)} AND ${after(at, bound)}`;
  const since = bound.add(at.lastMove);
  return bound.prepare(
    db,
    `SELECT ${COLUMNS} FROM plans WHERE ${where} AND NOT EXISTS
       (SELECT 1 FROM plan_moves AS m WHERE m.org = plans.org AND m.plan_id = plans.plan_id AND m.id > ${since})
     UNION ALL
     SELECT ${COLUMNS} FROM plan_moves WHERE ${where} AND id > ${since} AND NOT EXISTS
       (SELECT 1 FROM plan_moves AS m
        WHERE m.org = plan_moves.org AND m.plan_id = plan_moves.plan_id AND m.id > ${since} AND m.id < plan_moves.id)
     ${ORDER} LIMIT ${bound.add(limit)}`,
  );
}

/** What the query asks for, over the columns that `plans` and `plan_moves` share. */
function filters(query: PlanListQuery, bound: Parameters): string {
  const terms = [`org = ${bound.add(query.org)}`, 'seq > 0'];
  const equal: readonly (readonly [string, string | undefined])[] = [
    ['session_id', query.sessionId],
    ['action_name', query.actionName],
    ['project', query.project],
    ['phase', query.phase],
    ['state', query.state],
    ['task_state', query.taskState],
  ];
  for (const [column, value] of equal) if (value !== undefined) terms.push(`${column} = ${bound.add(value)}`);
  if (query.statusAtOrAfter !== undefined) terms.push(`status_at >= ${bound.add(query.statusAtOrAfter)}`);
  if (query.withPendingApprovals === true) terms.push('pending_approvals > 0');
  return terms.join(' AND ');
}

function after(at: PlanPageToken, bound: Parameters): string {
  const statusAt = bound.add(at.statusAt);
  // The first term is implied by the second; it is what lets the index find the place.
  return `status_at <= ${statusAt} AND (status_at < ${statusAt} OR plan_id > ${bound.add(at.planId)})`;
}

/** Numbered parameters, so that one value can stand in several places. */
class Parameters {
  private readonly values: (string | number)[] = [];

  add(value: string | number): string {
    return `?${this.values.push(value)}`;
  }

  prepare(db: D1Database, text: string): D1PreparedStatement {
    return db.prepare(text).bind(...this.values);
  }
}

function rowOf(row: Record<string, unknown>): PlanIndexRow {
  return {
    org: textOf(row['org']),
    planId: textOf(row['plan_id']),
    sessionId: textOf(row['session_id']),
    actionName: textOf(row['action_name']),
    project: nullableTextOf(row['project']),
    profile: textOf(row['profile']),
    phase: textOf(row['phase']),
    state: textOf(row['state']),
    taskState: textOf(row['task_state']),
    createdBy: textOf(row['created_by']),
    createdAt: textOf(row['created_at']),
    updatedAt: textOf(row['updated_at']),
    statusAt: textOf(row['status_at']),
    seq: numberOf(row['seq']),
    wakeAt: nullableTextOf(row['wake_at']),
    pendingApprovals: numberOf(row['pending_approvals']),
  };
}

function textOf(value: unknown): string {
  if (typeof value !== 'string') throw new TypeError('a plan row holds no text where text belongs');
  return value;
}

function nullableTextOf(value: unknown): string | null {
  return value === null ? null : textOf(value);
}

function numberOf(value: unknown): number {
  if (typeof value !== 'number') throw new TypeError('a plan row holds no number where a number belongs');
  return value;
}
