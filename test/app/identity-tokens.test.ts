import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type IdentitySettings, type IdentityTokens, makeIdentityTokens } from '../../src/app/identity-tokens.ts';
import { sha256 } from '../../src/objects/sha256.ts';
import { makeIssuerKeys } from '../../src/storage/issuer-keys.ts';
import {
  AUDIENCE,
  type IdentityProvider,
  signedWithPublicKey,
  startIdentityProvider,
  type TokenOptions,
  unsigned,
} from '../support/identity-provider.ts';

let provider: IdentityProvider;
let offsetMs = 0;
const reported: unknown[] = [];
const nowMs = (): number => Date.now() + offsetMs;

beforeAll(async () => {
  provider = await startIdentityProvider();
});
afterEach(() => {
  offsetMs = 0;
  provider.behave('answer');
});
afterAll(() => provider.close());

const tokensWith = (settings: Partial<IdentitySettings> = {}, timeoutMs = 300): IdentityTokens =>
  makeIdentityTokens(
    { issuer: provider.issuer, audience: AUDIENCE, jwksUrl: provider.jwksUrl, ...settings },
    { keysAt: (url) => makeIssuerKeys({ url, nowMs, timeoutMs, report: (cause) => reported.push(cause) }), sha256 },
  );

const kindOf = async (tokens: IdentityTokens, token: string) => (await tokens.verify(token, nowMs())).kind;
const nowSeconds = (): number => Math.floor(Date.now() / 1000);

describe('a token of the provider', () => {
  test.each(['rsa', 'ec', 'ed'])('signed with its %s key names its bearer, org, kind and roles', async (kid) => {
    const verdict = await tokensWith().verify(await provider.token({ name: 'Ada L.' }, { kid }), nowMs());
    expect(verdict).toMatchObject({
      kind: 'caller',
      principal: {
        org: 'dev',
        name: 'Ada L.',
        kind: 'human',
        roles: ['operator', 'approver'],
        keyId: expect.stringMatching(/^oidc:[0-9a-f]{32}$/),
      },
    });
    if (verdict.kind === 'caller') expect(verdict.principal.tokenExpiresAtMs).toBe(verdict.expiresAtMs);
  });

  test('is the same identity each time, and another subject is another', async () => {
    const tokens = tokensWith();
    const idOf = async (claims: Record<string, unknown>) => {
      const verdict = await tokens.verify(await provider.token(claims), nowMs());
      return verdict.kind === 'caller' ? verdict.principal.keyId : verdict.kind;
    };
    expect(await idOf({})).toBe(await idOf({ cleveragents_roles: [] }));
    expect(await idOf({})).not.toBe(await idOf({ sub: 'bob' }));
  });

  test.each<[what: string, claims: Record<string, unknown>, principal: Record<string, unknown>]>([
    ['no kind is an agent, who approves nothing', { cleveragents_kind: undefined }, { kind: 'agent' }],
    ['no roles may do nothing', { cleveragents_roles: undefined }, { roles: [] }],
    ['roles as words', { cleveragents_roles: 'viewer  admin' }, { roles: ['viewer', 'admin'] }],
    ['roles that are none of ours', { cleveragents_roles: ['root', 'viewer', 7, null] }, { roles: ['viewer'] }],
    ['roles of another form', { cleveragents_roles: { admin: true } }, { roles: [] }],
    ['one of several audiences', { aud: ['other', AUDIENCE] }, { org: 'dev' }],
    ['no name has its subject for one', { sub: 'x'.repeat(255) }, { name: 'x'.repeat(100) }],
  ])('with %s', async (_what, claims, principal) => {
    expect(await tokensWith().verify(await provider.token(claims), nowMs())).toMatchObject({ kind: 'caller', principal });
  });

  test('may be a little early or late, and no more', async () => {
    const tokens = tokensWith();
    const at = nowSeconds();
    expect(await kindOf(tokens, await provider.token({ exp: at - 20 }))).toBe('caller');
    expect(await kindOf(tokens, await provider.token({ exp: at - 61 }))).toBe('refused');
    expect(await kindOf(tokens, await provider.token({ nbf: at + 20 }))).toBe('caller');
    expect(await kindOf(tokens, await provider.token({ nbf: at + 61 }))).toBe('refused');
  });
});

