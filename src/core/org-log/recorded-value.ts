import { maskJson } from '../audit/mask.ts';
import { digestOf, type Sha256 } from '../digest.ts';
import type { JsonObject, JsonValue } from '../json.ts';

/** A value above this is recorded by its digest. */
const MAX_CHARACTERS = 16 * 1024;

/**
 * A value as it may stand in the org's log: secrets masked before it is hashed (nothing is folded from these values, so every row can be
 * exported as it is), members without a value left out, and never longer than a row should be.
 */
export function recordedValue(sha256: Sha256, value: unknown): JsonValue {
  const text = JSON.stringify(value);
  if (text === undefined) return null;
  const masked = maskJson(JSON.parse(text) as JsonValue);
  const characters = JSON.stringify(masked).length;
  return characters <= MAX_CHARACTERS ? masked : { digest: digestOf(sha256, masked), characters };
}

/** The named members of an object, as they may be recorded; null where there is no object. */
export function recordedMembers(sha256: Sha256, value: JsonObject | null, members: readonly string[]): JsonObject | null {
  if (value === null) return null;
  // Masked with their names beside them: a name says that its value is a secret.
  const picked = Object.fromEntries(members.flatMap((name) => (value[name] === undefined ? [] : [[name, value[name]]])));
  const recorded = recordedValue(sha256, picked);
  return typeof recorded === 'object' && recorded !== null && !Array.isArray(recorded) ? (recorded as JsonObject) : null;
}
