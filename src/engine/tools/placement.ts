import { parentsOf, parsePath } from '../../core/workspace/path.ts';
import { MAX_FILE_BYTES, type TreeEntry } from '../../core/workspace/tree.ts';
import { failed, type ToolOutcome, type WorkspaceReader } from './tool.ts';

/** A step of a tool: what it found, or the outcome that ends the call. */
export type Found<T> = { readonly found: T } | { readonly outcome: ToolOutcome };

/** The file at a path given as an argument. Fails when it is no path, a directory, or not there. */
export async function findFile(workspace: WorkspaceReader, field: string, value: unknown): Promise<Found<TreeEntry>> {
  const path = parsePath(value);
  if (!path.ok) return { outcome: failed('invalid_path', `arguments.${field}: ${path.error}`) };
  const entry = await workspace.entry(path.value);
  if (entry !== null) return { found: entry };
  if ((await workspace.list(path.value)) !== null) return { outcome: failed('is_directory', `'${path.value}' is a directory`) };
  return { outcome: failed('not_found', `there is no file '${path.value}'`) };
}

/** The same for a file whose contents are read or edited: a link is not followed, since what it leads to has a path of its own. */
export async function findRegularFile(
  workspace: WorkspaceReader,
  field: string,
  value: unknown,
): Promise<Found<{ readonly entry: TreeEntry; readonly bytes: Uint8Array }>> {
  const file = await findFile(workspace, field, value);
  if ('outcome' in file) return file;
  const entry = file.found;
  const bytes = await workspace.read(entry.path);
  if (bytes === null) return { outcome: failed('not_found', `there is no file '${entry.path}'`) };
  if (entry.mode !== '120000') return { found: { entry, bytes } };
  const target = new TextDecoder().decode(bytes);
  return { outcome: failed('is_symlink', `'${entry.path}' is a symbolic link to '${target}'; name the file it leads to`) };
}

/** The place a file would be written to, with what is there now. Fails where a directory is, or a file where a directory is needed. */
export async function findPlace(
  workspace: WorkspaceReader,
  field: string,
  value: unknown,
): Promise<Found<{ readonly path: string; readonly entry: TreeEntry | null }>> {
  const path = parsePath(value);
  if (!path.ok) return { outcome: failed('invalid_path', `arguments.${field}: ${path.error}`) };
  for (const parent of parentsOf(path.value)) {
    const entry = await workspace.entry(parent);
    if (entry !== null) {
      return {
        outcome: failed(
          'not_a_directory',
          `'${path.value}' lies below '${parent}', which is a ${entry.mode === '120000' ? 'symbolic link' : 'file'}`,
        ),
      };
    }
  }
  const entry = await workspace.entry(path.value);
  if (entry === null && (await workspace.list(path.value)) !== null) {
    return { outcome: failed('is_directory', `'${path.value}' is a directory`) };
  }
  return { found: { path: path.value, entry } };
}

/** The failure of a file that would be too large to store. */
export function tooLarge(path: string, sizeBytes: number): ToolOutcome {
  return failed('too_large', `'${path}' would be ${sizeBytes} bytes; a file may have at most ${MAX_FILE_BYTES}`);
}
