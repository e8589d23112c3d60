import { AUTHORIZATION_TTL_MS, isHeld, MAX_CALLS_OF_A_QUESTION, MAX_PENDING_APPROVALS } from '../external/external.ts';
import { type Approval, type Call, type Plan, pendingApprovals } from '../plan.ts';
import { SYSTEM, type Work } from '../work.ts';
import { limitQuestions, openApprovals, openGate, type Ruling } from './calls.ts';

/**
 * Brings the questions about one call of an executor outside in line with what was just decided about it. Asking for the same call ten
 * times asks a human once. Calls that come to the same limit are asked about together: each that comes later makes a new question that
 * shows it with those before, since an approval is for exactly what it has shown. What is not needed any more is withdrawn.
 */
export function askForOutside(work: Work, ruling: Ruling): void {
  const plan = work.plan();
  const call = plan.calls[ruling.call.id];
  if (call === undefined || plan.terminal) return;
  const pending = pendingApprovals(plan);
  const kept = pending.find((approval) => stillFits(approval, call, ruling));
  for (const approval of pending) {
    if (approval === kept || !approval.callIds.includes(call.id)) continue;
    // The question about a limit stands as long as any other call that it shows is behind it.
    if (approval.kind === 'limit' && approval.callIds.some((id) => id !== call.id && isWaiting(plan.calls[id]))) continue;
    const reason = `${call.id} was decided again: ${call.status === 'sent' ? 'it passes without this' : (call.reason ?? 'something else is in its way')}`;
    work.emit('approval_closed', SYSTEM, { approval_id: approval.id, status: 'revoked', reason });
  }
  if (kept !== undefined || pendingApprovals(work.plan()).length >= MAX_PENDING_APPROVALS) return;
  if (call.status === 'asked' && !isFull(work.plan(), call, ruling)) openApprovals(work, [{ ...ruling, call }]);
  if (call.status === 'cleared') openGate(work, [call]);
}

function stillFits(approval: Approval, call: Call, { kind, report }: Ruling): boolean {
  if (!approval.callIds.includes(call.id)) return false;
  if (call.status === 'cleared') return approval.kind === 'gate';
  return call.status === 'asked' && approval.kind === kind && approval.guard === report.first?.guard;
}

function isWaiting(call: Call | undefined): boolean {
  return call !== undefined && isHeld(call);
}

/** Nobody can judge hundreds of calls in one question, nor answer one that is made anew all the time: whoever comes then asks again after its answer. */
function isFull(plan: Plan, call: Call, { kind, report }: Ruling): boolean {
  if (kind !== 'limit' || report.first === null) return false;
  const waiting = limitQuestions(plan, report.first, call).flatMap(({ callIds }) => callIds);
  return waiting.filter((id) => id !== call.id && isWaiting(plan.calls[id])).length >= MAX_CALLS_OF_A_QUESTION;
}

/** An authorisation ends by itself: whoever got it may have died with it. */
export function withDeadline(call: Call, now: string): Pick<Call, 'external'> {
  if (call.external === undefined) return {};
  return { external: { ...call.external, expiresAt: new Date(Date.parse(now) + AUTHORIZATION_TTL_MS).toISOString() } };
}
