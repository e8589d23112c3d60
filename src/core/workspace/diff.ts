import { digestOf, type Sha256 } from '../digest.ts';
import { type Changes, changesBetween } from './changes.ts';
import { LineDiffBudget } from './line-diff.ts';
import { formatPatch, type PatchSide } from './patch.ts';
import { compareUtf8 } from './path.ts';
import { type ContentPair, findRenames, type Rename } from './renames.ts';
import { decodeText } from './text.ts';
import type { FileMode, Tree, TreeEntry } from './tree.ts';

/**
 * What happened to one file. `binary`: the contents differ and at least one is not text, so there are no counts and no lines to show.
 * `patch` is git's unified form. A file that became a link, or the reverse, is `modified` and its patch has two parts.
 */
export interface FileDiff {
  readonly path: string;
  readonly from_path?: string;
  readonly status: 'added' | 'modified' | 'deleted' | 'renamed' | 'mode_changed';
  readonly binary: boolean;
  readonly additions: number;
  readonly deletions: number;
  readonly mode_before?: FileMode;
  readonly mode_after?: FileMode;
  readonly blob_before?: string;
  readonly blob_after?: string;
  readonly patch: string;
}

/** Files in the order of their (new) paths, and the sums over them. The patches together are one patch that `git apply` takes. */
export interface TreeDiff {
  readonly files: readonly FileDiff[];
  readonly totals: { readonly files: number; readonly additions: number; readonly deletions: number; readonly binary: number };
}

/** A changed path with what is there before and after; a rename has both under different paths. */
interface Pair {
  readonly before: TreeEntry | null;
  readonly after: TreeEntry | null;
  readonly similarity?: number;
}

/**
 * The difference between two trees. `content` must give the bytes of every digest that `blobsNeeded` names; one that is missing is a
 * bug of the caller and throws. The work is bounded whatever the files hold: where the best line diff would take too long, a coarser
 * one that is as correct takes its place, and renames beyond the bound show as a deleted and an added file.
 */
export function diffTrees(base: Tree, current: Tree, content: (blob: string) => Uint8Array | undefined): TreeDiff {
  const textOf = (entry: TreeEntry): string | null => decodeText(bytesOf(entry, content));
  const budget = new LineDiffBudget();
  const files = pairsOf(base, current, textOf).map((pair) => diffPair(pair, textOf, budget));
  const totals = { files: files.length, additions: 0, deletions: 0, binary: 0 };
  for (const file of files) {
    totals.additions += file.additions;
    totals.deletions += file.deletions;
    if (file.binary) totals.binary += 1;
  }
  return { files, totals };
}

/** The digests whose bytes `diffTrees` reads, each once. Files that only moved or changed their mode need none. */
export function blobsNeeded(base: Tree, current: Tree): readonly string[] {
  const needed = new Set<string>();
  for (const { before, after } of exactPairs(base, current).pairs) {
    if (before !== null && after !== null && before.blob === after.blob && isLink(before) === isLink(after)) continue;
    if (before !== null) needed.add(before.blob);
    if (after !== null) needed.add(after.blob);
  }
  return [...needed].sort();
}

/** What an approval of a diff is bound to: both tree digests and what happened to each path. Needs neither trees nor contents. */
export function diffDigest(sha256: Sha256, diff: { readonly base: string; readonly result: string; readonly changes: Changes }): string {
  const files = [...diff.changes]
    .sort(([a], [b]) => compareUtf8(a, b))
    .map(([path, change]) =>
      change.kind === 'delete' ? { path, after: null } : { path, after: { mode: change.mode, blob: change.blob } },
    );
  return digestOf(sha256, { v: 1, base: diff.base, result: diff.result, files });
}

/**
 * All patches as one text, as `git diff` would give it. git applies all of it but binary contents, and (its own diffs as well) a directory
 * in the place of a link that leads to one.
 */
