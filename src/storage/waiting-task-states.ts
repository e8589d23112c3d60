/**
 * The states in which a plan needs somebody (design section 8: waiting, constrained, recoverable errored). Task states, since a plan may
 * wait in any phase and the A2A state is what says so.
 */
export const WAITING_TASK_STATES = ['input-required', 'auth-required'] as const;

/** The states of a plan that has not ended: it may still do something, now or after an answer. */
export const LIVE_TASK_STATES = ['submitted', 'working', ...WAITING_TASK_STATES] as const;
