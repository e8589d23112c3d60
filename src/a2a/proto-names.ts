import type { Role, TaskState } from './model.ts';

/** Enums that the protos of both versions share, as ProtoJSON takes them: by name or by number. */

export const ROLE_NAMES = { user: 'ROLE_USER', agent: 'ROLE_AGENT' } as const satisfies Record<Role, string>;

const ROLE_NUMBERS = { user: 1, agent: 2 } as const satisfies Record<Role, number>;

export const ROLE_SPELLINGS: ReadonlyMap<unknown, Role> = new Map<unknown, Role>([...spellings(ROLE_NAMES), ...spellings(ROLE_NUMBERS)]);

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

/** Every spelling of a state in a version that calls them by `names`; the proto's zero stands for any. */
export function stateSpellings(names: Readonly<Record<TaskState, string>>): ReadonlyMap<unknown, TaskState | 'any'> {
  return new Map<unknown, TaskState | 'any'>([
    ...spellings(names),
    ...spellings(STATE_NUMBERS),
    ['TASK_STATE_UNSPECIFIED', 'any'],
    [0, 'any'],
  ]);
}

function spellings<T extends string>(wire: Readonly<Record<T, unknown>>): (readonly [unknown, T])[] {
  return (Object.keys(wire) as T[]).map((value) => [wire[value], value] as const);
}
