import { describe, expect, test } from 'vitest';
import { LEGACY_NAMES, OPERATION_NAMES } from '../../src/api/operations.ts';
import { StorageUnavailable } from '../../src/app/ports.ts';
import { call, deploy, post } from './deployment.ts';

const TASK = '01HXRCF1ABCDE12345678901AB';
const request = (members: object): string => JSON.stringify({ jsonrpc: '2.0', id: 'r1', method: 'tasks/get', params: {}, ...members });

const signedIn = async () => {
  const deployment = deploy();
  return { ...deployment, key: await deployment.addKey() };
};

describe('what is no request', () => {
  const CASES: readonly (readonly [name: string, body: string, code: number, id: unknown])[] = [
    ['an empty body', '', -32700, null],
    ['broken JSON', '{"bad', -32700, null],
    ['text', 'hello', -32700, null],
    ['HTML', '<html></html>', -32700, null],
    ['null', 'null', -32600, null],
    ['a number', '1', -32600, null],
    ['a batch', `[${request({})}]`, -32600, null],
    ['an empty batch', '[]', -32600, null],
    ['no jsonrpc', JSON.stringify({ id: 'r1', method: 'tasks/get' }), -32600, 'r1'],
    ['jsonrpc 1.0', request({ jsonrpc: '1.0' }), -32600, 'r1'],
    ['jsonrpc as a number', request({ jsonrpc: 2 }), -32600, 'r1'],
    ['no method', JSON.stringify({ jsonrpc: '2.0', id: 'r1' }), -32600, 'r1'],
    ['a blank method', request({ method: ' ' }), -32600, 'r1'],
    ['a method that is a number', request({ method: 7 }), -32600, 'r1'],
    ['an id that is an object', request({ id: {} }), -32600, null],
    ['an id that is a list', request({ id: [] }), -32600, null],
    ['an id that is true', request({ id: true }), -32600, null],
    ['an id that is a fraction', request({ id: 1.5 }), -32600, null],
    ['params that are a list', request({ params: [] }), -32602, 'r1'],
    ['params that are a text', request({ params: 'x' }), -32602, 'r1'],
    [
      'params that nest 10,000 deep',
      `{"jsonrpc":"2.0","id":"r1","method":"tasks/get","params":${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}}`,
      -32602,
      'r1',
    ],
    ['a body of brackets', '['.repeat(500_000), -32700, null],
  ];

  test.each(CASES)('%s is answered with its code and HTTP 200', async (_name, body, code, id) => {
    const { app, log } = deploy();
    const answer = await post(app, body);
    expect([answer.status, answer.body.error?.code, answer.body.id]).toEqual([200, code, id]);
    expect(answer.body.error?.message).not.toBe('');
    expect(Object.keys(answer.body).sort()).toEqual(['error', 'id', 'jsonrpc']);
    expect(log).toEqual([]);
  });

  test('bytes that are not UTF-8 are no JSON', async () => {
    const { app } = deploy();
    const answer = await post(app, new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d]));
    expect([answer.status, answer.body.error?.code]).toEqual([200, -32700]);
  });

  test('letters that two chunks share are read as one', async () => {
    const bytes = new TextEncoder().encode(JSON.stringify({ jsonrpc: '2.0', id: 'ü€𝄞', method: 'rpc.discover' }));
    const { app } = deploy();
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
        controller.close();
      },
    });
    const response = await app.request('/a2a', {
      method: 'POST',
      body,
      duplex: 'half',
      headers: { 'content-type': 'application/json' },
    } as RequestInit);
    expect(await response.json()).toMatchObject({ id: 'ü€𝄞', result: { openrpc: '1.3.2' } });
  });
});

describe('the id', () => {
  test.each([['text'], [''], [0], [-7], [9007199254740991], [null]])(
    '%j is echoed with its type, or made where it is empty',
    async (id) => {
      const { app, key } = await signedIn();
      const answer = await post(app, request({ id, method: 'tasks/send' }), { key });
      if (id === '') expect(answer.body.id).toMatch(/^[0-7][0-9A-Z]{25}$/);
      else expect(answer.body.id).toBe(id);
      expect(answer.body.error?.code).toBe(-32601);
    },
  );

  test('is made when it is absent: there are no notifications', async () => {
    const { app } = deploy();
    const answer = await post(app, JSON.stringify({ jsonrpc: '2.0', method: 'rpc.discover' }));
    expect(answer.body.id).toMatch(/^[0-7][0-9A-Z]{25}$/);
    expect(answer.body.result).toBeDefined();
  });
});

