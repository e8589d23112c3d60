import { decodeJwt, decodeProtectedHeader, type JWTVerifyGetKey, jwtVerify } from 'jose';
import type { Sha256 } from '../core/digest.ts';
import { canonicalJson } from '../core/json.ts';
import { type Principal, ROLES } from '../core/principal.ts';
import { StorageUnavailable } from './ports.ts';

/**
 * Tokens of an identity provider in the place of keys (OpenID Connect). The provider is the deployment's: whom it names, and as what, holds
 * for every org, by three claims behind a common prefix.
 *
 * `<prefix>org` is the org; it may be absent where the deployment fixes one, and must then not be another. `<prefix>kind` is `human` or
 * `agent`; absent is `agent`, who approves nothing. `<prefix>roles` is a list, or words with spaces between; what is no role of ours counts
 * for nothing.
 */
export interface IdentityTokens {
  /** Null: everything is in order, tokens accepted or not. Otherwise what is wrong with the settings; then no token is accepted. */
  readonly problem: string | null;
  /** Where the provider describes itself; null: no tokens are accepted. */
  readonly openIdConnectUrl: string | null;
  verify(token: string, nowMs: number): Promise<TokenVerdict>;
}

/** Why a token is refused is told to nobody. */
export type TokenVerdict =
  | { readonly kind: 'caller'; readonly principal: Principal; readonly expiresAtMs: number }
  | { readonly kind: 'refused' }
  /** The provider's keys are not to be had: the token may be right. */
  | { readonly kind: 'unreachable' };

/** The variables of the deployment as they are written. */
export interface IdentitySettings {
  readonly issuer: string | undefined;
  readonly audience: string | undefined;
  readonly jwksUrl: string | undefined;
  /** Default `cleveragents_`. */
  readonly claimPrefix?: string | undefined;
  /** The org of all tokens; absent: their claim says it. */
  readonly org?: string | undefined;
}

export interface IdentityParts {
  /** The keys of the provider at an address. Throws `StorageUnavailable` when it does not answer. */
  readonly keysAt: (jwksUrl: URL) => JWTVerifyGetKey;
  readonly sha256: Sha256;
}

/** Signatures of a key that only the provider has. A shared secret is not among them: whoever checks it could make tokens. */
const ALGORITHMS = ['RS256', 'ES256', 'EdDSA'] as const;

/** How far the clocks of the provider and ours may differ. */
export const CLOCK_SKEW_SECONDS = 30;

/** Types of tokens that are no statement of who calls (logout tokens, proofs, events) have other names. */
const TOKEN_TYPES: readonly (string | undefined)[] = [undefined, 'jwt', 'at+jwt', 'application/at+jwt'];

const ORG = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const MAX_SUBJECT_CHARACTERS = 255;
const MAX_NAME_CHARACTERS = 100;

const REFUSED: TokenVerdict = { kind: 'refused' };

/** Without any of the settings no token is accepted; with some of them, or wrong ones, neither, and `problem` says why. Never throws. */
export function makeIdentityTokens(settings: IdentitySettings, { keysAt, sha256 }: IdentityParts): IdentityTokens {
  const none = (problem: string | null): IdentityTokens => ({ problem, openIdConnectUrl: null, verify: async () => REFUSED });
  const { issuer, audience, jwksUrl, claimPrefix: prefix = 'cleveragents_', org: fixedOrg } = withoutBlank(settings);
  if (issuer === undefined && audience === undefined && jwksUrl === undefined) return none(null);
  if (issuer === undefined || audience === undefined || jwksUrl === undefined)
    return none('OIDC_ISSUER, OIDC_AUDIENCE and OIDC_JWKS_URL belong together; one of them is missing');
  if (!isProtected(issuer)) return none('OIDC_ISSUER is no https address');
  if (!isProtected(jwksUrl)) return none('OIDC_JWKS_URL is no https address');
  if (fixedOrg !== undefined && !ORG.test(fixedOrg)) return none('OIDC_ORG is no name of an org');
  const keys = keysAt(new URL(jwksUrl));

  return {
    problem: null,
    openIdConnectUrl: `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`,
    async verify(token, nowMs) {
      try {
        // Looked at before anything is fetched: what says by itself that it is not for us costs nothing.
        const type = decodeProtectedHeader(token).typ?.toLowerCase();
        if (!TOKEN_TYPES.includes(type) || decodeJwt(token).iss !== issuer) return REFUSED;
        const { payload } = await jwtVerify(token, keys, {
          algorithms: [...ALGORITHMS],
          issuer,
          audience,
          requiredClaims: ['sub', 'exp'],
          clockTolerance: CLOCK_SKEW_SECONDS,
          currentDate: new Date(nowMs),
        });
        const principal = principalOf(payload, { issuer, prefix, fixedOrg, sha256 });
        const expiresAtMs = (payload.exp ?? 0) * 1000;
        return principal === null ? REFUSED : { kind: 'caller', principal: { ...principal, tokenExpiresAtMs: expiresAtMs }, expiresAtMs };
      } catch (error) {
        return error instanceof StorageUnavailable ? { kind: 'unreachable' } : REFUSED;
      }
    },
  };
}

interface ClaimsContext {
  readonly issuer: string;
  readonly prefix: string;
  readonly fixedOrg: string | undefined;
  readonly sha256: Sha256;
}

/** Who the claims name; null when they name nobody that could be here. */
function principalOf(claims: Readonly<Record<string, unknown>>, { issuer, prefix, fixedOrg, sha256 }: ClaimsContext): Principal | null {
  const subject = claims['sub'];
  if (typeof subject !== 'string' || subject === '' || subject.length > MAX_SUBJECT_CHARACTERS) return null;
  const claim = (name: string): unknown => (Object.hasOwn(claims, `${prefix}${name}`) ? claims[`${prefix}${name}`] : undefined);
  const named = claim('org');
  const org = named ?? fixedOrg;
  if (typeof org !== 'string' || !ORG.test(org) || (fixedOrg !== undefined && org !== fixedOrg)) return null;
  const kind = claim('kind') ?? 'agent';
  if (kind !== 'human' && kind !== 'agent') return null;
  const given = claim('roles') ?? [];
  const words: readonly unknown[] = Array.isArray(given) ? given : typeof given === 'string' ? given.split(/\s+/) : [];
  const name = typeof claims['name'] === 'string' && claims['name'].trim() !== '' ? claims['name'] : subject;
  return {
    org,
    // One identity for one subject of one provider; no key has an id with a colon.
    keyId: `oidc:${sha256(canonicalJson([issuer, subject])).slice(0, 32)}`,
    name: name.slice(0, MAX_NAME_CHARACTERS),
    kind,
    roles: ROLES.filter((role) => words.includes(role)),
  };
}

/** Encrypted on the way, or on this machine (development). */
function isProtected(address: string): boolean {
  if (!URL.canParse(address)) return false;
  const { protocol, hostname } = new URL(address);
  return protocol === 'https:' || (protocol === 'http:' && (hostname === 'localhost' || hostname === '127.0.0.1' || hostname === '[::1]'));
}

function withoutBlank(settings: IdentitySettings): { readonly [N in keyof IdentitySettings]?: string } {
  return Object.fromEntries(Object.entries(settings).flatMap(([name, value]) => (value?.trim() ? [[name, value.trim()]] : [])));
}
