import { getTableColumns } from 'drizzle-orm';
import type { PlanIndexRow, PlanSpend } from '../../app/ports.ts';
import { PAGE_TOKEN_TTL_SECONDS } from '../page-token.ts';
import { spendStatements } from './plan-spend.ts';
import { plans } from './schema.ts';

/** The member of a row that each column of `plans` holds, in one order for every statement. */
const MEMBERS = Object.entries(getTableColumns(plans));

export const PLAN_COLUMNS: readonly string[] = MEMBERS.map(([, column]) => column.name);

/**
 * Replaces a plan's row unless the stored one is further, in one transaction of three statements: keep what a list showed before,
 * write the row, drop a few earlier states that no page token can still need.
 */
/** False: a later state of the plan is there. */
export async function replacePlan(db: D1Database, row: PlanIndexRow, spend?: PlanSpend): Promise<boolean> {
  const values = MEMBERS.map(([member]) => row[member as keyof PlanIndexRow]);
  const [, written] = await db.batch([
    db.prepare(RECORD_MOVE).bind(...values),
    db.prepare(WRITE).bind(...values),
    db.prepare(PURGE_MOVES),
    ...(spend === undefined ? [] : spendStatements(db, row, spend)),
  ]);
  return written === undefined || written.meta.changes > 0;
}

const KEPT = PLAN_COLUMNS.filter((column) => column !== 'org' && column !== 'plan_id');

/** The parameter that holds the offered value of a column; the same in all statements. */
function offered(column: string): string {
  return `?${PLAN_COLUMNS.indexOf(column) + 1}`;
}

/** A change that a list shows: of a plan's place in it, or of a value that its filters read. */
const SHOWN_CHANGE = ['status_at', 'phase', 'state', 'task_state', 'session_id', 'action_name', 'project']
  .map((column) => `p.${column} IS NOT ${offered(column)}`)
  .concat(`(p.pending_approvals > 0) IS NOT (${offered('pending_approvals')} > 0)`)
  .join(' OR ');

/** Ahead of the write. A plan that was not listed before leaves a mark without a `seq`, which no list shows. */
const RECORD_MOVE = `
  INSERT INTO plan_moves (moved_at_seconds, org, plan_id, ${KEPT.join(', ')})
  SELECT unixepoch(), ${offered('org')}, ${offered('plan_id')}, ${KEPT.map((column) => `p.${column}`).join(', ')}
  FROM (SELECT 1) LEFT JOIN plans AS p ON p.org = ${offered('org')} AND p.plan_id = ${offered('plan_id')}
  WHERE ${offered('seq')} > 0
    AND (p.plan_id IS NULL OR p.seq = 0 OR (p.seq <= ${offered('seq')} AND (${SHOWN_CHANGE})))`;

const WRITE = `
  INSERT INTO plans (${PLAN_COLUMNS.join(', ')}) VALUES (${PLAN_COLUMNS.map(offered).join(', ')})
  ON CONFLICT (org, plan_id) DO UPDATE SET ${KEPT.map((column) => `${column} = excluded.${column}`).join(', ')}
  WHERE excluded.seq >= plans.seq`;

/**
 * Earlier states stay for twice a token's life, so that a page which is being read meanwhile is whole. A few of the oldest with every
 * change keep up with the one that a change adds.
 */
const PURGE_MOVES = `
  DELETE FROM plan_moves
  WHERE id IN (SELECT id FROM plan_moves ORDER BY id LIMIT 4) AND moved_at_seconds < unixepoch() - ${2 * PAGE_TOKEN_TTL_SECONDS}`;
