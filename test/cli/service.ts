import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extensionError } from '../../src/a2a/errors.ts';
import { findOperation } from '../../src/api/operations.ts';
import { parseParams } from '../../src/api/parse-params.ts';
import type { JsonObject } from '../../src/core/json.ts';
import type { Refusal } from '../../src/core/refusal.ts';

export interface SeenCall {
  readonly method: string;
  readonly params: JsonObject;
  readonly authorization: string | undefined;
  readonly bodyBytes: number;
}

export class Refused extends Error {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

export interface Service {
  readonly url: string;
  readonly calls: SeenCall[];
  close(): Promise<void>;
}

/**
 * A service over real HTTP whose operations are functions of the test. Parameters are parsed by the rows and bodies over 4 MiB are
 * refused, as in the product, so that a command that sends something wrong fails here too.
 */
export async function serve(operations: Readonly<Record<string, (params: JsonObject) => unknown>>): Promise<Service> {
  const calls: SeenCall[] = [];
  const answer = (method: string, params: JsonObject): { readonly status: number; readonly body: object } => {
    const refuse = (refusal: Refusal): { readonly status: number; readonly body: object } => {
      const { code, message, data, httpStatus } = extensionError(refusal);
      return { status: httpStatus, body: { error: { code, message, data } } };
    };
    const found = findOperation(method);
    const perform = operations[method];
    if (found === null || perform === undefined)
      return refuse({ kind: 'not_found', message: `Unknown method ${method}`, entity: 'method', id: method });
    const parsed = parseParams(found.operation, params);
    if (!parsed.ok) return refuse(parsed.error);
    try {
      return { status: 200, body: { result: perform(params) } };
    } catch (error) {
      if (error instanceof Refused) return refuse(error.refusal);
      throw error;
    }
  };
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      const { id, method, params } = JSON.parse(body.toString('utf8')) as { id: string; method: string; params: JsonObject };
      calls.push({ method, params, authorization: request.headers.authorization, bodyBytes: body.length });
      const answered = body.length > 4 * 1024 * 1024 ? { status: 413, body: {} } : answer(method, params);
      response.writeHead(answered.status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id, ...answered.body }));
    });
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    close: () => new Promise((closed) => server.close(() => closed())),
  };
}
