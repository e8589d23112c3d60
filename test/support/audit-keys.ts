import { createHash, generateKeyPairSync } from 'node:crypto';
import { type AuditKeys, makeAuditKeys } from '../../src/core/audit/ed25519.ts';

const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex');

/** A new private key as the text of the secret AUDIT_SIGNING_KEY. */
export function newSigningKey(): string {
  return JSON.stringify(generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' }));
}

/** The keys of a deployment that signs with a new key. */
export function newAuditKeys(earlier: readonly unknown[] = []): AuditKeys {
  return makeAuditKeys({ signingKey: newSigningKey(), earlierKeys: earlier.length === 0 ? undefined : JSON.stringify(earlier), sha256 });
}
