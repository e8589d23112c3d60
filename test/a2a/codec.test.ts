import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CODECS, methodFamily, resolveOperation, selectCodec } from '../../src/a2a/codec.ts';
import type { Part, SendRequest, Task } from '../../src/a2a/model.ts';
import { OPERATIONS, type Operation } from '../../src/a2a/operations.ts';
import { PROTOCOL_VERSIONS, type ProtocolVersion } from '../../src/a2a/version.ts';
import { compact, isRecord } from '../../src/a2a/wire-schema.ts';
import { expectOfficial, expectOfficialDefinition } from './oracles.ts';
import { artifacts, events, messages, pushConfigs, tasks } from './samples.ts';
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
            message: { ...message, parts: message.parts.map((part) => sayable(version, part)) },
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

function plainMessage(version: ProtocolVersion) {
  return version === '1.0'
    ? { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'hi' }] }
    : { kind: 'message', messageId: 'm1', role: 'user', parts: [{ kind: 'text', text: 'hi' }] };
}

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

describe('the choice of a version', () => {
  test.each([
    [undefined, undefined, '0.3'],
    ['', '', '0.3'],
    ['  ', undefined, '0.3'],
    ['1.0', undefined, '1.0'],
    ['1.0.1', undefined, '1.0'],
    [' 1.0 ', undefined, '1.0'],
    ['0.3', undefined, '0.3'],
    ['0.3.0', undefined, '0.3'],
    [undefined, '1.0', '1.0'],
    ['', '1.0', '1.0'],
    ['0.3', '1.0', '0.3'],
  ])('header %s and query %s mean %s', (versionHeader, versionQuery, version) => {
    expect(selectCodec({ versionHeader, versionQuery })).toMatchObject({ ok: true, value: { version } });
  });

  test.each(['99.0', '0.2', '0.2.5', '1', '1.1', '2.0', '1.0.0.0', 'v1.0', '1.0, 0.3', 'x'.repeat(10_000)])(
    'refuses version %# and lists those that are served',
    (versionHeader) => {
      const chosen = selectCodec({ versionHeader });
      expect(chosen.ok).toBe(false);
      if (chosen.ok) return;
      expect(chosen.error.message.length).toBeLessThan(200);
      expect(CODECS['1.0'].encodeError(chosen.error)).toMatchObject({
        code: -32009,
        httpStatus: 200,
        message: expect.stringContaining('1.0, 0.3'),
      });
    },
  );
});

describe('the choice of an operation', () => {
  test.each([
    ['tasks/subscribe', 'subscribe'],
    ['pushNotificationConfig/set', 'pushCreate'],
    ['pushNotificationConfig/get', 'pushGet'],
    ['pushNotificationConfig/list', 'pushList'],
    ['pushNotificationConfig/delete', 'pushDelete'],
    ['getExtendedAgentCard', 'extendedCard'],
    ['tasks/list', 'list'],
  ] as const)("the source document's spelling %s is %s without a version header", (method, operation) => {
    expect(resolveOperation(CODECS['0.3'], method)).toEqual({ ok: true, value: operation });
    expect(resolveOperation(CODECS['1.0'], method).ok).toBe(false);
  });

  test.each([
    ['0.3', 'SendMessage', 'A2A-Version: 1.0'],
    ['1.0', 'message/send', 'A2A-Version: 0.3'],
  ] as const)('%s refuses %s with a hint which version to ask for', (version, method, hint) => {
    const resolved = resolveOperation(CODECS[version], method);
    expect(resolved.ok).toBe(false);
    if (!resolved.ok)
      expect(CODECS[version].encodeError(resolved.error)).toMatchObject({ code: -32601, message: expect.stringContaining(hint) });
  });

  test.each(['tasks/send', 'SendMessages', 'constructor', ''])('both versions refuse %j as unknown', (method) => {
    for (const version of PROTOCOL_VERSIONS) {
      const resolved = resolveOperation(CODECS[version], method);
      expect(!resolved.ok && CODECS[version].encodeError(resolved.error).code).toBe(-32601);
    }
  });

  test.each([
    ['_cleveragents/plan/status', 'extension'],
    ['session.create', 'extension'],
    ['registry.list_tools', 'extension'],
    ['rpc.discover', 'extension'],
    ['message/send', 'standard'],
    ['GetTask', 'standard'],
    ['foo/bar', 'standard'],
  ] as const)('%s is answered with the codes of the %s family', (method, family) => {
    expect(methodFamily(method)).toBe(family);
  });
});

