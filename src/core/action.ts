import * as z from 'zod';
import type { ArgumentSchema } from './action/argument-schema.ts';
import { compileArgumentSchema, NO_ARGUMENTS, violations } from './action/argument-schema.ts';
import { AnyObject, nonBlankText, ScriptSteps } from './action/script.ts';
import { findScriptIssues } from './action/script-check.ts';
import { Guardrails } from './guard-policy.ts';
import type { JsonObject, JsonValue } from './json.ts';
import { exceedsDepth, MAX_JSON_DEPTH } from './json.ts';
import type { FieldIssue, Refusal } from './refusal.ts';
import { invalidField } from './refusal.ts';
import type { Result } from './result.ts';
import { err, ok } from './result.ts';
import { invalidWith, sentenceOf } from './schema-issues.ts';

/**
 * Actions: the templates from which plans are made (design section 12).
 *
 * Promise: an action that was accepted can be used. Unknown members, broken schemas, tools that cannot exist and templates that can never
 * be filled are refused when it is added, each by the name of its field, and not while a plan runs.
 */

const NAME = /^(?:(?:[a-z0-9][a-z0-9._-]*:)?[a-z0-9][a-z0-9._-]*\/)?[a-z0-9][a-z0-9._-]*$/;

/** `name`, `ns/name` or `server:ns/name`, lower case: how actions, actors and projects are named. */
export const ActionName = z
  .string('must be text')
  .max(128, 'must have at most 128 characters')
  .regex(NAME, "must have the form 'name', 'ns/name' or 'server:ns/name', in lower-case letters, digits, '.', '_' and '-'");

export const ActionDocument = z.strictObject(
  {
    name: ActionName,
    description: nonBlankText(2000),
    /** JSON Schema of the arguments, an object; absent: the action takes none. */
    arguments: z.exactOptional(AnyObject),
    /** Who proposes: a name of the actor registry. */
    actor: ActionName,
    project: z.exactOptional(ActionName),
    automation_profile: z.exactOptional(
      z.string('must be text').max(128, 'must have at most 128 characters').regex(new RegExp(NAME, 'i'), 'must be the name of a profile'),
    ),
    guardrails: z.exactOptional(Guardrails),
    /** What happens to the changes at the end: they go to the project, or the artifacts are the result. */
    apply: z.enum(['project', 'none'], 'must be "project" or "none"').default('project'),
    /** Listed on the public Agent Card. */
    public: z.exactOptional(z.boolean('must be true or false')),
    invariants: z.exactOptional(z.array(nonBlankText(1000), 'must be a list of texts').max(50, 'must have at most 50 entries')),
    definition_of_done: z.exactOptional(nonBlankText(4000)),
    strategize: z.exactOptional(ScriptSteps),
    execute: z.exactOptional(ScriptSteps),
  },
  'must be an object',
);
export type ActionDocument = z.infer<typeof ActionDocument>;

/** An action is stored inside the first event of each of its plans, so it has to stay below the size of an event. */
export const MAX_ACTION_CHARACTERS = 48 * 1024;

export const MAX_ARGUMENTS_CHARACTERS = 256 * 1024;

/** Longest list inside arguments: checking that items are unique compares each with each. */
export const MAX_ARGUMENT_LIST_ITEMS = 5000;

/** Checks an action from outside. Issues name their field from the root of the document (`execute[2].call.tool`). Never throws. */
export function parseAction(value: unknown): Result<ActionDocument, Refusal> {
  const size = checkJson(value, 'action', MAX_ACTION_CHARACTERS);
  if (!size.ok) return size;
  const parsed = ActionDocument.safeParse(value);
  if (!parsed.success) return err(invalidWith('action', issuesOf(parsed.error, value)));
  const action = parsed.data;

  const schema = compileArgumentSchema(action.arguments ?? NO_ARGUMENTS);
  const issues = schema.ok ? findScriptIssues(action, schema.value.names) : schema.error;
  return issues.length > 0 ? err(invalidWith('action', issues)) : ok(action);
}

