import type { Codec } from '../a2a/codec.ts';
import { tracedOrgLog } from '../app/traced-org-log.ts';
import { tracedPlans } from '../app/traced-plans.ts';
import type { JsonValue } from '../core/json.ts';
import type { Refusal } from '../core/refusal.ts';
import { ok, type Result } from '../core/result.ts';
import type { CallHeaders } from './call-headers.ts';
import type { Edge } from './edge.ts';
import { type Failure, failureOf } from './failure.ts';
import { originOf } from './origin.ts';

/** One call on its way to the application, by either binding: in a version that is served, its caller not yet known. */
export interface Call extends CallTools {
  readonly headers: CallHeaders;
  readonly codec: Codec;
  readonly idempotencyKey: string | null;
}

/** What a call has from the start, whatever its headers and its body say. */
export interface CallTools {
  readonly edge: Edge;
  /** Public origin of the service, without a trailing slash. */
  readonly origin: string;
  /** What to tell of something that was thrown; writes the log. */
  readonly failureOf: (error: unknown) => Failure;
  /** Aborts when the caller has gone, as far as the platform tells. */
  readonly signal: AbortSignal;
}

export type Answer =
  | {
      readonly kind: 'result';
      readonly result: JsonValue;
      /** Of a page of tasks that is not the last one, for a version whose list has no place for it. */
      readonly nextPageToken?: string;
    }
  /** SSE. */
  | { readonly kind: 'stream'; readonly body: ReadableStream<Uint8Array> };

/** `called`: what was called, for the log. */
export function callTools(request: Request, edge: Edge, called: string): CallTools {
  return {
    edge,
    origin: originOf(request, edge.services.settings).origin,
    failureOf: (error) => failureOf(error, { report: edge.report, newId: () => edge.services.ids.ulid(), called }),
    signal: request.signal,
  };
}

/** The call with services that record it under its trace id; refused when a header that it depends on cannot be read. */
export function openCall(tools: CallTools, headers: CallHeaders, codec: Codec): Result<Call, Refusal> {
  const { idempotencyKey } = headers;
  if (!idempotencyKey.ok) return idempotencyKey;
  const { plans, orgLog } = tools.edge.services;
  const services = {
    ...tools.edge.services,
    plans: tracedPlans(plans, headers.traceId),
    orgLog: tracedOrgLog(orgLog, headers.traceId),
  };
  return ok({ ...tools, edge: { ...tools.edge, services }, headers, codec, idempotencyKey: idempotencyKey.value });
}
