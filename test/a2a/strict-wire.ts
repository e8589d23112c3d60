import * as z from 'zod';

/**
 * The answers of both versions as strict schemas of our own, so that conformance is checked where the official schemas are not at
 * hand: every required member, no null, no member that the version does not name.
 */

const metadata = z.record(z.string(), z.unknown()).optional();
const texts = z.array(z.string()).min(1).optional();
const instant = z.string().regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/);
const base64 = z.string().regex(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/);
const value: z.ZodType<unknown> = z.unknown().refine((item) => item !== undefined);

function strictV1() {
  const common = { metadata, filename: z.string().min(1).optional(), mediaType: z.string().min(1).optional() };
  const part = z.union([
    z.strictObject({ text: z.string(), ...common }),
    z.strictObject({ raw: base64, ...common }),
    z.strictObject({ url: z.string(), ...common }),
    z.strictObject({ data: value, ...common }),
  ]);
  const parts = z.array(part).min(1);
  const message = z.strictObject({
    messageId: z.string().min(1),
    role: z.enum(['ROLE_USER', 'ROLE_AGENT']),
    parts,
    contextId: z.string().optional(),
    taskId: z.string().optional(),
    metadata,
    extensions: texts,
    referenceTaskIds: texts,
  });
  const artifact = z.strictObject({
    artifactId: z.string().min(1),
    name: z.string().optional(),
    description: z.string().optional(),
    parts,
    metadata,
    extensions: texts,
  });
  const state = z.enum([
    'TASK_STATE_SUBMITTED',
    'TASK_STATE_WORKING',
    'TASK_STATE_COMPLETED',
    'TASK_STATE_FAILED',
    'TASK_STATE_CANCELED',
    'TASK_STATE_INPUT_REQUIRED',
    'TASK_STATE_REJECTED',
    'TASK_STATE_AUTH_REQUIRED',
  ]);
  const status = z.strictObject({ state, message: message.optional(), timestamp: instant.optional() });
  const task = z.strictObject({
    id: z.string().min(1),
    contextId: z.string().min(1),
    status,
    artifacts: z.array(artifact).optional(),
    history: z.array(message).optional(),
    metadata,
  });
  const ids = { taskId: z.string().min(1), contextId: z.string().min(1) };
  const sendResult = z.union([z.strictObject({ task }), z.strictObject({ message })]);
  const event = z.union([
    z.strictObject({ task }),
    z.strictObject({ message }),
    z.strictObject({ statusUpdate: z.strictObject({ ...ids, status, metadata }) }),
    z.strictObject({
      artifactUpdate: z.strictObject({ ...ids, artifact, append: z.boolean().optional(), lastChunk: z.boolean().optional(), metadata }),
    }),
  ]);
  const pushConfig = z.strictObject({
    tenant: z.string().optional(),
    id: z.string().min(1),
    taskId: z.string().min(1),
    url: z.string().min(1),
    token: z.string().optional(),
    authentication: z.strictObject({ scheme: z.string().min(1), credentials: z.string().optional() }).optional(),
  });
  const page = z.strictObject({ tasks: z.array(task), nextPageToken: z.string(), pageSize: z.int().min(1), totalSize: z.int().min(0) });
  const pushList = z.strictObject({ configs: z.array(pushConfig), nextPageToken: z.string() });
  return { task, sendResult, event, page, pushConfig, pushList };
}

