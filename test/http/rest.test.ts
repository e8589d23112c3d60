/** The HTTP+JSON binding at the edge, over plans in memory that nothing drives on: routes, parameters, media types, errors, tenants. */
import * as fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { EXTENSION_URI } from '../../src/a2a/extension.ts';
import { formatApiKey, hashSecret } from '../../src/core/api-key.ts';
import type { Role } from '../../src/core/principal.ts';
import { createApp } from '../../src/http/app.ts';
import { expectOfficial } from '../a2a/oracles.ts';
import { STRICT_REST_03, STRICT_WIRE } from '../a2a/strict-wire.ts';
import { makeService, type TestService } from '../app/service.ts';
import { sha256 } from './deployment.ts';

/** An answer from outside, read as it comes. */
// biome-ignore lint/suspicious/noExplicitAny: the wire is what is tested.
type Body = any;

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
}

interface Ask {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** null: none. */
  readonly key?: string | null;
}

const V1 = { 'a2a-version': '1.0' };
const UNKNOWN = '01HXRCF1ABCDE12345678901AB';
const SECRET = 'a-secret_of-tests-0000';

let service: TestService;
let app: ReturnType<typeof createApp>;
let key: string;
let log: Readonly<Record<string, string>>[];

beforeEach(async () => {
  service = makeService();
  log = [];
  app = createApp(() => service.services, { report: (entry) => log.push(entry) });
  key = await addKey('acme');
  const { call } = await service.caller('acme');
  await call('_cleveragents/action/add', { action: { name: 'go', description: 'Goes', actor: 'scripted/commands' } });
});

async function addKey(org: string, roles: readonly Role[] = ['admin']): Promise<string> {
  const id = service.services.ids.ulid();
  await service.caller(org, { id, roles, secretHash: hashSecret(sha256, SECRET) });
  return formatApiKey({ id, secret: SECRET });
}

async function ask(line: string, { body, headers = {}, key: presented = key }: Ask = {}): Promise<Answer> {
  const [method = '', path = ''] = line.split(' ');
  const response = await app.request(path, {
    method,
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(presented === null ? {} : { authorization: `Bearer ${presented}` }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === '' ? null : JSON.parse(text) };
}

const v1 = (line: string, options: Ask = {}): Promise<Answer> => ask(line, { ...options, headers: { ...V1, ...options.headers } });

const start = { metadata: { [EXTENSION_URI]: { action: 'go' } } };
const messageV1 = (members: object = {}) => ({ messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'go' }], ...start, ...members });
const messageV03 = (members: object = {}) => ({ messageId: 'm1', role: 'ROLE_USER', content: [{ text: 'go' }], ...start, ...members });

async function sendV1(members: object = {}): Promise<Body> {
  const sent = await v1('POST /message:send', { body: { message: messageV1(members), configuration: { returnImmediately: true } } });
  expect(sent.status, JSON.stringify(sent.body)).toBe(200);
  return sent.body.task;
}

