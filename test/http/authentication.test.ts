import { describe, expect, test } from 'vitest';
import { createPrincipalCache } from '../../src/app/principal-cache.ts';
import { call, deploy, START_MS } from './deployment.ts';

const TASK = '01HXRCF1ABCDE12345678901AB';
const iso = (ms: number): string => new Date(ms).toISOString();

/** One method of each family. */
const METHODS = [
  ['tasks/get', { id: TASK }, -32600],
  ['session.list', {}, -32002],
  ['_cleveragents/plan/status', { plan_id: TASK }, -32002],
] as const;

describe.each(METHODS)('%s', (method, params, code) => {
  test('answers every kind of bad key with the same 401', async () => {
    const { app, addKey } = deploy();
    const good = await addKey();
    const cases: readonly (readonly [string, Record<string, string>])[] = [
      ['none', {}],
      ['empty', { authorization: '' }],
      ['another scheme', { authorization: 'Basic dXNlcjpwYXNz' }],
      ['no token', { authorization: 'Bearer' }],
      ['not a key', { authorization: 'Bearer nonsense' }],
      ['two tokens', { authorization: `Bearer ${good} ${good}` }],
      ['very long', { authorization: `Bearer ca_a_${'x'.repeat(5000)}` }],
      ['unknown id', { authorization: `Bearer ${good.replace(/ca_[^_]+_/, 'ca_nobody_')}` }],
      ['wrong secret', { authorization: `Bearer ${good.slice(0, -1)}!` }],
      ['secret of one other letter', { authorization: `Bearer ${good.slice(0, -1)}${good.endsWith('0') ? '1' : '0'}` }],
      ['revoked', { authorization: `Bearer ${await addKey({ revokedAt: iso(START_MS - 1) })}` }],
      ['expired', { authorization: `Bearer ${await addKey({ expiresAt: iso(START_MS - 1) })}` }],
      ['expired this moment', { authorization: `Bearer ${await addKey({ expiresAt: iso(START_MS) })}` }],
      ['expiry that is no time', { authorization: `Bearer ${await addKey({ expiresAt: 'soon' })}` }],
      ['bad X-API-Key', { 'x-api-key': 'nonsense' }],
      ['good X-API-Key behind a bad Authorization', { authorization: 'Bearer nonsense', 'x-api-key': good }],
    ];
    const answers = await Promise.all(
      cases.map(async ([name, headers]) => {
        const answer = await call(app, method, params, { headers });
        return { name, status: answer.status, challenge: answer.headers.get('www-authenticate'), body: JSON.stringify(answer.body) };
      }),
    );
    const first = answers[0];
    expect(JSON.parse(first?.body ?? '')).toMatchObject({ id: 'r1', error: { code } });
    for (const answer of answers) {
      expect(answer).toEqual({ name: answer.name, status: 401, challenge: 'Bearer realm="CleverAgents"', body: first?.body });
    }
  });

  test('lets a good key through, as bearer in any case and as X-API-Key', async () => {
    const { app, addKey } = deploy();
    const key = await addKey({ expiresAt: iso(START_MS + 1) });
    for (const headers of [{ authorization: `Bearer ${key}` }, { authorization: `bearer  ${key} ` }, { 'x-api-key': key }]) {
      expect((await call(app, method, params, { headers })).status).toBe(200);
    }
  });

  test('knows the caller before it looks at a parameter', async () => {
    const { app } = deploy();
    expect((await call(app, method, { wrong: 1 })).status).toBe(401);
  });
});

describe('a verified key', () => {
  test('is believed for 30 seconds and then read again', async () => {
    const { app, addKey, keyReads, advance, services } = deploy();
    const key = await addKey({ id: 'k1' });
    const ask = async () => (await call(app, 'session.list', {}, { key })).status;
    expect([await ask(), await ask(), keyReads.length]).toEqual([200, 200, 1]);
    await services.keys.revoke('acme', 'k1', iso(START_MS));
    advance(29_999);
    expect([await ask(), keyReads.length]).toEqual([200, 1]);
    advance(1);
    expect([await ask(), keyReads.length]).toEqual([401, 2]);
  });

  test('is never believed beyond its expiry', async () => {
    const { app, addKey, advance } = deploy();
    const key = await addKey({ expiresAt: iso(START_MS + 1_000) });
    expect((await call(app, 'session.list', {}, { key })).status).toBe(200);
    advance(1_000);
    expect((await call(app, 'session.list', {}, { key })).status).toBe(401);
  });

  test('is read fresh by administration, whose refusal the others see at once', async () => {
    const { app, addKey, keyReads, services } = deploy();
    const key = await addKey({ id: 'k1' });
    await call(app, 'session.list', {}, { key });
    expect((await call(app, '_cleveragents/key/list', {}, { key })).status).toBe(200);
    expect(keyReads.length).toBe(2);
    await services.keys.revoke('acme', 'k1', iso(START_MS));
    expect((await call(app, '_cleveragents/key/list', {}, { key })).status).toBe(401);
    expect((await call(app, 'session.list', {}, { key })).status).toBe(401);
  });

  test('does not lend its place in the cache to another secret of the same id', async () => {
    const { app, addKey } = deploy();
    const key = await addKey();
    await call(app, 'session.list', {}, { key });
    expect((await call(app, 'session.list', {}, { key: `${key}x` })).status).toBe(401);
  });

  test('works at once after it was refused while it did not exist', async () => {
    const { app, addKey } = deploy();
    const key = await deploy().addKey({ id: 'k1' });
    expect((await call(app, 'session.list', {}, { key })).status).toBe(401);
    await addKey({ id: 'k1' });
    expect((await call(app, 'session.list', {}, { key })).status).toBe(200);
  });
});

