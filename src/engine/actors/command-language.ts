import type { JsonObject } from '../../core/json.ts';
import { exceedsDepth } from '../../core/json.ts';
import { MAX_TOOL_NAME_LENGTH } from '../../core/names.ts';

/**
 * The command language of `scripted/commands`: one command in a line (docs/commands.md).
 *
 * Promise: reading is total. Any text gives commands, problems or both, and nothing is guessed: a line that is not a command of the
 * list is a problem with a hint.
 */
export function parseCommands(text: string): ParsedCommands {
  const lines = withoutCommonIndent(text.replaceAll(/\r\n?/g, '\n').split('\n'));
  const commands: Command[] = [];
  const problems: CommandProblem[] = [];
  let index = 0;
  while (index < lines.length) {
    const line = bareLine(lines[index] ?? '');
    const number = index + 1;
    index += 1;
    if (line === '' || line.startsWith('#')) continue;
    const block = readBlock(lines, index);
    const read = readCommand(line, block);
    if ('problem' in read) {
      problems.push({ line: number, text: line, hint: read.problem });
      // What belongs to a broken line is not read as commands of its own.
      if (block !== null) index = block.next;
      continue;
    }
    commands.push(read.command);
    if (read.usesBlock && block !== null) index = block.next;
  }
  const extra = commands.length - MAX_COMMANDS;
  if (extra > 0)
    problems.push({ line: lines.length, text: '', hint: `there are ${commands.length} commands; at most ${MAX_COMMANDS} are run` });
  return { commands: commands.slice(0, MAX_COMMANDS), problems };
}

export type Command =
  | { readonly kind: 'read' | 'delete'; readonly path: string }
  | { readonly kind: 'list'; readonly path: string | null }
  | { readonly kind: 'write' | 'append'; readonly path: string; readonly content: string }
  | { readonly kind: 'replace'; readonly path: string; readonly oldText: string; readonly newText: string; readonly all: boolean }
  | { readonly kind: 'move'; readonly from: string; readonly to: string }
  | { readonly kind: 'search'; readonly query: string }
  | { readonly kind: 'call'; readonly tool: string; readonly arguments: JsonObject }
  | { readonly kind: 'say' | 'ask'; readonly text: string }
  | { readonly kind: 'help' };

export interface CommandProblem {
  /** From 1. */
  readonly line: number;
  readonly text: string;
  readonly hint: string;
}

export interface ParsedCommands {
  readonly commands: readonly Command[];
  readonly problems: readonly CommandProblem[];
}

export const MAX_COMMANDS = 100;

export const COMMAND_HELP = `Commands, one in a line:
  read FILE                     show a file
  list [FOLDER]                 show what is in a folder
  search TEXT                   find the lines that contain a text
  write FILE: TEXT              write a whole file; for several lines put them below, indented or between \`\`\` lines
  append FILE: TEXT             add to the end of a file
  replace OLD with NEW in FILE  change the one place where OLD stands; "replace all …" changes every place
  delete FILE
  move FILE to FILE
  call TOOL {"name": "value"}   call any tool with JSON arguments
  say TEXT, ask TEXT            send a message, or ask and wait for the answer
  help                          show this list
Names and texts with spaces can stand in quotes: replace "a b" with "c" in "my file.txt". Lines that begin with # are comments.`;

/** The command in a few words, for strategies and messages. */
export function describeCommand(command: Command): string {
  switch (command.kind) {
    case 'read':
    case 'delete':
      return clip(`${command.kind} ${command.path}`);
    case 'list':
      return clip(command.path === null ? 'list' : `list ${command.path}`);
    case 'write':
    case 'append':
      return `${clip(`${command.kind} ${command.path}`)} (${command.content.length} characters)`;
    case 'replace': {
      const { all, oldText, newText, path } = command;
      return `replace ${all ? 'all ' : ''}${quote(oldText)} with ${quote(newText)} in ${clip(path)}`;
    }
    case 'move':
      return `move ${clip(command.from)} to ${clip(command.to)}`;
    case 'search':
      return `search ${quote(command.query)}`;
    case 'call':
      return clip(`call ${command.tool}`);
    case 'say':
    case 'ask':
      return `${command.kind} ${quote(command.text)}`;
    case 'help':
      return 'help';
  }
}

interface Block {
  readonly content: string;
  /** Index of the first line after it. */
  readonly next: number;
}

type Read = { readonly command: Command; readonly usesBlock?: boolean } | { readonly problem: string };

type Reader = (rest: string, block: Block | null) => Read;

