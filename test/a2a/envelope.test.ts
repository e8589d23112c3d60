import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { errorResponse, parseEnvelope, successResponse } from '../../src/a2a/envelope.ts';
import { extensionError, standardError } from '../../src/a2a/errors.ts';
import { notFound } from '../../src/core/refusal.ts';

const parse = (body: unknown) => parseEnvelope(typeof body === 'string' ? body : JSON.stringify(body), () => 'generated');

/** Objects in objects, `depth` deep in all. */
function nested(depth: number): string {
  return `${'{"a":'.repeat(depth - 1)}{}${'}'.repeat(depth - 1)}`;
}

describe('the id of a request', () => {
  test.each([
    ['a string', '"abc"', 'abc'],
    ['an integer', '7', 7],
    ['zero', '0', 0],
    ['a negative integer', '-3', -3],
    ['an integer written with a point', '1.0', 1],
    ['null', 'null', null],
    ['an empty string', '""', 'generated'],
  ])('%s is answered', (_what, id, expected) => {
    expect(parse(`{"jsonrpc":"2.0","method":"m","id":${id}}`)).toEqual({ ok: true, value: { id: expected, method: 'm', params: {} } });
  });

  test('that is absent is generated, also for a refusal', () => {
    expect(parse({ jsonrpc: '2.0', method: 'm' })).toMatchObject({ value: { id: 'generated' } });
    expect(parse({ jsonrpc: '1.0', method: 'm' })).toMatchObject({ ok: false, error: { id: 'generated' } });
  });

  test.each([['{}'], ['[]'], ['[1]'], ['true'], ['1.5'], ['1e400'], ['12345678901234567890']])('%s is refused with id null', (id) => {
    const parsed = parse(`{"jsonrpc":"2.0","method":"m","id":${id}}`);
    expect(codeOf(parsed)).toBe(-32600);
    expect(parsed).toMatchObject({ error: { id: null } });
  });
});

describe('the envelope', () => {
  test.each([
    ['an empty body', '', -32700, null],
    ['a body that is cut off', '{"jsonrpc":', -32700, null],
    ['a body with a trailing comma', '{"jsonrpc":"2.0",}', -32700, null],
    ['an empty batch', '[]', -32600, null],
    ['a batch', '[{"jsonrpc":"2.0","method":"m","id":1}]', -32600, null],
    ['a text', '"hi"', -32600, null],
    ['null', 'null', -32600, null],
    ['no jsonrpc', '{"method":"m","id":1}', -32600, 1],
    ['another jsonrpc', '{"jsonrpc":"1.0","method":"m","id":1}', -32600, 1],
    ['a jsonrpc that is a number', '{"jsonrpc":2.0,"method":"m","id":1}', -32600, 1],
    ['no method', '{"jsonrpc":"2.0","id":1}', -32600, 1],
    ['a blank method', '{"jsonrpc":"2.0","method":"  ","id":1}', -32600, 1],
    ['a method that is a number', '{"jsonrpc":"2.0","method":5,"id":1}', -32600, 1],
    ['params that are a list', '{"jsonrpc":"2.0","method":"m","params":[1],"id":"x"}', -32602, 'x'],
    ['params that are a text', '{"jsonrpc":"2.0","method":"m","params":"p","id":"x"}', -32602, 'x'],
    ['params that are false', '{"jsonrpc":"2.0","method":"m","params":false,"id":"x"}', -32602, 'x'],
    ['params that nest 65 deep', `{"jsonrpc":"2.0","method":"m","params":${nested(65)},"id":"x"}`, -32602, 'x'],
    ['params that nest 100,000 deep', `{"jsonrpc":"2.0","method":"m","params":${nested(100_000)},"id":"x"}`, -32602, 'x'],
    ['a list that nests 100,000 deep', '['.repeat(100_000) + ']'.repeat(100_000), -32600, null],
  ])('with %s is refused in both families', (_what, body, code, id) => {
    const parsed = parse(body);
    expect(parsed.ok).toBe(false);
    if (parsed.ok) return;
    expect(parsed.error.id).toBe(id);
    expect(standardError(parsed.error.error, { version: '1.0' })).toMatchObject({ code, httpStatus: 200 });
    expect(standardError(parsed.error.error, { version: '0.3' }).code).toBe(code);
    expect(extensionError(parsed.error.error).code).toBe(code);
  });

  test('takes params that nest 64 deep, none, and null', () => {
    expect(parse(`{"jsonrpc":"2.0","method":"m","params":${nested(64)},"id":1}`).ok).toBe(true);
    expect(parse({ jsonrpc: '2.0', method: 'm', id: 1 })).toMatchObject({ value: { params: {} } });
    expect(parse({ jsonrpc: '2.0', method: 'm', params: null, id: 1 })).toMatchObject({ value: { params: {} } });
  });

  test('takes the last of repeated members and is not changed by names of every object', () => {
    expect(parse('{"jsonrpc":"2.0","method":"a","method":"b","id":1,"id":2}')).toMatchObject({ value: { method: 'b', id: 2 } });
    const parsed = parse('{"__proto__":{"method":"evil","jsonrpc":"2.0"},"id":1}');
    expect(codeOf(parsed)).toBe(-32600);
    const params = parse('{"jsonrpc":"2.0","method":"m","id":1,"params":{"__proto__":{"polluted":1}}}');
    expect(params.ok && params.value.params['polluted']).toBeUndefined();
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });

  test('never throws, whatever the body', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.json().map((params) => `{"jsonrpc":"2.0","method":"m","params":${params}}`),
        ),
        (body) => {
          const parsed = parse(body);
          if (parsed.ok) expect(typeof parsed.value.params).toBe('object');
          else expect(parsed.error.error.kind).toBe('invalid');
        },
      ),
    );
  });
});

describe('the answer', () => {
  test('of success holds the result even when it is null', () => {
    expect(JSON.stringify(successResponse(1, null))).toBe('{"jsonrpc":"2.0","id":1,"result":null}');
  });

  test('of failure holds code, message and data only', () => {
    const response = errorResponse('x', extensionError(notFound('plan', 'P1')));
    expect(Object.keys(response)).toEqual(['jsonrpc', 'id', 'error']);
    expect(Object.keys(response.error)).toEqual(['code', 'message', 'data']);
  });
});

function codeOf(parsed: ReturnType<typeof parse>): number | undefined {
  return parsed.ok ? undefined : standardError(parsed.error.error, { version: '1.0' }).code;
}