describe('in 1.0', () => {
  test('a task is sent, read, listed and canceled by its routes', async () => {
    const sent = await v1('POST /message:send', { body: { message: messageV1(), configuration: { returnImmediately: true } } });
    expect(sent.status).toBe(200);
    STRICT_WIRE['1.0'].sendResult.parse(sent.body);
    expectOfficial('1.0', 'sendResult', sent.body);
    const { id } = sent.body.task;

    const read = await v1(`GET /tasks/${id}`);
    STRICT_WIRE['1.0'].task.parse(read.body);
    expectOfficial('1.0', 'task', read.body);
    expect([read.status, read.body.id]).toEqual([200, id]);

    const listed = await v1('GET /tasks');
    STRICT_WIRE['1.0'].page.parse(listed.body);
    expect(listed.body).toMatchObject({ tasks: [{ id }], nextPageToken: '', pageSize: 50, totalSize: 1 });

    const canceled = await v1(`POST /tasks/${id}:cancel`);
    STRICT_WIRE['1.0'].task.parse(canceled.body);
    expect([canceled.status, canceled.body.status.state]).toEqual([200, 'TASK_STATE_CANCELED']);
    const again = await v1(`POST /tasks/${id}:cancel`, { body: {} });
    expect([again.status, again.body.error.details[0].reason]).toEqual([400, 'TASK_NOT_CANCELABLE']);
    expect(log).toEqual([]);
  });

  test('a task is the same over either binding', async () => {
    const { id } = await sendV1();
    const overRest = await v1(`GET /tasks/${id}`);
    const overRpc = await v1('POST /a2a', { body: { jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id } } });
    expect(overRpc.body.result).toEqual(overRest.body);
  });

  test('each filter of a list is read from the query, in both spellings of its name and of the state', async () => {
    const first = await sendV1();
    const second = await sendV1();
    await v1(`POST /tasks/${first.id}:cancel`);
    const idsOf = async (query: string) => {
      const listed = await v1(`GET /tasks?${query}`);
      expect(listed.status, JSON.stringify(listed.body)).toBe(200);
      return listed.body.tasks.map((task: Body) => task.id).sort();
    };
    const both = [first.id, second.id].sort();
    for (const status of ['TASK_STATE_CANCELED', '5']) expect(await idsOf(`status=${status}`)).toEqual([first.id]);
    for (const status of ['TASK_STATE_UNSPECIFIED', '0', '']) expect(await idsOf(`status=${status}`)).toEqual(both);
    for (const name of ['contextId', 'context_id']) expect(await idsOf(`${name}=${second.contextId}`)).toEqual([second.id]);
    for (const name of ['statusTimestampAfter', 'status_timestamp_after']) {
      expect(await idsOf(`${name}=2999-01-01T00:00:00Z`)).toEqual([]);
      expect(await idsOf(`${name}=${encodeURIComponent('2020-01-01T00:00:00+01:00')}`)).toEqual(both);
    }
    for (const [size, token] of [
      ['pageSize', 'pageToken'],
      ['page_size', 'page_token'],
    ]) {
      const page = await v1(`GET /tasks?${size}=1`);
      expect(page.body).toMatchObject({ pageSize: 1, totalSize: 2, tasks: [expect.anything()] });
      const rest = await idsOf(`${size}=1&${token}=${encodeURIComponent(page.body.nextPageToken)}`);
      expect([...rest, page.body.tasks[0].id].sort()).toEqual(both);
    }
    for (const name of ['historyLength', 'history_length']) {
      expect((await v1(`GET /tasks?${name}=0`)).body.tasks[0]).not.toHaveProperty('history');
      expect((await v1(`GET /tasks/${first.id}?${name}=0`)).body).not.toHaveProperty('history');
      expect((await v1(`GET /tasks/${first.id}?${name}=1`)).body.history).toHaveLength(1);
    }
    for (const name of ['includeArtifacts', 'include_artifacts']) {
      expect((await v1(`GET /tasks?${name}=true`)).body.tasks[0]).toHaveProperty('artifacts');
      expect((await v1(`GET /tasks?${name}=false`)).body.tasks[0]).not.toHaveProperty('artifacts');
    }
    expect(await idsOf('unheard=1&A2A-Version=1.0')).toEqual(both);
  });

  test.each([
    ['pageSize=0', 'pageSize'],
    ['pageSize=101', 'pageSize'],
    ['pageSize=ten', 'pageSize'],
    ['page_size=1.5', 'pageSize'],
    ['pageSize=1&pageSize=2', 'pageSize'],
    ['historyLength=-1', 'historyLength'],
    ['historyLength=99999999999', 'historyLength'],
    ['status=completed', 'status'],
    ['status=99', 'status'],
    ['includeArtifacts=yes', 'includeArtifacts'],
    ['includeArtifacts=1', 'includeArtifacts'],
    ['statusTimestampAfter=yesterday', 'statusTimestampAfter'],
    ['pageToken=nonsense', 'pageToken'],
  ])('the query %s is refused by the name of %s', async (query, field) => {
    const { status, body } = await v1(`GET /tasks?${query}`);
    expect(status).toBe(400);
    expect(body.error).toMatchObject({ code: 400, status: 'INVALID_ARGUMENT' });
    expect(body.error.details[0]).toMatchObject({ reason: 'INVALID_PARAMS', domain: 'a2a-protocol.org' });
    expect(body.error.details[1].fieldViolations.map((violation: Body) => violation.field.replace('page_token', 'pageToken'))).toEqual([
      field,
    ]);
  });

  test('an id is taken as the path encodes it, and an encoded colon makes no verb', async () => {
    const { id } = await sendV1();
    const encoded = [...id].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join('');
    expect((await v1(`GET /tasks/${encoded}`)).body.id).toBe(id);
    for (const path of [
      `/tasks/${id}%3Acancel`,
      '/tasks/a%2Fb',
      '/tasks/%E0%A4%A',
      '/tasks/..%2f..%2fetc',
      '/tasks/%00',
      `/tasks/${id}:other`,
    ]) {
      const { status, body } = await v1(`GET ${path}`);
      expect([path, status, body.error.details[0].reason]).toEqual([path, 404, 'TASK_NOT_FOUND']);
    }
    expect((await v1(`GET /tasks/${id}`)).body.status.state).not.toBe('TASK_STATE_CANCELED');
  });

  test('what the path says counts more than a body or a query that says otherwise', async () => {
    const { id } = await sendV1();
    const other = await sendV1();
    expect((await v1(`GET /tasks/${id}?id=${other.id}`)).body.id).toBe(id);
    expect((await v1(`POST /tasks/${id}:cancel`, { body: { id: other.id, tenant: 'acme' } })).body.id).toBe(id);
    const config = { taskId: other.id, task_id: other.id, url: 'https://hooks.example/a' };
    expect((await v1(`POST /tasks/${other.id}/pushNotificationConfigs`, { body: { ...config, taskId: UNKNOWN } })).status).not.toBe(500);
  });

  test('subscribe is POST and GET, and says with JSON why there is no stream', async () => {
    const { id } = await sendV1();
    await v1(`POST /tasks/${id}:cancel`);
    for (const method of ['POST', 'GET']) {
      const terminal = await v1(`${method} /tasks/${id}:subscribe`);
      expect([terminal.status, terminal.body.error.details[0].reason]).toEqual([400, 'UNSUPPORTED_OPERATION']);
      const unknown = await v1(`${method} /tasks/${UNKNOWN}:subscribe`, { headers: { accept: 'text/event-stream' } });
      expect([unknown.status, unknown.body.error.status]).toEqual([404, 'NOT_FOUND']);
    }
  });

  test('a stream writes bare events with their place in the log and ends', async () => {
    const response = await app.request('/message:stream', {
      method: 'POST',
      headers: { ...V1, authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ message: messageV1() }),
    });
    expect([response.status, response.headers.get('content-type'), response.headers.get('cache-control')]).toEqual([
      200,
      'text/event-stream',
      'no-store',
    ]);
    const frames = (await response.text()).split('\n\n').filter((frame) => frame !== '');
    expect(frames[0]).toMatch(/^id: \d+\ndata: \{"task":/);
    for (const frame of frames) {
      const event = JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? '');
      STRICT_WIRE['1.0'].event.parse(event);
      expectOfficial('1.0', 'event', event);
    }
  });

  test('a stream that breaks ends with the error of the binding', async () => {
    const { id } = await sendV1();
    const { plans } = service.services;
    const broken = { ...service.services, plans: { plan: (org: string, plan: string) => ({ ...plans.plan(org, plan), follow: broke }) } };
    app = createApp(() => broken, { report: (entry) => log.push(entry) });
    const response = await app.request(`/tasks/${id}:subscribe`, { method: 'POST', headers: { ...V1, authorization: `Bearer ${key}` } });
    const last = (await response.text()).trimEnd().split('\n\n').at(-1) ?? '';
    expect(last).toMatch(/^event: error\ndata: /);
    expect(JSON.parse(last.slice(last.indexOf('{')))).toMatchObject({
      error: { code: 500, status: 'INTERNAL', message: 'Internal error' },
    });
    expect(last).not.toContain('secret detail');
    expect(log).toMatchObject([{ event: 'internal_error', called: 'POST /tasks/{id}:subscribe' }]);
  });

  test('push configurations are refused as over JSON-RPC where the deployment has none', async () => {
    const without = { ...service.services, settings: { ...service.services.settings, pushNotifications: false } };
    app = createApp(() => without);
    const base = `/tasks/${UNKNOWN}/pushNotificationConfigs`;
    for (const line of [`GET ${base}`, `GET ${base}/c`, `DELETE ${base}/c`]) {
      const { status, body } = await v1(line);
      expect([line, status, body.error.details[0].reason]).toEqual([line, 400, 'PUSH_NOTIFICATION_NOT_SUPPORTED']);
    }
    expect((await v1(`POST ${base}`, { body: { url: 'https://hooks.example' } })).body.error.details[0].reason).toBe(
      'PUSH_NOTIFICATION_NOT_SUPPORTED',
    );
  });

  test('the extended card is a document for the cache of its caller', async () => {
    const card = await v1('GET /extendedAgentCard');
    expectOfficial('1.0', 'card', card.body);
    expect([card.status, card.headers.get('cache-control')]).toEqual([200, 'private, max-age=300']);
    const known = await v1('GET /extendedAgentCard', { headers: { 'if-none-match': card.headers.get('etag') ?? '' } });
    expect([known.status, known.body]).toEqual([304, null]);
    const overRpc = await v1('POST /a2a', { body: { jsonrpc: '2.0', id: 1, method: 'GetExtendedAgentCard' } });
    expect(overRpc.body.result).toEqual(card.body);
    expect((await v1('GET /extendedAgentCard', { key: null })).status).toBe(401);
  });
});

