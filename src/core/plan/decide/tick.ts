import type { Refusal } from '../../refusal.ts';
import { invalidField, invalidState, notFound } from '../../refusal.ts';
import { err, ok, type Result } from '../../result.ts';
import type { Command } from '../commands.ts';
import { isExternal } from '../external/external.ts';
import { findApproval, pendingApprovals } from '../plan.ts';
import { SYSTEM, type Work } from '../work.ts';
import { askNextStep, REMINDER_MS } from './open-approval.ts';
import { settleCall } from './settle.ts';
import { endRetention, expireAuthorizations } from './settle-external.ts';

/** Time passes: what was on the way when the plan ended is charged; a live plan reminds once a day before an approval expires, and closes what has expired; the plan then asks how to go on. */
export function tick(work: Work): void {
  const { now } = work.context;
  if (endRetention(work)) return;
  if (isExternal(work.plan())) expireAuthorizations(work);
  if (work.plan().terminal) {
    if (isExternal(work.plan())) return;
    // Asked for only when nobody performs the call any more (next-task.ts): it was sent, so it is paid for.
    for (const call of Object.values(work.plan().calls)) {
      if (call.status === 'sent')
        settleCall(work, call.id, call.attempt, { status: 'unknown', reason: 'the plan ended before its outcome was known' });
    }
    return;
  }
  for (const approval of pendingApprovals(work.plan())) {
    if (approval.expiresAt === null) continue;
    if (now >= approval.expiresAt) {
      work.emit('approval_closed', SYSTEM, {
        approval_id: approval.id,
        status: 'expired',
        reason: `nobody answered until ${approval.expiresAt}`,
      });
      // An executor outside asks again by itself.
      const isAsked = isExternal(work.plan()) || pendingApprovals(work.plan()).some((each) => each.kind === 'next_step');
      if (!isAsked) askNextStep(work, `The approval of ${approval.gate ?? approval.guard ?? approval.kind} expired.`);
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
  const { now } = work.context;
  if (approval.expiresAt !== null && now >= approval.expiresAt)
    return err(invalidState('the approval has expired', { approval_id: approval.id }));
  const expiresMs = Date.parse(command.expiresAt);
  if (!Number.isFinite(expiresMs) || expiresMs <= Date.parse(now)) return err(invalidField('expires_at', 'must be a time in the future'));
  // Instants in the log have one form, so that they compare as text.
  work.emit('approval_extended', command.by.actor, { approval_id: approval.id, expires_at: new Date(expiresMs).toISOString() });
  return ok(null);
}
