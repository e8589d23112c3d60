import type { Guard } from './guard.ts';

/** A change of a path that the project protects needs a human for every call. */
export const protectedPathGuard: Guard = {
  name: 'protected_path',
  events: { allowed: 'protected_path_allowed', refused: 'protected_path_blocked' },
  check: (_policy, { protectedPaths, shownName }) => {
    if (protectedPaths.length === 0) return null;
    const shown = protectedPaths.slice(0, 5).join(', ') + (protectedPaths.length > 5 ? ` and ${protectedPaths.length - 5} more` : '');
    return {
      reason: `Tool '${shownName}' would change a protected path: ${shown}. Remediation: leave the path alone or request human approval.`,
      approval: 'call',
    };
  },
};
