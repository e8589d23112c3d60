import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { COMMAND_HELP, type Command, describeCommand, MAX_COMMANDS, parseCommands } from '../../../src/engine/actors/command-language.ts';

describe('one line', () => {
  it.each<[string, Command]>([
    ['read README.md', { kind: 'read', path: 'README.md' }],
    ['READ my notes.md', { kind: 'read', path: 'my notes.md' }],
    ['cat "a b.md"', { kind: 'read', path: 'a b.md' }],
    ['read `src/a.ts`', { kind: 'read', path: 'src/a.ts' }],
    ['`read src/a.ts`', { kind: 'read', path: 'src/a.ts' }],
    ['- read a', { kind: 'read', path: 'a' }],
    ['12. read a', { kind: 'read', path: 'a' }],
    ['list', { kind: 'list', path: null }],
    ['ls src/', { kind: 'list', path: 'src/' }],
    ['search TODO in code', { kind: 'search', query: 'TODO in code' }],
    ['find for "  x"', { kind: 'search', query: '  x' }],
    ['write notes.md: some text', { kind: 'write', path: 'notes.md', content: 'some text\n' }],
    ['write notes.md: a: b; c', { kind: 'write', path: 'notes.md', content: 'a: b; c\n' }],
    ['write "a: b.md": x', { kind: 'write', path: 'a: b.md', content: 'x\n' }],
    ['write a: "two\\nlines"', { kind: 'write', path: 'a', content: 'two\nlines\n' }],
    ['write a:', { kind: 'write', path: 'a', content: '' }],
    ['append a: x', { kind: 'append', path: 'a', content: 'x\n' }],
    ['replace A with B in F', { kind: 'replace', path: 'F', oldText: 'A', newText: 'B', all: false }],
    ['replace all A with B in F', { kind: 'replace', path: 'F', oldText: 'A', newText: 'B', all: true }],
    ['replace all with none in F', { kind: 'replace', path: 'F', oldText: 'all', newText: 'none', all: false }],
    ['replace "a b" with "c" in f.txt', { kind: 'replace', path: 'f.txt', oldText: 'a b', newText: 'c', all: false }],
    [
      'replace " with " with " in " in "f in g.txt"',
      { kind: 'replace', path: 'f in g.txt', oldText: ' with ', newText: ' in ', all: false },
    ],
    ["replace 'say \"hi\"' with '' in f", { kind: 'replace', path: 'f', oldText: 'say "hi"', newText: '', all: false }],
    ['replace “a” with “b” in f', { kind: 'replace', path: 'f', oldText: 'a', newText: 'b', all: false }],
    ['replace "a\\n\\"b\\"\\\\" with "\\t" in f', { kind: 'replace', path: 'f', oldText: 'a\n"b"\\', newText: '\t', all: false }],
    [
      'replace cats in boxes with dogs in baskets in story.md',
      { kind: 'replace', path: 'story.md', oldText: 'cats in boxes', newText: 'dogs in baskets', all: false },
    ],
    ['delete a.txt', { kind: 'delete', path: 'a.txt' }],
    ['move a to b/c', { kind: 'move', from: 'a', to: 'b/c' }],
    ['mv "a to b" to "c d"', { kind: 'move', from: 'a to b', to: 'c d' }],
    ['call counter', { kind: 'call', tool: 'counter', arguments: {} }],
    ['call fs..delete {"a": 1}', { kind: 'call', tool: 'fs..delete', arguments: { a: 1 } }],
    ['call __proto__ {}', { kind: 'call', tool: '__proto__', arguments: {} }],
    ['call fs.delete\u200b {}', { kind: 'call', tool: 'fs.delete\u200b', arguments: {} }],
    [
      'call ns/tool {"a": [1, "}"], "__proto__": 1}',
      { kind: 'call', tool: 'ns/tool', arguments: JSON.parse('{"a":[1,"}"],"__proto__":1}') },
    ],
    ['say Hello there', { kind: 'say', text: 'Hello there' }],
    ['ask Shall we?', { kind: 'ask', text: 'Shall we?' }],
    ['help', { kind: 'help' }],
    ['?', { kind: 'help' }],
  ])('%s', (line, command) => expect(parseCommands(line)).toEqual({ commands: [command], problems: [] }));

  it.each<[string, string]>([
    ['hello', "'hello' is not a command"],
    ['please read a', "'please' is not a command"],
    ['constructor', "'constructor' is not a command"],
    ['read', 'write: read FILE'],
    ['read ""', 'write: read FILE'],
    ['write notes.md hello', 'write: write FILE: TEXT'],
    ['write : hello', 'write: write FILE: TEXT'],
    ['write "a" b: c', 'write: write FILE: TEXT'],
    ['replace A with B', 'write: replace OLD with NEW in FILE (put OLD and NEW in quotes when they have spaces)'],
    ['replace "" with B in F', 'write: replace OLD with NEW in FILE (put OLD and NEW in quotes when they have spaces)'],
    ['move a', 'write: move FILE to FILE'],
    ['search', 'write: search TEXT'],
    ['say', 'write: say TEXT'],
    ['call', 'write: call TOOL {"name": "value"}'],
    ['call two words', 'what follows \'two\' must be a JSON object: call TOOL {"name": "value"}'],
    ['call t [1]', 'what follows \'t\' must be a JSON object: call TOOL {"name": "value"}'],
    [`call t {"a":${'['.repeat(100)}${']'.repeat(100)}}`, 'what follows \'t\' must be a JSON object: call TOOL {"name": "value"}'],
    ['call {"a": 1}', 'write: call TOOL {"name": "value"}'],
    [`call ${'b!'.repeat(65)} {}`, 'write: call TOOL {"name": "value"}'],
    ['call bad!name and so on', 'what follows \'bad!name\' must be a JSON object: call TOOL {"name": "value"}'],
    ['help me', 'write: help'],
  ])('%s is a problem with a hint', (line, hint) =>
    expect(parseCommands(line)).toEqual({ commands: [], problems: [{ line: 1, text: line, hint }] }),
  );
});

