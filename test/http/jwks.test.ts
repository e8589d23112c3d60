import { describe, expect, test } from 'vitest';
import { makeAuditKeys } from '../../src/core/audit/ed25519.ts';
import { newAuditKeys } from '../support/audit-keys.ts';
import { call, deploy, sha256 } from './deployment.ts';

const PATH = '/.well-known/jwks.json';
const CARD_PATH = '/.well-known/agent-card-jwks.json';

describe('the published keys', () => {
  test('that sign cards stand apart from those that sign logs, under the same rules', async () => {
    const { app, services } = deploy();
    const read = async (path: string) => {
      const response = await app.request(path, { headers: { origin: 'https://elsewhere.example' } });
      expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([200, '*']);
      const again = await app.request(path, { headers: { 'if-none-match': response.headers.get('etag') ?? '' } });
      expect(again.status).toBe(304);
      expect((await app.request(path, { method: 'POST' })).status).toBe(405);
      return ((await response.json()) as { keys: Record<string, string>[] }).keys;
    };
    const [ofLogs, ofCards] = [await read(PATH), await read(CARD_PATH)];
    expect(ofCards).toEqual(services.cardSigner.publicKeys);
    expect(ofCards).toHaveLength(1);
    expect(ofCards[0]).not.toHaveProperty('d');
    expect(ofLogs.map(({ kid }) => kid)).not.toContain(ofCards[0]?.['kid']);
  });

  test('are open to everybody, may be cached, and hold nothing private', async () => {
    const before = newAuditKeys();
    const auditKeys = newAuditKeys(before.publicKeys);
    const { app } = deploy({ services: { auditKeys } });
    const response = await app.request(PATH, { headers: { origin: 'https://elsewhere.example' } });
    expect(response.status).toBe(200);
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
    expect(response.headers.get('cache-control')).toMatch(/^public, max-age=\d+$/);
    const body = (await response.json()) as { keys: Record<string, string>[] };
    expect(body).toEqual({ keys: auditKeys.publicKeys });
    expect(body.keys).toHaveLength(2);
    for (const key of body.keys) expect(key).not.toHaveProperty('d');
    const etag = response.headers.get('etag') ?? '';
    expect((await app.request(PATH, { headers: { 'if-none-match': etag } })).status).toBe(304);
    expect((await app.request(PATH, { method: 'POST' })).status).toBe(405);
  });

  test('are none where nothing is signed, and the health check says what to do', async () => {
    const auditKeys = makeAuditKeys({ signingKey: undefined, earlierKeys: undefined, sha256 });
    const { app } = deploy({ services: { auditKeys } });
    expect(await (await app.request(PATH)).json()).toEqual({ keys: [] });
    const { body } = await call(app, '_cleveragents/health/check');
    expect(body.result?.['status']).toBe('degraded');
    const checks = body.result?.['checks'] as { name: string; status: string; detail?: string }[];
    expect(checks.find(({ name }) => name === 'audit_signing')).toMatchObject({
      status: 'failed',
      detail: expect.stringContaining('wrangler secret put AUDIT_SIGNING_KEY'),
    });
  });

  test('fail the health check when the secret is of two keys', async () => {
    const sign = newAuditKeys();
    const auditKeys = { ...newAuditKeys(), sign: sign.sign };
    const { app } = deploy({ services: { auditKeys } });
    const { body } = await call(app, '_cleveragents/health/check');
    const checks = body.result?.['checks'] as { name: string; status: string }[];
    expect(checks.find(({ name }) => name === 'audit_signing')?.status).toBe('failed');
  });
});
