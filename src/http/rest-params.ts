import { paramsObject, parseJson } from '../a2a/params-object.ts';
import type { JsonObject, JsonValue } from '../core/json.ts';
import { invalidField, type Refusal } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';
import { readJsonText, type UnreadBody } from './request-body.ts';

/**
 * The parameters of an HTTP+JSON request as the object that the codecs read: from the query (GET, DELETE) or the body (POST). What the path
 * says counts more than either.
 */
export async function readRestParams(
  request: Request,
  variables: Readonly<Record<string, string>>,
): Promise<Result<JsonObject, UnreadBody>> {
  const given = request.method === 'POST' ? await readBodyParams(request) : readQueryParams(request.url);
  if (!given.ok) return given;
  const names = new Set(Object.keys(variables).flatMap((name) => [name, snakeCase(name)]));
  const rest = Object.entries(given.value).filter(([name]) => !names.has(name));
  return ok(Object.fromEntries<JsonValue>([...rest, ...Object.entries(variables)]));
}

/** Cancel and subscribe need no body, and many clients send none. */
async function readBodyParams(request: Request): Promise<Result<JsonObject, UnreadBody>> {
  const text = await readJsonText(request);
  if (!text.ok) return text;
  if (text.value.trim() === '') return ok({});
  const body = parseJson(text.value);
  if (!body.ok) return err({ refusal: body.error });
  const params = paramsObject(body.value, 'body');
  return params.ok ? params : err({ refusal: params.error });
}

/** None of the parameters of these operations is a list, so each has one value; an empty one is absent. */
function readQueryParams(url: string): Result<JsonObject, UnreadBody> {
  const params = new Map<string, JsonValue>();
  const twice = new Set<string>();
  for (const [name, text] of new URL(url).searchParams) {
    if (text === '' || name.toLowerCase() === 'a2a-version') continue;
    if (params.has(name)) twice.add(name);
    params.set(name, paramOf(name, text));
  }
  const [first, ...others] = twice;
  if (first !== undefined) return err({ refusal: givenTwice(first, others) });
  return ok(Object.fromEntries(params));
}

function givenTwice(first: string, others: readonly string[]): Refusal {
  const refusal = invalidField(first, 'must be given once', { reason: 'INVALID_PARAMS' });
  if (refusal.kind !== 'invalid') return refusal;
  return { ...refusal, issues: [first, ...others].map((field) => ({ field, message: 'must be given once' })) };
}

/** A query knows only texts: those of booleans and of enum numbers are what they say, those of integers are read by the codecs. */
function paramOf(name: string, text: string): JsonValue {
  if (BOOLEANS.has(name) && (text === 'true' || text === 'false')) return text === 'true';
  if (name === 'status' && /^\d{1,9}$/.test(text)) return Number(text);
  return text;
}

const BOOLEANS: ReadonlySet<string> = new Set(['includeArtifacts', 'include_artifacts']);

const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
