import type { Guard } from './guard.ts';

/** Nothing is authorised under a kill switch, nor unless the plan is running. Only lifting the one or resuming the other helps. */
export const stateGuard: Guard = {
  name: 'state',
  events: { allowed: 'state_allowed', refused: 'state_blocked' },
  check: (_policy, _call, facts) => {
    if (facts.halted !== null) {
      return { reason: `Halted: ${facts.halted}. Remediation: lift the kill switch.`, approval: 'none' };
    }
    if (facts.running) return null;
    return { reason: 'The plan is not running. Remediation: resume it, or answer what it waits for.', approval: 'none' };
  },
};
