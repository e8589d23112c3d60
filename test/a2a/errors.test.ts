import { describe, expect, test } from 'vitest';
import { methodNotFound } from '../../src/a2a/codec.ts';
import { errorResponse } from '../../src/a2a/envelope.ts';
import { extensionError, internalError, standardError } from '../../src/a2a/errors.ts';
import { invalidField, invalidState, notFound, type Refusal } from '../../src/core/refusal.ts';
import { expectOfficialDefinition } from './oracles.ts';

const because = (reason: string): Refusal => ({ kind: 'invalid', message: 'refused', issues: [], details: { reason } });
const forbiddenState = (reason: string): Refusal => invalidState('not now', { reason });

/** refusal | standard code, reason, HTTP | extension code, reason */
const TABLE: readonly (readonly [string, Refusal, number, string, number, number, string])[] = [
  ['a wrong field', invalidField('message.role', 'is required'), -32602, 'INVALID_PARAMS', 200, -32602, 'INVALID_PARAMS'],
  ['a body that is no JSON', because('PARSE_ERROR'), -32700, 'PARSE_ERROR', 200, -32700, 'PARSE_ERROR'],
  ['a wrong envelope', because('INVALID_REQUEST'), -32600, 'INVALID_REQUEST', 200, -32600, 'INVALID_REQUEST'],
  ['an unknown method', methodNotFound('x/y'), -32601, 'METHOD_NOT_FOUND', 200, -32601, 'METHOD_NOT_FOUND'],
  ['an unknown task', notFound('task', 'T'), -32001, 'TASK_NOT_FOUND', 200, -32001, 'NOT_FOUND'],
  ['an unknown plan', notFound('plan', 'P'), -32001, 'TASK_NOT_FOUND', 200, -32001, 'NOT_FOUND'],
  ['an unknown push config', notFound('push_config', 'C'), -32001, 'TASK_NOT_FOUND', 200, -32001, 'NOT_FOUND'],
  ['an unknown action', notFound('action', 'A'), -32602, 'INVALID_PARAMS', 200, -32001, 'NOT_FOUND'],
  ['an unknown project', notFound('project', 'A'), -32602, 'INVALID_PARAMS', 200, -32001, 'NOT_FOUND'],
  ['no credentials', { kind: 'unauthenticated', message: 'who are you' }, -32600, 'UNAUTHENTICATED', 401, -32002, 'UNAUTHENTICATED'],
  ['a missing role', { kind: 'forbidden', message: 'needs approver' }, -32600, 'FORBIDDEN', 403, -32003, 'FORBIDDEN'],
  ['a task that has ended', invalidState('terminal'), -32004, 'UNSUPPORTED_OPERATION', 200, -32004, 'INVALID_STATE'],
  [
    'a task that cannot be canceled',
    forbiddenState('TASK_NOT_CANCELABLE'),
    -32002,
    'TASK_NOT_CANCELABLE',
    200,
    -32004,
    'TASK_NOT_CANCELABLE',
  ],
  [
    'push that is off',
    forbiddenState('PUSH_NOTIFICATION_NOT_SUPPORTED'),
    -32003,
    'PUSH_NOTIFICATION_NOT_SUPPORTED',
    200,
    -32004,
    'PUSH_NOTIFICATION_NOT_SUPPORTED',
  ],
  [
    'no extended card',
    forbiddenState('EXTENDED_AGENT_CARD_NOT_CONFIGURED'),
    -32007,
    'EXTENDED_AGENT_CARD_NOT_CONFIGURED',
    200,
    -32004,
    'EXTENDED_AGENT_CARD_NOT_CONFIGURED',
  ],
  [
    'a wrong content type',
    because('CONTENT_TYPE_NOT_SUPPORTED'),
    -32005,
    'CONTENT_TYPE_NOT_SUPPORTED',
    200,
    -32600,
    'CONTENT_TYPE_NOT_SUPPORTED',
  ],
  [
    'a missing extension',
    because('EXTENSION_SUPPORT_REQUIRED'),
    -32008,
    'EXTENSION_SUPPORT_REQUIRED',
    200,
    -32602,
    'EXTENSION_SUPPORT_REQUIRED',
  ],
  ['an unknown version', because('VERSION_NOT_SUPPORTED'), -32009, 'VERSION_NOT_SUPPORTED', 200, -32007, 'VERSION_NOT_SUPPORTED'],
  [
    'a duplicate',
    { kind: 'already_exists', message: 'there is one', entity: 'action', id: 'A' },
    -32602,
    'INVALID_PARAMS',
    200,
    -32005,
    'ALREADY_EXISTS',
  ],
  [
    'a spent budget',
    { kind: 'budget_exceeded', message: 'Budget cap exceeded' },
    -32004,
    'UNSUPPORTED_OPERATION',
    200,
    -32006,
    'BUDGET_EXCEEDED',
  ],
  ['a plan error', { kind: 'plan_error', message: 'no plan' }, -32004, 'UNSUPPORTED_OPERATION', 200, -32008, 'PLAN_ERROR'],
  [
    'a body that is too large',
    { kind: 'too_large', message: 'too large', limitBytes: 4096 },
    -32600,
    'INVALID_REQUEST',
    413,
    -32600,
    'TOO_LARGE',
  ],
  [
    'a store that is away',
    { kind: 'unavailable', message: 'try again', retryAfterSeconds: 5 },
    -32000,
    'UNAVAILABLE',
    503,
    -32000,
    'UNAVAILABLE',
  ],
];

