import { AUTHORIZATION_TTL_MS, isHeld, MAX_PENDING_APPROVALS } from '../external/external.ts';
import { type Approval, type Call, pendingApprovals } from '../plan.ts';
import { SYSTEM, type Work } from '../work.ts';
import { openApprovals, openGate, type Ruling } from './calls.ts';

/**
 * Brings the questions about one call of an executor outside in line with what was just decided about it. Asking for the same call ten
 * times asks a human once, one question about a limit stands for every call behind it, and what is not needed any more is withdrawn.
 */
export function askForOutside(work: Work, ruling: Ruling): void {
  const plan = work.plan();
  const call = plan.calls[ruling.call.id];
  if (call === undefined || plan.terminal) return;
  const pending = pendingApprovals(plan);
  const kept = pending.find((approval) => stillFits(approval, call, ruling));
  // The question about a limit stands as long as anybody is behind it.
  const othersWait = Object.values(plan.calls).some((each) => each.id !== call.id && isHeld(each));
  for (const approval of pending) {
    if (approval === kept || !approval.callIds.includes(call.id) || (approval.kind === 'limit' && othersWait)) continue;
    const reason = `${call.id} was decided again: ${call.status === 'sent' ? 'it passes without this' : (call.reason ?? 'something else is in its way')}`;
    work.emit('approval_closed', SYSTEM, { approval_id: approval.id, status: 'revoked', reason });
  }
  if (kept !== undefined || pendingApprovals(work.plan()).length >= MAX_PENDING_APPROVALS) return;
  if (call.status === 'asked') openApprovals(work, [{ ...ruling, call }]);
  if (call.status === 'cleared') openGate(work, [call]);
}

function stillFits(approval: Approval, call: Call, { kind, report }: Ruling): boolean {
  if (call.status === 'cleared') return approval.kind === 'gate' && approval.callIds.includes(call.id);
  if (call.status !== 'asked' || approval.kind !== kind || approval.guard !== report.first?.guard) return false;
  return kind === 'limit' || approval.callIds.includes(call.id);
}

/** An authorisation ends by itself: whoever got it may have died with it. */
export function withDeadline(call: Call, now: string): Pick<Call, 'external'> {
  if (call.external === undefined) return {};
  return { external: { ...call.external, expiresAt: new Date(Date.parse(now) + AUTHORIZATION_TTL_MS).toISOString() } };
}
