import type { JsonObject, JsonValue } from '../../core/json.ts';
import { MAX_PATH_BYTES, parsePath } from '../../core/workspace/path.ts';

/** The JSON Schema of a tool's arguments: an object that refuses unknown members. */
export function argumentsSchema(properties: { readonly [name: string]: JsonObject }, required: readonly string[]): JsonObject {
  return { type: 'object', properties, required, additionalProperties: false };
}

/** The schema of a path; whether it is one is judged by `parsePath` when the tool runs, which says why not. */
export function pathSchema(description: string): JsonObject {
  return { type: 'string', minLength: 1, maxLength: MAX_PATH_BYTES, description };
}

/** How file contents are written in arguments and results. */
export const ENCODINGS = ['utf-8', 'base64'] as const;

export type Encoding = (typeof ENCODINGS)[number];

export const ENCODING_SCHEMA: JsonObject = {
  type: 'string',
  enum: [...ENCODINGS],
  description: 'utf-8 (default) for text, base64 for any bytes',
};

export function textArgument(args: JsonObject, name: string): string {
  const value = args[name];
  return typeof value === 'string' ? value : '';
}

export function flagArgument(args: JsonObject, name: string): boolean {
  return args[name] === true;
}

export function numberArgument(args: JsonObject, name: string): number | undefined {
  const value = args[name];
  return typeof value === 'number' ? value : undefined;
}

export function encodingArgument(args: JsonObject): Encoding {
  return args.encoding === 'base64' ? 'base64' : 'utf-8';
}

/** The valid paths among arguments that may not have been validated. */
export function pathsIn(...values: readonly (JsonValue | undefined)[]): readonly string[] {
  return values.flatMap((value) => {
    const path = parsePath(value);
    return path.ok ? [path.value] : [];
  });
}
