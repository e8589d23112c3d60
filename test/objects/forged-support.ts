import type { LogRow } from '../../src/core/plan/events.ts';
import { replay as fold } from '../../src/core/plan/evolve.ts';
import type { DiffSummary, Plan } from '../../src/core/plan/plan.ts';

/** The state that a log tells; a log without one is a mistake of the test. */
export function replay(rows: readonly LogRow[]): Plan {
  const plan = fold(rows);
  if (plan === null) throw new Error('no plan in the log');
  return plan;
}

/** The diff that waits for its approval. */
export function diffOf(plan: Plan): DiffSummary {
  const diff = plan.approvals.find((approval) => approval.subject.diff !== undefined)?.subject.diff;
  if (diff === undefined) throw new Error('no diff waits');
  return diff;
}
