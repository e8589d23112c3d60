import { createHash } from 'node:crypto';
import { type AgentCard, canonicalizeAgentCard, AgentCard as SdkCard, verifyAgentCardSignature } from '@a2a-js/sdk';
import { base64url, decodeProtectedHeader, type FlattenedJWSInput, flattenedVerify, type JWK } from 'jose';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { buildCard, type CardInput } from '../../src/a2a/agent-card.ts';
import { makeCardSigner, signCard } from '../../src/a2a/card-signature.ts';
import { canonicalJson, type JsonObject } from '../../src/core/json.ts';
import { newSigningKey } from '../support/audit-keys.ts';

const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex');
const JKU = 'https://agents.example.com/.well-known/agent-card-jwks.json';

const input: CardInput = {
  name: 'CleverAgents',
  description: 'Plans with guards – “quoted”, and a letter: é',
  version: '0.1.0',
  provider: { organization: 'Example', url: 'https://example.com' },
  baseUrl: 'https://agents.example.com',
  skills: [{ id: 'refactor', name: 'Refactor', description: 'Changes code', tags: ['code'], examples: ['Rename a class'] }],
  capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: true },
  extensionMethods: ['_cleveragents/plan/use'],
  extensionParams: { limits: { max_total_cost: 0.25, steps: 5, none: [] } },
  auth: 'bearer',
  openIdConnectUrl: 'https://login.example.com/.well-known/openid-configuration',
};

type Signatures = readonly { readonly protected: string; readonly signature: string }[];

const signer = makeCardSigner(newSigningKey(), sha256);
const pure = buildCard(input, '1.0');
const cards = {
  hybrid: await signCard(buildCard(input, 'hybrid'), pure, signer, JKU),
  '1.0': await signCard(pure, pure, signer, JKU),
};

const keyOf = async (kid: string, jku?: string): Promise<JWK> => {
  const found = signer.publicKeys.find((key) => key.kid === kid);
  if (found === undefined || jku !== JKU) throw new Error('no such key');
  return { ...found };
};

/** Which of the signatures fit a text, checked as RFC 7515 says: detached payload, the key that the header names. */
async function fitting(card: JsonObject, payload: string): Promise<readonly boolean[]> {
  const signatures = card['signatures'] as unknown as Signatures;
  return Promise.all(
    signatures.map(async (each) => {
      const jws: FlattenedJWSInput = { ...each, payload: base64url.encode(payload) };
      const { kid = '', jku } = decodeProtectedHeader(each);
      return flattenedVerify(jws, await keyOf(kid, jku), { algorithms: ['EdDSA'] }).then(
        () => true,
        () => false,
      );
    }),
  );
}

const withoutSignatures = ({ signatures: _signatures, ...rest }: JsonObject): JsonObject => rest;

// The SDK tells of each signature that is not for it.
beforeEach(() => void vi.spyOn(console, 'debug').mockImplementation(() => {}));
afterEach(() => void vi.restoreAllMocks());

