import { isWriteClass } from '../tool.ts';
import type { Guard } from './guard.ts';

/** Under `require_approval_for_writes` every call that changes something needs a human. */
export const writeApprovalGuard: Guard = {
  name: 'write_approval',
  events: { allowed: 'write_approval_granted', refused: 'write_approval_required' },
  check: ({ requireApprovalForWrites }, { effectiveClass, shownName }) => {
    if (!requireApprovalForWrites || !isWriteClass(effectiveClass)) return null;
    return {
      reason: `Tool '${shownName}' performs a write operation. Remediation: disable require_approval_for_writes or request human approval.`,
      approval: 'call',
    };
  },
};
