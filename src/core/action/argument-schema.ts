import type { OutputUnit, Schema } from '@cfworker/json-schema';
import { Validator } from '@cfworker/json-schema';
import type { JsonObject, JsonValue } from '../json.ts';
import type { FieldIssue } from '../refusal.ts';
import type { Result } from '../result.ts';
import { err, ok } from '../result.ts';
import { expandSchema } from './schema-keywords.ts';

/** The schema of an action's arguments, checked and ready to be used. */
export interface ArgumentSchema {
  /** Without references and unknown keywords. */
  readonly schema: JsonObject;
  /** Values of top-level properties that have a `default`. */
  readonly defaults: readonly (readonly [string, JsonValue])[];
  /** Names that arguments can have; null when the schema leaves that open. */
  readonly names: ReadonlySet<string> | null;
}

/** What an action without a schema accepts: nothing. */
export const NO_ARGUMENTS: JsonObject = { type: 'object', properties: {}, additionalProperties: false };

/**
 * Checks a JSON Schema (2020-12, as far as `schema-keywords.ts` goes) whose root describes an object. Issues name their field below
 * `field`. Defaults of top-level properties must themselves be valid.
 */
export function compileArgumentSchema(document: JsonObject, field = 'arguments'): Result<ArgumentSchema, readonly FieldIssue[]> {
  if (document['type'] !== undefined && document['type'] !== 'object') {
    return err([{ field: `${field}.type`, message: 'must be "object": arguments have names' }]);
  }
  const expanded = expandSchema(document, field);
  if (!expanded.ok) return expanded;
  const schema: JsonObject = { ...expanded.value, type: 'object' };

  const issues: FieldIssue[] = [];
  const defaults: [string, JsonValue][] = [];
  for (const [name, property] of Object.entries(asObject(schema['properties']))) {
    const value = asObject(property)['default'];
    if (value === undefined) continue;
    for (const issue of violations(property as JsonObject, value, `${field}.properties.${name}.default`)) issues.push(issue);
    defaults.push([name, value]);
  }
  return issues.length > 0 ? err(issues) : ok({ schema, defaults, names: namesOf(schema) });
}

/** What is wrong with a value, by field below `root`; empty when it is valid. Never throws, whatever the value. */
export function violations(schema: JsonObject, value: JsonValue, root: string): readonly FieldIssue[] {
  const outcome = new Validator(structuredClone(schema) as Schema, '2020-12', false).validate(value);
  if (outcome.valid) return [];
  const issues = new Map<string, FieldIssue>();
  for (const unit of outcome.errors) {
    if (WRAPPERS.has(unit.keyword)) continue;
    const issue = issueOf(unit, fieldOf(unit.instanceLocation, root), schema, value);
    issues.set(`${issue.field}\n${issue.message}`, issue);
    if (issues.size >= MAX_ISSUES) break;
  }
  // A wrapper alone (a `not`, say) still has to refuse.
  return issues.size > 0 ? [...issues.values()] : [{ field: root, message: 'does not match the schema' }];
}

const MAX_ISSUES = 20;

/** Keywords whose error only says that something below them is wrong; what is below says it better. */
const WRAPPERS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  'additionalProperties',
  'unevaluatedProperties',
  'dependentSchemas',
  'items',
  'prefixItems',
  'additionalItems',
  'unevaluatedItems',
  'allOf',
  'if',
  '$ref',
]);

function issueOf(
  { keyword, error: text, instanceLocation, keywordLocation }: OutputUnit,
  field: string,
  schema: JsonObject,
  root: JsonValue,
): FieldIssue {
  switch (keyword) {
    case 'false':
      return { field, message: 'is not known here' };
    case 'required': {
      const name = /property "(.*)"\.$/s.exec(text)?.[1] ?? '';
      return { field: `${field}.${name}`, message: 'is required' };
    }
    case 'type': {
      const expected = /Expected "(.*)"\.$/s.exec(text)?.[1]?.replaceAll('", "', ' or ') ?? 'of another type';
      return { field, message: `must be ${expected}, not ${typeName(valueAt(root, instanceLocation))}` };
    }
    case 'pattern':
      // References are in their place, so the location leads to the keyword.
      return { field, message: `must match ${String(valueAt(schema, keywordLocation) ?? 'the pattern')}` };
    default:
      return { field, message: text.replace(/^Instance /, 'the value ') };
  }
}

function typeName(value: JsonValue | undefined): string {
  if (value === null || value === undefined) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function valueAt(root: JsonValue, pointer: string): JsonValue | undefined {
  let value: JsonValue | undefined = root;
  for (const key of keysOf(pointer)) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as JsonObject)[key];
  }
  return value;
}

function fieldOf(pointer: string, root: string): string {
  return keysOf(pointer).reduce((field, key) => (/^\d+$/.test(key) ? `${field}[${key}]` : `${field}.${key}`), root);
}

function keysOf(pointer: string): readonly string[] {
  const keys = pointer.split('/').slice(1);
  return keys.map((key) => decode(key).replaceAll('~1', '/').replaceAll('~0', '~'));
}

function decode(text: string): string {
  try {
    return decodeURI(text);
  } catch {
    return text;
  }
}

/** Where nothing but `properties` can name an argument, the names are known. `additionalProperties` must be asked for. */
function namesOf(schema: JsonObject): ReadonlySet<string> | null {
  const open = schema['additionalProperties'] !== undefined && schema['additionalProperties'] !== false;
  const elsewhere = OTHER_SOURCES_OF_NAMES.some((keyword) => schema[keyword] !== undefined);
  if (open || elsewhere || (schema['properties'] === undefined && schema['additionalProperties'] !== false)) return null;
  return new Set(Object.keys(asObject(schema['properties'])));
}

const OTHER_SOURCES_OF_NAMES = ['patternProperties', 'allOf', 'anyOf', 'oneOf', 'if', 'dependentSchemas', 'unevaluatedProperties'] as const;

function asObject(value: JsonValue | undefined): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}
