import type { JsonObject, JsonValue } from '../json.ts';
import type { FieldIssue } from '../refusal.ts';
import type { Result } from '../result.ts';
import { err, ok } from '../result.ts';
import { patternIssue } from './pattern-cost.ts';

/**
 * Checks a JSON Schema and rewrites it so that using it is safe.
 *
 * Promise: the answer holds only keywords from the table below, with values of the right form, regular expressions that compile, and no
 * references: those inside the document are put in their place. So validation cannot throw, loop or fetch, and its work is bounded by
 * the size of the schema. Keywords that are not in the table are annotations and are left out, as JSON Schema says.
 */
export function expandSchema(document: JsonObject, field: string): Result<JsonObject, readonly FieldIssue[]> {
  const walk: Walk = { document, issues: [], nodes: 0, references: [] };
  const expanded = expandNode(walk, document, field, true);
  return walk.issues.length > 0 ? err(walk.issues.slice(0, 20)) : ok(typeof expanded === 'boolean' ? {} : expanded);
}

/** Subschemas after references are in their place. */
const MAX_NODES = 1000;

/** References inside what references put in place; keeps every recursion over the result shallow. */
const MAX_REFERENCE_DEPTH = 16;

const MAX_PATTERN_CHARACTERS = 256;

type Form =
  | 'type'
  | 'json'
  | 'list'
  | 'boolean'
  | 'text'
  | 'number'
  | 'positive'
  | 'count'
  | 'names'
  | 'pattern'
  | 'schema'
  | 'schemas'
  | 'schema or schemas'
  | 'schemas by name'
  | 'schemas by pattern'
  | 'names by name'
  | 'definitions'
  | 'reference'
  | 'unsupported';

const KEYWORDS: ReadonlyMap<string, Form> = new Map<string, Form>([
  ['type', 'type'],
  ['const', 'json'],
  ['default', 'json'],
  ['enum', 'list'],
  ['uniqueItems', 'boolean'],
  ['format', 'text'],
  ['minimum', 'number'],
  ['maximum', 'number'],
  ['exclusiveMinimum', 'number'],
  ['exclusiveMaximum', 'number'],
  ['multipleOf', 'positive'],
  ['minLength', 'count'],
  ['maxLength', 'count'],
  ['minItems', 'count'],
  ['maxItems', 'count'],
  ['minContains', 'count'],
  ['maxContains', 'count'],
  ['minProperties', 'count'],
  ['maxProperties', 'count'],
  ['required', 'names'],
  ['dependentRequired', 'names by name'],
  ['pattern', 'pattern'],
  ['not', 'schema'],
  ['if', 'schema'],
  ['then', 'schema'],
  ['else', 'schema'],
  ['contains', 'schema'],
  ['propertyNames', 'schema'],
  ['additionalProperties', 'schema'],
  ['unevaluatedProperties', 'schema'],
  ['additionalItems', 'schema'],
  ['unevaluatedItems', 'schema'],
  ['items', 'schema or schemas'],
  ['prefixItems', 'schemas'],
  ['allOf', 'schemas'],
  ['anyOf', 'schemas'],
  ['oneOf', 'schemas'],
  ['properties', 'schemas by name'],
  ['dependentSchemas', 'schemas by name'],
  ['patternProperties', 'schemas by pattern'],
  ['$defs', 'definitions'],
  ['definitions', 'definitions'],
  ['$ref', 'reference'],
  ['$anchor', 'unsupported'],
  ['$dynamicAnchor', 'unsupported'],
  ['$dynamicRef', 'unsupported'],
  ['$recursiveAnchor', 'unsupported'],
  ['$recursiveRef', 'unsupported'],
  ['dependencies', 'unsupported'],
]);

const TYPES: ReadonlySet<unknown> = new Set(['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']);

interface Walk {
  readonly document: JsonObject;
  readonly issues: FieldIssue[];
  nodes: number;
  /** References that are being put in place, outermost first. */
  readonly references: string[];
}

type Node = JsonObject | boolean;

function expandNode(walk: Walk, node: JsonValue, field: string, isRoot = false): Node {
  if (typeof node === 'boolean') return node;
  if (!isObject(node)) return refuse(walk, field, 'must be a schema: an object, true or false');
  walk.nodes += 1;
  if (walk.nodes > MAX_NODES) {
    if (walk.nodes === MAX_NODES + 1)
      refuse(walk, field, `the schema is too large: more than ${MAX_NODES} subschemas with its references in place`);
    return {};
  }
  const expanded: [string, JsonValue][] = [];
  let target: Node | null = null;
  for (const [keyword, value] of Object.entries(node)) {
    const at = `${field}.${keyword}`;
    if (keyword === '$id' && !isRoot) refuse(walk, at, 'is supported at the root only');
    const form = KEYWORDS.get(keyword);
    if (form === undefined) continue;
    if (form === 'reference') target = resolve(walk, value, at);
    else if (form === 'definitions') expandByName(walk, value, at);
    else expanded.push([keyword, expandKeyword(walk, form, value, at, typeof node['maxLength'] === 'number' ? node['maxLength'] : null)]);
  }
  const own = Object.fromEntries(expanded);
  if (target === null) return own;
  return { ...own, allOf: [...(isList(own['allOf']) ? own['allOf'] : []), target] };
}

