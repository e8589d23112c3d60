import { type OutputUnit, type Schema, Validator } from '@cfworker/json-schema';
import { exceedsDepth, type JsonObject, MAX_JSON_DEPTH } from '../../core/json.ts';
import type { FieldIssue } from '../../core/refusal.ts';

/** How many wrong fields are named. */
const MAX_ISSUES = 20;

/**
 * What is wrong with arguments, by the JSON Schema (2020-12) that declares them; empty when nothing is. Fields are dotted paths
 * under `root` (`arguments.path`). Unknown members are wrong where the schema says `additionalProperties: false`, and each is named.
 * Interprets the schema: workerd does not compile code. A schema that cannot be evaluated makes every argument wrong.
 */
export function validateArguments(schema: JsonObject, args: unknown, root = 'arguments'): readonly FieldIssue[] {
  if (typeof args !== 'object' || args === null || Array.isArray(args)) return [{ field: root, message: 'must be an object' }];
  if (exceedsDepth(args)) return [{ field: root, message: `must not nest deeper than ${MAX_JSON_DEPTH} levels` }];
  let errors: readonly OutputUnit[];
  try {
    // A copy, since the validator adds members of its own to a schema. All errors, not only the first.
    const result = new Validator(structuredClone(schema) as Schema, '2020-12', false).validate(args);
    if (result.valid) return [];
    errors = result.errors;
  } catch (error) {
    return [
      { field: root, message: `cannot be checked, the schema is not usable: ${error instanceof Error ? error.message : String(error)}` },
    ];
  }
  const issues = new Map<string, FieldIssue>();
  for (const issue of errors.filter((error) => !CONTAINER_KEYWORDS.has(error.keyword)).map((error) => issueOf(error, root))) {
    if (!issues.has(issue.field)) issues.set(issue.field, issue);
    if (issues.size >= MAX_ISSUES) break;
  }
  return issues.size > 0 ? [...issues.values()] : [{ field: root, message: 'does not match the schema' }];
}

/** Keywords whose error only repeats that something inside is wrong; the inner error names the field. */
const CONTAINER_KEYWORDS: ReadonlySet<string> = new Set([
  '$ref',
  '$recursiveRef',
  '$dynamicRef',
  'allOf',
  'properties',
  'patternProperties',
  'additionalProperties',
  'unevaluatedProperties',
  'items',
  'prefixItems',
  'additionalItems',
  'unevaluatedItems',
  'dependentSchemas',
]);

function issueOf({ keyword, error, instanceLocation }: OutputUnit, root: string): FieldIssue {
  const field = [root, ...namesOf(instanceLocation)].join('.');
  const name = instanceLocation.slice(instanceLocation.lastIndexOf('/') + 1);
  if (keyword === 'false') return { field, message: `unknown field '${unescapeName(name)}'` };
  if (keyword === 'required') {
    const missing = /required property "(.*)"\.$/s.exec(error)?.[1];
    if (missing !== undefined) return { field: `${field}.${missing}`, message: 'is required' };
  }
  return { field, message: error.replace(/\.$/, '') };
}

/** The names of a JSON pointer in fragment form (`#/a/b~1c`). */
function namesOf(pointer: string): readonly string[] {
  return pointer.split('/').slice(1).map(unescapeName);
}

function unescapeName(name: string): string {
  return name.replaceAll('~1', '/').replaceAll('~0', '~');
}
