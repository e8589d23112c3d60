import type { Sha256 } from '../digest.ts';
import type { FieldIssue, Refusal } from '../refusal.ts';
import { err, ok, type Result } from '../result.ts';
import { baseName, compareUtf8, parentsOf, parsePath } from './path.ts';

/** Most files a tree holds. */
export const MAX_FILES = 20_000;

/** Largest file, in bytes: a blob is one row, and rows end at 2 MB. */
export const MAX_FILE_BYTES = 1_048_576;

/** Largest sum of file sizes of a tree, in bytes. */
export const MAX_TREE_BYTES = 268_435_456;

/** git's modes: a file, an executable file, a symbolic link (whose blob is its target). */
export const FILE_MODES = ['100644', '100755', '120000'] as const;

export type FileMode = (typeof FILE_MODES)[number];

export function isFileMode(value: unknown): value is FileMode {
  return FILE_MODES.some((mode) => mode === value);
}

/** One file of a tree. `blob` is the lower-case hex SHA-256 of its bytes. */
export interface TreeEntry {
  readonly path: string;
  readonly mode: FileMode;
  readonly blob: string;
  readonly sizeBytes: number;
}

/** A set of files, by path and in the order of their UTF-8 bytes. A value: nothing in it ever changes. Made by `makeTree`. */
export interface Tree {
  readonly entries: ReadonlyMap<string, TreeEntry>;
  readonly totalBytes: number;
}

/** What is in a directory: a file, a link, or a directory with the number of files below it. */
export type DirectoryItem =
  | { readonly kind: 'file' | 'symlink'; readonly name: string; readonly path: string; readonly mode: FileMode; readonly sizeBytes: number }
  | { readonly kind: 'directory'; readonly name: string; readonly path: string; readonly files: number };

export const EMPTY_TREE: Tree = { entries: new Map(), totalBytes: 0 };

/** How many wrong entries a refusal names. */
const MAX_ISSUES = 20;

/**
 * Makes a tree of entries in any order. Refused (`invalid`, each issue naming the path): a path that is not one, a path given
 * twice, a file where another entry needs a directory, a malformed digest or mode or size. Refused (`too_large`): over the limits.
 */
export function makeTree(entries: Iterable<TreeEntry>): Result<Tree, Refusal> {
  const issues: FieldIssue[] = [];
  const byPath = new Map<string, TreeEntry>();
  const oversized: string[] = [];
  for (const entry of entries) {
    if (entry.sizeBytes > MAX_FILE_BYTES) oversized.push(entry.path);
    const issue = byPath.has(entry.path) ? 'is given twice' : entryIssue(entry);
    if (issue !== null) issues.push({ field: fieldOf(entry.path), message: issue });
    else byPath.set(entry.path, entry);
    if (issues.length >= MAX_ISSUES || byPath.size > MAX_FILES) break;
  }
  if (issues.length > 0) return err(invalidTree(issues));
  if (oversized.length > 0) {
    const named = oversized.slice(0, MAX_ISSUES);
    return err({
      kind: 'too_large',
      message: `files above the limit of ${MAX_FILE_BYTES} bytes: ${named.join(', ')}${oversized.length > named.length ? ', …' : ''}`,
      limitBytes: MAX_FILE_BYTES,
      details: { paths: named, files: oversized.length },
    });
  }
  return assembleTree(byPath);
}

/** SHA-256 over the sorted `mode path blob` lines, each ended by a line feed, sorted by their UTF-8 bytes (design section 12). */
export function treeDigest(sha256: Sha256, tree: Tree): string {
  const lines: string[] = [];
  for (const { mode, path, blob } of tree.entries.values()) lines.push(`${mode} ${path} ${blob}\n`);
  return sha256(lines.sort(compareUtf8).join(''));
}

export function findEntry(tree: Tree, path: string): TreeEntry | null {
  return tree.entries.get(path) ?? null;
}

/** Whether some file lies below `path`. The root (`''`) always is a directory. */
export function isDirectory(tree: Tree, path: string): boolean {
  return path === '' || directoriesOf(tree).has(path);
}

