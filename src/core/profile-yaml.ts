import { isMap, isScalar, isSeq, LineCounter, parseDocument, stringify, visit } from 'yaml';
import { type AutomationProfile, THRESHOLD_NAMES } from './profile.ts';
import type { FieldIssue, Refusal } from './refusal.ts';
import type { Result } from './result.ts';
import { err, ok } from './result.ts';
import { invalidWith } from './schema-issues.ts';

/**
 * Profiles as YAML text. Reading takes plain data only: no tags, no aliases, no second document, no duplicate key. What a text could do
 * to the parser is bounded before it is parsed, since deep nesting can end the process and long lists of keys take quadratic time.
 */

/** Longest text, in bytes of UTF-8. */
export const MAX_YAML_BYTES = 64 * 1024;
/** A profile has a handful of brackets and four columns of indentation; these bound how deep anything can nest. */
const MAX_BRACKETS = 64;
const MAX_INDENT = 128;
const MAX_LINES = 4000;
const MAX_COMMAS = 4000;
/** Problems that are reported at most. */
const MAX_PROBLEMS = 5;

export interface YamlDocument {
  readonly value: unknown;
  /** The line, from 1, on which a field of the document stands (`safety.max_cost_per_plan`), null when it is not in the text. */
  readonly lineOf: (field: string) => number | null;
}

/** Reads one document. Refusals name `field` and the line. */
export function readProfileYaml(text: string, field = 'yaml'): Result<YamlDocument, Refusal> {
  if (new TextEncoder().encode(text).byteLength > MAX_YAML_BYTES) {
    return err({ kind: 'too_large', message: `${field}: must have at most ${MAX_YAML_BYTES} bytes`, limitBytes: MAX_YAML_BYTES });
  }
  const excess = findExcess(text);
  if (excess !== null) return err(invalidWith('YAML', [{ field, message: excess }]));

  const lines = new LineCounter();
  const document = parseDocument(text, {
    ...{ version: '1.2', schema: 'core', strict: true, uniqueKeys: true, stringKeys: true, merge: false },
    ...{ prettyErrors: false, logLevel: 'error', lineCounter: lines },
  } as const);
  const at = (offset: number, message: string): FieldIssue => ({ field, message: `line ${lines.linePos(offset).line}: ${message}` });
  const problems = [...document.errors, ...document.warnings].map(({ pos, message }) => at(pos[0], clip(message)));
  if (problems.length === 0) {
    visit(document, {
      Alias: (_key, node) => void problems.push(at(node.range?.[0] ?? 0, 'aliases are not accepted; write the value out')),
      Value: (_key, node) => {
        if (node.tag !== undefined) problems.push(at(node.range?.[0] ?? 0, 'tags are not accepted; write plain values'));
      },
    });
  }
  if (problems.length > 0) return err(invalidWith('YAML', problems.slice(0, MAX_PROBLEMS)));
  const value: unknown = document.toJS({ maxAliasCount: 0 });
  return ok({
    value,
    lineOf: (path) => {
      const found = spellings(path).map((spelling) => memberAt(document.contents, spelling));
      const member = found.find((each) => each?.isExact) ?? found.find((each) => each !== null);
      return member === undefined || member === null ? null : lines.linePos(member.offset).line;
    },
  });
}

/** A profile in the source's form: thresholds by name, `safety` and `guard` nested, every member written out. Read back it is the same profile. */
export function writeProfileYaml(profile: AutomationProfile): string {
  const { name, description, extends: base, safety, guard, unattended } = profile;
  const document = {
    name,
    ...(description === undefined ? {} : { description }),
    ...(base === undefined ? {} : { extends: base }),
    ...Object.fromEntries(THRESHOLD_NAMES.map((threshold) => [threshold, profile[threshold]])),
    safety,
    ...(guard === null ? {} : { guard }),
    ...(unattended === undefined ? {} : { unattended }),
  };
  return stringify(document, { lineWidth: 0, aliasDuplicateObjects: false });
}

function findExcess(text: string): string | null {
  const rows = text.split(/\r\n|\r|\n/);
  if (rows.length > MAX_LINES) return `must have at most ${MAX_LINES} lines`;
  const deep = rows.findIndex((row) => (/^[\s\-?:]*/.exec(row)?.[0].length ?? 0) > MAX_INDENT && row.trim() !== '');
  if (deep >= 0) return `line ${deep + 1}: is indented or nested too deeply`;
  if (count(text, '[') + count(text, '{') > MAX_BRACKETS) return `must have at most ${MAX_BRACKETS} brackets`;
  return count(text, ',') > MAX_COMMAS ? `must have at most ${MAX_COMMAS} commas` : null;
}

function count(text: string, character: string): number {
  let found = 0;
  for (const each of text) if (each === character) found += 1;
  return found;
}

/** The parser repeats what it read; a message has no use for all of it. */
const clip = (message: string): string => (message.length <= 200 ? message : `${message.slice(0, 199)}…`);

/** Where a field of the parsed document can stand in the text: safety members also at top level, the guard also as `guards`. */
function spellings(path: string): readonly string[] {
  const bare = path.startsWith('safety.') ? [path.slice('safety.'.length)] : [];
  const plural = /^guard(?=\.|$)/.test(path) ? [path.replace('guard', 'guards')] : [];
  return [path, ...bare, ...plural];
}

interface Member {
  readonly offset: number;
  /** Whether it is the member itself, or only what it would stand in. */
  readonly isExact: boolean;
}

/** Where the member of a node that a dotted path names stands, or its nearest container that is in the text; null when not even that is. */
function memberAt(node: unknown, path: string): Member | null {
  if (isMap(node)) {
    for (const { key, value } of node.items) {
      if (!isScalar(key)) continue;
      const name = String(key.value);
      const own = key.range?.[0] ?? 0;
      if (path === name) return { offset: own, isExact: true };
      if (path.startsWith(`${name}.`)) return memberAt(value, path.slice(name.length + 1)) ?? { offset: own, isExact: false };
    }
    return null;
  }
  if (!isSeq(node)) return null;
  const [index = '', ...rest] = path.split('.');
  const item: unknown = node.items[Number(index)];
  if (!isScalar(item) && !isMap(item) && !isSeq(item)) return null;
  const own = { offset: item.range?.[0] ?? 0, isExact: rest.length === 0 };
  return own.isExact ? own : (memberAt(item, rest.join('.')) ?? own);
}
