/** Whether a plan that has stopped can go on at all: what it would be refused by before it has begun (design section 8). */

import { toUsd } from '../core/money.ts';
import type { PlanSnapshot } from '../core/plan/snapshot.ts';
import type { Refusal } from '../core/refusal.ts';
import { exhaustedOrg } from './admission.ts';
import { LeftReader } from './left-above.ts';
import { pendingOf } from './plan-view.ts';
import type { Services } from './services.ts';

/**
 * Why a stopped plan cannot go on for want of money above it; null: nothing says so. It waits for a call that no budget of its session,
 * org or profile lets it pay, and nothing in the plan can grant that; or it has failed, and its org has nothing left to begin anything
 * with. Where a level does not answer, nothing is said of it.
 */
export async function resumeIssue(snapshot: PlanSnapshot, services: Services): Promise<Refusal | null> {
  const { plan } = snapshot;
  if (plan.state === 'errored' && !plan.terminal) return exhaustedOrg(plan.org, services);
  for (const { id, reason, kind, guard, subject } of pendingOf(plan)) {
    const { exceeded_level: level, actual, spent } = subject.details ?? {};
    if (kind !== 'limit' || guard !== 'budget_cap' || typeof actual !== 'number' || typeof spent !== 'number') continue;
    if (level !== 'session' && level !== 'org' && level !== 'profile') continue;
    const leftMicroUsd = (await new LeftReader(services).of(plan))[level];
    // Gone, or less than it takes; where the cap was raised meanwhile the plan goes on by itself.
    if (leftMicroUsd === undefined || toUsd(leftMicroUsd) >= actual - spent) continue;
    return { kind: 'budget_exceeded', message: reason, details: { ...subject.details, plan_id: plan.id, approval_id: id } };
  }
  return null;
}
