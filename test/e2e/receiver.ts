/** What a test tool acts upon: a loopback server that counts what it is sent, so that effects are seen from outside, over crashes too. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { JsonObject } from '../../src/core/json.ts';

/** One effect that arrived. */
export interface Received {
  readonly tool: string;
  readonly args: JsonObject;
  readonly idempotencyKey: string;
}

export interface Receiver {
  /** An address of its own for each purpose: `at('a')` and `at('b')` are counted apart. */
  at(path: string): string;
  received(path: string): readonly Received[];
  /** How many different effects arrived: a repeat under the same idempotency key is the same effect. */
  distinct(path: string): number;
  /** Calls back once, when the next effect arrives at the path; the answer is held until the promise resolves. */
  onNext(path: string, then: () => Promise<void> | void): void;
  close(): Promise<void>;
}

export async function startReceiver(): Promise<Receiver> {
  const effects = new Map<string, Received[]>();
  const waiting = new Map<string, () => Promise<void> | void>();
  const arrived = (path: string): Received[] => {
    const known = effects.get(path) ?? [];
    effects.set(path, known);
    return known;
  };

  const answer = async (path: string, effect: Received, response: ServerResponse): Promise<void> => {
    arrived(path).push(effect);
    const then = waiting.get(path);
    waiting.delete(path);
    await then?.();
    response.writeHead(204).end();
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { tool, args } = JSON.parse(Buffer.concat(chunks).toString('utf8')) as { tool: string; args: JsonObject };
      const idempotencyKey = String(request.headers['idempotency-key']);
      void answer((request.url ?? '/').slice(1), { tool, args, idempotencyKey }, response);
    });
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  const { port } = server.address() as AddressInfo;
  return {
    at: (path) => `http://127.0.0.1:${port}/${path}`,
    received: (path) => [...arrived(path)],
    distinct: (path) => new Set(arrived(path).map((effect) => effect.idempotencyKey)).size,
    onNext: (path, then) => waiting.set(path, then),
    close: () =>
      new Promise((closed) => {
        server.closeAllConnections();
        server.close(() => closed());
      }),
  };
}
