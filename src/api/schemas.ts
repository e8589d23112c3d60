/**
 * The shared pieces of parameters and results. Every text and list has a bound, every message says what is expected.
 * Scalars that are only looked up (names) are bounded but lenient: an unknown name answers "not found", not "malformed".
 */
import * as z from 'zod';
import { exceedsDepth, type JsonObject, type JsonValue } from '../core/json.ts';
import { ULID_PATTERN } from '../core/plan/plan-id.ts';
import { parsePath } from '../core/workspace/path.ts';
import { FILE_MODES, MAX_FILE_BYTES } from '../core/workspace/tree.ts';

/** An optional member: absent or of the type, never `undefined` or null. */
export const optional = <T extends z.ZodType>(type: T): z.ZodExactOptional<T> => z.exactOptional(type);

/** Text for people: not empty, bounded, storable (no lone surrogates, no NUL). */
export const text = (maxLength: number): z.ZodString =>
  z
    .string()
    .min(1, 'must not be empty')
    .max(maxLength, `must be at most ${maxLength} characters`)
    .refine((value) => value.isWellFormed() && !value.includes('\0'), 'must be well-formed text without NUL characters');

/** Reference to something by name. Lenient on purpose, see the header. */
export const nameReference = text(200);

export const planId = z
  .string()
  .regex(new RegExp(`^${ULID_PATTERN}$`), 'must be a plan id: a ULID of 26 characters as answered by plan/use')
  .meta({ description: 'Plan id (ULID); the same as the A2A task id' });

export const approvalId = z
  .string()
  .regex(new RegExp(`^${ULID_PATTERN}\\.[0-9]{1,10}$`), 'must be an approval id: <plan id>.<number> as answered by approval/list')
  .meta({ description: 'Approval id: <plan id>.<number>' });

export const sessionId = z
  .string()
  .regex(/^[A-Za-z0-9._:-]{1,128}$/, 'must be 1 to 128 characters of A-Z a-z 0-9 . _ : -')
  .refine((value) => !value.startsWith('task_'), 'must not start with "task_", which is reserved for plans')
  .meta({ description: 'Session id; the same as the A2A contextId' });

export const keyId = z.string().regex(/^[A-Za-z0-9-]{1,64}$/, 'must be a key id: the part between "ca_" and the next "_"');

/** Lower-case hex SHA-256. */
export const digest = z.string().regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 digest: 64 lower-case hex characters');

/** ISO 8601 in UTC. */
export const timestamp = z.iso.datetime({ error: 'must be an ISO 8601 time in UTC, for example 2026-11-30T12:00:00Z' });

/** A path of a project's tree; what is wrong with it is said by the core. */
export const treePath = z.string('must be a string').superRefine((value, context) => {
  const path = parsePath(value);
  if (!path.ok) context.addIssue({ code: 'custom', message: path.error });
});

export const fileMode = z.enum(FILE_MODES, 'must be 100644 (file), 100755 (executable) or 120000 (symlink)');

/** Standard base64 with padding of at most one file. Checked without a backtracking pattern: the text can be long. */
export const base64 = z
  .string()
  .max(Math.ceil(MAX_FILE_BYTES / 3) * 4, `a file is at most ${MAX_FILE_BYTES} bytes`)
  .refine(isBase64, 'must be standard base64 with padding');

function isBase64(value: string): boolean {
  if (value.length % 4 !== 0 || /[^A-Za-z0-9+/=]/.test(value)) return false;
  const padding = value.indexOf('=');
  return padding === -1 || value.slice(padding) === '=' || value.slice(padding) === '==';
}

const isPlainObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Whether a value survives a round trip through JSON: no infinite number (`1e999` parses to one), no bigint, no function.
 * Iterative; a value that nests too deep (or is cyclic) is none.
 */
export function isJsonValue(value: unknown): value is JsonValue {
  if (exceedsDepth(value)) return false;
  const pending: unknown[] = [value];
  while (pending.length > 0) {
    const item = pending.pop();
    if (item === null || typeof item === 'string' || typeof item === 'boolean') continue;
    if (typeof item === 'number' && Number.isFinite(item)) continue;
    if (Array.isArray(item)) {
      for (const child of item) pending.push(child);
    } else if (isPlainObject(item) && (Object.getPrototypeOf(item) === Object.prototype || Object.getPrototypeOf(item) === null)) {
      for (const child of Object.values(item)) pending.push(child);
    } else return false;
  }
  return true;
}

const expecting = (what: string) => ({
  error: (issue: { readonly input?: unknown }) => (issue.input === undefined ? 'is required' : `must be ${what}`),
});

/** Any JSON value, kept exactly as it came (a copying parser would drop members named `__proto__`). */
export const jsonValue = z
  .custom<JsonValue>((value) => value !== undefined, expecting('a JSON value'))
  .superRefine(refuseNoJson)
  .meta({ description: 'Any JSON value' });

/** A JSON object with free members, kept exactly as it came. */
export const jsonObject = z
  .custom<JsonObject>(isPlainObject, expecting('a JSON object'))
  .superRefine(refuseNoJson)
  .meta({ type: 'object' });

/** Names the member that is not JSON, however deep it stands. */
function refuseNoJson(value: unknown, context: z.RefinementCtx): void {
  if (isJsonValue(value)) return;
  const at = exceedsDepth(value) ? null : pathOfNoJson(value);
  const [path, what] = at ?? [[], 'nested less deep'];
  context.addIssue({ code: 'custom', path: [...path], message: `must be ${what}` });
}

/** The value is not nested too deep. Its members are visited in their order. */
function pathOfNoJson(value: unknown): readonly [path: readonly (string | number)[], what: string] | null {
  if (isJsonValue(value)) return null;
  if (typeof value === 'number') return [[], 'a finite number'];
  const members: readonly (readonly [string | number, unknown])[] = Array.isArray(value)
    ? [...value.entries()]
    : isPlainObject(value)
      ? Object.entries(value)
      : [];
  const bad = members.find(([, member]) => !isJsonValue(member));
  if (bad === undefined) return [[], 'a JSON value'];
  const [path, what] = pathOfNoJson(bad[1]) ?? [[], 'a JSON value'];
  return [[bad[0], ...path], what];
}

export const count = (max: number): z.ZodInt =>
  z.int('must be a whole number').min(0, 'must not be negative').max(max, `must be at most ${max}`);

/** An amount in US dollars. Infinite numbers and texts are none. */
export const usdAmount = z
  .number('must be a number of US dollars')
  .min(0, 'must not be negative')
  .max(1_000_000_000, 'must be at most 1000000000');

export const pageSize = z
  .int('must be a whole number')
  .min(1, 'must be 1 to 100')
  .max(100, 'must be 1 to 100')
  .default(50)
  .meta({ description: 'Entries per page, 1 to 100' });

export const pageToken = optional(
  z.string().max(2048, 'must be a next_page_token of an earlier answer').meta({ description: 'next_page_token of the page before' }),
);

/** On every list; empty on the last page. */
export const nextPageToken = z.string();
