import type { JsonObject, JsonValue } from '../core/json.ts';
import type { Refusal } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';
import type { ProtocolError } from './errors.ts';
import { paramsObject, parseJson } from './params-object.ts';

/**
 * The JSON-RPC 2.0 envelope, strictly, with the decisions of the contract (sections 2 and 13) and of design section 9.
 *
 * Promise: no body makes `parseEnvelope` throw; a refusal carries the id to answer with; what it lets through has a method that says
 * something and parameters that are an object nested at most 64 deep.
 */
export type RpcId = string | number | null;

export interface RpcRequest {
  /** The id to answer with: the request's own with its type, or a generated one when the request had none. */
  readonly id: RpcId;
  readonly method: string;
  /** As parsed: names such as `__proto__` are members like any other, so never merge it by assignment. */
  readonly params: JsonObject;
}

export interface EnvelopeFailure {
  readonly id: RpcId;
  /** Its `details.reason` is PARSE_ERROR, INVALID_REQUEST or INVALID_PARAMS: `standardError` and `extensionError` give the codes. */
  readonly error: Refusal;
}

/**
 * Reads one request. `newId` makes the id of a request that has none or `''`: A2A has no notifications, so every request is answered
 * (source: "auto-generated if omitted"). A `null` id is echoed. With a repeated member the last one counts, as in JSON.parse.
 */
export function parseEnvelope(bodyText: string, newId: () => string): Result<RpcRequest, EnvelopeFailure> {
  const body = parseJson(bodyText);
  if (!body.ok) return err({ id: null, error: body.error });
  if (Array.isArray(body.value)) return invalidRequest(null, 'Batch requests are not supported: send one request object');
  if (typeof body.value !== 'object' || body.value === null) return invalidRequest(null, 'The body must be one JSON-RPC request object');
  const request = body.value as Readonly<Record<string, unknown>>;

  const id = idOf(request['id'], newId);
  if (id === undefined) return invalidRequest(null, 'id must be a string or an integer', 'id');
  if (request['jsonrpc'] !== '2.0') return invalidRequest(id, `jsonrpc must be '2.0'`, 'jsonrpc');
  const method = request['method'];
  if (typeof method !== 'string' || method.trim() === '') return invalidRequest(id, 'method must be a text that is not blank', 'method');
  const params = paramsObject(request['params'] ?? {}, 'params');
  return params.ok ? ok({ id, method, params: params.value }) : err({ id, error: params.error });
}

export interface RpcSuccess {
  readonly jsonrpc: '2.0';
  readonly id: RpcId;
  readonly result: JsonValue;
}

export interface RpcFailure {
  readonly jsonrpc: '2.0';
  readonly id: RpcId;
  readonly error: { readonly code: number; readonly message: string; readonly data: JsonValue };
}

/** The answer to a request that was carried out. `result` is present even when it is null. */
export function successResponse(id: RpcId, result: JsonValue): RpcSuccess {
  return { jsonrpc: '2.0', id, result };
}

/** The answer to a request that was refused. The error holds code, message and data only; strict clients refuse more. */
export function errorResponse(id: RpcId, { code, message, data }: ProtocolError): RpcFailure {
  return { jsonrpc: '2.0', id, error: { code, message, data } };
}

/** The id to answer with; undefined for what is no id: objects, lists, booleans, fractions, and integers that a double cannot hold. */
function idOf(id: unknown, newId: () => string): RpcId | undefined {
  if (id === undefined || id === '') return newId();
  if (id === null || typeof id === 'string' || Number.isSafeInteger(id)) return id as RpcId;
  return undefined;
}

function invalidRequest(id: RpcId, message: string, field?: string) {
  const issues = field === undefined ? [] : [{ field, message }];
  return err({ id, error: { kind: 'invalid' as const, message, issues, details: { reason: 'INVALID_REQUEST' } } });
}
