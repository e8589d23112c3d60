import type { Sha256 } from './digest.ts';

/**
 * API keys as text: `ca_<id>_<secret>` (design section 12). The id finds the stored row; only a hash of the secret is ever stored.
 */
export interface ApiKey {
  /** Letters, digits and `-`, so that the next `_` ends it. */
  readonly id: string;
  /** URL-safe text of at least 128 bits; may hold `_`. */
  readonly secret: string;
}

const API_KEY = /^ca_([A-Za-z0-9-]{1,64})_([A-Za-z0-9_-]{16,256})$/;

/** The text that a person copies. Throws when the parts could not be read back: a key that cannot be used must not be handed out. */
export function formatApiKey({ id, secret }: ApiKey): string {
  const text = `ca_${id}_${secret}`;
  if (parseApiKey(text)?.id !== id)
    throw new TypeError('an API key needs an id of [A-Za-z0-9-] and a secret of at least 16 of [A-Za-z0-9_-]');
  return text;
}

/** The parts of a key, or null for text that is none. */
export function parseApiKey(text: string): ApiKey | null {
  const [, id, secret] = API_KEY.exec(text) ?? [];
  return id === undefined || secret === undefined ? null : { id, secret };
}

/** What is stored in the place of a secret. A plain hash is enough: secrets are random, not chosen by people. */
export function hashSecret(sha256: Sha256, secret: string): string {
  return sha256(secret);
}

/** Compares two hashes in a time that does not depend on where they differ. */
export function sameHash(left: string, right: string): boolean {
  let difference = left.length ^ right.length;
  for (let index = 0; index < left.length; index += 1) difference |= left.charCodeAt(index) ^ right.charCodeAt(index % (right.length || 1));
  return difference === 0;
}
