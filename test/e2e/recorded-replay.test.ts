/**
 * What the official SDK clients sent to the official SDK servers, sent again to the conformance agent, in its order: each answer has the shape
 * of the recorded one, member by member. Where the recordings do not lie beside the repository there is nothing to replay.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ProtocolVersion } from '../../src/a2a/version.ts';
import { ORACLES_PRESENT, ORACLES_REASON, readOracle } from '../a2a/oracles.ts';
import { type ConformanceAgent, startConformanceAgent } from '../conformance/agent-process.ts';

type Any = ReturnType<typeof JSON.parse>;

interface Recorded {
  readonly label: string;
  readonly request: { readonly method: string; readonly url: string; readonly headers: Record<string, string>; readonly body?: Any };
  readonly response: { readonly status: number; readonly body?: Any; readonly sse?: readonly string[] };
}

const RECORDINGS: readonly (readonly [version: ProtocolVersion, binding: 'JSONRPC' | 'HTTP_JSON'])[] = [
  ['1.0', 'JSONRPC'],
  ['0.3', 'JSONRPC'],
  ['1.0', 'HTTP_JSON'],
  ['0.3', 'HTTP_JSON'],
];

/**
 * Members that need not be there: metadata, what the other server happened to say, the type of a part that is plain text or JSON anyway, and
 * the secrets of a webhook, which are never shown again.
 */
const FREE = /(^|\.)(metadata|token|credentials)(\.|$)|^error\.(message|data)|\.status\.message(\.|$)|\.?history(\.|\[|$)|\.mediaType$/;

/** Paths of members, whatever their values; the parts of a list are one. */
function shapeOf(value: Any, path = '', paths = new Set<string>()): Set<string> {
  if (Array.isArray(value)) for (const each of value) shapeOf(each, `${path}[]`, paths);
  else if (typeof value === 'object' && value !== null)
    for (const [name, member] of Object.entries(value)) {
      const at = path === '' ? name : `${path}.${name}`;
      paths.add(at);
      shapeOf(member, at, paths);
    }
  return paths;
}

const shownBy = (value: Any): readonly string[] => [...shapeOf(value)].filter((path) => !FREE.test(path)).sort();

const eventsIn = (frames: readonly string[]): Any[] =>
  frames.flatMap((frame) => frame.split('\n')).flatMap((line) => (line.startsWith('data:') ? [JSON.parse(line.slice(5)) as Any] : []));

const kindOf = (event: Any): string => {
  const inner = event.result ?? event;
  return inner.kind ?? Object.keys(inner)[0];
};

let agent: ConformanceAgent | undefined;
beforeAll(async () => {
  if (ORACLES_PRESENT) agent = await startConformanceAgent('main');
}, 60_000);
afterAll(() => agent?.stop());

describe.skipIf(!ORACLES_PRESENT).each(RECORDINGS)(
  `recorded traffic of the %s SDK over %s, replayed${ORACLES_REASON}`,
  (version, binding) => {
    const calls = (ORACLES_PRESENT ? (readOracle(`recorded/${version}-${binding}.json`) as Recorded[]) : []).filter(
      // 0.3 says nothing of a subscription to a task that has ended; the servers differ, and here it is answered with the task.
      ({ label }) => label !== 'agent card' && !(version === '0.3' && label.startsWith('subscribe: terminal task')),
    );
    test('is there', () => {
      expect(calls.length).toBeGreaterThan(20);
    });

    /** Ids of their server by ours, as they come up. */
    const ids = new Map<string, string>();
    const learn = (theirs: Any, ours: Any): void => {
      const task = (answer: Any) => (answer?.result ?? answer)?.task ?? answer?.result ?? answer;
      const [a, b] = [task(theirs), task(ours)];
      for (const member of ['id', 'contextId'])
        if (typeof a?.[member] === 'string' && typeof b?.[member] === 'string') ids.set(a[member], b[member]);
    };
    const translated = (text: string): string => [...ids].reduce((all, [theirs, ours]) => all.replaceAll(theirs, ours), text);

    test.each(calls.map((call) => [call.label, call] as const))('%s', async (label, { request, response }) => {
      const path = binding === 'JSONRPC' ? '/a2a' : translated(request.url).replace(/^.*\/a2a\/rest/, '');
      const answer = await fetch(`${agent?.url}${path}`, {
        method: request.method,
        headers: request.headers,
        ...(request.body === undefined ? {} : { body: translated(JSON.stringify(request.body)) }),
      });
      // A body is what clients of a deletion parse; theirs answer none.
      const theirs = response.status === 201 || response.status === 204 ? 200 : response.status;
      const text = await answer.text();
      expect([label, answer.status, answer.status === theirs ? '' : text]).toEqual([label, theirs, '']);
      if (response.sse !== undefined && response.sse.length > 0) {
        const [recorded, got] = [eventsIn(response.sse), eventsIn([text])];
        expect(answer.headers.get('content-type')).toMatch(/^text\/event-stream/);
        learn(recorded[0], got[0]);
        expect([kindOf(got[0]), kindOf(got.at(-1))]).toEqual([kindOf(recorded[0]), kindOf(recorded.at(-1))]);
        for (const kind of new Set(recorded.map(kindOf))) {
          const [sample, own] = [recorded, got].map((events) => events.filter((event) => kindOf(event) === kind));
          const missing = shownBy(sample).filter((member) => !shownBy(own).includes(member));
          expect([kind, missing]).toEqual([kind, []]);
        }
        return;
      }
      if (response.body === undefined || text === '') return;
      const own = JSON.parse(text) as Any;
      learn(response.body, own);
      expect(shownBy(response.body).filter((member) => !shownBy(own).includes(member))).toEqual([]);
      if (response.body.error?.code !== undefined) expect(own.error.code).toBe(response.body.error.code);
      const reasonOf = ({ error }: Any) => (error?.data ?? error?.details)?.[0]?.reason;
      if (reasonOf(response.body) !== undefined) expect(reasonOf(own)).toBe(reasonOf(response.body));
    });
  },
);