function strictV03() {
  const file = { name: z.string().min(1).optional(), mimeType: z.string().min(1).optional() };
  const part = z.union([
    z.strictObject({ kind: z.literal('text'), text: z.string(), metadata }),
    z.strictObject({
      kind: z.literal('file'),
      file: z.union([z.strictObject({ bytes: base64, ...file }), z.strictObject({ uri: z.string(), ...file })]),
      metadata,
    }),
    z.strictObject({ kind: z.literal('data'), data: z.record(z.string(), z.unknown()), metadata }),
  ]);
  const parts = z.array(part).min(1);
  const message = z.strictObject({
    kind: z.literal('message'),
    messageId: z.string().min(1),
    role: z.enum(['user', 'agent']),
    parts,
    contextId: z.string().optional(),
    taskId: z.string().optional(),
    metadata,
    extensions: texts,
    referenceTaskIds: texts,
  });
  const artifact = z.strictObject({
    artifactId: z.string().min(1),
    name: z.string().optional(),
    description: z.string().optional(),
    parts,
    metadata,
    extensions: texts,
  });
  const state = z.enum(['submitted', 'working', 'input-required', 'completed', 'canceled', 'failed', 'rejected', 'auth-required']);
  const status = z.strictObject({ state, message: message.optional(), timestamp: instant.optional() });
  const task = z.strictObject({
    kind: z.literal('task'),
    id: z.string().min(1),
    contextId: z.string().min(1),
    status,
    artifacts: z.array(artifact).optional(),
    history: z.array(message).optional(),
    metadata,
  });
  const ids = { taskId: z.string().min(1), contextId: z.string().min(1) };
  const sendResult = z.union([task, message]);
  const event = z.union([
    task,
    message,
    z.strictObject({ kind: z.literal('status-update'), ...ids, status, final: z.boolean(), metadata }),
    z.strictObject({
      kind: z.literal('artifact-update'),
      ...ids,
      artifact,
      append: z.boolean().optional(),
      lastChunk: z.boolean().optional(),
      metadata,
    }),
  ]);
  const pushConfig = z.strictObject({
    taskId: z.string().min(1),
    pushNotificationConfig: z.strictObject({
      id: z.string().min(1),
      url: z.string().min(1),
      token: z.string().optional(),
      authentication: z.strictObject({ schemes: z.array(z.string().min(1)).min(1), credentials: z.string().optional() }).optional(),
    }),
  });
  const page = z.strictObject({ tasks: z.array(task), nextPageToken: z.string(), pageSize: z.int().min(1), totalSize: z.int().min(0) });
  return { task, sendResult, event, page, pushConfig, pushList: z.array(pushConfig) };
}

export const STRICT_WIRE = { '1.0': strictV1(), '0.3': strictV03() } as const;

/** 0.3 over HTTP+JSON: the objects of its proto. */
function strictRestV03() {
  const mimeType = z.string().min(1).optional();
  const part = z.union([
    z.strictObject({ text: z.string() }),
    z.strictObject({
      file: z.union([z.strictObject({ fileWithBytes: base64, mimeType }), z.strictObject({ fileWithUri: z.string(), mimeType })]),
    }),
    z.strictObject({ data: z.strictObject({ data: z.record(z.string(), z.unknown()) }) }),
  ]);
  const parts = z.array(part).min(1);
  const message = z.strictObject({
    messageId: z.string().min(1),
    contextId: z.string().optional(),
    taskId: z.string().optional(),
    role: z.enum(['ROLE_USER', 'ROLE_AGENT']),
    content: parts,
    metadata,
    extensions: texts,
  });
  const artifact = z.strictObject({
    artifactId: z.string().min(1),
    name: z.string().optional(),
    description: z.string().optional(),
    parts,
    metadata,
    extensions: texts,
  });
  const state = z.enum([
    'TASK_STATE_SUBMITTED',
    'TASK_STATE_WORKING',
    'TASK_STATE_COMPLETED',
    'TASK_STATE_FAILED',
    'TASK_STATE_CANCELLED',
    'TASK_STATE_INPUT_REQUIRED',
    'TASK_STATE_REJECTED',
    'TASK_STATE_AUTH_REQUIRED',
  ]);
  const status = z.strictObject({ state, message: message.optional(), timestamp: instant.optional() });
  const task = z.strictObject({
    id: z.string().min(1),
    contextId: z.string().min(1),
    status,
    artifacts: z.array(artifact).optional(),
    history: z.array(message).optional(),
    metadata,
  });
  const ids = { taskId: z.string().min(1), contextId: z.string().min(1) };
  const yes = z.literal(true).optional();
  const sendResult = z.union([z.strictObject({ task }), z.strictObject({ message })]);
  const event = z.union([
    z.strictObject({ task }),
    z.strictObject({ message }),
    z.strictObject({ statusUpdate: z.strictObject({ ...ids, status, final: yes, metadata }) }),
    z.strictObject({ artifactUpdate: z.strictObject({ ...ids, artifact, append: yes, lastChunk: yes, metadata }) }),
  ]);
  const pushConfig = z.strictObject({
    name: z.string().regex(/^tasks\/[^/]+\/pushNotificationConfigs\/[^/]+$/),
    pushNotificationConfig: z.strictObject({
      id: z.string().min(1),
      url: z.string().min(1),
      token: z.string().optional(),
      authentication: z.strictObject({ schemes: z.array(z.string().min(1)).min(1), credentials: z.string().optional() }).optional(),
    }),
  });
  const pushList = z.strictObject({ configs: z.array(pushConfig), nextPageToken: z.string().min(1).optional() });
  return { task, sendResult, event, page: z.array(task), pushConfig, pushList };
}

export const STRICT_REST_03 = strictRestV03();
