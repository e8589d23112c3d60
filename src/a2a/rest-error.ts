import type { JsonObject } from '../core/json.ts';
import type { Refusal } from '../core/refusal.ts';
import { type A2aReason, type ErrorContext, internalError, type ProtocolError, standardError, standardReason } from './errors.ts';

/** A failure over HTTP+JSON: its status says what JSON-RPC says with a code. */
export interface RestError {
  readonly httpStatus: number;
  readonly body: JsonObject;
}

/**
 * HTTP status and gRPC status of each reason (1.0 specification section 5.4, as of 1.0.1; contract section 14, choice 5). Those of size,
 * access and availability come with the refusal.
 */
const STATUSES: { readonly [R in A2aReason]: readonly [http: number, grpc: string] } = {
  TASK_NOT_FOUND: [404, 'NOT_FOUND'],
  TASK_NOT_CANCELABLE: [400, 'FAILED_PRECONDITION'],
  PUSH_NOTIFICATION_NOT_SUPPORTED: [400, 'FAILED_PRECONDITION'],
  UNSUPPORTED_OPERATION: [400, 'FAILED_PRECONDITION'],
  CONTENT_TYPE_NOT_SUPPORTED: [400, 'INVALID_ARGUMENT'],
  INVALID_AGENT_RESPONSE: [500, 'INTERNAL'],
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: [400, 'FAILED_PRECONDITION'],
  EXTENSION_SUPPORT_REQUIRED: [400, 'FAILED_PRECONDITION'],
  VERSION_NOT_SUPPORTED: [400, 'FAILED_PRECONDITION'],
  PARSE_ERROR: [400, 'INVALID_ARGUMENT'],
  INVALID_REQUEST: [400, 'INVALID_ARGUMENT'],
  METHOD_NOT_FOUND: [404, 'NOT_FOUND'],
  INVALID_PARAMS: [400, 'INVALID_ARGUMENT'],
  INTERNAL_ERROR: [500, 'INTERNAL'],
  UNAUTHENTICATED: [401, 'UNAUTHENTICATED'],
  FORBIDDEN: [403, 'PERMISSION_DENIED'],
  UNAVAILABLE: [503, 'UNAVAILABLE'],
};

/** A refusal in the shape of a version. `status` stands in the place of the error's own. */
export function restError(refusal: Refusal, context: ErrorContext, status?: number): RestError {
  const error = standardError(refusal, context);
  // A tenant is part of the address: one that the caller does not have is an address of nothing.
  const isAddress = refusal.kind === 'not_found' && refusal.entity === 'tenant';
  const [http, grpc] = STATUSES[isAddress ? 'METHOD_NOT_FOUND' : standardReason(refusal)];
  return said(error, status ?? (error.httpStatus === 200 ? http : error.httpStatus), grpc, context);
}

/** The answer to a bug of ours, of which only the id is told. */
export function restIncident(incidentId: string, context: ErrorContext): RestError {
  return said(internalError(incidentId, context), ...STATUSES.INTERNAL_ERROR, context);
}

/** 1.0: google.rpc.Status (specification section 11.6). 0.3 leaves the shape open; its SDKs read the code. */
function said({ code, message, data }: ProtocolError, httpStatus: number, grpc: string, { version }: ErrorContext): RestError {
  if (version === '0.3') return { httpStatus, body: { code, message, data } };
  return { httpStatus, body: { error: { code: httpStatus, status: grpc, message, details: data } } };
}
