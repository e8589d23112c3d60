import { dayOf } from '../core/budget/window.ts';
import type { PublicPlan } from '../core/plan/snapshot.ts';
import { type BudgetRef, StorageUnavailable } from './ports.ts';
import type { Services } from './services.ts';

/** What is not spent yet at the levels above a plan, in micro-USD; only those that have a cap. */
export interface LeftAbove {
  readonly session?: number;
  readonly org?: number;
}

/**
 * What is left of the session's and the org's budget, so that a calling agent sees it without our operations (design section 11): the
 * smallest over their windows. Nothing of a plan that has ended, and nothing of a level that does not answer: it is information, and a
 * task is shown without it.
 */
export async function leftAbove({ org, sessionId, terminal }: PublicPlan, services: Services): Promise<LeftAbove> {
  if (terminal) return {};
  const [session, ofOrg] = await Promise.all([
    leftAt(org, { kind: 'session', id: sessionId }, services),
    leftAt(org, { kind: 'org' }, services),
  ]);
  return { ...(session === null ? {} : { session }), ...(ofOrg === null ? {} : { org: ofOrg }) };
}

async function leftAt(org: string, ref: BudgetRef, { budgets, clock }: Services): Promise<number | null> {
  try {
    const { caps } = await budgets.node(org, ref).show(dayOf(clock.nowMs()));
    // What is leased and not charged is somebody's only until somebody else needs it.
    const left = caps.flatMap(({ capMicroUsd, spentMicroUsd }) => (capMicroUsd === null ? [] : [Math.max(0, capMicroUsd - spentMicroUsd)]));
    return left.length === 0 ? null : Math.min(...left);
  } catch (cause) {
    if (cause instanceof StorageUnavailable) return null;
    throw cause;
  }
}
