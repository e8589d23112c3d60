import type { Guard } from './guard.ts';

/** Under `require_human_approval` no call is made in a step that no human approved. */
export const stepApprovalGuard: Guard = {
  name: 'step_approval',
  events: { allowed: 'step_approval_granted', refused: 'step_approval_required' },
  check: ({ requireHumanApproval }, _call, { stepApproved, stepNumber }) => {
    if (!requireHumanApproval || stepApproved) return null;
    return { reason: `Step ${stepNumber} requires human approval. Remediation: request human approval.`, approval: 'call' };
  },
};
