import type { JsonObject, JsonValue } from '../../core/json.ts';
import type { EncoderTable, EventEncoder } from '../decoder.ts';
import { listOrAbsent, timestamp, wire } from '../emit.ts';
import type { Artifact, DataPart, Message, Part, PartCommon, PushConfig, SendResult, StreamEvent, Task, TaskStatus } from '../model.ts';
import { WRAPPED_DATA_MARK } from './names.ts';

/**
 * Results and events of A2A 0.3 over JSON-RPC: bare objects with `kind`. What 0.3 cannot say is left out: the file name and media type
 * of text and data parts.
 */

function encodePart(part: Part): JsonObject {
  switch (part.kind) {
    case 'text':
      return wire({ kind: 'text', text: part.text, metadata: part.metadata });
    case 'raw':
      return wire({ kind: 'file', file: encodeFile({ bytes: part.raw }, part), metadata: part.metadata });
    case 'url':
      return wire({ kind: 'file', file: encodeFile({ uri: part.url }, part), metadata: part.metadata });
    case 'data':
      return encodeData(part);
  }
}

function encodeFile(content: JsonObject, part: PartCommon): JsonObject {
  return wire({ ...content, name: part.filename, mimeType: part.mediaType });
}

/** Data parts hold objects only: any other value is wrapped and marked, as the official SDKs do (`WRAPPED_DATA_MARK`). */
function encodeData(part: DataPart): JsonObject {
  const { data, metadata } = part;
  if (typeof data === 'object' && data !== null && !Array.isArray(data)) return wire({ kind: 'data', data, metadata });
  return { kind: 'data', data: { value: data }, metadata: { ...metadata, [WRAPPED_DATA_MARK]: true } };
}

function encodeMessage(message: Message): JsonObject {
  return wire({
    kind: 'message',
    messageId: message.messageId,
    role: message.role,
    parts: message.parts.map(encodePart),
    contextId: message.contextId,
    taskId: message.taskId,
    metadata: message.metadata,
    extensions: listOrAbsent(message.extensions),
    referenceTaskIds: listOrAbsent(message.referenceTaskIds),
  });
}

function encodeArtifact(artifact: Artifact): JsonObject {
  return wire({
    artifactId: artifact.artifactId,
    name: artifact.name,
    description: artifact.description,
    parts: artifact.parts.map(encodePart),
    metadata: artifact.metadata,
    extensions: listOrAbsent(artifact.extensions),
  });
}

function encodeStatus(status: TaskStatus): JsonObject {
  return wire({
    state: status.state,
    message: status.message && encodeMessage(status.message),
    timestamp: timestamp(status.timestamp),
  });
}

function encodeTask(task: Task): JsonObject {
  return wire({
    kind: 'task',
    id: task.id,
    contextId: task.contextId,
    status: encodeStatus(task.status),
    history: task.history?.map(encodeMessage),
    artifacts: task.artifacts?.map(encodeArtifact),
    metadata: task.metadata,
  });
}

function encodeSendResult(result: SendResult): JsonObject {
  return result.kind === 'task' ? encodeTask(result.task) : encodeMessage(result.message);
}

function encodePushConfig(config: PushConfig): JsonObject {
  const { authentication } = config;
  return {
    taskId: config.taskId,
    pushNotificationConfig: wire({
      id: config.id,
      url: config.url,
      token: config.token,
      authentication: authentication && wire({ schemes: authentication.schemes, credentials: authentication.credentials }),
    }),
  };
}

export const encodeEvent: EventEncoder = (event: StreamEvent): JsonObject => {
  switch (event.kind) {
    case 'task':
    case 'message':
      return encodeSendResult(event);
    case 'status':
      return wire({
        kind: 'status-update',
        taskId: event.taskId,
        contextId: event.contextId,
        status: encodeStatus(event.status),
        final: event.final,
        metadata: event.metadata,
      });
    case 'artifact':
      return wire({
        kind: 'artifact-update',
        taskId: event.taskId,
        contextId: event.contextId,
        artifact: encodeArtifact(event.artifact),
        append: event.append,
        lastChunk: event.lastChunk,
        metadata: event.metadata,
      });
  }
};

export const ENCODERS: EncoderTable = {
  send: encodeSendResult,
  get: encodeTask,
  cancel: encodeTask,
  list: (page) => ({
    tasks: page.tasks.map(encodeTask),
    nextPageToken: page.nextPageToken,
    pageSize: page.pageSize,
    totalSize: page.totalSize,
  }),
  pushCreate: encodePushConfig,
  pushGet: encodePushConfig,
  pushList: (page) => page.configs.map(encodePushConfig),
  pushDelete: (): JsonValue => null,
  extendedCard: (card) => card,
};
