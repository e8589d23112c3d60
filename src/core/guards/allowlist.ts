import { matchesPattern } from '../names.ts';
import type { Guard, GuardedCall } from './guard.ts';

/** A tool must be on every allowlist that is set; an empty one allows nothing. Entries are compared exactly, after aliases are resolved. */
export const allowlistGuard: Guard = {
  name: 'allowlist',
  events: { allowed: 'allowlist_allowed', refused: 'allowlist_blocked' },
  check: ({ allowlists }, call) => {
    const missing = allowlists.filter(({ entries }) => !entries.some((entry) => permits(entry, call)));
    if (missing.length === 0) return null;
    if (missing.some(({ origin }) => origin === 'org')) {
      return {
        reason: `Tool '${call.shownName}' is not on the allowlist. Remediation: add it to the allowlist of the org.`,
        approval: 'none',
      };
    }
    return {
      reason: `Tool '${call.shownName}' is not on the allowlist. Remediation: add it to the allowlist or request human approval.`,
      approval: 'call',
    };
  },
};

function permits(entry: string, { canonicalName, catalogue }: GuardedCall): boolean {
  if (canonicalName === null) return false;
  return matchesPattern(entry, canonicalName) || catalogue.canonical(entry) === canonicalName;
}
