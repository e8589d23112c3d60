/** The two official SDK clients behind one small form, so that a story is told once and runs with both. */
import {
  type Message as MessageV1,
  type Part as PartV1,
  Role,
  TaskState,
  type Task as TaskV1,
  type TaskPushNotificationConfig as WebhookV1,
} from '@a2a-js/sdk';
import {
  type Client,
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client';
import type { Part as PartV03, TaskPushNotificationConfig as WebhookV03 } from 'a2a-sdk-0.3';
import {
  ClientFactoryOptions as ClientFactoryOptionsV03,
  ClientFactory as ClientFactoryV03,
  type Client as ClientV03,
  DefaultAgentCardResolver as DefaultAgentCardResolverV03,
  JsonRpcTransportFactory as JsonRpcTransportFactoryV03,
  RestTransportFactory as RestTransportFactoryV03,
} from 'a2a-sdk-0.3/client';
import { EXTENSION_URI } from '../../src/a2a/extension.ts';
import type { ProtocolVersion } from '../../src/a2a/version.ts';
import type { JsonObject } from '../../src/core/json.ts';
import { restWireLog } from './rest-wire-log.ts';
import { type WireLog, wireLog } from './wire-log.ts';

/** What a test says. */
export interface Outgoing {
  readonly text?: string;
  readonly data?: JsonObject;
  /** Goes into the metadata under our extension's URI: starts a plan. */
  readonly start?: JsonObject;
  readonly taskId?: string;
  readonly contextId?: string;
  /** Default true. */
  readonly blocking?: boolean;
  /** Is told of the task that the message is for. */
  readonly webhook?: WebhookConfig;
}

/** A webhook as a test gives it, and as it is shown. */
export interface WebhookConfig {
  readonly id?: string;
  readonly url: string;
  readonly token?: string;
  /** Of a bearer. */
  readonly credentials?: string;
}

/** What it was answered: a task, a message, or an event of a stream. */
export interface Shown {
  readonly kind: 'task' | 'message' | 'status' | 'artifact';
  readonly taskId: string;
  readonly contextId: string;
  /** As 0.3 spells it: `input-required`, `completed`, `canceled`. */
  readonly state: string;
  /** Texts and data of the status message, or of the message or artifact itself. */
  readonly text: string;
  readonly data: readonly JsonObject[];
  readonly artifacts: readonly { readonly id: string; readonly text: string }[];
  /** Our extension's part of the metadata. */
  readonly plan: JsonObject;
}

export interface PeerClient {
  readonly wire: WireLog;
  send(message: Outgoing): Promise<Shown>;
  stream(message: Outgoing): AsyncGenerator<Shown>;
  subscribe(taskId: string): AsyncGenerator<Shown>;
  get(taskId: string): Promise<Shown>;
  cancel(taskId: string): Promise<Shown>;
  /** The tasks of a context; null where the client has no such operation. */
  readonly list: ((contextId: string) => Promise<readonly Shown[]>) | null;
  /** What the card says that the client gets for its key. */
  card(): Promise<{ readonly name: string; readonly skills: readonly { readonly id: string }[] }>;
  readonly webhooks: {
    create(taskId: string, config: WebhookConfig): Promise<WebhookConfig>;
    get(taskId: string, id: string): Promise<WebhookConfig>;
    list(taskId: string): Promise<readonly WebhookConfig[]>;
    delete(taskId: string, id: string): Promise<void>;
  };
}

export interface Peer {
  readonly name: string;
  readonly version: ProtocolVersion;
  /** Reads the Agent Card at the address, as any client would. */
  connect(url: string, key: string): Promise<PeerClient>;
}

export const PEERS: readonly Peer[] = [
  { name: '@a2a-js/sdk 1.3.0', version: '1.0', connect: connectV1 },
  { name: '@a2a-js/sdk 0.3.14', version: '0.3', connect: connectV03 },
];

/** The same clients over HTTP+JSON. */
export const REST_PEERS: readonly Peer[] = [
  { name: '@a2a-js/sdk 1.3.0 over HTTP+JSON', version: '1.0', connect: (url, key) => connectV1(url, key, 'HTTP+JSON') },
  { name: '@a2a-js/sdk 0.3.14 over HTTP+JSON', version: '0.3', connect: (url, key) => connectV03(url, key, 'HTTP+JSON') },
];

/** The 1.x client in its mode for agents that speak 0.3 alone. */
export const LEGACY_PEERS: readonly Peer[] = [
  { name: '@a2a-js/sdk 1.3.0 for 0.3', version: '0.3', connect: (url, key) => connectV1(url, key, 'JSONRPC', '0.3') },
  { name: '@a2a-js/sdk 1.3.0 for 0.3 over HTTP+JSON', version: '0.3', connect: (url, key) => connectV1(url, key, 'HTTP+JSON', '0.3') },
];

type Binding = 'JSONRPC' | 'HTTP+JSON';

const metadataOf = ({ start }: Outgoing): JsonObject | undefined => (start === undefined ? undefined : { [EXTENSION_URI]: start });

const planOf = (metadata: Readonly<Record<string, unknown>> | undefined): JsonObject => (metadata?.[EXTENSION_URI] ?? {}) as JsonObject;

async function connectV1(url: string, key: string, binding: Binding = 'JSONRPC', version: ProtocolVersion = '1.0'): Promise<PeerClient> {
  const isRest = binding === 'HTTP+JSON';
  const wire = isRest ? restWireLog(version, key) : wireLog(version, key);
  const legacyCompat = { enabled: version === '0.3' };
  const { fetch: fetchImpl } = wire;
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [isRest ? new RestTransportFactory({ fetchImpl, legacyCompat }) : new JsonRpcTransportFactory({ fetchImpl, legacyCompat })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl, legacyCompat }),
    preferredTransports: [binding],
  });
  const client = await new ClientFactory(options).createFromUrl(url);
  const request = (message: Outgoing) => ({
    tenant: '',
    message: {
      messageId: crypto.randomUUID(),
      contextId: message.contextId ?? '',
      taskId: message.taskId ?? '',
      role: Role.ROLE_USER,
      parts: [
        ...(message.text === undefined ? [] : [partV1({ $case: 'text', value: message.text })]),
        ...(message.data === undefined ? [] : [partV1({ $case: 'data', value: message.data })]),
      ],
      metadata: metadataOf(message),
      extensions: [],
      referenceTaskIds: [],
    },
    configuration: {
      acceptedOutputModes: [],
      taskPushNotificationConfig: message.webhook === undefined ? undefined : webhookV1('', message.webhook),
      returnImmediately: message.blocking === false,
    },
    metadata: undefined,
  });
  return {
    wire,
    send: async (message) => {
      const sent = await client.sendMessage(request(message));
      return 'messageId' in sent ? messageV1(sent) : taskV1(sent);
    },
    async *stream(message) {
      for await (const event of client.sendMessageStream(request(message))) yield eventV1(event);
    },
    async *subscribe(id) {
      for await (const event of client.resubscribeTask({ tenant: '', id })) yield eventV1(event);
    },
    get: async (id) => taskV1(await client.getTask({ tenant: '', id })),
    list: async (contextId) => {
      const { tasks } = await client.listTasks({
        tenant: '',
        contextId,
        status: TaskState.TASK_STATE_UNSPECIFIED,
        pageSize: undefined,
        pageToken: '',
        historyLength: undefined,
        statusTimestampAfter: undefined,
        includeArtifacts: true,
      });
      return tasks.map(taskV1);
    },
    cancel: async (id) => taskV1(await client.cancelTask({ tenant: '', id, metadata: undefined })),
    card: () => client.getAgentCard(),
    webhooks: {
      create: async (taskId, config) => webhookOfV1(await client.createTaskPushNotificationConfig(webhookV1(taskId, config))),
      get: async (taskId, id) => webhookOfV1(await client.getTaskPushNotificationConfig({ tenant: '', taskId, id })),
      list: async (taskId) => {
        const { configs } = await client.listTaskPushNotificationConfig({ tenant: '', taskId, pageSize: 0, pageToken: '' });
        return configs.map(webhookOfV1);
      },
      delete: (taskId, id) => client.deleteTaskPushNotificationConfig({ tenant: '', taskId, id }),
    },
  };
}