describe.each(['hybrid', '1.0'] as const)('the signed %s card', (shape) => {
  const card = cards[shape];

  test('is accepted by the official 1.x SDK', async () => {
    await expect(verifyAgentCardSignature(keyOf)(card as unknown as AgentCard)).resolves.toBeUndefined();
    await expect(verifyAgentCardSignature(keyOf)(SdkCard.fromJSON(card))).resolves.toBeUndefined();
  });

  test('is accepted by who canonicalises what he received, member by member', async () => {
    expect(await fitting(card, canonicalJson(withoutSignatures(card)))).toContain(true);
  });

  test('is accepted by who canonicalises the 1.0 card as the specification says: without defaults', async () => {
    expect(await fitting(card, canonicalJson(pure))).toContain(true);
    expect(await fitting(card, canonicalizeAgentCard(SdkCard.fromJSON(card)))).toContain(true);
  });

  test('has no signature that fits nothing', async () => {
    const forms = [
      canonicalJson(withoutSignatures(card)),
      canonicalJson(pure),
      canonicalizeAgentCard(card as unknown as AgentCard),
      canonicalizeAgentCard(SdkCard.fromJSON(card)),
    ];
    const fits = await Promise.all(forms.map((form) => fitting(card, form)));
    const signatures = card['signatures'] as unknown as Signatures;
    expect(signatures.map((_each, index) => fits.some((of) => of[index] === true))).toEqual(signatures.map(() => true));
  });

  test('names algorithm, type, key and where the key is in each protected header', () => {
    for (const signature of card['signatures'] as unknown as Signatures) {
      expect(decodeProtectedHeader(signature)).toEqual({ alg: 'EdDSA', typ: 'JOSE', kid: signer.publicKeys[0]?.kid, jku: JKU });
      expect(Object.keys(signature).sort()).toEqual(['protected', 'signature']);
    }
  });

  test('with one byte changed anywhere is refused by the SDK and by who checks what he received', async () => {
    const changes: readonly (readonly [string, JsonObject])[] = [
      ['name', { ...card, name: 'CleverAgentz' }],
      ['address', JSON.parse(JSON.stringify(card).replaceAll('agents.example.com/a2a', 'agents.example.org/a2a')) as JsonObject],
      ['skill', JSON.parse(JSON.stringify(card).replaceAll('Changes code', 'Changes Code')) as JsonObject],
      ['method', JSON.parse(JSON.stringify(card).replaceAll('plan/use', 'plan/usd')) as JsonObject],
      ['capability', { ...card, capabilities: { ...(card['capabilities'] as JsonObject), pushNotifications: true } }],
      ['scheme', JSON.parse(JSON.stringify(card).replaceAll('X-API-Key', 'X-API-Kex')) as JsonObject],
      ['removed', Object.fromEntries(Object.entries(card).filter(([name]) => name !== 'provider'))],
    ];
    for (const [what, changed] of changes) {
      expect(canonicalJson(changed), what).not.toBe(canonicalJson(card));
      await expect(verifyAgentCardSignature(keyOf)(changed as unknown as AgentCard), what).rejects.toThrow();
      expect(await fitting(changed, canonicalJson(withoutSignatures(changed))), what).not.toContain(true);
    }
  });

  test('whose signature is changed, or is of another key, is refused', async () => {
    const [first] = card['signatures'] as unknown as Signatures;
    const letter = first?.signature.startsWith('A') === true ? 'B' : 'A';
    const forged = { ...card, signatures: [{ protected: first?.protected ?? '', signature: `${letter}${first?.signature.slice(1)}` }] };
    await expect(verifyAgentCardSignature(keyOf)(forged as unknown as AgentCard)).rejects.toThrow();
    const other = await signCard(withoutSignatures(card), pure, makeCardSigner(newSigningKey(), sha256), JKU);
    await expect(
      verifyAgentCardSignature(async () => keyOf(signer.publicKeys[0]?.kid ?? '', JKU))(other as unknown as AgentCard),
    ).rejects.toThrow();
  });
});

test('the members that only 0.3 knows are covered for who checks the whole hybrid card', async () => {
  const changed = { ...cards.hybrid, preferredTransport: 'GRPC' };
  expect(await fitting(changed, canonicalJson(withoutSignatures(changed)))).not.toContain(true);
});

test('a card is signed once for each text: the same signature comes back', async () => {
  const first = await signer.sign('text', JKU);
  expect(await signer.sign('text', JKU)).toBe(first);
  expect(await signer.sign('text', `${JKU}x`)).not.toEqual(first);
  expect(await makeCardSigner(undefined, sha256).sign('text', JKU)).toBeNull();
});

test('without a key the card is as it was, and a key that is none is named', async () => {
  expect(await signCard(pure, pure, makeCardSigner(undefined, sha256), JKU)).toBe(pure);
  for (const text of ['{}', 'nonsense', '{"kty":"OKP","crv":"Ed25519","x":"AA","d":"AA"}']) {
    const bad = makeCardSigner(text, sha256);
    expect(bad.problem).toContain('CARD_SIGNING_KEY');
    expect(bad.publicKeys).toEqual([]);
    expect(await signCard(pure, pure, bad, JKU)).toBe(pure);
  }
});
