import { decodeBase64 } from '../../core/base64.ts';
import { encodeText } from '../../core/workspace/text.ts';
import { MAX_FILE_BYTES } from '../../core/workspace/tree.ts';
import { argumentsSchema, ENCODING_SCHEMA, encodingArgument, pathSchema, pathsIn, textArgument } from './arguments.ts';
import { findPlace, tooLarge } from './placement.ts';
import { failed, type Tool } from './tool.ts';

/** Writes a whole file. An existing file keeps its executable bit unless `executable` says otherwise. */
export const WRITE_FILE: Tool = {
  spec: {
    name: 'write_file',
    aliases: ['file_write'],
    summary: 'Write a whole file, new or in the place of what it held',
    riskClass: 'write',
    parameters: argumentsSchema(
      {
        path: pathSchema('The file, relative to the root of the project; directories are made as needed'),
        content: { type: 'string', description: 'All that the file will hold' },
        encoding: ENCODING_SCHEMA,
        executable: { type: 'boolean', description: 'Whether the file can be run; by default as it was, or not' },
      },
      ['path', 'content'],
    ),
    priceMicroUsd: 0,
    scope: 'workspace',
    idempotent: true,
    skillCategory: 'files',
  },
  paths: (args) => pathsIn(args.path),
  async perform(args, { workspace, sha256 }) {
    const place = await findPlace(workspace, 'path', args.path);
    if ('outcome' in place) return place.outcome;
    const { path, entry } = place.found;
    if (entry?.mode === '120000') return failed('is_symlink', `'${path}' is a symbolic link; delete it first to put a file in its place`);
    const content = textArgument(args, 'content');
    const isBase64 = encodingArgument(args) === 'base64';
    // Encoding a lone surrogate would write something else than was asked for.
    if (!isBase64 && !content.isWellFormed()) return failed('invalid_arguments', 'arguments.content: must be well-formed Unicode');
    const bytes = isBase64 ? decodeBase64(content) : encodeText(content);
    if (bytes === null) return failed('invalid_arguments', 'arguments.content: must be base64 with padding and without line breaks');
    if (bytes.length > MAX_FILE_BYTES) return tooLarge(path, bytes.length);
    const isExecutable = typeof args.executable === 'boolean' ? args.executable : entry?.mode === '100755';
    const mode = isExecutable ? '100755' : '100644';
    return {
      status: 'succeeded',
      result: { path, created: entry === null, size_bytes: bytes.length, executable: isExecutable, sha256: sha256(bytes) },
      writes: [{ kind: 'put', path, mode, bytes }],
    };
  },
};
