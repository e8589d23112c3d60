import { matchesAnyFolded } from '../names.ts';
import type { Guard } from './guard.ts';

/**
 * A denied tool needs a human for every call, whatever the confidence and whatever an allowlist says. Entries are compared folded
 * with every name of the tool, so that aliases and look-alikes are denied with it. What the org denies stays denied.
 */
export const denylistGuard: Guard = {
  name: 'denylist',
  events: { allowed: 'denylist_allowed', refused: 'denylist_blocked' },
  check: ({ denylist }, { foldedNames, shownName }) => {
    const hits = denylist.filter(({ pattern }) => matchesAnyFolded(pattern, foldedNames));
    const hit = hits.find(({ origin }) => origin === 'org') ?? hits[0];
    if (hit === undefined) return null;
    const by = hit.pattern === shownName ? '' : ` (pattern '${hit.pattern}')`;
    if (hit.origin === 'org') {
      return {
        reason: `Tool '${shownName}' is on the denylist${by}. Remediation: remove it from the denylist of the org.`,
        approval: 'none',
      };
    }
    return {
      reason: `Tool '${shownName}' is on the denylist${by}. Remediation: remove it from the denylist or request human approval.`,
      approval: 'call',
    };
  },
};
