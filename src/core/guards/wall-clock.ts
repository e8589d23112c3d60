import { effectiveLimit } from '../guard-policy.ts';
import type { Guard } from './guard.ts';
import { limitReached } from './limits.ts';

/** Bounds the time in which the plan works. Waiting for a human is not in `workedMs`. Refused when the time is used up. */
export const wallClockGuard: Guard = {
  name: 'wall_clock',
  events: { allowed: 'time_allowed', refused: 'time_blocked' },
  check: ({ maxWallClockSeconds: bound }, _call, { workedMs, grants }) => {
    const limit = effectiveLimit(bound, grants.seconds);
    if (bound === null || limit === null || workedMs < limit * 1000) return null;
    return limitReached('Wall-clock limit', bound, grants.seconds, { actual: workedMs / 1000, limit, unit: 's', reduce: 'do less' });
  },
};