/** What is directly inside a directory, by name; null when there is no such directory. `''` is the root. */
export function listDirectory(tree: Tree, directory: string): readonly DirectoryItem[] | null {
  return directoriesOf(tree).get(directory) ?? (directory === '' ? [] : null);
}

/**
 * Assembles entries that are known to be well formed and unique: sorts them and checks what concerns them together
 * (files against directories, limits). For this folder; others use `makeTree`.
 */
export function assembleTree(byPath: ReadonlyMap<string, TreeEntry>): Result<Tree, Refusal> {
  if (byPath.size > MAX_FILES) {
    return err({
      kind: 'invalid',
      message: `too many files: at most ${MAX_FILES}`,
      issues: [{ field: 'files', message: `at most ${MAX_FILES}` }],
    });
  }
  const sorted = [...byPath.values()].sort((a, b) => compareUtf8(a.path, b.path));
  const issues: FieldIssue[] = [];
  let totalBytes = 0;
  const checked = new Set<string>();
  for (const entry of sorted) {
    totalBytes += entry.sizeBytes;
    for (const parent of parentsOf(entry.path)) {
      if (checked.has(parent)) continue;
      checked.add(parent);
      if (byPath.has(parent)) issues.push({ field: fieldOf(entry.path), message: `lies below '${parent}', which is a file` });
    }
    if (issues.length >= MAX_ISSUES) break;
  }
  if (issues.length > 0) return err(invalidTree(issues));
  if (totalBytes > MAX_TREE_BYTES) {
    return err({
      kind: 'too_large',
      message: `the files are ${totalBytes} bytes together; at most ${MAX_TREE_BYTES}`,
      limitBytes: MAX_TREE_BYTES,
    });
  }
  return ok({ entries: new Map(sorted.map((entry) => [entry.path, entry])), totalBytes });
}

/** What is wrong with one entry taken alone, or null. */
export function entryIssue(entry: TreeEntry): string | null {
  const path = parsePath(entry.path);
  if (!path.ok) return path.error;
  if (!isFileMode(entry.mode)) return `mode must be one of ${FILE_MODES.join(', ')}`;
  if (typeof entry.blob !== 'string' || !/^[0-9a-f]{64}$/.test(entry.blob)) return 'blob must be a SHA-256 in lower-case hex';
  if (!Number.isSafeInteger(entry.sizeBytes) || entry.sizeBytes < 0) return 'size must be a number of bytes';
  return null;
}

// A directory exists only through the files below it. The index is derived once per tree and dies with it.
const directoryIndexes = new WeakMap<Tree, ReadonlyMap<string, readonly DirectoryItem[]>>();

function directoriesOf(tree: Tree): ReadonlyMap<string, readonly DirectoryItem[]> {
  const known = directoryIndexes.get(tree);
  if (known !== undefined) return known;
  const filesBelow = new Map<string, number>();
  const contents = new Map<string, DirectoryItem[]>();
  const add = (directory: string, item: DirectoryItem) => {
    const items = contents.get(directory);
    if (items === undefined) contents.set(directory, [item]);
    else items.push(item);
  };
  for (const { path, mode, sizeBytes } of tree.entries.values()) {
    const parents = parentsOf(path);
    for (const parent of parents) filesBelow.set(parent, (filesBelow.get(parent) ?? 0) + 1);
    add(parents.at(-1) ?? '', { kind: mode === '120000' ? 'symlink' : 'file', name: baseName(path), path, mode, sizeBytes });
  }
  for (const [path, files] of filesBelow) {
    add(parentsOf(path).at(-1) ?? '', { kind: 'directory', name: baseName(path), path, files });
  }
  for (const items of contents.values()) items.sort((a, b) => compareUtf8(a.name, b.name));
  directoryIndexes.set(tree, contents);
  return contents;
}

function invalidTree(issues: readonly FieldIssue[]): Refusal {
  const [first] = issues;
  return { kind: 'invalid', message: first === undefined ? 'invalid tree' : `${first.field}: ${first.message}`, issues };
}

/** Shown in messages; a hostile path must not flood them. */
function fieldOf(path: unknown): string {
  const text = typeof path === 'string' ? path : typeof path;
  return `files[${JSON.stringify(text.length > 120 ? `${text.slice(0, 120)}…` : text)}]`;
}
