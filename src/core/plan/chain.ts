import type { Sha256 } from '../digest.ts';
import { canonicalJson } from '../json.ts';
import type { LogRow, PlanEvent } from './events.ts';

/** The hash before the first row: bound to org and plan, so that a whole log cannot be moved to another plan. */
export function genesisHash(sha256: Sha256, org: string, planId: string): string {
  return sha256(canonicalJson({ v: 1, org, plan_id: planId }));
}

/** Gives an event its place: hash = SHA-256(prev ‖ canonical JSON of the rest). */
export function chainRow(sha256: Sha256, prev: string, seq: number, event: PlanEvent): LogRow {
  return { v: 1, seq, prev, ...event, hash: hashRow(sha256, prev, seq, event) };
}

export type ChainProblem = { readonly seq: number; readonly problem: 'gap' | 'broken_link' | 'changed' };

export type ChainVerdict =
  | { readonly valid: true; readonly entries: number; readonly head: string }
  | ({ readonly valid: false; readonly entries: number; readonly head: string } & ChainProblem);

/** What an object says of its own log: the chain, and whether the state it acts on is the fold of it. */
export type LogVerdict =
  | ChainVerdict
  | { readonly valid: false; readonly entries: number; readonly head: string; readonly seq: number; readonly problem: 'state_differs' };

/**
 * Recomputes every hash from the rows' own content. Names the first row that is wrong: its number does not follow (`gap`),
 * it does not continue the row before (`broken_link`), or its content is not what was hashed (`changed`).
 * `rows` in order; `from` continues a chain whose earlier part has been verified.
 */
export function verifyChain(sha256: Sha256, genesis: string, rows: Iterable<LogRow>, from = { seq: 0, head: genesis }): ChainVerdict {
  let { seq, head } = from;
  let entries = 0;
  for (const row of rows) {
    entries += 1;
    if (row.seq !== seq + 1) return { valid: false, entries, head, seq: row.seq, problem: 'gap' };
    if (row.prev !== head) return { valid: false, entries, head, seq: row.seq, problem: 'broken_link' };
    const { v: _v, seq: _seq, prev: _prev, hash, ...event } = row;
    if (hashRow(sha256, head, row.seq, event as PlanEvent) !== hash || row.v !== 1) {
      return { valid: false, entries, head, seq: row.seq, problem: 'changed' };
    }
    seq = row.seq;
    head = hash;
  }
  return { valid: true, entries, head };
}

function hashRow(sha256: Sha256, prev: string, seq: number, event: PlanEvent): string {
  return sha256(prev + canonicalJson({ v: 1, seq, ...event }));
}
