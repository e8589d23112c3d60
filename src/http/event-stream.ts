import { HEARTBEAT_FRAME, retryFrame } from '../a2a/sse.ts';

/** Milliseconds. */
export interface StreamTiming {
  /** Longest silence; a comment breaks it, so that neither side nor a proxy takes the connection for dead. */
  readonly heartbeatMs: number;
  /** After this the stream is closed with a hint when to come back. */
  readonly maxMs: number;
}

export const STREAM_TIMING: StreamTiming = { heartbeatMs: 15_000, maxMs: 3_600_000 };

export interface EventSource<T> {
  readonly events: AsyncIterable<T>;
  /** One complete frame. */
  readonly frameOf: (event: T) => string;
  /** The last frame of a stream whose events broke. */
  readonly errorFrameOf: (error: unknown) => string;
  /** Stops the source; called once, however the stream ends. */
  readonly stop: () => void;
}

/**
 * Events as the body of an SSE response.
 *
 * Promise: an event is taken from the source only when the reader has room for it, so a slow or stuck reader makes nothing grow here; when
 * the source ends, breaks, the reader leaves or the time is over, the source is stopped and no timer is left.
 */
export function eventStream<T>(
  { events, frameOf, errorFrameOf, stop }: EventSource<T>,
  timing: StreamTiming = STREAM_TIMING,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const iterator = events[Symbol.asyncIterator]();
  let arrived: { readonly next: IteratorResult<T> } | { readonly error: unknown } | null = null;
  let waiting = false;
  let ended = false;
  let wake = (): void => {};
  let heartbeat: ReturnType<typeof setTimeout> | undefined;
  let deadline: ReturnType<typeof setTimeout> | undefined;

  const take = async (): Promise<void> => {
    try {
      arrived = { next: await iterator.next() };
    } catch (error) {
      arrived = { error };
    }
    waiting = false;
    wake();
  };
  const end = (): void => {
    ended = true;
    clearTimeout(heartbeat);
    clearTimeout(deadline);
    stop();
    wake();
    // A generator that is suspended inside an await ends when that settles: nobody waits for it.
    void release(iterator);
  };

  return new ReadableStream<Uint8Array>({
    start(controller) {
      deadline = setTimeout(() => {
        end();
        // Many streams that were opened together must not come back together.
        controller.enqueue(encoder.encode(retryFrame(1_000 + Math.random() * 4_000)));
        controller.close();
      }, timing.maxMs);
    },
    async pull(controller) {
      if (arrived === null) {
        if (!waiting) {
          waiting = true;
          void take();
        }
        await new Promise<void>((resolve) => {
          wake = resolve;
          heartbeat = setTimeout(resolve, timing.heartbeatMs);
        });
        clearTimeout(heartbeat);
      }
      if (ended) return;
      if (arrived === null) {
        controller.enqueue(encoder.encode(HEARTBEAT_FRAME));
        return;
      }
      const step = arrived;
      arrived = null;
      try {
        if ('error' in step) throw step.error;
        if (step.next.done !== true) {
          controller.enqueue(encoder.encode(frameOf(step.next.value)));
          return;
        }
        end();
      } catch (error) {
        end();
        controller.enqueue(encoder.encode(errorFrameOf(error)));
      }
      controller.close();
    },
    cancel() {
      if (!ended) end();
    },
  });
}

async function release(iterator: AsyncIterator<unknown>): Promise<void> {
  try {
    await iterator.return?.();
  } catch {
    // The stream is over; what the source still says is nobody's.
  }
}
