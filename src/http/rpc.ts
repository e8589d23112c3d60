import { parseEnvelope, type RpcId, type RpcRequest } from '../a2a/envelope.ts';
import { findOperation } from '../api/operations.ts';
import { tracedOrgLog } from '../app/traced-org-log.ts';
import { tracedPlans } from '../app/traced-plans.ts';
import type { Refusal } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';
import { type CallHeaders, readCallHeaders } from './call-headers.ts';
import type { Edge } from './edge.ts';
import { errorFamilyOf } from './error-family.ts';
import { type Failure, failureOf } from './failure.ts';
import { originOf } from './origin.ts';
import { describesJson, readBody, UNSUPPORTED_MEDIA_TYPE } from './request-body.ts';
import type { RpcAnswer, RpcCall } from './rpc-call.ts';
import { callOperation } from './rpc-operation.ts';
import { rpcFailure, rpcResult, rpcStream } from './rpc-response.ts';
import { callStandard } from './rpc-standard.ts';

/** Answers one JSON-RPC request over HTTP. Never throws: whatever a body or a header holds has an answer with the request's id. */
export async function answerRpc(request: Request, edge: Edge): Promise<Response> {
  const headers = readCallHeaders(request, edge.services.settings.requiredExtensions);
  const { confirmed, codec } = headers;
  const received = await receive(request, () => edge.services.ids.ulid());
  if (!received.ok) {
    const { id, refusal, ...status } = received.error;
    return rpcFailure(id, refusal, { family: errorFamilyOf(null, codec), confirmed, ...status });
  }
  const { id, method } = received.value;
  const family = errorFamilyOf(method, codec);
  const failure = (error: unknown): Failure =>
    failureOf(error, { report: edge.report, newId: () => edge.services.ids.ulid(), called: method });
  const { origin } = originOf(request, edge.services.settings);
  const answer = await route(received.value, headers, { edge, family, failureOf: failure, signal: request.signal, origin });
  if (!answer.ok) return rpcFailure(id, answer.error, { family, confirmed });
  return answer.value.kind === 'stream' ? rpcStream(answer.value.body, confirmed) : rpcResult(id, answer.value.result, confirmed);
}

type CallTools = Pick<RpcCall, 'edge' | 'family' | 'failureOf' | 'signal' | 'origin'>;

/** Our own operations go by their names in every version; anything else is a standard method of the version that was named. */
async function route(request: RpcRequest, headers: CallHeaders, tools: CallTools): Promise<Result<RpcAnswer, Failure>> {
  const { codec, idempotencyKey } = headers;
  if (!codec.ok) return codec;
  if (!idempotencyKey.ok) return idempotencyKey;
  const { plans, orgLog } = tools.edge.services;
  const services = {
    ...tools.edge.services,
    plans: tracedPlans(plans, headers.traceId),
    orgLog: tracedOrgLog(orgLog, headers.traceId),
  };
  const call: RpcCall = {
    ...tools,
    edge: { ...tools.edge, services },
    request,
    headers,
    codec: codec.value,
    idempotencyKey: idempotencyKey.value,
  };
  try {
    const found = findOperation(request.method);
    return found === null ? await callStandard(call) : await callOperation(call, found);
  } catch (error) {
    return err(tools.failureOf(error));
  }
}

interface NotReceived {
  readonly id: RpcId;
  readonly refusal: Refusal;
  readonly status?: number;
}

async function receive(request: Request, newId: () => string): Promise<Result<RpcRequest, NotReceived>> {
  if (!describesJson(request.headers)) return err({ id: null, refusal: UNSUPPORTED_MEDIA_TYPE, status: 415 });
  const text = await readBody(request);
  if (!text.ok) return err({ id: null, refusal: text.error });
  const envelope = parseEnvelope(text.value, newId);
  return envelope.ok ? ok(envelope.value) : err({ id: envelope.error.id, refusal: envelope.error.error });
}
