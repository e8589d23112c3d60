/**
 * What the public conformance suites check, asked of the conformance agent as they ask it: without keys, with their ids, in their spellings.
 * Where they want something that the specification does not, it is said beside the check (docs/conformance-agent.md).
 */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectOfficial } from '../a2a/oracles.ts';
import { STRICT_WIRE } from '../a2a/strict-wire.ts';
import { type ConformanceAgent, startConformanceAgent } from '../conformance/agent-process.ts';

type Any = ReturnType<typeof JSON.parse>;

const V1 = { 'A2A-Version': '1.0' };
const JSON_TYPE = { 'Content-Type': 'application/json' };

function clientOf(agent: () => ConformanceAgent) {
  let ids = 0;
  const rpc = async (method: string, params: object, headers: Record<string, string> = V1): Promise<Any> => {
    ids += 1;
    const body = JSON.stringify({ jsonrpc: '2.0', id: ids, method, params });
    const response = await fetch(`${agent().url}/`, { method: 'POST', headers: { ...JSON_TYPE, ...headers }, body });
    const answer = (await response.json()) as Any;
    expect([response.status, answer.jsonrpc, answer.id]).toEqual([200, '2.0', ids]);
    return answer;
  };
  const rest = async (line: string, body?: object | string, headers: Record<string, string> = { ...V1, ...JSON_TYPE }) => {
    const [method = '', path = ''] = line.split(' ');
    const init = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) };
    const response = await fetch(`${agent().url}${path}`, { method, headers, ...init });
    const text = await response.text();
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
    return { status: response.status, headers: response.headers, body: isStream || text === '' ? text : (JSON.parse(text) as Any) };
  };
  /** The events of a stream until it ends. */
  const stream = async (method: string, params: object, headers: Record<string, string> = V1): Promise<Any[]> => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method, params });
    const response = await fetch(`${agent().url}/`, { method: 'POST', headers: { ...JSON_TYPE, ...headers }, body });
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
    return dataOf(await response.text()).map((each) => each.result);
  };
  const send = async (prefix: string, more: object = {}, configuration?: object): Promise<Any> => {
    const message = { messageId: `${prefix}-${randomUUID().slice(0, 8)}`, role: 'ROLE_USER', parts: [{ text: 'TCK' }], ...more };
    const answer = await rpc('SendMessage', { message, ...(configuration === undefined ? {} : { configuration }) });
    if (answer.result === undefined) return answer;
    STRICT_WIRE['1.0'].sendResult.parse(answer.result);
    expectOfficial('1.0', 'sendResult', answer.result);
    return answer.result.task ?? answer.result.message;
  };
  return { rpc, rest, stream, send };
}

const dataOf = (text: string): Any[] =>
  text.split('\n').flatMap((line) => (line.startsWith('data:') ? [JSON.parse(line.slice('data:'.length)) as Any] : []));

function serve(setUp: Parameters<typeof startConformanceAgent>[0], versions?: string) {
  let agent: ConformanceAgent | undefined;
  beforeAll(async () => {
    agent = await startConformanceAgent(setUp, versions);
  }, 60_000);
  afterAll(() => agent?.stop());
  const running = (): ConformanceAgent => {
    if (agent === undefined) throw new Error('not started');
    return agent;
  };
  return { ...clientOf(running), url: () => running().url };
}

const STATES = { submitted: 0, working: 1, 'input-required': 1, completed: 2 } as const;
const rankOf = (state: string): number =>
  STATES[state.replace('TASK_STATE_', '').toLowerCase().replace('_', '-') as keyof typeof STATES] ?? 2;

