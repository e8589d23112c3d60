import type { JsonValue } from '../../src/core/json.ts';
import type { ContentPart, Proposal, ProposedArtifact } from '../../src/core/plan/proposal.ts';
import type { Actor, ActorContext } from '../../src/engine/actors/actor.ts';

/**
 * What the public conformance suites of A2A expect of an agent under test: what it does follows from the prefix of the id of the message. A
 * message that begins with none of them is completed where its id is of the 1.0 suite (`tck-`), and waits for more where it is not, as the
 * 0.3 suite wants it.
 */
export const conformanceActor: Actor = {
  name: 'conformance/scenarios',
  propose: (context) => Promise.resolve(context.phase === 'strategize' ? { kind: 'done' } : propose(context)),
  immediateReply: ({ messageIds }) => (messageIds[0]?.startsWith('tck-message-response') === true ? 'Direct message response' : null),
};

/** What is done with a message, in its order; a plan that has done all of it is completed. */
type Deed =
  | { readonly say: string }
  | { readonly artifact: ProposedArtifact }
  | { readonly holdMs: number }
  /** Waits for the next message, which decides what comes then. */
  | 'ask';

const TEXT_FILE = { filename: 'output.txt', mediaType: 'text/plain' };
const artifact = (...parts: readonly ContentPart[]): Deed => ({ artifact: { artifactId: 'output', name: 'output', parts } });
const chunk = (text: string, rest: Pick<ProposedArtifact, 'append' | 'lastChunk'>): Deed => ({
  artifact: { artifactId: 'output', name: 'output', parts: [{ kind: 'text', text }], ...rest },
});
const file = artifact({ kind: 'raw', base64: btoa('tck'), ...TEXT_FILE });

/** Twice as long as the suites wait for the events of a stream by default. */
const HOLD_MS = 4_000;

/** The longest prefix counts. */
const SCENARIOS: readonly (readonly [prefix: string, deeds: readonly Deed[]])[] = [
  ['tck-complete-task', [{ say: 'Hello from TCK' }]],
  ['tck-artifact-text', [artifact({ kind: 'text', text: 'Generated text content' })]],
  ['tck-artifact-file-url', [artifact({ kind: 'url', url: 'https://example.com/output.txt', ...TEXT_FILE })]],
  ['tck-artifact-file', [file]],
  ['tck-artifact-data', [artifact({ kind: 'data', data: { key: 'value', count: 42 } })]],
  ['tck-input-required', ['ask']],
  ['tck-stream-001', [artifact({ kind: 'text', text: 'Stream hello from TCK' })]],
  ['tck-stream-003', [artifact({ kind: 'text', text: 'Stream task lifecycle' })]],
  ['tck-stream-ordering-001', [artifact({ kind: 'text', text: 'Ordered output' })]],
  ['tck-stream-artifact-text', [artifact({ kind: 'text', text: 'Streamed text content' })]],
  ['tck-stream-artifact-file', [file]],
  ['tck-stream-artifact-chunked', [chunk('chunk-1 ', { lastChunk: false }), chunk('chunk-2', { append: true, lastChunk: true })]],
  ['tck-', [{ say: 'Unhandled messageId prefix' }]],
  ['test-resubscribe-message-id', [{ holdMs: HOLD_MS }]],
  // What the recorded traffic of the SDKs calls a task that takes long.
  ['long-', [{ holdMs: HOLD_MS }]],
  ['', ['ask']],
];

const BY_LENGTH = SCENARIOS.toSorted(([one], [other]) => other.length - one.length);

const deedsOf = (messageId: string): readonly Deed[] => BY_LENGTH.find(([prefix]) => messageId.startsWith(prefix))?.[1] ?? [];

/** Which message is being dealt with, and how much of it is done. */
interface Place {
  readonly message: number;
  readonly done: number;
}

function propose({ cursor, messageIds }: ActorContext): Proposal {
  const { message, done } = placeOf(cursor);
  const deed = deedsOf(messageIds[message] ?? 'tck-')[done];
  if (deed === undefined) return { kind: 'done' };
  const stepId = `message-${message}-${done}`;
  const next: JsonValue = { message, done: done + 1 };
  // The message that answers is the newest one at that time.
  if (deed === 'ask') return { kind: 'ask', stepId, question: 'What next?', cursor: { message: messageIds.length, done: 0 } };
  if ('say' in deed) return { kind: 'say', stepId, text: deed.say, cursor: next };
  if ('artifact' in deed) return { kind: 'artifact', stepId, artifact: deed.artifact, cursor: next };
  return {
    kind: 'calls',
    stepId,
    calls: [{ tool: 'conformance/hold', arguments: { ms: deed.holdMs } }],
    onRefused: 'fail',
    cursor: next,
  };
}

function placeOf(cursor: JsonValue): Place {
  return typeof cursor === 'object' && cursor !== null && !Array.isArray(cursor) ? (cursor as unknown as Place) : { message: 0, done: 0 };
}
