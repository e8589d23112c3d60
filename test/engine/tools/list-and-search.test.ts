import { describe, expect, it } from 'vitest';
import { LIST_DIRECTORY, MAX_LISTED } from '../../../src/engine/tools/list-directory.ts';
import { SEARCH_CODE } from '../../../src/engine/tools/search-code.ts';
import { makeTreeWorkspace } from '../../../src/engine/tools/tree-workspace.ts';
import { contentOf, type TestFiles, treeOf } from '../../core/workspace/trees.ts';
import { resultOf, run } from './workspace-run.ts';

const FILES: TestFiles = {
  'README.md': 'read me\nfoo',
  'src/a.ts': 'const foo = 1;\n',
  'src/deep/b.ts': { content: 'FOO', mode: '100755' },
  'src/link': { content: 'a.ts', mode: '120000' },
};

describe('list_directory', () => {
  it('lists the root when no path is given', async () => {
    expect(await resultOf(LIST_DIRECTORY, FILES, {})).toEqual({
      path: '.',
      entries: [
        { path: 'README.md', kind: 'file', size_bytes: 11, executable: false },
        { path: 'src', kind: 'directory', files: 3 },
      ],
      truncated: false,
    });
    expect(await resultOf(LIST_DIRECTORY, {}, { path: '.' })).toEqual({ path: '.', entries: [], truncated: false });
  });

  it('lists all below a directory, each directory before what it holds', async () => {
    const result = await resultOf(LIST_DIRECTORY, FILES, { path: 'src/', recursive: true });
    expect(result).toMatchObject({
      path: 'src',
      entries: [
        { path: 'src/a.ts' },
        { path: 'src/deep', kind: 'directory' },
        { path: 'src/deep/b.ts', executable: true },
        { path: 'src/link', kind: 'symlink' },
      ],
    });
  });

  it('stops at its limit and says so, but not when it has exactly that many', async () => {
    const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`d/f${index}`, '']));
    expect(await resultOf(LIST_DIRECTORY, many(MAX_LISTED), { path: 'd' })).toMatchObject({
      entries: { length: MAX_LISTED },
      truncated: false,
    });
    expect(await resultOf(LIST_DIRECTORY, many(MAX_LISTED), { recursive: true })).toMatchObject({
      entries: { length: MAX_LISTED },
      truncated: true,
    });
  });

  it.each([
    ['a directory that is not there', 'lib', 'not_found', /'lib'/],
    ['a file', 'README.md', 'not_a_directory', /read_file/],
    ['a link', 'src/link', 'not_a_directory', /file/],
    ['a path outside', '../', 'invalid_path', /arguments\.path/],
  ])('fails for %s', async (_name, path, code, message) => {
    const { outcome } = await run(LIST_DIRECTORY, FILES, { path });
    expect(outcome).toMatchObject({ status: 'failed', error: { code, message: expect.stringMatching(message) }, dispatched: false });
  });
});

describe('search_code', () => {
  it('gives the lines that contain the text', async () => {
    expect(await resultOf(SEARCH_CODE, FILES, { query: 'foo' })).toEqual({
      query: 'foo',
      matches: [
        { path: 'README.md', line: 2, text: 'foo' },
        { path: 'src/a.ts', line: 1, text: 'const foo = 1;' },
      ],
      truncated: false,
    });
  });

  it('takes case, files and number into account', async () => {
    const result = await resultOf(SEARCH_CODE, FILES, { query: 'foo', ignore_case: true, path_glob: 'src', max_results: 1 });
    expect(result).toMatchObject({ matches: [{ path: 'src/a.ts' }], truncated: true });
  });

  it('finds nothing without failing', async () => {
    expect(await resultOf(SEARCH_CODE, FILES, { query: 'nowhere to be found' })).toMatchObject({ matches: [], truncated: false });
  });

  it('keeps its answer small and says that it did', async () => {
    const files = { a: `${'x'.repeat(2_000)}\n`.repeat(500) };
    const result = await resultOf(SEARCH_CODE, files, { query: 'xxx', max_results: 500 });
    expect(result).toMatchObject({ truncated: true });
    expect(JSON.stringify(result).length).toBeLessThan(100_000);
  });

  it('refuses a text with a line break', async () => {
    expect((await run(SEARCH_CODE, FILES, { query: 'a\nb' })).outcome).toMatchObject({
      status: 'failed',
      error: { code: 'invalid_arguments' },
    });
  });

  it('loads no more files than it needs, and none outside the glob', async () => {
    const loaded: string[] = [];
    const content = contentOf(FILES);
    const tree = treeOf(FILES);
    const workspace = makeTreeWorkspace(tree, async (blob) => {
      loaded.push([...tree.entries.values()].find((entry) => entry.blob === blob)?.path ?? '');
      return content(blob) ?? null;
    });
    await workspace.search('foo', { pathGlob: '*.ts', ignoreCase: true });
    expect(loaded).toEqual(['src/a.ts', 'src/deep/b.ts']);
    loaded.length = 0;
    await workspace.search('read', { maxResults: 1, pathGlob: 'README.md' });
    expect(loaded).toEqual(['README.md']);
  });
});
