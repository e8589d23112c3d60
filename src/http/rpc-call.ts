import type { Codec } from '../a2a/codec.ts';
import type { RpcRequest } from '../a2a/envelope.ts';
import type { JsonValue } from '../core/json.ts';
import type { CallHeaders } from './call-headers.ts';
import type { Edge } from './edge.ts';
import type { ErrorFamily } from './error-family.ts';
import type { Failure } from './failure.ts';

/** One JSON-RPC call on its way to the application: read, in a version that is served, its caller not yet known. */
export interface RpcCall {
  readonly request: RpcRequest;
  readonly headers: CallHeaders;
  readonly codec: Codec;
  readonly idempotencyKey: string | null;
  readonly edge: Edge;
  /** Public origin of the service, without a trailing slash. */
  readonly origin: string;
  /** How failures of this method are said. */
  readonly family: ErrorFamily;
  /** What to tell of something that was thrown; writes the log. */
  readonly failureOf: (error: unknown) => Failure;
  /** Aborts when the caller has gone, as far as the platform tells. */
  readonly signal: AbortSignal;
}

export type RpcAnswer =
  | { readonly kind: 'result'; readonly result: JsonValue }
  /** SSE whose data are JSON-RPC responses. */
  | { readonly kind: 'stream'; readonly body: ReadableStream<Uint8Array> };
