import type { ConfirmedExtensions } from './call-headers.ts';
import type { Failure } from './failure.ts';

/** Headers that answers of both bindings have. */

/**
 * Of an answer: it may hold secrets (a new key) and is about this moment, so nobody stores it. `confirmed`: the extensions that are in
 * force for the call.
 */
export function answerHeaders(confirmed: readonly ConfirmedExtensions[]): Headers {
  const headers = new Headers({ 'cache-control': 'no-store' });
  for (const { header, value } of confirmed) headers.set(header, value);
  return headers;
}

/** Of a failure: what HTTP clients do next stands in headers. */
export function failureHeaders(failure: Failure, confirmed: readonly ConfirmedExtensions[]): Headers {
  const headers = answerHeaders(confirmed);
  if (failure.kind === 'unauthenticated') headers.set('www-authenticate', 'Bearer realm="CleverAgents"');
  if (failure.kind === 'unavailable') headers.set('retry-after', String(failure.retryAfterSeconds));
  return headers;
}

export function streamResponse(body: ReadableStream<Uint8Array>, confirmed: readonly ConfirmedExtensions[]): Response {
  const headers = answerHeaders(confirmed);
  headers.set('content-type', 'text/event-stream');
  // Proxies that collect answers would hold events back.
  headers.set('x-accel-buffering', 'no');
  return new Response(body, { headers });
}
