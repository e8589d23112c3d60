import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { extensionError } from '../../src/a2a/errors.ts';
import { createClient, endpointOf } from '../../src/client/client.ts';
import {
  A2aConnectionError,
  A2aError,
  A2aNotAvailableError,
  A2aOperationNotFoundError,
  A2aVersionMismatchError,
  AuthenticationError,
  AuthorizationError,
  BudgetExceededError,
  BusinessRuleViolation,
  DuplicateEntityError,
  errorFromResponse,
  InvalidRequestError,
  PlanError,
  ResourceNotFoundError,
  ServiceUnavailableError,
  ValidationError,
} from '../../src/client/errors.ts';
import type { Refusal } from '../../src/core/refusal.ts';

interface Call {
  readonly authorization: string | undefined;
  readonly body: { readonly id: string; readonly method: string; readonly params: unknown };
}

interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: unknown;
}

const servers: Server[] = [];

/** A real HTTP server that gives the answers in turn, the last one for ever. */
async function serve(answers: readonly Answer[]): Promise<{ readonly url: string; readonly calls: Call[] }> {
  const calls: Call[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    request.on('end', () => {
      calls.push({ authorization: request.headers.authorization, body: JSON.parse(text) as Call['body'] });
      const answer = answers[Math.min(calls.length, answers.length) - 1];
      response.writeHead(answer?.status ?? 200, { 'content-type': 'application/json', ...answer?.headers });
      response.end(typeof answer?.body === 'string' ? answer.body : JSON.stringify(answer?.body));
    });
  });
  servers.push(server);
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, calls };
}

afterEach(async () => {
  for (const server of servers.splice(0)) await new Promise((closed) => server.close(closed));
});

const ok = (result: unknown): Answer => ({ body: { jsonrpc: '2.0', id: '1', result } });
const refused = (refusal: Refusal): Answer => {
  const { code, message, data, httpStatus } = extensionError(refusal);
  return { status: httpStatus, body: { jsonrpc: '2.0', id: '1', error: { code, message, data } } };
};
const busy = refused({ kind: 'unavailable', message: 'Budget busy', retryAfterSeconds: 0 });
const quick = { baseDelayMs: 1, maxDelayMs: 5 };
const PLAN = '01HXRCF1ABCDE12345678901AB';

const failureOf = async (promise: Promise<unknown>): Promise<A2aError> => {
  const error: unknown = await promise.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof A2aError)) throw new Error(`expected an A2aError, got ${String(error)}`);
  return error;
};

describe('the client', () => {
  it('sends one JSON-RPC request with the key and answers its result', async () => {
    const { url, calls } = await serve([ok({ status: 'ok', version: '1', checks: [] })]);
    const client = createClient({ url, key: 'ca_1_s' });
    expect(await client.call('_cleveragents/health/check', {})).toEqual({ status: 'ok', version: '1', checks: [] });
    expect(calls).toHaveLength(1);
    expect(calls[0]).toMatchObject({ authorization: 'Bearer ca_1_s', body: { method: '_cleveragents/health/check', params: {} } });
  });

  it.each([
    ['http://h', 'http://h/a2a'],
    ['http://h/', 'http://h/a2a'],
    ['http://h/a2a/', 'http://h/a2a'],
    ['http://h/base//', 'http://h/base/a2a'],
  ])('takes %s as the endpoint %s', (url, endpoint) => {
    expect(endpointOf(url)).toBe(endpoint);
  });

  it('makes a repeatable call again when the service is busy', async () => {
    const { url, calls } = await serve([busy, { status: 503, body: 'upstream' }, ok({ plans: [], next_page_token: '', total_size: 0 })]);
    const result = await createClient({ url, retry: quick }).call('_cleveragents/plan/list', {});
    expect(result.total_size).toBe(0);
    expect(calls).toHaveLength(3);
  });

  it('gives up after the agreed number of attempts', async () => {
    const { url, calls } = await serve([busy]);
    const error = await failureOf(createClient({ url, retry: { ...quick, attempts: 2 } }).call('_cleveragents/plan/list', {}));
    expect(error).toBeInstanceOf(ServiceUnavailableError);
    expect(calls).toHaveLength(3);
  });

  it('never repeats by itself what is not repeatable', async () => {
    const { url, calls } = await serve([busy]);
    const client = createClient({ url, retry: quick });
    await failureOf(client.call('_cleveragents/plan/use', { action_name: 'a' }));
    await failureOf(client.call('_cleveragents/plan/apply', { plan_id: PLAN }));
    expect(calls).toHaveLength(2);
  });

  it('repeats a plan/use that carries an idempotency key', async () => {
    const { url, calls } = await serve([busy, ok({ plan_id: PLAN })]);
    const plan = await createClient({ url, retry: quick }).call('_cleveragents/plan/use', { action_name: 'a', idempotency_key: 'k' });
    expect(plan.plan_id).toBe(PLAN);
    expect(calls).toHaveLength(2);
  });

  it('does not repeat what was refused for good', async () => {
    const { url, calls } = await serve([refused({ kind: 'not_found', message: 'Plan not found', entity: 'plan', id: PLAN })]);
    const error = await failureOf(createClient({ url, retry: quick }).call('_cleveragents/plan/status', { plan_id: PLAN }));
    expect(error).toBeInstanceOf(ResourceNotFoundError);
    expect(calls).toHaveLength(1);
  });

  it('waits as long as the header of a proxy says, within its limit', async () => {
    const { url } = await serve([{ status: 429, headers: { 'retry-after': '7' }, body: 'slow down' }]);
    const error = await failureOf(createClient({ url, retry: { attempts: 0 } }).call('_cleveragents/plan/list', {}));
    expect(error).toBeInstanceOf(ServiceUnavailableError);
    if (error instanceof ServiceUnavailableError) expect(error.retryAfterSeconds).toBe(7);
  });

  it('says when nothing listens', async () => {
    const error = await failureOf(
      createClient({ url: 'http://127.0.0.1:1', retry: { attempts: 0 } }).call('_cleveragents/health/check', {}),
    );
    expect(error).toBeInstanceOf(A2aConnectionError);
    expect(error.message).toContain('http://127.0.0.1:1/a2a cannot be reached');
  });

  it('says when something else answers', async () => {
    const { url } = await serve([{ body: '<html>hello</html>' }]);
    const error = await failureOf(createClient({ url }).call('_cleveragents/health/check', {}));
    expect(error).toBeInstanceOf(A2aConnectionError);
    expect(error.message).toContain('did not answer as a CleverAgents endpoint');
  });

  it('stops waiting when the caller aborts', async () => {
    const { url } = await serve([refused({ kind: 'unavailable', message: 'busy', retryAfterSeconds: 60 })]);
    const controller = new AbortController();
    const call = createClient({ url }).call('_cleveragents/plan/list', {}, { signal: controller.signal });
    setTimeout(() => controller.abort(), 50);
    expect((await failureOf(call)).message).toContain('aborted');
  });
});