const webhookV1 = (taskId: string, { id, url, token, credentials }: WebhookConfig): WebhookV1 => ({
  tenant: '',
  id: id ?? '',
  taskId,
  url,
  token: token ?? '',
  authentication: credentials === undefined ? undefined : { scheme: 'Bearer', credentials },
});

/** Members that an SDK fills in for what is absent are absent. */
const webhookOfV1 = ({ id, url, token, authentication }: WebhookV1): WebhookConfig => ({
  id,
  url,
  ...(token === '' ? {} : { token }),
  ...(authentication === undefined || authentication.credentials === '' ? {} : { credentials: authentication.credentials }),
});

type EventV1 = EventOf<Client['resubscribeTask']>;

type EventOf<F extends (...args: never[]) => AsyncGenerator<unknown>> = ReturnType<F> extends AsyncGenerator<infer E, unknown> ? E : never;

const partV1 = (content: NonNullable<PartV1['content']>): PartV1 => ({ content, metadata: undefined, filename: '', mediaType: '' });

function eventV1(event: EventV1): Shown {
  const { payload } = event;
  switch (payload?.$case) {
    case 'task':
      return taskV1(payload.value);
    case 'message':
      return messageV1(payload.value);
    case 'statusUpdate': {
      const { taskId, contextId, status, metadata } = payload.value;
      const said = contentsV1(status?.message?.parts ?? []);
      return { kind: 'status', taskId, contextId, state: stateV1(status?.state), ...said, artifacts: [], plan: planOf(metadata) };
    }
    case 'artifactUpdate': {
      const { taskId, contextId, artifact, metadata } = payload.value;
      return {
        kind: 'artifact',
        taskId,
        contextId,
        state: '',
        ...contentsV1(artifact?.parts ?? []),
        artifacts: [],
        plan: planOf(metadata),
      };
    }
    default:
      throw new Error(`a stream event without a payload: ${JSON.stringify(event)}`);
  }
}

