/** A2A 0.3 over HTTP+JSON as data: what its peers really send, and what comes back. */
import { describe, expect, test } from 'vitest';
import { CODECS, REST_CODECS } from '../../src/a2a/codec.ts';
import type { Operation } from '../../src/a2a/operations.ts';
import { restError } from '../../src/a2a/rest-error.ts';
import { matchRest } from '../../src/a2a/rest-routes.ts';
import { ORACLES_PRESENT, ORACLES_REASON, readOracle } from './oracles.ts';
import { STRICT_REST_03 } from './strict-wire.ts';

const rest = REST_CODECS['0.3'];
const content = [{ text: 'hi' }];
const message = { messageId: 'm', role: 'ROLE_USER', content };

function decoded(operation: Operation, params: object): unknown {
  const result = rest.decodeParams(operation, params);
  if (!result.ok) throw new Error(JSON.stringify(result.error));
  return result.value;
}

describe('a message of 0.3 over HTTP+JSON', () => {
  test.each([
    ['no configuration', undefined, false],
    ['a configuration that leaves its default out', { acceptedOutputModes: ['text/plain'] }, true],
    ['blocking: false', { blocking: false }, true],
    ['blocking: true', { blocking: true }, false],
  ])('with %s waits unless it says otherwise', (_name, configuration, returnImmediately) => {
    expect(decoded('send', { message, configuration })).toMatchObject({ configuration: { returnImmediately } });
  });

  test('has both spellings of names, and roles by name or number', () => {
    const neutral = { messageId: 'm', role: 'user', contextId: 'c', taskId: 't', parts: [{ kind: 'text', text: 'hi' }] };
    expect(decoded('send', { message: { message_id: 'm', role: 1, context_id: 'c', task_id: 't', content } })).toMatchObject({
      message: neutral,
    });
    expect(decoded('send', { message: { ...message, contextId: 'c', taskId: 't' } })).toMatchObject({ message: neutral });
  });

  test('has parts of every kind', () => {
    const parts = [
      { text: '' },
      { file: { fileWithBytes: '-_8', mimeType: 'image/png' } },
      { file: { file_with_uri: 'https://example.com/a', mime_type: 'text/plain' } },
      { data: { data: { a: [1, null] } } },
    ];
    expect(decoded('send', { message: { ...message, content: parts } })).toMatchObject({
      message: {
        parts: [
          { kind: 'text', text: '' },
          { kind: 'raw', raw: '+/8=', mediaType: 'image/png' },
          { kind: 'url', url: 'https://example.com/a', mediaType: 'text/plain' },
          { kind: 'data', data: { a: [1, null] } },
        ],
      },
    });
  });

  test.each([
    ['no content', { content: undefined }, 'message.content'],
    ['an empty content', { content: [] }, 'message.content'],
    ['a part of nothing', { content: [{}] }, 'message.content.0'],
    ['a part of two kinds', { content: [{ text: 'a', data: { data: {} } }] }, 'message.content.0'],
    ['a file of nothing', { content: [{ file: { mimeType: 'a/b' } }] }, 'message.content.0.file'],
    ['bytes that are none', { content: [{ file: { fileWithBytes: '***' } }] }, 'message.content.0.file.fileWithBytes'],
    ['data that is a list', { content: [{ data: { data: [] } }] }, 'message.content.0.data.data'],
    ['the role of 0.3 over JSON-RPC', { role: 'user' }, 'message.role'],
    ['no id', { messageId: '' }, 'message.messageId'],
  ])('with %s is refused by its field', (_name, members, field) => {
    const result = rest.decodeParams('send', { message: { ...message, ...members } });
    expect(result.ok ? null : result.error).toMatchObject({ kind: 'invalid', issues: [{ field }] });
  });
});

