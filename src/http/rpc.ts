import { CODECS } from '../a2a/codec.ts';
import { parseEnvelope, type RpcId, type RpcRequest } from '../a2a/envelope.ts';
import { findOperation } from '../api/operations.ts';
import { err, ok, type Result } from '../core/result.ts';
import { type Answer, type CallTools, callTools, openCall } from './call.ts';
import { type CallHeaders, readCallHeaders } from './call-headers.ts';
import type { Edge } from './edge.ts';
import { type ErrorFamily, errorFamilyOf } from './error-family.ts';
import type { Failure } from './failure.ts';
import { readJsonText, type UnreadBody } from './request-body.ts';
import { streamResponse } from './response.ts';
import { callOperation } from './rpc-operation.ts';
import { rpcFailure, rpcResult } from './rpc-response.ts';
import { callMethod } from './rpc-standard.ts';

/** Answers one JSON-RPC request over HTTP. Never throws: whatever a body or a header holds has an answer with the request's id. */
export async function answerRpc(request: Request, edge: Edge): Promise<Response> {
  const headers = readCallHeaders(request, edge.services.settings);
  const { confirmed, codec } = headers;
  const received = await receive(request, () => edge.services.ids.ulid());
  if (!received.ok) {
    const { id, refusal, ...status } = received.error;
    return rpcFailure(id, refusal, { family: errorFamilyOf(null, codec), confirmed, ...status });
  }
  const { id, method } = received.value;
  const family = errorFamilyOf(method, codec);
  const answer = await route(received.value, headers, callTools(request, edge, method), family);
  if (!answer.ok) return rpcFailure(id, answer.error, { family, confirmed });
  return answer.value.kind === 'stream' ? streamResponse(answer.value.body, confirmed) : rpcResult(id, answer.value.result, confirmed);
}

/** Our own operations go by their names in every version; anything else is a standard method of the version that was named. */
async function route(request: RpcRequest, headers: CallHeaders, tools: CallTools, family: ErrorFamily): Promise<Result<Answer, Failure>> {
  const found = findOperation(request.method);
  // They are the same in every version, so a caller who names none means none that is not served.
  const [preferred = '1.0'] = tools.edge.services.settings.protocolVersions;
  const codec = found === null || headers.isVersionNamed || headers.codec.ok ? headers.codec : ok(CODECS[preferred]);
  if (!codec.ok) return codec;
  const call = openCall(tools, headers, codec.value);
  if (!call.ok) return call;
  try {
    return found === null ? await callMethod(call.value, request, family) : await callOperation(call.value, found, request.params);
  } catch (error) {
    return err(tools.failureOf(error));
  }
}

interface NotReceived extends UnreadBody {
  readonly id: RpcId;
}

async function receive(request: Request, newId: () => string): Promise<Result<RpcRequest, NotReceived>> {
  const text = await readJsonText(request);
  if (!text.ok) return err({ id: null, ...text.error });
  const envelope = parseEnvelope(text.value, newId);
  return envelope.ok ? ok(envelope.value) : err({ id: envelope.error.id, refusal: envelope.error.error });
}
