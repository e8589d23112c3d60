// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are templates of script steps.
/**
 * Input of every wrong kind, from a seed: a plausible base, made from an operation's own schema, in which a few places are replaced,
 * removed or added. So most of it comes past the first check and meets the code behind.
 */
import fc from 'fast-check';
import * as z from 'zod';
import type { Operation } from '../../src/api/operation.ts';
import type { JsonObject, JsonValue } from '../../src/core/json.ts';

/** Stands for what JSON text can say and `JSON.stringify` cannot. */
const UNSAYABLE: ReadonlyMap<string, string> = new Map([
  ['@infinite', '1e999'],
  ['@negative-zero', '-0'],
  ['@precise', '9007199254740993'],
  ['@proto', '{"__proto__":{"polluted":true},"constructor":{"prototype":1}}'],
  ['@twice', '{"a":1,"a":2}'],
]);

const nested = (depth: number): JsonValue => (depth === 0 ? [] : { a: [nested(depth - 1)] });

const HOSTILE: readonly JsonValue[] = [
  null,
  true,
  false,
  0,
  1,
  -1,
  1.5,
  1e308,
  2 ** 31,
  2 ** 53,
  '',
  ' ',
  'a',
  '0',
  'null',
  '\0',
  'a\0b',
  '\ud800',
  '\u202eevil',
  '𝒞𝒶𝓈𝑒',
  'é'.normalize('NFD'),
  '__proto__',
  'constructor',
  'toString',
  '../../etc/passwd',
  '/etc/passwd',
  'C:\\x',
  'a/./b',
  '%00',
  '${args.x}',
  "'; DROP TABLE plans; --",
  '*',
  '01HXRCF1ABCDEFGHJKMNPQRSTV',
  '01HXRCF1ABCDEFGHJKMNPQRSTV.1',
  'task_01HXRCF1ABCDEFGHJKMNPQRSTV',
  '0'.repeat(64),
  '2026-02-30T00:00:00Z',
  '9999-12-31T23:59:59.999Z',
  'x'.repeat(300),
  'x'.repeat(70_000),
  'a/'.repeat(3000),
  [],
  [null],
  [[]],
  ['a', 'a'],
  Array.from({ length: 3000 }, () => 'a'),
  {},
  { '': 1 },
  { a: 1 },
  { length: -1 },
  { kind: 'text', text: 1 },
  nested(25),
  nested(40),
  ...UNSAYABLE.keys(),
];

/** What names of members usually hold, so that a base finds things that exist. */
export type Known = Readonly<Record<string, JsonValue>>;

interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly JsonValue[];
  readonly const?: JsonValue;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}

/** A base of the operation's parameters with every member that its schema knows. */
export function baseOf(operation: Operation, known: Known): JsonObject {
  const schema = z.toJSONSchema(operation.params, { io: 'input', unrepresentable: 'any' }) as unknown as Schema;
  return sampleOf(schema, '', known) as JsonObject;
}

function sampleOf(schema: Schema, name: string, known: Known): JsonValue {
  const value = known[name];
  if (value !== undefined) return value;
  if (schema.const !== undefined) return schema.const;
  const [first] = schema.enum ?? [];
  if (first !== undefined) return first;
  const [choice] = schema.anyOf ?? [];
  if (choice !== undefined) return sampleOf(choice, name, known);
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case 'object':
      return Object.fromEntries(Object.entries(schema.properties ?? {}).map(([member, inner]) => [member, sampleOf(inner, member, known)]));
    case 'array':
      return [sampleOf(schema.items ?? {}, name, known)];
    case 'number':
    case 'integer':
      return 1;
    case 'boolean':
      return false;
    default:
      return 'text';
  }
}

type Step =
  | { readonly kind: 'replace' | 'add'; readonly at: number; readonly value: JsonValue }
  | { readonly kind: 'remove'; readonly at: number };

const hostile = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...HOSTILE) },
  { weight: 1, arbitrary: fc.jsonValue() as fc.Arbitrary<JsonValue> },
);

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('replace' as const), at: fc.nat(), value: hostile }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove' as const), at: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('add' as const), at: fc.nat(), value: hostile }) },
);

/** JSON texts made from a base; the same seed gives the same texts. */
export function hostileTexts(base: JsonValue, { seed, count }: { readonly seed: number; readonly count: number }): readonly string[] {
  const mutated = fc
    .oneof({ weight: 3, arbitrary: fc.tuple(step) }, { weight: 1, arbitrary: fc.array(step, { minLength: 2, maxLength: 4 }) })
    .map((steps) => steps.reduce<JsonValue>(mutate, base));
  const values = fc.sample(fc.oneof({ weight: 1, arbitrary: hostile }, { weight: 9, arbitrary: mutated }), { seed, numRuns: count });
  return values.map(textOf);
}

function textOf(value: JsonValue): string {
  return JSON.stringify(value).replace(/"(@[a-z-]+)"/g, (whole, name: string) => UNSAYABLE.get(name) ?? whole);
}

type Path = readonly (string | number)[];

function mutate(value: JsonValue, change: Step): JsonValue {
  const places = [...placesIn(value, [])];
  const path = places[change.at % places.length] ?? [];
  if (change.kind === 'add') return replaceAt(value, [...path.slice(0, -1), 'unknown_member'], change.value);
  return replaceAt(value, path, change.kind === 'remove' ? undefined : change.value);
}

function* placesIn(value: JsonValue, path: Path): Generator<Path> {
  if (path.length > 0) yield path;
  if (path.length > 8 || typeof value !== 'object' || value === null) return;
  const members: readonly (readonly [string | number, JsonValue])[] = Array.isArray(value)
    ? value.slice(0, 5).map((item: JsonValue, index) => [index, item] as const)
    : Object.entries(value as JsonObject).slice(0, 30);
  for (const [name, member] of members) yield* placesIn(member, [...path, name]);
}

function replaceAt(value: JsonValue, path: Path, by: JsonValue | undefined): JsonValue {
  const [name, ...rest] = path;
  if (name === undefined) return by ?? null;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const items: readonly JsonValue[] = value;
    return items.flatMap((item, index) =>
      index !== name ? [item] : rest.length === 0 && by === undefined ? [] : [replaceAt(item, rest, by)],
    );
  }
  const entries = Object.entries(value as JsonObject).filter(([member]) => member !== name || rest.length > 0);
  const changed = entries.map(([member, inner]): [string, JsonValue] => [member, member === name ? replaceAt(inner, rest, by) : inner]);
  return Object.fromEntries(rest.length === 0 && by !== undefined ? [...changed, [String(name), by]] : changed);
}
