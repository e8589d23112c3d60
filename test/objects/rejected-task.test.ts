/** What a client of either version is answered when nothing may begin: a task that is rejected, or the error of an operation. */
import { createExecutionContext } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { ulid } from 'ulid';
import { describe, expect, it } from 'vitest';
import { EXTENSION_URI } from '../../src/a2a/extension.ts';
import { formatApiKey, hashSecret } from '../../src/core/api-key.ts';
import worker from '../worker/test-worker.ts';
import { addAction, newOrg, now, pause, performed, services, sha256, track } from './plan-support.ts';

/** An answer from outside, read as it comes. */
// biome-ignore lint/suspicious/noExplicitAny: the wire is what is tested.
type Answer = Record<string, any>;

/** An org with one action that would do something, and a way to call the service as its admin, in a version. */
async function client(version: '1.0' | '0.3') {
  const person = await newOrg();
  const action = await addAction(person, {
    name: 'go',
    apply: 'none',
    automation_profile: 'full-auto',
    execute: [{ call: { tool: 'test/counter', arguments: { label: person.org } } }],
  });
  const [id, secret] = [ulid(), services.ids.secret()];
  const record = {
    org: person.org,
    id,
    name: 'wire',
    kind: 'human',
    roles: ['admin'],
    createdAt: now(),
    expiresAt: null,
    revokedAt: null,
  } as const;
  await services.keys.create({ ...record, secretHash: hashSecret(sha256, secret) });
  const post = async (method: string, params: object, key?: string): Promise<{ readonly status: number; readonly text: string }> => {
    const response = await worker.fetch?.(
      new Request('https://agents.example/', {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          authorization: `Bearer ${formatApiKey({ id, secret })}`,
          'a2a-version': version,
          ...(key === undefined ? {} : { 'idempotency-key': key }),
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      }) as never,
      env as never,
      createExecutionContext(),
    );
    if (response === undefined) throw new Error('the worker has no fetch');
    return { status: response.status, text: await response.text() };
  };
  const call = async (method: string, params: object, key?: string): Promise<Answer> => JSON.parse((await post(method, params, key)).text);
  const metadata = { [EXTENSION_URI]: { action } };
  const message = () =>
    version === '1.0'
      ? { message: { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'go' }], metadata } }
      : { message: { kind: 'message', messageId: 'm1', role: 'user', parts: [{ kind: 'text', text: 'go' }], metadata } };
  return { person, action, call, post, message };
}

const METHODS = {
  '1.0': { send: 'SendMessage', stream: 'SendStreamingMessage', get: 'GetTask', rejected: 'TASK_STATE_REJECTED' },
  '0.3': { send: 'message/send', stream: 'message/stream', get: 'tasks/get', rejected: 'rejected' },
} as const;

describe.each(['1.0', '0.3'] as const)('under a halted org, in version %s', (version) => {
  const { send, stream, get, rejected } = METHODS[version];
  const taskOf = (result: Answer): Answer => result['task'] ?? result;

  it('a message becomes a task that is rejected with the reason; the same key answers it again, and so does get', async () => {
    const { person, call, message } = await client(version);
    await call('_cleveragents/halt/set', { level: 'org', reason: 'a key leaked' });
    const first = await call(send, message(), 'once');
    const task = taskOf(first['result']);
    track(person, task['id']);
    expect(task['status']['state']).toBe(rejected);
    expect(JSON.stringify(task['status']['message'])).toContain('the org is halted: a key leaked');
    await call('_cleveragents/halt/clear', { level: 'org' });
    const again = taskOf((await call(send, message(), 'once'))['result']);
    expect([again['id'], again['status']['state']]).toEqual([task['id'], rejected]);
    expect((await call(get, { id: task['id'] }))['result']['status']['state']).toBe(rejected);
    await pause(50);
    expect(performed(person.org)).toEqual([]);
  });

  it('a stream brings the rejected task and ends', async () => {
    const { person, call, post, message } = await client(version);
    await call('_cleveragents/halt/set', { level: 'org', reason: 'a key leaked' });
    const { status, text } = await post(stream, message());
    expect(status).toBe(200);
    const events = [...text.matchAll(/^data: ?(.*)$/gm)].map(([, data]) => JSON.parse(data ?? '')['result'] as Answer);
    const task = taskOf(events[0] ?? {});
    track(person, task['id']);
    expect(task['status']['state']).toBe(rejected);
    expect(JSON.stringify(events.at(-1))).toContain(rejected);
    expect(performed(person.org)).toEqual([]);
  });

  it('an operation is refused with the code of the source, names the halt, and makes no plan', async () => {
    const { person, action, call, message } = await client(version);
    await call('_cleveragents/halt/set', { level: 'org', reason: 'a key leaked' });
    expect((await call('_cleveragents/plan/use', { action_name: action }))['error']).toMatchObject({
      code: -32004,
      data: { halted: { level: 'org', reason: 'a key leaked' } },
    });
    expect((await call('_cleveragents/guard/configure', { plan_id: ulid() }))['error']['code']).toBe(-32004);
    await call('_cleveragents/halt/clear', { level: 'org' });
    await services.budgets.node(person.org, { kind: 'org' }).setCaps({ total: 0 }, { mayLoosen: true });
    expect((await call('_cleveragents/plan/use', { action_name: action }))['error']).toMatchObject({
      code: -32006,
      data: { exceeded_level: 'org' },
    });
    expect((await call('_cleveragents/plan/list', {}))['result']['total_size']).toBe(0);
    const sent = taskOf((await call(send, message()))['result']);
    track(person, sent['id']);
    expect(sent['status']['state']).toBe(rejected);
  });
});
