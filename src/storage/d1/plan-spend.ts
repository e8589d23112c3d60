import type { ClosedSpend, PlanIndexRow, PlanSpend, Spending, SpendingQuery } from '../../app/ports.ts';
import { windowKey } from '../../core/budget/window.ts';

/**
 * What plans tell of their spending, in D1: one row per plan, day and tool.
 *
 * Promise: written in the transaction of the plan's index row and only where that row is the newest, so a report that comes twice, late or
 * out of order changes nothing; what is not told any more is held no longer.
 */
export function spendStatements(db: D1Database, row: PlanIndexRow, { profile, rows }: PlanSpend): readonly D1PreparedStatement[] {
  const { org, planId, seq, sessionId, updatedAt } = row;
  const told = JSON.stringify(rows.map((each) => ({ ...each, tool: each.tool ?? '' })));
  return [
    db.prepare(RELEASE).bind(org, planId, seq, told),
    ...(rows.length === 0 ? [] : [db.prepare(TELL).bind(org, planId, seq, told, sessionId, profile, updatedAt)]),
  ];
}

const IS_NEWEST = '(SELECT seq FROM plans WHERE org = ?1 AND plan_id = ?2) = ?3';

const RELEASE = `
  UPDATE plan_spend SET reserved = 0
  WHERE org = ?1 AND plan_id = ?2 AND reserved > 0 AND ${IS_NEWEST}
    AND NOT EXISTS (SELECT 1 FROM json_each(?4) WHERE value ->> '$.day' = plan_spend.day AND value ->> '$.tool' = plan_spend.tool)`;

/** Nothing is charged before a plan moves to another session, so its rows move with it. */
const TELL = `
  INSERT INTO plan_spend (org, plan_id, day, tool, session_id, profile, spent, reserved, at)
  SELECT ?1, ?2, value ->> '$.day', value ->> '$.tool', ?5, ?6, value ->> '$.spentMicroUsd', value ->> '$.reservedMicroUsd', ?7
  FROM json_each(?4) WHERE ${IS_NEWEST}
  ON CONFLICT (org, plan_id, day, tool) DO UPDATE
  SET session_id = excluded.session_id, profile = excluded.profile, spent = excluded.spent, reserved = excluded.reserved, at = excluded.at
  WHERE excluded.spent <> plan_spend.spent OR excluded.reserved <> plan_spend.reserved 
    OR excluded.session_id <> plan_spend.session_id OR excluded.profile IS NOT plan_spend.profile`;

/** Of a plan that was closed: first what is missing of the charges, then nothing is held. */
export function closingStatements(db: D1Database, row: PlanIndexRow, { days }: ClosedSpend): readonly D1PreparedStatement[] {
  const { org, planId, sessionId, profile, updatedAt } = row;
  return [
    db.prepare(CHARGE_REST).bind(org, planId, JSON.stringify(days), sessionId, profile, updatedAt),
    db.prepare('UPDATE plan_spend SET reserved = 0 WHERE org = ? AND plan_id = ? AND reserved > 0').bind(org, planId),
  ];
}

/** What its rows tell of a day already, the one of no tool among them, is not charged again: so the statement may be repeated. */
const CHARGE_REST = `
  INSERT INTO plan_spend (org, plan_id, day, tool, session_id, profile, spent, reserved, at)
  SELECT ?1, ?2, day, '', ?4, ?5, charged - told, 0, ?6
  FROM (
    SELECT value ->> '$.day' AS day, value ->> '$.chargedMicroUsd' AS charged,
      (SELECT coalesce(sum(spent), 0) FROM plan_spend WHERE org = ?1 AND plan_id = ?2 AND day = value ->> '$.day') AS told
    FROM json_each(?3)
  ) WHERE charged > told
  ON CONFLICT (org, plan_id, day, tool) DO UPDATE SET spent = plan_spend.spent + excluded.spent, at = excluded.at`;

type Row = Readonly<Record<string, string | number>>;

export async function readSpending(db: D1Database, { org, of, day, limit }: SpendingQuery): Promise<Spending> {
  const [where, ...bound] =
    of.kind === 'org'
      ? ['org = ?', org]
      : of.kind === 'session'
        ? ['org = ? AND session_id = ?', org, of.id]
        : ['org = ? AND profile = ?', org, of.name];
  const grouped = (columns: string, keys: string): D1PreparedStatement =>
    db
      .prepare(
        `SELECT ${columns}, sum(spent) AS spent, sum(reserved) AS reserved, count(*) OVER () AS groups
         FROM plan_spend WHERE ${where} AND (spent > 0 OR reserved > 0)
         GROUP BY ${keys} ORDER BY sum(spent) + sum(reserved) DESC, ${keys} LIMIT ?`,
      )
      .bind(...bound, limit);
  const child = of.kind === 'org' ? 'session_id' : 'plan_id';
  const results = await db.batch<Row>([
    db
      .prepare(
        `SELECT coalesce(sum(spent), 0) AS spent, coalesce(sum(reserved), 0) AS reserved,
           coalesce(sum(CASE WHEN substr(day, 1, 7) = ? THEN reserved END), 0) AS monthly,
           coalesce(sum(CASE WHEN day = ? THEN reserved END), 0) AS daily,
           coalesce(sum(CASE WHEN substr(day, 1, 7) = ? THEN spent END), 0) AS spent_monthly,
           coalesce(sum(CASE WHEN day = ? THEN spent END), 0) AS spent_daily
         FROM plan_spend WHERE ${where}`,
      )
      .bind(windowKey('monthly', day), day, windowKey('monthly', day), day, ...bound),
    grouped('tool', 'tool'),
    grouped('plan_id, session_id, max(at) AS at', 'plan_id'),
    db
      .prepare(`SELECT ${child} AS child, sum(reserved) AS reserved FROM plan_spend WHERE ${where} AND reserved > 0 GROUP BY child`)
      .bind(...bound),
  ]);
  const [sums, tools, plans, children] = results.map((result) => result.results);
  const sum = (name: string): number => Number(sums?.[0]?.[name] ?? 0);
  const amounts = (row: Row) => ({ spentMicroUsd: Number(row['spent']), reservedMicroUsd: Number(row['reserved']) });
  return {
    spentMicroUsd: sum('spent'),
    reservedMicroUsd: sum('reserved'),
    spentIn: { total: sum('spent'), monthly: sum('spent_monthly'), daily: sum('spent_daily') },
    reservedIn: { total: sum('reserved'), monthly: sum('monthly'), daily: sum('daily') },
    tools: (tools ?? []).map((row) => ({ tool: row['tool'] === '' ? null : String(row['tool']), ...amounts(row) })),
    toolCount: Number(tools?.[0]?.['groups'] ?? 0),
    plans: (plans ?? []).map((row) => ({
      planId: String(row['plan_id']),
      sessionId: String(row['session_id']),
      at: String(row['at']),
      ...amounts(row),
    })),
    planCount: Number(plans?.[0]?.['groups'] ?? 0),
    reservedByChild: new Map((children ?? []).map((row) => [String(row['child']), Number(row['reserved'])])),
  };
}
