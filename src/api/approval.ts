import * as z from 'zod';
import { Grant } from '../core/grant.ts';
import { APPROVAL_KINDS } from '../core/plan/plan.ts';
import { COMMON_ERRORS, defineOperation } from './operation.ts';
import { approvalId, digest, nextPageToken, optional, pageSize, pageToken, planId, text } from './schemas.ts';
import { approvalView, planView } from './views.ts';

export const approvalList = defineOperation({
  name: '_cleveragents/approval/list',
  summary: 'What waits for a human',
  role: 'viewer',
  params: z.strictObject({
    plan_id: optional(planId),
    kind: optional(z.enum(APPROVAL_KINDS).meta({ description: 'Only approvals of this kind' })),
    page_size: pageSize,
    page_token: pageToken,
  }),
  result: z.object({ approvals: z.array(approvalView), next_page_token: nextPageToken }),
  errors: [...COMMON_ERRORS, 'not_found'],
  idempotent: true,
  cli: { command: ['approvals', 'list'] },
});

export const approvalDecide = defineOperation({
  name: '_cleveragents/approval/decide',
  summary: 'Approve, deny or answer exactly one pending approval; only a human with the right to approve decides more than questions',
  role: 'approver',
  // A question may be answered by whoever works with the plan; the state says which of the two it is.
  alternativeRoles: ['operator'],
  freshKey: true,
  params: z
    .strictObject({
      approval_id: approvalId,
      decision: z.enum(['approve', 'deny', 'answer'], 'must be approve, deny or answer'),
      digest: optional(digest.meta({ description: 'Digest of the approval that was shown; a mismatch refuses' })),
      reason: optional(text(2000).meta({ description: 'Why; told to the actor when denied' })),
      text: optional(text(20_000).meta({ description: 'The answer to a question, or the choice' })),
      grant: optional(Grant),
    })
    .superRefine((value, context) => {
      if (value.decision === 'answer' && value.text === undefined) {
        context.addIssue({ code: 'custom', path: ['text'], message: 'an answer needs a text' });
      }
      if (value.decision !== 'approve' && value.grant !== undefined) {
        context.addIssue({ code: 'custom', path: ['grant'], message: 'only an approval can grant more' });
      }
    }),
  result: z.object({ approval: approvalView, plan: planView }),
  errors: [...COMMON_ERRORS, 'not_found', 'invalid_state', 'budget_exceeded'],
});
