import { describe, expect, test } from 'vitest';
import { CODECS, resolveOperation, selectCodec } from '../../src/a2a/codec.ts';
import { parseEnvelope, successResponse } from '../../src/a2a/envelope.ts';
import { isStreaming } from '../../src/a2a/operations.ts';
import { responseFrame } from '../../src/a2a/sse.ts';
import { PROTOCOL_VERSIONS, type ProtocolVersion } from '../../src/a2a/version.ts';
import type { JsonObject, JsonValue } from '../../src/core/json.ts';
import { expectOfficial, expectOfficialDefinition, ORACLES_PRESENT, ORACLES_REASON, readOracle } from './oracles.ts';
import { readEvent, readPushConfig, readTask } from './read-wire.ts';

interface Recorded {
  readonly label: string;
  readonly request: { readonly method: string; readonly headers: Readonly<Record<string, string>>; readonly body?: JsonObject };
  readonly response: { readonly body?: JsonObject; readonly sse?: readonly string[] };
}

/** Calls that the official SDK clients made and the answers that the official servers gave. */
const recorded = (version: ProtocolVersion): readonly Recorded[] =>
  ORACLES_PRESENT ? (readOracle(`recorded/${version}-JSONRPC.json`) as Recorded[]).filter((call) => call.request.body !== undefined) : [];

const noId = () => {
  throw new Error('every recorded request has an id');
};

describe.skipIf(!ORACLES_PRESENT).each(PROTOCOL_VERSIONS)(`recorded traffic of the %s SDK${ORACLES_REASON}`, (version) => {
  const calls = recorded(version);

  test('is there', () => {
    expect(calls.length).toBeGreaterThan(20);
  });

  test.each(calls.map((call) => [call.label, call] as const))(
    '%s: the request is understood and the answer is written alike',
    (_label, call) => {
      const parsed = parseEnvelope(JSON.stringify(call.request.body), noId);
      expect(parsed.ok).toBe(true);
      const codec = selectCodec({ versionHeader: call.request.headers['a2a-version'] });
      expect(codec).toMatchObject({ ok: true, value: { version } });
      if (!parsed.ok || !codec.ok) return;
      const operation = resolveOperation(codec.value, parsed.value.method);
      expect(operation.ok).toBe(true);
      if (!operation.ok) return;
      expect(codec.value.decodeParams(operation.value, parsed.value.params)).toMatchObject({ ok: true });

      const { body, sse } = call.response;
      if (isStreaming(operation.value)) {
        for (const frame of (sse ?? []).filter((text) => text.startsWith('data: '))) {
          const { result } = JSON.parse(frame.slice('data: '.length)) as { result: JsonValue };
          const written = codec.value.encodeEvent(readEvent(version, result));
          expect(written).toEqual(result);
          expect(JSON.parse(responseFrame(parsed.value.id, written).slice('data: '.length))).toEqual({
            jsonrpc: '2.0',
            id: parsed.value.id,
            result,
          });
        }
        return;
      }
      if (body === undefined || 'error' in body) return;
      const result = body['result'] as JsonValue;
      expect(successResponse(parsed.value.id, rewritten(version, operation.value, result))).toMatchObject(body);
    },
  );

  function rewritten(version: ProtocolVersion, operation: string, result: JsonValue): JsonValue {
    const codec = CODECS[version];
    switch (operation) {
      case 'send': {
        const event = readEvent(version, result);
        return event.kind === 'task' || event.kind === 'message' ? codec.encodeResult('send', event) : null;
      }
      case 'get':
      case 'cancel':
        return codec.encodeResult('get', readTask(version, result));
      case 'list': {
        const page = result as { tasks: JsonValue[]; nextPageToken: string; pageSize: number; totalSize: number };
        return codec.encodeResult('list', { ...page, tasks: page.tasks.map((task) => readTask(version, task)) });
      }
      case 'pushList': {
        const configs = (version === '1.0' ? (result as { configs: JsonValue[] }).configs : result) as readonly JsonValue[];
        return codec.encodeResult('pushList', { configs: configs.map((config) => readPushConfig(version, config)), nextPageToken: '' });
      }
      case 'pushDelete':
        return codec.encodeResult('pushDelete', undefined);
      default:
        return codec.encodeResult('pushGet', readPushConfig(version, result));
    }
  }
});

describe.skipIf(!ORACLES_PRESENT)(`the official schemas${ORACLES_REASON}`, () => {
  test.each(PROTOCOL_VERSIONS)('refuse a %s task with a wrong state, so that the checks against them can fail', (version) => {
    const task = { id: 't', contextId: 'c', status: { state: 'SLEEPING' }, ...(version === '0.3' ? { kind: 'task' } : {}) };
    expect(() => expectOfficial(version, 'task', task)).toThrow();
  });

  test('refuse a 1.0 member that the proto does not name', () => {
    expect(() => expectOfficialDefinition('1.0', 'Message', { messageId: 'm', kind: 'message' })).toThrow();
  });
});
