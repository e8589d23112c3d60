import type { JsonObject, JsonValue } from '../../core/json.ts';
import type { EncoderTable, EventEncoder } from '../decoder.ts';
import { listOrAbsent, timestamp, wire } from '../emit.ts';
import type { Artifact, Message, Part, PushConfig, SendResult, StreamEvent, Task, TaskStatus } from '../model.ts';
import { ROLE_NAMES } from '../proto-names.ts';
import { STATE_NAMES } from './names.ts';

/** Results and events of A2A 1.0 as exact ProtoJSON: camelCase, enums by name, no null, nothing that the proto does not name. */

function encodePart(part: Part): JsonObject {
  const common = { metadata: part.metadata, filename: part.filename, mediaType: part.mediaType };
  switch (part.kind) {
    case 'text':
      return wire({ text: part.text, ...common });
    case 'raw':
      return wire({ raw: part.raw, ...common });
    case 'url':
      return wire({ url: part.url, ...common });
    case 'data':
      return wire({ data: part.data, ...common });
  }
}

function encodeMessage(message: Message): JsonObject {
  return wire({
    messageId: message.messageId,
    contextId: message.contextId,
    taskId: message.taskId,
    role: ROLE_NAMES[message.role],
    parts: message.parts.map(encodePart),
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
    state: STATE_NAMES[status.state],
    message: status.message && encodeMessage(status.message),
    timestamp: timestamp(status.timestamp),
  });
}

function encodeTask(task: Task): JsonObject {
  return wire({
    id: task.id,
    contextId: task.contextId,
    status: encodeStatus(task.status),
    artifacts: task.artifacts?.map(encodeArtifact),
    history: task.history?.map(encodeMessage),
    metadata: task.metadata,
  });
}

function encodeSendResult(result: SendResult): JsonObject {
  return result.kind === 'task' ? { task: encodeTask(result.task) } : { message: encodeMessage(result.message) };
}

function encodePushConfig(config: PushConfig): JsonObject {
  const scheme = config.authentication?.schemes[0];
  return wire({
    tenant: config.tenant,
    id: config.id,
    taskId: config.taskId,
    url: config.url,
    token: config.token,
    authentication: scheme === undefined ? undefined : wire({ scheme, credentials: config.authentication?.credentials }),
  });
}

/** The one-of of StreamResponse; proto booleans that are false are left out. */
export const encodeEvent: EventEncoder = (event: StreamEvent): JsonObject => {
  switch (event.kind) {
    case 'task':
    case 'message':
      return encodeSendResult(event);
    case 'status':
      return {
        statusUpdate: wire({
          taskId: event.taskId,
          contextId: event.contextId,
          status: encodeStatus(event.status),
          metadata: event.metadata,
        }),
      };
    case 'artifact':
      return {
        artifactUpdate: wire({
          taskId: event.taskId,
          contextId: event.contextId,
          artifact: encodeArtifact(event.artifact),
          append: event.append || undefined,
          lastChunk: event.lastChunk || undefined,
          metadata: event.metadata,
        }),
      };
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
  pushList: (page) => ({ configs: page.configs.map(encodePushConfig), nextPageToken: page.nextPageToken }),
  // The proto's Empty; both official SDKs send and expect null over JSON-RPC.
  pushDelete: (): JsonValue => null,
  extendedCard: (card) => card,
};
