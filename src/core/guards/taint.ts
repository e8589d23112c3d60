import type { RiskClass } from '../tool.ts';
import type { Guard } from './guard.ts';

const LEAVES_THE_PLAN: readonly RiskClass[] = ['external_write_revertible', 'external_write', 'unsafe'];

/** What came from outside may not decide by itself what goes outside: such a call needs a human. In the workspace it only lowers the confidence. */
export const taintGuard: Guard = {
  name: 'taint',
  events: { allowed: 'taint_allowed', refused: 'taint_blocked' },
  check: (_policy, { effectiveClass, shownName }, { tainted }) => {
    if (!tainted || !LEAVES_THE_PLAN.includes(effectiveClass)) return null;
    return {
      reason: `Arguments of tool '${shownName}' derive from outside content. Remediation: check the arguments and request human approval.`,
      approval: 'call',
    };
  },
};
