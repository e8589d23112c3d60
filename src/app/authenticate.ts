import { hashSecret, parseApiKey, sameHash } from '../core/api-key.ts';
import { type Principal, ROLES } from '../core/principal.ts';
import type { Refusal } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';
import { noteDeadKey } from './note-refusal.ts';
import type { KeyRecord } from './ports.ts';
import type { PrincipalCache } from './principal-cache.ts';
import type { Services } from './services.ts';

/** What came with the request. */
export interface Presented {
  /** The `Authorization` header. Where it is present it alone counts. */
  readonly authorization?: string | undefined;
  /** The `X-API-Key` header. */
  readonly apiKey?: string | undefined;
  /** Whether the request was made on this machine, by a program or a page of this machine. */
  readonly local: boolean;
}

export interface AuthenticateOptions {
  readonly cache: PrincipalCache;
  /** Asks the store although the cache knows the key: approvals and administration must see a revocation at once. */
  readonly fresh: boolean;
  /** The method that was called, for the org's log. */
  readonly called: string;
}

/** Longest text that is looked at; a longer one is no key. */
const MAX_KEY_CHARACTERS = 512;

/** The same for a token of the identity provider. */
const MAX_TOKEN_CHARACTERS = 8_192;

/** The compact form of a JSON Web Token that is signed. */
const JSON_WEB_TOKEN = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$/;

/** Compared when there is no row, so that an unknown key takes the work that a wrong secret does. No secret has this hash. */
const NO_HASH = '-'.repeat(64);

const REFUSED: Refusal = {
  kind: 'unauthenticated',
  message: 'Authentication required: send "Authorization: Bearer ca_…" with a valid key',
};

const UNREACHABLE: Refusal = {
  kind: 'unavailable',
  message: 'The identity provider does not answer now; repeat the call in a moment',
  retryAfterSeconds: 5,
};

/**
 * Who calls: by a key of ours or, where the deployment has an identity provider, by a token of it. Absent, malformed, unknown, wrong,
 * expired and revoked keys and tokens all get the same refusal: it must not tell which keys exist.
 *
 * In mode `open` a local request without a valid key is the development person of `settings.openOrg`; a valid key is still itself, so that
 * an agent's key stays an agent's. Requests that are not local need a key in every mode.
 */
export async function authenticate(
  presented: Presented,
  services: Services,
  options: AuthenticateOptions,
): Promise<Result<Principal, Refusal>> {
  const token = tokenOf(presented);
  const principal = token === null ? null : await verify(token, services, options);
  if (principal === 'unreachable') return err(UNREACHABLE);
  if (principal !== null) return ok(principal);
  if (services.settings.authMode === 'open' && presented.local) return ok(developmentPrincipal(services.settings.openOrg));
  return err(REFUSED);
}

async function verify(
  { text, isBearer }: Token,
  services: Services,
  { cache, fresh, called }: AuthenticateOptions,
): Promise<Principal | 'unreachable' | null> {
  const key = text.length > MAX_KEY_CHARACTERS ? null : parseApiKey(text);
  const isOfIssuer = key === null && isBearer && services.tokens.openIdConnectUrl !== null && JSON_WEB_TOKEN.test(text);
  if (key === null && !isOfIssuer) return null;
  const tokenHash = services.sha256(text);
  const nowMs = services.clock.nowMs();
  const known = fresh ? null : cache.get(tokenHash, nowMs);
  if (known !== null) return known;
  if (key === null) {
    const verdict = await services.tokens.verify(text, nowMs);
    if (verdict.kind === 'caller') cache.put(tokenHash, verdict.principal, nowMs, verdict.expiresAtMs);
    return verdict.kind === 'caller' ? verdict.principal : verdict.kind === 'unreachable' ? verdict.kind : null;
  }

  const secretHash = hashSecret(services.sha256, key.secret);
  const record = await services.keys.find(key.id);
  const matches = sameHash(secretHash, record?.secretHash ?? NO_HASH);
  if (record === null || !matches || !isLive(record, nowMs)) {
    cache.drop(tokenHash);
    // No org is known of a key that there is not: nobody's log grows with it.
    if (record !== null)
      noteDeadKey(record, matches ? (record.revokedAt === null ? 'key_expired' : 'key_revoked') : 'wrong_secret', called, services);
    return null;
  }
  const principal: Principal = { org: record.org, keyId: record.id, name: record.name, kind: record.kind, roles: record.roles };
  cache.put(tokenHash, principal, nowMs, record.expiresAt === null ? null : Date.parse(record.expiresAt));
  return principal;
}

interface Token {
  readonly text: string;
  /** It came in the `Authorization` header. */
  readonly isBearer: boolean;
}

function tokenOf({ authorization, apiKey }: Presented): Token | null {
  const isBearer = authorization !== undefined;
  const text = isBearer ? /^bearer +(\S+) *$/i.exec(authorization)?.[1] : apiKey?.trim();
  return text === undefined || text.length > MAX_TOKEN_CHARACTERS ? null : { text, isBearer };
}

/** A time that cannot be read counts as past. */
function isLive({ revokedAt, expiresAt }: KeyRecord, nowMs: number): boolean {
  return revokedAt === null && (expiresAt === null || Date.parse(expiresAt) > nowMs);
}

function developmentPrincipal(org: string): Principal {
  return { org, keyId: 'development', name: 'Development', kind: 'human', roles: [...ROLES] };
}
