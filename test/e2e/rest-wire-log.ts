/** The same as wire-log.ts for HTTP+JSON: what an answer is stands in its path, and errors have the form of the version. */
import { expect } from 'vitest';
import type { ProtocolVersion } from '../../src/a2a/version.ts';
import { expectOfficial } from '../a2a/oracles.ts';
import { STRICT_REST_03, STRICT_WIRE } from '../a2a/strict-wire.ts';
import type { WireLog } from './wire-log.ts';

type What = 'sendResult' | 'event' | 'task' | 'page' | 'pushConfig' | 'pushList';

const RESULTS: readonly (readonly [line: RegExp, what: What])[] = [
  [/^POST \S*\/message:send$/, 'sendResult'],
  [/^POST \S*\/message:stream$/, 'event'],
  [/^(POST|GET) \S*\/tasks\/[^/]+:subscribe$/, 'event'],
  [/^POST \S*\/tasks\/[^/]+:cancel$/, 'task'],
  [/^GET \S*\/tasks\/[^/]+$/, 'task'],
  [/^GET \S*\/tasks$/, 'page'],
  [/^POST \S*\/pushNotificationConfigs$/, 'pushConfig'],
  [/^GET \S*\/pushNotificationConfigs$/, 'pushList'],
  [/^GET \S*\/pushNotificationConfigs\/[^/]+$/, 'pushConfig'],
];

export function restWireLog(version: ProtocolVersion, key: string): WireLog {
  let checked = 0;
  const pending: Promise<void>[] = [];
  const checkResult = (what: What, text: string): void => {
    const result = JSON.parse(text) as unknown;
    (version === '1.0' ? STRICT_WIRE['1.0'] : STRICT_REST_03)[what].parse(result);
    // The official schemas of 0.3 are those of its JSON-RPC; the shapes of its proto are held to our own.
    if (version === '1.0' && what !== 'page') expectOfficial('1.0', what, result);
    checked += 1;
  };
  const check = async (line: string, response: Response): Promise<void> => {
    const text = await response.text().catch(() => '');
    if (!response.ok) {
      const error = JSON.parse(text) as { error?: object; code?: unknown };
      if (version === '0.3') expect(error).toMatchObject({ code: expect.any(Number), message: expect.any(String) });
      else expect(error.error).toMatchObject({ code: response.status, status: expect.any(String), details: expect.any(Array) });
      return;
    }
    const what = RESULTS.find(([pattern]) => pattern.test(line))?.[1];
    if (what === undefined || text === '') return;
    if (response.headers.get('content-type') !== 'text/event-stream') checkResult(what, text);
    else for (const each of text.split('\n')) if (each.startsWith('data:')) checkResult(what, each.slice('data:'.length));
  };
  const observed: typeof fetch = async (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set('authorization', `Bearer ${key}`);
    const response = await fetch(input, { ...init, headers });
    expect(response.status).toBeLessThan(500);
    const { pathname } = new URL(input instanceof Request ? input.url : input);
    if (!pathname.startsWith('/.well-known/')) {
      const reading = check(`${init?.method ?? 'GET'} ${pathname}`, response.clone());
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
