import { encodeBase64 } from '../../core/base64.ts';
import { decodeText, encodeText, splitLines } from '../../core/workspace/text.ts';
import type { TreeEntry } from '../../core/workspace/tree.ts';
import { argumentsSchema, ENCODING_SCHEMA, encodingArgument, numberArgument, pathSchema, pathsIn } from './arguments.ts';
import { findRegularFile } from './placement.ts';
import { failed, type Tool, type ToolOutcome } from './tool.ts';

/** Most bytes of contents in one answer; base64 gets three quarters of them, so that its text is not longer. */
export const MAX_READ_BYTES = 65_536;

/** Reads a file, or a part of it; `truncated` says that the answer ends before the file or the part does. */
export const READ_FILE: Tool = {
  spec: {
    name: 'read_file',
    aliases: ['file_read'],
    summary: `Read a file, at most ${MAX_READ_BYTES} bytes of it at once`,
    riskClass: 'read',
    parameters: argumentsSchema(
      {
        path: pathSchema('The file, relative to the root of the project'),
        encoding: ENCODING_SCHEMA,
        start_line: { type: 'integer', minimum: 1, description: 'First line to read, from 1; text only' },
        line_count: { type: 'integer', minimum: 1, description: 'Number of lines to read; text only' },
        offset_bytes: { type: 'integer', minimum: 0, description: 'First byte to read, from 0; base64 only' },
      },
      ['path'],
    ),
    priceMicroUsd: 0,
    scope: 'workspace',
    idempotent: true,
    skillCategory: 'files',
  },
  paths: (args) => pathsIn(args.path),
  async perform(args, { workspace }) {
    const file = await findRegularFile(workspace, 'path', args.path);
    if ('outcome' in file) return file.outcome;
    const { entry, bytes } = file.found;
    const startLine = numberArgument(args, 'start_line');
    const lineCount = numberArgument(args, 'line_count');
    const offset = numberArgument(args, 'offset_bytes');
    if (encodingArgument(args) === 'base64') {
      if (startLine !== undefined || lineCount !== undefined)
        return failed('invalid_arguments', 'start_line and line_count are for text; base64 takes offset_bytes');
      return readBytes(entry, bytes, offset ?? 0);
    }
    if (offset !== undefined) return failed('invalid_arguments', 'offset_bytes is for base64; text takes start_line and line_count');
    return readText(entry, bytes, startLine ?? 1, lineCount ?? Number.MAX_SAFE_INTEGER);
  },
};

function readBytes(entry: TreeEntry, bytes: Uint8Array, offset: number): ToolOutcome {
  const part = bytes.subarray(offset, offset + (MAX_READ_BYTES / 4) * 3);
  const truncated = offset + part.length < bytes.length;
  return {
    status: 'succeeded',
    result: { ...describe(entry), encoding: 'base64', content: encodeBase64(part), offset_bytes: offset, truncated },
  };
}

function readText(entry: TreeEntry, bytes: Uint8Array, startLine: number, lineCount: number): ToolOutcome {
  const text = decodeText(bytes);
  if (text === null) return failed('not_text', `'${entry.path}' is not UTF-8 text; read it with encoding 'base64'`);
  const lines = splitLines(text);
  if (startLine > 1 && startLine > lines.length) {
    return failed('out_of_range', `'${entry.path}' has ${lines.length} lines; start_line is ${startLine}`);
  }
  const whole = startLine === 1 && lineCount >= lines.length ? text : lines.slice(startLine - 1, startLine - 1 + lineCount).join('');
  const { content, truncated } = capText(whole);
  return {
    status: 'succeeded',
    result: { ...describe(entry), encoding: 'utf-8', content, start_line: startLine, total_lines: lines.length, truncated },
  };
}

function describe(entry: TreeEntry) {
  return { path: entry.path, size_bytes: entry.sizeBytes, executable: entry.mode === '100755', sha256: entry.blob };
}

/** The longest start of a text whose UTF-8 form is within the limit, never ending inside a character. */
function capText(text: string): { readonly content: string; readonly truncated: boolean } {
  const bytes = encodeText(text);
  if (bytes.length <= MAX_READ_BYTES) return { content: text, truncated: false };
  let end = MAX_READ_BYTES;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return { content: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes.subarray(0, end)), truncated: true };
}
