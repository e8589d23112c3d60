import { createHash, generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { makeAuditKeys, readKeySet, verifySignature } from '../../../src/core/audit/ed25519.ts';
import { headText, signHead } from '../../../src/core/audit/head.ts';
import { newAuditKeys, newSigningKey } from '../../support/audit-keys.ts';

const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex');
const CLAIM = {
  v: 1,
  org: 'acme',
  plan_id: '01HXRCF1ABCDE12345678901AB',
  seq: 7,
  hash: 'ab'.repeat(32),
  at: '2026-11-30T12:00:00.000Z',
} as const;

describe('a deployment with a key', () => {
  it('signs heads that its published key verifies, the same each time', async () => {
    const keys = newAuditKeys();
    expect(keys).toMatchObject({ problem: null, signs: true });
    const head = await signHead(keys, CLAIM);
    if (head === null) throw new Error('not signed');
    expect(await signHead(keys, CLAIM)).toEqual(head);
    expect(await verifySignature(keys.publicKeys, headText(head), head)).toBe('valid');
    for (const changed of [
      { seq: 8 },
      { hash: 'ac'.repeat(32) },
      { org: 'acme2' },
      { plan_id: '01HXRCF1ABCDE12345678901AC' },
      { at: '2026-11-30T12:00:00.001Z' },
    ]) {
      expect(await verifySignature(keys.publicKeys, headText({ ...head, ...changed }), head), JSON.stringify(changed)).toBe('invalid');
    }
  });

  it('publishes nothing private', () => {
    const [key] = newAuditKeys().publicKeys;
    expect(Object.keys(key ?? {}).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x']);
  });

  it('names a key by its thumbprint, as RFC 8037 appendix A.3 computes it', () => {
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo', kid: 'something else' };
    expect(readKeySet({ keys: [jwk] }, sha256)?.[0]?.kid).toBe('kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k');
  });

  it('still verifies what an earlier key has signed, and says of a key that it does not know it', async () => {
    const before = newAuditKeys();
    const after = newAuditKeys(before.publicKeys);
    const head = await signHead(before, CLAIM);
    if (head === null) throw new Error('not signed');
    expect(after.publicKeys.map(({ kid }) => kid)).toContain(head.kid);
    expect(await after.verify(headText(head), head)).toBe('valid');
    expect(await newAuditKeys().verify(headText(head), head)).toBe('unknown_key');
  });

  it.each(['', 'A', '!!!', 'AAAA', 'A'.repeat(86), `${'A'.repeat(85)}=`])('takes %j for no signature', async (signature) => {
    const keys = newAuditKeys();
    const kid = keys.publicKeys[0]?.kid ?? '';
    expect(await keys.verify('text', { kid, signature })).toBe('invalid');
  });
});

describe('a deployment without a usable key', () => {
  const rsa = JSON.stringify(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' }));
  const publicOnly = JSON.stringify(generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' }));
  it.each([
    ['none', undefined, /wrangler secret put AUDIT_SIGNING_KEY/],
    ['an empty one', '', /wrangler secret put AUDIT_SIGNING_KEY/],
    ['no JSON', 'secret', /is not an Ed25519 private key/],
    ['null', 'null', /is not an Ed25519 private key/],
    ['one of another kind', rsa, /is not an Ed25519 private key/],
    ['a public one', publicOnly, /is not an Ed25519 private key/],
  ])('does not sign and says what to do: %s', async (_, signingKey, problem) => {
    const keys = makeAuditKeys({ signingKey, earlierKeys: undefined, sha256 });
    expect(keys.signs).toBe(false);
    expect(keys.problem).toMatch(problem);
    if (signingKey !== undefined && signingKey.length > 10) expect(keys.problem).not.toContain(signingKey.slice(10, 40));
    expect(await keys.sign('text')).toBeNull();
    expect(await signHead(keys, CLAIM)).toBeNull();
    expect(keys.publicKeys).toEqual([]);
  });

  it('goes on signing when the list of earlier keys is broken, and says so', async () => {
    const keys = makeAuditKeys({ signingKey: newSigningKey(), earlierKeys: '[{"kty":"RSA"}]', sha256 });
    expect(keys.problem).toMatch(/AUDIT_PUBLIC_KEYS/);
    expect(keys.signs).toBe(true);
    expect(await keys.sign('text')).not.toBeNull();
  });
});