test('the cache of keys has a bound, and the oldest leaves first', () => {
  const cache = createPrincipalCache(2);
  const principal = { org: 'acme', keyId: 'k', name: 'k', kind: 'human', roles: [] } as const;
  for (const hash of ['a', 'b', 'c']) cache.put(hash, principal, 0, null);
  expect(['a', 'b', 'c'].map((hash) => cache.get(hash, 1) !== null)).toEqual([false, true, true]);
  cache.put('b', principal, 2, null);
  cache.put('d', principal, 2, null);
  expect(['b', 'c', 'd'].map((hash) => cache.get(hash, 3) !== null)).toEqual([true, false, true]);
});

describe('roles', () => {
  const CASES = [
    ['GetTask', { id: TASK }, ['viewer', 'operator', 'approver', 'admin']],
    ['ListTasks', {}, ['viewer', 'operator', 'approver', 'admin']],
    ['CancelTask', { id: TASK }, ['operator', 'admin']],
    ['SubscribeToTask', { id: TASK }, ['viewer', 'operator', 'approver', 'admin']],
    [
      'SendMessage',
      { message: { messageId: 'm', role: 'ROLE_USER', taskId: TASK, parts: [{ text: 'x' }] } },
      ['operator', 'approver', 'admin'],
    ],
    ['_cleveragents/plan/status', { plan_id: TASK }, ['viewer', 'operator', 'approver', 'admin']],
    ['_cleveragents/plan/cancel', { plan_id: TASK }, ['operator', 'admin']],
    ['_cleveragents/key/list', {}, ['admin']],
  ] as const;

  test.each(CASES)('%s is for those who have one of its roles, and the refusal names it', async (method, params, allowed) => {
    const { app, addKey } = deploy();
    for (const role of ['viewer', 'operator', 'approver', 'admin'] as const) {
      const answer = await call(app, method, params, { key: await addKey({ roles: [role] }), headers: { 'a2a-version': '1.0' } });
      const isAllowed = (allowed as readonly string[]).includes(role);
      expect([role, answer.status]).toEqual([role, isAllowed ? 200 : 403]);
      if (isAllowed) continue;
      expect(answer.body.error?.code).toBe(method.startsWith('_') ? -32003 : -32600);
      expect(answer.body.error?.message).toContain(allowed[0]);
    }
  });

  test('a key without roles may do nothing', async () => {
    const { app, addKey } = deploy();
    const key = await addKey({ roles: [] });
    for (const [method, params] of CASES) {
      expect((await call(app, method, params, { key, headers: { 'a2a-version': '1.0' } })).status).toBe(403);
    }
  });
});

describe('public operations', () => {
  test.each(['rpc.discover', '_cleveragents/health/check'])('%s answers without a key, and does not look at one', async (method) => {
    const { app, keyReads } = deploy();
    expect((await call(app, method)).body.result).toBeDefined();
    expect((await call(app, method, {}, { key: 'ca_nobody_ssssssssssssssssssss' })).body.result).toBeDefined();
    expect(keyReads).not.toContain('nobody');
  });
});

describe('without authentication (mode open)', () => {
  const open = () => deploy({ settings: { authMode: 'open' } });
  const status = async (url: string, headers: Record<string, string> = {}) =>
    (await call(open().app, 'session.list', {}, { path: url, headers })).status;

  test.each([
    'http://localhost/a2a',
    'http://127.0.0.1:8787/a2a',
    'http://127.9.9.9/a2a',
    'http://[::1]:8787/a2a',
    'http://0x7f000001/a2a',
  ])('%s needs no key', async (url) => {
    expect(await status(url)).toBe(200);
  });

  test.each([
    'https://agents.example.com/a2a',
    'http://10.0.0.1/a2a',
    'http://localhost.evil.test/a2a',
    'http://127.0.0.1.evil.test/a2a',
    'http://evil.test/a2a?localhost',
    'http://[::2]/a2a',
    'http://0.0.0.0/a2a',
  ])('%s is not this machine, and needs one', async (url) => {
    expect(await status(url)).toBe(401);
  });

  test('a forwarding header makes no request local', async () => {
    expect(
      await status('http://evil.test/a2a', { 'x-forwarded-host': 'localhost', 'x-real-ip': '127.0.0.1', forwarded: 'host=localhost' }),
    ).toBe(401);
  });

  test.each([
    ['http://localhost:3000', 200],
    ['http://127.0.0.1:3000', 200],
    ['https://evil.test', 401],
    ['http://localhost.evil.test', 401],
    ['null', 401],
  ])('a page of %s gets %i', async (origin, expected) => {
    expect(await status('http://localhost/a2a', { origin })).toBe(expected);
  });

  test('a valid key is still itself: an agent stays an agent', async () => {
    const { app, addKey } = open();
    const key = await addKey({ kind: 'agent', roles: ['viewer'] });
    expect((await call(app, '_cleveragents/key/list', {}, { path: 'http://localhost/a2a', key })).status).toBe(403);
  });

  test('an unknown key is no key', async () => {
    const { app } = open();
    expect((await call(app, '_cleveragents/key/list', {}, { path: 'http://localhost/a2a', key: 'anything' })).status).toBe(200);
  });
});