describe('the 1.0 suite, streams and push notifications on', () => {
  const { rpc, rest, stream, send, url } = serve('main');

  test('the card lists 1.0 before 0.3 for each binding, and can be cached', async () => {
    const response = await fetch(`${url()}/.well-known/agent-card.json`, { redirect: 'error' });
    expect(response.headers.get('cache-control')).toMatch(/max-age=\d+/);
    expect(response.headers.get('etag')).toBeTruthy();
    expect(response.headers.get('last-modified')).toBeTruthy();
    const card = (await response.json()) as Any;
    for (const binding of ['JSONRPC', 'HTTP+JSON']) {
      const versions = card.supportedInterfaces.filter((each: Any) => each.protocolBinding === binding);
      expect(versions.map((each: Any) => each.protocolVersion)).toEqual(['1.0', '0.3']);
      expect(versions[0].url).not.toMatch(/\/$/);
    }
    expect(card.capabilities).toMatchObject({ streaming: true, pushNotifications: true, extendedAgentCard: false });
  });

  test.each([
    ['tck-complete-task', (task: Any) => expect(task.status.message.parts[0].text).toBe('Hello from TCK')],
    ['tck-artifact-text', (task: Any) => expect(task.artifacts[0].parts[0]).toEqual({ text: 'Generated text content' })],
    [
      'tck-artifact-file',
      (task: Any) => expect(task.artifacts[0].parts[0]).toEqual({ raw: 'dGNr', filename: 'output.txt', mediaType: 'text/plain' }),
    ],
    [
      'tck-artifact-file-url',
      (task: Any) =>
        expect(task.artifacts[0].parts[0]).toEqual({
          url: 'https://example.com/output.txt',
          filename: 'output.txt',
          mediaType: 'text/plain',
        }),
    ],
    ['tck-artifact-data', (task: Any) => expect(task.artifacts[0].parts[0].data).toEqual({ key: 'value', count: 42 })],
    ['tck-stream-001', (task: Any) => expect(task.artifacts[0].parts[0].text).toBe('Stream hello from TCK')],
    ['tck-send-003', () => {}],
  ])('%s is completed', async (prefix, looksRight) => {
    const task = await send(prefix);
    expect(task.status.state).toBe('TASK_STATE_COMPLETED');
    expect(task.status.timestamp).toMatch(/Z$/);
    looksRight(task);
  });

  test('tck-message-response is answered by a message and makes no task', async () => {
    expect(await send('tck-message-response')).toMatchObject({ role: 'ROLE_AGENT', parts: [{ text: 'Direct message response' }] });
  });

  test('over HTTP+JSON as well', async () => {
    const message = { messageId: 'tck-complete-task-1', role: 'ROLE_USER', parts: [{ text: 'TCK' }] };
    const { status, body, headers } = await rest('POST /message:send', { message });
    expect([status, body.task.status.state, headers.get('content-type')]).toEqual([200, 'TASK_STATE_COMPLETED', 'application/json']);
    const got = await rest(`GET /tasks/${body.task.id}?historyLength=1`);
    expect(got.body.history).toHaveLength(1);
  });

  test('a message id that comes again is another message, also three times in one task', async () => {
    const [one, two] = [await send('x', { messageId: 'tck-complete-task-same' }), await send('x', { messageId: 'tck-complete-task-same' })];
    expect(one.id).not.toBe(two.id);
    const waiting = await send('tck-input-required', { messageId: 'tck-input-required-same' });
    for (let times = 0; times < 2; times += 1)
      expect((await send('x', { messageId: 'tck-input-required-same', taskId: waiting.id })).status.state).toBe(
        'TASK_STATE_INPUT_REQUIRED',
      );
  });

  test('several turns: what was said stays in its order, the context is inferred, and the task is completed by its prefix', async () => {
    const task = await send('tck-input-required');
    expect(task.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
    const say = (prefix: string, text: string) => send(prefix, { taskId: task.id, parts: [{ text }] });
    await say('tck-input-required', 'TCK history message 1');
    const done = await say('tck-complete-task', 'TCK history message 2');
    expect(done).toMatchObject({ id: task.id, contextId: task.contextId, status: { state: 'TASK_STATE_COMPLETED' } });
    const texts = done.history.filter((each: Any) => each.role === 'ROLE_USER').map((each: Any) => each.parts[0].text);
    expect(texts).toEqual(['TCK', 'TCK history message 1', 'TCK history message 2']);
    expect((await say('tck-complete-task', 'more')).error).toMatchObject({ code: -32004 });
    const other = await send('tck-input-required');
    expect((await send('tck-send', { taskId: other.id, contextId: 'another' })).error).toBeDefined();
  });

  test('history as long as was asked for, with parameters in snake_case', async () => {
    const { id } = await send('tck-complete-task');
    expect((await rpc('GetTask', { id, history_length: 0 })).result.history).toBeUndefined();
    expect((await rpc('GetTask', { id, history_length: 1 })).result.history).toHaveLength(1);
    const { contextId } = await send('tck-complete-task');
    const list = (await rpc('ListTasks', { context_id: contextId, page_size: 5, include_artifacts: true })).result;
    STRICT_WIRE['1.0'].page.parse(list);
    expect(list.tasks).toHaveLength(1);
  });

  test('unknown members are ignored, an unknown extension harms nothing, an id that is a number comes back as one', async () => {
    const answer = await rpc(
      'SendMessage',
      {
        message: { messageId: 'tck-complete-task-u', role: 'ROLE_USER', parts: [{ text: 'x', tckExtra: 1 }], tckUnknownField: 'x' },
        tckExtraParam: true,
      },
      { ...V1, 'A2A-Extensions': 'urn:nobody:knows' },
    );
    expect(answer.result.task.status.state).toBe('TASK_STATE_COMPLETED');
  });

  test('cancel: of what waits, once; not of what is unknown or done', async () => {
    const { id } = await send('tck-input-required');
    expect((await rpc('CancelTask', { id })).result).toMatchObject({ id, status: { state: 'TASK_STATE_CANCELED' } });
    expect((await rpc('CancelTask', { id })).error).toMatchObject({ code: -32002 });
    const { error } = await rpc('CancelTask', { id: 'tck-nonexistent' });
    expect(error).toMatchObject({ code: -32001, data: [{ reason: 'TASK_NOT_FOUND', domain: 'a2a-protocol.org' }] });
    expect(Object.keys(error).sort()).toEqual(['code', 'data', 'message']);
    const over = await rest('POST /tasks/tck-nonexistent:cancel');
    expect([over.status, over.body.error.code, over.body.error.details[0].reason]).toEqual([404, 404, 'TASK_NOT_FOUND']);
  });

  test('an unsupported version is refused in both bindings; an empty one has an answer', async () => {
    expect((await rpc('GetTask', { id: 'x' }, { 'A2A-Version': '99.0' })).error).toMatchObject({ code: -32009 });
    expect((await rest('GET /tasks', undefined, { 'A2A-Version': '99.0' })).status).toBe(400);
    expect(await rpc('GetTask', { id: 'x' }, { 'A2A-Version': '' })).toHaveProperty('error.code');
  });

  test('a body that is no JSON is refused as -32005, or 415 over HTTP+JSON', async () => {
    const response = await fetch(`${url()}/`, { method: 'POST', headers: { ...V1, 'Content-Type': 'text/plain' }, body: '{}' });
    expect(((await response.json()) as Any).error.code).toBe(-32005);
    expect((await rest('POST /message:send', '{}', { ...V1, 'Content-Type': 'text/plain' })).status).toBe(415);
  });

  test.each(['tck-stream-001', 'tck-stream-002', 'tck-stream-003', 'tck-stream-ordering-001', 'tck-stream-artifact-chunked'])(
    '%s streams a task first, states that never go back, and ends',
    async (prefix) => {
      const message = { messageId: `${prefix}-${randomUUID().slice(0, 8)}`, role: 'ROLE_USER', parts: [{ text: 'TCK' }] };
      const events = await stream('SendStreamingMessage', { message });
      for (const event of events) {
        STRICT_WIRE['1.0'].event.parse(event);
        expectOfficial('1.0', 'event', event);
      }
      expect(Object.keys(events[0])).toEqual(['task']);
      const states = events.flatMap((each) => each.task?.status.state ?? each.statusUpdate?.status.state ?? []).map(rankOf);
      expect(states).toEqual([...states].sort((a, b) => a - b));
      expect(states.at(-1)).toBe(2);
      if (prefix.endsWith('chunked')) {
        const chunks = events.flatMap((each) => (each.artifactUpdate === undefined ? [] : [each.artifactUpdate]));
        expect(chunks.map(({ artifact, append, lastChunk }) => [artifact.parts[0].text, append, lastChunk])).toEqual([
          ['chunk-1 ', undefined, undefined],
          ['chunk-2', true, true],
        ]);
      }
    },
  );

  test('two subscribers of a waiting task get the same events, one that leaves disturbs nobody, and both end with the task', async () => {
    const { id } = await send('tck-input-required');
    const open = async () => {
      const leave = new AbortController();
      const response = await fetch(`${url()}/tasks/${id}:subscribe`, {
        method: 'POST',
        headers: { ...V1, ...JSON_TYPE },
        signal: leave.signal,
      });
      expect(response.status).toBe(200);
      return { leave, text: response.text() };
    };
    const [one, two, three] = [await open(), await open(), await open()];
    three.leave.abort();
    await expect(three.text).rejects.toThrow();
    await send('tck-complete-task', { taskId: id });
    const [first, second] = [dataOf(await one.text), dataOf(await two.text)];
    expect(first).toEqual(second);
    expect(Object.keys(first[0])).toEqual(['task']);
    expect(first.at(-1).statusUpdate.status.state).toBe('TASK_STATE_COMPLETED');
    expect((await rpc('SubscribeToTask', { id })).error).toBeDefined();
    expect((await rpc('SubscribeToTask', { id: 'tck-nonexistent' })).error).toMatchObject({ code: -32001 });
  });

  test('a push configuration of a completed task is made, read, listed and deleted twice; its id is its task own affair', async () => {
    const [a, b] = [await send('tck-complete-task'), await send('tck-complete-task')];
    for (const task of [a, b]) {
      const created = await rpc('CreateTaskPushNotificationConfig', {
        taskId: task.id,
        id: 'tck-push-1',
        url: 'http://127.0.0.1:9/webhook',
      });
      expect(created.result).toMatchObject({ id: 'tck-push-1', taskId: task.id });
    }
    const at = { taskId: a.id, id: 'tck-push-1' };
    expect((await rpc('GetTaskPushNotificationConfig', at)).result.id).toBe('tck-push-1');
    expect((await rpc('ListTaskPushNotificationConfigs', { taskId: a.id })).result.configs).toHaveLength(1);
    expect((await rpc('GetTaskPushNotificationConfig', { ...at, id: 'none' })).error).toBeDefined();
    for (let times = 0; times < 2; times += 1) expect((await rpc('DeleteTaskPushNotificationConfig', at)).error).toBeUndefined();
    expect((await rpc('ListTaskPushNotificationConfigs', { taskId: b.id })).result.configs).toHaveLength(1);
  });

  test('a webhook given with the message is posted to with its credentials, in the form of a stream event', async () => {
    const posts: { readonly request: IncomingMessage; readonly body: Any }[] = [];
    const receiver = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => {
        body += chunk.toString();
      });
      request.on('end', () => {
        posts.push({ request, body: JSON.parse(body) as Any });
        response.end();
      });
    }).listen(0, '127.0.0.1');
    await new Promise((done) => receiver.once('listening', done));
    const target = `http://localhost:${(receiver.address() as AddressInfo).port}/webhook`;
    try {
      await send(
        'tck-complete-task',
        {},
        {
          taskPushNotificationConfig: { url: target, authentication: { scheme: 'Bearer', credentials: 'tck-secret' } },
        },
      );
      await expect.poll(() => posts.length, { timeout: 15_000 }).toBeGreaterThan(0);
      for (const { request, body } of posts) {
        expect(request.headers.authorization).toBe('Bearer tck-secret');
        STRICT_WIRE['1.0'].event.parse(body);
      }
    } finally {
      receiver.closeAllConnections();
      receiver.close();
    }
  });

  test.each(['JSONRPC', 'HTTP+JSON'])('parts of every kind come back as they were sent, up to a megabyte, over %s', async (binding) => {
    const metadata = { 'urn:example:note': { deep: [1, null, 'x'] } };
    const parts = [
      { text: `${'é€😀\u0000\r\n'.repeat(80_000)}end`, mediaType: 'text/markdown', filename: 'a b.md', metadata },
      { raw: Buffer.from(Array.from({ length: 780_000 }, (_, n) => (n * 7919) % 256)).toString('base64'), mediaType: 'image/png' },
      { url: 'https://example.com/x?y=%20z#f', mediaType: 'application/pdf' },
      { data: { list: [1, -0.5, 1e21, 'ä', null, { empty: {} }], '': false } },
      { data: null },
      { data: [] },
      { text: '' },
    ];
    const message = { messageId: `tck-input-required-${randomUUID()}`, role: 'ROLE_USER', parts, referenceTaskIds: ['a', 'b'] };
    const task =
      binding === 'JSONRPC'
        ? (await rpc('SendMessage', { message })).result.task
        : (await rest('POST /message:send', { message })).body.task;
    const got = binding === 'JSONRPC' ? (await rpc('GetTask', { id: task.id })).result : (await rest(`GET /tasks/${task.id}`)).body;
    expect(got.history[0].parts).toEqual(parts);
  });

  test('a client that takes text alone is asked in words; one that speaks the extension gets its data all the same', async () => {
    const ask = async (acceptedOutputModes: readonly string[], headers: Record<string, string> = V1) => {
      const message = { messageId: 'tck-input-required-modes', role: 'ROLE_USER', parts: [{ text: 'x' }] };
      const { result } = await rpc('SendMessage', { message, configuration: { acceptedOutputModes } }, headers);
      return result.task.status.message.parts.map((part: Any) => Object.keys(part)[0]);
    };
    expect(await ask([])).toEqual(['text', 'data']);
    expect(await ask(['text/plain', 'application/json'])).toEqual(['text', 'data']);
    expect(await ask(['text/plain'])).toEqual(['text']);
    expect(await ask(['text/plain'], { ...V1, 'A2A-Extensions': 'urn:cleveragents:extensions:v1' })).toEqual(['text', 'data']);
    const message = { messageId: 'tck-input-required-modes', role: 'ROLE_USER', parts: [{ text: 'x' }] };
    const events = await stream('SendStreamingMessage', { message, configuration: { acceptedOutputModes: ['text/plain'] } });
    expect(JSON.stringify(events)).not.toContain('"data":{"approval_id"');
  });

  test('an extended card that is not declared is refused', async () => {
    expect((await rpc('GetExtendedAgentCard', {})).error).toMatchObject({ code: -32004 });
    expect((await rest('GET /extendedAgentCard')).status).toBe(400);
  });
});

