import { describe, expect, test } from 'vitest';
import { OPERATION_NAMES } from '../../src/api/operations.ts';
import { createModificationTimes } from '../../src/http/modification-times.ts';
import { call, deploy } from './deployment.ts';

const CARD = '/.well-known/agent-card.json';
const BROWSER = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };

describe('what is open', () => {
  test('/health says that it answers, and which version', async () => {
    const response = await deploy().app.request('/health');
    expect([response.status, await response.json()]).toEqual([200, { status: 'ok', version: '1.2.3' }]);
  });

  test('/openrpc.json lists every operation, and can be asked for again', async () => {
    const { app } = deploy({ settings: { publicUrl: 'https://agents.example.com' } });
    const response = await app.request('/openrpc.json');
    const document = (await response.json()) as { methods: { name: string }[]; servers: { url: string }[] };
    expect(document.methods.map(({ name }) => name)).toEqual(expect.arrayContaining([...OPERATION_NAMES]));
    expect(document.servers[0]?.url).toBe('https://agents.example.com/a2a');
    const again = await app.request('/openrpc.json', { headers: { 'if-none-match': response.headers.get('etag') ?? '' } });
    expect(again.status).toBe(304);
  });

  test('/ shows a browser a page that says what this is, and lets it run nothing', async () => {
    const response = await deploy().app.request('https://agents.example.com/', { headers: BROWSER });
    const page = await response.text();
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page).toContain(`https://agents.example.com${CARD}`);
    expect(page).toContain('https://agents.example.com/openrpc.json');
    expect(page).not.toContain('<script');
    const policy = response.headers.get('content-security-policy') ?? '';
    const style = /<style>([\s\S]*)<\/style>/.exec(page)?.[1] ?? '';
    const hash = Buffer.from(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(style))).toString('base64');
    expect(policy).toBe(`default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`);
  });

  test('/ shows everybody else the same addresses as JSON', async () => {
    for (const headers of [{}, { accept: '*/*' }, { accept: 'application/json' }]) {
      const response = await deploy().app.request('https://agents.example.com/', { headers });
      expect(await response.json()).toEqual({
        name: 'CleverAgents',
        version: '1.2.3',
        agent_card: `https://agents.example.com${CARD}`,
        a2a: 'https://agents.example.com/a2a',
        openrpc: 'https://agents.example.com/openrpc.json',
        health: 'https://agents.example.com/health',
      });
    }
  });

  test('a hostile address or version cannot write into the page', async () => {
    const { app } = deploy({ settings: { publicUrl: 'https://a"><script>alert(1)</script>', version: `<b>&'` } });
    const page = await (await app.request('/', { headers: BROWSER })).text();
    expect(page).not.toContain('<script');
    expect(page).not.toContain('<b>');
  });
});

describe('what is not there', () => {
  test.each([
    '/.well-known/openid-configuration',
    '/.well-known/agents/other/agent-card.json',
    '/agents/x/.well-known/agent.json',
    '/favicon.ico',
    '/a2a/x',
    '//',
    '/%2e%2e/x',
  ])('%s is a 404 as JSON, never a 401', async (path) => {
    for (const method of ['GET', 'POST']) {
      const response = await deploy().app.request(`http://localhost${path}`, { method });
      expect([path, response.status, response.headers.get('www-authenticate')]).toEqual([path, 404, null]);
      expect(await response.json()).toMatchObject({ error: { code: 404, message: expect.any(String) } });
    }
  });

  test.each([
    ['GET', '/a2a', 'POST, OPTIONS'],
    ['DELETE', '/a2a/', 'POST, OPTIONS'],
    ['PUT', '/', 'GET, HEAD, POST, OPTIONS'],
    ['POST', CARD, 'GET, HEAD, OPTIONS'],
    ['POST', '/.well-known/agent.json', 'GET, HEAD, OPTIONS'],
    ['POST', '/health', 'GET, HEAD, OPTIONS'],
    ['DELETE', '/openrpc.json', 'GET, HEAD, OPTIONS'],
  ])('%s %s is a 405 that says what is possible', async (method, path, allow) => {
    const response = await deploy().app.request(path, { method });
    expect([response.status, response.headers.get('allow')]).toEqual([405, allow]);
    expect(await response.json()).toMatchObject({ error: { code: 405 } });
  });

  test.each(['/', CARD, '/health', '/openrpc.json'])('HEAD %s answers as GET, without a body', async (path) => {
    const response = await deploy().app.request(path, { method: 'HEAD' });
    expect([response.status, await response.text()]).toEqual([200, '']);
  });
});

describe('pages of other origins', () => {
  const ASKED = 'content-type, authorization, a2a-version, a2a-extensions, x-a2a-extensions, idempotency-key, last-event-id';

  test.each(['/', '/a2a', '/a2a/', CARD, '/.well-known/agent.json', '/openrpc.json', '/health'])(
    'may ask beforehand at %s',
    async (path) => {
      const response = await deploy().app.request(path, {
        method: 'OPTIONS',
        headers: { origin: 'https://app.example', 'access-control-request-method': 'POST', 'access-control-request-headers': ASKED },
      });
      expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([204, '*']);
      expect(response.headers.get('access-control-allow-methods')?.split(',')).toEqual(expect.arrayContaining(['GET', 'POST']));
      const allowed = response.headers.get('access-control-allow-headers')?.split(',') ?? [];
      expect(allowed).toEqual(expect.arrayContaining(ASKED.split(', ')));
      expect(response.headers.get('access-control-allow-credentials')).toBeNull();
    },
  );

  test('may read answers, refusals included', async () => {
    const { app } = deploy();
    const headers = { origin: 'https://app.example' };
    for (const answer of [await call(app, 'rpc.discover', {}, { headers }), await call(app, 'tasks/get', {}, { headers })]) {
      expect(answer.headers.get('access-control-allow-origin')).toBe('*');
      expect(answer.headers.get('access-control-expose-headers')).toContain('a2a-extensions');
    }
  });
});

test('every answer forbids sniffing, referrers and frames', async () => {
  const { app } = deploy();
  const responses = [
    await app.request('/'),
    await app.request('/', { headers: BROWSER }),
    await app.request(CARD),
    await app.request('/nothing'),
    await app.request('/a2a'),
    await app.request('/a2a', { method: 'POST', body: '{' }),
    await app.request('/a2a', { method: 'OPTIONS' }),
  ];
  for (const { headers } of responses) {
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
  }
});

test('services that cannot be made are a 500 without their reason', async () => {
  const { app, log } = deploy({ services: { settings: null as never } });
  const response = await app.request('/health');
  const body = (await response.json()) as { error: { incident_id: string } };
  expect([response.status, body]).toEqual([500, { error: { code: 500, message: 'Internal error', incident_id: expect.any(String) } }]);
  expect(log).toEqual([{ event: 'internal_error', incident_id: body.error.incident_id, called: 'GET /health', error: expect.any(String) }]);
});

test('the times of texts have a bound, and a text that comes back gets a new time', () => {
  const times = createModificationTimes(2);
  const at = (name: string, hash: string, second: number) => times.note(name, hash, second * 1000).getTime() / 1000;
  expect([at('a', '1', 10), at('a', '1', 20), at('a', '2', 20), at('a', '1', 20), at('a', '1', 20)]).toEqual([10, 10, 20, 21, 21]);
  at('b', '1', 30);
  at('c', '1', 30);
  expect(at('a', '1', 40)).toBe(40);
});
