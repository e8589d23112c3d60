/**
 * Ed25519 signatures with keys as JSON Web Keys (RFC 8037), by WebCrypto: the same in workerd, Node and browsers. A signature depends on
 * key and text alone: nothing here reads a clock, a random number or the outside.
 */
import { decodeBase64, encodeBase64 } from '../base64.ts';
import type { Sha256 } from '../digest.ts';
import { canonicalJson } from '../json.ts';

/** A public key as it is published. `kid` is the key's thumbprint (RFC 7638), so that an id cannot name two keys. */
export interface PublicJwk {
  readonly kty: 'OKP';
  readonly crv: 'Ed25519';
  readonly x: string;
  readonly kid: string;
  readonly use: 'sig';
  readonly alg: 'EdDSA';
}

export interface Signature {
  readonly kid: string;
  /** base64url without padding. */
  readonly signature: string;
}

export type SignatureVerdict = 'valid' | 'invalid' | 'unknown_key';

/** The keys of a deployment: the one that signs now, and all that have signed before. */
export interface AuditKeys {
  /** Null: everything is in order. Otherwise what is wrong and what to do about it. */
  readonly problem: string | null;
  /** Whether there is a key that signs. */
  readonly signs: boolean;
  /** The key in use first. */
  readonly publicKeys: readonly PublicJwk[];
  /** Null: the deployment does not sign. */
  sign(text: string): Promise<Signature | null>;
  verify(text: string, signature: Signature): Promise<SignatureVerdict>;
}

export interface AuditKeySources {
  /** JSON text of the private key. Absent: signing is off. */
  readonly signingKey: string | undefined;
  /** JSON text of earlier public keys: a list, or a JSON Web Key Set. */
  readonly earlierKeys: string | undefined;
  readonly sha256: Sha256;
}

const NO_KEY =
  'no signing key: set the secret AUDIT_SIGNING_KEY to an Ed25519 private key as JWK (wrangler secret put AUDIT_SIGNING_KEY). ' +
  'Until then the trail is chained but not signed, and a deleted end of it does not show in an export';
const BAD_KEY = 'AUDIT_SIGNING_KEY is not an Ed25519 private key as JWK: { "kty": "OKP", "crv": "Ed25519", "x", "d" }';
const BAD_EARLIER = 'AUDIT_PUBLIC_KEYS is not a list of Ed25519 public keys as JWK, or a JSON Web Key Set of them';

/** Reads the keys. Never throws and never refuses: a deployment without a usable key works, does not sign, and says so. */
export function makeAuditKeys({ signingKey, earlierKeys, sha256 }: AuditKeySources): AuditKeys {
  const own = signingKey === undefined || signingKey === '' ? null : readSigningKey(signingKey, sha256);
  const earlier = earlierKeys === undefined || earlierKeys === '' ? [] : readKeySet(parsed(earlierKeys), sha256);
  const publicKeys = [...(own === null ? [] : [own.publicKey]), ...(earlier ?? [])];
  const unique = publicKeys.filter((key, index) => publicKeys.findIndex(({ kid }) => kid === key.kid) === index);
  const problem = signingKey === undefined || signingKey === '' ? NO_KEY : own === null ? BAD_KEY : earlier === null ? BAD_EARLIER : null;
  let imported: Promise<CryptoKey> | null = null;
  return {
    problem,
    signs: own !== null,
    publicKeys: unique,
    async sign(text) {
      if (own === null) return null;
      imported ??= crypto.subtle.importKey('jwk', own.jwk, { name: 'Ed25519' }, false, ['sign']);
      const bytes = await crypto.subtle.sign('Ed25519', await imported, new TextEncoder().encode(text));
      return { kid: own.publicKey.kid, signature: toBase64Url(new Uint8Array(bytes)) };
    },
    verify: (text, signature) => verifySignature(unique, text, signature),
  };
}

/** Checks a signature against the key that it names. */
export async function verifySignature(keys: readonly PublicJwk[], text: string, { kid, signature }: Signature): Promise<SignatureVerdict> {
  const key = keys.find((each) => each.kid === kid);
  if (key === undefined) return 'unknown_key';
  const bytes = fromBase64Url(signature);
  if (bytes?.length !== 64) return 'invalid';
  try {
    const { kty, crv, x } = key;
    const imported = await crypto.subtle.importKey('jwk', { kty, crv, x }, { name: 'Ed25519' }, false, ['verify']);
    return (await crypto.subtle.verify('Ed25519', imported, bytes, new TextEncoder().encode(text))) ? 'valid' : 'invalid';
  } catch {
    // A text of the right length that is no point of the curve.
    return 'invalid';
  }
}

/** The public keys of a list or a JSON Web Key Set; null when it is neither. Only what is public is taken over, whatever else is in it. */
export function readKeySet(value: unknown, sha256: Sha256): readonly PublicJwk[] | null {
  const list = Array.isArray(value) ? value : isRecord(value) && Array.isArray(value['keys']) ? value['keys'] : null;
  if (list === null) return null;
  const keys = list.map((each: unknown) => (isRecord(each) ? publicKeyOf(each, sha256) : null));
  return keys.some((key) => key === null) ? null : keys.filter((key) => key !== null);
}

/** An Ed25519 private key from its JWK as JSON text, with the public key as it is published; null for anything else. */
export function readSigningKey(text: string, sha256: Sha256): { readonly publicKey: PublicJwk; readonly jwk: JsonWebKey } | null {
  const value = parsed(text);
  if (!isRecord(value) || typeof value['d'] !== 'string' || fromBase64Url(value['d'])?.length !== 32) return null;
  const publicKey = publicKeyOf(value, sha256);
  return publicKey === null ? null : { publicKey, jwk: { kty: 'OKP', crv: 'Ed25519', x: publicKey.x, d: value['d'] } };
}

function publicKeyOf({ kty, crv, x }: Readonly<Record<string, unknown>>, sha256: Sha256): PublicJwk | null {
  if (kty !== 'OKP' || crv !== 'Ed25519' || typeof x !== 'string' || fromBase64Url(x)?.length !== 32) return null;
  const thumbprint = sha256(canonicalJson({ crv, kty, x }));
  const kid = toBase64Url(Uint8Array.from(thumbprint.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16)));
  return { kty, crv, x, kid, use: 'sig', alg: 'EdDSA' };
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function toBase64Url(bytes: Uint8Array): string {
  return encodeBase64(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | null {
  if (/[+/=]/.test(text)) return null;
  const plain = text.replaceAll('-', '+').replaceAll('_', '/');
  const bytes = decodeBase64(plain.padEnd(Math.ceil(plain.length / 4) * 4, '='));
  return bytes === null ? null : new Uint8Array(bytes);
}