describe('standard methods', () => {
  test.each(TABLE)('%s in 1.0 is a list of ErrorInfo', (_what, refusal, code, reason, httpStatus) => {
    const error = standardError(refusal, { version: '1.0' });
    expect(error).toMatchObject({ code, message: refusal.message, httpStatus });
    expect(error.data).toEqual([
      expect.objectContaining({ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain: 'a2a-protocol.org' }),
      ...(refusal.kind === 'invalid' && refusal.issues.length > 0
        ? [
            {
              '@type': 'type.googleapis.com/google.rpc.BadRequest',
              fieldViolations: [{ field: 'message.role', description: 'is required' }],
            },
          ]
        : []),
    ]);
    const metadata = (error.data as readonly { metadata?: Record<string, unknown> }[])[0]?.metadata ?? { any: 'text' };
    expect(Object.values(metadata).every((value) => typeof value === 'string')).toBe(true);
  });

  test.each(TABLE)('%s in 0.3 is one object', (_what, refusal, code, reason, httpStatus) => {
    const error = standardError(refusal, { version: '0.3' });
    expect(error).toMatchObject({ code, httpStatus, data: { reason, domain: 'a2a-protocol.org' } });
    expectOfficialDefinition('0.3', 'JSONRPCErrorResponse', errorResponse(1, error));
  });

  test.each(TABLE)('%s is told without null and in camelCase', (_what, refusal) => {
    for (const version of ['1.0', '0.3'] as const) {
      const text = JSON.stringify(standardError(refusal, { version }));
      expect(text).not.toContain('null');
      expect(text).not.toMatch(/"[a-z]+_[a-z_]+":/);
    }
  });

  test('name the nearest code and tell the cause beside it', () => {
    const spent: Refusal = { kind: 'budget_exceeded', message: 'Budget cap exceeded', details: { exceeded_level: 'plan', limit_usd: 1.5 } };
    expect(standardError(spent, { version: '1.0' }).data).toEqual([
      {
        '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
        reason: 'UNSUPPORTED_OPERATION',
        domain: 'a2a-protocol.org',
        metadata: { exceededLevel: 'plan', limitUsd: '1.5', cause: 'BUDGET_EXCEEDED' },
      },
    ]);
    expect(standardError(spent, { version: '0.3' }).data).toEqual({
      exceededLevel: 'plan',
      limitUsd: 1.5,
      cause: 'BUDGET_EXCEEDED',
      reason: 'UNSUPPORTED_OPERATION',
      domain: 'a2a-protocol.org',
    });
  });

  test('show a reason that A2A does not have as the cause', () => {
    expect(standardError(forbiddenState('SESSION_CLOSED'), { version: '0.3' })).toMatchObject({
      code: -32004,
      data: { reason: 'UNSUPPORTED_OPERATION', cause: 'SESSION_CLOSED' },
    });
    expect(standardError(forbiddenState('constructor'), { version: '0.3' }).code).toBe(-32004);
  });
});

describe('our own methods', () => {
  test.each(TABLE)('%s has the code of the source document', (_what, refusal, _code, _reason, httpStatus, code, reason) => {
    const error = extensionError(refusal);
    expect(error).toMatchObject({ code, message: refusal.message, httpStatus, data: { reason, domain: 'urn:cleveragents:extensions:v1' } });
  });

  test('carry the domain fields as they are, the issues, the limit and when to retry', () => {
    expect(extensionError(notFound('plan', 'P1')).data).toMatchObject({ plan_id: 'P1' });
    expect(extensionError(invalidField('plan_id', 'is required')).data).toMatchObject({
      issues: [{ field: 'plan_id', message: 'is required' }],
    });
    expect(extensionError({ kind: 'too_large', message: 'x', limitBytes: 7 }).data).toMatchObject({ limit_bytes: 7 });
    expect(extensionError({ kind: 'unavailable', message: 'x', retryAfterSeconds: 9 }).data).toMatchObject({ retry_after_seconds: 9 });
  });

  test('leave out details that are null', () => {
    const refusal = invalidState('x', { retried: null, phase: 'apply' });
    expect(extensionError(refusal).data).not.toHaveProperty('retried');
    expect(JSON.stringify(standardError(refusal, { version: '1.0' }))).not.toContain('null');
  });

  test('cannot be told another domain by the details', () => {
    const refusal = invalidState('x', { domain: 'evil', phase: 'apply' });
    expect(extensionError(refusal).data).toEqual({ domain: 'urn:cleveragents:extensions:v1', phase: 'apply', reason: 'INVALID_STATE' });
  });
});

describe('a bug of ours', () => {
  test.each([{ version: '1.0' } as const, { version: '0.3' } as const, 'extension' as const])(
    'says only that it happened, in family %j',
    (family) => {
      const error = internalError('incident-1', family);
      expect(error).toMatchObject({ code: -32603, message: 'Internal error' });
      expect(JSON.stringify(error.data)).toContain('incident-1');
      expect(Array.isArray(error.data)).toBe(family !== 'extension' && family.version === '1.0');
    },
  );
});
