import { describe, expect, test } from 'vitest';
import { EXTENSION_URI } from '../../src/a2a/extension.ts';
import type { JsonObject } from '../../src/core/json.ts';
import { call, deploy } from './deployment.ts';

const OTHER = 'urn:example:terms:v2';
const TASK = '01HXRCF1ABCDE12345678901AB';

const strict = async (requiredExtensions: readonly string[] = [OTHER]) => {
  const deployment = deploy({ settings: { requiredExtensions } });
  return { ...deployment, key: await deployment.addKey() };
};

const SENDS = [
  ['SendMessage', '1.0', { message: { messageId: 'm', role: 'ROLE_USER', taskId: TASK, parts: [{ text: 'x' }] } }],
  ['SendStreamingMessage', '1.0', { message: { messageId: 'm', role: 'ROLE_USER', taskId: TASK, parts: [{ text: 'x' }] } }],
  ['message/send', '0.3', { message: { messageId: 'm', role: 'user', taskId: TASK, parts: [{ kind: 'text', text: 'x' }] } }],
  ['message/stream', '0.3', { message: { messageId: 'm', role: 'user', taskId: TASK, parts: [{ kind: 'text', text: 'x' }] } }],
] as const;

describe.each(SENDS)('%s, where the deployment requires an extension,', (method, version, params) => {
  test('is refused with -32008 to who does not name it, and the refusal names it', async () => {
    const { app, key } = await strict();
    for (const named of [undefined, `${OTHER}0`, EXTENSION_URI]) {
      const headers = { 'a2a-version': version, ...(named === undefined ? {} : { 'a2a-extensions': named }) };
      const { status, body } = await call(app, method, params, { key, headers });
      expect([status, body.error?.code]).toEqual([200, -32008]);
      expect(body.error?.message).toContain(OTHER);
      const data = body.error?.data;
      const info: unknown = Array.isArray(data) ? data[0] : data;
      expect(info).toMatchObject({ reason: 'EXTENSION_SUPPORT_REQUIRED', domain: 'a2a-protocol.org' });
    }
  });

  test.each(['a2a-extensions', 'x-a2a-extensions'])(
    'goes on to the task when %s names it, beside others, and it is confirmed there',
    async (header) => {
      const { app, key } = await strict();
      const headers = { 'a2a-version': version, [header]: `urn:nobody:knows, ${OTHER},${EXTENSION_URI}` };
      const answer = await call(app, method, params, { key, headers });
      expect(answer.body.error?.code).toBe(-32001);
      expect(answer.headers.get(header)).toBe(`${OTHER}, ${EXTENSION_URI}`);
    },
  );
});

test('several required extensions are all needed, and those that are missing are named', async () => {
  const { app, key } = await strict([EXTENSION_URI, OTHER]);
  const [[method, version, params]] = SENDS;
  const ask = async (named: string) =>
    (await call(app, method, params, { key, headers: { 'a2a-version': version, 'a2a-extensions': named } })).body;
  const { error } = await ask(EXTENSION_URI);
  expect([error?.code, error?.message.includes(OTHER), error?.message.includes(EXTENSION_URI)]).toEqual([-32008, true, false]);
  expect((await ask(`${EXTENSION_URI},${OTHER}`)).error?.code).toBe(-32001);
});

test('what is no message needs none, and who may not call is told nothing of it', async () => {
  const { app, key } = await strict();
  const headers = { 'a2a-version': '1.0' };
  expect((await call(app, 'GetTask', { id: TASK }, { key, headers })).body.error?.code).toBe(-32001);
  expect((await call(app, 'ListTasks', {}, { key, headers })).body.result).toBeDefined();
  expect((await call(app, 'session.list', {}, { key })).body.result).toBeDefined();
  expect((await call(app, 'SendMessage', SENDS[0][2], { headers })).status).toBe(401);
});

test('the card declares what is required, and an extension that is not stays optional', async () => {
  const { app } = await strict();
  const card = (await (await app.request('/.well-known/agent-card.json')).json()) as { capabilities: { extensions: JsonObject[] } };
  const [own, other] = card.capabilities.extensions;
  expect(own).toMatchObject({ uri: EXTENSION_URI });
  expect(own).not.toHaveProperty('required');
  expect(other).toMatchObject({ uri: OTHER, required: true });
});

test('an unknown extension in the header changes nothing where none is required', async () => {
  const { app, addKey } = deploy();
  const key = await addKey();
  const headers = { 'a2a-version': '1.0', 'a2a-extensions': 'urn:a2a:tck:unknown, ,,not a uri' };
  const answer = await call(app, 'SendMessage', SENDS[0][2], { key, headers });
  expect([answer.body.error?.code, answer.headers.get('a2a-extensions')]).toEqual([-32001, null]);
});