export function patchOf(diff: TreeDiff): string {
  return diff.files.map((file) => file.patch).join('');
}

/** Changed paths with exact renames joined, and what is left of added and deleted files. */
function exactPairs(
  base: Tree,
  current: Tree,
): { readonly pairs: readonly Pair[]; readonly added: TreeEntry[]; readonly deleted: TreeEntry[] } {
  const added: TreeEntry[] = [];
  const deleted: TreeEntry[] = [];
  const pairs: Pair[] = [];
  for (const path of changesBetween(base, current).keys()) {
    const before = base.entries.get(path) ?? null;
    const after = current.entries.get(path) ?? null;
    if (before === null && after !== null) added.push(after);
    else if (before !== null && after === null) deleted.push(before);
    else pairs.push({ before, after });
  }
  const exact = findRenames(deleted, added, null);
  const moved = new Set(exact.flatMap(({ from, to }) => [from, to]));
  const left = { added: added.filter((entry) => !moved.has(entry)), deleted: deleted.filter((entry) => !moved.has(entry)) };
  return {
    ...left,
    pairs: [
      ...pairs,
      ...exact.map(pairOfRename),
      ...left.added.map((after) => ({ before: null, after })),
      ...left.deleted.map((before) => ({ before, after: null })),
    ],
  };
}

function pairsOf(base: Tree, current: Tree, textOf: (entry: TreeEntry) => string | null): readonly Pair[] {
  const { pairs, added, deleted } = exactPairs(base, current);
  const similar = findRenames(deleted, added, textOf);
  const moved = new Set(similar.flatMap(({ from, to }) => [from, to]));
  const isMoved = ({ before, after }: Pair) =>
    (before === null && after !== null && moved.has(after)) || (after === null && before !== null && moved.has(before));
  const joined = [...pairs.filter((pair) => !isMoved(pair)), ...similar.map(pairOfRename)];
  return joined.sort((a, b) => compareUtf8(pathOf(a), pathOf(b)));
}

function pairOfRename({ from, to, similarity }: Rename): Pair {
  return { before: from, after: to, similarity };
}

function diffPair(pair: Pair, textOf: (entry: TreeEntry) => string | null, budget: LineDiffBudget): FileDiff {
  const { before, after, similarity } = pair;
  const isSameContent = before !== null && after !== null && before.blob === after.blob && isLink(before) === isLink(after);
  const side = (entry: TreeEntry | null): PatchSide | null =>
    entry === null ? null : { path: entry.path, mode: entry.mode, text: isSameContent ? '' : textOf(entry) };
  const sides: ContentPair<PatchSide> = { before: side(before), after: side(after) };
  const written = formatPatch(sides, similarity ?? null, budget);
  return {
    path: pathOf(pair),
    ...(similarity !== undefined && before !== null ? { from_path: before.path } : {}),
    status: statusOf(pair, isSameContent),
    binary: sides.before?.text === null || sides.after?.text === null,
    additions: written.additions,
    deletions: written.deletions,
    ...(before === null ? {} : { mode_before: before.mode, blob_before: before.blob }),
    ...(after === null ? {} : { mode_after: after.mode, blob_after: after.blob }),
    patch: written.text,
  };
}

function statusOf({ before, after, similarity }: Pair, isSameContent: boolean): FileDiff['status'] {
  if (similarity !== undefined) return 'renamed';
  if (before === null) return 'added';
  if (after === null) return 'deleted';
  return isSameContent ? 'mode_changed' : 'modified';
}

function pathOf({ before, after }: Pair): string {
  return after?.path ?? before?.path ?? '';
}

function isLink(entry: TreeEntry): boolean {
  return entry.mode === '120000';
}

function bytesOf(entry: TreeEntry, content: (blob: string) => Uint8Array | undefined): Uint8Array {
  const bytes = content(entry.blob);
  if (bytes === undefined) throw new Error(`the content of blob ${entry.blob} was not given`);
  return bytes;
}
