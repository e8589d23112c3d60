import type { Guard } from './guard.ts';

/** Under `require_human_approval` no call is made in a step that no human approved. The approval names the calls of the step it is for. */
export const stepApprovalGuard: Guard = {
  name: 'step_approval',
  events: { allowed: 'step_approval_granted', refused: 'step_approval_required' },
  check: ({ requireHumanApproval }, _call, { stepNumber }) => {
    if (!requireHumanApproval) return null;
    return { reason: `Step ${stepNumber} requires human approval. Remediation: request human approval.`, approval: 'call' };
  },
};
