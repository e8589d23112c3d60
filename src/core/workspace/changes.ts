import type { JsonValue } from '../json.ts';
import { invalidField, type Refusal } from '../refusal.ts';
import { err, ok, type Result } from '../result.ts';
import { compareUtf8 } from './path.ts';
import { assembleTree, entryIssue, type FileMode, isFileMode, type Tree, type TreeEntry } from './tree.ts';

/** What happened to one path, relative to a base tree. */
export type Change =
  | { readonly kind: 'write'; readonly mode: FileMode; readonly blob: string; readonly sizeBytes: number }
  | { readonly kind: 'delete' };

/** Changes over a base tree: at most one per path, in the order of the paths' UTF-8 bytes. A value: nothing in it ever changes. */
export type Changes = ReadonlyMap<string, Change>;

export const NO_CHANGES: Changes = new Map();

/** The same changes and one more: the last word on a path wins. The path is taken as it is (see `parsePath`). */
export function withChange(changes: Changes, path: string, change: Change): Changes {
  return sorted([...changes, [path, change]]);
}

/** One entry as it is after the changes, without building the tree. */
export function findChangedEntry(base: Tree, changes: Changes, path: string): TreeEntry | null {
  const change = changes.get(path);
  if (change === undefined) return base.entries.get(path) ?? null;
  return change.kind === 'delete' ? null : entryOf(path, change);
}

/**
 * The base tree with the changes applied. The order of the changes does not matter; deleting what is not there changes nothing.
 * Refused as `makeTree` refuses, the written entries as well as what they make of the whole.
 */
export function applyChanges(base: Tree, changes: Changes): Result<Tree, Refusal> {
  if (changes.size === 0) return ok(base);
  const entries = new Map(base.entries);
  for (const [path, change] of changes) {
    if (change.kind === 'delete') {
      entries.delete(path);
      continue;
    }
    const entry = entryOf(path, change);
    const issue = entryIssue(entry);
    if (issue !== null) return err(invalidField(`changes[${JSON.stringify(path)}]`, issue));
    entries.set(path, entry);
  }
  return assembleTree(entries);
}

/** The same effect in the fewest changes: what leaves the base as it is drops out, so equal results over one base have equal changes. */
export function normaliseChanges(base: Tree, changes: Changes): Changes {
  const effective: [string, Change][] = [];
  for (const [path, change] of changes) {
    const before = base.entries.get(path);
    const isNoOp =
      change.kind === 'delete' ? before === undefined : before !== undefined && before.blob === change.blob && before.mode === change.mode;
    if (!isNoOp) effective.push([path, change]);
  }
  return sorted(effective);
}

/** The fewest changes that make `current` of `base`. */
export function changesBetween(base: Tree, current: Tree): Changes {
  const changes: [string, Change][] = [];
  for (const path of base.entries.keys()) if (!current.entries.has(path)) changes.push([path, { kind: 'delete' }]);
  for (const [path, entry] of current.entries) {
    const before = base.entries.get(path);
    if (before !== undefined && before.blob === entry.blob && before.mode === entry.mode) continue;
    changes.push([path, { kind: 'write', mode: entry.mode, blob: entry.blob, sizeBytes: entry.sizeBytes }]);
  }
  return sorted(changes);
}

/** The JSON form, one array per path: `["write", path, mode, blob, size]` or `["delete", path]`. Part of a plan's stored state. */
export function changesToJson(changes: Changes): readonly JsonValue[] {
  return [...changes].map(([path, change]) =>
    change.kind === 'delete' ? ['delete', path] : ['write', path, change.mode, change.blob, change.sizeBytes],
  );
}

/** Reads the JSON form back. A stored row is an edge too: whatever is not the form is refused, naming the row. */
export function changesFromJson(value: unknown): Result<Changes, Refusal> {
  if (!Array.isArray(value)) return err(invalidField('changes', 'must be an array'));
  const changes = new Map<string, Change>();
  for (const [index, row] of value.entries()) {
    const read = readRow(row);
    if (read === null) return err(invalidField(`changes[${index}]`, 'must be ["write", path, mode, blob, size] or ["delete", path]'));
    const [path, change] = read;
    if (changes.has(path)) return err(invalidField(`changes[${index}]`, 'changes a path a second time'));
    changes.set(path, change);
  }
  return ok(sorted([...changes]));
}

function readRow(row: unknown): [string, Change] | null {
  if (!Array.isArray(row)) return null;
  const [kind, path, mode, blob, sizeBytes]: unknown[] = row;
  if (typeof path !== 'string') return null;
  if (kind === 'delete' && row.length === 2) {
    return entryIssue({ path, mode: '100644', blob: '0'.repeat(64), sizeBytes: 0 }) === null ? [path, { kind: 'delete' }] : null;
  }
  if (kind !== 'write' || row.length !== 5 || !isFileMode(mode) || typeof blob !== 'string' || typeof sizeBytes !== 'number') return null;
  return entryIssue({ path, mode, blob, sizeBytes }) === null ? [path, { kind: 'write', mode, blob, sizeBytes }] : null;
}

function entryOf(path: string, change: Extract<Change, { kind: 'write' }>): TreeEntry {
  return { path, mode: change.mode, blob: change.blob, sizeBytes: change.sizeBytes };
}

function sorted(changes: readonly (readonly [string, Change])[]): Changes {
  return new Map([...new Map(changes)].sort(([a], [b]) => compareUtf8(a, b)));
}
