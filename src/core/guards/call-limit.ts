import { effectiveLimit } from '../guard-policy.ts';
import type { Guard } from './guard.ts';
import { limitReached } from './limits.ts';

/** A limit of N permits exactly N calls per step: refused iff the calls so far in the step have reached it. */
export const callLimitGuard: Guard = {
  name: 'tool_call_limit',
  events: { allowed: 'call_limit_allowed', refused: 'call_limit_blocked' },
  check: ({ maxCallsPerStep: bound }, _call, { callsInStep, grants }) => {
    const limit = effectiveLimit(bound, grants.calls);
    if (bound === null || limit === null || callsInStep < limit) return null;
    return limitReached('Tool call limit', bound, grants.calls, { actual: callsInStep, limit, reduce: 'reduce tool usage' });
  },
};
