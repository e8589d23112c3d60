import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Change, changesBetween } from '../../../src/core/workspace/changes.ts';
import { blobsNeeded, diffDigest, diffTrees, patchOf, type TreeDiff } from '../../../src/core/workspace/diff.ts';
import { type Tree, treeDigest } from '../../../src/core/workspace/tree.ts';
import { anyFiles, bytesOf, contentOf, entryOf, sha256, type TestFile, type TestFiles, treeOf } from './trees.ts';

/** Gives `diffTrees` only the blobs that `blobsNeeded` names. */
function diff(before: TestFiles, after: TestFiles): TreeDiff {
  const [base, current] = [treeOf(before), treeOf(after)];
  const needed = new Set(blobsNeeded(base, current));
  const content = contentOf(before, after);
  return diffTrees(base, current, (blob) => (needed.has(blob) ? content(blob) : undefined));
}

function writeFiles(root: string, files: TestFiles): void {
  for (const [path, file] of Object.entries(files)) {
    const target = join(root, path);
    mkdirSync(dirname(target), { recursive: true });
    const { mode } = entryOf(path, file);
    if (mode === '120000') symlinkSync(Buffer.from(bytesOf(file)).toString(), target);
    else writeFileSync(target, bytesOf(file));
    if (mode === '100755') chmodSync(target, 0o755);
  }
}

/** Links are read as links and never followed. */
function readFiles(root: string, directory = ''): Record<string, TestFile> {
  const files: Record<string, TestFile> = {};
  for (const name of readdirSync(join(root, directory))) {
    const path = directory === '' ? name : `${directory}/${name}`;
    const stat = lstatSync(join(root, path));
    if (stat.isDirectory()) Object.assign(files, readFiles(root, path));
    else if (stat.isSymbolicLink()) files[path] = { mode: '120000', content: readlinkSync(join(root, path)) };
    else files[path] = { mode: (stat.mode & 0o100) !== 0 ? '100755' : '100644', content: readFileSync(join(root, path)) };
  }
  return files;
}

