import { errorResponse, type RpcId, successResponse } from '../a2a/envelope.ts';
import type { JsonValue } from '../core/json.ts';
import type { ConfirmedExtensions } from './call-headers.ts';
import type { ErrorFamily } from './error-family.ts';
import type { Failure } from './failure.ts';
import { answerHeaders, failureHeaders } from './response.ts';

/** `confirmed`: the extensions that are in force for the call. */
export function rpcResult(id: RpcId, result: JsonValue, confirmed: readonly ConfirmedExtensions[]): Response {
  return Response.json(successResponse(id, result), { headers: answerHeaders(confirmed) });
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
  return Response.json(errorResponse(id, error), { status: status ?? error.httpStatus, headers: failureHeaders(failure, confirmed) });
}