describe('the 0.3 suite', () => {
  const { rpc: call, stream } = serve('main');
  const NONE = {};
  const rpc = (method: string, params: object) => call(method, params, NONE);
  const message = (messageId: string, more: object = {}) => ({
    kind: 'message',
    messageId,
    role: 'user',
    parts: [{ kind: 'text', text: 'Hello' }],
    ...more,
  });

  test('a message makes a task that goes on: follow-ups succeed, and it can be canceled once', async () => {
    const { result } = await rpc('message/send', { message: message('test-1') });
    expect(result).toMatchObject({ kind: 'task', status: { state: 'input-required' } });
    for (let turn = 0; turn < 5; turn += 1)
      expect((await rpc('message/send', { message: message(`turn-${turn}`, { taskId: result.id }) })).result.id).toBe(result.id);
    expect((await rpc('tasks/get', { id: result.id, historyLength: 2 })).result.history.length).toBeLessThanOrEqual(2);
    expect((await rpc('tasks/cancel', { id: result.id })).result.status.state).toBe('canceled');
    expect((await rpc('tasks/cancel', { id: result.id })).error).toBeDefined();
  });

  test('a plain send that does not block leaves the task at work with its one message', async () => {
    const { result } = await rpc('message/send', { message: message('quick'), configuration: { blocking: false } });
    expect(result.status.state).toBeOneOf(['submitted', 'working', 'input-required']);
    expect((await rpc('tasks/get', { id: result.id, historyLength: 1 })).result.history).toHaveLength(1);
  });

  test('parts of every kind come back as they were sent, up to a megabyte', async () => {
    const bytes = Buffer.from(Array.from({ length: 780_000 }, (_, n) => (n * 31) % 256)).toString('base64');
    const parts = [
      { kind: 'text', text: `${'é€😀\r\n'.repeat(90_000)}end`, metadata: { 'urn:example:note': 1 } },
      { kind: 'file', file: { bytes, mimeType: 'image/png', name: 'a b.png' } },
      { kind: 'file', file: { uri: 'https://example.com/x?y=%20z#f', mimeType: 'application/pdf' } },
      { kind: 'data', data: { list: [1, -0.5, 1e21, 'ä', null, { empty: {} }] } },
    ];
    const { result } = await rpc('message/send', { message: message('parts', { parts }) });
    expect((await rpc('tasks/get', { id: result.id })).result.history[0].parts).toEqual(parts);
  });

  test('what is wrong is said by its code, with 200', async () => {
    expect((await rpc('message/send', { message: message('m', { parts: [] }) })).error.code).toBe(-32602);
    const { result } = await rpc('message/send', { message: message('m') });
    expect((await rpc('tasks/get', { id: result.id, historyLength: -1 })).error.code).toBe(-32602);
    expect((await rpc('tasks/get', { id: 'none' })).error).toMatchObject({ code: -32001 });
    expect((await rpc('agent/unknown', {})).error.code).toBe(-32601);
  });

  test('test-resubscribe-message-id keeps the task at work until somebody has subscribed again', async () => {
    const started = Date.now();
    const all = stream('message/stream', { message: message(`test-resubscribe-message-id-${randomUUID()}`) }, NONE);
    // The id of the task is in the first event; the suite reads it and leaves, here the list tells it.
    const listed = async () => (await call('ListTasks', { status: 'TASK_STATE_WORKING' })).result.tasks;
    await expect.poll(async () => (await listed()).length, { timeout: 3_000 }).toBe(1);
    const again = await stream('tasks/resubscribe', { id: (await listed())[0].id }, NONE);
    expect(again[0]).toMatchObject({ kind: 'task' });
    expect(again.at(-1)).toMatchObject({ kind: 'status-update', final: true, status: { state: 'completed' } });
    expect(Date.now() - started).toBeGreaterThan(3_500);
    expect((await all)[0]).toMatchObject({ kind: 'task', id: again[0].id });
  });

  test('a webhook without an id is found by the literal id default, and removed with null', async () => {
    const { result } = await rpc('message/send', { message: message('push') });
    const pushNotificationConfig = { url: 'http://127.0.0.1:9/webhook' };
    await rpc('tasks/pushNotificationConfig/set', { taskId: result.id, pushNotificationConfig });
    const got = await rpc('tasks/pushNotificationConfig/get', { id: result.id, pushNotificationConfigId: 'default' });
    expect(got.result).toMatchObject({ taskId: result.id, pushNotificationConfig });
    const listed = (await rpc('tasks/pushNotificationConfig/list', { id: result.id })).result;
    expect(listed).toHaveLength(1);
    const { id } = listed[0].pushNotificationConfig;
    const deleted = await rpc('tasks/pushNotificationConfig/delete', { id: result.id, pushNotificationConfigId: id });
    expect(deleted.result).toBeNull();
    const unknown = await rpc('tasks/pushNotificationConfig/get', { id: 'none', pushNotificationConfigId: 'x' });
    expect(unknown.error.message).toMatch(/not found|task/i);
  });
});

