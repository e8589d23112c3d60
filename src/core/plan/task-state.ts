import type { Plan } from './plan.ts';

/** How a plan's phase and state read from outside (design section 8). The words are those of the A2A task states. */
export const TASK_STATE_NAMES = ['submitted', 'working', 'input-required', 'completed', 'failed', 'canceled', 'rejected'] as const;
export type TaskStateName = (typeof TASK_STATE_NAMES)[number];

export function taskStateOf(plan: Pick<Plan, 'phase' | 'state' | 'terminal'>): TaskStateName {
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
    case 'constrained':
      return 'input-required';
    case 'queued':
      return plan.phase === 'action' ? 'submitted' : 'working';
    case 'running':
    case 'complete':
      return 'working';
  }
}
