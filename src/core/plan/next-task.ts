import { REMINDER_MS } from './decide/open-approval.ts';
import { isExternal, openAuthorizations, retentionEndsMs } from './external/external.ts';
import { type Approval, type Call, haltOf, type Plan, pendingApprovals } from './plan.ts';

/** What the engine has to do next for a plan; derived from the state alone, so that a restart finds the same thing to do. */
export type NextTask =
  /** Something is due by time: expiry or reminder of an approval, or a call that was sent when the plan ended. */
  | { readonly kind: 'tick' }
  /** An authorised call to perform, or one that was sent before a crash. */
  | { readonly kind: 'perform'; readonly call: Call }
  | { readonly kind: 'retry'; readonly call: Call }
  | { readonly kind: 'advance' }
  | { readonly kind: 'propose' }
  | { readonly kind: 'apply' }
  /** Nothing to do before `atMs`, or at all. */
  | { readonly kind: 'sleep'; readonly atMs: number | null };

export function nextTask(plan: Plan, nowMs: number): NextTask {
  if (isExternal(plan)) return nextDeadline(plan, nowMs);
  if (plan.terminal) {
    // Found sent after the end, so whoever waited for the outcome is gone: its reservation is closed.
    const isOpen = Object.values(plan.calls).some((call) => call.status === 'sent');
    // Whether a write is in the project can still be asked, and the plan has to say so truly.
    const written = Object.values(plan.calls).find((call) => call.status === 'sent' && call.write !== undefined);
    if (written !== undefined) return { kind: 'perform', call: written };
    return isOpen ? { kind: 'tick' } : { kind: 'sleep', atMs: null };
  }
  const pending = pendingApprovals(plan);
  const deadlines = deadlinesOf(pending);
  if (deadlines.some((deadline) => deadline <= nowMs)) return { kind: 'tick' };

  // A halted plan only lets time pass: what was authorised and not sent waits as well.
  if (haltOf(plan) !== null) return { kind: 'sleep', atMs: deadlines.length === 0 ? null : Math.min(...deadlines) };

  const calls = Object.values(plan.calls);
  const open = calls.find((call) => call.status === 'authorised' || call.status === 'sent');
  if (open !== undefined) return { kind: 'perform', call: open };
  for (const call of calls) {
    if (call.status !== 'retrying' || call.retryAt === null) continue;
    const dueMs = Date.parse(call.retryAt);
    if (dueMs <= nowMs) return { kind: 'retry', call };
    deadlines.push(dueMs);
  }

  const sleep: NextTask = { kind: 'sleep', atMs: deadlines.length === 0 ? null : Math.min(...deadlines) };
  if (pending.length > 0 || plan.step?.kind === 'calls') return sleep;
  switch (`${plan.phase}/${plan.state}`) {
    case 'strategize/running':
    case 'execute/running':
      return { kind: 'propose' };
    case 'action/queued':
    case 'strategize/complete':
    case 'execute/complete':
      return { kind: 'advance' };
    case 'apply/running':
      return { kind: 'apply' };
    default:
      return sleep;
  }
}

function deadlinesOf(pending: readonly Approval[]): number[] {
  return pending.flatMap((approval) => {
    if (approval.expiresAt === null) return [];
    const expiresMs = Date.parse(approval.expiresAt);
    return approval.reminded ? [expiresMs] : [expiresMs - REMINDER_MS, expiresMs];
  });
}

/** A plan whose executor is outside only lets time pass: questions and authorisations expire, the latter after its end as well, and so does its retention. */
function nextDeadline(plan: Plan, nowMs: number): NextTask {
  const open = openAuthorizations(plan).flatMap((call) => (call.external?.expiresAt == null ? [] : [Date.parse(call.external.expiresAt)]));
  const endMs = retentionEndsMs(plan);
  const deadlines = [...(plan.terminal ? [] : deadlinesOf(pendingApprovals(plan))), ...open, ...(endMs === null ? [] : [endMs])];
  if (deadlines.length === 0) return { kind: 'sleep', atMs: null };
  const next = Math.min(...deadlines);
  return next <= nowMs ? { kind: 'tick' } : { kind: 'sleep', atMs: next };
}