describe('capabilities off', () => {
  const { rpc, rest, send, url } = serve('capabilities-off');

  test('are refused by their codes', async () => {
    const card = (await (await fetch(`${url()}/.well-known/agent-card.json`)).json()) as Any;
    expect(card.capabilities).toMatchObject({ streaming: false, pushNotifications: false, extendedAgentCard: false });
    const { id } = await send('tck-input-required');
    const message = { messageId: 'tck-stream-001', role: 'ROLE_USER', parts: [{ text: 'x' }] };
    expect((await rpc('SendStreamingMessage', { message })).error.code).toBe(-32004);
    expect((await rpc('SubscribeToTask', { id })).error.code).toBe(-32004);
    expect((await rpc('CreateTaskPushNotificationConfig', { taskId: id, url: 'http://127.0.0.1:9/' })).error.code).toBe(-32003);
    expect((await rpc('GetExtendedAgentCard', {})).error.code).toBe(-32004);
    for (const line of ['POST /message:stream', `POST /tasks/${id}:subscribe`, `POST /tasks/${id}/pushNotificationConfigs`])
      expect([line, (await rest(line, line.endsWith('stream') ? { message } : { url: 'http://127.0.0.1:9/' })).status]).toEqual([
        line,
        400,
      ]);
  });
});

