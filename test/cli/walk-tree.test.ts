import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { readWalked, walkTree } from '../../src/cli/walk-tree.ts';

const folders: string[] = [];

/** A real folder with these files; a name that ends in `/` is an empty directory. */
function folderOf(files: Readonly<Record<string, string | Uint8Array>>): string {
  const root = mkdtempSync(join(tmpdir(), 'walk-'));
  folders.push(root);
  for (const [path, content] of Object.entries(files)) {
    if (path.endsWith('/')) mkdirSync(join(root, path), { recursive: true });
    else {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), content);
    }
  }
  return root;
}

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

const pathsOf = async (root: string): Promise<readonly string[]> => (await walkTree(root)).files.map((file) => file.path);

describe('walking a directory', () => {
  it('gives each file with mode, digest and size', async () => {
    const root = folderOf({ 'a.txt': 'hello', 'bin/run': '#!/bin/sh\n' });
    chmodSync(join(root, 'bin/run'), 0o755);
    expect((await walkTree(root)).files).toEqual([
      { path: 'a.txt', mode: '100644', digest: '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824', sizeBytes: 5 },
      { path: 'bin/run', mode: '100755', digest: 'a8076d3d28d21e02012b20eaf7dbf75409a6277134439025f282e368e3305abf', sizeBytes: 10 },
    ]);
  });

  it('leaves out what ignore files exclude, at every level, and what belongs to git and to the local state', async () => {
    const root = folderOf({
      '.gitignore': '*.log\n/build/\nnode_modules\n!keep.log\n# a comment\n\n',
      '.git/config': 'x',
      '.cleveragents/connection.json': '{"key":"secret"}',
      'keep.log': '1',
      'drop.log': '1',
      'build/out.js': '1',
      'sub/build/in.js': '1',
      'sub/node_modules/x/y.js': '1',
      'sub/.gitignore': '!special.log\n*.tmp\n/local\n',
      'sub/special.log': '1',
      'sub/other.log': '1',
      'sub/deep/special.log': '1',
      'sub/deep/a.tmp': '1',
      'sub/local': '1',
      'sub/deep/local': '1',
      'other/a.tmp': '1',
    });
    expect(await pathsOf(root)).toEqual([
      '.gitignore',
      'keep.log',
      'other/a.tmp',
      'sub/.gitignore',
      'sub/build/in.js',
      'sub/deep/local',
      'sub/deep/special.log',
      'sub/special.log',
    ]);
  });

  it('tells upper from lower case, as git does where the file system does', async () => {
    const root = folderOf({ '.gitignore': 'readme\n', README: '1', readme: '1' });
    expect(await pathsOf(root)).toEqual(['.gitignore', 'README']);
  });

  it('cannot include again what lies below an excluded directory', async () => {
    const root = folderOf({ '.gitignore': 'out/\n!out/keep\n', 'out/keep': '1', 'out/.gitignore': '!*', a: '1' });
    expect(await pathsOf(root)).toEqual(['.gitignore', 'a']);
  });

  it('treats names that look like patterns as names', async () => {
    const root = folderOf({ '[a]/.gitignore': 'x\n', '[a]/x': '1', 'a/x': '1', 'b*/.gitignore': '/y\n', 'b*/y': '1', 'bc/y': '1' });
    expect(await pathsOf(root)).toEqual(['[a]/.gitignore', 'a/x', 'b*/.gitignore', 'bc/y']);
  });

  it('keeps links inside the tree as links, followed or broken', async () => {
    const root = folderOf({ 'a/b/file': 'x' });
    symlinkSync('b/file', join(root, 'a/link'));
    symlinkSync('../a', join(root, 'a/loop'));
    symlinkSync('nowhere', join(root, 'broken'));
    const walked = await walkTree(root);
    expect(walked.escaping).toEqual([]);
    expect(walked.files.map(({ path, mode, sizeBytes }) => [path, mode, sizeBytes])).toEqual([
      ['a/b/file', '100644', 1],
      ['a/link', '120000', 6],
      ['a/loop', '120000', 4],
      ['broken', '120000', 7],
    ]);
  });

  it.each(['/etc/passwd', '../outside', 'a/../../outside', '../../..'])('reports a link to %s as leading out', async (target) => {
    const root = folderOf({ 'a/x': '1' });
    symlinkSync(target, join(root, 'escape'));
    const walked = await walkTree(root);
    expect(walked.escaping.map((file) => file.path)).toEqual(['escape']);
    expect(walked.files.map((file) => file.path)).toEqual(['a/x']);
  });

  it('does not read an ignore file through a link', async () => {
    const root = folderOf({ rules: '*\n', a: '1' });
    symlinkSync('rules', join(root, '.gitignore'));
    expect(await pathsOf(root)).toEqual(['.gitignore', 'a', 'rules']);
  });

  it('names files over 1 MiB, and takes one of exactly 1 MiB', async () => {
    const root = folderOf({ exact: new Uint8Array(1_048_576), over: new Uint8Array(1_048_577) });
    const walked = await walkTree(root);
    expect(walked.files.map((file) => file.path)).toEqual(['exact']);
    expect(walked.skipped).toEqual([{ path: 'over', reason: 'is larger than 1 MiB (1048577 bytes)' }]);
  });

  it('names what is neither file nor link, and names that cannot be kept', async () => {
    const root = folderOf({ a: '1', 'with\nbreak': '1', 'back\\slash': '1' });
    execFileSync('mkfifo', [join(root, 'pipe')]);
    writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x66, 0xff])]), '1');
    const walked = await walkTree(root);
    expect(walked.files.map((file) => file.path)).toEqual(['a']);
    expect(walked.skipped.map((file) => file.path).sort()).toEqual(['back\\slash', 'f\ufffd', 'pipe', 'with\nbreak'].sort());
  });

  it('says when a file changes while it is imported', async () => {
    const root = folderOf({ a: '1' });
    const [file] = (await walkTree(root)).files;
    if (file === undefined) throw new Error('no file');
    expect(Buffer.from(await readWalked(root, file)).toString()).toBe('1');
    writeFileSync(join(root, 'a'), '2');
    await expect(readWalked(root, file)).rejects.toThrow('a changed while it was imported');
  });
});

