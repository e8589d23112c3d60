import type { JsonObject, JsonValue } from '../core/json.ts';

/** Small helpers of the encoders: what is absent is left out, never null. */

/** The object without its undefined members. */
export function wire(members: Readonly<Record<string, JsonValue | undefined>>): JsonObject {
  const result: Record<string, JsonValue> = {};
  for (const [name, value] of Object.entries(members)) if (value !== undefined) result[name] = value;
  return result;
}

/** An optional list that is empty is left out. */
export function listOrAbsent(list: readonly string[] | undefined): readonly string[] | undefined {
  return list === undefined || list.length === 0 ? undefined : list;
}

/** UTC with milliseconds and `Z`, whatever form of ISO 8601 came in; what is no time is left out. */
export function timestamp(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}
