import type { JsonObject } from '../../core/json.ts';
import { parseDirectoryPath } from '../../core/workspace/path.ts';
import type { DirectoryItem } from '../../core/workspace/tree.ts';
import { argumentsSchema, flagArgument } from './arguments.ts';
import { failed, type Tool, type WorkspaceReader } from './tool.ts';

/** Most entries in one answer. */
export const MAX_LISTED = 1_000;

/** Lists a directory, or with `recursive` all below it: directories first come as themselves, then what they hold. */
export const LIST_DIRECTORY: Tool = {
  spec: {
    name: 'list_directory',
    aliases: ['list_files', 'list_dir'],
    summary: `List a directory of the project, at most ${MAX_LISTED} entries`,
    riskClass: 'read',
    parameters: argumentsSchema(
      {
        path: { type: 'string', maxLength: 1_024, description: 'The directory, relative to the root of the project; by default the root' },
        recursive: { type: 'boolean', description: 'Also list what is in its directories' },
      },
      [],
    ),
    priceMicroUsd: 0,
    scope: 'workspace',
    idempotent: true,
    skillCategory: 'files',
  },
  paths: (args) => {
    const directory = parseDirectoryPath(args.path);
    return directory.ok && directory.value !== '' ? [directory.value] : [];
  },
  async perform(args, { workspace, signal }) {
    const directory = parseDirectoryPath(args.path ?? '');
    if (!directory.ok) return failed('invalid_path', `arguments.path: ${directory.error}`);
    const path = directory.value;
    const items = await workspace.list(path);
    if (items === null) {
      return (await workspace.entry(path)) === null
        ? failed('not_found', `there is no directory '${path}'`)
        : failed('not_a_directory', `'${path}' is a file; read_file shows it`);
    }
    const listed = await walk(workspace, items, flagArgument(args, 'recursive'), signal);
    return {
      status: 'succeeded',
      result: { path: path === '' ? '.' : path, entries: listed.slice(0, MAX_LISTED), truncated: listed.length > MAX_LISTED },
    };
  },
};

/** In the order of a reader: a directory, then what it holds. Stops one past the limit, which shows that there is more. */
async function walk(
  workspace: WorkspaceReader,
  items: readonly DirectoryItem[],
  isRecursive: boolean,
  signal: AbortSignal,
): Promise<readonly JsonObject[]> {
  const listed: JsonObject[] = [];
  const waiting = items.toReversed();
  for (let item = waiting.pop(); item !== undefined && listed.length <= MAX_LISTED; item = waiting.pop()) {
    signal.throwIfAborted();
    listed.push(describe(item));
    if (isRecursive && item.kind === 'directory') waiting.push(...((await workspace.list(item.path)) ?? []).toReversed());
  }
  return listed;
}

function describe(item: DirectoryItem): JsonObject {
  if (item.kind === 'directory') return { path: item.path, kind: 'directory', files: item.files };
  return { path: item.path, kind: item.kind, size_bytes: item.sizeBytes, executable: item.mode === '100755' };
}
