import { symlinkTargetIssue } from '../../core/workspace/path.ts';
import { argumentsSchema, flagArgument, pathSchema, pathsIn } from './arguments.ts';
import { findFile, findPlace } from './placement.ts';
import { failed, type Tool } from './tool.ts';

/** Moves one file with its mode. What is already at the new place is replaced only when `overwrite` says so. */
export const MOVE_FILE: Tool = {
  spec: {
    name: 'move_file',
    aliases: ['file_move', 'rename_file'],
    summary: 'Move or rename one file',
    riskClass: 'write',
    parameters: argumentsSchema(
      {
        from: pathSchema('The file as it is named now, relative to the root of the project'),
        to: pathSchema('Its new path; directories are made as needed'),
        overwrite: { type: 'boolean', description: 'Replace a file that is already there; by default that fails' },
      },
      ['from', 'to'],
    ),
    priceMicroUsd: 0,
    scope: 'workspace',
    idempotent: true,
    skillCategory: 'files',
  },
  paths: (args) => pathsIn(args.from, args.to),
  async perform(args, { workspace }) {
    const file = await findFile(workspace, 'from', args.from);
    if ('outcome' in file) return file.outcome;
    const { path: from, mode, sizeBytes } = file.found;
    const place = await findPlace(workspace, 'to', args.to);
    if ('outcome' in place) return place.outcome;
    const { path: to, entry } = place.found;
    if (from === to) return failed('no_change', `'${from}' already has this path`);
    if (entry !== null && !flagArgument(args, 'overwrite'))
      return failed('already_exists', `there already is a file '${to}'; set overwrite to replace it`);
    const bytes = await workspace.read(from);
    if (bytes === null) return failed('not_found', `there is no file '${from}'`);
    if (mode === '120000') {
      const issue = symlinkTargetIssue(to, new TextDecoder().decode(bytes));
      if (issue !== null) return failed('invalid_path', `'${from}' is a symbolic link whose target, seen from '${to}', ${issue}`);
    }
    return {
      status: 'succeeded',
      result: { from, to, overwritten: entry !== null, size_bytes: sizeBytes },
      writes: [
        { kind: 'remove', path: from },
        { kind: 'put', path: to, mode, bytes },
      ],
    };
  },
};
