import { describe, expect, test } from 'vitest';
import { CODECS, methodFamily, resolveOperation, selectCodec } from '../../src/a2a/codec.ts';
import { PROTOCOL_VERSIONS } from '../../src/a2a/version.ts';

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