/** Everything that is refused, in the same words; also used over HTTP. */
describe('is refused', () => {
  test.each<[what: string, claims: Record<string, unknown>, options?: TokenOptions]>([
    ['of another issuer', { iss: 'https://elsewhere.example' }],
    ['with the issuer and a slash', { iss: `${'http://127.0.0.1'}/` }],
    ['for another audience', { aud: 'https://other.example.com' }],
    ['for no audience', { aud: undefined }],
    ['that never expires', { exp: undefined }],
    ['with an expiry that is no number', { exp: 'tomorrow' }],
    ['without a subject', { sub: undefined }],
    ['with an empty subject', { sub: '' }],
    ['with an endless subject', { sub: 'x'.repeat(256) }],
    ['without an org', { cleveragents_org: undefined }],
    ['with an org that is no name', { cleveragents_org: '../other' }],
    ['with an org that is no text', { cleveragents_org: ['dev'] }],
    ['of a kind that there is not', { cleveragents_kind: 'robot' }],
    ['signed by a stranger under a known id', {}, { stranger: true }],
    ['of an unknown key', {}, { kid: 'unknown' }],
    ['of another type', {}, { header: { typ: 'logout+jwt' } }],
    ['with a critical member that nobody knows', {}, { header: { crit: ['exp2'], exp2: 1 } }],
  ])('a token %s', async (_what, claims, options) => {
    const token = await provider.token(claims, options).catch(() => forged(claims, options));
    expect(await tokensWith().verify(token, nowMs())).toEqual({ kind: 'refused' });
  });

  test('a token without a signature', async () => {
    expect(await kindOf(tokensWith(), unsigned(await provider.token()))).toBe('refused');
  });

  test('a token whose shared secret is the public key', async () => {
    const [rsa] = provider.published;
    for (const token of await signedWithPublicKey(await provider.token(), rsa ?? {}))
      expect(await kindOf(tokensWith(), token)).toBe('refused');
  });

  test('a token with its claims changed', async () => {
    const [header, , signature] = (await provider.token()).split('.');
    const [, payload] = (await provider.token({ cleveragents_roles: ['admin'] })).split('.');
    expect(await kindOf(tokensWith(), `${header}.${payload}.${signature}`)).toBe('refused');
  });

  test.each(['a.b.c', '..', 'eyJhbGciOiJub25lIn0..', `${'A'.repeat(4000)}.B.C`])('what is no token (%s)', async (text) => {
    expect(await kindOf(tokensWith(), text)).toBe('refused');
  });

  test('a token of any other org, where the deployment fixes one', async () => {
    const tokens = tokensWith({ org: 'acme' });
    expect(await kindOf(tokens, await provider.token({ cleveragents_org: 'dev' }))).toBe('refused');
    expect(await tokens.verify(await provider.token({ cleveragents_org: undefined }), nowMs())).toMatchObject({
      principal: { org: 'acme' },
    });
    expect(await kindOf(tokens, await provider.token({ cleveragents_org: 'acme' }))).toBe('caller');
  });

  test('a token whose claims have other names than the deployment says', async () => {
    const tokens = tokensWith({ claimPrefix: 'https://agents.example.com/' });
    expect(await kindOf(tokens, await provider.token())).toBe('refused');
    const named = { 'https://agents.example.com/org': 'zeta', 'https://agents.example.com/kind': 'human' };
    expect(await tokens.verify(await provider.token(named), nowMs())).toMatchObject({
      principal: { org: 'zeta', kind: 'human', roles: [] },
    });
  });
});

/** A token that the library would not make. */
async function forged(claims: Record<string, unknown>, options: TokenOptions | undefined): Promise<string> {
  const token = await provider.token(Object.fromEntries(Object.entries(claims).filter(([, value]) => value === undefined)));
  const [head = '', payload = '', signature] = token.split('.');
  const merge = (part: string, more: object) =>
    Buffer.from(JSON.stringify({ ...JSON.parse(Buffer.from(part, 'base64url').toString()), ...more })).toString('base64url');
  return `${merge(head, options?.header ?? {})}.${merge(payload, claims)}.${signature}`;
}