function taskV1({ id, contextId, status, artifacts, metadata }: TaskV1): Shown {
  return {
    kind: 'task',
    taskId: id,
    contextId,
    state: stateV1(status?.state),
    ...contentsV1(status?.message?.parts ?? []),
    artifacts: artifacts.map((artifact) => ({ id: artifact.artifactId, text: contentsV1(artifact.parts).text })),
    plan: planOf(metadata),
  };
}

function messageV1({ taskId, contextId, parts, metadata }: MessageV1): Shown {
  return { kind: 'message', taskId, contextId, state: '', ...contentsV1(parts), artifacts: [], plan: planOf(metadata) };
}

const stateV1 = (state: TaskState | undefined): string =>
  (TaskState[state ?? TaskState.TASK_STATE_UNSPECIFIED] ?? '').replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-');

function contentsV1(parts: readonly PartV1[]): Pick<Shown, 'text' | 'data'> {
  const text = parts.flatMap(({ content }) => (content?.$case === 'text' ? [content.value] : [])).join('\n');
  return { text, data: parts.flatMap(({ content }) => (content?.$case === 'data' ? [content.value as JsonObject] : [])) };
}

async function connectV03(url: string, key: string, binding: Binding = 'JSONRPC'): Promise<PeerClient> {
  const isRest = binding === 'HTTP+JSON';
  const wire = isRest ? restWireLog('0.3', key) : wireLog('0.3', key);
  const { fetch: fetchImpl } = wire;
  const options = ClientFactoryOptionsV03.createFrom(ClientFactoryOptionsV03.default, {
    transports: [isRest ? new RestTransportFactoryV03({ fetchImpl }) : new JsonRpcTransportFactoryV03({ fetchImpl })],
    cardResolver: new DefaultAgentCardResolverV03({ fetchImpl }),
    preferredTransports: [binding],
  });
  const client = await new ClientFactoryV03(options).createFromUrl(url);
  const request = (message: Outgoing) => {
    const metadata = metadataOf(message);
    return {
      message: {
        kind: 'message' as const,
        messageId: crypto.randomUUID(),
        role: 'user' as const,
        parts: [
          ...(message.text === undefined ? [] : [{ kind: 'text' as const, text: message.text }]),
          ...(message.data === undefined ? [] : [{ kind: 'data' as const, data: message.data }]),
        ],
        ...(message.contextId === undefined ? {} : { contextId: message.contextId }),
        ...(message.taskId === undefined ? {} : { taskId: message.taskId }),
        ...(metadata === undefined ? {} : { metadata }),
      },
      configuration: {
        blocking: message.blocking !== false,
        ...(message.webhook === undefined ? {} : { pushNotificationConfig: webhookV03(message.webhook) }),
      },
    };
  };
  return {
    wire,
    send: async (message) => anyV03(await client.sendMessage(request(message))),
    async *stream(message) {
      for await (const event of client.sendMessageStream(request(message))) yield anyV03(event);
    },
    async *subscribe(id) {
      for await (const event of client.resubscribeTask({ id })) yield anyV03(event);
    },
    get: async (id) => anyV03(await client.getTask({ id })),
    list: null,
    cancel: async (id) => anyV03(await client.cancelTask({ id })),
    card: () => client.getAgentCard(),
    webhooks: {
      create: async (taskId, config) =>
        webhookOfV03(await client.setTaskPushNotificationConfig({ taskId, pushNotificationConfig: webhookV03(config) })),
      get: async (id, pushNotificationConfigId) => {
        const query: { readonly id: string; readonly pushNotificationConfigId: string } = { id, pushNotificationConfigId };
        return webhookOfV03(await client.getTaskPushNotificationConfig(query));
      },
      list: async (id) => (await client.listTaskPushNotificationConfig({ id })).map(webhookOfV03),
      delete: (id, pushNotificationConfigId) => client.deleteTaskPushNotificationConfig({ id, pushNotificationConfigId }),
    },
  };
}