describe('the size', () => {
  const bodyOf = (bytes: number): string => {
    const empty = request({ method: 'rpc.discover', params: { x: '' } });
    return request({ method: 'rpc.discover', params: { x: 'x'.repeat(bytes - empty.length) } });
  };

  test('of 4 MiB is read', async () => {
    const answer = await post(deploy().app, bodyOf(4 * 1024 * 1024));
    expect([answer.status, answer.body.error?.code]).toEqual([200, -32602]);
  });

  test('of one byte more is answered with 413 as JSON that names the limit', async () => {
    const answer = await post(deploy().app, bodyOf(4 * 1024 * 1024 + 1));
    expect([answer.status, answer.body.error?.code]).toEqual([413, -32600]);
    expect(answer.body.error?.message).toContain('4194304 bytes');
    expect(answer.body.error?.data).toMatchObject({ limitBytes: 4194304 });
  });

  test('that a header announces as far too large is refused before a byte is read', async () => {
    let pulled = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        pull() {
          pulled += 1;
        },
      },
      { highWaterMark: 0 },
    );
    const response = await deploy().app.request('/a2a', {
      method: 'POST',
      body,
      duplex: 'half',
      headers: { 'content-type': 'application/json', 'content-length': '50000000' },
    } as RequestInit);
    expect([response.status, pulled]).toEqual([413, 0]);
  });

  test.each([{}, { 'content-length': '5242880' }])(
    'that is somewhat too large is read to its end, so that the client can read the answer (headers %j)',
    async (headers) => {
      let sentBytes = 0;
      const body = new ReadableStream<Uint8Array>({
        pull(controller) {
          if (sentBytes === 5 * 1024 * 1024) return controller.close();
          sentBytes += 65_536;
          controller.enqueue(new Uint8Array(65_536).fill(0x20));
        },
      });
      const response = await deploy().app.request('/a2a', {
        method: 'POST',
        body,
        duplex: 'half',
        headers: { 'content-type': 'application/json', ...headers },
      } as RequestInit);
      expect([response.status, sentBytes]).toEqual([413, 5 * 1024 * 1024]);
    },
  );

  test('that does not end is given up', async () => {
    let sentBytes = 0;
    let cancelled = false;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        sentBytes += 65_536;
        controller.enqueue(new Uint8Array(65_536).fill(0x20));
      },
      cancel() {
        cancelled = true;
      },
    });
    const response = await deploy().app.request('/a2a', {
      method: 'POST',
      body,
      duplex: 'half',
      headers: { 'content-type': 'application/json' },
    } as RequestInit);
    expect([response.status, cancelled]).toEqual([413, true]);
    expect(sentBytes).toBeLessThan(17 * 1024 * 1024);
  });
});

describe('the content type', () => {
  test.each(['application/json', 'application/json; charset=utf-8', 'APPLICATION/JSON', 'application/a2a+json', 'application/vnd.x+json'])(
    '%s is read',
    async (type) => {
      expect((await post(deploy().app, request({ method: 'rpc.discover' }), { headers: { 'content-type': type } })).status).toBe(200);
    },
  );

  test('may be absent', async () => {
    const body = new TextEncoder().encode(request({ method: 'rpc.discover' }));
    const response = await deploy().app.request('/a2a', { method: 'POST', body });
    expect([response.status, ((await response.json()) as { result?: unknown }).result]).toEqual([200, expect.anything()]);
  });

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'text/json',
    'application/jsonp',
    'application/json+x',
  ])('%s is answered with 415', async (type) => {
    const answer = await post(deploy().app, request({ method: 'rpc.discover' }), {
      headers: { 'content-type': type, 'a2a-version': '1.0' },
    });
    expect([answer.status, answer.body.error?.code]).toEqual([415, -32005]);
    expect(answer.body.error?.data).toMatchObject([{ reason: 'CONTENT_TYPE_NOT_SUPPORTED', domain: 'a2a-protocol.org' }]);
  });

  test('of something compressed is answered with 415', async () => {
    expect((await post(deploy().app, 'x', { headers: { 'content-encoding': 'gzip' } })).status).toBe(415);
    expect((await post(deploy().app, request({ method: 'rpc.discover' }), { headers: { 'content-encoding': 'identity' } })).status).toBe(
      200,
    );
  });
});

