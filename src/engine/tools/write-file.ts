import { decodeBase64 } from '../../core/base64.ts';
import type { JsonObject } from '../../core/json.ts';
import { decodeText, encodeText } from '../../core/workspace/text.ts';
import { MAX_FILE_BYTES } from '../../core/workspace/tree.ts';
import { argumentsSchema, ENCODING_SCHEMA, encodingArgument, flagArgument, pathSchema, pathsIn, textArgument } from './arguments.ts';
import { findPlace, findRegularFile, tooLarge } from './placement.ts';
import { failed, type Tool, type ToolContext, type ToolOutcome } from './tool.ts';

const LINE_FEED = 0x0a;

/**
 * Writes a whole file, or adds to the end of one. An existing file keeps its executable bit unless `executable` says otherwise.
 * What is added to is read within the call, so nothing that others wrote meanwhile is lost by it.
 */
export const WRITE_FILE: Tool = {
  spec: {
    name: 'write_file',
    aliases: ['file_write'],
    summary: 'Write a whole file, new or in the place of what it held; with append, add to its end',
    riskClass: 'write',
    parameters: argumentsSchema(
      {
        path: pathSchema('The file, relative to the root of the project; directories are made as needed'),
        content: { type: 'string', description: 'All that the file will hold' },
        encoding: ENCODING_SCHEMA,
        append: {
          type: 'boolean',
          description: 'Put the content behind what the file holds, on a line of its own; the file has to be there and to be text',
        },
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
    if (flagArgument(args, 'append')) {
      if (isBase64) return failed('invalid_arguments', "arguments.append: is for text; leave encoding out or set it to 'utf-8'");
      return append(workspace, sha256, args, bytes);
    }
    const isExecutable = typeof args.executable === 'boolean' ? args.executable : entry?.mode === '100755';
    const mode = isExecutable ? '100755' : '100644';
    return {
      status: 'succeeded',
      result: { path, created: entry === null, size_bytes: bytes.length, executable: isExecutable, sha256: sha256(bytes) },
      writes: [{ kind: 'put', path, mode, bytes }],
    };
  },
};

async function append(
  workspace: ToolContext['workspace'],
  sha256: ToolContext['sha256'],
  args: JsonObject,
  added: Uint8Array,
): Promise<ToolOutcome> {
  const file = await findRegularFile(workspace, 'path', args['path']);
  if ('outcome' in file) return file.outcome;
  const { entry, bytes: held } = file.found;
  const { path } = entry;
  if (decodeText(held) === null)
    return failed('not_text', `'${path}' is not UTF-8 text, so nothing can be added to it on a line of its own`);
  const gap = held.length === 0 || held.at(-1) === LINE_FEED ? 0 : 1;
  const sizeBytes = held.length + gap + added.length;
  if (sizeBytes > MAX_FILE_BYTES) return tooLarge(path, sizeBytes);
  const bytes = new Uint8Array(sizeBytes);
  bytes.set(held);
  bytes.fill(LINE_FEED, held.length, held.length + gap);
  bytes.set(added, held.length + gap);
  const mode = typeof args['executable'] === 'boolean' ? (args['executable'] ? '100755' : '100644') : entry.mode;
  return {
    status: 'succeeded',
    result: { path, created: false, size_bytes: sizeBytes, executable: mode === '100755', sha256: sha256(bytes) },
    writes: [{ kind: 'put', path, mode, bytes }],
  };
}
