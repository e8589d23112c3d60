import { describe, expect, test } from 'vitest';
import { makeCardSigner } from '../../src/a2a/card-signature.ts';
import { OPERATION_NAMES } from '../../src/api/operations.ts';
import { StorageUnavailable } from '../../src/app/ports.ts';
import type { Settings } from '../../src/app/services.ts';
import type { JsonObject } from '../../src/core/json.ts';
import { call, deploy, START_MS, sha256 } from './deployment.ts';

const PATHS = ['/.well-known/agent-card.json', '/.well-known/agent.json'] as const;
const CARD = PATHS[0];

const fetchCard = async (url: string = CARD, headers: Record<string, string> = {}, settings: Partial<Settings> = {}) => {
  const response = await deploy({ settings }).app.request(url, { headers });
  return { response, text: await response.text() };
};

const publicAction = (org: string, name: string, body: JsonObject) => ({
  org,
  name,
  version: 1,
  body: { name, actor: 'scripted/steps', ...body },
  createdAt: new Date(START_MS).toISOString(),
  updatedAt: new Date(START_MS).toISOString(),
});

const urlsIn = (value: unknown): readonly string[] => {
  if (typeof value === 'string') return /^https?:/.test(value) ? [value] : [];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(urlsIn) : [];
};

describe('the Agent Card', () => {
  test('is the same text at both paths, without a key', async () => {
    for (const version of ['', '0.3', '1.0']) {
      const [first, second] = await Promise.all(PATHS.map((path) => fetchCard(path, { 'a2a-version': version })));
      expect([first?.response.status, second?.text]).toEqual([200, first?.text]);
      expect(first?.response.headers.get('content-type')).toBe('application/json');
    }
  });

  test.each([
    ['', 'hybrid'],
    ['0.3', 'hybrid'],
    ['0.3.0', 'hybrid'],
    ['1.0', 'pure'],
    ['1.0.1', 'pure'],
    ['7.3', 'hybrid'],
    ['nonsense', 'hybrid'],
  ])('for A2A-Version %j is the %s one, never a refusal', async (version, shape) => {
    const { response, text } = await fetchCard(CARD, version === '' ? {} : { 'a2a-version': version });
    const card = JSON.parse(text) as JsonObject;
    expect([response.status, 'protocolVersion' in card]).toEqual([200, shape === 'hybrid']);
    expect(response.headers.get('vary')).toContain('A2A-Version');
  });

  test('says what is true of this server, and its methods are those of the table', async () => {
    const card = JSON.parse((await fetchCard()).text) as JsonObject;
    expect(card['capabilities']).toMatchObject({
      streaming: true,
      pushNotifications: true,
      extendedAgentCard: true,
      extensions: [{ uri: 'urn:cleveragents:extensions:v1', params: { methods: [...OPERATION_NAMES].sort() } }],
    });
    expect(card).toMatchObject({
      version: '1.2.3',
      supportsAuthenticatedExtendedCard: true,
      security: [{ bearerAuth: [] }, { apiKeyAuth: [] }],
    });
  });

  test('asks for no key where none is needed', async () => {
    const card = JSON.parse((await fetchCard(CARD, {}, { authMode: 'open' })).text) as JsonObject;
    expect(card).not.toHaveProperty('securitySchemes');
    expect(card).not.toHaveProperty('security');
  });

  test('is signed, with the same text each time, and unsigned where there is no key', async () => {
    const { app, services } = deploy();
    const read = async () => (await app.request(CARD)).text();
    const text = await read();
    expect(await read()).toBe(text);
    const { signatures } = JSON.parse(text) as { signatures: { protected: string }[] };
    const header = JSON.parse(Buffer.from(signatures[0]?.protected ?? '', 'base64url').toString()) as JsonObject;
    expect(header).toEqual({
      alg: 'EdDSA',
      typ: 'JOSE',
      kid: services.cardSigner.publicKeys[0]?.kid,
      jku: 'http://localhost/.well-known/agent-card-jwks.json',
    });
    const unsigned = deploy({ services: { cardSigner: makeCardSigner(undefined, sha256) } });
    expect(await (await unsigned.app.request(CARD)).json()).not.toHaveProperty('signatures');
    const { body } = await call(unsigned.app, '_cleveragents/health/check');
    const checks = body.result?.['checks'] as { name: string; status: string; detail?: string }[];
    expect(checks.find(({ name }) => name === 'card_signing')).toMatchObject({
      status: 'ok',
      detail: expect.stringContaining('wrangler secret put CARD_SIGNING_KEY'),
    });
    const broken = deploy({ services: { cardSigner: makeCardSigner('{}', sha256) } });
    expect((await call(broken.app, '_cleveragents/health/check')).body.result).toMatchObject({ status: 'degraded' });
  });

  test('holds no null and only camel-case members', async () => {
    const { text } = await fetchCard();
    expect(text).not.toContain('null');
    const visit = (value: unknown): void => {
      if (typeof value !== 'object' || value === null) return;
      for (const [name, child] of Object.entries(value)) {
        if (!Array.isArray(value)) expect(name).toMatch(/^[a-z][A-Za-z]*$/);
        visit(child);
      }
    };
    visit(JSON.parse(text));
  });

  test('lists the public actions of the org that the deployment names and of no other, and a general skill where there are none', async () => {
    expect(JSON.parse((await fetchCard()).text)).toMatchObject({ skills: [{ id: 'plan-lifecycle' }] });
    const { app, services } = deploy();
    await services.actions.add(publicAction('acme', 'greet', { description: 'Says hello', public: true }));
    await services.actions.add(publicAction('zeta', 'phish', { description: 'Speaks for somebody else', public: true }));
    await services.actions.add(publicAction('acme', 'secret', { description: 'Not for everybody' }));
    const card = (await (await app.request(CARD)).json()) as JsonObject;
    expect(card['skills']).toEqual([{ id: 'greet', name: 'greet', description: 'Says hello', tags: ['action'] }]);
  });

  test('names the configured origin, whatever the request says', async () => {
    const headers = { host: 'internal:8787', 'x-forwarded-host': 'evil.test', 'x-forwarded-proto': 'http', forwarded: 'host=evil.test' };
    for (const publicUrl of ['https://agents.example.com', 'https://agents.example.com/']) {
      const { response, text } = await fetchCard(`http://internal:8787${CARD}`, headers, { publicUrl });
      const urls = urlsIn(JSON.parse(text));
      expect(urls.length).toBeGreaterThan(3);
      expect(urls.every((url) => url.startsWith('https://agents.example.com/') || url === 'https://agents.example.com')).toBe(true);
      expect(urls.some((url) => url.includes('com//'))).toBe(false);
      expect(response.headers.get('vary')).toBe('A2A-Version');
    }
  });

  test('names the address of the request where none is configured, and never a forwarded one', async () => {
    for (const origin of ['https://one.example', 'https://two.example', 'http://127.0.0.1:8787']) {
      const { response, text } = await fetchCard(`${origin}${CARD}`, { 'x-forwarded-host': 'evil.test' });
      expect(urlsIn(JSON.parse(text)).every((url) => url.startsWith(origin))).toBe(true);
      expect(response.headers.get('vary')).toBe('A2A-Version, Host');
    }
  });

  test('is a 503 that says when to come back while the store is away, and nothing of why', async () => {
    const actions = {
      ...deploy().services.actions,
      listPublic: () => Promise.reject(new StorageUnavailable('actions.listPublic', new Error('path'))),
    };
    const response = await deploy({ services: { actions } }).app.request(CARD);
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '2']);
    expect(await response.json()).toMatchObject({ error: { code: 503 } });
  });
});