const broke = async (): Promise<never> => {
  throw new Error('secret detail');
};

describe('in 0.3', () => {
  const send = async (members: object = {}): Promise<Answer> =>
    ask('POST /v1/message:send', { body: { message: messageV03(members), configuration: { acceptedOutputModes: [] } } });

  test('a task is sent, read, listed and canceled under /v1 in the shapes of its proto', async () => {
    const sent = await send();
    expect(sent.status, JSON.stringify(sent.body)).toBe(200);
    STRICT_REST_03.sendResult.parse(sent.body);
    const { id, contextId } = sent.body.task;
    const read = await ask(`GET /v1/tasks/${id}?history_length=1`);
    STRICT_REST_03.task.parse(read.body);
    expect(read.body).toMatchObject({ id, contextId, history: [{ role: 'ROLE_USER', content: [{ text: 'go' }] }] });
    expect((await ask(`GET /v1/tasks/${id}?historyLength=0`)).body.history).toHaveLength(1);
    expect((await ask('GET /v1/tasks')).body).toMatchObject([{ id }]);
    const canceled = await ask(`POST /v1/tasks/${id}:cancel`);
    STRICT_REST_03.task.parse(canceled.body);
    expect(canceled.body.status.state).toBe('TASK_STATE_CANCELLED');
    for (const status of ['TASK_STATE_CANCELLED', 'TASK_STATE_CANCELED', '5']) {
      expect((await ask(`GET /v1/tasks?status=${status}`)).body).toHaveLength(1);
    }
  });

  test('a list that goes on says where', async () => {
    const ids = [(await send()).body.task.id, (await send()).body.task.id];
    const first = await ask('GET /v1/tasks?pageSize=1');
    const next = /^<(.+)>; rel="next"$/.exec(first.headers.get('link') ?? '')?.[1] ?? '';
    const second = await ask(`GET ${next}`);
    expect(second.headers.get('link')).toBeNull();
    expect([first.body[0].id, second.body[0].id].sort()).toEqual(ids.sort());
  });

  test('a finished task is what a subscription answers, by POST and by GET', async () => {
    const { id } = (await send()).body.task;
    await ask(`POST /v1/tasks/${id}:cancel`);
    for (const method of ['POST', 'GET']) {
      const response = await app.request(`/v1/tasks/${id}:subscribe`, { method, headers: { authorization: `Bearer ${key}` } });
      const frame = await response.text();
      expect(frame).toMatch(/^id: \d+\ndata: .*\n\n$/);
      const event = JSON.parse(frame.slice(frame.indexOf('{')));
      STRICT_REST_03.event.parse(event);
      expect(event.task).toMatchObject({ id, status: { state: 'TASK_STATE_CANCELLED' } });
    }
  });

  test('errors have the code of JSON-RPC and the status of HTTP', async () => {
    const cases: readonly (readonly [line: string, ask: Ask, status: number, code: number])[] = [
      [`GET /v1/tasks/${UNKNOWN}`, {}, 404, -32001],
      ['GET /v1/tasks/x?historyLength=-1', {}, 400, -32602],
      ['POST /v1/message:send', { body: '{"bad' }, 400, -32700],
      ['POST /v1/message:send', { body: { message: { ...messageV03(), content: [] } } }, 400, -32602],
      ['POST /v1/message:send', { body: { message: messageV03({ taskId: 'nope', metadata: undefined }) } }, 404, -32001],
      [`GET /v1/tasks/${UNKNOWN}`, { key: null }, 401, -32600],
      ['POST /v1/message:send', { body: 'x', headers: { 'content-type': 'text/plain' } }, 415, -32005],
    ];
    for (const [line, options, status, code] of cases) {
      const answer = await ask(line, options);
      expect([line, answer.status, answer.body.code, typeof answer.body.message]).toEqual([line, status, code, 'string']);
      expect(answer.headers.get('content-type')).toBe('application/json');
    }
  });

  test('the card has the shape of the proto, without what 0.3 does not know', async () => {
    const { body } = await ask('GET /v1/card');
    expect(body).toMatchObject({
      protocolVersion: '0.3.0',
      supportsAuthenticatedExtendedCard: true,
      securitySchemes: { bearerAuth: { httpAuthSecurityScheme: { scheme: 'bearer' } } },
      security: [{ schemes: { bearerAuth: {} } }, { schemes: { apiKeyAuth: {} } }],
    });
    for (const member of ['supportedInterfaces', 'securityRequirements', 'signatures']) expect(body).not.toHaveProperty(member);
    expect(body.securitySchemes.bearerAuth).not.toHaveProperty('type');
  });
});