/** What real git makes of the base with the patch. */
function applyWithGit(before: TestFiles, patch: string): Tree {
  const root = mkdtempSync(join(tmpdir(), 'patch-'));
  try {
    writeFiles(root, before);
    if (patch !== '')
      execFileSync('git', ['apply', '--whitespace=nowarn', '-'], { cwd: root, input: patch, stdio: ['pipe', 'pipe', 'pipe'] });
    return treeOf(readFiles(root));
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

const lines = (count: number, prefix = 'line') => Array.from({ length: count }, (_, index) => `${prefix} ${index}\n`).join('');

describe('the patch of a diff', () => {
  it('makes the current tree of the base tree in the hands of git', () => {
    fc.assert(
      fc.property(anyFiles, anyFiles, (before, after) => {
        expect([...applyWithGit(before, patchOf(diff(before, after))).entries]).toEqual([...treeOf(after).entries]);
      }),
      { numRuns: 80 },
    );
  }, 60_000);

  const cases: readonly (readonly [string, TestFiles, TestFiles])[] = [
    ['a new file', {}, { 'a/b.txt': 'one\ntwo\n' }],
    ['a new empty file', {}, { 'a b': '' }],
    ['a deleted empty file', { 'a b': '' }, {}],
    ['a file without a last line feed', { a: 'one\ntwo' }, { a: 'one\ntwo\n' }],
    ['a file that loses its last line feed', { a: 'one\ntwo\n' }, { a: 'one\ntwo' }],
    ['Windows line ends', { a: 'one\r\ntwo\r\n' }, { a: 'one\r\n2\r\n' }],
    ['a byte order mark', { a: '\ufeffone\ntwo\n' }, { a: 'one\ntwo\n' }],
    ['a rename with an edit', { 'old name': lines(20) }, { 'new/n"a"me': lines(20).replace('line 7', 'LINE 7') }],
    ['a rename, an edit and a mode', { old: lines(20) }, { new: { content: lines(20).replace('line 7', 'x'), mode: '100755' } }],
    ['a mode only', { a: 'x' }, { a: { content: 'x', mode: '100755' } }],
    ['a link in the place of a file', { a: 'x\n', b: 'y' }, { a: { content: 'b', mode: '120000' }, b: 'y' }],
    ['a link with the same bytes as the file it replaces', { a: 'nowhere' }, { a: { content: 'nowhere', mode: '120000' } }],
    ['a directory in the place of a file', { a: 'x\n' }, { 'a/b': 'y\n' }],
    ['a file in the place of a directory', { 'a/b': 'y\n' }, { a: 'x\n' }],
    ['two files that change places', { a: lines(5, 'a'), b: lines(5, 'b') }, { a: lines(5, 'b'), b: lines(5, 'a') }],
    [
      'changes far apart and close together',
      { a: lines(60) },
      { a: lines(60).replace('line 3\n', '').replace('line 10\n', 'ten\n').replace('line 50\n', 'x\ny\n') },
    ],
    ['more changed lines than are looked through', { a: lines(3_000) }, { a: `start\n${lines(3_000, 'other')}` }],
  ];
  it.each(cases)('is taken by git for %s', (_name, before, after) => {
    expect([...applyWithGit(before, patchOf(diff(before, after))).entries]).toEqual([...treeOf(after).entries]);
  });

  it('is the text git users know', () => {
    const [file] = diff({ 'src/a.ts': 'one\ntwo\nthree\n' }, { 'src/a.ts': 'one\n2\nthree' }).files;
    expect(file?.patch).toBe(
      [
        'diff --git a/src/a.ts b/src/a.ts',
        '--- a/src/a.ts',
        '+++ b/src/a.ts',
        '@@ -1,3 +1,3 @@',
        ' one',
        '-two',
        '-three',
        '+2',
        '+three',
        '\\ No newline at end of file',
        '',
      ].join('\n'),
    );
  });

  it('marks the end of a name with spaces, quotes one with quotation marks, and names an empty side by line 0', () => {
    const { files } = diff({ 'g"one': 'x' }, { 'n ew.ts': 'one\ntwo\n' });
    expect(files.map((file) => file.patch)).toEqual([
      'diff --git "a/g\\"one" "b/g\\"one"\ndeleted file mode 100644\n--- "a/g\\"one"\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n',
      'diff --git a/n ew.ts b/n ew.ts\nnew file mode 100644\n--- /dev/null\n+++ b/n ew.ts\t\n@@ -0,0 +1,2 @@\n+one\n+two\n',
    ]);
  });

  it('joins changes whose context meets and separates those further apart', () => {
    const hunks = (gap: number) => {
      const [file] = diff(
        { a: lines(40) },
        {
          a: lines(40)
            .replace('line 10\n', 'x\n')
            .replace(`line ${11 + gap}\n`, 'y\n'),
        },
      ).files;
      return file?.patch.match(/^@@ .*$/gm);
    };
    expect(hunks(6)).toEqual(['@@ -8,14 +8,14 @@']);
    expect(hunks(7)).toEqual(['@@ -8,7 +8,7 @@', '@@ -16,7 +16,7 @@']);
  });
});

describe('the diff of two trees', () => {
  it('is empty for equal trees and needs no contents', () => {
    const tree = treeOf({ a: 'x', 'b/c': 'y' });
    expect(diffTrees(tree, tree, () => undefined)).toEqual({ files: [], totals: { files: 0, additions: 0, deletions: 0, binary: 0 } });
    expect(blobsNeeded(tree, tree)).toEqual([]);
  });

  it('counts lines and sums them', () => {
    const { files, totals } = diff({ a: 'one\ntwo\n', gone: 'x\ny\nz' }, { a: 'one\n2\nthree\n', 'n/ew': 'p' });
    expect(files.map(({ path, status, additions, deletions }) => [path, status, additions, deletions])).toEqual([
      ['a', 'modified', 2, 1],
      ['gone', 'deleted', 0, 3],
      ['n/ew', 'added', 1, 0],
    ]);
    expect(totals).toEqual({ files: 3, additions: 3, deletions: 4, binary: 0 });
  });

  it('names modes and digests of both sides, and leaves out the side that is not there', () => {
    const [added, modified] = diff({ m: 'x' }, { a: 'new', m: { content: 'y', mode: '100755' } }).files;
    expect(added).toMatchObject({ path: 'a', mode_after: '100644', blob_after: sha256('new') });
    expect(added).not.toHaveProperty('mode_before');
    expect(added).not.toHaveProperty('blob_before');
    expect(modified).toMatchObject({ mode_before: '100644', mode_after: '100755', blob_before: sha256('x'), blob_after: sha256('y') });
  });

  it('finds a moved file by its contents, without needing them', () => {
    const { files } = diff({ 'old/a.ts': 'same\n' }, { 'new/b.ts': { content: 'same\n', mode: '100755' } });
    expect(files).toMatchObject([
      { path: 'new/b.ts', from_path: 'old/a.ts', status: 'renamed', binary: false, additions: 0, deletions: 0 },
    ]);
    expect(files[0]?.patch).toContain('similarity index 100%\nrename from old/a.ts\nrename to new/b.ts\n');
    expect(blobsNeeded(treeOf({ 'old/a.ts': 'same\n' }), treeOf({ 'new/b.ts': 'same\n' }))).toEqual([]);
  });

  it('prefers the same name among equal contents', () => {
    const { files } = diff({ 'a/x': 's', 'a/y': 's' }, { 'b/y': 's', 'b/x': 's' });
    expect(files.map(({ path, from_path }) => [path, from_path])).toEqual([
      ['b/x', 'a/x'],
      ['b/y', 'a/y'],
    ]);
  });

  it('finds a moved and edited file from half of its text on, and the most similar one first', () => {
    const renamed = (kept: number) =>
      diff({ old: lines(10, 'same') }, { new: lines(kept, 'same') + lines(10 - kept, 'diff') }).files.map((file) => file.status);
    expect([renamed(5), renamed(4)]).toEqual([['renamed'], ['added', 'deleted']]);
    const best = diff({ p: lines(10, 'same') }, { q: lines(6, 'same') + lines(4, 'diff'), r: lines(9, 'same') + lines(1, 'diff') });
    expect(best.files.map(({ path, status, from_path }) => [path, status, from_path])).toEqual([
      ['q', 'added', undefined],
      ['r', 'renamed', 'p'],
    ]);
  });

  it('takes no empty file, no edited binary file and no link for a moved one', () => {
    expect(diff({ a: '' }, { b: '' }).files.map((file) => file.status)).toEqual(['deleted', 'added']);
    const binary = (last: number) => ({ content: Uint8Array.from([...Array(50).fill(0), last]) });
    expect(diff({ a: binary(1) }, { b: binary(2) }).files.map((file) => file.status)).toEqual(['deleted', 'added']);
    const link = { content: 'target', mode: '120000' as const };
    expect(diff({ a: link }, { b: link }).files.map((file) => file.status)).toEqual(['deleted', 'added']);
    expect(diff({ a: 'target' }, { b: { content: 'target', mode: '120000' } }).files.map((file) => file.status)).toEqual([
      'deleted',
      'added',
    ]);
  });

  it('says that a file is binary, for a NUL byte and for invalid UTF-8, and shows none of it', () => {
    const { files, totals } = diff(
      { nul: { content: Uint8Array.of(1, 0, 2) }, utf: 'text\n', same: { content: Uint8Array.of(0) } },
      {
        nul: { content: Uint8Array.of(1, 0, 3) },
        utf: { content: Uint8Array.of(0xff, 0xfe, 10) },
        same: { content: Uint8Array.of(0), mode: '100755' },
      },
    );
    expect(files.map(({ path, binary, additions, deletions, status }) => [path, binary, additions, deletions, status])).toEqual([
      ['nul', true, 0, 0, 'modified'],
      ['same', false, 0, 0, 'mode_changed'],
      ['utf', true, 0, 0, 'modified'],
    ]);
    expect(files[0]?.patch).toBe('diff --git a/nul b/nul\nBinary files a/nul and b/nul differ\n');
    expect(totals.binary).toBe(2);
  });

  it('counts additions less deletions as the change in the number of lines, for any files', () => {
    fc.assert(
      fc.property(anyFiles, anyFiles, (before, after) => {
        const linesOf = (file: string | TestFile) =>
          Buffer.from(bytesOf(file))
            .toString()
            .match(/[^\n]*\n|[^\n]+$/g) ?? [];
        const countOf = (files: TestFiles) => Object.values(files).reduce((count, file) => count + linesOf(file).length, 0);
        const { totals } = diff(before, after);
        expect(totals.additions - totals.deletions).toBe(countOf(after) - countOf(before));
      }),
    );
  });

  it('throws when a content it needs is not given, and never shows it as empty', () => {
    expect(() => diffTrees(treeOf({ a: 'x' }), treeOf({ a: 'y' }), () => undefined)).toThrow(/was not given/);
  });

  it('ends soon for files that share nothing and for files of one line repeated', () => {
    const noise = (seed: number) =>
      Array.from({ length: 200_000 }, (_, index) => ((index * 7 + seed * 13 + (index >> 3) * seed) % 5 === 0 ? 'a' : 'b')).join('\n');
    const started = performance.now();
    expect(diff({ a: lines(80_000, 'a') }, { a: lines(80_000, 'b') }).totals).toMatchObject({ additions: 80_000, deletions: 80_000 });
    expect(diff({ a: noise(1) }, { a: noise(2) }).totals.files).toBe(1);
    expect(performance.now() - started).toBeLessThan(10_000);
  }, 20_000);
});

describe('the digest of a diff', () => {
  const digest = (before: TestFiles, after: TestFiles) => {
    const [base, current] = [treeOf(before), treeOf(after)];
    return diffDigest(sha256, {
      base: treeDigest(sha256, base),
      result: treeDigest(sha256, current),
      changes: changesBetween(base, current),
    });
  };

  it('is the same for the same change, whatever the order of its paths', () => {
    const [base, current] = [treeOf({ a: '1', b: '2' }), treeOf({ a: 'x', b: 'y', c: 'z' })];
    const changes = changesBetween(base, current);
    const heads = { base: treeDigest(sha256, base), result: treeDigest(sha256, current) };
    expect(diffDigest(sha256, { ...heads, changes: new Map([...changes].reverse()) })).toBe(diffDigest(sha256, { ...heads, changes }));
  });

  it('covers what happened to each path, not only the heads', () => {
    const change = { kind: 'write', mode: '100644', blob: sha256('x'), sizeBytes: 1 } as const;
    const one = (path: string, over: Change) => diffDigest(sha256, { base: 'b', result: 'r', changes: new Map([[path, over]]) });
    const digests = [
      one('a', change),
      one('b', change),
      one('a', { ...change, mode: '100755' }),
      one('a', { ...change, blob: sha256('y') }),
      one('a', { kind: 'delete' }),
    ];
    expect(new Set(digests).size).toBe(digests.length);
  });

  it('differs when the base, a content, a mode or a path does', () => {
    const digests = [
      digest({ a: '1' }, { a: '2' }),
      digest({ a: '0' }, { a: '2' }),
      digest({ a: '1', b: '1' }, { a: '2', b: '1' }),
      digest({ a: '1' }, { a: '3' }),
      digest({ a: '1' }, { a: { content: '2', mode: '100755' } }),
      digest({ a: '1' }, { b: '2' }),
      digest({ a: '1' }, {}),
      digest({ a: '1' }, { a: '1' }),
    ];
    expect(new Set(digests).size).toBe(digests.length);
  });
});
