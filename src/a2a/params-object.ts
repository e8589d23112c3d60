import { exceedsDepth, type JsonObject, MAX_JSON_DEPTH } from '../core/json.ts';
import { invalidField, type Refusal } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';

/** A JSON text as a value; a refusal with the reason PARSE_ERROR where it is none. */
export function parseJson(text: string): Result<unknown, Refusal> {
  try {
    return ok(JSON.parse(text));
  } catch {
    return err({ kind: 'invalid', message: 'The body is not JSON', issues: [], details: { reason: 'PARSE_ERROR' } });
  }
}

/** A parsed value as parameters: an object that is nested at most 64 deep. `field` is how a refusal (reason INVALID_PARAMS) calls it. */
export function paramsObject(value: unknown, field: string): Result<JsonObject, Refusal> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return err(invalidParams(field, 'must be an object'));
  if (exceedsDepth(value)) return err(invalidParams(field, `must not nest deeper than ${MAX_JSON_DEPTH} levels`));
  return ok(value as JsonObject);
}

const invalidParams = (field: string, message: string): Refusal => invalidField(field, message, { reason: 'INVALID_PARAMS' });
