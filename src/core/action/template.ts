import type { JsonObject, JsonValue } from '../json.ts';
import type { StepResult } from '../plan/proposal.ts';
import type { Result } from '../result.ts';
import { err, ok } from '../result.ts';

/**
 * Templates of script steps: `${args.name}`, `${input}`, `${steps.id.result}`, with a path behind them where the value has members.
 *
 * Promise: a template is a look-up and nothing else. No code is evaluated, only own members are read, and what cannot be found is said
 * by name. `$${` stands for a literal `${`.
 */

/** What a step template may name after its id. */
export const STEP_MEMBERS = ['result', 'status', 'reason'] as const;

export type StepMember = (typeof STEP_MEMBERS)[number];

export type Reference = { readonly text: string; readonly path: readonly string[] } & (
  | { readonly kind: 'input' }
  | { readonly kind: 'args'; readonly name: string }
  | { readonly kind: 'steps'; readonly id: string; readonly member: StepMember }
);

/** What templates are resolved against. */
export interface TemplateScope {
  readonly arguments: JsonObject;
  /** Text of the first message of the caller; '' if there is none. */
  readonly input: string;
  readonly results: ReadonlyMap<string, StepResult>;
}

/** All that one step may resolve to, in characters of text: a result that is named a thousand times does not fill the memory. */
export const MAX_RESOLVED_CHARACTERS = 2_000_000;

/** Literal texts and references in their order. The error says what is wrong with the first malformed template. */
export function parseTemplate(text: string): Result<readonly (string | Reference)[], string> {
  const pieces: (string | Reference)[] = [];
  let literal = '';
  let position = 0;
  for (;;) {
    const start = text.indexOf('${', position);
    if (start < 0) break;
    if (start > position && text[start - 1] === '$') {
      literal += `${text.slice(position, start - 1)}\${`;
      position = start + 2;
      continue;
    }
    const end = text.indexOf('}', start);
    if (end < 0) return err("a template is not closed: '}' is missing (write '$${' for a literal '${')");
    const reference = parseReference(text.slice(start, end + 1));
    if (!reference.ok) return reference;
    literal += text.slice(position, start);
    if (literal !== '') pieces.push(literal);
    literal = '';
    pieces.push(reference.value);
    position = end + 1;
  }
  literal += text.slice(position);
  if (literal !== '') pieces.push(literal);
  return ok(pieces);
}

/**
 * The value with every template in it replaced. A text that is one template becomes the value itself, with its type; inside a longer
 * text a value becomes text (JSON unless it is text already). Member names are never templates.
 */
export function resolveTemplates(value: JsonValue, scope: TemplateScope): Result<JsonValue, string> {
  return resolveValue(value, scope, { charactersLeft: MAX_RESOLVED_CHARACTERS });
}

/** Every text inside a value, with the path at which it stands (`call.arguments.files[2]`). */
export function* textsIn(value: JsonValue, path: string): Generator<{ readonly path: string; readonly text: string }> {
  if (typeof value === 'string') yield { path, text: value };
  else if (isList(value)) for (const [index, item] of value.entries()) yield* textsIn(item, `${path}[${index}]`);
  else if (typeof value === 'object' && value !== null) {
    for (const [key, item] of Object.entries(value)) yield* textsIn(item, path === '' ? key : `${path}.${key}`);
  }
}

interface Allowance {
  charactersLeft: number;
}

function resolveValue(value: JsonValue, scope: TemplateScope, allowance: Allowance): Result<JsonValue, string> {
  if (typeof value === 'string') return resolveText(value, scope, allowance);
  if (typeof value !== 'object' || value === null) return ok(value);
  if (isList(value)) {
    const items: JsonValue[] = [];
    for (const item of value) {
      const resolved = resolveValue(item, scope, allowance);
      if (!resolved.ok) return resolved;
      items.push(resolved.value);
    }
    return ok(items);
  }
  const members: [string, JsonValue][] = [];
  for (const [key, item] of Object.entries(value)) {
    const resolved = resolveValue(item, scope, allowance);
    if (!resolved.ok) return resolved;
    members.push([key, resolved.value]);
  }
  // fromEntries defines own members, so that a member named __proto__ stays data.
  return ok(Object.fromEntries(members));
}

