import type { Sha256 } from '../digest.ts';
import { canonicalJson } from '../json.ts';
import { invalidState, type Refusal } from '../refusal.ts';
import type { ActorRef } from './plan.ts';

/** An event of any log, a plan's or the org's own, before it has a place in the chain. */
export interface ChainEvent {
  readonly type: string;
  readonly at: string;
  readonly actor: ActorRef;
  readonly data: object;
}

/** An event with its place in the chain (design section 12). */
export type Chained<E extends ChainEvent> = E & { readonly v: 1; readonly seq: number; readonly prev: string; readonly hash: string };

/** A row of any log. */
export type ChainedRow = Chained<ChainEvent>;

/**
 * Stands where a plan id stands in everything that names a log (signed heads, exports, entries in D1) for the org's own log. A plan id is
 * a ULID, so no plan has this one.
 */
export const ORG_LOG_ID = 'org';

/**
 * The hash before the first row: bound to org and plan, so that a whole log cannot be moved to another plan; for the org's own log to org
 * and kind.
 */
export function genesisHash(sha256: Sha256, org: string, logId: string): string {
  return sha256(canonicalJson(logId === ORG_LOG_ID ? { v: 1, org, kind: 'org' } : { v: 1, org, plan_id: logId }));
}

/** Gives an event its place: hash = SHA-256(prev ‖ canonical JSON of the rest). */
export function chainRow<E extends ChainEvent>(sha256: Sha256, prev: string, seq: number, event: E): Chained<E> {
  return { v: 1, seq, prev, ...event, hash: hashRow(sha256, prev, seq, event) };
}

export type ChainProblem = { readonly seq: number; readonly problem: 'gap' | 'broken_link' | 'changed' };

export type ChainVerdict =
  | { readonly valid: true; readonly entries: number; readonly head: string }
  | ({ readonly valid: false; readonly entries: number; readonly head: string } & ChainProblem);

/** What an object finds wrong with its own log: the chain, its end, what was signed of it, and the state that it acts on. */
export type LogProblem =
  | ChainProblem['problem']
  | 'truncated'
  | 'rewritten'
  | 'state_differs'
  /** A value that a row refers to is not beside the log, or is not the one that its digest names. */
  | 'value_missing'
  | 'value_changed';

/** Why a plan acts on nothing any more: the first row that is wrong, and what is wrong with it. */
export interface LogDamage {
  readonly seq: number;
  readonly problem: LogProblem;
  readonly detail: string;
  /** Somebody closed the plan for it. */
  readonly retired?: { readonly by: ActorRef; readonly at: string };
}

/** Why a damaged plan does nothing. Not retryable: it stays so until somebody with access to the storage has put it right. */
export function damagedLog({ seq, problem, detail, retired }: LogDamage): Refusal {
  const closed = retired === undefined ? '' : `; ${retired.by.id} closed the plan at ${retired.at}`;
  return invalidState(`the log of this plan is damaged (${problem} at row ${seq}: ${detail}); nothing is decided on it any more${closed}`, {
    ...(retired === undefined ? {} : { retired_at: retired.at, retired_by: retired.by.id }),
    reason: 'LOG_DAMAGED',
    problem,
    first_bad_seq: seq,
  });
}

/** What an object says of its own log. */
export type LogVerdict =
  | ChainVerdict
  | { readonly valid: false; readonly entries: number; readonly head: string; readonly seq: number; readonly problem: LogProblem };

/** How far a chain has been verified. */
export interface LogPosition {
  readonly seq: number;
  readonly head: string;
}

/** The verdict on the rows behind a position; `entries` counts from the beginning of the log. */
export type LogStretch = LogVerdict & {
  /** False: there are more rows behind these, which are verified from `{ seq: entries, head }` on. */
  readonly isEnd: boolean;
};

/**
 * Recomputes every hash from the rows' own content. Names the first row that is wrong: its number does not follow (`gap`),
 * it does not continue the row before (`broken_link`), or its content is not what was hashed (`changed`).
 * `rows` in order; `from` continues a chain whose earlier part has been verified.
 */
export function verifyChain(sha256: Sha256, genesis: string, rows: Iterable<ChainedRow>, from = { seq: 0, head: genesis }): ChainVerdict {
  let { seq, head } = from;
  let entries = 0;
  for (const row of rows) {
    entries += 1;
    if (row.seq !== seq + 1) return { valid: false, entries, head, seq: row.seq, problem: 'gap' };
    if (row.prev !== head) return { valid: false, entries, head, seq: row.seq, problem: 'broken_link' };
    const { v: _v, seq: _seq, prev: _prev, hash, ...event } = row;
    if (hashOrNull(sha256, head, row.seq, event) !== hash || row.v !== 1) {
      return { valid: false, entries, head, seq: row.seq, problem: 'changed' };
    }
    seq = row.seq;
    head = hash;
  }
  return { valid: true, entries, head };
}

/** Null: the content has no canonical form, so no row was ever made of it. */
function hashOrNull(sha256: Sha256, prev: string, seq: number, event: ChainEvent): string | null {
  try {
    return hashRow(sha256, prev, seq, event);
  } catch {
    return null;
  }
}

function hashRow(sha256: Sha256, prev: string, seq: number, event: ChainEvent): string {
  return sha256(prev + canonicalJson({ v: 1, seq, ...event }));
}
