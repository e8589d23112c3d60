/**
 * The states in which a plan needs somebody (design section 8: waiting, constrained, recoverable errored). Task states, since a plan may
 * wait in any phase and the A2A state is what says so.
 */
export const WAITING_TASK_STATES = ['input-required', 'auth-required'] as const;
