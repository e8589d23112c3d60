import type { JsonObject } from './json.ts';

/** One thing that is wrong with an input. `field` is a dotted path from the root of the parameters (`arguments.target`). */
export interface FieldIssue {
  readonly field: string;
  readonly message: string;
}

/**
 * Why a request was not carried out. Transport-neutral: each edge maps `kind` to its own codes with one exhaustive switch
 * (source: a2a-protocol.md "Error Codes"). `message` is for people and names what to do; `details` is safe to show.
 */
export type Refusal =
  | { readonly kind: 'invalid'; readonly message: string; readonly issues: readonly FieldIssue[]; readonly details?: JsonObject }
  | { readonly kind: 'not_found'; readonly message: string; readonly entity: string; readonly id: string; readonly details?: JsonObject }
  | { readonly kind: 'unauthenticated'; readonly message: string; readonly details?: JsonObject }
  | { readonly kind: 'forbidden'; readonly message: string; readonly details?: JsonObject }
  | { readonly kind: 'invalid_state'; readonly message: string; readonly details?: JsonObject }
  | {
      readonly kind: 'already_exists';
      readonly message: string;
      readonly entity: string;
      readonly id: string;
      readonly details?: JsonObject;
    }
  | { readonly kind: 'budget_exceeded'; readonly message: string; readonly details?: JsonObject }
  | { readonly kind: 'plan_error'; readonly message: string; readonly details?: JsonObject }
  | { readonly kind: 'too_large'; readonly message: string; readonly limitBytes: number; readonly details?: JsonObject }
  | { readonly kind: 'unavailable'; readonly message: string; readonly retryAfterSeconds: number; readonly details?: JsonObject };

/** Shorthand for the most frequent refusal: one field is wrong. */
export function invalidField(field: string, message: string, details?: JsonObject): Refusal {
  return { kind: 'invalid', message: `${field}: ${message}`, issues: [{ field, message }], ...(details ? { details } : {}) };
}

export function notFound(entity: string, id: string, details?: JsonObject): Refusal {
  const label = entity.charAt(0).toUpperCase() + entity.slice(1);
  return { kind: 'not_found', message: `${label} not found`, entity, id, details: { [`${entity}_id`]: id, ...details } };
}

export function invalidState(message: string, details?: JsonObject): Refusal {
  return { kind: 'invalid_state', message, ...(details ? { details } : {}) };
}

/** The same refusal with its fields named from further out: where the value stood in the whole input. */
export function withFieldPrefix(refusal: Refusal, prefix: string): Refusal {
  if (refusal.kind !== 'invalid' || prefix === '') return refusal;
  const issues = refusal.issues.map((issue) => ({ ...issue, field: `${prefix}${issue.field}` }));
  const [first] = issues;
  const message = first === undefined ? refusal.message : issues.map((issue) => `${issue.field}: ${issue.message}`).join('; ');
  return { ...refusal, message, issues };
}
