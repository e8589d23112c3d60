import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  canMatchToolName,
  findBlankEntry,
  findLookAlike,
  foldName,
  isToolName,
  matchesFolded,
  matchesPattern,
} from '../../../src/core/names.ts';
import { makeToolCatalogue } from '../../../src/core/tool.ts';
import { catalogueOf, tool } from './fixtures.ts';

const RUNS = { numRuns: 2000 };
const name = fc.stringMatching(/^[a-z]{1,4}(?:[._/][a-z]{1,4}){0,2}$/);

describe('patterns', () => {
  it.each([
    ['db.*', 'db.read', true],
    ['db.*', 'dbx.read', false],
    ['db.*', 'mydb.read', false],
    ['db.*', 'db_read', false],
    ['db.read', 'db.read', true],
    ['db.read', 'db.readAll', false],
    ['db.read', 'dbxread', false],
    ['shell_*', 'shell_exec', true],
    ['shell_*', 'my_shell_exec', false],
    ['shell', 'shell_exec', false],
    ['builtin/*', 'builtin/read', true],
    ['builtin/*', 'builtins/read', false],
    ['*', 'anything', true],
    ['*', '', true],
    ['', '', true],
    ['', 'a', false],
    ['a*b*c', 'a-b-b-c', true],
    ['a*b*c', 'a-c-b', false],
    ['*rm -rf*', 'rm -rf /a/b', true],
    ['[a-z]+', 'abc', false],
    ['a?c', 'abc', false],
    ['(a+)+$', 'aaaa', false],
    ['**', 'x', true],
    ['*a', 'aaab', false],
    ['*ab', 'aab', true],
  ])('%s on %s → %s', (pattern, tested, expected) => {
    expect(matchesPattern(pattern, tested)).toBe(expected);
  });

  it('agrees with the obvious recursive definition', () => {
    const slow = (pattern: string, text: string): boolean => {
      if (pattern === '') return text === '';
      if (pattern[0] === '*') return slow(pattern.slice(1), text) || (text !== '' && slow(pattern, text.slice(1)));
      return text !== '' && pattern[0] === text[0] && slow(pattern.slice(1), text.slice(1));
    };
    const short = (letters: string) => fc.string({ unit: fc.constantFrom(...letters), maxLength: 8 });
    fc.assert(
      fc.property(short('ab*.'), short('ab.'), (pattern, text) => {
        expect(matchesPattern(pattern, text)).toBe(slow(pattern, text));
      }),
      RUNS,
    );
  });

  it.each([
    ['rm -rf *', false],
    ['db..read', false],
    ['db.read.', false],
    ['.read', false],
    ['1*', false],
    ['a?c', false],
    ['[a-z]+', false],
    ['x'.repeat(129), false],
    ['*', true],
    ['db.*', true],
    ['*.read', true],
    ['*_exec*', true],
    ['builtin/*/x', true],
    ['shell_exec', true],
  ])('%s can match a name of a tool: %s', (pattern, expected) => {
    expect(canMatchToolName(pattern, 'exactly')).toBe(expected);
    expect(canMatchToolName(pattern, 'denial')).toBe(expected);
  });

  it('that match a name are never called ones that can match nothing, in either way of comparing', () => {
    const toolName = fc.stringMatching(/^[A-Za-z][A-Za-z0-9_]{0,3}(?:[./:-][A-Za-z0-9_]{1,3}){0,3}$/);
    const cut = fc.tuple(toolName, fc.nat(20), fc.nat(20)).map(([whole, from, length]) => {
      return { whole, pattern: `${whole.slice(0, from)}*${whole.slice(from + length)}` };
    });
    fc.assert(
      fc.property(cut, ({ whole, pattern }) => {
        expect(matchesPattern(pattern, whole)).toBe(true);
        expect(canMatchToolName(pattern, 'exactly'), pattern).toBe(true);
        expect(canMatchToolName(pattern, 'denial'), pattern).toBe(true);
        expect(canMatchToolName(whole, 'exactly'), whole).toBe(true);
      }),
      RUNS,
    );
  });

  it('answers at once on a pattern made to backtrack', () => {
    const started = performance.now();
    expect(matchesPattern(`${'*a'.repeat(100)}b`, 'a'.repeat(2000))).toBe(false);
    expect(performance.now() - started).toBeLessThan(500);
  });
});