describe('the version', () => {
  test.each([
    ['GET /tasks', {}],
    ['GET /tasks', { 'a2a-version': '0.3' }],
    ['GET /tasks', { 'a2a-version': '' }],
    ['POST /message:send', {}],
    ['GET /tasks', { 'a2a-version': '99.0' }],
    ['GET /v1/tasks', { 'a2a-version': '99.0' }],
    ['GET /v1/card', V1],
  ])('of another address is refused: %s with %j', async (line, headers) => {
    const { status, body } = await ask(line, { headers, ...(line.startsWith('POST') ? { body: {} } : {}) });
    expect([status, body.error.status, body.error.details[0].reason]).toEqual([400, 'FAILED_PRECONDITION', 'VERSION_NOT_SUPPORTED']);
  });

  test('may stand in the query, and its patch number takes no part', async () => {
    expect((await ask('GET /tasks?a2a-version=1.0')).status).toBe(200);
    expect((await ask('GET /tasks', { headers: { 'a2a-version': '1.0.1' } })).status).toBe(200);
    expect((await ask('GET /v1/tasks', { headers: { 'a2a-version': '0.3' } })).status).toBe(200);
  });
});

describe('a tenant', () => {
  test('in the path is the org of the caller, for every operation', async () => {
    const { id } = await sendV1();
    expect((await v1(`GET /acme/tasks/${id}`)).body.id).toBe(id);
    expect((await v1('GET /acme/tasks')).body.totalSize).toBe(1);
    expect((await v1('GET /acme/extendedAgentCard')).status).toBe(200);
    const sent = await v1('POST /acme/message:send', { body: { message: messageV1(), configuration: { returnImmediately: true } } });
    expect(sent.body.task.status.state).toMatch(/^TASK_STATE_/);
    expect((await v1(`POST /acme/tasks/${id}:cancel`, { body: { tenant: 'other' } })).body.id).toBe(id);
  });

  test('of another org is answered like one that there is not, whatever is asked and however it is named', async () => {
    const theirs = await addKey('other');
    const { id } = await sendV1();
    expect((await v1('GET /other/tasks', { key: theirs })).status).toBe(200);
    const body = { message: messageV1() };
    const base = `tasks/${id}/pushNotificationConfigs`;
    const asked = (tenant: string): Promise<Answer>[] => [
      v1(`GET /${tenant}/tasks`),
      v1(`GET /${tenant}/tasks/${id}`),
      v1(`POST /${tenant}/tasks/${id}:cancel`),
      v1(`GET /${tenant}/tasks/${id}:subscribe`),
      v1(`POST /${tenant}/message:send`, { body }),
      v1(`POST /${tenant}/message:stream`, { body }),
      v1(`GET /${tenant}/extendedAgentCard`),
      v1(`GET /${tenant}/${base}`),
      v1(`DELETE /${tenant}/${base}/c`),
      v1(`POST /${tenant}/${base}`, { body: { url: 'https://hooks.example/a' } }),
      v1('POST /message:send', { body: { ...body, tenant } }),
      v1(`GET /tasks?tenant=${tenant}`),
    ];
    const foreign = await Promise.all(asked('other'));
    const unknown = await Promise.all(asked('nobody'));
    expect(foreign.map(({ status }) => status)).toEqual(foreign.map(() => 404));
    const told = (answers: readonly Answer[]) => answers.map((answer) => JSON.stringify(answer.body).replaceAll(/other|nobody/g, '-'));
    expect(told(foreign)).toEqual(told(unknown));
    expect((await v1('GET /tasks')).body.totalSize).toBe(1);
    expect((await v1(`GET /tasks/${id}`)).body.status.state).not.toBe('TASK_STATE_CANCELED');
  });

  test('of another org is unknown over JSON-RPC too', async () => {
    const { body } = await v1('POST /a2a', { body: { jsonrpc: '2.0', id: 1, method: 'ListTasks', params: { tenant: 'other' } } });
    expect(body.error).toMatchObject({ code: -32602, message: 'Tenant not found' });
  });

  test('is asked about only after the key', async () => {
    expect((await v1('GET /other/tasks', { key: null })).status).toBe(401);
  });
});