const webhookV03 = ({ credentials, ...config }: WebhookConfig): WebhookV03['pushNotificationConfig'] => ({
  ...config,
  ...(credentials === undefined ? {} : { authentication: { schemes: ['Bearer'], credentials } }),
});

const webhookOfV03 = ({ pushNotificationConfig: { id, url, token, authentication } }: WebhookV03): WebhookConfig => ({
  url,
  ...(id === undefined ? {} : { id }),
  ...(token === undefined ? {} : { token }),
  ...(authentication?.credentials === undefined ? {} : { credentials: authentication.credentials }),
});

type EventV03 = EventOf<ClientV03['resubscribeTask']>;

function anyV03(event: EventV03): Shown {
  const plan = planOf(event.metadata);
  switch (event.kind) {
    case 'task':
      return {
        kind: 'task',
        taskId: event.id,
        contextId: event.contextId,
        state: event.status.state,
        ...contentsV03(event.status.message?.parts ?? []),
        artifacts: (event.artifacts ?? []).map((artifact) => ({ id: artifact.artifactId, text: contentsV03(artifact.parts).text })),
        plan,
      };
    case 'message':
      return {
        kind: 'message',
        taskId: event.taskId ?? '',
        contextId: event.contextId ?? '',
        state: '',
        ...contentsV03(event.parts),
        artifacts: [],
        plan,
      };
    case 'status-update': {
      const { taskId, contextId, status } = event;
      return { kind: 'status', taskId, contextId, state: status.state, ...contentsV03(status.message?.parts ?? []), artifacts: [], plan };
    }
    case 'artifact-update':
      return {
        kind: 'artifact',
        taskId: event.taskId,
        contextId: event.contextId,
        state: '',
        ...contentsV03(event.artifact.parts),
        artifacts: [],
        plan,
      };
  }
}

function contentsV03(parts: readonly PartV03[]): Pick<Shown, 'text' | 'data'> {
  const text = parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('\n');
  return { text, data: parts.flatMap((part) => (part.kind === 'data' ? [part.data as JsonObject] : [])) };
}