describe('folding for denial', () => {
  const disguises: readonly (readonly [string, string])[] = [
    ['upper case', 'FS.Delete'],
    ['spaces around', ' fs.delete '],
    ['a zero-width space', 'fs.delete\u200b'],
    ['a zero-width joiner inside', 'fs.de\u200dlete'],
    ['a soft hyphen', 'fs.de\u00adlete'],
    ['a byte order mark', '\ufefffs.delete'],
    ['a right-to-left override', '\u202efs.delete'],
    ['a variation selector', 'fs.delete\ufe0f'],
    ['a no-break space', 'fs.delete\u00a0'],
    ['a tab', 'fs.\tdelete'],
    ['a null', 'fs.delete\u0000'],
    ['Cyrillic е', 'fs.d\u0435lete'],
    ['Cyrillic capital Е', 'FS.D\u0415LETE'],
    ['Greek epsilon capital', 'FS.D\u0395LETE'],
    ['Cyrillic ѕ and т', 'f\u0455.dele\u0442e'],
    ['Greek tau', 'fs.dele\u03c4e'],
    ['full-width letters', '\uff46\uff53.\uff44\uff45\uff4c\uff45\uff54\uff45'],
    ['a full-width stop', 'fs\uff0edelete'],
    ['mathematical letters', 'fs.\u{1d41d}elete'],
    ['a combining mark', 'fs.de\u0301lete'],
    ['a precomposed accent', 'fs.d\u00e9lete'],
    ['a long s', 'f\u017f.delete'],
  ];
  it.each(disguises)('sees through %s', (_what, disguised) => {
    expect(foldName(disguised)).toBe('fs.delete');
    expect(matchesFolded('fs.delete', disguised)).toBe(true);
    expect(matchesFolded(disguised, 'fs.delete')).toBe(true);
    expect(matchesFolded('fs.*', disguised)).toBe(true);
  });

  it.each([
    ['READ_\u0397TTP', 'read_http'],
    ['\u039dET.GET', 'net.get'],
    ['\u03bdcs.push', 'vcs.push'],
  ])('judges a capital by how the capital looks: %s', (disguised, plain) => {
    expect(foldName(disguised)).toBe(plain);
  });

  it.each([
    ['fs.delete', 'fs/delete'],
    ['fs/delete', 'fs.delete'],
    ['fs:delete', 'fs.delete'],
    ['fs/delete', 'FS\uff1aDelete'],
    ['srv:ns/name', 'srv.ns.name'],
    ['test/*', 'test.counter'],
    ['*.delete', 'fs/delete'],
  ])('takes the separators of a namespace for one another: %s denies %s', (entry, called) => {
    expect(matchesFolded(entry, called)).toBe(true);
  });

  it.each([
    ['fs.delete', 'fsxdelete'],
    ['fs/delete', 'fs_delete'],
    ['fs/delete', 'fsdelete'],
    ['fs/*', 'myfs.delete'],
    ['delete', 'fs.delete'],
  ])('and for nothing else: %s does not deny %s', (entry, called) => {
    expect(matchesFolded(entry, called)).toBe(false);
  });

  it.each(['fs..delete', '__proto__', 'constructor', 'fs.deleted', 'fs-delete'])('does not take %s for fs.delete', (other) => {
    expect(matchesFolded('fs.delete', other)).toBe(false);
  });

  it('changes nothing when applied twice', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        expect(foldName(foldName(text))).toBe(foldName(text));
      }),
      RUNS,
    );
  });

  it('denies under every mix of upper and lower case', () => {
    fc.assert(
      fc.property(name, fc.array(fc.boolean(), { minLength: 16, maxLength: 16 }), (plain, upper) => {
        const mixed = [...plain].map((character, index) => (upper[index] === true ? character.toUpperCase() : character)).join('');
        expect(matchesFolded(plain, mixed)).toBe(true);
      }),
      RUNS,
    );
  });

  it('lets an entry that folds to nothing match nothing', () => {
    expect(matchesFolded('\u200b', 'read_file')).toBe(false);
    expect(matchesFolded('  ', '')).toBe(false);
  });
});

