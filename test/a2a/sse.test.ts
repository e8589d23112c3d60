import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { extensionError } from '../../src/a2a/errors.ts';
import {
  artifactNotificationFrame,
  errorFrame,
  HEARTBEAT_FRAME,
  responseFrame,
  retryFrame,
  sseFrame,
  statusNotificationFrame,
} from '../../src/a2a/sse.ts';
import type { JsonValue } from '../../src/core/json.ts';
import { invalidState } from '../../src/core/refusal.ts';

/** The event stream format as the HTML standard reads it. */
function readStream(text: string) {
  const events: { event: string; id: string; data: string }[] = [];
  let current = { event: 'message', id: '', data: [] as string[] };
  for (const line of text.split(/\r\n|\r|\n/)) {
    if (line === '') {
      if (current.data.length > 0) events.push({ event: current.event, id: current.id, data: current.data.join('\n') });
      current = { event: 'message', id: '', data: [] };
      continue;
    }
    if (line.startsWith(':')) continue;
    const [name, ...rest] = line.split(':');
    const value = rest.join(':').replace(/^ /, '');
    if (name === 'data') current.data.push(value);
    if (name === 'event') current.event = value;
    if (name === 'id') current.id = value;
  }
  return events;
}

describe('frames', () => {
  test('carry any JSON through a standard reader, one event each', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue(), { maxLength: 4 }), (values) => {
        const stream = values.map((value, index) => sseFrame({ data: value as JsonValue, id: index }) + HEARTBEAT_FRAME).join('');
        const events = readStream(stream);
        expect(events.map((event) => JSON.parse(event.data))).toEqual(values.map((value) => JSON.parse(JSON.stringify(value))));
        expect(events.map((event) => event.id)).toEqual(values.map((_value, index) => String(index)));
      }),
    );
  });

  test('are not split by line breaks in texts, names or ids', () => {
    const events = readStream(sseFrame({ data: 'a\nb\r\nc\u2028d', event: 'x\ndata: evil', id: '1\r\n\r\ndata: evil' }));
    expect(events).toEqual([{ event: 'x data: evil', id: '1    data: evil', data: '"a\\nb\\r\\nc\u2028d"' }]);
  });

  test('of heartbeat and retry hold no event', () => {
    expect(readStream(HEARTBEAT_FRAME + retryFrame(1500.4))).toEqual([]);
    expect(HEARTBEAT_FRAME).toBe(': keep-alive\n\n');
    expect(retryFrame(1500.4)).toBe('retry: 1500\n\n');
  });
});

describe('standard streams', () => {
  test('wrap each event in a response with the id of the request and its type', () => {
    expect(responseFrame(7, { task: {} }, 12)).toBe('id: 12\ndata: {"jsonrpc":"2.0","id":7,"result":{"task":{}}}\n\n');
    expect(responseFrame('7', {})).toBe('data: {"jsonrpc":"2.0","id":"7","result":{}}\n\n');
  });

  test('mark an error and send it as an error response', () => {
    const [event] = readStream(errorFrame('r', extensionError(invalidState('ended'))));
    expect(event?.event).toBe('error');
    expect(JSON.parse(event?.data ?? '')).toMatchObject({ jsonrpc: '2.0', id: 'r', error: { code: -32004, message: 'ended' } });
  });
});

describe("the source document's notifications", () => {
  test('say the state twice, as its example and as A2A do', () => {
    expect(statusNotificationFrame({ id: '01HX', taskId: 'P1', state: 'working' })).toBe(
      'event: TaskStatusUpdateEvent\nid: 01HX\ndata: {"jsonrpc":"2.0","method":"task/statusUpdate","params":{"taskId":"P1","state":"working","status":{"state":"working"}}}\n\n',
    );
  });

  test('carry more members, which cannot replace these', () => {
    const frame = statusNotificationFrame({
      id: 3,
      taskId: 'P1',
      state: 'working',
      extra: { phase: 'execute', taskId: 'P2', none: undefined },
    });
    const [event] = readStream(frame);
    expect(JSON.parse(event?.data ?? '').params).toEqual({
      phase: 'execute',
      taskId: 'P1',
      state: 'working',
      status: { state: 'working' },
    });
  });

  test('have a second type for what was produced', () => {
    const [event] = readStream(artifactNotificationFrame({ id: 4, taskId: 'P1', extra: { artifact: { artifactId: 'a' } } }));
    expect(event).toMatchObject({ event: 'TaskArtifactUpdateEvent', id: '4' });
    expect(JSON.parse(event?.data ?? '')).toEqual({
      jsonrpc: '2.0',
      method: 'task/artifactUpdate',
      params: { artifact: { artifactId: 'a' }, taskId: 'P1' },
    });
  });
});
