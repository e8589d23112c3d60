import * as z from 'zod';
import type { JsonObject } from '../core/json.ts';
import type { Refusal } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';
import { invalidWith, issuesOf } from '../core/schema-issues.ts';

/**
 * Parts from which the version folders build their decoders.
 *
 * Promise: decoding never throws, whatever the input; members that are not named are dropped (contract section 3); `null` and,
 * for texts, `''` mean absent (ProtoJSON defaults, and case A05); every refusal names the fields. Values have been parsed from JSON and
 * their depth has been checked before they come here.
 */

/** Parses `input`; a failure is an `invalid` refusal whose issues name the fields from the root of the parameters. */
export function decodeWith<T>(schema: z.ZodType<T>, input: unknown): Result<T, Refusal> {
  const parsed = schema.safeParse(input, { error: requiredMessage });
  if (parsed.success) return ok(parsed.data);
  return err(invalidWith('parameters', issuesOf(parsed.error).slice(0, MAX_ISSUES)));
}

/** A hostile list of a million bad parts must not become a megabyte of complaints. */
const MAX_ISSUES = 16;

export const requiredMessage = (issue: { readonly input?: unknown }): string | undefined =>
  issue.input === undefined ? 'is required' : undefined;

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * An object of the wire: only the members of `shape` are read, and `null` ones are absent. With `proto` names a member may also come
 * under its original snake_case name (ProtoJSON); the camelCase one wins.
 */
export function wireObject<S extends z.ZodRawShape>(names: 'camel' | 'proto', shape: S) {
  const members = Object.keys(shape).map((name) => ({ name, alias: names === 'proto' ? snakeCase(name) : name }));
  return z.preprocess((input) => {
    if (!isRecord(input)) return input;
    const picked: Record<string, unknown> = {};
    for (const { name, alias } of members) {
      const value = ownMember(input, name) ?? ownMember(input, alias);
      if (value !== undefined) picked[name] = value;
    }
    return picked;
  }, z.object(shape));
}

/** The member if it is the object's own and not null. */
export function ownMember(record: Readonly<Record<string, unknown>>, name: string): unknown {
  const value = Object.hasOwn(record, name) ? record[name] : undefined;
  return value === null ? undefined : value;
}

const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** A text that must be there and say something. */
export const requiredText = z.string().min(1, 'must not be empty');

/** A text that may be absent; `''` is absent. */
export const optionalText = z
  .string()
  .optional()
  .transform((text) => (text === '' ? undefined : text));

export const optionalTexts = z
  .array(requiredText)
  .optional()
  .transform((texts) => (texts === undefined || texts.length === 0 ? undefined : texts));

/** Metadata: any object. Its content is passed on as it is. */
export const optionalObject = z.custom<JsonObject>(isRecord, 'must be an object').optional();

/** An int32 that is not negative; ProtoJSON also writes integers as texts. */
export function countSchema(names: 'camel' | 'proto', bounds: { readonly min: number; readonly max: number }) {
  const count = z.int().min(bounds.min, `must be at least ${bounds.min}`).max(bounds.max, `must be at most ${bounds.max}`);
  return z.preprocess(
    (value) => (names === 'proto' && typeof value === 'string' && INTEGER_TEXT.test(value) ? Number(value) : value),
    count,
  );
}

const INTEGER_TEXT = /^-?\d{1,10}$/;

export const MAX_INT32 = 2_147_483_647;

/** Bytes as base64 or base64url, with or without padding; the value is always standard base64 with padding. */
export const base64Text = z.string().transform((text, context) => {
  const body = text.replace(/=+$/, '');
  const padded = text.length - body.length;
  const missing = (4 - (body.length % 4)) % 4;
  if (!BASE64_BODY.test(body) || missing === 3 || padded > 2 || (padded !== 0 && padded !== missing)) {
    context.addIssue({ code: 'custom', message: 'must be base64' });
    return z.NEVER;
  }
  return body.replaceAll('-', '+').replaceAll('_', '/') + '='.repeat(missing);
});

const BASE64_BODY = /^[A-Za-z0-9+/_-]*$/;

/**
 * An ISO 8601 time with an offset, as UTC with milliseconds. Digits below the millisecond round up, so that "at or after" stays true
 * for times that are kept in milliseconds.
 */
export const timestampText = z.iso
  .datetime({ offset: true, error: 'must be an ISO 8601 time with an offset, such as 2026-01-31T12:00:00Z' })
  .transform((text, context) => {
    const below = /\.\d{3}(\d+)/.exec(text)?.[1] ?? '';
    const at = new Date(Date.parse(text) + (/[1-9]/.test(below) ? 1 : 0));
    if (!Number.isNaN(at.getTime())) return at.toISOString();
    context.addIssue({ code: 'custom', message: 'must be an ISO 8601 time' });
    return z.NEVER;
  });

/** One value of a closed list, by any of its wire spellings. */
export function namedValue<T>(spellings: ReadonlyMap<unknown, T>, message: string) {
  return z.unknown().transform((value, context): T => {
    const known = spellings.get(value);
    if (known !== undefined) return known;
    context.addIssue({ code: 'custom', message: value === undefined ? 'is required' : message });
    return z.NEVER;
  });
}

/** A header's token: what may stand before the credentials in `Authorization`. */
export const authScheme = z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'must be the name of an authentication scheme');

/** A secret that is later sent as a header's value: not blank, one line, nothing that a header cannot carry (case A12). */
export const headerSecret = z.string().regex(/^(?=.*\S)[\t\x20-\x7e]+$/, 'must be visible ASCII characters, and not blank');

/** Drops members that are undefined, so that neither the model nor the wire carries them. */
export function compact<T extends object>(record: T): T {
  const result: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(record)) if (value !== undefined) result[name] = value;
  return result as T;
}
