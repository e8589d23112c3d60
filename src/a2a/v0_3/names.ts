import { TASK_STATES, type TaskState } from '../model.ts';
import type { Operation } from '../operations.ts';

/** The words of A2A 0.3 over JSON-RPC. Its states and roles are spelled as in the neutral model. */

/**
 * Specification section 3.5.6, and the names of the CleverAgents protocol document ("Standard A2A Operations"), which no A2A version
 * has. 0.3 itself lists tasks over REST only; `tasks/list` here takes and gives what 1.0's ListTasks does, in 0.3 shapes.
 */
export const METHODS: ReadonlyMap<string, Operation> = new Map<string, Operation>([
  ['message/send', 'send'],
  ['message/stream', 'stream'],
  ['tasks/get', 'get'],
  ['tasks/cancel', 'cancel'],
  ['tasks/resubscribe', 'subscribe'],
  ['tasks/pushNotificationConfig/set', 'pushCreate'],
  ['tasks/pushNotificationConfig/get', 'pushGet'],
  ['tasks/pushNotificationConfig/list', 'pushList'],
  ['tasks/pushNotificationConfig/delete', 'pushDelete'],
  ['agent/getAuthenticatedExtendedCard', 'extendedCard'],
  ['tasks/list', 'list'],
  ['tasks/subscribe', 'subscribe'],
  ['pushNotificationConfig/set', 'pushCreate'],
  ['pushNotificationConfig/get', 'pushGet'],
  ['pushNotificationConfig/list', 'pushList'],
  ['pushNotificationConfig/delete', 'pushDelete'],
  ['getExtendedAgentCard', 'extendedCard'],
]);

export const STATE_SPELLINGS: ReadonlyMap<unknown, TaskState> = new Map(TASK_STATES.map((state) => [state, state]));

/**
 * Marks a data part that holds `{ value: … }` in the place of a value that is no object: 0.3 data parts are objects only. The official
 * SDKs write and read the same mark.
 */
export const WRAPPED_DATA_MARK = 'data_part_compat';
