import type { PlanSnapshot } from '../core/plan/snapshot.ts';
import { LogDamaged, type PlanIndexRow } from './ports.ts';
import type { Services } from './services.ts';

/** The plans of a page of the index, without those whose log is damaged: one of them must not hide the others. Asked for itself, it says so. */
export async function readListed(rows: readonly PlanIndexRow[], { plans }: Services): Promise<readonly PlanSnapshot[]> {
  const read = async ({ org, planId }: PlanIndexRow): Promise<readonly PlanSnapshot[]> => {
    try {
      const snapshot = await plans.plan(org, planId).read();
      return snapshot === null ? [] : [snapshot];
    } catch (cause) {
      if (cause instanceof LogDamaged) return [];
      throw cause;
    }
  };
  return (await Promise.all(rows.map(read))).flat();
}
