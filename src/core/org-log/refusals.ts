/**
 * Refusals of known keys, counted. Whoever holds a key (or knows the id of one) can be refused as often as he likes; the log must neither
 * grow with it nor forget it. So the first refusal of a key for a reason in a minute is a row at once, and all further ones of that minute
 * are one more row with their number: at most two rows per key, reason and minute (for changes also per operation), and the numbers add up to what happened.
 */
import type { ActorRef } from '../plan/plan.ts';
import type { AccessRefusalReason, OrgFact } from './org-event.ts';

/** Refusals of one key for one reason that were seen together. */
export interface RefusalNote {
  readonly actor: ActorRef;
  readonly reason: AccessRefusalReason;
  readonly operations: readonly string[];
  readonly subjects: readonly string[];
  readonly count: number;
  readonly firstAt: string;
  readonly lastAt: string;
  /** Of the requests; absent where there was none. */
  readonly traceIds?: readonly string[];
}

/** Names that are kept of many. */
const MAX_NAMES = 10;

/** Longest name that is kept whole: an id that is asked for is the caller's text. */
const MAX_NAME_CHARACTERS = 128;

/** One refusal. */
export function refusalNote(
  actor: ActorRef,
  reason: AccessRefusalReason,
  operation: string,
  subject: string | null,
  at: string,
): RefusalNote {
  const clip = (text: string): string =>
    text.length <= MAX_NAME_CHARACTERS ? text : `${text.slice(0, MAX_NAME_CHARACTERS).toWellFormed()}…`;
  return {
    actor,
    reason,
    operations: [clip(operation)],
    subjects: subject === null ? [] : [clip(subject)],
    count: 1,
    firstAt: at,
    lastAt: at,
  };
}

/** What is counted together. */
export function refusalBucket({ actor, reason, operations, firstAt }: RefusalNote): string {
  const ofChange = reason.startsWith('change_') ? operations.slice(0, 1) : [];
  return JSON.stringify([actor.id, reason, firstAt.slice(0, 16), ...ofChange]);
}

/** Both notes in one; the caller knows that they belong together. */
export function mergeRefusals(a: RefusalNote | null, b: RefusalNote): RefusalNote {
  if (a === null) return b;
  return {
    actor: a.actor,
    reason: a.reason,
    operations: [...new Set([...a.operations, ...b.operations])].slice(0, MAX_NAMES),
    subjects: [...new Set([...a.subjects, ...b.subjects])].slice(0, MAX_NAMES),
    count: a.count + b.count,
    // ISO times sort as text.
    firstAt: [a.firstAt, b.firstAt].sort()[0] ?? a.firstAt,
    lastAt: [a.lastAt, b.lastAt].sort()[1] ?? a.lastAt,
    ...tracesOf([...(a.traceIds ?? []), ...(b.traceIds ?? [])]),
  };
}

/** Whether the minute in which it was counted is over. */
export function isRefusalDue(note: RefusalNote, now: string): boolean {
  return note.firstAt.slice(0, 16) < now.slice(0, 16);
}

export function refusalFact({ actor, reason, operations, subjects, count, firstAt, lastAt, traceIds = [] }: RefusalNote): OrgFact {
  const [first] = traceIds;
  return {
    type: 'access_refused',
    actor,
    data: {
      ...{ reason, count, operations, subjects, first_at: firstAt, last_at: lastAt },
      ...(traceIds.length > 1 ? { trace_ids: traceIds } : {}),
    },
    ...(first === undefined ? {} : { trace_id: first }),
  };
}

const tracesOf = (ids: readonly string[]): Pick<RefusalNote, 'traceIds'> =>
  ids.length === 0 ? {} : { traceIds: [...new Set(ids)].slice(0, MAX_NAMES) };
