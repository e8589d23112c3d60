/** The edge's event streams inside workerd, with clients that leave and clients that do not read. */
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { build } from 'esbuild';
import { Miniflare } from 'miniflare';
import { afterAll, beforeAll, expect, test } from 'vitest';

let miniflare: Miniflare;
let origin: URL;

beforeAll(async () => {
  const { outputFiles } = await build({ entryPoints: ['test/e2e/stream-worker.ts'], bundle: true, format: 'esm', write: false });
  const contents = outputFiles[0]?.text ?? '';
  miniflare = new Miniflare({
    host: '127.0.0.1',
    port: 0,
    cf: false,
    telemetry: { enabled: false },
    workers: [
      {
        config: {
          name: 'streams',
          compatibilityDate: '2026-09-15',
          manifest: { mainModule: 'worker.js', modulesRoot: process.cwd(), modules: { 'worker.js': { type: 'esm', contents } } },
        },
        dev: { unsafeDirectSockets: [{ host: '127.0.0.1', port: 0 }] },
      },
    ],
  });
  await miniflare.ready;
  origin = await miniflare.unsafeGetDirectURL();
});

afterAll(() => miniflare.dispose());

const counts = async () => (await (await fetch(new URL('/counts', origin))).json()) as { open: number; taken: number };

async function untilOpen(expected: number, withinMs: number): Promise<number> {
  const deadline = Date.now() + withinMs;
  let { open } = await counts();
  while (open !== expected && Date.now() < deadline) {
    await sleep(20);
    ({ open } = await counts());
  }
  return open;
}

/** A client that asks and then reads only when it is told to. */
function ask(path: string): Socket {
  const socket = connect(Number(origin.port), origin.hostname);
  socket.on('error', () => {});
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${origin.host}\r\n\r\n`);
  return socket;
}

test('the first event and the comments in a silence arrive at once', async () => {
  const startMs = performance.now();
  const abort = new AbortController();
  const response = await fetch(new URL('/silent', origin), { signal: abort.signal });
  const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
  expect((await reader.read()).value).toBe('data: first\n\n');
  expect(performance.now() - startMs).toBeLessThan(150);
  expect((await reader.read()).value).toBe(': keep-alive\n\n');
  abort.abort();
  await reader.closed.catch(() => {});
  expect(await untilOpen(0, 1_500)).toBe(0);
});

test('a hundred clients that leave are noticed within three heartbeats', async () => {
  const clients = Array.from({ length: 100 }, () => ask('/silent'));
  expect(await untilOpen(100, 5_000)).toBe(100);
  for (const client of clients) client.destroy();
  expect(await untilOpen(0, 1_500)).toBe(0);
});

test('a client that does not read makes nothing grow: its source is not asked any more', async () => {
  const client = ask('/endless');
  client.pause();
  expect(await untilOpen(1, 2_000)).toBe(1);
  await sleep(500);
  const before = (await counts()).taken;
  await sleep(500);
  const after = (await counts()).taken;
  expect(before).toBeGreaterThan(0);
  expect(after).toBe(before);
  client.destroy();
  expect(await untilOpen(0, 1_500)).toBe(0);
});
