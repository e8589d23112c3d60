import type { Guard } from './guard.ts';

/** Under `require_sandbox` nothing outside the plan changes before apply. No approval replaces it. */
export const sandboxGuard: Guard = {
  name: 'sandbox',
  events: { allowed: 'sandbox_allowed', refused: 'sandbox_blocked' },
  check: ({ requireSandbox }, { changesOutside, shownName }) => {
    if (!requireSandbox || !changesOutside) return null;
    return {
      reason: `Tool '${shownName}' would change something outside the sandbox. Remediation: hold the change back until apply, or use a profile without require_sandbox.`,
      approval: 'none',
    };
  },
};