function resolveText(text: string, scope: TemplateScope, allowance: Allowance): Result<JsonValue, string> {
  const pieces = parseTemplate(text);
  if (!pieces.ok) return pieces;
  const whole = pieces.value.length === 1 ? pieces.value[0] : undefined;
  if (whole !== undefined && typeof whole !== 'string') {
    const found = lookUp(whole, scope);
    if (found.ok && !spend(allowance, asText(found.value))) return tooLarge;
    return found;
  }
  let resolved = '';
  for (const piece of pieces.value) {
    if (typeof piece === 'string') {
      resolved += piece;
      continue;
    }
    const found = lookUp(piece, scope);
    if (!found.ok) return found;
    const inserted = asText(found.value);
    if (!spend(allowance, inserted)) return tooLarge;
    resolved += inserted;
  }
  return ok(resolved);
}

const tooLarge = err(`the templates of this step come to more than ${MAX_RESOLVED_CHARACTERS} characters`);

function spend(allowance: Allowance, text: string): boolean {
  allowance.charactersLeft -= text.length;
  return allowance.charactersLeft >= 0;
}

function asText(value: JsonValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function lookUp(reference: Reference, scope: TemplateScope): Result<JsonValue, string> {
  const root = rootOf(reference, scope);
  if (!root.ok) return root;
  let value = root.value;
  for (const key of reference.path) {
    const next = memberOf(value, key);
    if (next === undefined) return err(`template ${reference.text} has no value: there is no '${key}' in ${describe(value)}`);
    value = next;
  }
  return ok(value);
}

function rootOf(reference: Reference, scope: TemplateScope): Result<JsonValue, string> {
  switch (reference.kind) {
    case 'input':
      return ok(scope.input);
    case 'args': {
      const value = memberOf(scope.arguments, reference.name);
      return value === undefined ? err(`template ${reference.text} has no value: argument '${reference.name}' was not given`) : ok(value);
    }
    case 'steps': {
      const result = scope.results.get(reference.id);
      if (result === undefined) return err(`template ${reference.text} has no value: step '${reference.id}' has no result yet`);
      if (reference.member === 'status') return ok(result.status);
      if (reference.member === 'reason') return ok(result.reason ?? '');
      if (result.status !== 'succeeded') {
        return err(`template ${reference.text} has no value: step '${reference.id}' was not successful (${result.status})`);
      }
      return ok(result.value);
    }
  }
}

function memberOf(value: JsonValue, key: string): JsonValue | undefined {
  if (isList(value)) return LIST_INDEX.test(key) ? value[Number(key)] : undefined;
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? value[key] : undefined;
}

function describe(value: JsonValue): string {
  if (value === null) return 'null';
  if (isList(value)) return `a list of ${value.length}`;
  return typeof value === 'object' ? `an object with ${Object.keys(value).slice(0, 10).join(', ') || 'no members'}` : `a ${typeof value}`;
}

function parseReference(text: string): Result<Reference, string> {
  const parts = text.slice(2, -1).trim().split('.');
  const [root = '', first = '', second = ''] = parts;
  if (parts.every((part) => PATH_PART.test(part))) {
    if (root === 'input' && parts.length === 1) return ok({ kind: 'input', text, path: [] });
    if (root === 'args' && parts.length > 1) return ok({ kind: 'args', name: first, path: parts.slice(2), text });
    const member = STEP_MEMBERS.find((name) => name === second);
    if (root === 'steps' && member !== undefined && (member === 'result' || parts.length === 3)) {
      return ok({ kind: 'steps', id: first, member, path: parts.slice(3), text });
    }
  }
  return err(
    `${clip(text)} is not a template: use \${args.<name>}, \${steps.<id>.result}, \${steps.<id>.status}, \${steps.<id>.reason} or \${input}` +
      " (write '$${' for a literal '${')",
  );
}

function clip(text: string): string {
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}

const PATH_PART = /^[^\s.${}]+$/;
const LIST_INDEX = /^(?:0|[1-9][0-9]{0,8})$/;
