import type { Part, SendRequest, StreamEvent, Task, TaskStatus } from '../a2a/model.ts';

/**
 * `acceptedOutputModes` of a send: what the client can take. What we say beside a text, the data of a question, is left out for a client that
 * names modes and no JSON among them; the text says the same, and GetTask has all of it. Artifacts are never cut: half a result is none.
 */
export interface AcceptedModes {
  task(task: Task): Task;
  event(event: StreamEvent): StreamEvent;
}

const EVERYTHING: AcceptedModes = { task: (task) => task, event: (event) => event };

/** Whoever speaks the extension gets its data, whatever the modes say. */
export function acceptedModes({ configuration }: Pick<SendRequest, 'configuration'>, extensionActivated: boolean): AcceptedModes {
  const modes = configuration.acceptedOutputModes ?? [];
  if (extensionActivated || modes.length === 0 || modes.some(takesJson)) return EVERYTHING;
  const task = (each: Task): Task => ({ ...each, status: textOnly(each.status) });
  return {
    task,
    event: (event) => {
      if (event.kind === 'task') return { ...event, task: task(event.task) };
      return event.kind === 'status' ? { ...event, status: textOnly(event.status) } : event;
    },
  };
}

function takesJson(mode: string): boolean {
  const [type = ''] = mode.trim().toLowerCase().split(';');
  return ['*', '*/*', 'application/*', 'data', 'json'].includes(type.trim()) || /^application\/([\w.-]+\+)?json$/.test(type.trim());
}

function textOnly(status: TaskStatus): TaskStatus {
  const { message } = status;
  if (message === undefined) return status;
  const parts = message.parts.filter(isNoData);
  return parts.length === 0 ? status : { ...status, message: { ...message, parts } };
}

const isNoData = (part: Part): boolean => part.kind !== 'data';
