/** What a webhook is told (contract section 9): in 1.0 each update as a stream has it, in 0.3 the whole task where its state is news. */
import { CODECS } from '../a2a/codec.ts';
import { isInterrupted, type StreamEvent } from '../a2a/model.ts';
import { taskStateOf } from '../core/plan/task-state.ts';
import type { PushRenderer } from './ports.ts';
import { eventsOf, taskOf } from './task-view.ts';

/**
 * 1.0 begins with the task, if it is told from its beginning, as a stream does. 0.3 has the task each time, so it is told when the state
 * changes and when a task that waits asks for something else; artifacts and words in between are in the next one.
 */
export const renderPush: PushRenderer = (wire, { before, update, task }) => {
  const say = (event: () => StreamEvent) => () => JSON.stringify(CODECS[wire].encodeEvent(event()));
  const whole = say(() => ({ kind: 'task', task: taskOf(task(), { includeArtifacts: true }) }));
  if (before === null) return [whole];
  if (wire === '1.0') return eventsOf(update, () => false).map((event) => say(() => event));
  if (update.kind === 'artifact') return [];
  const state = taskStateOf(update.snapshot.plan);
  const isNews = state !== taskStateOf(before) || (isInterrupted(state) && update.snapshot.plan.statusAt !== before.statusAt);
  return isNews ? [whole] : [];
};