/**
 * Checks the arguments of one use of an action, and fills in the defaults of absent top-level ones. `undefined` is `{}`.
 * Issues name their field as `arguments.x`. Never throws.
 */
export function validateArguments(action: ActionDocument, args: unknown): Result<JsonObject, Refusal> {
  const given = args === undefined ? {} : args;
  const size = checkJson(given, 'arguments', MAX_ARGUMENTS_CHARACTERS);
  if (!size.ok) return size;
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return err(invalidField('arguments', 'must be an object'));
  if (hasLongList(given as JsonObject)) {
    return err(invalidField('arguments', `a list in it has more than ${MAX_ARGUMENT_LIST_ITEMS} items`));
  }

  const schema = compileArgumentSchema(action.arguments ?? NO_ARGUMENTS, 'action.arguments');
  if (!schema.ok) return err(invalidWith(`schema of action '${action.name}'`, schema.error));
  const filled = withDefaults(given as JsonObject, schema.value);
  const issues = violations(schema.value.schema, filled, 'arguments');
  return issues.length > 0 ? err(invalidWith(`arguments of action '${action.name}'`, issues)) : ok(filled);
}

function withDefaults(args: JsonObject, { defaults }: ArgumentSchema): JsonObject {
  const absent = defaults.filter(([name]) => !Object.hasOwn(args, name));
  return absent.length === 0 ? args : Object.fromEntries([...Object.entries(args), ...absent]);
}

/** Documents also come from YAML and from code, where a value may hold things that JSON has no form for. */
function checkJson(value: unknown, field: string, maxCharacters: number): Result<null, Refusal> {
  if (exceedsDepth(value)) return err(invalidField(field, `is nested more than ${MAX_JSON_DEPTH} deep`));
  const stack: unknown[] = [value];
  while (stack.length > 0) {
    const item = stack.pop();
    if (item === null || typeof item === 'string' || typeof item === 'boolean' || Number.isFinite(item)) continue;
    const prototype: unknown = typeof item === 'object' ? Object.getPrototypeOf(item) : undefined;
    if (Array.isArray(item)) for (const child of item) stack.push(child);
    else if (typeof item === 'object' && item !== null && (prototype === Object.prototype || prototype === null)) {
      for (const child of Object.values(item)) stack.push(child);
    } else return err(invalidField(field, 'must hold JSON values only'));
  }
  const characters = JSON.stringify(value).length;
  if (characters <= maxCharacters) return ok(null);
  return err({
    kind: 'too_large',
    message: `${field}: has ${characters} characters; at most ${maxCharacters} are accepted`,
    limitBytes: maxCharacters,
  });
}

function hasLongList(root: JsonObject): boolean {
  const stack: JsonValue[] = [root];
  for (let item = stack.pop(); item !== undefined; item = stack.pop()) {
    if (typeof item !== 'object' || item === null) continue;
    const children = Object.values(item) as readonly JsonValue[];
    if (Array.isArray(item) && children.length > MAX_ARGUMENT_LIST_ITEMS) return true;
    for (const child of children) stack.push(child);
  }
  return false;
}

/** Steps are counted from 0 in brackets, as scripts are read: `execute[2].call.tool`. */
function issuesOf(error: z.ZodError, document: unknown): readonly FieldIssue[] {
  return error.issues.flatMap((issue): FieldIssue[] => {
    const field = issue.path.reduce<string>(
      (path, part) => (typeof part === 'number' ? `${path}[${part}]` : path === '' ? String(part) : `${path}.${String(part)}`),
      '',
    );
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => ({ field: field === '' ? key : `${field}.${key}`, message: `unknown field '${key}'` }));
    }
    const missing = issue.path.length > 0 && valueAt(document, issue.path) === undefined;
    return [{ field: field === '' ? 'action' : field, message: missing ? `is required: ${issue.message}` : sentenceOf(issue) }];
  });
}

function valueAt(document: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, key) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? (value as Record<PropertyKey, unknown>)[key] : undefined,
    document,
  );
}
