import { describe, expect, it } from 'vitest';
import type { StreamEvent, Task } from '../../src/a2a/model.ts';
import { acceptedModes } from '../../src/app/accepted-modes.ts';

const TEXT = { kind: 'text', text: 'Go on?' } as const;
const DATA = { kind: 'data', data: { approval_id: 'x' } } as const;
const status = {
  state: 'input-required',
  timestamp: '2026-01-01T00:00:00.000Z',
  message: { messageId: 'm', role: 'agent', parts: [TEXT, DATA] },
} as const;
const TASK: Task = { id: 't', contextId: 'c', status, artifacts: [{ artifactId: 'a', parts: [DATA] }] };
const modesOf = (acceptedOutputModes: readonly string[] | undefined, activated = false) =>
  acceptedModes({ configuration: { acceptedOutputModes } as never }, activated);

describe('accepted output modes', () => {
  it.each([
    [undefined],
    [[]],
    [['*/*']],
    [['text/plain', 'application/json']],
    [['text', 'data']],
    [['application/a2a+json; q=0.5']],
    [['Application/*']],
  ])('%j take everything', (modes) => {
    expect(modesOf(modes).task(TASK)).toEqual(TASK);
  });

  it.each([[['text/plain']], [['text']], [['image/png', 'text/*']]])('%j are told in words alone, and get whole artifacts', (modes) => {
    const { task, event } = modesOf(modes);
    const shown = task(TASK);
    expect(shown.status.message?.parts).toEqual([TEXT]);
    expect(shown.artifacts).toEqual(TASK.artifacts);
    expect(event({ kind: 'task', task: TASK })).toMatchObject({ task: { status: { message: { parts: [TEXT] } } } });
    const update: StreamEvent = { kind: 'status', taskId: 't', contextId: 'c', status, final: true };
    expect(event(update)).toEqual({ ...update, status: { ...status, message: { ...status.message, parts: [TEXT] } } });
  });

  it('do not keep the data of the extension from who speaks it, and never leave nothing', () => {
    expect(modesOf(['text/plain'], true).task(TASK)).toEqual(TASK);
    const bare = { ...TASK, status: { ...status, message: { ...status.message, parts: [DATA] } } };
    expect(modesOf(['text/plain']).task(bare)).toEqual(bare);
  });
});
