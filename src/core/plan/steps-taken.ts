import { effectiveLimit } from '../guard-policy.ts';
import type { Plan } from './plan.ts';

/**
 * The steps that count against `max_steps`. The step that the limit has refused is not one of them: it stands in the plan with its number
 * while it is asked about, and the next one takes that number when it stays refused.
 */
export function stepsTaken(plan: Pick<Plan, 'stepsUsed' | 'callsInStep' | 'step' | 'policy' | 'grants' | 'external'>): number {
  const { stepsUsed, callsInStep, step, policy, grants, external } = plan;
  const limit = effectiveLimit(policy.maxSteps, grants.steps);
  // An executor outside numbers its own steps, and only those in which something was allowed are counted.
  if (limit === null || external !== undefined || step?.kind === 'ask') return stepsUsed;
  return stepsUsed > limit && callsInStep === 0 ? stepsUsed - 1 : stepsUsed;
}