describe('a webhook of 0.3 over HTTP+JSON', () => {
  const url = 'https://hooks.example/a';
  const name = 'tasks/t/pushNotificationConfigs/from-name';
  test.each([
    ['the resource', { name, pushNotificationConfig: { id: 'own', url } }, 'own'],
    ['the resource whose config has no id', { name, pushNotificationConfig: { id: '', url, token: '' } }, 'from-name'],
    ['the request', { parent: 'tasks/t', configId: 'asked', config: { name: '', pushNotificationConfig: { url } } }, 'asked'],
    ['the request in snake_case', { parent: 'tasks/t', config_id: 'asked', config: { push_notification_config: { url } } }, 'asked'],
    ['no id at all', { pushNotificationConfig: { url } }, undefined],
  ])('is made by %s', (_name, body, id) => {
    const config = id === undefined ? { url } : { id, url };
    expect(decoded('pushCreate', { ...body, taskId: 't' })).toEqual({ taskId: 't', config });
  });

  test('comes back as a resource', () => {
    const config = { id: 'c', taskId: 't', url, authentication: { schemes: ['Bearer'] } };
    const shown = rest.encodeResult('pushGet', config);
    STRICT_REST_03.pushConfig.parse(shown);
    expect(shown).toEqual({
      name: 'tasks/t/pushNotificationConfigs/c',
      pushNotificationConfig: { id: 'c', url, authentication: { schemes: ['Bearer'] } },
    });
    expect(rest.encodeResult('pushList', { configs: [config], nextPageToken: '' })).toEqual({ configs: [shown] });
  });
});

test('a deletion is answered with an object where a body is parsed, and with null in a JSON-RPC response', () => {
  expect(REST_CODECS['1.0'].encodeResult('pushDelete', undefined)).toEqual({});
  expect(CODECS['1.0'].encodeResult('pushDelete', undefined)).toBeNull();
});

test('data that is no object comes in one', () => {
  const event = { kind: 'message', message: { messageId: 'm', role: 'agent', parts: [{ kind: 'data', data: [1] }] } } as const;
  expect(rest.encodeEvent(event)).toEqual({
    message: { messageId: 'm', role: 'ROLE_AGENT', content: [{ data: { data: { value: [1] } } }] },
  });
});

test.each([
  ['TASK_NOT_CANCELABLE', 400, 'FAILED_PRECONDITION', -32002],
  ['PUSH_NOTIFICATION_NOT_SUPPORTED', 400, 'FAILED_PRECONDITION', -32003],
  ['UNSUPPORTED_OPERATION', 400, 'FAILED_PRECONDITION', -32004],
  ['CONTENT_TYPE_NOT_SUPPORTED', 400, 'INVALID_ARGUMENT', -32005],
  ['INVALID_AGENT_RESPONSE', 500, 'INTERNAL', -32006],
  ['EXTENDED_AGENT_CARD_NOT_CONFIGURED', 400, 'FAILED_PRECONDITION', -32007],
  ['EXTENSION_SUPPORT_REQUIRED', 400, 'FAILED_PRECONDITION', -32008],
  ['VERSION_NOT_SUPPORTED', 400, 'FAILED_PRECONDITION', -32009],
])('the error %s has HTTP %i, %s and the code %i', (reason, httpStatus, status, code) => {
  const refusal = { kind: 'invalid_state', message: 'no', details: { reason } } as const;
  const current = restError(refusal, { version: '1.0' });
  expect(current).toMatchObject({
    httpStatus,
    body: { error: { code: httpStatus, status, details: [{ reason, domain: 'a2a-protocol.org' }] } },
  });
  expect(restError(refusal, { version: '0.3' })).toMatchObject({ httpStatus, body: { code, message: 'no' } });
});

interface Exchange {
  readonly label: string;
  readonly request: { readonly method: string; readonly url: string; readonly body?: object };
}

describe.skipIf(!ORACLES_PRESENT)(`recorded traffic of other servers' clients${ORACLES_REASON}`, () => {
  test.each(['1.0', '0.3'] as const)('of %s has a route, and its parameters are read', (version) => {
    const exchanges = readOracle(`recorded/${version}-HTTP_JSON.json`) as readonly Exchange[];
    const refused = exchanges.flatMap(({ label, request: { method, url, body } }) => {
      const path = new URL(url).pathname.replace('/a2a/rest', '');
      const match = matchRest(version, method, path);
      if (path.startsWith('/.well-known/')) return [];
      if (match?.kind !== 'route') return [`${label}: ${method} ${path}`];
      const asked = Object.fromEntries([...new URL(url).searchParams].map(([name, text]) => [name, text === 'false' ? false : text]));
      const result = REST_CODECS[version].decodeParams(match.operation, { ...asked, ...body, ...match.variables });
      return result.ok ? [] : [`${label}: ${result.error.message}`];
    });
    expect(refused).toEqual([]);
    expect(exchanges.length).toBeGreaterThan(20);
  });
});
