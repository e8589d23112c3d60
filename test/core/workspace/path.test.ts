import { posix } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareUtf8, parentsOf, parseDirectoryPath, parsePath, symlinkTargetIssue, utf8Length } from '../../../src/core/workspace/path.ts';

describe('a path of a workspace', () => {
  it.each([
    ['README.md'],
    ['src/core/path.ts'],
    ['with space/and ünïcode/😀.txt'],
    ['.gitignore'],
    ['...'],
    ['..a/b..'],
    ['a'.repeat(255)],
    [`${'a'.repeat(200)}/${'b'.repeat(200)}`],
    ['c:d'],
  ])('is accepted as it stands: %s', (path) => {
    expect(parsePath(path)).toEqual({ ok: true, value: path });
  });

  it.each([
    ['nothing', '', /empty/],
    ['a number', 7, /string/],
    ['null', null, /string/],
    ['an array', ['a'], /string/],
    ['a parent segment', '..', /'\.\.'/],
    ['a parent segment at the start', '../etc/passwd', /'\.\.'/],
    ['a parent segment inside', 'a/../b', /'\.\.'/],
    ['a parent segment at the end', 'a/..', /'\.\.'/],
    ['a dot segment', './a', /'\.'/],
    ['an absolute path', '/etc/passwd', /leading slash/],
    ['a drive letter', 'C:/Windows', /drive letter/],
    ['a bare drive', 'c:', /drive letter/],
    ['a backslash', 'a\\..\\b', /backslash/],
    ['a NUL', 'a\0b', /NUL/],
    ['a line feed', 'a\nb', /control/],
    ['an escape', 'a\u001b[2J', /control/],
    ['DEL', 'a\u007f', /control/],
    ['a C1 control', 'a\u0085', /control/],
    ['a line separator', 'a\u2028b', /line breaks/],
    ['an empty segment', 'a//b', /empty name/],
    ['a trailing slash', 'a/', /trailing slash/],
    ['half a surrogate pair', 'a\ud800b', /Unicode/],
    ['a name of 256 bytes', 'a'.repeat(256), /255 bytes/],
    ['a name of 256 bytes in few characters', 'é'.repeat(128), /255 bytes/],
    ['1,025 bytes', `${'a/'.repeat(512)}b`, /1024 bytes/],
    ['a megabyte', 'a'.repeat(1 << 20), /1024 bytes/],
  ])('is refused with its reason: %s', (_name, path, reason) => {
    const parsed = parsePath(path);
    expect(parsed.ok).toBe(false);
    if (!parsed.ok) expect(parsed.error).toMatch(reason);
  });

  it('never leads out of the tree, and is its own normal form, whatever text was given', () => {
    const piece = fc.constantFrom('..', '.', '/', '\\', 'a', 'b c', '\0', '%2e%2e', '~', 'C:', '\n', '‥', '');
    const hostile = fc.oneof(
      fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join('')),
      fc.array(piece).map((pieces) => pieces.join('/')),
      fc.string({ unit: 'binary' }),
    );
    let accepted = 0;
    fc.assert(
      fc.property(hostile, (text) => {
        const parsed = parsePath(text);
        if (!parsed.ok) return;
        accepted += 1;
        expect(posix.normalize(parsed.value)).toBe(parsed.value);
        expect(posix.resolve('/base', parsed.value).startsWith('/base/')).toBe(true);
        expect(parsed.value).toBe(text);
      }),
      { numRuns: 2_000 },
    );
    expect(accepted).toBeGreaterThan(50);
  });
});

describe('a directory of a workspace', () => {
  it.each([
    ['', ''],
    ['.', ''],
    ['/', ''],
    ['src', 'src'],
    ['src/core/', 'src/core'],
  ])('is read from %j as %j', (text, path) => {
    expect(parseDirectoryPath(text)).toEqual({ ok: true, value: path });
  });

  it.each([['..'], ['/etc'], ['a//'], ['../'], [undefined], [3]])('is refused: %j', (text) => {
    expect(parseDirectoryPath(text).ok).toBe(false);
  });
});

describe('the target of a symbolic link', () => {
  it.each([
    ['a/link', 'b'],
    ['a/link', '../b'],
    ['a/link', '..'],
    ['a/link', './b//c/'],
    ['a/b/link', '../../c'],
  ])('may stay inside: %s → %s', (path, target) => {
    expect(symlinkTargetIssue(path, target)).toBeNull();
  });

  it.each([
    ['link', '..', /inside/],
    ['a/link', '../../b', /inside/],
    ['link', '/etc/passwd', /relative/],
    ['link', 'C:/x', /relative/],
    ['link', '', /empty/],
    ['link', 'a\0', /control/],
    ['link', 'a\\b', /backslash/],
    // `sub` may itself be a link to the root: its text stays inside, its meaning does not.
    ['link', 'sub/..', /after a name/],
    ['link', 'a'.repeat(1_025), /1024/],
  ])('may not leave: %s → %s', (path, target, reason) => {
    expect(symlinkTargetIssue(path, target)).toMatch(reason);
  });
});

describe('text measures', () => {
  it('orders as the bytes do', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (a, b) => {
        expect(Math.sign(compareUtf8(a, b))).toBe(Math.sign(Buffer.compare(Buffer.from(a), Buffer.from(b))));
      }),
    );
    expect(compareUtf8('\uffee', '😀')).toBeLessThan(0);
  });

  it('counts bytes as the encoder does, lone surrogates included', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(utf8Length(text)).toBe(Buffer.byteLength(text));
      }),
    );
    expect(utf8Length('\ud800a\udc00')).toBe(7);
  });

  it('names the directories above a path from the outside in', () => {
    expect(parentsOf('a/b/c')).toEqual(['a', 'a/b']);
    expect(parentsOf('a')).toEqual([]);
  });
});