describe('ignore rules', () => {
  const git = (root: string, ...args: readonly string[]): string =>
    execFileSync('git', ['-C', root, '-c', 'core.excludesFile=/dev/null', ...args], { encoding: 'utf8' });

  it('agree with git on random trees', async () => {
    const name = fc.constantFrom('a', 'b', 'ab', 'A', 'c.log', 'd d', '[x]');
    const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => names.join('/'));
    const piece = fc.constantFrom('a', 'b', '*', '*.log', '**', 'a*', '?', '[ab]', 'd d', '\\[x\\]', 'c.log');
    const pattern = fc
      .tuple(
        fc.constantFrom('', '', '!'),
        fc.constantFrom('', '/'),
        fc.array(piece, { minLength: 1, maxLength: 3 }),
        fc.constantFrom('', '/'),
      )
      .map(([negation, start, pieces, end]) => `${negation}${start}${pieces.join('/')}${end}`);
    const ignoreFile = fc.tuple(fc.constantFrom('', 'a/', 'a/b/', 'b/', '[x]/'), fc.array(pattern, { minLength: 1, maxLength: 4 }));
    await fc.assert(
      fc.asyncProperty(
        fc.array(path, { minLength: 1, maxLength: 12 }),
        fc.array(ignoreFile, { maxLength: 3 }),
        async (paths, ignoreFiles) => {
          const root = folderOf({});
          git(root, 'init', '-q');
          const put = (file: string, content: string): void => {
            try {
              mkdirSync(dirname(join(root, file)), { recursive: true });
              writeFileSync(join(root, file), content);
            } catch {
              // A file where another path needs a directory: the tree is what could be made.
            }
          };
          for (const file of paths) put(file, '1');
          for (const [directory, patterns] of ignoreFiles) put(`${directory}.gitignore`, `${patterns.join('\n')}\n`);
          const expected = git(root, 'ls-files', '--others', '--exclude-standard', '-z')
            .split('\0')
            .filter((file) => file !== '');
          expect([...(await pathsOf(root))].sort()).toEqual(expected.sort());
          rmSync(root, { recursive: true, force: true });
        },
      ),
      { numRuns: 40 },
    );
  }, 30_000);
});