describe('asking again for the card', () => {
  test('has an ETag of its own for each text, and the same for the same text', async () => {
    const tagOf = async (url: string, version: string) => (await fetchCard(url, { 'a2a-version': version })).response.headers.get('etag');
    const tags = [await tagOf(CARD, ''), await tagOf(CARD, '1.0'), await tagOf(`https://two.example${CARD}`, '')];
    expect(new Set(tags).size).toBe(3);
    expect(tags[0]).toMatch(/^"[0-9a-f]{64}"$/);
    expect(await tagOf(PATHS[1], '0.3')).toBe(tags[0]);
  });

  test('answers 304 without a body to whoever has it, by tag', async () => {
    const { app } = deploy();
    const first = await app.request(CARD);
    const etag = first.headers.get('etag') ?? '';
    expect(first.headers.get('cache-control')).toBe('public, max-age=300');
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const again = await app.request(CARD, { headers: { 'if-none-match': known } });
      expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag]);
      expect(again.headers.get('vary')).toContain('A2A-Version');
    }
    expect((await app.request(CARD, { headers: { 'if-none-match': '"other"' } })).status).toBe(200);
    expect((await app.request(CARD, { headers: { 'if-none-match': etag, 'a2a-version': '1.0' } })).status).toBe(200);
  });

  test.each(['', '1.0'])('and any answer about it may be read by pages of other origins (version %j)', async (version) => {
    const { app } = deploy();
    const headers = { origin: 'https://elsewhere.example', 'a2a-version': version };
    const first = await app.request(CARD, { headers });
    const again = await app.request(CARD, { headers: { ...headers, 'if-none-match': first.headers.get('etag') ?? '' } });
    expect([first.status, again.status]).toEqual([200, 304]);
    for (const answer of [first, again]) {
      expect(answer.headers.get('access-control-allow-origin')).toBe('*');
      expect(answer.headers.get('access-control-expose-headers')?.toLowerCase()).toContain('etag');
      expect(answer.headers.get('cache-control')).toBe('public, max-age=300');
      expect(answer.headers.get('last-modified')).not.toBeNull();
    }
  });

  test('answers 304 by time, unless a tag says otherwise', async () => {
    const { app } = deploy();
    const modified = (await app.request(CARD)).headers.get('last-modified') ?? '';
    expect(Date.parse(modified)).toBe(START_MS);
    expect((await app.request(CARD, { headers: { 'if-modified-since': modified } })).status).toBe(304);
    expect((await app.request(CARD, { headers: { 'if-modified-since': modified, 'if-none-match': '"other"' } })).status).toBe(200);
    expect((await app.request(CARD, { headers: { 'if-modified-since': 'never' } })).status).toBe(200);
  });

  test('tells a card that changed, even within the same second', async () => {
    const { app, services, advance } = deploy();
    const before = await app.request(CARD);
    advance(400);
    await services.actions.add(publicAction('acme', 'greet', { description: 'Says hello', public: true }));
    const known = { 'if-modified-since': before.headers.get('last-modified') ?? '' };
    const after = await app.request(CARD, { headers: known });
    expect(after.status).toBe(200);
    expect(after.headers.get('etag')).not.toBe(before.headers.get('etag'));
    expect(Date.parse(after.headers.get('last-modified') ?? '')).toBeGreaterThan(START_MS);
    advance(3_600_000);
    expect((await app.request(CARD)).headers.get('last-modified')).toBe(after.headers.get('last-modified'));
  });
});