describe('methods', () => {
  test.each(['_cleveragents/nope', 'tasks/send', 'session.nope', 'constructor', '__proto__', 'toString', 'SENDMESSAGE', ' tasks/get'])(
    '%s does not exist: -32601 with its name, in HTTP 200',
    async (method) => {
      const { app, key } = await signedIn();
      const answer = await call(app, method, {}, { key });
      expect([answer.status, answer.body.error?.code, answer.body.id]).toEqual([200, -32601, 'r1']);
      expect(answer.body.error?.data).toMatchObject({ method, reason: 'METHOD_NOT_FOUND' });
    },
  );

  test('of the other version are refused with a hint which one to name', async () => {
    const { app, key } = await signedIn();
    const new1 = await call(app, 'GetTask', { id: TASK }, { key });
    expect([new1.body.error?.code, new1.body.error?.message]).toEqual([-32601, expect.stringContaining('A2A-Version: 1.0')]);
    const old = await call(app, 'tasks/get', { id: TASK }, { key, headers: { 'a2a-version': '1.0' } });
    expect([old.body.error?.code, old.body.error?.message]).toEqual([-32601, expect.stringContaining('A2A-Version: 0.3')]);
  });

  test.each([...OPERATION_NAMES, ...LEGACY_NAMES.keys()])('%s exists in every version, and never answers -32603', async (method) => {
    const { app, key, log } = await signedIn();
    for (const version of ['', '0.3', '1.0']) {
      const answer = await call(app, method, { unheard_of: 1 }, { key, headers: version === '' ? {} : { 'a2a-version': version } });
      expect([answer.status, answer.body.error?.code]).toEqual([200, -32602]);
      expect(answer.body.error?.message).toContain('unheard_of');
    }
    expect(log).toEqual([]);
  });

  test.each(['/', '/a2a', '/a2a/'])('are answered at %s', async (path) => {
    const { app, key } = await signedIn();
    expect((await call(app, 'tasks/get', { id: TASK }, { path, key })).body.error?.code).toBe(-32001);
  });
});

describe('the version', () => {
  test.each(['', '0.3', '0.3.0', '1.0', '1.0.1', ' 1.0 '])('%j is served', async (version) => {
    const { app, key } = await signedIn();
    const answer = await call(app, 'session.list', {}, { key, headers: { 'a2a-version': version } });
    expect(answer.body.result).toEqual({ sessions: [], next_page_token: '' });
  });

  test.each(['2.0', '0.2', '1', '1.1', 'abc', 'v1.0', '1.0,0.3'])('%s is refused with the list of those that are', async (version) => {
    const { app, key } = await signedIn();
    const options = { key, headers: { 'a2a-version': version } };
    const standard = await call(app, 'GetTask', { id: TASK }, options);
    expect([standard.status, standard.body.error?.code]).toEqual([200, -32009]);
    expect(standard.body.error?.data).toMatchObject([
      { reason: 'VERSION_NOT_SUPPORTED', metadata: { supportedVersions: '["1.0","0.3"]' } },
    ]);
    const own = await call(app, 'session.list', {}, options);
    expect([own.status, own.body.error?.code]).toEqual([200, -32007]);
    expect(own.body.error?.data).toMatchObject({ supported_versions: ['1.0', '0.3'] });
  });

  test('may stand in the query, in any case; the header wins', async () => {
    const { app, key } = await signedIn();
    expect((await call(app, 'GetTask', { id: TASK }, { key, path: '/a2a?A2A-Version=1.0' })).body.error?.code).toBe(-32001);
    expect((await call(app, 'GetTask', { id: TASK }, { key, path: '/a2a?a2a-version=1.0' })).body.error?.code).toBe(-32001);
    const both = await call(app, 'GetTask', { id: TASK }, { key, path: '/a2a?A2A-Version=0.3', headers: { 'a2a-version': '1.0' } });
    expect(both.body.error?.code).toBe(-32001);
  });
});

