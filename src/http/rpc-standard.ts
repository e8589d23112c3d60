import { resolveOperation } from '../a2a/codec.ts';
import type { DecodeOptions } from '../a2a/decoder.ts';
import type { Operation, OperationResults } from '../a2a/operations.ts';
import { errorFrame, responseFrame } from '../a2a/sse.ts';
import type { ProtocolVersion } from '../a2a/version.ts';
import { authenticate } from '../app/authenticate.ts';
import { authorizeStandard } from '../app/authorize.ts';
import { noteRefusal } from '../app/note-refusal.ts';
import { type PushRequest, requirePush, runPush } from '../app/push-configs.ts';
import { requireExtensions } from '../app/required-extensions.ts';
import { runStandard, runStream, type StandardContext, type StandardRequest, type StreamRequest } from '../app/standard.ts';
import type { Principal } from '../core/principal.ts';
import { invalidState, type Refusal } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';
import { extendedCardOf } from './card.ts';
import { eventStream } from './event-stream.ts';
import type { RpcAnswer, RpcCall } from './rpc-call.ts';

/** A standard A2A method: the codec of the caller's version in, the neutral operation, the same codec out. */
export async function callStandard(call: RpcCall): Promise<Result<RpcAnswer, Refusal>> {
  const { request, headers, codec, edge } = call;
  const operation = resolveOperation(codec, request.method);
  if (!operation.ok) return operation;
  const principal = await authenticate(headers.presented, edge.services, { cache: edge.principals, fresh: false, called: request.method });
  if (!principal.ok) return principal;
  const answer = await answerStandard(call, operation.value, principal.value);
  if (!answer.ok) noteRefusal(answer.error, request.method, principal.value, edge.services);
  return answer;
}

async function answerStandard(call: RpcCall, operation: Operation, principal: Principal): Promise<Result<RpcAnswer, Refusal>> {
  const { request } = call;
  const allowed = authorizeStandard(operation, request.method, principal);
  if (!allowed.ok) return allowed;
  const declared = requireExtensions(operation, call.headers.declared, call.edge.services.settings);
  if (!declared.ok) return declared;

  const context = contextOf(call, principal);
  switch (operation) {
    case 'send':
    case 'get':
    case 'list':
    case 'cancel':
      return answerOnce(call, operation, context);
    case 'stream':
    case 'subscribe':
      return answerStream(call, operation, context);
    case 'pushCreate':
    case 'pushGet':
    case 'pushList':
    case 'pushDelete':
      return answerPush(call, operation, context);
    case 'extendedCard':
      return answerExtendedCard(call, principal);
  }
}

/** What a server says whose card declares no extended one (contract section 11). */
const NO_EXTENDED_CARD: Readonly<Record<ProtocolVersion, string>> = {
  '1.0': 'UNSUPPORTED_OPERATION',
  '0.3': 'EXTENDED_AGENT_CARD_NOT_CONFIGURED',
};

async function answerExtendedCard({ codec, edge, origin, request }: RpcCall, principal: Principal): Promise<Result<RpcAnswer, Refusal>> {
  if (!edge.services.settings.extendedCard)
    return err(invalidState('There is no extended card', { reason: NO_EXTENDED_CARD[codec.version] }));
  const params = codec.decodeParams('extendedCard', request.params);
  if (!params.ok) return params;
  const card = await extendedCardOf(principal, { origin, shape: codec.version === '1.0' ? '1.0' : 'hybrid' }, edge.services);
  return ok({ kind: 'result', result: codec.encodeResult('extendedCard', card) });
}

async function answerPush<O extends PushRequest['op']>(
  call: RpcCall,
  op: O,
  context: StandardContext,
): Promise<Result<RpcAnswer, Refusal>> {
  const supported = requirePush(call.edge.services.settings);
  if (!supported.ok) return supported;
  const params = call.codec.decodeParams(op, call.request.params);
  if (!params.ok) return params;
  const result = await runPush({ op, params: params.value } as PushRequest, context, call.edge.services);
  return result.ok ? ok({ kind: 'result', result: call.codec.encodeResult(op, result.value as OperationResults[O]) }) : result;
}

async function answerOnce<O extends StandardRequest['op']>(
  call: RpcCall,
  op: O,
  context: StandardContext,
): Promise<Result<RpcAnswer, Refusal>> {
  const params = call.codec.decodeParams(op, call.request.params, decodeOptions(call));
  if (!params.ok) return params;
  const result = await runStandard({ op, params: params.value } as StandardRequest, context, call.edge.services);
  // Each operation answers with its own result: the table of `OperationResults`.
  return result.ok ? ok({ kind: 'result', result: call.codec.encodeResult(op, result.value as OperationResults[O]) }) : result;
}

/** What is refused before the first event is answered as JSON, like any other call; later failures are the stream's last event. */
async function answerStream<O extends StreamRequest['op']>(
  call: RpcCall,
  op: O,
  context: StandardContext,
): Promise<Result<RpcAnswer, Refusal>> {
  const { request, headers, codec, edge, family, failureOf } = call;
  const params = codec.decodeParams(op, request.params, decodeOptions(call));
  if (!params.ok) return params;
  const closed = new AbortController();
  const streaming = { ...context, signal: AbortSignal.any([context.signal, closed.signal]) };
  const events = await runStream({ op, params: params.value } as StreamRequest, streaming, edge.services, headers.lastEventId);
  if (!events.ok) return events;
  const body = eventStream(
    {
      events: events.value,
      frameOf: ({ id, event }) => responseFrame(request.id, codec.encodeEvent(event), id ?? undefined),
      errorFrameOf: (error) => errorFrame(request.id, family(failureOf(error))),
      stop: () => closed.abort(),
    },
    edge.streamTiming,
  );
  return ok({ kind: 'stream', body });
}

function contextOf({ headers, codec, idempotencyKey, signal }: RpcCall, principal: Principal): StandardContext {
  return { principal, idempotencyKey, version: codec.version, extensionActivated: headers.activated, signal };
}

function decodeOptions({ headers, edge }: RpcCall): DecodeOptions {
  return headers.activated ? { lenientMessageId: () => edge.services.ids.ulid() } : {};
}
