import { CODECS, type Codec, methodFamily } from '../a2a/codec.ts';
import { extensionError, internalError, type ProtocolError } from '../a2a/errors.ts';
import type { Refusal } from '../core/refusal.ts';
import type { Result } from '../core/result.ts';
import type { Failure } from './failure.ts';

/** Says a failure with the codes, and in the shape, that the caller of a method reads. */
export type ErrorFamily = (failure: Failure) => ProtocolError;

const extensionFamily: ErrorFamily = (failure) =>
  failure.kind === 'incident' ? internalError(failure.incidentId, 'extension') : extensionError(failure);

/** The family of a method. `method` is null while it is not known: then the caller's version decides, as for a standard method. */
export function errorFamilyOf(method: string | null, codec: Result<Codec, Refusal>): ErrorFamily {
  if (method !== null && methodFamily(method) === 'extension') return extensionFamily;
  // Who names a version that is not served reads errors as every version since the header exists has them.
  const { version, encodeError } = codec.ok ? codec.value : CODECS['1.0'];
  return (failure) => (failure.kind === 'incident' ? internalError(failure.incidentId, { version }) : encodeError(failure));
}