describe.each([
  ['1.0', 'GetTask', 'ListTasks', 'CreateTaskPushNotificationConfig', 'GetExtendedAgentCard'],
  ['0.3', 'tasks/get', 'tasks/list', 'tasks/pushNotificationConfig/set', 'agent/getAuthenticatedExtendedCard'],
])('standard methods of %s', (version, get, list, push, extendedCard) => {
  const headers = { 'a2a-version': version };

  test('answer an unknown task with -32001 and its id', async () => {
    const { app, key } = await signedIn();
    const answer = await call(app, get, { id: TASK }, { key, headers });
    expect([answer.status, answer.body.error?.code]).toEqual([200, -32001]);
    expect(JSON.stringify(answer.body.error?.data)).toContain(TASK);
  });

  test('name the field of a wrong parameter', async () => {
    const { app, key } = await signedIn();
    const answer = await call(app, get, { id: 7 }, { key, headers });
    expect([answer.body.error?.code, answer.body.error?.message]).toEqual([-32602, expect.stringContaining('id')]);
  });

  test('list nothing where there is nothing', async () => {
    const { app, key } = await signedIn();
    expect((await call(app, list, {}, { key, headers })).body.result).toEqual({ tasks: [], nextPageToken: '', pageSize: 50, totalSize: 0 });
  });

  test('say what the card does not offer', async () => {
    const { app, addKey } = deploy({ settings: { pushNotifications: false } });
    expect((await call(app, push, { taskId: TASK }, { key: await addKey(), headers })).body.error?.code).toBe(-32003);
    const card = (await (await app.request('/.well-known/agent-card.json')).json()) as Record<string, unknown>;
    expect(card).toMatchObject({ capabilities: { pushNotifications: false } });
  });

  test('let nobody register a webhook who may not operate', async () => {
    const { app, addKey } = deploy();
    const key = await addKey({ roles: ['viewer', 'approver'] });
    expect((await call(app, push, { taskId: TASK }, { key, headers })).status).toBe(403);
  });

  test('say that there is no extended card where the deployment has none', async () => {
    const { app, addKey } = deploy({ settings: { extendedCard: false } });
    const answer = await call(app, extendedCard, {}, { key: await addKey(), headers });
    expect(answer.body.error?.code).toBe(version === '1.0' ? -32004 : -32007);
    const card = (await (await app.request('/.well-known/agent-card.json')).json()) as Record<string, unknown>;
    expect(card).toMatchObject({ supportsAuthenticatedExtendedCard: false, capabilities: { extendedAgentCard: false } });
  });
});

describe('a stream that cannot begin', () => {
  test.each([
    ['1.0', 'SubscribeToTask'],
    ['0.3', 'tasks/resubscribe'],
  ])('is refused as JSON, not as events (%s)', async (version, method) => {
    const { app, key } = await signedIn();
    const answer = await call(app, method, { id: TASK }, { key, headers: { 'a2a-version': version, accept: 'text/event-stream' } });
    expect([answer.status, answer.headers.get('content-type'), answer.body.error?.code]).toEqual([200, 'application/json', -32001]);
  });
});

