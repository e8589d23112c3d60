import type * as z from 'zod';
import { exceedsDepth, MAX_JSON_DEPTH } from '../core/json.ts';
import type { FieldIssue, Refusal } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';
import { firstPerField, sentenceOf } from '../core/schema-issues.ts';
import type { Operation } from './operation.ts';

/** Issues that are reported at most; one bad body must not make a huge answer. */
const MAX_ISSUES = 20;

/**
 * Parses the `params` of a call. Absent parameters are an empty object. Refuses as `invalid` with one issue per wrong field,
 * by dotted path; never throws, whatever the input.
 */
export function parseParams<O extends Operation>(operation: O, params: unknown): Result<z.output<O['params']>, Refusal> {
  if (params === undefined || params === null) return parse(operation, {});
  if (typeof params !== 'object' || Array.isArray(params)) return refuse([{ field: 'params', message: 'must be an object' }]);
  if (exceedsDepth(params)) return refuse([{ field: 'params', message: `must not nest deeper than ${MAX_JSON_DEPTH} levels` }]);
  return parse(operation, params);
}

function parse<O extends Operation>(operation: O, params: object): Result<z.output<O['params']>, Refusal> {
  const parsed = tryParse(operation, params);
  if (parsed === null) return refuse([{ field: 'params', message: 'hold a value that cannot be read' }]);
  if (parsed.success) return ok(parsed.data as z.output<O['params']>);
  return refuse(firstPerField(parsed.error.issues.flatMap(toFieldIssues)));
}

/** The schema library reads members of what it is given (`length`), and throws over objects that are made for it. Null: it did. */
function tryParse<O extends Operation>(operation: O, params: object) {
  try {
    return operation.params.safeParse(params);
  } catch {
    return null;
  }
}

function refuse(issues: readonly FieldIssue[]): Result<never, Refusal> {
  const shown = issues.slice(0, MAX_ISSUES);
  const rest = issues.length - shown.length;
  const message = shown.map((issue) => `${issue.field}: ${issue.message}`).join('; ') + (rest > 0 ? `; and ${rest} more` : '');
  return err({ kind: 'invalid', message, issues: shown });
}

function toFieldIssues(issue: z.core.$ZodIssue): FieldIssue[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ field: dotted([...issue.path, key]), message: 'unknown field' }));
  }
  const field = issue.path.length === 0 ? 'params' : dotted(issue.path);
  return [{ field, message: sentenceOf(issue) }];
}

function dotted(path: readonly PropertyKey[]): string {
  const text = path.map((segment) => String(segment)).join('.');
  return text.length <= 200 ? text : `${text.slice(0, 199)}…`;
}