const READERS: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ...named(['read', 'show', 'cat', 'open'], (rest) => pathCommand('read', rest)),
  ...named(['delete', 'remove', 'rm'], (rest) => pathCommand('delete', rest)),
  ...named(['list', 'ls'], (rest): Read => ({ command: { kind: 'list', path: rest === '' ? null : unquote(rest) } })),
  ...named(['write', 'create'], (rest, block) => contentCommand('write', rest, block)),
  ...named(['append'], (rest, block) => contentCommand('append', rest, block)),
  ...named(['replace'], replaceCommand),
  ...named(['move', 'rename', 'mv'], moveCommand),
  ...named(['search', 'find', 'grep'], (rest) => {
    const query = unquote(rest.replace(/^for\s+/i, ''));
    return query.trim() === '' ? { problem: 'write: search TEXT' } : { command: { kind: 'search', query } };
  }),
  ...named(['call'], callCommand),
  ...named(['say'], (rest) => (rest === '' ? { problem: 'write: say TEXT' } : { command: { kind: 'say', text: unquote(rest) || rest } })),
  ...named(['ask'], (rest) => (rest === '' ? { problem: 'write: ask TEXT' } : { command: { kind: 'ask', text: unquote(rest) || rest } })),
  ...named(['help', '/help', '?'], (rest) => (rest === '' ? { command: { kind: 'help' } } : { problem: 'write: help' })),
]);

function named(verbs: readonly string[], reader: Reader): readonly (readonly [string, Reader])[] {
  return verbs.map((verb) => [verb, reader] as const);
}

function readCommand(line: string, block: Block | null): Read {
  const [, verb = '', rest = ''] = /^(\S+)\s*(.*)$/s.exec(line) ?? [];
  const reader = READERS.get(verb.toLowerCase());
  return reader === undefined ? { problem: `'${clip(verb)}' is not a command` } : reader(rest.trim(), block);
}

function pathCommand(kind: 'read' | 'delete', rest: string): Read {
  const path = unquote(rest);
  return path.trim() === '' ? { problem: `write: ${kind} FILE` } : { command: { kind, path } };
}

function contentCommand(kind: 'write' | 'append', rest: string, block: Block | null): Read {
  const operand = takeQuoted(rest);
  const colon = operand === null ? rest.indexOf(':') : operand.after.startsWith(':') ? 0 : -1;
  const head = operand?.text ?? (colon < 0 ? rest : rest.slice(0, colon));
  const after = operand === null ? (colon < 0 ? '' : rest.slice(colon + 1)) : operand.after.replace(/^:/, '');
  const path = head.trim();
  const text = after.trim();
  const isMissingColon = colon < 0 && (block === null || text !== '');
  if (path === '' || isMissingColon) return { problem: `write: ${kind} FILE: TEXT` };
  if (text !== '') return { command: { kind, path, content: withFinalNewline(unquote(text)) } };
  return { command: { kind, path, content: block?.content ?? '' }, usesBlock: true };
}

function replaceCommand(rest: string): Read {
  const problem = { problem: 'write: replace OLD with NEW in FILE (put OLD and NEW in quotes when they have spaces)' };
  const all = /^all\s+(?!with\s)/i.exec(rest);
  const old = takeOperand(all === null ? rest : rest.slice(all[0].length), /\s+with\s+/i, 'first');
  const replacement = old === null ? null : takeOperand(old.after, /\s+in\s+/i, 'last');
  if (old === null || replacement === null) return problem;
  const path = unquote(replacement.after);
  if (old.text === '' || path.trim() === '') return problem;
  return { command: { kind: 'replace', path, oldText: old.text, newText: replacement.text, all: all !== null } };
}

function moveCommand(rest: string): Read {
  const from = takeOperand(rest, /\s+to\s+/i, 'first');
  const to = from === null ? '' : unquote(from.after);
  if (from === null || from.text.trim() === '' || to.trim() === '') return { problem: 'write: move FILE to FILE' };
  return { command: { kind: 'move', from: from.text, to } };
}

