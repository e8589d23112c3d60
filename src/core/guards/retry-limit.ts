import { effectiveLimit } from '../guard-policy.ts';
import type { Guard } from './guard.ts';
import { limitReached } from './limits.ts';

/** N retries are N + 1 attempts: the nth retry is allowed iff n ≤ N. Calls after another tool's success count on. */
export const retryLimitGuard: Guard = {
  name: 'retry_limit',
  events: { allowed: 'retry_allowed', refused: 'retry_blocked' },
  check: ({ maxRetries: bound }, _call, { retriesOfCall, grants }) => {
    const limit = effectiveLimit(bound, grants.retries);
    if (bound === null || limit === null || retriesOfCall <= limit) return null;
    return limitReached('Retry limit', bound, grants.retries, { actual: retriesOfCall - 1, limit, reduce: 'fix the cause' });
  },
};
