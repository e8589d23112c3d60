import type { TaskState } from '../model.ts';
import { stateSpellings } from '../proto-names.ts';

/** The words of A2A 0.3's proto, which its HTTP+JSON binding speaks: those of 1.0 but for one letter. */
export const STATE_NAMES = {
  submitted: 'TASK_STATE_SUBMITTED',
  working: 'TASK_STATE_WORKING',
  completed: 'TASK_STATE_COMPLETED',
  failed: 'TASK_STATE_FAILED',
  canceled: 'TASK_STATE_CANCELLED',
  'input-required': 'TASK_STATE_INPUT_REQUIRED',
  rejected: 'TASK_STATE_REJECTED',
  'auth-required': 'TASK_STATE_AUTH_REQUIRED',
} as const satisfies Record<TaskState, string>;

/** 1.0's letter is taken too: a list of tasks is asked for by those who know it from there. */
export const STATE_SPELLINGS: ReadonlyMap<unknown, TaskState | 'any'> = new Map([
  ...stateSpellings(STATE_NAMES),
  ['TASK_STATE_CANCELED', 'canceled'] as const,
]);