function callCommand(rest: string, block: Block | null): Read {
  const [, tool = '', inline = ''] = /^(\S*)\s*(.*)$/s.exec(rest) ?? [];
  // A call that names its tool badly is still a call: the guards refuse it, and the trail has it. One that names none is not.
  const isNameless = tool === '' || tool.startsWith('{') || tool.length > MAX_TOOL_NAME_LENGTH;
  if (isNameless) return { problem: 'write: call TOOL {"name": "value"}' };
  const usesBlock = inline === '' && block !== null;
  const json = usesBlock ? block.content : inline;
  const args = json.trim() === '' ? {} : parseJson(json);
  if (typeof args !== 'object' || args === null || Array.isArray(args) || exceedsDepth(args)) {
    return { problem: `what follows '${clip(tool)}' must be a JSON object: call TOOL {"name": "value"}` };
  }
  return { command: { kind: 'call', tool, arguments: args as JsonObject }, usesBlock };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

interface Operand {
  readonly text: string;
  readonly after: string;
}

/** A quoted text before the separator, or everything before its first or last occurrence. */
function takeOperand(text: string, separator: RegExp, occurrence: 'first' | 'last'): Operand | null {
  const quoted = takeQuoted(text);
  if (quoted !== null) {
    const match = new RegExp(`^${separator.source}`, 'i').exec(` ${quoted.after}`);
    if (match !== null) return { text: quoted.text, after: ` ${quoted.after}`.slice(match[0].length) };
  }
  const matches = [...text.matchAll(new RegExp(separator.source, 'gi'))];
  const match = occurrence === 'first' ? matches[0] : matches.at(-1);
  if (match === undefined) return null;
  return { text: unquote(text.slice(0, match.index)), after: text.slice(match.index + match[0].length) };
}

const QUOTES: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ["'", "'"],
  ['`', '`'],
  ['“', '”'],
]);

/** The quoted text at the start and what follows it, without leading space. In double quotes, `\n`, `\t`, `\"` and `\\` are escapes. */
function takeQuoted(text: string): Operand | null {
  const open = text.charAt(0);
  const close = QUOTES.get(open);
  if (close === undefined) return null;
  let content = '';
  for (let index = 1; index < text.length; index += 1) {
    const character = text.charAt(index);
    if (character === close) return { text: content, after: text.slice(index + 1).trimStart() };
    const escaped = open === '"' && character === '\\' ? ESCAPES.get(text.charAt(index + 1)) : undefined;
    content += escaped ?? character;
    if (escaped !== undefined) index += 1;
  }
  return null;
}

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['n', '\n'],
  ['t', '\t'],
  ['"', '"'],
  ['\\', '\\'],
]);

/** The text without its quotes, when it is quoted as a whole. */
function unquote(text: string): string {
  const trimmed = text.trim();
  const quoted = takeQuoted(trimmed);
  return quoted !== null && quoted.after === '' ? quoted.text : trimmed;
}

/** A line as a command: without its place in a list (`- `, `1. `) and without code marks around the whole of it. */
function bareLine(line: string): string {
  const bare = line.trim().replace(/^(?:[-*]|\d{1,3}[.)])\s+/, '');
  return /^`[^`]+`$/.test(bare) ? bare.slice(1, -1).trim() : bare;
}

/** Indented lines or a fenced block that begins at `start`; null if there is none. An open fence ends with the text. */
function readBlock(lines: readonly string[], start: number): Block | null {
  const [, indent = '', fence = ''] = /^([ \t]*)(`{3,}|~{3,})[^`]*$/.exec(lines[start] ?? '') ?? [];
  if (fence !== '') {
    const closing = lines.findIndex((line, index) => index > start && isClosing(line, fence));
    const end = closing < 0 ? lines.length : closing;
    const inner = lines.slice(start + 1, end).map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line.trimStart()));
    return { content: inner.length === 0 ? '' : `${inner.join('\n')}\n`, next: closing < 0 ? end : end + 1 };
  }
  let end = start;
  while (end < lines.length && /^(?: {2,}|\t|\s*$)/.test(lines[end] ?? '')) end += 1;
  while (end > start && (lines[end - 1] ?? '').trim() === '') end -= 1;
  // A blank line between a command and an indented line parts them.
  if (end === start || (lines[start] ?? '').trim() === '') return null;
  return { content: `${withoutCommonIndent(lines.slice(start, end)).join('\n')}\n`, next: end };
}

function isClosing(line: string, fence: string): boolean {
  const mark = line.trim();
  return mark.length >= fence.length && [...mark].every((character) => character === fence.charAt(0));
}

function withoutCommonIndent(lines: readonly string[]): readonly string[] {
  const indents = lines.filter((line) => line.trim() !== '').map((line) => /^[ \t]*/.exec(line)?.[0] ?? '');
  let common = indents[0] ?? '';
  for (const indent of indents) while (!indent.startsWith(common)) common = common.slice(0, -1);
  return lines.map((line) => (line.startsWith(common) ? line.slice(common.length) : line.trimStart()));
}

function withFinalNewline(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`;
}

function quote(text: string): string {
  return JSON.stringify(clip(text));
}

function clip(text: string): string {
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
