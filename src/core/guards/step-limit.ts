import { effectiveLimit } from '../guard-policy.ts';
import type { Guard } from './guard.ts';
import { limitReached } from './limits.ts';

/** Step n is allowed iff n ≤ `max_steps`. A retry is not a step. */
export const stepLimitGuard: Guard = {
  name: 'step_limit',
  events: { allowed: 'step_allowed', refused: 'step_blocked' },
  check: ({ maxSteps: bound }, _call, { stepNumber, grants }) => {
    const limit = effectiveLimit(bound, grants.steps);
    if (bound === null || limit === null || stepNumber <= limit) return null;
    return limitReached('Step limit', bound, grants.steps, { actual: stepNumber - 1, limit, reduce: 'use fewer steps' });
  },
};
