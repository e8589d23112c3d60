/**
 * Writes without a sandbox (`sandbox.strategy` none): an authorised write goes to the project's head at once, as an effect of its own,
 * `intent → sent → settled | failed`. The row that says `sent` holds all of the write, so that it can be sent again after a crash and asked
 * about after the end; the project does it once, under the call's key.
 */
import type { JsonValue } from '../json.ts';
import type { Change } from '../workspace/changes.ts';
import type { TreeEntry } from '../workspace/tree.ts';
import type { Plan, Stored } from './plan.ts';

/** One path and what it is afterwards. */
export type PathChange = readonly [path: string, change: Change];

/** A write that was sent, as the state of its call keeps it until the outcome is known. */
export interface SentWrite {
  /** The same for every attempt of the call: whatever was committed under it is the call's write. */
  readonly commitId: string;
  /** Tree that the write was made for; the commit compares the project's head with it. */
  readonly head: string;
  readonly changes: readonly PathChange[];
  /** The same paths as they were in that tree; what was not there is a deletion. */
  readonly before: readonly PathChange[];
  /** What the call answers once it is done. */
  readonly result: Stored;
  readonly reportedUsd: JsonValue;
  readonly taint: string | null;
}

/** What a plan has written to its project so far. */
export interface WrittenAtOnce {
  readonly writes: number;
  /** The project's head after the newest of them. Others may have moved it since. */
  readonly head: string;
  /** Every written path as it was before the plan's first write to it. */
  readonly before: readonly PathChange[];
}

/** A write that the project holds: the trees before and after it. */
export interface CommittedWrite {
  readonly head: string;
  readonly previous: string;
  readonly changes: readonly PathChange[];
  readonly before: readonly PathChange[];
}

/**
 * Whether the writes of a plan go to its project at once. An action that applies nothing keeps its workspace, whatever the settings say, and
 * so does a plan without a project.
 */
export function writesAtOnce({
  sandbox,
  project,
  action,
}: {
  readonly sandbox: Pick<Plan['sandbox'], 'strategy'>;
  readonly project: object | null;
  readonly action: Pick<Plan['action'], 'apply'>;
}): boolean {
  return sandbox.strategy === 'none' && project !== null && action.apply !== 'none';
}

/** Files of which a plan keeps what it last knew; of those before, what was there when a write was asked for counts. */
export const MAX_SEEN = 500;

/** What is at a path, as the change that makes it so; nothing there is a deletion. */
export function entryAs(entry: TreeEntry | null | undefined): Change {
  return entry == null ? { kind: 'delete' } : { kind: 'write', mode: entry.mode, blob: entry.blob, sizeBytes: entry.sizeBytes };
}

/** What a plan last knew of files, with what it has come to know now. The newest last. */
export function withSeen(known: readonly PathChange[] | undefined, now: readonly PathChange[]): readonly PathChange[] {
  const newer = new Set(now.map(([path]) => path));
  return [...(known ?? []).filter(([path]) => !newer.has(path)), ...now].slice(-MAX_SEEN);
}

/** Whether a path is as it was known to be: the same contents in the same mode, or nothing. */
export function isAsKnown(entry: TreeEntry | null | undefined, known: Change): boolean {
  return known.kind === 'delete' ? entry == null : entry?.blob === known.blob && entry.mode === known.mode;
}

/** The account of what was written, with one write more. */
export function withWrite(written: WrittenAtOnce | undefined, { head, before }: Pick<CommittedWrite, 'head' | 'before'>): WrittenAtOnce {
  const known = new Set((written?.before ?? []).map(([path]) => path));
  return {
    writes: (written?.writes ?? 0) + 1,
    head,
    before: [...(written?.before ?? []), ...before.filter(([path]) => !known.has(path))],
  };
}
