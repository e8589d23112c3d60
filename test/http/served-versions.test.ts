/** What a deployment may leave out: a version of the protocol, streams. Whatever is left out is on no card and answers nothing. */
import { describe, expect, test } from 'vitest';
import { parseProtocolVersions } from '../../src/a2a/version.ts';
import { call, deploy } from './deployment.ts';

const TASK = '01HXRCF1ABCDE12345678901AB';
const MESSAGE = { message: { messageId: 'm', role: 'ROLE_USER', taskId: TASK, parts: [{ text: 'x' }] } };
const HEADERS = { 'a2a-version': '1.0' };

test.each([
  [undefined, ['1.0', '0.3']],
  ['', ['1.0', '0.3']],
  ['1.0', ['1.0']],
  [' 0.3 , 1.0', ['1.0', '0.3']],
  ['0.3', ['0.3']],
  ['2.0', ['1.0', '0.3']],
])('A2A_VERSIONS %j is read as %j', (text, versions) => {
  expect(parseProtocolVersions(text)).toEqual(versions);
});

describe('a deployment that serves 1.0 alone', () => {
  const served = async () => {
    const deployment = deploy({ settings: { protocolVersions: ['1.0'] } });
    return { ...deployment, key: await deployment.addKey() };
  };

  test.each([undefined, '0.3', '1.0'])('has a card without anything of 0.3, whatever version is named (%s)', async (version) => {
    const { app } = await served();
    const response = await app.request('http://agents.example/.well-known/agent-card.json', {
      headers: version === undefined ? {} : { 'a2a-version': version },
    });
    const card = (await response.json()) as Record<string, unknown> & { supportedInterfaces: { protocolVersion: string }[] };
    expect(card.supportedInterfaces.map(({ protocolVersion }) => protocolVersion)).toEqual(['1.0', '1.0']);
    for (const member of [
      'protocolVersion',
      'url',
      'preferredTransport',
      'additionalInterfaces',
      'supportsAuthenticatedExtendedCard',
      'security',
    ])
      expect(card).not.toHaveProperty(member);
  });

  test.each([{}, { 'a2a-version': '0.3' }, { 'a2a-version': '0.3.0' }])(
    'refuses 0.3, asked for by %j, and says what is served',
    async (headers) => {
      const { app, key } = await served();
      for (const method of ['message/send', 'tasks/get', 'SendMessage']) {
        const { body } = await call(app, method, MESSAGE, { key, headers: headers as Record<string, string> });
        expect([method, body.error?.code]).toEqual([method, -32009]);
        expect(body.error?.message).toContain('supported: 1.0');
      }
    },
  );

  test('does not know the methods of 0.3 and hints at nothing; its own operations need no version', async () => {
    const { app, key } = await served();
    const { body } = await call(app, 'message/send', MESSAGE, { key, headers: HEADERS });
    expect(body.error).toMatchObject({ code: -32601, message: 'Method not found: message/send' });
    expect((await call(app, '_cleveragents/plan/list', {}, { key })).body.error).toBeUndefined();
    expect((await call(app, 'GetTask', { id: TASK }, { key, headers: HEADERS })).body.error?.code).toBe(-32001);
  });

  test('has no paths of 0.3', async () => {
    const { app, key } = await served();
    for (const path of ['/v1/tasks', `/v1/tasks/${TASK}`, '/v1/card', '/v1/message:send'])
      expect((await app.request(`http://agents.example${path}`, { headers: { authorization: `Bearer ${key}`, ...HEADERS } })).status).toBe(
        404,
      );
  });
});

describe('a deployment without streams', () => {
  const served = async () => {
    const deployment = deploy({ settings: { streaming: false } });
    return { ...deployment, key: await deployment.addKey() };
  };

  test('says so on the card', async () => {
    const { app } = await served();
    const card = (await (await app.request('http://agents.example/.well-known/agent-card.json')).json()) as { capabilities: object };
    expect(card.capabilities).toMatchObject({ streaming: false });
  });

  test.each([
    ['1.0', 'SendStreamingMessage', MESSAGE],
    ['1.0', 'SubscribeToTask', { id: TASK }],
    ['0.3', 'message/stream', { message: { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'x' }] } }],
    ['0.3', 'tasks/resubscribe', { id: TASK }],
  ])('refuses %s %s as unsupported', async (version, method, params) => {
    const { app, key } = await served();
    const { status, body } = await call(app, method, params, { key, headers: { 'a2a-version': version } });
    expect([status, body.error?.code]).toEqual([200, -32004]);
  });

  test('refuses them over HTTP+JSON with 400', async () => {
    const { app, key } = await served();
    const response = await app.request(`http://agents.example/tasks/${TASK}:subscribe`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...HEADERS },
    });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { details: [{ reason: 'UNSUPPORTED_OPERATION' }] } });
  });
});
