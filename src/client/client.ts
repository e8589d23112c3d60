import type { Operation } from '../api/operation.ts';
import { OPERATIONS, type OperationName, type ParamsInputOf, type ResultOf } from '../api/operations.ts';
import { A2aConnectionError, errorFromResponse, ServiceUnavailableError } from './errors.ts';

/**
 * A client of the service, typed by the rows of operations. Uses `fetch` and nothing of a platform: it runs in Node, in browsers
 * and in Workers. Answers are trusted to have the shape of their row; errors are thrown as the classes of `errors.ts`.
 */
export interface Client {
  /** Calls one operation. Throws an `A2aError`. */
  call<N extends OperationName>(name: N, params: ParamsInputOf<N>, options?: CallOptions): Promise<ResultOf<N>>;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
}

export interface ClientOptions {
  /** Address of the service; the endpoint is `<url>/a2a`. */
  readonly url: string;
  /** `ca_…`; absent only against a server that runs without authentication. */
  readonly key?: string;
  readonly fetch?: typeof fetch;
  readonly retry?: RetryOptions;
}

export interface RetryOptions {
  /** Calls after the first one; 0 = never again. */
  readonly attempts?: number;
  /** The first pause, doubled each time; what the server asks for takes its place. */
  readonly baseDelayMs?: number;
  readonly maxDelayMs?: number;
}

const DEFAULT_RETRY: Required<RetryOptions> = { attempts: 3, baseDelayMs: 250, maxDelayMs: 10_000 };

export function createClient(options: ClientOptions): Client {
  const endpoint = endpointOf(options.url);
  const send = options.fetch ?? globalThis.fetch.bind(globalThis);
  const retry = { ...DEFAULT_RETRY, ...options.retry };
  return {
    async call<N extends OperationName>(name: N, params: ParamsInputOf<N>, { signal }: CallOptions = {}): Promise<ResultOf<N>> {
      const attempts = isRepeatable(name, params) ? retry.attempts : 0;
      for (let attempt = 0; ; attempt += 1) {
        try {
          return (await post(send, {
            endpoint,
            name,
            params,
            ...(options.key === undefined ? {} : { key: options.key }),
            ...(signal ? { signal } : {}),
          })) as ResultOf<N>;
        } catch (error) {
          if (attempt >= attempts || !isTransient(error) || signal?.aborted === true) throw error;
          await pause(delayMs(error, attempt, retry), signal);
        }
      }
    },
  };
}

/** `https://host` → `https://host/a2a`; an address that already ends in `/a2a` is taken as it is. Throws a `TypeError` when it is none. */
export function endpointOf(url: string): string {
  const parsed = new URL(url);
  const path = parsed.pathname.replace(/\/+$/, '');
  parsed.pathname = path.endsWith('/a2a') ? path : `${path}/a2a`;
  return parsed.href;
}

/** Whether making the call twice does what making it once does. */
function isRepeatable(name: OperationName, params: object): boolean {
  const operation: Operation = OPERATIONS[name];
  return operation.idempotent === true || 'idempotency_key' in params;
}

/** Nothing was done, or it is not known and the call is repeatable. */
const isTransient = (error: unknown): boolean =>
  error instanceof ServiceUnavailableError || (error instanceof A2aConnectionError && (error.httpStatus === 0 || error.httpStatus >= 500));

function delayMs(error: unknown, attempt: number, retry: Required<RetryOptions>): number {
  const asked = error instanceof ServiceUnavailableError ? error.retryAfterSeconds : null;
  if (asked !== null) return Math.min(asked * 1000, retry.maxDelayMs);
  // Jitter: many clients that were refused together must not come back together.
  return Math.min(retry.baseDelayMs * 2 ** attempt * (0.5 + Math.random() / 2), retry.maxDelayMs);
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(new A2aConnectionError('The call was aborted', 0, { cause: signal?.reason }));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
}

interface Post {
  readonly endpoint: string;
  readonly name: string;
  readonly params: unknown;
  readonly key?: string;
  readonly signal?: AbortSignal;
}

async function post(send: typeof fetch, { endpoint, name, params, key, signal }: Post): Promise<unknown> {
  const id = crypto.randomUUID();
  let response: Response;
  let text: string;
  try {
    response = await send(endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) },
      body: JSON.stringify({ jsonrpc: '2.0', id, method: name, params }),
      ...(signal ? { signal } : {}),
    });
    text = await response.text();
  } catch (cause) {
    throw new A2aConnectionError(`${endpoint} cannot be reached: ${reasonOf(cause)}`, 0, { cause });
  }
  return readAnswer(text, { name, httpStatus: response.status, endpoint, retryAfter: response.headers.get('retry-after') });
}

interface AnswerContext {
  readonly name: string;
  readonly httpStatus: number;
  readonly endpoint: string;
  readonly retryAfter: string | null;
}

function readAnswer(text: string, { name, httpStatus, endpoint, retryAfter }: AnswerContext): unknown {
  const body = parseObject(text);
  const error = body?.['error'];
  if (isObject(error) && typeof error['code'] === 'number' && typeof error['message'] === 'string') {
    const data = isObject(error['data']) ? error['data'] : {};
    throw errorFromResponse({ code: error['code'], message: error['message'], data: withRetryAfter(data, retryAfter), httpStatus }, name);
  }
  if (body !== null && 'result' in body) return body['result'];
  if (httpStatus === 429 || httpStatus === 503) {
    throw new ServiceUnavailableError({
      code: 0,
      message: `${endpoint} is busy (HTTP ${httpStatus})`,
      data: withRetryAfter({}, retryAfter),
      httpStatus,
    });
  }
  throw new A2aConnectionError(`${endpoint} did not answer as a CleverAgents endpoint (HTTP ${httpStatus})`, httpStatus);
}

function withRetryAfter(data: Readonly<Record<string, unknown>>, header: string | null): Readonly<Record<string, unknown>> {
  if ('retry_after_seconds' in data || header === null || !/^\d+$/.test(header)) return data;
  return { ...data, retry_after_seconds: Number(header) };
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function parseObject(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** `fetch failed` says little; its cause has the address or the certificate. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (cause instanceof Error && cause.message !== '') return cause.message;
  if (cause instanceof Error && 'code' in cause) return String(cause.code);
  return error.message;
}
