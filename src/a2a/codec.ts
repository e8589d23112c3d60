import type { JsonObject, JsonValue } from '../core/json.ts';
import { notFound, type Refusal } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';
import type { DecodeOptions, DecoderTable, EncoderTable, EventEncoder } from './decoder.ts';
import { type ProtocolError, standardError } from './errors.ts';
import type { StreamEvent } from './model.ts';
import type { Operation, OperationParams, OperationResults, UnaryOperation } from './operations.ts';
import { DECODERS as DECODERS_03 } from './v0_3/decode.ts';
import * as encode03 from './v0_3/encode.ts';
import { METHODS as METHODS_03 } from './v0_3/names.ts';
import { DECODERS as REST_DECODERS_03 } from './v0_3/rest-decode.ts';
import * as encodeRest03 from './v0_3/rest-encode.ts';
import { DECODERS as DECODERS_10 } from './v1_0/decode.ts';
import * as encode10 from './v1_0/encode.ts';
import { METHODS as METHODS_10 } from './v1_0/names.ts';
import { PROTOCOL_VERSIONS, type ProtocolVersion } from './version.ts';

/**
 * One A2A version as a translation between its wire and the neutral model. Only this file imports the version folders; a method that is
 * absent from a version's table is unknown in that version.
 */
export interface Codec {
  readonly version: ProtocolVersion;
  /** The operation of a method of this version, or null. */
  operationOf(method: string): Operation | null;
  /** Neutral parameters, or an `invalid` refusal that names the fields. Never throws. */
  decodeParams<O extends Operation>(operation: O, params: unknown, options?: DecodeOptions): Result<OperationParams[O], Refusal>;
  /** The `result` member of a JSON-RPC response; over HTTP+JSON the whole body. */
  encodeResult<O extends UnaryOperation>(operation: O, value: OperationResults[O]): JsonValue;
  /** The same for one event of a stream. */
  encodeEvent(event: StreamEvent): JsonObject;
  /** The refusal with the codes and the `data` shape of this version's standard methods. */
  encodeError(refusal: Refusal): ProtocolError;
}

export interface CodecRequest {
  /** The value of the `A2A-Version` header. */
  readonly versionHeader?: string | null | undefined;
  /** The value of the `A2A-Version` query parameter; read when the header is absent or empty. */
  readonly versionQuery?: string | null | undefined;
  /** The versions that the deployment serves. */
  readonly served?: readonly ProtocolVersion[];
}

/**
 * The codec of the version that the request names: absent or empty means 0.3 (1.0 specification section 3.6.2), the patch number takes
 * no part (section 3.6). A version that is not served is refused with the list of those that are served (-32009, or -32007 on our own methods).
 */
export function selectCodec({ versionHeader, versionQuery, served = PROTOCOL_VERSIONS }: CodecRequest): Result<Codec, Refusal> {
  const asked = versionHeader?.trim() || versionQuery?.trim() || '0.3';
  const majorMinor = /^(\d+\.\d+)(?:\.\d+)?$/.exec(asked)?.[1];
  const version = served.find((each) => each === majorMinor);
  if (version !== undefined) return ok(CODECS[version]);
  const message = `A2A version '${asked.slice(0, 32)}' is not supported; supported: ${served.join(', ')}`;
  return err({
    kind: 'invalid',
    message,
    issues: [],
    details: { reason: 'VERSION_NOT_SUPPORTED', supported_versions: [...served] },
  });
}

/**
 * The operation of a standard method in the codec's version. A method that only another version has is refused with a hint which
 * `A2A-Version` to send (contract section 14, choice 25).
 */
export function resolveOperation(
  codec: Codec,
  method: string,
  served: readonly ProtocolVersion[] = PROTOCOL_VERSIONS,
): Result<Operation, Refusal> {
  const operation = codec.operationOf(method);
  if (operation !== null) return ok(operation);
  const other = served.find((version) => CODECS[version].operationOf(method) !== null);
  return err(methodNotFound(method, other && `it is a method of A2A ${other}: send the header A2A-Version: ${other}`));
}

/** The refusal of a method that does not exist (-32601 in both families). */
export function methodNotFound(method: string, hint?: string): Refusal {
  const name = method.length > 128 ? `${method.slice(0, 128)}…` : method;
  const refusal = notFound('method', name);
  return { ...refusal, message: `Method not found: ${name}${hint === undefined ? '' : `; ${hint}`}`, details: { method: name } };
}

/** Whose codes answer a method: A2A's own, or the extension's for `_cleveragents/*`, `session.*` and the dotted legacy names. */
export function methodFamily(method: string): 'standard' | 'extension' {
  return method.startsWith('_cleveragents/') || method.includes('.') ? 'extension' : 'standard';
}

function createCodec(
  version: ProtocolVersion,
  methods: ReadonlyMap<string, Operation>,
  decoders: DecoderTable,
  encoders: EncoderTable,
  encodeEvent: EventEncoder,
): Codec {
  return {
    version,
    operationOf: (method) => methods.get(method) ?? null,
    decodeParams: (operation, params, options = {}) => decoders[operation](params ?? {}, options),
    encodeResult: (operation, value) => encoders[operation](value),
    encodeEvent,
    encodeError: (refusal) => standardError(refusal, { version }),
  };
}

/** Over HTTP+JSON paths say what is called (rest-routes.ts). */
const NO_METHODS: ReadonlyMap<string, Operation> = new Map();

/** Every served version's codec over JSON-RPC. */
export const CODECS: Readonly<Record<ProtocolVersion, Codec>> = {
  '1.0': createCodec('1.0', METHODS_10, DECODERS_10, encode10.ENCODERS, encode10.encodeEvent),
  '0.3': createCodec('0.3', METHODS_03, DECODERS_03, encode03.ENCODERS, encode03.encodeEvent),
};

/** The same over HTTP+JSON. What the two bindings of a version say differently is only here. */
export const REST_CODECS: Readonly<Record<ProtocolVersion, Codec>> = {
  // An empty body is no JSON, and clients parse the answer to a deletion.
  '1.0': createCodec('1.0', NO_METHODS, DECODERS_10, { ...encode10.ENCODERS, pushDelete: () => ({}) }, encode10.encodeEvent),
  '0.3': createCodec('0.3', NO_METHODS, REST_DECODERS_03, encodeRest03.ENCODERS, encodeRest03.encodeEvent),
};
