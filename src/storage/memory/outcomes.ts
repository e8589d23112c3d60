import type { OutcomeRow, OutcomeStore } from '../../app/ports.ts';
import type { JudgedGroup } from '../../core/calibration.ts';
import { OUTCOME_WINDOW } from '../../core/confidence.ts';
import { RISK_CLASSES } from '../../core/tool.ts';
import { compareText, Documents } from './documents.ts';

/** Outcomes in memory. */
export function makeMemoryOutcomeStore(): OutcomeStore {
  const decisions = new Documents<Exclude<OutcomeRow, { kind: 'plan' }>>();
  const verdicts = new Documents<Extract<OutcomeRow, { kind: 'plan' }>>();
  return {
    async record(rows) {
      for (const row of rows) {
        if (row.kind !== 'plan') {
          decisions.add(row, row.org, row.planId, String(row.seq));
        } else if (row.seq > (verdicts.get(row.org, row.planId)?.seq ?? 0)) {
          verdicts.set(row, row.org, row.planId);
        }
      }
    },

    async statistics({ org, project, actor, action }) {
      const calls = RISK_CLASSES.flatMap((riskClass) => {
        const isOf = (row: OutcomeRow) => row.kind === 'call' && row.org === org && row.project === project && row.actor === actor;
        const counts = countNewest(decisions.where((row) => isOf(row) && row.riskClass === riskClass));
        return counts.total === 0 ? [] : [[riskClass, counts] as const];
      });
      const plans = countNewest(verdicts.where((row) => row.org === org && row.action === action && row.project === project));
      return { plans, calls: Object.fromEntries(calls) };
    },

    async judged({ org, action, project, actor }, limit) {
      const groups = new Map<string, JudgedGroup>();
      const wanted = decisions
        .where((row) => row.org === org && (action ?? row.action) === row.action && (actor ?? row.actor) === row.actor)
        .filter((row) => (project ?? row.project) === row.project)
        .sort((a, b) => compareText(b.planId, a.planId) || b.seq - a.seq)
        .flatMap(({ riskClass, confidence, outcome, planId }) => {
          const happened = outcome ?? verdicts.get(org, planId)?.outcome ?? null;
          return confidence === null || happened === null ? [] : [{ riskClass, confidence, ok: happened === 'ok' }];
        });
      for (const each of wanted.slice(0, limit)) {
        const key = JSON.stringify(each);
        groups.set(key, { ...each, count: (groups.get(key)?.count ?? 0) + 1 });
      }
      return [...groups.values()];
    },
  };
}

function countNewest(rows: readonly OutcomeRow[]): { readonly ok: number; readonly total: number } {
  const newest = rows
    .toSorted((a, b) => compareText(b.at, a.at) || compareText(b.planId, a.planId) || b.seq - a.seq)
    .slice(0, OUTCOME_WINDOW);
  return { ok: newest.filter(({ outcome }) => outcome === 'ok').length, total: newest.length };
}
