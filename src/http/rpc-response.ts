import { errorResponse, type RpcId, successResponse } from '../a2a/envelope.ts';
import { EXTENSION_URI } from '../a2a/extension.ts';
import type { JsonValue } from '../core/json.ts';
import type { ErrorFamily } from './error-family.ts';
import type { Failure } from './failure.ts';

/** Answers as HTTP responses. They may hold secrets (a new key) and are about this moment: nobody stores them. */

/** `activatedBy`: the request headers that activated our extension; it is confirmed in the same ones. */
export function rpcResult(id: RpcId, result: JsonValue, activatedBy: readonly string[]): Response {
  return Response.json(successResponse(id, result), { headers: baseHeaders(activatedBy) });
}

export interface RpcFailureOptions {
  readonly family: ErrorFamily;
  readonly activatedBy: readonly string[];
  /** In the place of the error's own HTTP status. */
  readonly status?: number;
}

/** HTTP 200 but where clients and proxies must see more (contract section 2). */
export function rpcFailure(id: RpcId, failure: Failure, { family, activatedBy, status }: RpcFailureOptions): Response {
  const error = family(failure);
  const headers = baseHeaders(activatedBy);
  if (failure.kind === 'unauthenticated') headers.set('www-authenticate', 'Bearer realm="CleverAgents"');
  if (failure.kind === 'unavailable') headers.set('retry-after', String(failure.retryAfterSeconds));
  return Response.json(errorResponse(id, error), { status: status ?? error.httpStatus, headers });
}

export function rpcStream(body: ReadableStream<Uint8Array>, activatedBy: readonly string[]): Response {
  const headers = baseHeaders(activatedBy);
  headers.set('content-type', 'text/event-stream');
  // Proxies that collect answers would hold events back.
  headers.set('x-accel-buffering', 'no');
  return new Response(body, { headers });
}

function baseHeaders(activatedBy: readonly string[]): Headers {
  const headers = new Headers({ 'cache-control': 'no-store' });
  for (const name of activatedBy) headers.set(name, EXTENSION_URI);
  return headers;
}
