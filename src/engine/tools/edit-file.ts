import { findText, splitByText } from '../../core/workspace/find-text.ts';
import { utf8Length } from '../../core/workspace/path.ts';
import { decodeText, encodeText } from '../../core/workspace/text.ts';
import { MAX_FILE_BYTES } from '../../core/workspace/tree.ts';
import { argumentsSchema, flagArgument, pathSchema, pathsIn, textArgument } from './arguments.ts';
import { findRegularFile, tooLarge } from './placement.ts';
import { failed, type Tool } from './tool.ts';

/** Replaces text in a file: the one place where it stands, or all places. Anything that is not exactly that fails and changes nothing. */
export const EDIT_FILE: Tool = {
  spec: {
    name: 'edit_file',
    aliases: ['file_edit'],
    summary: 'Replace a piece of text in a file: its only occurrence, or all of them with replace_all',
    riskClass: 'write',
    parameters: argumentsSchema(
      {
        path: pathSchema('The file, relative to the root of the project'),
        old_text: { type: 'string', minLength: 1, description: 'The text to replace, exactly as it stands in the file' },
        new_text: { type: 'string', description: 'The text to put in its place' },
        replace_all: { type: 'boolean', description: 'Replace every occurrence; by default there must be exactly one' },
      },
      ['path', 'old_text', 'new_text'],
    ),
    priceMicroUsd: 0,
    scope: 'workspace',
    idempotent: true,
    skillCategory: 'files',
  },
  paths: (args) => pathsIn(args.path),
  async perform(args, { workspace, sha256 }) {
    const file = await findRegularFile(workspace, 'path', args.path);
    if ('outcome' in file) return file.outcome;
    const { entry, bytes } = file.found;
    const text = decodeText(bytes);
    if (text === null) return failed('not_text', `'${entry.path}' is not UTF-8 text and cannot be edited`);
    const oldText = textArgument(args, 'old_text');
    const newText = textArgument(args, 'new_text');
    if (oldText === '') return failed('invalid_arguments', 'arguments.old_text: must not be empty');
    if (!newText.isWellFormed()) return failed('invalid_arguments', 'arguments.new_text: must be well-formed Unicode');
    if (oldText === newText) return failed('no_change', 'arguments.new_text: is the same as old_text');

    const replaceAll = flagArgument(args, 'replace_all');
    const first = findText(text, oldText);
    if (first === -1) return failed('no_match', `old_text does not occur in '${entry.path}'${lineEndHint(text, oldText)}`);
    // Overlapping places are ambiguous too when one is meant; when all are, they are taken from the start, one after the other.
    if (!replaceAll && findText(text, oldText, first + 1) !== -1) {
      return failed(
        'several_matches',
        `old_text occurs more than once in '${entry.path}'; give more of the text around it, or set replace_all`,
      );
    }
    const pieces = splitByText(text, oldText);
    const count = pieces.length - 1;
    // Judged before the text is made: a small call could ask for a huge one.
    const sizeBytes = bytes.length + count * (utf8Length(newText) - utf8Length(oldText));
    if (sizeBytes > MAX_FILE_BYTES) return tooLarge(entry.path, sizeBytes);
    const edited = encodeText(pieces.join(newText));
    return {
      status: 'succeeded',
      result: { path: entry.path, replacements: count, size_bytes: edited.length, sha256: sha256(edited) },
      writes: [{ kind: 'put', path: entry.path, mode: entry.mode, bytes: edited }],
    };
  },
};

function lineEndHint(text: string, oldText: string): string {
  const isOtherwiseThere = text.includes('\r\n') && findText(text.replaceAll('\r\n', '\n'), oldText.replaceAll('\r\n', '\n')) !== -1;
  return isOtherwiseThere ? '; it would with line ends of the other kind (the file has \\r\\n)' : '';
}
