import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { eventStream, STREAM_TIMING } from '../../src/http/event-stream.ts';

const text = new TextDecoder();

/** A source that gives what it is told, when it is told, and notes what is asked of it. */
function source() {
  const asked: PromiseWithResolvers<IteratorResult<string>>[] = [];
  const notes = { asked: 0, returned: 0, stopped: 0 };
  const events: AsyncIterable<string> = {
    [Symbol.asyncIterator]: () => ({
      next: () => {
        notes.asked += 1;
        const next = Promise.withResolvers<IteratorResult<string>>();
        asked.push(next);
        return next.promise;
      },
      return: async () => {
        notes.returned += 1;
        return { done: true, value: undefined };
      },
    }),
  };
  return {
    notes,
    give: (value: string) => asked.shift()?.resolve({ done: false, value }),
    finish: () => asked.shift()?.resolve({ done: true, value: undefined }),
    fail: (error: unknown) => asked.shift()?.reject(error),
    open: (timing = STREAM_TIMING) => {
      const stream = eventStream(
        {
          events,
          frameOf: (event) => `data: ${event}\n\n`,
          errorFrameOf: (error) => `event: error\ndata: ${String(error)}\n\n`,
          stop: () => {
            notes.stopped += 1;
          },
        },
        timing,
      );
      const reader = stream.getReader();
      const read = async () => {
        const { done, value } = await reader.read();
        return done ? null : text.decode(value);
      };
      return { reader, read };
    },
  };
}

/** Lets everything that is ready run. */
const settle = () => vi.advanceTimersByTimeAsync(0);

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

describe('an event stream', () => {
  test('gives each event as its frame, in order, and ends with its source', async () => {
    const { give, finish, open, notes } = source();
    const { read } = open();
    await settle();
    give('one');
    expect(await read()).toBe('data: one\n\n');
    await settle();
    give('two');
    expect(await read()).toBe('data: two\n\n');
    await settle();
    finish();
    expect(await read()).toBeNull();
    expect([notes.stopped, notes.returned, vi.getTimerCount()]).toEqual([1, 1, 0]);
  });

  test('passes an event on at once', async () => {
    const { give, open } = source();
    const { read } = open();
    await settle();
    const first = read();
    give('one');
    expect(await first).toBe('data: one\n\n');
    expect(vi.getTimerCount()).toBeGreaterThan(0);
  });

  test('breaks a silence with a comment every 15 seconds, and asks its source only once meanwhile', async () => {
    const { give, open, notes } = source();
    const { read } = open();
    for (let beat = 0; beat < 40; beat += 1) {
      const next = read();
      await vi.advanceTimersByTimeAsync(15_000);
      expect(await next).toBe(': keep-alive\n\n');
    }
    const next = read();
    give('after ten minutes');
    expect(await next).toBe('data: after ten minutes\n\n');
    expect(notes.asked).toBeLessThanOrEqual(2);
  });

  test('takes nothing from its source while the reader takes nothing', async () => {
    const { give, open, notes } = source();
    const { read } = open();
    await settle();
    give('one');
    await settle();
    for (let minute = 0; minute < 30; minute += 1) await vi.advanceTimersByTimeAsync(60_000);
    // One frame waits for the reader; the source was asked for that one only, and no heartbeat piled up.
    expect(notes.asked).toBe(1);
    expect(await read()).toBe('data: one\n\n');
    await settle();
    expect(notes.asked).toBe(2);
  });

  test('takes from an eager source no more than one frame ahead', async () => {
    let made = 0;
    async function* eager() {
      for (;;) {
        made += 1;
        yield String(made);
      }
    }
    const stream = eventStream({ events: eager(), frameOf: (event) => event, errorFrameOf: String, stop: () => {} });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(made).toBe(1);
    const reader = stream.getReader();
    for (const expected of ['1', '2', '3']) expect(text.decode((await reader.read()).value)).toBe(expected);
    await settle();
    expect(made).toBe(4);
    await reader.cancel();
  });

  test('stops its source and leaves no timer when the reader leaves', async () => {
    const { open, notes } = source();
    const { reader } = open();
    await settle();
    expect(vi.getTimerCount()).toBe(2);
    await reader.cancel();
    expect([notes.stopped, notes.returned, vi.getTimerCount()]).toEqual([1, 1, 0]);
  });

  test.each(['gives', 'finishes', 'fails'])('hears no more of a source that still %s after the reader has left', async (how) => {
    const { open, give, finish, fail, notes } = source();
    const { reader } = open();
    await settle();
    await reader.cancel();
    if (how === 'gives') give('late');
    else if (how === 'finishes') finish();
    else fail(new Error('late'));
    await settle();
    expect([notes.asked, notes.stopped, vi.getTimerCount()]).toEqual([1, 1, 0]);
  });

  test('says as its last event that its source broke', async () => {
    const { open, give, fail, notes } = source();
    const { read } = open();
    await settle();
    give('one');
    expect(await read()).toBe('data: one\n\n');
    await settle();
    const last = read();
    fail('broken');
    expect(await last).toBe('event: error\ndata: broken\n\n');
    expect(await read()).toBeNull();
    expect([notes.stopped, vi.getTimerCount()]).toEqual([1, 0]);
  });

  test('ends in the same way when an event cannot be written', async () => {
    const stream = eventStream({
      events: (async function* () {
        yield 1n;
      })(),
      frameOf: (event) => JSON.stringify(event),
      errorFrameOf: () => 'event: error\n\n',
      stop: () => {},
    });
    expect(await new Response(stream).text()).toBe('event: error\n\n');
  });

  test('is closed after an hour with a hint when to come back', async () => {
    const { open, notes } = source();
    const { read } = open();
    const frames: (string | null)[] = [];
    const reading = (async () => {
      for (let frame = await read(); frame !== null; frame = await read()) frames.push(frame);
    })();
    await vi.advanceTimersByTimeAsync(3_600_000);
    await reading;
    expect(frames.slice(0, -1).every((frame) => frame === ': keep-alive\n\n')).toBe(true);
    const retryMs = Number(/^retry: (\d+)\n\n$/.exec(frames.at(-1) ?? '')?.[1]);
    expect(retryMs).toBeGreaterThanOrEqual(1_000);
    expect(retryMs).toBeLessThanOrEqual(5_000);
    expect([notes.stopped, notes.returned, vi.getTimerCount()]).toEqual([1, 1, 0]);
  });

  test('is closed after an hour although nobody reads', async () => {
    const { open, give, notes } = source();
    open();
    await settle();
    give('one');
    await vi.advanceTimersByTimeAsync(3_600_000);
    expect([notes.stopped, vi.getTimerCount()]).toEqual([1, 0]);
  });

  test('does not wait for a source that cannot be released', async () => {
    const events: AsyncIterable<string> = {
      [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}), return: () => Promise.reject(new Error('stuck')) }),
    };
    const stream = eventStream({ events, frameOf: String, errorFrameOf: String, stop: () => {} });
    await settle();
    await stream.cancel();
    expect(vi.getTimerCount()).toBe(0);
  });
});
