import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CODECS } from '../../src/a2a/codec.ts';
import type { Part, Task } from '../../src/a2a/model.ts';
import { OPERATIONS, type Operation } from '../../src/a2a/operations.ts';
import { PROTOCOL_VERSIONS, type ProtocolVersion } from '../../src/a2a/version.ts';
import { compact, isRecord } from '../../src/a2a/wire-schema.ts';
import { expectOfficial, expectOfficialDefinition } from './oracles.ts';
import { artifacts, events, messages, plainMessage, pushConfigs, tasks } from './samples.ts';
import { STRICT_WIRE } from './strict-wire.ts';

/** What 0.3 cannot say: file name and media type of text and data parts, and empty metadata beside its mark for wrapped data. */
function sayable(version: ProtocolVersion, part: Part): Part {
  if (version === '1.0' || part.kind === 'raw' || part.kind === 'url') return part;
  const { filename: _filename, mediaType: _mediaType, metadata, ...rest } = part;
  const wrapped = part.kind === 'data' && !isRecord(part.data);
  return compact({ ...rest, metadata: wrapped && Object.keys(metadata ?? {}).length === 0 ? undefined : metadata });
}

describe.each(PROTOCOL_VERSIONS)('the %s codec', (version) => {
  const codec = CODECS[version];
  const strict = STRICT_WIRE[version];

  test('has a method for every operation', () => {
    const methods = version === '1.0' ? METHOD_NAMES_10 : METHOD_NAMES_03;
    expect(new Set(methods.map((method) => codec.operationOf(method)))).toEqual(new Set(OPERATIONS));
  });

  test('knows no method of the objects that its tables are made of', () => {
    for (const method of ['constructor', '__proto__', 'toString', '']) expect(codec.operationOf(method)).toBeNull();
  });

  test('emits tasks that are exact in every member', () => {
    fc.assert(
      fc.property(tasks, (task) => {
        const result = codec.encodeResult('get', task);
        expect(strict.task.safeParse(result).error?.issues ?? []).toEqual([]);
        expectOfficial(version, 'task', result);
        expect(codec.encodeResult('cancel', task)).toEqual(result);
      }),
    );
  });

  test('emits events and send results that are exact in every member', () => {
    fc.assert(
      fc.property(events, (event) => {
        const result = codec.encodeEvent(event);
        expect(strict.event.safeParse(result).error?.issues ?? []).toEqual([]);
        expectOfficial(version, 'event', result);
        if (event.kind === 'task' || event.kind === 'message') {
          expect(codec.encodeResult('send', event)).toEqual(result);
          expectOfficial(version, 'sendResult', result);
        }
      }),
    );
  });

  test('emits push configs that are exact in every member', () => {
    fc.assert(
      fc.property(fc.array(pushConfigs, { maxLength: 3 }), (configs) => {
        const listed = codec.encodeResult('pushList', { configs, nextPageToken: '' });
        expect(strict.pushList.safeParse(listed).error?.issues ?? []).toEqual([]);
        expectOfficial(version, 'pushList', listed);
        for (const config of configs) {
          const single = codec.encodeResult('pushGet', config);
          expect(strict.pushConfig.safeParse(single).error?.issues ?? []).toEqual([]);
          expectOfficial(version, 'pushConfig', single);
          expect(codec.encodeResult('pushCreate', config)).toEqual(single);
        }
      }),
    );
  });

  test('emits a page with all four members, and artifacts only where the task has them', () => {
    const task: Task = { id: 't', contextId: 'c', status: { state: 'working' } };
    const page = { tasks: [task, { ...task, artifacts: [] }], nextPageToken: '', pageSize: 50, totalSize: 2 };
    const result = codec.encodeResult('list', page) as { tasks: object[] };
    expect(strict.page.safeParse(result).error?.issues ?? []).toEqual([]);
    expect(Object.keys(result)).toEqual(['tasks', 'nextPageToken', 'pageSize', 'totalSize']);
    expect(result.tasks.map((entry) => Object.hasOwn(entry, 'artifacts'))).toEqual([false, true]);
    if (version === '1.0') expectOfficialDefinition('1.0', 'ListTasksResponse', result);
  });

  test('answers a deleted push config with null', () => {
    expect(codec.encodeResult('pushDelete', undefined)).toBeNull();
  });

  test('reads back the message that it writes', () => {
    fc.assert(
      fc.property(messages, (message) => {
        const wire = codec.encodeEvent({ kind: 'message', message });
        const params = { message: version === '1.0' ? wire['message'] : wire };
        expect(codec.decodeParams('send', JSON.parse(JSON.stringify(params)))).toEqual({
          ok: true,
          value: {
            // JSON has no -0.
            message: JSON.parse(JSON.stringify({ ...message, parts: message.parts.map((part) => sayable(version, part)) })),
            configuration: { returnImmediately: false },
          },
        });
      }),
    );
  });

  test('reads back the push config that it writes', () => {
    fc.assert(
      fc.property(pushConfigs, ({ taskId, ...config }) => {
        const wire = codec.encodeResult('pushCreate', { taskId, ...config });
        expect(codec.decodeParams('pushCreate', wire)).toEqual({ ok: true, value: { taskId, config } });
      }),
    );
  });

  test('gives every artifact its id and at least one part', () => {
    fc.assert(
      fc.property(artifacts, (artifact) => {
        const event = codec.encodeEvent({ kind: 'artifact', taskId: 't', contextId: 'c', artifact });
        const update = (version === '1.0' ? event['artifactUpdate'] : event) as { artifact: { artifactId: string; parts: object[] } };
        expect(update.artifact.artifactId).toBe(artifact.artifactId);
        expect(update.artifact.parts).toHaveLength(artifact.parts.length);
      }),
    );
  });

  test('says whether a stream closes only where the version has a word for it', () => {
    const event = codec.encodeEvent({ kind: 'status', taskId: 't', contextId: 'c', status: { state: 'completed' }, final: true });
    expect(JSON.stringify(event).includes('final')).toBe(version === '0.3');
  });

  test('writes false flags of an artifact as its version does: 0.3 in full, 1.0 by leaving them out', () => {
    const artifact = { artifactId: 'a', parts: [{ kind: 'text', text: 'x' }] } as const;
    const text = JSON.stringify(
      codec.encodeEvent({ kind: 'artifact', taskId: 't', contextId: 'c', artifact, append: false, lastChunk: true }),
    );
    expect(text.includes('append')).toBe(version === '0.3');
    expect(text).toContain('"lastChunk":true');
  });

  test('writes times in UTC with milliseconds and leaves out what is no time', () => {
    const at = (timestamp: string) =>
      JSON.stringify(codec.encodeResult('get', { id: 't', contextId: 'c', status: { state: 'working', timestamp } }));
    expect(at('2026-01-02T03:04:05+01:00')).toContain('"timestamp":"2026-01-02T02:04:05.000Z"');
    expect(at('yesterday')).not.toContain('timestamp');
  });

  test.each(OPERATIONS)('refuses anything for %s without a throw, and names what is wrong', (operation: Operation) => {
    fc.assert(
      fc.property(fc.oneof(fc.anything(), hostileParams), (params) => {
        const decoded = codec.decodeParams(operation, params);
        if (decoded.ok) return;
        expect(decoded.error.kind).toBe('invalid');
        expect(decoded.error.message.length).toBeLessThan(8_000);
        if (decoded.error.kind === 'invalid') expect(decoded.error.issues.length).toBeGreaterThan(0);
      }),
      { numRuns: 100 },
    );
  });

  test.each([
    ['no message', {}, 'message'],
    ['a message that is a text', { message: 'hi' }, 'message'],
    ['no role', { message: { messageId: 'm', parts: [{ text: 'x', kind: 'text' }] } }, 'message.role'],
    ['an unknown role', { message: { messageId: 'm', role: 'system', parts: [{ text: 'x', kind: 'text' }] } }, 'message.role'],
    ['no parts', { message: { messageId: 'm', role: ROLE[version] } }, 'message.parts'],
    ['empty parts', { message: { messageId: 'm', role: ROLE[version], parts: [] } }, 'message.parts'],
    ['parts that are an object', { message: { messageId: 'm', role: ROLE[version], parts: {} } }, 'message.parts'],
    ['a part that is a text', { message: { messageId: 'm', role: ROLE[version], parts: ['hi'] } }, 'message.parts.0'],
    ['no messageId', { message: { role: ROLE[version], parts: [{ text: 'x', kind: 'text' }] } }, 'message.messageId'],
    ['an empty messageId', { message: { messageId: '', role: ROLE[version], parts: [{ text: 'x', kind: 'text' }] } }, 'message.messageId'],
    [
      'a messageId that is a number',
      { message: { messageId: 7, role: ROLE[version], parts: [{ text: 'x', kind: 'text' }] } },
      'message.messageId',
    ],
    [
      'metadata that is a list',
      { message: { messageId: 'm', role: ROLE[version], parts: [{ text: 'x', kind: 'text' }], metadata: [] } },
      'message.metadata',
    ],
  ])('refuses a send with %s and names the field', (_what, params, field) => {
    expect(refusedFields('send', params)).toContain(field);
    expect(refusedFields('stream', params)).toContain(field);
  });

  test.each([
    ['negative', -1],
    ['fractional', 1.5],
    ['textual', 'many'],
    ['too large', 2 ** 31],
  ])('refuses a historyLength that is %s', (_what, historyLength) => {
    expect(refusedFields('get', { id: 't', historyLength })).toEqual(['historyLength']);
    expect(refusedFields('send', { message: plainMessage(version), configuration: { historyLength } })).toEqual([
      'configuration.historyLength',
    ]);
  });

  test('keeps the difference between no historyLength and 0', () => {
    expect(codec.decodeParams('get', { id: 't' })).toEqual({ ok: true, value: { id: 't' } });
    expect(codec.decodeParams('get', { id: 't', historyLength: 0 })).toEqual({ ok: true, value: { id: 't', historyLength: 0 } });
    expect(codec.decodeParams('get', { id: 't', historyLength: 2_147_483_647 }).ok).toBe(true);
  });

  test.each([0, 101, -1, 1.5, '10x'])('refuses the page size %s', (pageSize) => {
    expect(refusedFields('list', { pageSize })).toEqual(['pageSize']);
  });

  test('fills the defaults of a list and takes times with offsets', () => {
    expect(codec.decodeParams('list', {})).toEqual({ ok: true, value: { pageSize: 50, includeArtifacts: false } });
    expect(codec.decodeParams('list', undefined)).toEqual({ ok: true, value: { pageSize: 50, includeArtifacts: false } });
    expect(codec.decodeParams('list', { statusTimestampAfter: '2026-01-02T03:04:05.1234+01:00' })).toMatchObject({
      value: { statusTimestampAfter: '2026-01-02T02:04:05.124Z' },
    });
  });

  test.each(['yesterday', '2026-01-02', '2026-13-02T00:00:00Z', '2026-02-30T00:00:00Z', 5])(
    'refuses the time %s',
    (statusTimestampAfter) => {
      expect(refusedFields('list', { statusTimestampAfter })).toEqual(['statusTimestampAfter']);
    },
  );

  test('refuses a state that does not exist', () => {
    expect(refusedFields('list', { status: 'TASK_STATE_SLEEPING' })).toEqual(['status']);
    expect(refusedFields('list', { status: 'constructor' })).toEqual(['status']);
  });

  test('reads null members as absent', () => {
    const message = { ...plainMessage(version), contextId: null, taskId: null, metadata: null, extensions: null, referenceTaskIds: null };
    expect(codec.decodeParams('send', { message, configuration: null, metadata: null, tenant: null })).toEqual(
      codec.decodeParams('send', { message: plainMessage(version) }),
    );
    expect(codec.decodeParams('get', { id: 't', historyLength: null })).toEqual({ ok: true, value: { id: 't' } });
  });

  test('ignores unknown members and members named like those of every object', () => {
    const text = JSON.stringify({ message: { ...plainMessage(version), tckUnknownField: 1 }, tckExtraParam: {} });
    const hostile = text.replace('{', '{"__proto__":{"polluted":true},"constructor":{"prototype":{}},');
    expect(codec.decodeParams('send', JSON.parse(hostile))).toEqual(codec.decodeParams('send', { message: plainMessage(version) }));
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  test('makes a messageId where our extension allows its absence', () => {
    const { messageId: _messageId, ...message } = plainMessage(version);
    const decoded = codec.decodeParams('send', { message }, { lenientMessageId: () => 'made' });
    expect(decoded).toMatchObject({ ok: true, value: { message: { messageId: 'made' } } });
    const own = codec.decodeParams('send', { message: plainMessage(version) }, { lenientMessageId: () => 'made' });
    expect(own).toMatchObject({ value: { message: { messageId: 'm1' } } });
  });

  test.each([
    ['a scheme that is no token', 'Bear er', 'x'],
    ['credentials with a line break', 'Bearer', 'k1\r\nX-Evil: 1'],
    ['blank credentials', 'Bearer', '  '],
    ['empty credentials', 'Bearer', ''],
    ['credentials that no header can carry', 'Bearer', 'schlüssel-\u{1f511}'],
  ])('refuses a push config with %s', (_what, scheme, credentials) => {
    const params =
      version === '1.0'
        ? { taskId: 't', url: 'https://example.com/', authentication: { scheme, credentials } }
        : { taskId: 't', pushNotificationConfig: { url: 'https://example.com/', authentication: { schemes: [scheme], credentials } } };
    expect(codec.decodeParams('pushCreate', params).ok).toBe(false);
  });

  test('takes a part of a megabyte unchanged', () => {
    const raw = Buffer.alloc(1_048_576, 7).toString('base64');
    const part = version === '1.0' ? { raw } : { kind: 'file', file: { bytes: raw } };
    const decoded = codec.decodeParams('send', { message: { ...plainMessage(version), parts: [part] } });
    expect(decoded.ok && decoded.value.message.parts).toEqual([{ kind: 'raw', raw }]);
  });

  test('keeps the complaints about a list of a thousand bad parts short', () => {
    const decoded = codec.decodeParams('send', { message: { ...plainMessage(version), parts: Array.from({ length: 1_000 }, () => 5) } });
    expect(!decoded.ok && decoded.error.kind === 'invalid' && decoded.error.issues.length).toBe(16);
  });

  function refusedFields(operation: Operation, params: unknown): readonly string[] {
    const decoded = codec.decodeParams(operation, params);
    if (decoded.ok || decoded.error.kind !== 'invalid') return [];
    return decoded.error.issues.map((issue) => issue.field);
  }
});

const ROLE = { '1.0': 'ROLE_USER', '0.3': 'user' } as const;

/** Objects with the right names and anything in them. */
const NAMES = [
  'message',
  'id',
  'taskId',
  'parts',
  'role',
  'kind',
  'text',
  'file',
  'data',
  'raw',
  'url',
  'metadata',
  'configuration',
] as const;
const LIST_NAMES = ['status', 'statusTimestampAfter', 'pageSize', 'historyLength', 'pushNotificationConfig', 'authentication'] as const;
const hostileParams = fc.letrec((tie) => ({
  node: fc.dictionary(fc.constantFrom(...NAMES, ...LIST_NAMES), tie('leaf'), { maxKeys: 8 }),
  leaf: fc.oneof({ maxDepth: 4 }, fc.anything({ maxDepth: 1 }), tie('node'), fc.array(tie('node'), { maxLength: 2 })),
})).node;

const METHOD_NAMES_10 = [
  'SendMessage',
  'SendStreamingMessage',
  'GetTask',
  'ListTasks',
  'CancelTask',
  'SubscribeToTask',
  'CreateTaskPushNotificationConfig',
  'GetTaskPushNotificationConfig',
  'ListTaskPushNotificationConfigs',
  'DeleteTaskPushNotificationConfig',
  'GetExtendedAgentCard',
];

const METHOD_NAMES_03 = [
  'message/send',
  'message/stream',
  'tasks/get',
  'tasks/list',
  'tasks/cancel',
  'tasks/resubscribe',
  'tasks/pushNotificationConfig/set',
  'tasks/pushNotificationConfig/get',
  'tasks/pushNotificationConfig/list',
  'tasks/pushNotificationConfig/delete',
  'agent/getAuthenticatedExtendedCard',
];
