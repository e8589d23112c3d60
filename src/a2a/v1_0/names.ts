import type { TaskState } from '../model.ts';
import type { Operation } from '../operations.ts';
import { stateSpellings } from '../proto-names.ts';

/** The words of A2A 1.0 (proto package lf.a2a.v1): methods and states. */

/** Specification sections 5.3 and 9.4. */
export const METHODS: ReadonlyMap<string, Operation> = new Map<string, Operation>([
  ['SendMessage', 'send'],
  ['SendStreamingMessage', 'stream'],
  ['GetTask', 'get'],
  ['ListTasks', 'list'],
  ['CancelTask', 'cancel'],
  ['SubscribeToTask', 'subscribe'],
  ['CreateTaskPushNotificationConfig', 'pushCreate'],
  ['GetTaskPushNotificationConfig', 'pushGet'],
  ['ListTaskPushNotificationConfigs', 'pushList'],
  ['DeleteTaskPushNotificationConfig', 'pushDelete'],
  ['GetExtendedAgentCard', 'extendedCard'],
]);

export const STATE_NAMES = {
  submitted: 'TASK_STATE_SUBMITTED',
  working: 'TASK_STATE_WORKING',
  completed: 'TASK_STATE_COMPLETED',
  failed: 'TASK_STATE_FAILED',
  canceled: 'TASK_STATE_CANCELED',
  'input-required': 'TASK_STATE_INPUT_REQUIRED',
  rejected: 'TASK_STATE_REJECTED',
  'auth-required': 'TASK_STATE_AUTH_REQUIRED',
} as const satisfies Record<TaskState, string>;

export const STATE_SPELLINGS = stateSpellings(STATE_NAMES);
