import type { Refusal } from '../../refusal.ts';
import { invalidField, invalidState, notFound } from '../../refusal.ts';
import { err, ok, type Result } from '../../result.ts';
import type { Command } from '../commands.ts';
import { findApproval, pendingApprovals } from '../plan.ts';
import { SYSTEM, type Work } from '../work.ts';
import { askNextStep, REMINDER_MS } from './open-approval.ts';

/** Time passes: reminds once a day before an approval expires, and closes what has expired; the plan then asks how to go on. */
export function tick(work: Work): void {
  const { now } = work.context;
  for (const approval of pendingApprovals(work.plan())) {
    if (approval.expiresAt === null) continue;
    if (now >= approval.expiresAt) {
      work.emit('approval_closed', SYSTEM, { approval_id: approval.id, status: 'expired', reason: `nobody answered until ${approval.expiresAt}` });
      if (pendingApprovals(work.plan()).length === 0) askNextStep(work, `The approval of ${approval.gate ?? approval.guard ?? approval.kind} expired.`);
    } else if (!approval.reminded && Date.parse(approval.expiresAt) - Date.parse(now) <= REMINDER_MS) {
      work.emit('approval_reminded', SYSTEM, { approval_id: approval.id });
    }
  }
}

export function extendApproval(work: Work, command: Extract<Command, { type: 'extend' }>): Result<null, Refusal> {
  const approval = findApproval(work.plan(), command.approvalId);
  if (approval === null) return err(notFound('approval', command.approvalId));
  if (approval.status !== 'pending') return err(invalidState(`the approval is already ${approval.status}`, { approval_id: approval.id }));
  if (!command.by.mayApprove) return err({ kind: 'forbidden', message: 'only a human with the role approver can extend an approval' });
  if (command.expiresAt <= work.context.now) return err(invalidField('expires_at', 'must be in the future'));
  work.emit('approval_extended', command.by.actor, { approval_id: approval.id, expires_at: command.expiresAt });
  return ok(null);
}
