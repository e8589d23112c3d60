import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeManifest, encodeManifest } from '../../../src/core/workspace/manifest.ts';
import {
  EMPTY_TREE,
  findEntry,
  isDirectory,
  listDirectory,
  MAX_FILE_BYTES,
  MAX_FILES,
  MAX_TREE_BYTES,
  makeTree,
  type TreeEntry,
  treeDigest,
} from '../../../src/core/workspace/tree.ts';
import { anyFiles, entryOf, sha256, treeOf } from './trees.ts';

const entry = (path: string, over: Partial<TreeEntry> = {}): TreeEntry => ({ ...entryOf(path, 'text'), ...over });

describe('a tree', () => {
  it('has a digest that does not depend on the order of its entries', () => {
    fc.assert(
      fc.property(
        anyFiles.chain((files) => {
          const entries = Object.entries(files).map(([path, file]) => entryOf(path, file));
          return fc.tuple(fc.constant(entries), fc.shuffledSubarray(entries, { minLength: entries.length }));
        }),
        ([entries, shuffled]) => {
          const [first, second] = [makeTree(entries), makeTree(shuffled)];
          if (!first.ok || !second.ok) throw new Error('both are trees');
          expect(treeDigest(sha256, second.value)).toBe(treeDigest(sha256, first.value));
          expect([...second.value.entries]).toEqual([...first.value.entries]);
        },
      ),
    );
  });

  it('has the digest anybody can compute with sort and sha256sum', () => {
    const tree = treeOf({ 'b c': 'x', 'a/😀': { content: 'y', mode: '100755' }, 'a/\uffee': 'z', a0: 'q' });
    const lines = [...tree.entries.values()].reverse().map(({ mode, path, blob }) => `${mode} ${path} ${blob}\n`);
    const sorted = execFileSync('sort', { input: lines.join(''), env: { ...process.env, LC_ALL: 'C' } });
    expect(treeDigest(sha256, tree)).toBe(sha256(sorted));
    expect(treeDigest(sha256, EMPTY_TREE)).toBe(sha256(''));
  });

  it('has another digest when a path, a mode or a content changes', () => {
    const base = { a: 'x', 'b/c': 'y' };
    const digests = [
      base,
      { ...base, a: 'X' },
      { ...base, a: { content: 'x', mode: '100755' as const } },
      { a2: 'x', 'b/c': 'y' },
      { a: 'x' },
    ].map((files) => treeDigest(sha256, treeOf(files)));
    expect(new Set(digests).size).toBe(digests.length);
  });

  it.each([
    ['a file below a file', [entry('a'), entry('a/b')], 'files["a/b"]', /'a', which is a file/],
    ['a file below a file, in the other order', [entry('a/b/c'), entry('a')], 'files["a/b/c"]', /'a', which is a file/],
    ['a path twice', [entry('a'), entry('a')], 'files["a"]', /twice/],
    ['a path that is none', [entry('../a')], 'files["../a"]', /'\.\.'/],
    ['a digest that is none', [entry('a', { blob: 'ABC' })], 'files["a"]', /SHA-256/],
    ['a digest in capitals', [entry('a', { blob: 'A'.repeat(64) })], 'files["a"]', /lower-case/],
    ['a mode that is none', [entry('a', { mode: '040000' as '100644' })], 'files["a"]', /mode/],
    ['a negative size', [entry('a', { sizeBytes: -1 })], 'files["a"]', /bytes/],
    ['half a byte', [entry('a', { sizeBytes: 0.5 })], 'files["a"]', /bytes/],
  ])('refuses %s and names it', (_name, entries, field, message) => {
    const tree = makeTree(entries);
    if (tree.ok || tree.error.kind !== 'invalid') throw new Error('refused as invalid');
    expect(tree.error.issues).toEqual([{ field, message: expect.stringMatching(message) }]);
  });

  it('accepts names that only begin alike', () => {
    expect(makeTree([entry('a'), entry('a.b'), entry('ab/c'), entry('a b/c')]).ok).toBe(true);
  });

  it('refuses files and sums above the limits, naming the files', () => {
    expect(makeTree([entry('a', { sizeBytes: MAX_FILE_BYTES })]).ok).toBe(true);
    expect(makeTree([entry('big', { sizeBytes: MAX_FILE_BYTES + 1 }), entry('b')])).toMatchObject({
      error: { kind: 'too_large', limitBytes: MAX_FILE_BYTES, details: { paths: ['big'] } },
    });
    const many = Array.from({ length: MAX_TREE_BYTES / MAX_FILE_BYTES + 1 }, (_, index) =>
      entry(`f${index}`, { sizeBytes: MAX_FILE_BYTES }),
    );
    expect(makeTree(many)).toMatchObject({ error: { kind: 'too_large', limitBytes: MAX_TREE_BYTES } });
  });

  it('refuses more files than the limit and takes as many as the limit', () => {
    const entries = Array.from({ length: MAX_FILES + 1 }, (_, index) => entry(`d${index % 100}/f${index}`));
    expect(makeTree(entries.slice(1)).ok).toBe(true);
    expect(makeTree(entries)).toMatchObject({ error: { kind: 'invalid', issues: [{ field: 'files' }] } });
  });

  it('lists directories by name and knows what is one', () => {
    const tree = treeOf({ 'src/a.ts': 'a', 'src/deep/b.ts': 'bb', 'src/deep/c.ts': 'c', top: { content: 'src', mode: '120000' } });
    expect(listDirectory(tree, '')).toEqual([
      { kind: 'directory', name: 'src', path: 'src', files: 3 },
      { kind: 'symlink', name: 'top', path: 'top', mode: '120000', sizeBytes: 3 },
    ]);
    expect(listDirectory(tree, 'src')?.map((item) => item.path)).toEqual(['src/a.ts', 'src/deep']);
    expect([listDirectory(tree, 'src/a.ts'), listDirectory(tree, 'nowhere'), listDirectory(tree, 'sr')]).toEqual([null, null, null]);
    expect([isDirectory(tree, 'src/deep'), isDirectory(tree, 'src/a.ts'), isDirectory(EMPTY_TREE, '')]).toEqual([true, false, true]);
    expect(listDirectory(EMPTY_TREE, '')).toEqual([]);
    expect([findEntry(tree, 'src/a.ts')?.sizeBytes, findEntry(tree, 'src'), findEntry(tree, 'constructor')]).toEqual([1, null, null]);
  });
});

