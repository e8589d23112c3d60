import type * as z from 'zod';
import type { FieldIssue, Refusal } from './refusal.ts';

/** Turns a failed parse into an `invalid` refusal. Every issue names its field by a dotted path; every unknown member is named by itself. */
export function invalidDocument(what: string, error: z.ZodError, root = ''): Refusal {
  return invalidWith(what, issuesOf(error, root));
}

/** An `invalid` refusal with one or more issues; its message repeats all of them, so that a client that shows only the text loses nothing. */
export function invalidWith(what: string, issues: readonly FieldIssue[]): Refusal {
  const list = issues.map((issue) => (issue.field === '' ? issue.message : `${issue.field}: ${issue.message}`)).join('; ');
  return { kind: 'invalid', message: `Invalid ${what}: ${list}`, issues };
}

/** The issues of a failed parse as fields and messages, with `root` before every path. */
export function issuesOf(error: z.ZodError, root = ''): readonly FieldIssue[] {
  return firstPerField(
    error.issues.flatMap((issue): FieldIssue[] => {
      const path = joinPath(root, issue.path);
      if (issue.code === 'unrecognized_keys') {
        return issue.keys.map((key) => ({ field: path === '' ? key : `${path}.${key}`, message: `unknown field '${key}'` }));
      }
      return [{ field: path, message: sentenceOf(issue) }];
    }),
  );
}

/** What is wrong with a field first is what to correct first; the rest would only say it again in other words. */
export function firstPerField(issues: readonly FieldIssue[]): readonly FieldIssue[] {
  const seen = new Set<string>();
  return issues.filter(({ field }) => !seen.has(field) && seen.add(field));
}

/** What is wrong with one value, for people. The schema's own words where it has some; in the place of the library's general ones, ours. */
export function sentenceOf(issue: z.core.$ZodIssue): string {
  const { message } = issue;
  switch (issue.code) {
    case 'invalid_type': {
      if (message.endsWith('received undefined')) return 'is required';
      const found = /expected (\w+), received (\w+)/.exec(message);
      return found === null ? message : `must be ${withArticle(found[1] ?? '')}, not ${withArticle(found[2] ?? '')}`;
    }
    case 'too_big':
      return message.startsWith('Too big')
        ? `must ${bound(issue.origin, issue.inclusive ? 'at most' : 'less than', issue.maximum)}`
        : message;
    case 'too_small':
      return message.startsWith('Too small')
        ? `must ${bound(issue.origin, issue.inclusive ? 'at least' : 'more than', issue.minimum)}`
        : message;
    case 'invalid_value':
      return message.startsWith('Invalid') ? `must be ${issue.values.map(String).join(' or ')}` : message;
    default:
      return message;
  }
}

function bound(origin: string, how: string, limit: number | bigint): string {
  if (origin === 'string') return `have ${how} ${limit} characters`;
  if (origin === 'array' || origin === 'set') return `have ${how} ${limit} entries`;
  return `be ${how} ${limit}`;
}

/** A type with its article, for people; null and NaN are names. */
export function withArticle(type: string): string {
  if (type === 'null' || type === 'NaN') return type;
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`;
}

function joinPath(root: string, path: readonly PropertyKey[]): string {
  return [root, ...path.map(String)].filter((part) => part !== '').join('.');
}
