/** A `fetch` that presents a key and checks what comes back: every answer is JSON-RPC, every result has its version's form, with no member more. */
import { expect } from 'vitest';
import type { ProtocolVersion } from '../../src/a2a/version.ts';
import { expectOfficial } from '../a2a/oracles.ts';
import { STRICT_WIRE } from '../a2a/strict-wire.ts';

/** Standard methods by what their results are. */
const RESULTS: ReadonlyMap<string, 'task' | 'sendResult' | 'event' | 'pushConfig' | 'pushList'> = new Map([
  ['SendMessage', 'sendResult'],
  ['GetTask', 'task'],
  ['CancelTask', 'task'],
  ['SendStreamingMessage', 'event'],
  ['SubscribeToTask', 'event'],
  ['message/send', 'sendResult'],
  ['tasks/get', 'task'],
  ['tasks/cancel', 'task'],
  ['message/stream', 'event'],
  ['tasks/resubscribe', 'event'],
  ['CreateTaskPushNotificationConfig', 'pushConfig'],
  ['GetTaskPushNotificationConfig', 'pushConfig'],
  ['ListTaskPushNotificationConfigs', 'pushList'],
  ['tasks/pushNotificationConfig/set', 'pushConfig'],
  ['tasks/pushNotificationConfig/get', 'pushConfig'],
  ['tasks/pushNotificationConfig/list', 'pushList'],
] as const);

export interface WireLog {
  readonly fetch: typeof fetch;
  /** Answers that were checked against the official schemas (only where these are beside the clone). */
  checked(): number;
  /** Waits until the answers that were read in the background are checked; throws what was wrong with them. */
  settle(): Promise<void>;
}

export function wireLog(version: ProtocolVersion, key: string): WireLog {
  let checked = 0;
  const pending: Promise<void>[] = [];
  const check = (method: string, text: string): void => {
    const response = JSON.parse(text) as { jsonrpc?: unknown; result?: unknown; error?: { code?: unknown } };
    expect(response.jsonrpc).toBe('2.0');
    expect('result' in response ? 'result' : 'error' in response ? 'error' : text).toBeOneOf(['result', 'error']);
    expect(response.error?.code).not.toBe(-32603);
    const what = RESULTS.get(method);
    if (what === undefined || response.result === undefined) return;
    STRICT_WIRE[version][what].parse(response.result);
    expectOfficial(version, what, response.result);
    checked += 1;
  };
  const read = async (method: string, response: Response): Promise<void> => {
    const text = await response.text().catch(() => '');
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
    if (!isStream) {
      if (text !== '') check(method, text);
      return;
    }
    for (const line of text.split('\n')) if (line.startsWith('data:')) check(method, line.slice('data:'.length));
  };
  const observed: typeof fetch = async (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set('authorization', `Bearer ${key}`);
    const response = await fetch(input, { ...init, headers });
    const body = init?.body;
    if (typeof body === 'string') {
      const { method } = JSON.parse(body) as { method?: string };
      expect(response.status).toBeLessThan(500);
      const reading = read(method ?? '', response.clone());
      // Looked at in `settle`; until then it must not count as unhandled.
      reading.catch(() => undefined);
      pending.push(reading);
    }
    return response;
  };
  return {
    fetch: observed,
    checked: () => checked,
    settle: async () => {
      await Promise.all(pending.splice(0));
    },
  };
}