describe('1.0 input', () => {
  const decode = (params: unknown) => CODECS['1.0'].decodeParams('send', params);
  const withPart = (part: unknown): SendRequest['message']['parts'] | string => {
    const decoded = decode({ message: { messageId: 'm', role: 'ROLE_USER', parts: [part] } });
    return decoded.ok ? decoded.value.message.parts : decoded.error.message;
  };

  test('takes snake_case names, enum numbers and integers as texts', () => {
    const message = {
      message_id: 'm',
      role: 1,
      parts: [{ text: 'x', media_type: 'text/plain' }],
      context_id: 'c',
      task_id: 't',
      reference_task_ids: ['r'],
    };
    const configuration = { history_length: '3', return_immediately: true, accepted_output_modes: ['text/plain'] };
    expect(decode({ message, configuration })).toEqual({
      ok: true,
      value: {
        message: {
          messageId: 'm',
          role: 'user',
          parts: [{ kind: 'text', text: 'x', mediaType: 'text/plain' }],
          contextId: 'c',
          taskId: 't',
          referenceTaskIds: ['r'],
        },
        configuration: { acceptedOutputModes: ['text/plain'], historyLength: 3, returnImmediately: true },
      },
    });
    const list = {
      context_id: 'c',
      status: 6,
      page_size: 5,
      page_token: 'p',
      include_artifacts: true,
      status_timestamp_after: '2026-01-01T00:00:00Z',
    };
    expect(CODECS['1.0'].decodeParams('list', list)).toEqual({
      ok: true,
      value: {
        contextId: 'c',
        state: 'input-required',
        pageSize: 5,
        pageToken: 'p',
        includeArtifacts: true,
        statusTimestampAfter: '2026-01-01T00:00:00.000Z',
      },
    });
  });

  test.each([0, 'TASK_STATE_UNSPECIFIED', null, undefined])('reads the status filter %s as every state', (status) => {
    expect(CODECS['1.0'].decodeParams('list', { status })).toMatchObject({ ok: true, value: { pageSize: 50 } });
  });

  test.each([0, 'ROLE_UNSPECIFIED', 3, 'user'])('refuses the role %s', (role) => {
    expect(decode({ message: { messageId: 'm', role, parts: [{ text: 'x' }] } }).ok).toBe(false);
  });

  test.each([
    ['text', { text: '' }, { kind: 'text', text: '' }],
    ['base64url without padding', { raw: '-_8' }, { kind: 'raw', raw: '+/8=' }],
    ['a url', { url: 'https://example.com/a' }, { kind: 'url', url: 'https://example.com/a' }],
    ['a list as data', { data: [1, null] }, { kind: 'data', data: [1, null] }],
    ['null as data', { data: null }, { kind: 'data', data: null }],
    ['false as data', { data: false }, { kind: 'data', data: false }],
    ['text beside members that are written out as null', { text: 'x', raw: null, url: null, data: null }, { kind: 'text', text: 'x' }],
    [
      'a file name and an empty media type',
      { text: 'x', filename: 'a.txt', mediaType: '' },
      { kind: 'text', text: 'x', filename: 'a.txt' },
    ],
  ])('takes a part with %s', (_what, part, expected) => {
    expect(withPart(part)).toEqual([expected]);
  });

  test.each([
    ['no content', {}],
    ['two contents', { text: 'x', url: 'https://example.com' }],
    ['text and data', { text: 'x', data: {} }],
    ['bytes that are no base64', { raw: 'a*b' }],
    ['bytes of an impossible length', { raw: 'abcde' }],
    ['too much padding', { raw: 'ab===' }],
    ['text that is a number', { text: 5 }],
    ['0.3 file', { kind: 'file', file: { bytes: '' } }],
  ])('refuses a part with %s', (_what, part) => {
    expect(withPart(part)).toContain('message.parts.0');
  });

  test('carries the tenant', () => {
    for (const operation of ['get', 'cancel', 'subscribe'] as const) {
      expect(CODECS['1.0'].decodeParams(operation, { id: 't', tenant: 'acme' })).toEqual({ ok: true, value: { id: 't', tenant: 'acme' } });
    }
    expect(CODECS['1.0'].decodeParams('extendedCard', { tenant: 'acme' })).toEqual({ ok: true, value: { tenant: 'acme' } });
  });

  test('waits unless returnImmediately is true', () => {
    for (const configuration of [undefined, {}, { returnImmediately: false }]) {
      expect(decode({ message: plainMessage('1.0'), configuration })).toMatchObject({
        value: { configuration: { returnImmediately: false } },
      });
    }
  });

  test('takes the webhook of a send and ignores its taskId', () => {
    const taskPushNotificationConfig = {
      taskId: 'ignored',
      url: 'https://example.com',
      authentication: { scheme: 'Bearer', credentials: 'k' },
    };
    expect(decode({ message: plainMessage('1.0'), configuration: { taskPushNotificationConfig } })).toMatchObject({
      value: { configuration: { pushConfig: { url: 'https://example.com', authentication: { schemes: ['Bearer'], credentials: 'k' } } } },
    });
  });

  test.each([
    ['pushCreate', { url: 'https://example.com' }, 'taskId'],
    ['pushCreate', { taskId: 't' }, 'url'],
    ['pushGet', { taskId: 't' }, 'id'],
    ['pushDelete', { id: 'c' }, 'taskId'],
    ['get', {}, 'id'],
    ['cancel', { id: '' }, 'id'],
    ['subscribe', { id: 5 }, 'id'],
  ] as const)('%s refuses %j, naming %s', (operation, params, field) => {
    const decoded = CODECS['1.0'].decodeParams(operation, params);
    expect(!decoded.ok && decoded.error.kind === 'invalid' && decoded.error.issues.map((issue) => issue.field)).toEqual([field]);
  });
});

