import type { JsonValue } from '../../core/json.ts';
import type { ContentPart, ProposedArtifact } from '../../core/plan/proposal.ts';
import type { Command } from './command-language.ts';
import { describeCommand } from './command-language.ts';

/** The result of a tool as an artifact for people: text for files, folders and searches; for all else, and for what it does not know, the value itself. */
export function showResult(command: Command, value: JsonValue): Omit<ProposedArtifact, 'artifactId'> {
  const text = textOf(command, value);
  if (text === null) return { name: describeCommand(command), parts: [{ kind: 'data', data: value }] };
  if (command.kind !== 'read') return { name: describeCommand(command), parts: [{ kind: 'text', text }] };
  const part: ContentPart = { kind: 'text', text, filename: command.path };
  const isCut = member(value, 'truncated') === true;
  return { name: command.path, ...(isCut ? { description: 'The beginning of the file; it goes on.' } : {}), parts: [part] };
}

function textOf(command: Command, value: JsonValue): string | null {
  switch (command.kind) {
    case 'read': {
      const content = member(value, 'content');
      return typeof content === 'string' ? content : null;
    }
    case 'list':
      return lines(value, 'entries', 'This folder is empty.', (entry) => {
        const path = String(member(entry, 'path'));
        if (member(entry, 'kind') === 'directory') {
          const files = member(entry, 'files');
          return `${path}/ (${String(files ?? '?')} ${files === 1 ? 'file' : 'files'})`;
        }
        return `${path} (${String(member(entry, 'size_bytes') ?? '?')} bytes)`;
      });
    case 'search':
      return lines(value, 'matches', 'Nothing was found.', (match) => {
        return `${String(member(match, 'path'))}:${String(member(match, 'line'))}: ${String(member(match, 'text'))}`;
      });
    default:
      return null;
  }
}

function lines(value: JsonValue, name: string, ifEmpty: string, line: (item: JsonValue) => string): string | null {
  const items = member(value, name);
  if (!Array.isArray(items)) return null;
  const shown = items.map((item: JsonValue) => line(item));
  if (member(value, 'truncated') === true) shown.push('… and more');
  return shown.length === 0 ? ifEmpty : shown.join('\n');
}

function member(value: JsonValue, name: string): JsonValue | undefined {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Readonly<Record<string, JsonValue>>)[name];
}