describe('an extended card', () => {
  const { rpc, rest } = serve('extended-card');

  test('is shown without credentials and has the form of a card', async () => {
    const { result } = await rpc('GetExtendedAgentCard', {});
    expectOfficial('1.0', 'card', result);
    expect(result.skills.map((skill: Any) => skill.id)).toEqual(['conformance']);
    expect((await rest('GET /extendedAgentCard')).body.name).toBe(result.name);
  });
});

describe('a required extension', () => {
  const { rpc, rest, url } = serve('required-extension');

  test('is declared, and a message that does not name it is refused', async () => {
    const uri = 'urn:a2a:tck:required-extension';
    const card = (await (await fetch(`${url()}/.well-known/agent-card.json`)).json()) as Any;
    expect(card.capabilities.extensions).toContainEqual(expect.objectContaining({ uri, required: true }));
    const message = { messageId: 'tck-complete-task', role: 'ROLE_USER', parts: [{ text: 'x' }] };
    expect((await rpc('SendMessage', { message })).error).toMatchObject({ code: -32008 });
    const refused = await rest('POST /message:send', { message });
    expect([refused.status, refused.body.error.details[0].reason]).toEqual([400, 'EXTENSION_SUPPORT_REQUIRED']);
    const named = await rpc('SendMessage', { message }, { ...V1, 'A2A-Extensions': uri });
    expect(named.result.task.status.state).toBe('TASK_STATE_COMPLETED');
  });
});

describe('1.0 alone', () => {
  const { rpc, url } = serve('main', '1.0');

  test('is a pure 1.0 card and knows nothing of 0.3', async () => {
    const card = (await (await fetch(`${url()}/.well-known/agent-card.json`)).json()) as Any;
    expectOfficial('1.0', 'card', card);
    expect(card).not.toHaveProperty('protocolVersion');
    expect((await rpc('message/send', {}, { 'A2A-Version': '0.3' })).error.code).toBe(-32009);
  });
});