describe('HTTP', () => {
  test('says which methods a path has', async () => {
    const cases: readonly (readonly [line: string, allow: string])[] = [
      ['GET /message:send', 'POST, OPTIONS'],
      ['PUT /tasks', 'GET, HEAD, OPTIONS'],
      ['POST /tasks/x', 'GET, HEAD, OPTIONS'],
      ['GET /tasks/x:cancel', 'POST, OPTIONS'],
      ['DELETE /tasks/x:subscribe', 'POST, GET, OPTIONS'],
      ['HEAD /tasks/x:subscribe', 'POST, GET, OPTIONS'],
      ['PATCH /tasks/x/pushNotificationConfigs', 'POST, GET, HEAD, OPTIONS'],
      ['POST /tasks/x/pushNotificationConfigs/c', 'GET, HEAD, DELETE, OPTIONS'],
      ['DELETE /acme/extendedAgentCard', 'GET, HEAD, OPTIONS'],
    ];
    for (const [line, allow] of cases) {
      const { status, headers } = await v1(line);
      expect([line, status, headers.get('allow')]).toEqual([line, 405, allow]);
    }
    const earlier = await ask('PUT /v1/tasks/x:cancel');
    expect([earlier.status, earlier.headers.get('allow')]).toEqual([405, 'POST, OPTIONS']);
  });

  test.each(['GET /nope', 'GET /tasks/', 'GET /a/b/tasks', 'POST /message:other', 'POST /v1', 'GET /v1/extendedAgentCard', 'GET /card'])(
    'has nothing at %s',
    async (line) => {
      const { status, body } = await ask(line, line === 'GET /v1/extendedAgentCard' ? {} : { headers: V1 });
      expect([400, 404]).toContain(status);
      expect(body.error.message).not.toBe('');
    },
  );

  test('answers HEAD like GET without a body', async () => {
    const response = await app.request('/tasks', { method: 'HEAD', headers: { ...V1, authorization: `Bearer ${key}` } });
    expect([response.status, await response.text()]).toEqual([200, '']);
  });

  test('lets pages of any origin call it, and asks no key before', async () => {
    for (const path of ['/message:send', '/tasks/x:cancel', '/acme/tasks', '/v1/tasks', '/tasks/x/pushNotificationConfigs/c']) {
      const response = await app.request(path, {
        method: 'OPTIONS',
        headers: { origin: 'https://page.example', 'access-control-request-method': 'DELETE' },
      });
      expect([path, response.status, response.headers.get('access-control-allow-origin')]).toEqual([path, 204, '*']);
      expect(response.headers.get('access-control-allow-methods')).toContain('DELETE');
    }
    expect((await v1('GET /tasks', { headers: { origin: 'https://page.example' } })).headers.get('access-control-allow-origin')).toBe('*');
  });

  test('wants JSON and says so with 415, 413 or 400, and the field that is wrong', async () => {
    const send = (body: string, headers: Readonly<Record<string, string>> = {}) => v1('POST /message:send', { body, headers });
    const nested = `{"message":${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}}`;
    const cases: readonly (readonly [answer: Answer, status: number, reason: string])[] = [
      [await send('{}', { 'content-type': 'text/plain' }), 415, 'CONTENT_TYPE_NOT_SUPPORTED'],
      [await send('{}', { 'content-encoding': 'gzip' }), 415, 'CONTENT_TYPE_NOT_SUPPORTED'],
      [await send(' '.repeat(4 * 1024 * 1024 + 1)), 413, 'INVALID_REQUEST'],
      [await send('{"bad'), 400, 'PARSE_ERROR'],
      [await send('[]'), 400, 'INVALID_PARAMS'],
      [await send('null'), 400, 'INVALID_PARAMS'],
      [await send(nested), 400, 'INVALID_PARAMS'],
      [await send(''), 400, 'INVALID_PARAMS'],
      [await send(JSON.stringify({ message: messageV1({ parts: [] }) })), 400, 'INVALID_PARAMS'],
      [await send(JSON.stringify({ message: messageV1({ taskId: 'nope', metadata: undefined }) })), 404, 'TASK_NOT_FOUND'],
    ];
    for (const [answer, status, reason] of cases) {
      const { error } = answer.body;
      expect([answer.status, error.code, error.details[0].reason]).toEqual([status, status, reason]);
      expect(Object.keys(answer.body)).toEqual(['error']);
      expect(Object.keys(error).sort()).toEqual(['code', 'details', 'message', 'status']);
    }
    expect(cases[8]?.[0].body.error.details[1]).toMatchObject({
      '@type': 'type.googleapis.com/google.rpc.BadRequest',
      fieldViolations: [{ field: 'message.parts' }],
    });
    expect(log).toEqual([]);
  });

  test.each([
    [{}, 'application/json'],
    [{ accept: '*/*' }, 'application/json'],
    [{ accept: 'application/a2a+json, application/json' }, 'application/a2a+json'],
    [{ accept: 'application/json, Application/A2A+JSON; q=0.5' }, 'application/a2a+json'],
    [{ accept: 'application/a2a+json;q=0, application/json' }, 'application/json'],
    [{ 'content-type': 'application/a2a+json; charset=utf-8' }, 'application/a2a+json'],
  ])('answers the media type of A2A to those who name it: %j', async (headers, type) => {
    const sent = await v1('POST /message:send', { body: { message: messageV1(), configuration: { returnImmediately: true } }, headers });
    expect([sent.status, sent.headers.get('content-type')]).toEqual([200, type]);
    expect((await v1(`GET /tasks/${UNKNOWN}`, { headers })).headers.get('content-type')).toBe(type);
  });

  test('says who may not: 401 with a challenge, 403 with the role, both before anything is looked up', async () => {
    const nobody = await v1(`GET /tasks/${UNKNOWN}`, { key: null });
    expect([nobody.status, nobody.body.error.status, nobody.headers.get('www-authenticate')]).toEqual([
      401,
      'UNAUTHENTICATED',
      'Bearer realm="CleverAgents"',
    ]);
    const viewer = await addKey('acme', ['viewer']);
    const forbidden = await v1(`POST /tasks/${UNKNOWN}:cancel`, { key: viewer });
    expect([forbidden.status, forbidden.body.error.status]).toEqual([403, 'PERMISSION_DENIED']);
    expect(forbidden.body.error.message).toBe('POST /tasks/{id}:cancel needs the role operator');
  });

  test('carries the headers of A2A: extensions are confirmed, a key makes a second send the first one', async () => {
    const named = await v1('GET /tasks', { headers: { 'a2a-extensions': `${EXTENSION_URI}, urn:example:other` } });
    expect(named.headers.get('a2a-extensions')).toBe(EXTENSION_URI);
    const body = { message: messageV1(), configuration: { returnImmediately: true } };
    const headers = { 'idempotency-key': 'once' };
    const ids = [];
    for (const _ of [1, 2]) ids.push((await v1('POST /message:send', { body, headers })).body.task.id);
    expect(new Set(ids).size).toBe(1);
    const bad = await v1('POST /message:send', { body, headers: { 'idempotency-key': 'x'.repeat(256) } });
    expect([bad.status, bad.body.error.details[1].fieldViolations[0].field]).toEqual([400, 'Idempotency-Key']);
  });

  test('wants the extensions that the deployment requires in messages only', async () => {
    const strict = { ...service.services, settings: { ...service.services.settings, requiredExtensions: ['urn:example:terms'] } };
    app = createApp(() => strict);
    const refused = await v1('POST /message:send', { body: { message: messageV1() } });
    expect([refused.status, refused.body.error.details[0].reason]).toEqual([400, 'EXTENSION_SUPPORT_REQUIRED']);
    expect((await v1('GET /tasks')).status).toBe(200);
  });

  test('our own operations have no path of their own', async () => {
    for (const path of ['/_cleveragents/plan/list', '/_cleveragents/plan/use', '/acme/_cleveragents/plan/list']) {
      expect((await v1(`POST ${path}`, { body: {} })).status).toBe(404);
    }
  });

  test('no path, query, header or body makes an answer that is not JSON, or our fault', async () => {
    const { id } = await sendV1();
    const piece = fc.oneof(
      fc.constantFrom(
        'tasks',
        'message:send',
        'message:stream',
        'v1',
        'acme',
        'pushNotificationConfigs',
        `${id}:cancel`,
        id,
        `${id}:subscribe`,
      ),
      fc.string({ unit: 'binary', maxLength: 12 }).map((text) => encodeURIComponent(text.toWellFormed())),
      fc.constantFrom('%', '%00', '%2F', ':', '::cancel', '__proto__', 'constructor', '%ff:cancel'),
    );
    const query = fc.array(
      fc.tuple(
        fc.constantFrom('pageSize', 'status', 'historyLength', 'tenant', 'pageToken', '__proto__', 'id'),
        fc.string({ maxLength: 8 }),
      ),
      { maxLength: 3 },
    );
    const body = fc.oneof(
      fc.json({ maxDepth: 3 }),
      fc.string({ maxLength: 20 }),
      fc.json().map((value) => `{"message":${value}}`),
    );
    const method = fc.constantFrom('GET', 'POST', 'DELETE', 'HEAD', 'PUT');
    const headers = fc.constantFrom<Readonly<Record<string, string>>>(
      V1,
      {},
      { 'a2a-version': 'x' },
      { ...V1, accept: 'application/a2a+json' },
    );
    await fc.assert(
      fc.asyncProperty(
        method,
        fc.array(piece, { minLength: 1, maxLength: 4 }),
        query,
        body,
        headers,
        async (verb, path, asked, sent, more) => {
          const init = verb === 'GET' || verb === 'HEAD' ? {} : { body: sent };
          const url = `http://agents.example/${path.join('/')}?${new URLSearchParams(asked)}`;
          const response = await app.request(url, {
            method: verb,
            headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...more },
            ...init,
          });
          const text = await response.text();
          expect(response.status, text).toBeLessThan(500);
          // Dots can lead to the page at the root.
          const isPage = new URL(url).pathname === '/';
          if (text !== '' && !isPage && response.headers.get('content-type') !== 'text/event-stream') JSON.parse(text);
        },
      ),
      { numRuns: 400 },
    );
    expect(log).toEqual([]);
  });

  test('a bug of ours is told as an incident and nothing else', async () => {
    const broken = {
      ...service.services,
      plans: { plan: (org: string, id: string) => ({ ...service.services.plans.plan(org, id), read: broke }) },
    };
    app = createApp(() => broken, { report: (entry) => log.push(entry) });
    const { status, body } = await v1(`GET /tasks/${UNKNOWN}`);
    expect([status, body.error.status, body.error.message]).toEqual([500, 'INTERNAL', 'Internal error']);
    expect(body.error.details[0].metadata.incidentId).toBe(log[0]?.['incident_id']);
    expect(JSON.stringify(body)).not.toContain('secret detail');
    const earlier = await ask(`GET /v1/tasks/${UNKNOWN}`);
    expect([earlier.status, earlier.body.code]).toEqual([500, -32603]);
  });
});
