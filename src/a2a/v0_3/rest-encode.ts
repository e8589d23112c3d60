import type { JsonObject, JsonValue } from '../../core/json.ts';
import type { EncoderTable, EventEncoder } from '../decoder.ts';
import { listOrAbsent, timestamp, wire } from '../emit.ts';
import type { Artifact, Message, Part, PushConfig, SendResult, StreamEvent, Task, TaskStatus } from '../model.ts';
import { ROLE_NAMES } from '../proto-names.ts';
import { STATE_NAMES } from './rest-names.ts';

/**
 * Results and events of A2A 0.3 over HTTP+JSON, as ProtoJSON of its proto. What the proto has no place for is left out: names of files,
 * metadata of parts, referenced tasks (contract section 12.2).
 */

function encodePart(part: Part): JsonObject {
  switch (part.kind) {
    case 'text':
      return { text: part.text };
    case 'raw':
      return { file: wire({ fileWithBytes: part.raw, mimeType: part.mediaType }) };
    case 'url':
      return { file: wire({ fileWithUri: part.url, mimeType: part.mediaType }) };
    case 'data':
      return { data: { data: structOf(part.data) } };
  }
}

/** The proto's data is an object: any other value is wrapped in one, as over JSON-RPC. */
function structOf(data: JsonValue): JsonObject {
  return typeof data === 'object' && data !== null && !Array.isArray(data) ? (data as JsonObject) : { value: data };
}

function encodeMessage(message: Message): JsonObject {
  return wire({
    messageId: message.messageId,
    contextId: message.contextId,
    taskId: message.taskId,
    role: ROLE_NAMES[message.role],
    content: message.parts.map(encodePart),
    metadata: message.metadata,
    extensions: listOrAbsent(message.extensions),
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
  const { authentication } = config;
  return {
    name: `tasks/${config.taskId}/pushNotificationConfigs/${config.id}`,
    pushNotificationConfig: wire({
      id: config.id,
      url: config.url,
      token: config.token,
      authentication: authentication && wire({ schemes: authentication.schemes, credentials: authentication.credentials }),
    }),
  };
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
          final: event.final || undefined,
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

/** Members of a card that the proto has, beside those that are spelled in another way there. */
const CARD_MEMBERS = [
  'protocolVersion',
  'name',
  'description',
  'url',
  'preferredTransport',
  'additionalInterfaces',
  'provider',
  'version',
  'documentationUrl',
  'defaultInputModes',
  'defaultOutputModes',
  'skills',
  'supportsAuthenticatedExtendedCard',
] as const;

/**
 * A hybrid card as the proto has it: security in the one-of form that 1.0 kept. Its signatures are left out, since what they cover is not
 * what stands here.
 */
function encodeCard(card: JsonObject): JsonObject {
  const { extendedAgentCard: _unknown, ...capabilities } = objectIn(card, 'capabilities');
  const schemes = Object.entries(objectIn(card, 'securitySchemes')).map(([name, scheme]) => [name, oneOfIn(scheme)]);
  return wire({
    ...Object.fromEntries(CARD_MEMBERS.map((name) => [name, card[name]])),
    capabilities,
    securitySchemes: schemes.length === 0 ? undefined : Object.fromEntries(schemes),
    security: card['securityRequirements'],
  });
}

/** The members of a hybrid scheme that are objects: the one-of. */
function oneOfIn(scheme: JsonValue): JsonObject {
  return Object.fromEntries(Object.entries(isObject(scheme) ? scheme : {}).filter(([, member]) => isObject(member)));
}

function objectIn(card: JsonObject, name: string): JsonObject {
  const member = card[name];
  return isObject(member) ? member : {};
}

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const ENCODERS: EncoderTable = {
  send: encodeSendResult,
  get: encodeTask,
  cancel: encodeTask,
  // A bare list in 0.3; where the next page is stands in a header.
  list: (page) => page.tasks.map(encodeTask),
  pushCreate: encodePushConfig,
  pushGet: encodePushConfig,
  pushList: (page) => wire({ configs: page.configs.map(encodePushConfig), nextPageToken: page.nextPageToken || undefined }),
  pushDelete: () => ({}),
  extendedCard: encodeCard,
};