describe('a manifest', () => {
  it('brings every tree back', () => {
    fc.assert(
      fc.property(anyFiles, (files) => {
        const tree = treeOf(files);
        const decoded = decodeManifest(encodeManifest(tree));
        if (!decoded.ok) throw new Error(decoded.error.message);
        expect([...decoded.value.entries]).toEqual([...tree.entries]);
        expect(decoded.value.totalBytes).toBe(tree.totalBytes);
      }),
    );
  });

  const good = encodeManifest(treeOf({ 'a b': 'x' }));
  it.each([
    ['no end', good.slice(0, -1), /line feed/],
    ['an empty line', `${good}\n`, /manifest\[2\]/],
    ['an unknown mode', good.replace('100644', '100600'), /mode/],
    ['a directory', good.replace('100644', '040000'), /mode/],
    ['a short digest', good.replace(/[0-9a-f]{64}/, 'abc'), /manifest\[1\]/],
    ['a negative size', good.replace(' 1 ', ' -1 '), /manifest\[1\]/],
    ['a size with leading zeros', good.replace(' 1 ', ' 01 '), /manifest\[1\]/],
    ['a path outside', good.replace('a b', '../a'), /'\.\.'/],
    ['no path', good.replace('a b', ''), /manifest\[1\]/],
    ['the same path twice', good + good, /twice/],
  ])('is refused with %s', (_name, text, message) => {
    const decoded = decodeManifest(text);
    if (decoded.ok) throw new Error('refused');
    expect(decoded.error.message).toMatch(message);
  });
});
