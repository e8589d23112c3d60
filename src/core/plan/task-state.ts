import { type Approval, type Plan, pendingApprovals } from './plan.ts';

/** How a plan's phase and state read from outside (design section 8). The words are those of the A2A task states. */
export const TASK_STATE_NAMES = [
  'submitted',
  'working',
  'input-required',
  'auth-required',
  'completed',
  'failed',
  'canceled',
  'rejected',
] as const;
export type TaskStateName = (typeof TASK_STATE_NAMES)[number];

/** What a plan may be called that waits for nothing but approvals (`approvals.task_state`). */
export const APPROVAL_TASK_STATES = ['input-required', 'auth-required'] as const;
export type ApprovalTaskState = (typeof APPROVAL_TASK_STATES)[number];

export function taskStateOf(plan: Pick<Plan, 'phase' | 'state' | 'terminal' | 'approvals' | 'approvalTaskState'>): TaskStateName {
  switch (plan.state) {
    case 'applied':
      return 'completed';
    case 'cancelled':
      return 'canceled';
    case 'rejected':
      return 'rejected';
    case 'errored':
      return plan.terminal ? 'failed' : 'input-required';
    case 'waiting':
      return waitingStateOf(plan);
    case 'constrained':
      return 'input-required';
    case 'queued':
      return plan.phase === 'action' ? 'submitted' : 'working';
    case 'running':
    case 'complete':
      return 'working';
  }
}

/** A question of any kind needs words, whatever else is asked beside it. */
function waitingStateOf({ approvals, approvalTaskState }: Pick<Plan, 'approvals' | 'approvalTaskState'>): ApprovalTaskState {
  if (approvalTaskState === undefined) return 'input-required';
  const pending = pendingApprovals({ approvals });
  return pending.length > 0 && pending.every(isApproval) ? approvalTaskState : 'input-required';
}

/** What is decided by yes or no; the others are answered. */
function isApproval({ kind }: Approval): boolean {
  switch (kind) {
    case 'gate':
    case 'call':
    case 'limit':
      return true;
    case 'question':
    case 'next_step':
    case 'unknown_outcome':
      return false;
  }
}
