import * as z from 'zod';
import { Grant } from '../core/grant.ts';
import type { JsonObject, JsonValue } from '../core/json.ts';
import type { Refusal } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';
import { invalidDocument } from '../core/schema-issues.ts';
import type { DataPart, Message } from './model.ts';

/**
 * Our extension on the A2A wire (design section 11): what a message may carry to start a plan or to answer an approval, and what a
 * waiting task shows. Its own objects are read strictly: unknown members are refused by name, since a misspelled limit must not be lost.
 */
export const EXTENSION_URI = 'urn:cleveragents:extensions:v1';

/** Request and response headers that name extensions: 1.0's, and 0.3's older one. */
export const EXTENSION_HEADERS = ['A2A-Extensions', 'X-A2A-Extensions'] as const;

/** The URIs of any number of extension header values, each a comma list; every URI once, in order. */
export function parseExtensionsHeader(...values: readonly (string | null | undefined)[]): readonly string[] {
  const uris = values.flatMap((value) => (value ?? '').split(',')).map((uri) => uri.trim());
  return [...new Set(uris.filter((uri) => uri !== ''))];
}

const required = (what: string) => ({
  error: (issue: { readonly input?: unknown }) => (issue.input === undefined ? 'is required' : `must be ${what}`),
});
const text = z.string(required('a text')).min(1, 'must not be empty');
const object = z.custom<JsonObject>((value) => typeof value === 'object' && value !== null && !Array.isArray(value), 'must be an object');

/** `message.metadata[URI]`: starts a plan of this action. Values are checked further by the action's schema and the guards' own. */
export const StartPlan = z.strictObject({
  action: text,
  arguments: object.optional(),
  project: text.optional(),
  automation_profile: text.optional(),
  guardrails: object.optional(),
  idempotency_key: text.max(255, 'must be at most 255 characters').optional(),
});
export type StartPlan = z.infer<typeof StartPlan>;

/** A data part that answers one approval; `digest` repeats what the waiting task showed, so that nothing else is approved. */
export const ApprovalAnswer = z
  .strictObject({
    approval_id: text,
    decision: z.enum(['approve', 'deny', 'answer'], required('approve, deny or answer')),
    digest: text,
    reason: z.string('must be a text').optional(),
    text: z.string('must be a text').optional(),
    grant: Grant.optional(),
  })
  .superRefine((answer, context) => {
    if (answer.decision === 'answer' && (answer.text ?? '').trim() === '') {
      context.addIssue({ code: 'custom', path: ['text'], message: 'is required when the decision is answer' });
    }
    if (answer.decision !== 'approve' && answer.grant !== undefined) {
      context.addIssue({ code: 'custom', path: ['grant'], message: 'is allowed only when the decision is approve' });
    }
  });
export type ApprovalAnswer = z.infer<typeof ApprovalAnswer>;

export const APPROVAL_KINDS = ['gate', 'call', 'limit', 'question', 'next_step', 'unknown_outcome'] as const;
export type ApprovalKind = (typeof APPROVAL_KINDS)[number];

/** One pending approval as a waiting task shows it, in a data part of its status message. */
export interface ApprovalRequest {
  readonly approval_id: string;
  readonly kind: ApprovalKind;
  readonly digest: string;
  /** The tool call that waits: tool and arguments. */
  readonly call?: JsonObject | undefined;
  /** The unified diff that waits, or where it is when it is too long to be shown here. */
  readonly diff?: JsonValue | undefined;
  readonly question?: string | undefined;
  /** What it would cost. */
  readonly estimate?: JsonObject | undefined;
  /** The guard that asked. */
  readonly guard?: string | undefined;
  /** The gate's threshold and the confidence that missed it, each 0 to 1. */
  readonly threshold?: number | undefined;
  readonly confidence?: number | undefined;
  /** ISO 8601. */
  readonly expires_at?: string | undefined;
}

/** The data part of a pending approval. */
export function approvalPart(request: ApprovalRequest): DataPart {
  const data: Record<string, JsonValue> = {};
  for (const [name, value] of Object.entries(request) as [string, JsonValue | undefined][]) if (value !== undefined) data[name] = value;
  return { kind: 'data', data, mediaType: 'application/json' };
}

/** What a message asks to start: null when its metadata does not hold our extension. */
export function readStartPlan(message: Message): Result<StartPlan | null, Refusal> {
  const metadata = message.metadata;
  if (metadata === undefined || !Object.hasOwn(metadata, EXTENSION_URI)) return ok(null);
  const value = metadata[EXTENSION_URI];
  if (value === null || value === undefined) return ok(null);
  const parsed = StartPlan.safeParse(value);
  return parsed.success ? ok(parsed.data) : err(invalidDocument('extension metadata', parsed.error, `message.metadata.${EXTENSION_URI}`));
}

/**
 * The structured answers in a message: every data part that names an `approval_id`. One that is malformed refuses the whole message;
 * other data parts are not answers.
 */
export function readApprovalAnswers(message: Message): Result<readonly ApprovalAnswer[], Refusal> {
  const answers: ApprovalAnswer[] = [];
  for (const [index, part] of message.parts.entries()) {
    if (part.kind !== 'data' || !namesApproval(part.data)) continue;
    const parsed = ApprovalAnswer.safeParse(part.data);
    if (!parsed.success) return err(invalidDocument('approval answer', parsed.error, `message.parts.${index}.data`));
    answers.push(parsed.data);
  }
  return ok(answers);
}

/** Whether a data part means to be an answer. One that is misspelled is refused by name and never passed over. */
const namesApproval = (data: JsonValue): boolean =>
  typeof data === 'object' &&
  data !== null &&
  !Array.isArray(data) &&
  (Object.hasOwn(data, 'approval_id') ||
    Object.hasOwn(data, 'approvalId') ||
    (Object.hasOwn(data, 'decision') && Object.hasOwn(data, 'digest')));
