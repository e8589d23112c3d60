import type { Role, TaskState } from '../model.ts';
import type { Operation } from '../operations.ts';

/** The words of A2A 1.0 (proto package lf.a2a.v1): methods, states and roles. */

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

/** The proto's enum numbers, which ProtoJSON accepts in the place of names. */
const STATE_NUMBERS = {
  submitted: 1,
  working: 2,
  completed: 3,
  failed: 4,
  canceled: 5,
  'input-required': 6,
  rejected: 7,
  'auth-required': 8,
} as const satisfies Record<TaskState, number>;

export const ROLE_NAMES = { user: 'ROLE_USER', agent: 'ROLE_AGENT' } as const satisfies Record<Role, string>;

const ROLE_NUMBERS = { user: 1, agent: 2 } as const satisfies Record<Role, number>;

export const STATE_SPELLINGS: ReadonlyMap<unknown, TaskState | 'any'> = new Map<unknown, TaskState | 'any'>([
  ...spellings(STATE_NAMES),
  ...spellings(STATE_NUMBERS),
  ['TASK_STATE_UNSPECIFIED', 'any'],
  [0, 'any'],
]);

export const ROLE_SPELLINGS: ReadonlyMap<unknown, Role> = new Map<unknown, Role>([...spellings(ROLE_NAMES), ...spellings(ROLE_NUMBERS)]);

function spellings<T extends string>(wire: Readonly<Record<T, unknown>>): (readonly [unknown, T])[] {
  return (Object.keys(wire) as T[]).map((value) => [wire[value], value] as const);
}