describe('0.3 input', () => {
  const decode = (params: unknown, lenient = false) =>
    CODECS['0.3'].decodeParams('send', params, lenient ? { lenientMessageId: () => 'made' } : {});
  const withPart = (part: unknown): SendRequest['message']['parts'] | string => {
    const decoded = decode({ message: { messageId: 'm', role: 'user', parts: [part] } });
    return decoded.ok ? decoded.value.message.parts : decoded.error.message;
  };

  test.each([
    ['text', { kind: 'text', text: 'x', metadata: { a: 1 } }, { kind: 'text', text: 'x', metadata: { a: 1 } }],
    [
      'bytes',
      { kind: 'file', file: { bytes: 'dGNr', name: 'a', mimeType: 'text/plain' } },
      { kind: 'raw', raw: 'dGNr', filename: 'a', mediaType: 'text/plain' },
    ],
    ['a uri', { kind: 'file', file: { uri: 'https://example.com' } }, { kind: 'url', url: 'https://example.com' }],
    ['data', { kind: 'data', data: { k: null } }, { kind: 'data', data: { k: null } }],
    [
      'a marked value',
      { kind: 'data', data: { value: [1] }, metadata: { data_part_compat: true, a: 1 } },
      { kind: 'data', data: [1], metadata: { a: 1 } },
    ],
  ])('takes a part with %s', (_what, part, expected) => {
    expect(withPart(part)).toEqual([expected]);
  });

  test.each([
    ['no kind', { text: 'x' }, 'message.parts.0.kind'],
    ['an unknown kind', { kind: 'image' }, 'message.parts.0.kind'],
    ['a kind named like a member of every object', { kind: 'constructor' }, 'message.parts.0.kind'],
    ['another content than its kind', { kind: 'text', data: {} }, 'message.parts.0.text'],
    ['two contents', { kind: 'text', text: 'x', data: {} }, 'message.parts.0'],
    ['a file without content', { kind: 'file', file: {} }, 'message.parts.0.file'],
    ['a file with both contents', { kind: 'file', file: { bytes: '', uri: 'u' } }, 'message.parts.0.file'],
    ['data that is a list', { kind: 'data', data: [] }, 'message.parts.0.data'],
  ])('refuses a part with %s', (_what, part, field) => {
    expect(withPart(part)).toContain(`${field}: `);
  });

  test.each([
    [undefined, false],
    [{}, false],
    [{ blocking: true }, false],
    [{ blocking: false }, true],
  ])('with configuration %j returnImmediately is %s', (configuration, returnImmediately) => {
    expect(decode({ message: plainMessage('0.3'), configuration })).toMatchObject({ value: { configuration: { returnImmediately } } });
  });

  test("takes the source document's example message only when the extension is active", () => {
    const message = { role: 'user', parts: [{ text: 'Approved — proceed with the apply phase.' }], contextId: 'task_01HXRCF1' };
    expect(decode({ message }).ok).toBe(false);
    expect(decode({ message }, true)).toEqual({
      ok: true,
      value: {
        message: { ...message, messageId: 'made', parts: [{ kind: 'text', text: 'Approved — proceed with the apply phase.' }] },
        configuration: { returnImmediately: false },
      },
    });
  });

  test('refuses a wrong kind of message', () => {
    expect(decode({ message: { ...plainMessage('0.3'), kind: 'task' } }).ok).toBe(false);
  });

  test('leaves the choice of a push config open where the client names none', () => {
    expect(CODECS['0.3'].decodeParams('pushGet', { id: 't' })).toEqual({ ok: true, value: { taskId: 't' } });
    expect(CODECS['0.3'].decodeParams('pushDelete', { id: 't', pushNotificationConfigId: 'c' })).toEqual({
      ok: true,
      value: { taskId: 't', configId: 'c' },
    });
  });

  test('wraps data that is no object, with the mark that the SDKs read', () => {
    const part = compact({ kind: 'data' as const, data: [1, 2] });
    const message = CODECS['0.3'].encodeEvent({ kind: 'message', message: { messageId: 'm', role: 'agent', parts: [part] } });
    expect(message['parts']).toEqual([{ kind: 'data', data: { value: [1, 2] }, metadata: { data_part_compat: true } }]);
  });
});