describe('the keys of the provider', () => {
  test('are fetched once for many tokens, and again after ten minutes', async () => {
    const tokens = tokensWith();
    const before = provider.fetches();
    for (const kid of ['rsa', 'ec', 'rsa', 'ed']) expect(await kindOf(tokens, await provider.token({}, { kid }))).toBe('caller');
    expect(provider.fetches() - before).toBe(1);
    offsetMs = 10 * 60_000;
    expect(await kindOf(tokens, await provider.token({ exp: nowSeconds() + 3600 }))).toBe('caller');
    expect(provider.fetches() - before).toBe(2);
  });

  test('are fetched again for a key that is new, and not with every token of a key that there is not', async () => {
    const tokens = tokensWith();
    await tokens.verify(await provider.token(), nowMs());
    const before = provider.fetches();
    for (let round = 0; round < 5; round += 1)
      expect(await kindOf(tokens, await provider.token({}, { kid: `made-up-${round}` }))).toBe('refused');
    expect(provider.fetches()).toBe(before);
    await provider.addKey('ES256', 'next');
    offsetMs = 31_000;
    for (let round = 0; round < 5; round += 1) await tokens.verify(await provider.token({}, { kid: `made-up-${round}` }), nowMs());
    expect(provider.fetches() - before).toBe(1);
    expect(await kindOf(tokens, await provider.token({}, { kid: 'next' }))).toBe('caller');
  });

  test('are fetched once for many who come at the same time', async () => {
    const tokens = tokensWith();
    const before = provider.fetches();
    const right = await Promise.all(['rsa', 'ec', 'ed', 'rsa', 'ec'].map((kid) => provider.token({}, { kid })));
    expect(await Promise.all(right.map((token) => kindOf(tokens, token)))).toEqual(right.map(() => 'caller'));
    expect(provider.fetches() - before).toBe(1);
    offsetMs = 31_000;
    const madeUp = await Promise.all([1, 2, 3, 4, 5].map((each) => provider.token({}, { kid: `made-up-${each}` })));
    expect(await Promise.all(madeUp.map((token) => kindOf(tokens, token)))).toEqual(madeUp.map(() => 'refused'));
    expect(provider.fetches() - before).toBe(2);
  });

  test('are not asked for with a token that says by itself that it is not for us', async () => {
    const tokens = tokensWith();
    const before = provider.fetches();
    await tokens.verify(await provider.token({ iss: 'https://elsewhere.example' }), nowMs());
    await tokens.verify(unsigned(await provider.token()), nowMs());
    expect(provider.fetches()).toBe(before);
  });

  test.each(['fail', 'hang', 'redirect', 'nonsense'] as const)(
    'that do not come (%s) leave it open whether a token is right, and are asked for again soon',
    async (as) => {
      const tokens = tokensWith();
      const token = await provider.token({ exp: nowSeconds() + 3600 });
      provider.behave(as);
      const before = provider.fetches();
      expect(await kindOf(tokens, token)).toBe('unreachable');
      for (let round = 0; round < 5; round += 1) expect(await kindOf(tokens, token)).toBe('unreachable');
      expect(provider.fetches() - before).toBe(1);
      expect(reported.splice(0)).toEqual([expect.any(Error)]);
      provider.behave('answer');
      offsetMs = 5_000;
      expect(await kindOf(tokens, token)).toBe('caller');
    },
  );

  test('that were there are used for an hour while the provider is away', async () => {
    const tokens = tokensWith();
    const token = await provider.token({ exp: nowSeconds() + 7200 });
    expect(await kindOf(tokens, token)).toBe('caller');
    provider.behave('fail');
    offsetMs = 59 * 60_000;
    expect(await kindOf(tokens, token)).toBe('caller');
    offsetMs = 61 * 60_000;
    expect(await kindOf(tokens, token)).toBe('unreachable');
  });
});

describe('the settings', () => {
  test('are all there or none: what is missing or unprotected is named, and no token is accepted', async () => {
    const none = { issuer: undefined, audience: undefined, jwksUrl: undefined };
    expect(tokensWith(none).problem).toBeNull();
    const wrong: readonly (readonly [Partial<IdentitySettings>, string])[] = [
      [{ audience: undefined }, 'OIDC_AUDIENCE'],
      [{ audience: ' ' }, 'OIDC_AUDIENCE'],
      [{ issuer: 'http://login.example.com' }, 'OIDC_ISSUER'],
      [{ jwksUrl: 'http://login.example.com/keys' }, 'OIDC_JWKS_URL'],
      [{ jwksUrl: 'nonsense' }, 'OIDC_JWKS_URL'],
      [{ org: 'a b' }, 'OIDC_ORG'],
    ];
    for (const [settings, named] of wrong) {
      const tokens = tokensWith(settings);
      expect(tokens.problem).toContain(named);
      expect(tokens.openIdConnectUrl).toBeNull();
      expect(await kindOf(tokens, await provider.token())).toBe('refused');
    }
    expect(tokensWith().openIdConnectUrl).toBe(`${provider.issuer}/.well-known/openid-configuration`);
  });
});
