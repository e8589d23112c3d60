import { FlattenedSign, importJWK } from 'jose';
import { type PublicJwk, readSigningKey } from '../core/audit/ed25519.ts';
import type { Sha256 } from '../core/digest.ts';
import { canonicalJson, type JsonObject, type JsonValue } from '../core/json.ts';

/**
 * Signatures of the Agent Card (1.0 specification sections 4.4.7 and 8.4): a JSON Web Signature with detached payload over the RFC 8785
 * text of the card without `signatures`. EdDSA gives the same signature for the same text, so a signed card has a stable ETag.
 */
export interface CardSigner {
  /** Null: everything is in order, signed or not. Otherwise what is wrong with the key. */
  readonly problem: string | null;
  /** The key that signs, as it is published; empty where cards are not signed. */
  readonly publicKeys: readonly PublicJwk[];
  /** Null: cards are not signed. `jku` is the address of the published key. */
  sign(payload: string, jku: string): Promise<CardSignature | null>;
}

export interface CardSignature {
  /** base64url of the protected header. */
  readonly protected: string;
  /** base64url. */
  readonly signature: string;
}

const BAD_KEY = 'CARD_SIGNING_KEY is not an Ed25519 private key as JWK: { "kty": "OKP", "crv": "Ed25519", "x", "d" }';

/** Texts whose signatures are remembered; the oldest leaves first. */
const MAX_REMEMBERED = 200;

/** The signer of a deployment; make it once per isolate: it remembers what it signed. Never throws; without a usable key nothing is signed. */
export function makeCardSigner(signingKey: string | undefined, sha256: Sha256): CardSigner {
  if (signingKey === undefined || signingKey === '') return { problem: null, publicKeys: [], sign: async () => null };
  const own = readSigningKey(signingKey, sha256);
  if (own === null) return { problem: BAD_KEY, publicKeys: [], sign: async () => null };
  const { kid, alg } = own.publicKey;
  const remembered = new Map<string, CardSignature>();
  let imported: ReturnType<typeof importJWK> | null = null;
  return {
    problem: null,
    publicKeys: [own.publicKey],
    async sign(payload, jku) {
      const name = sha256(`${jku}\n${payload}`);
      const known = remembered.get(name);
      if (known !== undefined) return known;
      imported ??= importJWK({ ...own.jwk, kty: 'OKP' }, alg);
      const jws = await new FlattenedSign(new TextEncoder().encode(payload))
        .setProtectedHeader({ alg, typ: 'JOSE', kid, jku })
        .sign(await imported);
      const signature = { protected: jws.protected ?? '', signature: jws.signature };
      const oldest = remembered.keys().next();
      if (remembered.size >= MAX_REMEMBERED && oldest.done !== true) remembered.delete(oldest.value);
      remembered.set(name, signature);
      return signature;
    },
  };
}

/**
 * The card with its signatures. `pure` is the same card in the shape of 1.0, of which the specification speaks. What exactly is signed
 * differs between those who check (contract section 10, choice 14), and one signature that fits is enough for a reader, so there is one for
 * each form of the text that is different:
 *
 * 1. the 1.0 card;
 * 2. of a card that holds more than 1.0, all of it;
 * 3. the 1.0 card without empty members, as the official SDKs canonicalise what they received;
 * 4. the same without security, which is how the JavaScript SDK 1.3.0 canonicalises a card that it has read already: it loses the schemes.
 *
 * So whoever stands between could take the security away from a card unnoticed, by 3 and 4; a client then learns from the 401 what it
 * needs. Nothing can be put in its place but before a reader that loses the schemes itself.
 */
export async function signCard(card: JsonObject, pure: JsonObject, signer: CardSigner, jku: string): Promise<JsonObject> {
  const { securitySchemes: _schemes, securityRequirements: _requirements, ...unsecured } = pure;
  const payloads = new Set([pure, card, withoutEmpty(pure) ?? {}, withoutEmpty(unsecured) ?? {}].map(canonicalJson));
  const signatures: JsonObject[] = [];
  for (const payload of payloads) {
    const signature = await signer.sign(payload, jku);
    if (signature !== null) signatures.push({ ...signature });
  }
  return signatures.length === 0 ? card : { ...card, signatures };
}

/** As the official SDKs take a card before they sign or check it: without empty texts, lists and objects, those of required members too. */
function withoutEmpty(value: JsonValue): JsonValue | undefined {
  if (value === '' || value === null) return undefined;
  if (typeof value !== 'object') return value;
  if (Array.isArray(value)) {
    const items = value.map(withoutEmpty).filter((item) => item !== undefined);
    return items.length === 0 ? undefined : items;
  }
  const members = Object.entries(value).flatMap(([name, member]): [string, JsonValue][] => {
    const kept = withoutEmpty(member);
    return kept === undefined ? [] : [[name, kept]];
  });
  return members.length === 0 ? undefined : Object.fromEntries(members);
}
