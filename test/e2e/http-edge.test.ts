/** The edge of a real server, over real sockets: what its card says is true, and what is wrong is refused before anything happens. */
import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startServer, type TestServer } from '../support/server.ts';

let server: TestServer;

beforeAll(async () => {
  server = await startServer({ entry: 'test' });
});

afterAll(() => server.stop());

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: {
    readonly id: unknown;
    readonly result?: Record<string, unknown>;
    readonly error?: { readonly code: number; readonly message: string };
  };
}

async function rpc(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${server.connection.key}`, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify({ jsonrpc: '2.0', id: 7, ...(body as object) }),
  });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Answer['body'] };
}

/** `fetch` does not let a program choose the Host header. */
function withHost(url: string, host: string, headers: Record<string, string>, body?: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: body === undefined ? 'GET' : 'POST', headers: { host, ...headers } }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

test('a Host header that is no host name is answered with 400, and no 5xx', async () => {
  for (const path of ['/', '/a2a', '/openrpc.json', '/.well-known/agent-card.json', '/health']) {
    const answer = await withHost(`${server.url}${path}`, 'a<b', {}, path === '/a2a' ? '{}' : undefined);
    expect([path, answer.status]).toEqual([path, 400]);
  }
});

describe('each interface of the card', () => {
  test('takes and gives the version that it names', async () => {
    const card = (await (await fetch(`${server.url}/.well-known/agent-card.json`)).json()) as {
      url: string;
      protocolVersion: string;
      supportedInterfaces: { url: string; protocolBinding: string; protocolVersion: string }[];
    };
    expect(card.supportedInterfaces.map(({ protocolVersion }) => protocolVersion)).toEqual(['1.0', '0.3', '1.0', '0.3']);
    const [current, earlier] = card.supportedInterfaces;
    const v1 = await rpc(
      current?.url ?? '',
      { method: 'SendMessage', params: { message: { messageId: 'a', role: 'ROLE_USER', parts: [{ text: 'read README.md' }] } } },
      { 'a2a-version': '1.0' },
    );
    expect(v1.body.result).toMatchObject({ task: { id: expect.any(String), status: { state: expect.stringMatching(/^TASK_STATE_/) } } });
    expect(JSON.stringify(v1.body.result)).toContain('ROLE_');
    const v03 = await rpc(earlier?.url ?? '', {
      method: 'message/send',
      params: { message: { kind: 'message', messageId: 'b', role: 'user', parts: [{ kind: 'text', text: 'read README.md' }] } },
    });
    expect(v03.body.result).toMatchObject({ kind: 'task', status: { state: expect.stringMatching(/^[a-z-]+$/) } });
    expect(card.url).toBe(earlier?.url);
    const v02 = await rpc(card.url, { method: 'tasks/send', params: {} });
    expect([v02.status, v02.body.id, v02.body.error?.code]).toEqual([200, 7, -32601]);
  });

  test('is named by the host that was asked, and a card known for one host is not taken for another', async () => {
    const path = `${server.url}/.well-known/agent-card.json`;
    const one = await withHost(path, 'one.example', { 'x-forwarded-host': 'evil.test' });
    expect(one.text).toContain('http://one.example/a2a');
    expect(one.text).not.toContain('evil.test');
    const etag = (await fetch(path)).headers.get('etag') ?? '';
    expect((await withHost(path, 'one.example', { 'if-none-match': etag })).status).toBe(200);
    expect((await fetch(path, { headers: { 'if-none-match': etag } })).status).toBe(304);
  });
});

test('wrong input gets its code, makes no plan and is never our fault', async () => {
  const plans = async () =>
    (await rpc(`${server.url}/a2a`, { method: 'ListTasks', params: {} }, { 'a2a-version': '1.0' })).body.result?.['totalSize'];
  const before = await plans();
  const nested = `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`;
  const message = (members: object) => ({
    method: 'message/send',
    params: { message: { kind: 'message', messageId: 'm', role: 'user', ...members } },
  });
  const URI = 'urn:cleveragents:extensions:v1';
  const text = [{ kind: 'text', text: 'x' }];
  const cases: readonly (readonly [body: unknown, status: number, code: number])[] = [
    ['{"bad', 200, -32700],
    ['[]', 200, -32600],
    [{ jsonrpc: '1.0', method: 'tasks/get' }, 200, -32600],
    [{ method: '_cleveragents/nope' }, 200, -32601],
    [' '.repeat(5_000_000), 413, -32600],
    [`{"jsonrpc":"2.0","id":7,"method":"_cleveragents/plan/use","params":{"action_name":"commands","arguments":${nested}}}`, 200, -32602],
    [{ method: '_cleveragents/plan/use', params: { action_name: 7 } }, 200, -32602],
    [{ method: '_cleveragents/plan/use', params: { action_name: 'commands', extra: 1 } }, 200, -32602],
    [{ method: '_cleveragents/plan/use', params: { action_name: 'no-such-action' } }, 200, -32001],
    [{ method: '_cleveragents/plan/use', params: { action_name: 'commands', automation_profile: 'balancd' } }, 200, -32602],
    [{ method: '_cleveragents/plan/use', params: { action_name: 'commands', arguments: { unheard: 1 } } }, 200, -32602],
    [{ method: '_cleveragents/plan/status', params: { plan_id: '01HXRCF1ABCDE12345678901AB' } }, 200, -32001],
    [{ method: 'tasks/get', params: { id: "'; DROP TABLE plans; --" } }, 200, -32001],
    [message({ parts: [] }), 200, -32602],
    [message({ parts: text, taskId: 'nope' }), 200, -32001],
    [message({ parts: text, metadata: { [URI]: { action: 'no-such-action' } } }), 200, -32602],
    [message({ parts: text, metadata: { [URI]: { action: 'commands', unheard: 1 } } }), 200, -32602],
  ];
  for (const [body, status, code] of cases) {
    const answer = await rpc(`${server.url}/a2a`, body);
    expect([JSON.stringify(body).slice(0, 120), answer.status, answer.body.error?.code]).toEqual([
      JSON.stringify(body).slice(0, 120),
      status,
      code,
    ]);
  }
  expect(await plans()).toBe(before);
});

test('a subscription begins with the task, numbers its events by the log, and goes on after the last one that a client saw', async () => {
  const started = await rpc(
    `${server.url}/a2a`,
    { method: 'SendMessage', params: { message: { messageId: 'c', role: 'ROLE_USER', parts: [{ text: 'write stream.md: hello' }] } } },
    { 'a2a-version': '1.0' },
  );
  const task = started.body.result?.['task'] as { id: string; status: { state: string } };
  expect(task.status.state).toBe('TASK_STATE_INPUT_REQUIRED');

  const open = async (headers: Record<string, string>) => {
    const abort = new AbortController();
    const response = await fetch(`${server.url}/a2a`, {
      method: 'POST',
      signal: abort.signal,
      headers: { 'content-type': 'application/json', 'a2a-version': '1.0', authorization: `Bearer ${server.connection.key}`, ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', id: 'sub', method: 'SubscribeToTask', params: { id: task.id } }),
    });
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
    const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
    const next = async (): Promise<{ id: number; result: Record<string, unknown> }> => {
      const { value = '' } = await reader.read();
      const [, id, data] = /^id: (\d+)\ndata: (.+)\n\n/.exec(value) ?? [];
      return { id: Number(id), result: (JSON.parse(data ?? 'null') as { result: Record<string, unknown> }).result };
    };
    return { next, close: () => abort.abort() };
  };

  const fresh = await open({});
  const first = await fresh.next();
  expect(first.result).toMatchObject({ task: { id: task.id, status: { state: 'TASK_STATE_INPUT_REQUIRED' } } });
  fresh.close();

  const resumed = await open({ 'last-event-id': String(first.id) });
  await rpc(`${server.url}/a2a`, { method: 'CancelTask', params: { id: task.id } }, { 'a2a-version': '1.0' });
  const later = await resumed.next();
  expect(later.id).toBeGreaterThan(first.id);
  expect(later.result).toMatchObject({ statusUpdate: { status: { state: 'TASK_STATE_CANCELED' } } });
  resumed.close();
});

test('without authentication only this machine is let in', async () => {
  const open = await startServer({ entry: 'test', open: true });
  try {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: '_cleveragents/key/list' });
    const json = { 'content-type': 'application/json' };
    const { host } = new URL(open.url);
    expect((await withHost(`${open.url}/a2a`, host, json, body)).status).toBe(200);
    expect((await withHost(`${open.url}/a2a`, 'rebound.evil.test', json, body)).status).toBe(401);
    expect((await withHost(`${open.url}/a2a`, host, { ...json, origin: 'https://evil.test' }, body)).status).toBe(401);
  } finally {
    await open.stop();
  }
});
