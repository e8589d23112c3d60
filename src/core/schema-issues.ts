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
  return error.issues.flatMap((issue): FieldIssue[] => {
    const path = joinPath(root, issue.path);
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => ({ field: path === '' ? key : `${path}.${key}`, message: `unknown field '${key}'` }));
    }
    return [{ field: path, message: issue.message }];
  });
}

function joinPath(root: string, path: readonly PropertyKey[]): string {
  return [root, ...path.map(String)].filter((part) => part !== '').join('.');
}