function expandKeyword(
  walk: Walk,
  form: Exclude<Form, 'reference' | 'definitions'>,
  value: JsonValue,
  field: string,
  maxLength: number | null,
): JsonValue {
  switch (form) {
    case 'json':
      return value;
    case 'type': {
      const types = isList(value) ? value : [value];
      if (types.length === 0 || !types.every((type) => TYPES.has(type)))
        refuse(walk, field, `must be one or more of ${[...TYPES].join(', ')}`);
      return value;
    }
    case 'list':
      return isList(value) && value.length > 0 ? value : refuse(walk, field, 'must be a list that is not empty');
    case 'boolean':
      return typeof value === 'boolean' ? value : refuse(walk, field, 'must be true or false');
    case 'text':
      return typeof value === 'string' ? value : refuse(walk, field, 'must be text');
    case 'number':
      return typeof value === 'number' ? value : refuse(walk, field, 'must be a number');
    case 'positive':
      return typeof value === 'number' && value > 0 ? value : refuse(walk, field, 'must be a number above 0');
    case 'count':
      return Number.isSafeInteger(value) && Number(value) >= 0 ? value : refuse(walk, field, 'must be a whole number, 0 or more');
    case 'names':
      return areNames(value) ? value : refuse(walk, field, 'must be a list of names');
    case 'names by name':
      return isObject(value) && Object.values(value).every(areNames)
        ? value
        : refuse(walk, field, 'must give a list of names for each name');
    case 'pattern':
      return typeof value === 'string' && compiles(walk, value, field, maxLength)
        ? value
        : refuse(walk, field, 'must be a regular expression');
    case 'schema':
      return expandNode(walk, value, field);
    case 'schemas':
      return expandList(walk, value, field);
    case 'schema or schemas':
      return isList(value) ? expandList(walk, value, field) : expandNode(walk, value, field);
    case 'schemas by name':
      return expandByName(walk, value, field);
    case 'schemas by pattern':
      if (isObject(value)) for (const pattern of Object.keys(value)) compiles(walk, pattern, `${field}.${pattern}`, null);
      return expandByName(walk, value, field);
    case 'unsupported':
      return refuse(walk, field, 'is not supported; refer to parts of the schema by {"$ref": "#/$defs/<name>"}');
  }
}

function expandList(walk: Walk, value: JsonValue, field: string): JsonValue {
  if (!isList(value) || value.length === 0) return refuse(walk, field, 'must be a list of schemas that is not empty');
  return value.map((item, index) => expandNode(walk, item, `${field}[${index}]`));
}

function expandByName(walk: Walk, value: JsonValue, field: string): JsonObject {
  if (!isObject(value)) return refuse(walk, field, 'must be an object whose members are schemas');
  return Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, expandNode(walk, schema, `${field}.${name}`)]));
}

function resolve(walk: Walk, reference: JsonValue, field: string): Node {
  if (typeof reference !== 'string' || !(reference === '#' || reference.startsWith('#/'))) {
    return refuse(walk, field, 'must refer into this schema, like "#/$defs/<name>"');
  }
  if (reference === '#' || walk.references.includes(reference))
    return refuse(walk, field, 'a schema that contains itself is not supported');
  if (walk.references.length >= MAX_REFERENCE_DEPTH)
    return refuse(walk, field, `references are nested more than ${MAX_REFERENCE_DEPTH} deep`);
  let target: JsonValue | undefined = walk.document;
  for (const part of reference.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    const parent: JsonValue | undefined = target;
    target = typeof parent === 'object' && parent !== null && Object.hasOwn(parent, key) ? (parent as JsonObject)[key] : undefined;
  }
  if (target === undefined) return refuse(walk, field, `there is no ${JSON.stringify(reference)} in this schema`);
  walk.references.push(reference);
  const node = expandNode(walk, target, field);
  walk.references.pop();
  return node;
}

function compiles(walk: Walk, pattern: string, field: string, maxLength: number | null): boolean {
  if (pattern.length > MAX_PATTERN_CHARACTERS) {
    refuse(walk, field, `must have at most ${MAX_PATTERN_CHARACTERS} characters`);
    return true;
  }
  try {
    new RegExp(pattern, 'u').test('');
    const issue = patternIssue(pattern, maxLength);
    if (issue !== null) refuse(walk, field, issue);
    return true;
  } catch {
    refuse(walk, field, 'is not a valid regular expression');
    return true;
  }
}

/** Notes the issue and answers the schema that accepts all, so that the walk can go on and find more. */
function refuse(walk: Walk, field: string, message: string): JsonObject {
  walk.issues.push({ field, message });
  return {};
}

function areNames(value: JsonValue): boolean {
  return isList(value) && value.every((item) => typeof item === 'string');
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}
