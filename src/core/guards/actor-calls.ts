import { effectiveLimit } from '../guard-policy.ts';
import type { Guard } from './guard.ts';
import { limitReached } from './limits.ts';

/** Bounds the calls of one actor invocation: refused iff the calls so far have reached the limit. */
export const actorCallsGuard: Guard = {
  name: 'actor_tool_calls',
  events: { allowed: 'actor_limit_allowed', refused: 'actor_limit_blocked' },
  check: ({ maxCallsPerInvocation: bound }, _call, { callsInInvocation, grants }) => {
    const limit = effectiveLimit(bound, grants.calls);
    if (bound === null || limit === null || callsInInvocation < limit) return null;
    return limitReached('Actor tool call limit', bound, grants.calls, { actual: callsInInvocation, limit, reduce: 'reduce tool usage' });
  },
};
