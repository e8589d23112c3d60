import type { JsonValue } from '../core/json.ts';
import { wire } from './emit.ts';
import { errorResponse, type RpcId, successResponse } from './envelope.ts';
import type { ProtocolError } from './errors.ts';
import type { TaskState } from './model.ts';

/**
 * Server-sent events as text. Each frame is complete and ends with its blank line; data is one line of JSON (JSON escapes every line
 * break that the format knows).
 */
export interface SseFrame {
  readonly data: JsonValue;
  /** Name of the event; absent for the default one. */
  readonly event?: string | undefined;
  /** The event log's seq: what a client sends back as `Last-Event-ID`. */
  readonly id?: string | number | undefined;
}

/** One event. */
export function sseFrame({ data, event, id }: SseFrame): string {
  const eventLine = event === undefined ? '' : `event: ${oneLine(event)}\n`;
  const idLine = id === undefined ? '' : `id: ${oneLine(String(id))}\n`;
  return `${eventLine}${idLine}data: ${JSON.stringify(data)}\n\n`;
}

/** A comment: every parser skips it; it shows both ends that the connection lives. */
export const HEARTBEAT_FRAME = ': keep-alive\n\n';

/** Tells the client how long to wait before it connects again, in milliseconds. */
export function retryFrame(retryMs: number): string {
  return `retry: ${Math.max(0, Math.round(retryMs))}\n\n`;
}

/** One event of a standard stream: a full JSON-RPC response with the request's id (1.0 section 9.4.2; 0.3 section 3.3.1). */
export function responseFrame(requestId: RpcId, result: JsonValue, seq?: number | string): string {
  return sseFrame({ data: { ...successResponse(requestId, result) }, id: seq });
}

/** An error that ends a standard stream, marked as both SDKs' servers mark it. */
export function errorFrame(requestId: RpcId, error: ProtocolError): string {
  return sseFrame({ event: 'error', data: { ...errorResponse(requestId, error) } });
}

/** An event of `_cleveragents/event/subscribe`. */
export interface StatusNotification {
  readonly id: string | number;
  readonly taskId: string;
  readonly state: TaskState;
  /** More members of `params`, such as phase and timestamp; they cannot replace the three that are always there. */
  readonly extra?: { readonly [name: string]: JsonValue | undefined } | undefined;
}

/** The source document's notification of a state: `state` as its example shows, and `status.state` as A2A has it. */
export function statusNotificationFrame({ id, taskId, state, extra }: StatusNotification): string {
  const params = wire({ ...extra, taskId, state, status: { state } });
  return sseFrame({ event: 'TaskStatusUpdateEvent', id, data: { jsonrpc: '2.0', method: 'task/statusUpdate', params } });
}

export interface ArtifactNotification {
  readonly id: string | number;
  readonly taskId: string;
  readonly extra?: { readonly [name: string]: JsonValue | undefined } | undefined;
}

/** The source document's other event type: something was produced, or a checkpoint was restored. */
export function artifactNotificationFrame({ id, taskId, extra }: ArtifactNotification): string {
  const params = wire({ ...extra, taskId });
  return sseFrame({ event: 'TaskArtifactUpdateEvent', id, data: { jsonrpc: '2.0', method: 'task/artifactUpdate', params } });
}

/** Field values end at a line break, and an id with NUL is ignored by clients. */
function oneLine(text: string): string {
  return text.replace(/[\r\n\0]/g, ' ');
}
