import { resolveOperation } from '../a2a/codec.ts';
import type { RpcRequest } from '../a2a/envelope.ts';
import { errorFrame, responseFrame } from '../a2a/sse.ts';
import type { Refusal } from '../core/refusal.ts';
import type { Result } from '../core/result.ts';
import type { Answer, Call } from './call.ts';
import type { ErrorFamily } from './error-family.ts';
import { callStandard } from './standard-call.ts';

/** A standard A2A method over JSON-RPC. Its events are full responses with the request's id; `family` says how failures are told. */
export async function callMethod(call: Call, { id, method, params }: RpcRequest, family: ErrorFamily): Promise<Result<Answer, Refusal>> {
  const operation = resolveOperation(call.codec, method, call.edge.services.settings.protocolVersions);
  if (!operation.ok) return operation;
  return callStandard({
    ...call,
    operation: operation.value,
    called: method,
    params,
    frames: {
      event: (event, seq) => responseFrame(id, event, seq),
      failure: (failure) => errorFrame(id, family(failure)),
    },
  });
}
