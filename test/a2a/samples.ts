import fc from 'fast-check';
import {
  type Artifact,
  type Message,
  type Part,
  type PushConfig,
  type StreamEvent,
  TASK_STATES,
  type Task,
  type TaskStatus,
} from '../../src/a2a/model.ts';
import type { ProtocolVersion } from '../../src/a2a/version.ts';
import { compact } from '../../src/a2a/wire-schema.ts';
import type { JsonObject, JsonValue } from '../../src/core/json.ts';

/** Neutral objects as fast-check makes them: every member present and absent, every kind of part, every state. */

const maybe = <T>(arb: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(arb, { nil: undefined });
const id = fc.stringMatching(/^[A-Za-z0-9._:-]{1,24}$/);
const words = fc.string({ minLength: 1, maxLength: 20 });
const json = fc.jsonValue({ maxDepth: 3, noUnicodeString: false }) as fc.Arbitrary<JsonValue>;
const object: fc.Arbitrary<JsonObject> = fc.dictionary(fc.stringMatching(/^[a-z][a-z0-9_]{0,8}$/), json, {
  maxKeys: 3,
  noNullPrototype: true,
});
const bytes = fc.uint8Array({ maxLength: 30 }).map((data) => Buffer.from(data).toString('base64'));
const common = { metadata: maybe(object), filename: maybe(words), mediaType: maybe(fc.constantFrom('text/plain', 'image/png')) };
const list = maybe(fc.array(id, { minLength: 1, maxLength: 3 }));

export const parts: fc.Arbitrary<Part> = fc
  .oneof(
    fc.record({ kind: fc.constant('text' as const), text: fc.string(), ...common }),
    fc.record({ kind: fc.constant('raw' as const), raw: bytes, ...common }),
    fc.record({ kind: fc.constant('url' as const), url: fc.webUrl(), ...common }),
    fc.record({ kind: fc.constant('data' as const), data: json, ...common }),
  )
  .map((part): Part => compact(part));

export const messages: fc.Arbitrary<Message> = fc
  .record({
    messageId: id,
    role: fc.constantFrom('user' as const, 'agent' as const),
    parts: fc.array(parts, { minLength: 1, maxLength: 3 }),
    contextId: maybe(id),
    taskId: maybe(id),
    metadata: maybe(object),
    extensions: list,
    referenceTaskIds: list,
  })
  .map(compact);

export const artifacts: fc.Arbitrary<Artifact> = fc
  .record({
    artifactId: id,
    name: maybe(words),
    description: maybe(words),
    parts: fc.array(parts, { minLength: 1, maxLength: 2 }),
    metadata: maybe(object),
    extensions: list,
  })
  .map(compact);

const instants = fc
  .date({ min: new Date('2000-01-01'), max: new Date('2100-01-01'), noInvalidDate: true })
  .map((date) => date.toISOString());

export const statuses: fc.Arbitrary<TaskStatus> = fc
  .record({ state: fc.constantFrom(...TASK_STATES), message: maybe(messages), timestamp: maybe(instants) })
  .map(compact);

export const tasks: fc.Arbitrary<Task> = fc
  .record({
    id,
    contextId: id,
    status: statuses,
    artifacts: maybe(fc.array(artifacts, { maxLength: 2 })),
    history: maybe(fc.array(messages, { maxLength: 2 })),
    metadata: maybe(object),
  })
  .map(compact);

export const events: fc.Arbitrary<StreamEvent> = fc.oneof(
  tasks.map((task): StreamEvent => ({ kind: 'task', task })),
  messages.map((message): StreamEvent => ({ kind: 'message', message })),
  fc
    .record({
      kind: fc.constant('status' as const),
      taskId: id,
      contextId: id,
      status: statuses,
      final: fc.boolean(),
      metadata: maybe(object),
    })
    .map((event): StreamEvent => compact(event)),
  fc
    .record({
      kind: fc.constant('artifact' as const),
      taskId: id,
      contextId: id,
      artifact: artifacts,
      append: maybe(fc.boolean()),
      lastChunk: maybe(fc.boolean()),
      metadata: maybe(object),
    })
    .map((event): StreamEvent => compact(event)),
);

export const pushConfigs: fc.Arbitrary<PushConfig> = fc
  .record({
    id,
    taskId: id,
    url: fc.webUrl(),
    token: maybe(id),
    authentication: maybe(
      fc.record({ schemes: fc.constantFrom(['Bearer'], ['Basic']), credentials: maybe(id) }).map((auth) => compact(auth)),
    ),
  })
  .map(compact);

/** The shortest message that a version takes. */
export function plainMessage(version: ProtocolVersion) {
  return version === '1.0'
    ? { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'hi' }] }
    : { kind: 'message', messageId: 'm1', role: 'user', parts: [{ kind: 'text', text: 'hi' }] };
}
