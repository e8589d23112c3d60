import { baseName, compareUtf8 } from './path.ts';
import { splitLines } from './text.ts';
import type { TreeEntry } from './tree.ts';

/** The two sides of one file; null where it does not exist. */
export interface ContentPair<T> {
  readonly before: T | null;
  readonly after: T | null;
}

/** A deleted file that an added one continues. `similarity` in per cent, rounded down; 100 only for equal contents. */
export interface Rename {
  readonly from: TreeEntry;
  readonly to: TreeEntry;
  readonly similarity: number;
}

/** Least similarity of a rename, in per cent: git's default. */
export const MIN_SIMILARITY = 50;

/** Most deleted times added files that are compared by content. */
const MAX_PAIRS = 10_000;

/** Most distinct lines that are looked up over all comparisons. */
const MAX_LINE_LOOKUPS = 4_000_000;

/**
 * Which added files continue deleted ones. Without `textOf` by equal contents (the same name first, empty files never); with it by
 * the share of equal lines, in bytes of the larger file. Each file is used once, the best pairs first, ties in the order of paths:
 * equal trees give equal answers. Links are left out: git cannot apply a patch that moves one and puts a directory in its place.
 */
export function findRenames(
  deleted: readonly TreeEntry[],
  added: readonly TreeEntry[],
  textOf: ((entry: TreeEntry) => string | null) | null,
): readonly Rename[] {
  return textOf === null ? exactRenames(deleted, added) : similarRenames(deleted, added, textOf);
}

function exactRenames(deleted: readonly TreeEntry[], added: readonly TreeEntry[]): readonly Rename[] {
  const sources = deleted.filter(isComparable);
  const targets = added.filter(isComparable);
  const sameName = pairUp(sources, targets, (entry) => `${entry.blob} ${baseName(entry.path)}`);
  const used = new Set(sameName.flatMap(({ from, to }) => [from, to]));
  const isFree = (entry: TreeEntry) => !used.has(entry);
  return [...sameName, ...pairUp(sources.filter(isFree), targets.filter(isFree), (entry) => entry.blob)];
}

/** Pairs entries with equal keys, in their order. */
function pairUp(sources: readonly TreeEntry[], targets: readonly TreeEntry[], keyOf: (entry: TreeEntry) => string): readonly Rename[] {
  const waiting = new Map<string, TreeEntry[]>();
  for (const entry of sources.toReversed()) {
    const key = keyOf(entry);
    const same = waiting.get(key);
    if (same === undefined) waiting.set(key, [entry]);
    else same.push(entry);
  }
  return targets.flatMap((to) => {
    const from = waiting.get(keyOf(to))?.pop();
    return from === undefined ? [] : [{ from, to, similarity: 100 }];
  });
}

function similarRenames(
  deleted: readonly TreeEntry[],
  added: readonly TreeEntry[],
  textOf: (entry: TreeEntry) => string | null,
): readonly Rename[] {
  const sources = deleted.filter(isComparable);
  const targets = added.filter(isComparable);
  if (sources.length === 0 || targets.length === 0 || sources.length * targets.length > MAX_PAIRS) return [];
  const counted = new Map<TreeEntry, CountedLines | null>();
  const linesOf = (entry: TreeEntry): CountedLines | null => {
    const known = counted.get(entry);
    if (known !== undefined) return known;
    const text = textOf(entry);
    const lines = text === null ? null : countLines(text);
    counted.set(entry, lines);
    return lines;
  };
  const candidates: Rename[] = [];
  let lookups = 0;
  for (const from of sources) {
    for (const to of targets) {
      const larger = Math.max(from.sizeBytes, to.sizeBytes);
      if (Math.min(from.sizeBytes, to.sizeBytes) * 100 < larger * MIN_SIMILARITY) continue;
      const before = linesOf(from);
      const after = linesOf(to);
      if (before === null || after === null) continue;
      lookups += Math.min(before.counts.size, after.counts.size);
      if (lookups > MAX_LINE_LOOKUPS) return pickBest(candidates);
      // Sizes are of bytes and lines of UTF-16 units; the share is taken in units, the size only narrows.
      const similarity = Math.min(99, shareOfLines(before, after));
      if (similarity >= MIN_SIMILARITY) candidates.push({ from, to, similarity });
    }
  }
  return pickBest(candidates);
}

function pickBest(candidates: Rename[]): readonly Rename[] {
  candidates.sort((a, b) => b.similarity - a.similarity || compareUtf8(a.to.path, b.to.path) || compareUtf8(a.from.path, b.from.path));
  const used = new Set<TreeEntry>();
  return candidates.filter(({ from, to }) => {
    if (used.has(from) || used.has(to)) return false;
    used.add(from).add(to);
    return true;
  });
}

function isComparable(entry: TreeEntry): boolean {
  return entry.mode !== '120000' && entry.sizeBytes > 0;
}

interface CountedLines {
  readonly counts: ReadonlyMap<string, number>;
  /** Of the whole text, in UTF-16 units. */
  readonly length: number;
}

function countLines(text: string): CountedLines {
  const counts = new Map<string, number>();
  for (const line of splitLines(text)) counts.set(line, (counts.get(line) ?? 0) + 1);
  return { counts, length: text.length };
}

/** Text in common, in per cent of the longer side. */
function shareOfLines(before: CountedLines, after: CountedLines): number {
  const [small, large] = before.counts.size <= after.counts.size ? [before.counts, after.counts] : [after.counts, before.counts];
  let common = 0;
  for (const [line, count] of small) common += line.length * Math.min(count, large.get(line) ?? 0);
  const length = Math.max(before.length, after.length);
  return length === 0 ? 0 : Math.floor((common * 100) / length);
}
