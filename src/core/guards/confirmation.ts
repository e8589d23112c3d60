import { matchesFolded } from '../names.ts';
import type { Guard } from './guard.ts';

/** Operations in `required_confirmations` need a human for every call, at any confidence. Compared like a denylist: under every name. */
export const confirmationGuard: Guard = {
  name: 'confirmation',
  events: { allowed: 'confirmation_granted', refused: 'confirmation_required' },
  check: ({ requiredConfirmations }, { names, operation }) => {
    const all = operation === null ? names : [operation, ...names];
    const hit = all.find((name) => requiredConfirmations.some(({ pattern }) => matchesFolded(pattern, name)));
    if (hit === undefined) return null;
    return { reason: `Operation '${hit}' requires human confirmation. Remediation: request human approval.`, approval: 'call' };
  },
};