describe('entries and names when they are saved', () => {
  it.each([
    [[''], 0],
    [['a', '  '], 1],
    [['a', '\u200b'], 1],
    [['a', 5], 1],
    [[null], 0],
    [['a', 'b*'], null],
    [[], null],
  ])('%j has its first unusable entry at %s', (entries, index) => {
    expect(findBlankEntry(entries)).toBe(index);
  });

  it.each([
    ['read_file', true],
    ['fs.delete', true],
    ['builtin/read', true],
    ['mcp__server__tool', true],
    ['srv:ns/name', true],
    ['Read', true],
    ['', false],
    [' read', false],
    ['read file', false],
    ['fs..delete', false],
    ['.fs', false],
    ['fs.', false],
    ['__proto__', false],
    ['r\u0435ad', false],
    ['read\u200b', false],
    ['a'.repeat(129), false],
    [5, false],
    [null, false],
    [['read'], false],
  ])('isToolName(%j) is %s', (candidate, expected) => {
    expect(isToolName(candidate)).toBe(expected);
  });

  it.each([
    ['FS.Delete', 'fs.delete'],
    ['fs.de1ete', 'fs.delete'],
    ['fs.deIete', 'fs.delete'],
    ['f0o', 'foo'],
  ])('finds that %s looks like %s', (candidate, existing) => {
    expect(findLookAlike(candidate, [existing])).toBe(existing);
  });

  it('does not call a name its own look-alike, nor two plainly different names', () => {
    expect(findLookAlike('fs.delete', ['fs.delete', 'fs.read', 'fs.deleted'])).toBeNull();
  });
});

describe('the catalogue of tools', () => {
  it('finds a tool by its name and by its aliases, under its canonical name', () => {
    const catalogue = catalogueOf(tool('delete_file', 'write', { aliases: ['rm_file'] }));
    expect(catalogue.canonical('rm_file')).toBe('delete_file');
    expect(catalogue.find('rm_file')?.spec.name).toBe('delete_file');
    expect(catalogue.specs().map((spec) => spec.name)).toEqual(['delete_file']);
  });

  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty', '', 'Delete_file', 'delete_file '])('does not know %j', (unknown) => {
    const catalogue = catalogueOf(tool('delete_file'));
    expect(catalogue.find(unknown)).toBeNull();
    expect(catalogue.canonical(unknown)).toBeNull();
  });

  it.each([
    ['the same name twice', [tool('a_tool'), tool('a_tool')]],
    ['an alias that is another name', [tool('a_tool'), tool('b_tool', 'read', { aliases: ['a_tool'] })]],
    ['its own name as an alias', [tool('a_tool', 'read', { aliases: ['a_tool'] })]],
    ['a name that differs by case', [tool('a_tool'), tool('A_Tool')]],
    ['an alias that differs by case', [tool('a_tool'), tool('b_tool', 'read', { aliases: ['A_TOOL'] })]],
    ['a Cyrillic letter', [tool('r\u0435ad')]],
    ['a space', [tool('read file')]],
    ['a blank name', [tool('')]],
    ['a negative price', [tool('a_tool', 'read', { priceMicroUsd: -1 })]],
    ['a price in fractions', [tool('a_tool', 'read', { priceMicroUsd: 0.5 })]],
  ])('refuses %s', (_what, specs) => {
    expect(makeToolCatalogue(specs).ok).toBe(false);
  });
});
