import { UsageError } from './cli-io.ts';
import type { Flag } from './flags.ts';

/** Texts as the person gave them: one for most flags, several for lists and pairs, `true` for switches. */
export type GivenValue = string | boolean | readonly string[];

/**
 * Builds parameters from what was given. Only the form is read here; what the values may be is checked by the row's schema.
 * Throws a `UsageError` that names the flag.
 */
export function paramsFromFlags(given: readonly { readonly flag: Flag; readonly value: GivenValue }[]): Record<string, unknown> {
  const params: Record<string, unknown> = {};
  for (const { flag, value } of given) {
    const parsed = parseValue(flag, value);
    setAt(params, flag.path, flag.kind === 'pairs' ? { ...objectAt(params, flag.path), ...(parsed as object) } : parsed);
  }
  return params;
}

function parseValue(flag: Flag, value: GivenValue): unknown {
  switch (flag.kind) {
    case 'boolean':
      return value === true || value === 'true';
    case 'list':
      return texts(value).flatMap((text) => text.split(',').filter((item) => item !== ''));
    case 'pairs':
      return Object.fromEntries(texts(value).map((text) => parsePair(flag, text)));
    case 'text':
      return single(value);
    case 'number': {
      const number = Number(single(value));
      if (single(value).trim() === '' || Number.isNaN(number))
        throw new UsageError(`--${flag.name}: ${JSON.stringify(single(value))} is not a number`);
      return number;
    }
    case 'json':
      return parseJson(flag, single(value));
    case 'any':
      return jsonOrText(single(value));
  }
}

const texts = (value: GivenValue): readonly string[] => (typeof value === 'object' ? value : [String(value)]);

const single = (value: GivenValue): string => (typeof value === 'object' ? (value.at(-1) ?? '') : String(value));

function parseJson(flag: Flag, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new UsageError(`--${flag.name}: is not JSON: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

/** `true`, `5`, `{"a":1}` are what they look like; everything else is text. Text that looks like JSON is given in quotes: `"5"`. */
function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function parsePair(flag: Flag, text: string): [string, unknown] {
  const at = text.indexOf('=');
  if (at < 1) throw new UsageError(`--${flag.name}: expected name=value, got ${JSON.stringify(text)}`);
  return [text.slice(0, at), jsonOrText(text.slice(at + 1))];
}

function objectAt(params: Record<string, unknown>, path: readonly string[]): object {
  let at: unknown = params;
  for (const name of path) at = typeof at === 'object' && at !== null ? (at as Record<string, unknown>)[name] : undefined;
  return typeof at === 'object' && at !== null ? at : {};
}

/** Paths come from the rows, so no name of a prototype can occur. */
function setAt(params: Record<string, unknown>, path: readonly string[], value: unknown): void {
  let at = params;
  for (const name of path.slice(0, -1)) {
    const next = at[name];
    const member: Record<string, unknown> = typeof next === 'object' && next !== null ? (next as Record<string, unknown>) : {};
    at[name] = member;
    at = member;
  }
  const last = path.at(-1);
  if (last !== undefined) at[last] = value;
}