describe('several lines', () => {
  it('are commands in their order; empty lines and comments are passed over', () => {
    expect(parseCommands('# first\nread a\r\n\r\n  read b\n').commands.map(describeCommand)).toEqual(['read a', 'read b']);
  });

  it('may be indented as a whole', () => {
    expect(parseCommands('    write a:\n      x\n        y\n    read b')).toEqual({
      commands: [
        { kind: 'write', path: 'a', content: 'x\n  y\n' },
        { kind: 'read', path: 'b' },
      ],
      problems: [],
    });
  });

  it.each<[string, string, string]>([
    ['indented', 'write a:\n  one\n\n    two\n\nread b', 'one\n\n  two\n'],
    ['indented by tabs', 'write a:\n\tone\n\t\ttwo\nread b', 'one\n\ttwo\n'],
    ['fenced', 'write a:\n```ts\none\n  read c\n\n```\nread b', 'one\n  read c\n\n'],
    ['fenced without a colon', 'write a\n~~~\none\n~~~\nread b', 'one\n'],
    ['fenced in a longer fence', 'write a:\n````\n```\none\n```\n````\nread b', '```\none\n```\n'],
    ['fenced and indented', '- write a:\n  ```\n  one\n    two\n  ```\n- read b', 'one\n  two\n'],
    ['fenced and empty', 'write a:\n```\n```\nread b', ''],
  ])('give a text: %s', (_, text, content) => {
    expect(parseCommands(text)).toEqual({
      commands: [
        { kind: 'write', path: 'a', content },
        { kind: 'read', path: 'b' },
      ],
      problems: [],
    });
  });

  it('of a fence that does not close are all text', () => {
    expect(parseCommands('write a:\n```\none\nread b')).toEqual({
      commands: [{ kind: 'write', path: 'a', content: 'one\nread b\n' }],
      problems: [],
    });
  });

  it('give JSON to a call', () => {
    expect(parseCommands('call t\n```json\n{"a":\n 1}\n```').commands).toEqual([{ kind: 'call', tool: 't', arguments: { a: 1 } }]);
  });

  it('below a broken line are not run as commands', () => {
    const { commands, problems } = parseCommands('wirte a:\n  delete b\nread c');
    expect(commands).toEqual([{ kind: 'read', path: 'c' }]);
    expect(problems).toEqual([{ line: 1, text: 'wirte a:', hint: "'wirte' is not a command" }]);
  });

  it('are run up to a limit, and what is more is a problem', () => {
    const { commands, problems } = parseCommands('read a\n'.repeat(MAX_COMMANDS + 1));
    expect(commands).toHaveLength(MAX_COMMANDS);
    expect(problems).toHaveLength(1);
  });
});

describe('the language', () => {
  const verbs = ['read', 'list', 'search', 'write', 'append', 'replace', 'delete', 'move', 'call', 'say', 'ask', 'help'];

  it('lists every command in its help', () => {
    for (const verb of verbs) expect(COMMAND_HELP).toMatch(new RegExp(`\\b${verb}\\b`));
  });

  it('is read from any text without a throw, and nothing is lost: a line is a command, a problem, or belongs to one', async () => {
    const piece = fc.oneof(
      fc.constantFrom(...verbs, ' ', '\n', ':', '"', "'", '`', '```', '  ', '\t', ' with ', ' in ', ' to ', '{', '}', '\\', '#', '-', '\r'),
      fc.string({ unit: 'binary' }),
    );
    await fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const text = pieces.join('');
        const { commands, problems } = parseCommands(text);
        const lines = text.split(/[\r\n]+/);
        if (lines.every((line) => /^\s*(?:#.*)?$/.test(line))) expect([...commands, ...problems]).toEqual([]);
        if (lines.some((line) => /^[a-z]/.test(line))) expect(commands.length + problems.length).toBeGreaterThan(0);
        for (const command of commands) expect(describeCommand(command).length).toBeGreaterThan(0);
      }),
      { numRuns: 3000 },
    );
  });

  it('takes any text in quotes as it is', async () => {
    const escaped = (text: string) =>
      `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n').replaceAll('\t', '\\t')}"`;
    await fc.assert(
      fc.property(
        fc.string({ minLength: 1, unit: fc.constantFrom('a', ' ', '"', '\\', '\n', '\t', "'", 'with', ' in ', 'n', ':') }),
        fc.string(),
        (oldText, newText) => {
          fc.pre(!/\r/.test(newText));
          const line = `replace ${escaped(oldText)} with ${escaped(newText)} in f.txt`;
          expect(parseCommands(line)).toEqual({
            commands: [{ kind: 'replace', path: 'f.txt', oldText, newText, all: false }],
            problems: [],
          });
        },
      ),
      { numRuns: 1000 },
    );
  });
});
