import type { Refusal } from '../refusal.ts';
import { err, type Result } from '../result.ts';
import { FILE_MODES, isFileMode, MAX_FILES, makeTree, type Tree, type TreeEntry } from './tree.ts';

/**
 * The text form of a tree, for storage and transfer: one line `mode blob size path` per file, ended by a line feed, in the tree's order.
 * Unambiguous, since the path comes last and can hold spaces but no line break. The text of equal trees is equal.
 */
export function encodeManifest(tree: Tree): string {
  let text = '';
  for (const { mode, blob, sizeBytes, path } of tree.entries.values()) text += `${mode} ${blob} ${sizeBytes} ${path}\n`;
  return text;
}

/** Reads a manifest, which may come from outside. Refused with the number of the line (from 1) that is not well formed, or as `makeTree` refuses. */
export function decodeManifest(text: string): Result<Tree, Refusal> {
  if (text === '') return makeTree([]);
  if (!text.endsWith('\n')) return err(malformed(null, 'must end with a line feed'));
  const lines = text.slice(0, -1).split('\n', MAX_FILES + 1);
  const entries: TreeEntry[] = [];
  for (const [index, line] of lines.entries()) {
    const match = /^(\d{6}) ([0-9a-f]{64}) (0|[1-9]\d{0,15}) (.+)$/u.exec(line);
    const [, mode, blob, size, path] = match ?? [];
    if (mode === undefined || blob === undefined || size === undefined || path === undefined) {
      return err(malformed(index + 1, "must be 'mode blob size path'"));
    }
    if (!isFileMode(mode)) return err(malformed(index + 1, `mode must be one of ${FILE_MODES.join(', ')}`));
    entries.push({ path, mode, blob, sizeBytes: Number(size) });
  }
  return makeTree(entries);
}

function malformed(line: number | null, message: string): Refusal {
  const field = line === null ? 'manifest' : `manifest[${line}]`;
  return { kind: 'invalid', message: `${field}: ${message}`, issues: [{ field, message }] };
}
