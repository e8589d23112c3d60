import { describe, expect, it } from 'vitest';
import { MAX_READ_BYTES, READ_FILE } from '../../../src/engine/tools/read-file.ts';
import { makeTreeWorkspace } from '../../../src/engine/tools/tree-workspace.ts';
import { sha256, treeOf } from '../../core/workspace/trees.ts';
import { resultOf, run } from './workspace-run.ts';

describe('read_file', () => {
  it('gives the text, its size, digest and number of lines', async () => {
    expect(await resultOf(READ_FILE, { 'a/b.txt': { content: '\ufeffone\r\ntwo', mode: '100755' } }, { path: 'a/b.txt' })).toEqual({
      path: 'a/b.txt',
      encoding: 'utf-8',
      content: '\ufeffone\r\ntwo',
      size_bytes: 11,
      executable: true,
      sha256: sha256('\ufeffone\r\ntwo'),
      start_line: 1,
      total_lines: 2,
      truncated: false,
    });
  });

  it('gives a range of lines', async () => {
    const files = { a: 'one\ntwo\nthree\nfour' };
    expect(await resultOf(READ_FILE, files, { path: 'a', start_line: 2, line_count: 2 })).toMatchObject({
      content: 'two\nthree\n',
      total_lines: 4,
      truncated: false,
    });
    expect(await resultOf(READ_FILE, files, { path: 'a', start_line: 4, line_count: 9 })).toMatchObject({ content: 'four' });
  });

  it('reads an empty file as empty', async () => {
    expect(await resultOf(READ_FILE, { a: '' }, { path: 'a' })).toMatchObject({ content: '', total_lines: 0, truncated: false });
  });

  it('cuts a long file between characters and says so', async () => {
    const text = `x${'é'.repeat(MAX_READ_BYTES)}`;
    const result = (await resultOf(READ_FILE, { a: text }, { path: 'a' })) as { content: string; truncated: boolean; size_bytes: number };
    expect(result).toMatchObject({ truncated: true, size_bytes: 2 * MAX_READ_BYTES + 1 });
    expect(result.content).toBe(`x${'é'.repeat(MAX_READ_BYTES / 2 - 1)}`);
    expect(await resultOf(READ_FILE, { a: 'y'.repeat(MAX_READ_BYTES) }, { path: 'a' })).toMatchObject({ truncated: false });
  });

  it('gives any bytes as base64, in parts', async () => {
    const content = Uint8Array.from({ length: 100_000 }, (_, index) => index % 251);
    let read = Buffer.alloc(0);
    for (let truncated = true; truncated; ) {
      const part = (await resultOf(READ_FILE, { a: { content } }, { path: 'a', encoding: 'base64', offset_bytes: read.length })) as {
        content: string;
        truncated: boolean;
      };
      expect(part.content.length).toBeLessThanOrEqual(MAX_READ_BYTES);
      read = Buffer.concat([read, Buffer.from(part.content, 'base64')]);
      truncated = part.truncated;
    }
    expect(Buffer.compare(read, content)).toBe(0);
  });

  it.each([
    ['a file that is not there', { path: 'nowhere' }, 'not_found', /no file 'nowhere'/],
    ['a directory', { path: 'dir' }, 'is_directory', /is a directory/],
    ['a link, naming where it leads', { path: 'link' }, 'is_symlink', /'dir\/a'/],
    ['a binary file, naming the way to read it', { path: 'bin' }, 'not_text', /base64/],
    ['a path outside', { path: '../etc/passwd' }, 'invalid_path', /arguments\.path: .*'\.\.'/],
    ['an absolute path', { path: '/etc/passwd' }, 'invalid_path', /leading slash/],
    ['a NUL in the path', { path: 'a\0' }, 'invalid_path', /NUL/],
    ['a line past the end', { path: 'dir/a', start_line: 3 }, 'out_of_range', /has 1 lines/],
    ['lines of base64', { path: 'bin', encoding: 'base64', start_line: 1 }, 'invalid_arguments', /offset_bytes/],
    ['an offset in text', { path: 'dir/a', offset_bytes: 1 }, 'invalid_arguments', /start_line/],
  ])('fails for %s', async (_name, args, code, message) => {
    const files = { 'dir/a': 'x', link: { content: 'dir/a', mode: '120000' as const }, bin: { content: Uint8Array.of(0, 255) } };
    const { outcome } = await run(READ_FILE, files, args);
    expect(outcome).toEqual({
      status: 'failed',
      error: { code, message: expect.stringMatching(message), transient: false },
      dispatched: false,
    });
  });

  it('does not take a lost blob for an empty file', async () => {
    const workspace = makeTreeWorkspace(treeOf({ a: 'x' }), async () => null);
    const context = { workspace, signal: new AbortController().signal, idempotencyKey: 'key', sha256 };
    await expect(READ_FILE.perform({ path: 'a' }, context)).rejects.toThrow(/lost/);
  });
});