describe('errors of the server', () => {
  it.each<readonly [Refusal, new (...args: never[]) => A2aError, number]>([
    [{ kind: 'invalid', message: 'm', issues: [{ field: 'plan_id', message: 'is required' }] }, ValidationError, -32602],
    [{ kind: 'not_found', message: 'm', entity: 'plan', id: 'x' }, ResourceNotFoundError, -32001],
    [{ kind: 'not_found', message: 'm', entity: 'method', id: 'x' }, A2aOperationNotFoundError, -32601],
    [{ kind: 'unauthenticated', message: 'm' }, AuthenticationError, -32002],
    [{ kind: 'forbidden', message: 'm' }, AuthorizationError, -32003],
    [{ kind: 'invalid_state', message: 'm' }, BusinessRuleViolation, -32004],
    [{ kind: 'already_exists', message: 'm', entity: 'action', id: 'x' }, DuplicateEntityError, -32005],
    [{ kind: 'budget_exceeded', message: 'm' }, BudgetExceededError, -32006],
    [{ kind: 'plan_error', message: 'm' }, PlanError, -32008],
    [{ kind: 'too_large', message: 'm', limitBytes: 1 }, InvalidRequestError, -32600],
    [{ kind: 'unavailable', message: 'm', retryAfterSeconds: 2 }, ServiceUnavailableError, -32000],
    [{ kind: 'invalid', message: 'm', issues: [], details: { reason: 'VERSION_NOT_SUPPORTED' } }, A2aVersionMismatchError, -32007],
  ])('are thrown as the class of their code: %j', async (refusal, type, code) => {
    const { url } = await serve([refused(refusal)]);
    const error = await failureOf(createClient({ url, retry: { attempts: 0 } }).call('_cleveragents/plan/list', {}));
    expect(error).toBeInstanceOf(type);
    expect(error.code).toBe(code);
    expect(error.message).toBe('m');
    expect(error.name).toBe(type.name);
    if (error instanceof ValidationError && code === -32602) expect(error.issues).toEqual([{ field: 'plan_id', message: 'is required' }]);
    if (error instanceof A2aOperationNotFoundError) expect(error.operation).toBe('_cleveragents/plan/list');
  });

  it('tell an operation that a mode cannot offer from one that does not exist', () => {
    const error = errorFromResponse({ code: -32601, message: 'm', data: { reason: 'NOT_AVAILABLE' }, httpStatus: 200 }, 'x');
    expect(error).toBeInstanceOf(A2aNotAvailableError);
  });

  it('of unknown codes are the base class', () => {
    const error = errorFromResponse({ code: -32603, message: 'Internal error', data: { incident_id: 'i' }, httpStatus: 200 }, 'x');
    expect(error.constructor).toBe(A2aError);
    expect(error.data).toEqual({ incident_id: 'i' });
  });
});