describe('the extension', () => {
  const URI = 'urn:cleveragents:extensions:v1';

  test.each(['A2A-Extensions', 'X-A2A-Extensions'])('is confirmed in %s when it was named there', async (name) => {
    const { app } = deploy();
    const answer = await call(app, 'rpc.discover', {}, { headers: { [name]: `urn:other, ${URI}` } });
    expect(answer.headers.get(name)).toBe(URI);
    expect(answer.headers.get(name === 'A2A-Extensions' ? 'X-A2A-Extensions' : 'A2A-Extensions')).toBeNull();
  });

  test('is confirmed on refusals too, and not for what is not ours', async () => {
    const { app } = deploy();
    expect((await call(app, 'tasks/get', {}, { headers: { 'a2a-extensions': URI } })).headers.get('a2a-extensions')).toBe(URI);
    expect((await call(app, 'rpc.discover', {}, { headers: { 'a2a-extensions': `${URI}0` } })).headers.get('a2a-extensions')).toBeNull();
  });

  test('lets a message without messageId through', async () => {
    const { app, key } = await signedIn();
    const params = { message: { role: 'user', taskId: TASK, parts: [{ kind: 'text', text: 'yes' }] } };
    expect((await call(app, 'message/send', params, { key })).body.error?.code).toBe(-32602);
    expect((await call(app, 'message/send', params, { key, headers: { 'x-a2a-extensions': URI } })).body.error?.code).toBe(-32001);
  });
});

describe('the Idempotency-Key header', () => {
  test.each(['k'.repeat(256), 'sp\tace', 'ü'])('%j is refused by name', async (value) => {
    const { app, key } = await signedIn();
    const answer = await call(app, 'session.list', {}, { key, headers: { 'idempotency-key': value } });
    expect([answer.status, answer.body.error?.code, answer.body.error?.message]).toEqual([
      200,
      -32602,
      expect.stringContaining('Idempotency-Key'),
    ]);
  });

  test.each(['', 'k', 'k'.repeat(255), '"quoted value"'])('%j is taken', async (value) => {
    const { app, key } = await signedIn();
    expect((await call(app, 'session.list', {}, { key, headers: { 'idempotency-key': value } })).body.result).toBeDefined();
  });
});

describe('what breaks on our side', () => {
  const SECRET = '/srv/private/path token=hunter2';
  const failing = async (error: Error) => {
    const good = deploy();
    const deployment = deploy({
      services: {
        sessions: { ...good.services.sessions, list: () => Promise.reject(error) },
        planIndex: { ...good.services.planIndex, list: () => Promise.reject(error) },
      },
    });
    return { ...deployment, key: await deployment.addKey() };
  };
  const METHODS = ['session.list', 'ListTasks'] as const;

  test.each(METHODS)('%s: a bug is -32603 with a fixed text, and its cause only in the log', async (method) => {
    const { app, key, log } = await failing(new Error(SECRET));
    const answer = await call(app, method, {}, { key, headers: { 'a2a-version': '1.0' } });
    expect([answer.status, answer.body.id, answer.body.error?.code, answer.body.error?.message]).toEqual([
      200,
      'r1',
      -32603,
      'Internal error',
    ]);
    expect(JSON.stringify(answer.body)).not.toMatch(/private|hunter2/);
    expect(log).toEqual([
      { event: 'internal_error', incident_id: expect.any(String), called: method, error: expect.stringContaining(SECRET) },
    ]);
    expect(JSON.stringify(answer.body.error?.data)).toContain(log[0]?.['incident_id']);
  });

  test.each(METHODS)('%s: an unreachable store is a 503 that says when to come back', async (method) => {
    const { app, key, log } = await failing(new StorageUnavailable('sessions.list', new Error(SECRET)));
    const answer = await call(app, method, {}, { key, headers: { 'a2a-version': '1.0' } });
    expect([answer.status, answer.headers.get('retry-after'), answer.body.error?.code]).toEqual([503, '2', -32000]);
    expect(JSON.stringify(answer.body)).not.toMatch(/private|hunter2/);
    expect(log).toEqual([expect.objectContaining({ event: 'storage_unavailable', called: method })]);
  });

  test('a key store that cannot be reached lets nobody in', async () => {
    const keys = { ...deploy().services.keys, find: () => Promise.reject(new StorageUnavailable('keys.find', null)) };
    const { app } = deploy({ services: { keys } });
    expect((await call(app, 'session.list', {}, { key: `ca_k_${'s'.repeat(32)}` })).status).toBe(503);
  });
});

test('answers are JSON that nobody stores', async () => {
  const { headers } = await call(deploy().app, 'rpc.discover');
  expect([headers.get('content-type'), headers.get('cache-control')]).toEqual(['application/json', 'no-store']);
});
