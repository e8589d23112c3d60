import { argumentsSchema, pathSchema, pathsIn } from './arguments.ts';
import { findFile } from './placement.ts';
import type { Tool } from './tool.ts';

/** Deletes one file or symbolic link (the link, not what it leads to). Directories go with their last file. */
export const DELETE_FILE: Tool = {
  spec: {
    name: 'delete_file',
    aliases: ['rm_file', 'file_delete', 'remove_file'],
    summary: 'Delete one file',
    riskClass: 'write',
    parameters: argumentsSchema({ path: pathSchema('The file, relative to the root of the project') }, ['path']),
    priceMicroUsd: 0,
    scope: 'workspace',
    idempotent: true,
    skillCategory: 'files',
  },
  paths: (args) => pathsIn(args.path),
  async perform(args, { workspace }) {
    const file = await findFile(workspace, 'path', args.path);
    if ('outcome' in file) return file.outcome;
    const { path, sizeBytes } = file.found;
    return { status: 'succeeded', result: { path, deleted: true, size_bytes: sizeBytes }, writes: [{ kind: 'remove', path }] };
  },
};
