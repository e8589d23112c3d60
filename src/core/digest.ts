import { canonicalJson } from './json.ts';

/** Lower-case hex SHA-256 of UTF-8 text or bytes. Injected at the roots: `node:crypto` in workerd and Node. */
export type Sha256 = (data: string | Uint8Array) => string;

/** Digest of a JSON value: SHA-256 over its RFC 8785 form. Equal values have equal digests, whatever their key order. */
export function digestOf(sha256: Sha256, value: unknown): string {
  return sha256(canonicalJson(value));
}
