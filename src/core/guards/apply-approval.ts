import type { GuardPolicy } from '../guard-policy.ts';
import type { AuditEventType, Objection } from './guard.ts';

/** Under `require_approval_for_apply` the transition Execute → Apply needs a human's approval of exactly what is applied. */
export const applyApprovalGuard = {
  name: 'apply_approval',
  events: { allowed: 'apply_approval_granted', refused: 'apply_approval_required' } satisfies Record<string, AuditEventType>,
  check: ({ requireApprovalForApply }: GuardPolicy): Objection | null =>
    requireApprovalForApply
      ? {
          reason: 'Apply requires human approval. Remediation: disable require_approval_for_apply or request human approval.',
          approval: 'call',
        }
      : null,
};
