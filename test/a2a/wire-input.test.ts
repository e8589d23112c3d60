import { describe, expect, test } from 'vitest';
import { CODECS } from '../../src/a2a/codec.ts';
import type { SendRequest } from '../../src/a2a/model.ts';
import { compact } from '../../src/a2a/wire-schema.ts';
import { plainMessage } from './samples.ts';

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

describe('what is wrong', () => {
  test.each([
    ['1.0', { text: 5 }, 'message.parts.0.text', 'must be a string, not a number'],
    ['1.0', { text: 'x', filename: [] }, 'message.parts.0.filename', 'must be a string, not an array'],
    ['1.0', { url: 'https://a.b', mediaType: { a: 1 } }, 'message.parts.0.mediaType', 'must be a string, not an object'],
    ['0.3', { kind: 'text', text: true }, 'message.parts.0.text', 'must be a string, not a boolean'],
    ['0.3', { kind: 'file', file: 'x' }, 'message.parts.0.file', 'must be an object, not a string'],
  ] as const)('in %s with the part %j is said by its field, for people', (version, part, field, message) => {
    const role = version === '1.0' ? 'ROLE_USER' : 'user';
    const decoded = CODECS[version].decodeParams('send', { message: { kind: 'message', messageId: 'm', role, parts: [part] } });
    expect(decoded).toMatchObject({ ok: false, error: { kind: 'invalid', issues: [{ field, message }] } });
    if (!decoded.ok) expect(decoded.error.message).not.toMatch(/Invalid input|received/);
  });
});
