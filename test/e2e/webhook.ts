/** A receiver of notifications that outlives the server: a loopback HTTP server that keeps what arrives, by path and in order. */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Notification {
  readonly headers: IncomingHttpHeaders;
  readonly id: string;
  readonly sequence: number;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: bodies of two wires, compared member by member.
  readonly body: any;
}

export interface Webhook {
  at(path: string): string;
  arrived(path: string): readonly Notification[];
  /** Called with each arrival at a path before it is answered; a number is the status, nothing is 204. A redirect leads to `elsewhere`. */
  onArrival(path: string, then: (nth: number, notification: Notification) => Promise<number | undefined> | number | undefined): void;
  close(): Promise<void>;
}

export async function startWebhook(): Promise<Webhook> {
  const arrivals = new Map<string, Notification[]>();
  const answers = new Map<string, Parameters<Webhook['onArrival']>[1]>();
  const at = (path: string): Notification[] => {
    const known = arrivals.get(path) ?? [];
    arrivals.set(path, known);
    return known;
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8');
      const path = (request.url ?? '/').slice(1);
      const { headers } = request;
      const notification: Notification = {
        headers,
        id: String(headers['idempotency-key']),
        sequence: Number(headers['x-a2a-notification-sequence']),
        text,
        body: JSON.parse(text),
      };
      at(path).push(notification);
      const answer = async () => (await answers.get(path)?.(at(path).length, notification)) ?? 204;
      void answer().then((status) => response.writeHead(status, { location: '/elsewhere' }).end());
    });
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  const { port } = server.address() as AddressInfo;
  return {
    at: (path) => `http://127.0.0.1:${port}/${path}`,
    arrived: (path) => [...at(path)],
    onArrival: (path, then) => answers.set(path, then),
    close: () =>
      new Promise((closed) => {
        server.closeAllConnections();
        server.close(() => closed());
      }),
  };
}

/** The state that a notification tells, in the spelling of 0.3; null where it tells of something else. */
export function stateIn({ body }: Notification): string | null {
  const state: unknown = body.task?.status.state ?? body.statusUpdate?.status.state ?? body.status?.state;
  return typeof state === 'string' ? state.replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-') : null;
}
