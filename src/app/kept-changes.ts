/**
 * The work of a plan that stopped before anybody was shown its diff: it lies in the workspace, or is in the project where writes go there at
 * once, and readers of the plan are told (design section 7).
 */
import type { Artifact } from '../a2a/model.ts';
import type { PlanSnapshot } from '../core/plan/snapshot.ts';
import { pendingOf } from './plan-view.ts';
import type { PlanPort } from './ports.ts';

/**
 * The changes of a plan that waits at a limit or ended in an error, as a draft; null: there are none, or the plan is at another place, where
 * its diff is shown by other means or may still change by itself. Computed by the plan's object, so for readers of one plan, not for lists.
 */
export async function keptChanges(snapshot: PlanSnapshot, port: Pick<PlanPort, 'diff'>): Promise<Artifact | null> {
  if (!hasStopped(snapshot)) return null;
  const diff = await port.diff();
  if (diff === null || diff.files.length === 0) return null;
  const count = `${diff.files.length} ${diff.files.length === 1 ? 'file' : 'files'}`;
  return {
    artifactId: 'changes.diff',
    name: 'changes.diff',
    description: `${snapshot.plan.written === undefined ? 'What the plan has done so far, not applied' : 'What the plan has written to its project at once'}: ${count}, +${diff.additions} -${diff.deletions}`,
    parts: [{ kind: 'text', text: diff.patch, mediaType: 'text/x-diff', filename: 'changes.diff' }],
    ...(snapshot.plan.written === undefined ? { metadata: { draft: true } } : {}),
  };
}

function hasStopped({ plan }: PlanSnapshot): boolean {
  if (plan.external !== undefined || plan.artifacts.some(({ artifactId }) => artifactId === 'changes.diff')) return false;
  const pending = pendingOf(plan);
  if (pending.some(({ subject }) => subject.diff !== undefined)) return false;
  return (
    plan.state === 'errored' || (plan.state === 'cancelled' && plan.written !== undefined) || pending.some(({ kind }) => kind === 'limit')
  );
}
