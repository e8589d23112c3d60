import type { Guard } from './guard.ts';

/** Unsafe tools run only under a profile that allows them; no approval replaces it. */
export const unsafeToolsGuard: Guard = {
  name: 'unsafe_tools',
  events: { allowed: 'unsafe_allowed', refused: 'unsafe_blocked' },
  check: ({ allowUnsafeTools }, { effectiveClass, shownName }) => {
    if (effectiveClass !== 'unsafe' || allowUnsafeTools) return null;
    return {
      reason: `Tool '${shownName}' is unsafe. Remediation: use a profile with allow_unsafe_tools, or another tool.`,
      approval: 'none',
    };
  },
};
