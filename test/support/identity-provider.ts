/** An identity provider on loopback: it publishes keys and makes tokens, right ones and every kind of wrong one. */
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';

export const AUDIENCE = 'https://agents.example.com';

export type Algorithm = 'RS256' | 'ES256' | 'EdDSA';

interface KeyPair {
  readonly kid: string;
  readonly alg: Algorithm;
  readonly privateKey: CryptoKey;
  readonly jwk: JWK;
}

export interface IdentityProvider {
  readonly issuer: string;
  readonly jwksUrl: string;
  /** Keys as they are published. */
  readonly published: readonly JWK[];
  /** How often the keys were fetched. */
  fetches(): number;
  /** What the provider does with the next fetches. */
  behave(as: 'answer' | 'hang' | 'fail' | 'redirect' | 'nonsense'): void;
  /** Publishes one more key. */
  addKey(alg: Algorithm, kid: string): Promise<void>;
  /** A token that is right but for what is said. `claims` of value undefined are left out. */
  token(claims?: Readonly<Record<string, unknown>>, options?: TokenOptions): Promise<string>;
  close(): Promise<void>;
}

export interface TokenOptions {
  readonly kid?: string;
  readonly header?: Readonly<Record<string, unknown>>;
  /** Signs with a key that nobody published, under the id of one that is. */
  readonly stranger?: boolean;
  /** Seconds since 1970; default now. */
  readonly now?: number;
}

export async function startIdentityProvider(): Promise<IdentityProvider> {
  const pairs = new Map<string, KeyPair>();
  let fetches = 0;
  let behaviour: Parameters<IdentityProvider['behave']>[0] = 'answer';
  const hanging: ServerResponse[] = [];
  const server: Server = createServer((request, response) => {
    fetches += 1;
    if (behaviour === 'hang') return void hanging.push(response);
    if (behaviour === 'fail') return void response.writeHead(500).end();
    if (behaviour === 'redirect') return void response.writeHead(302, { location: `${request.url ?? ''}?again` }).end();
    const keys = [...pairs.values()].map(({ jwk }) => jwk);
    response.writeHead(200, { 'content-type': 'application/json' }).end(behaviour === 'nonsense' ? '<html>' : JSON.stringify({ keys }));
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const makePair = async (alg: Algorithm, kid: string): Promise<KeyPair> => {
    const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
    return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } };
  };
  const addKey = async (alg: Algorithm, kid: string): Promise<void> => void pairs.set(kid, await makePair(alg, kid));
  await addKey('RS256', 'rsa');
  await addKey('ES256', 'ec');
  await addKey('EdDSA', 'ed');

  return {
    issuer,
    jwksUrl: `${issuer}/keys`,
    get published() {
      return [...pairs.values()].map(({ jwk }) => jwk);
    },
    fetches: () => fetches,
    behave: (as) => {
      behaviour = as;
    },
    addKey,
    async token(claims = {}, { kid = 'rsa', header = {}, stranger = false, now = Math.floor(Date.now() / 1000) } = {}) {
      const known = pairs.get(kid);
      const pair = known === undefined || stranger ? await makePair(known?.alg ?? 'RS256', kid) : known;
      const all: Record<string, unknown> = {
        iss: issuer,
        aud: AUDIENCE,
        sub: 'ada',
        iat: now,
        exp: now + 300,
        cleveragents_org: 'dev',
        cleveragents_kind: 'human',
        cleveragents_roles: ['operator', 'approver'],
        ...claims,
      };
      const payload = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
      return new SignJWT(payload).setProtectedHeader({ alg: pair.alg, kid, ...header }).sign(pair.privateKey);
    },
    close: () =>
      new Promise((closed) => {
        for (const response of hanging) response.destroy();
        server.closeAllConnections();
        server.close(() => closed());
      }),
  };
}

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

const payloadOf = (token: string): string => token.split('.')[1] ?? '';

/** The claims of a token without any signature. */
export const unsigned = (token: string): string => `${encode({ alg: 'none', typ: 'JWT' })}.${payloadOf(token)}.`;

/** The claims of a token, signed as if the text of a public key were a shared secret. */
export async function signedWithPublicKey(token: string, jwk: JWK): Promise<readonly string[]> {
  const { createHmac, createPublicKey } = await import('node:crypto');
  const pem = createPublicKey({ key: jwk as import('node:crypto').JsonWebKey, format: 'jwk' }).export({ type: 'spki', format: 'pem' });
  const input = `${encode({ alg: 'HS256', typ: 'JWT', kid: jwk.kid })}.${payloadOf(token)}`;
  return [String(pem), JSON.stringify(jwk), jwk.n ?? ''].map(
    (secret) => `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`,
  );
}
