import type { OutcomeRow, OutcomeStore } from '../../app/ports.ts';
import { OUTCOME_WINDOW } from '../../core/confidence.ts';
import { RISK_CLASSES, type RiskClass } from '../../core/tool.ts';
import { d1Call } from './d1-call.ts';

/** Rows in one statement; the longest names keep it well below D1's 2 MB for a value. */
const ROWS_PER_STATEMENT = 200;

/** Outcomes in D1: one table of judged decisions, one of how each plan stands. */
export function makeOutcomeStore(db: D1Database): OutcomeStore {
  return {
    async record(rows) {
      const decisions = rows.filter(({ kind }) => kind !== 'plan');
      const verdicts = rows.filter(({ kind }) => kind === 'plan');
      const statements = [...writesOf(db, RECORD_DECISIONS, decisions), ...writesOf(db, RECORD_VERDICTS, verdicts)];
      if (statements.length > 0) await d1Call('outcomes.record', () => db.batch(statements));
    },

    async statistics({ org, project, actor, action }) {
      const calls = RISK_CLASSES.map((riskClass) => db.prepare(RECENT_CALLS).bind(org, project, actor, riskClass, OUTCOME_WINDOW));
      const plans = db.prepare(RECENT_PLANS).bind(org, action, project, OUTCOME_WINDOW);
      const results = await d1Call('outcomes.statistics', () => db.batch<{ ok: number; total: number }>([plans, ...calls]));
      const [ofPlans, ...ofCalls] = results.map(({ results: [row] }) => ({ ok: row?.ok ?? 0, total: row?.total ?? 0 }));
      const known = RISK_CLASSES.flatMap((riskClass, index) => {
        const counts = ofCalls[index];
        return counts === undefined || counts.total === 0 ? [] : [[riskClass, counts] as const];
      });
      return { plans: ofPlans ?? { ok: 0, total: 0 }, calls: Object.fromEntries(known) };
    },

    async judged({ org, action, project, actor }, limit) {
      const statement = db.prepare(JUDGED).bind(org, action ?? null, project ?? null, actor ?? null, limit);
      const { results } = await d1Call('outcomes.judged', () =>
        statement.all<{ risk_class: RiskClass; confidence: number; outcome: string; n: number }>(),
      );
      return results.map((row) => ({ riskClass: row.risk_class, confidence: row.confidence, ok: row.outcome === 'ok', count: row.n }));
    },
  };
}

function writesOf(db: D1Database, statement: string, rows: readonly OutcomeRow[]): readonly D1PreparedStatement[] {
  const count = Math.ceil(rows.length / ROWS_PER_STATEMENT);
  return Array.from({ length: count }, (_, n) =>
    db.prepare(statement).bind(JSON.stringify(rows.slice(n * ROWS_PER_STATEMENT, (n + 1) * ROWS_PER_STATEMENT))),
  );
}

/** What is there stays: a row of a log never says anything else the second time. */
const RECORD_DECISIONS = `
  INSERT OR IGNORE INTO outcomes
    (org, plan_id, seq, kind, risk_class, actor, action, project, confidence, threshold, gate, outcome, at)
  SELECT value ->> '$.org', value ->> '$.planId', value ->> '$.seq', value ->> '$.kind', value ->> '$.riskClass', value ->> '$.actor',
    value ->> '$.action', value ->> '$.project', value ->> '$.confidence', value ->> '$.threshold', value ->> '$.gate',
    value ->> '$.outcome', value ->> '$.at'
  FROM json_each(?1)`;

/** The later word of a plan counts, in whatever order the words come. */
const RECORD_VERDICTS = `
  INSERT INTO plan_outcomes (org, plan_id, seq, action, project, outcome, at)
  SELECT value ->> '$.org', value ->> '$.planId', value ->> '$.seq', value ->> '$.action', value ->> '$.project', value ->> '$.outcome',
    value ->> '$.at'
  FROM json_each(?1) WHERE true
  ON CONFLICT (org, plan_id) DO UPDATE SET
    seq = excluded.seq, action = excluded.action, project = excluded.project, outcome = excluded.outcome, at = excluded.at
  WHERE excluded.seq > plan_outcomes.seq`;

const COUNTS = "SELECT coalesce(sum(outcome = 'ok'), 0) AS ok, count(*) AS total";

export const RECENT_CALLS = `${COUNTS} FROM (
  SELECT outcome FROM outcomes WHERE org = ?1 AND project IS ?2 AND actor = ?3 AND risk_class = ?4 AND kind = 'call'
  ORDER BY at DESC, plan_id DESC, seq DESC LIMIT ?5)`;

export const RECENT_PLANS = `${COUNTS} FROM (
  SELECT outcome FROM plan_outcomes WHERE org = ?1 AND action = ?2 AND project IS ?3
  ORDER BY at DESC, plan_id DESC LIMIT ?4)`;

/** The newest plans first: their ids rise with time, so the primary key is the order. */
export const JUDGED = `
  SELECT risk_class, confidence, outcome, count(*) AS n FROM (
    SELECT o.risk_class, o.confidence, coalesce(o.outcome, p.outcome) AS outcome
    FROM outcomes AS o LEFT JOIN plan_outcomes AS p ON o.outcome IS NULL AND p.org = o.org AND p.plan_id = o.plan_id
    WHERE o.org = ?1 AND o.confidence IS NOT NULL AND coalesce(o.outcome, p.outcome) IS NOT NULL
      AND (?2 IS NULL OR o.action = ?2) AND (?3 IS NULL OR o.project = ?3) AND (?4 IS NULL OR o.actor = ?4)
    ORDER BY o.plan_id DESC, o.seq DESC LIMIT ?5)
  GROUP BY risk_class, confidence, outcome`;
