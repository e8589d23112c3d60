import canonicalize from 'canonicalize';

/** Any value that survives a round trip through JSON. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | { readonly [key: string]: JsonValue };

export type JsonObject = { readonly [key: string]: JsonValue };

/** Deepest nesting that is accepted anywhere; checked before any recursion over a value from outside. */
export const MAX_JSON_DEPTH = 64;

/**
 * Whether a parsed value nests deeper than `limit` containers. Iterative, so that a hostile value cannot exhaust the stack.
 */
export function exceedsDepth(value: unknown, limit: number = MAX_JSON_DEPTH): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    const next: unknown[] = [];
    for (const item of level) {
      if (typeof item !== 'object' || item === null) continue;
      if (depth >= limit) return true;
      for (const child of Array.isArray(item) ? item : Object.values(item)) next.push(child);
    }
    level = next;
  }
  return false;
}

/**
 * The RFC 8785 canonical text of a JSON value: the one form that is hashed and compared.
 * `undefined` members are left out, as in JSON.stringify.
 */
export function canonicalJson(value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError('value has no JSON form');
  return text;
}
