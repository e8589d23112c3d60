import { errorResponse, type RpcId, successResponse } from '../a2a/envelope.ts';
import type { JsonValue } from '../core/json.ts';
import type { ConfirmedExtensions } from './call-headers.ts';
import type { ErrorFamily } from './error-family.ts';
import type { Failure } from './failure.ts';

/** Answers as HTTP responses. They may hold secrets (a new key) and are about this moment: nobody stores them. */

/** `confirmed`: the extensions that are in force for the call. */
export function rpcResult(id: RpcId, result: JsonValue, confirmed: readonly ConfirmedExtensions[]): Response {
  return Response.json(successResponse(id, result), { headers: baseHeaders(confirmed) });
}

export interface RpcFailureOptions {
  readonly family: ErrorFamily;
  readonly confirmed: readonly ConfirmedExtensions[];
  /** In the place of the error's own HTTP status. */
  readonly status?: number;
}

/** HTTP 200 but where clients and proxies must see more (contract section 2). */
export function rpcFailure(id: RpcId, failure: Failure, { family, confirmed, status }: RpcFailureOptions): Response {
  const error = family(failure);
  const headers = baseHeaders(confirmed);
  if (failure.kind === 'unauthenticated') headers.set('www-authenticate', 'Bearer realm="CleverAgents"');
  if (failure.kind === 'unavailable') headers.set('retry-after', String(failure.retryAfterSeconds));
  return Response.json(errorResponse(id, error), { status: status ?? error.httpStatus, headers });
}

export function rpcStream(body: ReadableStream<Uint8Array>, confirmed: readonly ConfirmedExtensions[]): Response {
  const headers = baseHeaders(confirmed);
  headers.set('content-type', 'text/event-stream');
  // Proxies that collect answers would hold events back.
  headers.set('x-accel-buffering', 'no');
  return new Response(body, { headers });
}

function baseHeaders(confirmed: readonly ConfirmedExtensions[]): Headers {
  const headers = new Headers({ 'cache-control': 'no-store' });
  for (const { header, value } of confirmed) headers.set(header, value);
  return headers;
}
