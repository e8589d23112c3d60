import type { Artifact, Message, Part, PushConfig, StreamEvent, Task, TaskState, TaskStatus } from '../../src/a2a/model.ts';
import type { ProtocolVersion } from '../../src/a2a/version.ts';
import { compact } from '../../src/a2a/wire-schema.ts';
import type { JsonObject, JsonValue } from '../../src/core/json.ts';

/** A plain reader of recorded answers, written apart from the codecs so that encoding can be compared with what real servers sent. */

type Wire = { readonly [name: string]: JsonValue };

const object = (value: JsonValue | undefined): Wire => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error(`not an object: ${JSON.stringify(value)}`);
  return value as Wire;
};
const list = (value: JsonValue | undefined): readonly JsonValue[] => (Array.isArray(value) ? value : []);
const text = (value: JsonValue | undefined): string | undefined => (typeof value === 'string' ? value : undefined);
const needed = (value: JsonValue | undefined): string => text(value) ?? '';
const maybeObject = (value: JsonValue | undefined): JsonObject | undefined => (value === undefined ? undefined : object(value));

function state(version: ProtocolVersion, value: JsonValue | undefined): TaskState {
  const name = needed(value);
  return (version === '0.3' ? name : name.replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-')) as TaskState;
}

function readPart(version: ProtocolVersion, value: JsonValue): Part {
  const part = object(value);
  const metadata = maybeObject(part['metadata']);
  if (version === '1.0') {
    const common = { metadata, filename: text(part['filename']), mediaType: text(part['mediaType']) };
    if ('text' in part) return compact({ kind: 'text', text: needed(part['text']), ...common });
    if ('raw' in part) return compact({ kind: 'raw', raw: needed(part['raw']), ...common });
    if ('url' in part) return compact({ kind: 'url', url: needed(part['url']), ...common });
    return compact({ kind: 'data', data: part['data'] ?? null, ...common });
  }
  if (part['kind'] === 'text') return compact({ kind: 'text', text: needed(part['text']), metadata });
  if (part['kind'] === 'data') return compact({ kind: 'data', data: part['data'] ?? null, metadata });
  const file = object(part['file']);
  const common = { metadata, filename: text(file['name']), mediaType: text(file['mimeType']) };
  return 'bytes' in file
    ? compact({ kind: 'raw', raw: needed(file['bytes']), ...common })
    : compact({ kind: 'url', url: needed(file['uri']), ...common });
}

function readMessage(version: ProtocolVersion, value: JsonValue | undefined): Message {
  const message = object(value);
  return compact({
    messageId: needed(message['messageId']),
    role: needed(message['role']).toLowerCase().endsWith('agent') ? 'agent' : 'user',
    parts: list(message['parts']).map((part) => readPart(version, part)),
    contextId: text(message['contextId']),
    taskId: text(message['taskId']),
    metadata: maybeObject(message['metadata']),
  });
}

function readStatus(version: ProtocolVersion, value: JsonValue | undefined): TaskStatus {
  const status = object(value);
  const message = status['message'] === undefined ? undefined : readMessage(version, status['message']);
  return compact({ state: state(version, status['state']), message, timestamp: text(status['timestamp']) });
}

function readArtifact(version: ProtocolVersion, value: JsonValue | undefined): Artifact {
  const artifact = object(value);
  return compact({
    artifactId: needed(artifact['artifactId']),
    name: text(artifact['name']),
    description: text(artifact['description']),
    parts: list(artifact['parts']).map((part) => readPart(version, part)),
    metadata: maybeObject(artifact['metadata']),
  });
}

export function readTask(version: ProtocolVersion, value: JsonValue | undefined): Task {
  const task = object(value);
  const { artifacts, history } = task;
  return compact({
    id: needed(task['id']),
    contextId: needed(task['contextId']),
    status: readStatus(version, task['status']),
    artifacts: artifacts === undefined ? undefined : list(artifacts).map((artifact) => readArtifact(version, artifact)),
    history: history === undefined ? undefined : list(history).map((message) => readMessage(version, message)),
    metadata: maybeObject(task['metadata']),
  });
}

export function readEvent(version: ProtocolVersion, value: JsonValue): StreamEvent {
  const wire = object(value);
  const kind = version === '0.3' ? wire['kind'] : Object.keys(wire)[0];
  const inner = version === '0.3' ? wire : object(wire[needed(kind)]);
  const ids = { taskId: needed(inner['taskId']), contextId: needed(inner['contextId']), metadata: maybeObject(inner['metadata']) };
  switch (kind) {
    case 'task':
      return { kind: 'task', task: readTask(version, inner) };
    case 'message':
      return { kind: 'message', message: readMessage(version, inner) };
    case 'statusUpdate':
    case 'status-update':
      return compact({ kind: 'status', ...ids, status: readStatus(version, inner['status']), final: inner['final'] === true });
    default: {
      const flag = (member: JsonValue | undefined) => (typeof member === 'boolean' ? member : undefined);
      const artifact = readArtifact(version, inner['artifact']);
      return compact({ kind: 'artifact', ...ids, artifact, append: flag(inner['append']), lastChunk: flag(inner['lastChunk']) });
    }
  }
}

export function readPushConfig(version: ProtocolVersion, value: JsonValue): PushConfig {
  const outer = object(value);
  const config = version === '0.3' ? object(outer['pushNotificationConfig']) : outer;
  const authentication = maybeObject(config['authentication']);
  const schemes =
    authentication && (version === '0.3' ? (list(authentication['schemes']) as string[]) : [needed(authentication['scheme'])]);
  return compact({
    id: needed(config['id']),
    taskId: needed(outer['taskId']),
    url: needed(config['url']),
    token: text(config['token']),
    authentication: schemes && compact({ schemes, credentials: text(authentication?.['credentials']) }),
  });
}
