/** A Worker that serves nothing but the edge's event streams, and counts how many are open: for `http-stream.test.ts`. */
import { eventStream } from '../../src/http/event-stream.ts';

const HEARTBEAT_MS = 500;

let open = 0;
let taken = 0;

async function* silent(signal: AbortSignal): AsyncGenerator<string> {
  yield 'first';
  await new Promise((resolve) => signal.addEventListener('abort', resolve));
}

/** As fast as it is asked, a frame of 64 kB. */
async function* endless(signal: AbortSignal): AsyncGenerator<string> {
  const frame = 'x'.repeat(65_536);
  while (!signal.aborted) {
    taken += 1;
    yield frame;
  }
}

// biome-ignore lint/style/noDefaultExport: the entry of a Worker is its default export.
export default {
  fetch(request: Request): Response {
    const { pathname } = new URL(request.url);
    if (pathname === '/counts') return Response.json({ open, taken });
    const gone = new AbortController();
    open += 1;
    const body = eventStream(
      {
        events: pathname === '/endless' ? endless(gone.signal) : silent(gone.signal),
        frameOf: (event) => `data: ${event}\n\n`,
        errorFrameOf: String,
        stop: () => {
          open -= 1;
          gone.abort();
        },
      },
      { heartbeatMs: HEARTBEAT_MS, maxMs: 60_000 },
    );
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  },
};
