import type { Operation, OperationParams, OperationResults } from '../a2a/operations.ts';
import type { ProtocolVersion } from '../a2a/version.ts';
import { cardShape } from '../app/agent-card.ts';
import { authenticate } from '../app/authenticate.ts';
import { authorizeStandard, authorizeTenant } from '../app/authorize.ts';
import { noteRefusal } from '../app/note-refusal.ts';
import { type PushRequest, requirePush, runPush } from '../app/push-configs.ts';
import { requireExtensions } from '../app/required-extensions.ts';
import { runStandard, runStream, type StandardContext, type StandardRequest, type StreamRequest } from '../app/standard.ts';
import type { JsonObject } from '../core/json.ts';
import type { Principal } from '../core/principal.ts';
import { invalidState, type Refusal } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';
import type { Answer, Call } from './call.ts';
import { extendedCardOf } from './card.ts';
import { eventStream } from './event-stream.ts';
import type { Failure } from './failure.ts';

/** A standard operation on its way to the application, by either binding. */
export interface StandardCall extends Call {
  readonly operation: Operation;
  /** What the caller called, for messages and logs: the method, or the route. */
  readonly called: string;
  /** Parameters as they came, an object of any members. */
  readonly params: JsonObject;
  /** How the binding writes the events of a stream. */
  readonly frames: StreamFrames;
}

export interface StreamFrames {
  /** `seq`: the event's place in the log. */
  event(event: JsonObject, seq: number | undefined): string;
  failure(failure: Failure): string;
}

/** A standard operation: the codec of the caller's version in, the neutral operation, the same codec out. */
export async function callStandard(call: StandardCall): Promise<Result<Answer, Refusal>> {
  const { called, headers, edge } = call;
  const principal = await authenticate(headers.presented, edge.services, { cache: edge.principals, fresh: false, called });
  if (!principal.ok) return principal;
  const answer = await answerStandard(call, principal.value);
  if (!answer.ok) noteRefusal(answer.error, called, principal.value, edge.services);
  return answer;
}

async function answerStandard(call: StandardCall, principal: Principal): Promise<Result<Answer, Refusal>> {
  const { operation } = call;
  const allowed = authorizeStandard(operation, call.called, principal);
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

async function answerExtendedCard(call: StandardCall, principal: Principal): Promise<Result<Answer, Refusal>> {
  const { codec, edge, origin } = call;
  if (!edge.services.settings.extendedCard)
    return err(invalidState('There is no extended card', { reason: NO_EXTENDED_CARD[codec.version] }));
  const params = decode(call, 'extendedCard', principal);
  if (!params.ok) return params;
  const card = await extendedCardOf(principal, { origin, shape: cardShape(codec.version, edge.services.settings) }, edge.services);
  return ok({ kind: 'result', result: codec.encodeResult('extendedCard', card) });
}

async function answerPush<O extends PushRequest['op']>(
  call: StandardCall,
  op: O,
  context: StandardContext,
): Promise<Result<Answer, Refusal>> {
  const supported = requirePush(call.edge.services.settings);
  if (!supported.ok) return supported;
  const params = decode(call, op, context.principal);
  if (!params.ok) return params;
  const result = await runPush({ op, params: params.value } as PushRequest, context, call.edge.services);
  return result.ok ? ok({ kind: 'result', result: call.codec.encodeResult(op, result.value as OperationResults[O]) }) : result;
}

async function answerOnce<O extends StandardRequest['op']>(
  call: StandardCall,
  op: O,
  context: StandardContext,
): Promise<Result<Answer, Refusal>> {
  const params = decode(call, op, context.principal);
  if (!params.ok) return params;
  const result = await runStandard({ op, params: params.value } as StandardRequest, context, call.edge.services);
  if (!result.ok) return result;
  const nextPageToken = 'nextPageToken' in result.value ? result.value.nextPageToken : '';
  return ok({
    kind: 'result',
    // Each operation answers with its own result: the table of `OperationResults`.
    result: call.codec.encodeResult(op, result.value as OperationResults[O]),
    ...(nextPageToken === '' ? {} : { nextPageToken }),
  });
}

/** What is refused before the first event is answered as JSON, like any other call; later failures are the stream's last event. */
async function answerStream<O extends StreamRequest['op']>(
  call: StandardCall,
  op: O,
  context: StandardContext,
): Promise<Result<Answer, Refusal>> {
  const { headers, codec, edge, frames, failureOf } = call;
  if (!edge.services.settings.streaming) return err(invalidState('Streaming is not supported', { reason: 'UNSUPPORTED_OPERATION' }));
  const params = decode(call, op, context.principal);
  if (!params.ok) return params;
  const closed = new AbortController();
  const streaming = { ...context, signal: AbortSignal.any([context.signal, closed.signal]) };
  const events = await runStream({ op, params: params.value } as StreamRequest, streaming, edge.services, headers.lastEventId);
  if (!events.ok) return events;
  const body = eventStream(
    {
      events: events.value,
      frameOf: ({ id, event }) => frames.event(codec.encodeEvent(event), id ?? undefined),
      errorFrameOf: (error) => frames.failure(failureOf(error)),
      stop: () => closed.abort(),
    },
    edge.streamTiming,
  );
  return ok({ kind: 'stream', body });
}

/** Parameters of the caller's version. A tenant that they name is the caller's org, whatever else they say. */
function decode<O extends Operation>(call: StandardCall, op: O, principal: Principal): Result<OperationParams[O], Refusal> {
  const { codec, headers, edge } = call;
  const params = codec.decodeParams(op, call.params, headers.activated ? { lenientMessageId: () => edge.services.ids.ulid() } : {});
  if (!params.ok) return params;
  const own = authorizeTenant(params.value.tenant, principal);
  return own.ok ? params : own;
}

function contextOf({ headers, codec, idempotencyKey, signal }: StandardCall, principal: Principal): StandardContext {
  return { principal, idempotencyKey, version: codec.version, extensionActivated: headers.activated, signal };
}
