import { isWriteClass } from '../tool.ts';
import type { Guard } from './guard.ts';

/**
 * Under `require_approval_for_writes` every call that changes something needs a human; under `require_approval_for_apply` every write that
 * is in the project at once does, since no apply comes after it.
 */
export const writeApprovalGuard: Guard = {
  name: 'write_approval',
  events: { allowed: 'write_approval_granted', refused: 'write_approval_required' },
  check: ({ requireApprovalForWrites, requireApprovalForApply }, { effectiveClass, shownName, appliesAtOnce }) => {
    if (!isWriteClass(effectiveClass)) return null;
    if (requireApprovalForWrites) {
      return {
        reason: `Tool '${shownName}' performs a write operation. Remediation: disable require_approval_for_writes or request human approval.`,
        approval: 'call',
      };
    }
    if (!requireApprovalForApply || appliesAtOnce !== true) return null;
    return {
      reason: `Tool '${shownName}' writes to the project at once. Remediation: disable require_approval_for_apply or request human approval.`,
      approval: 'call',
    };
  },
};
