import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeBase64, encodeBase64 } from '../../../src/core/base64.ts';
import { MAX_FILE_BYTES } from '../../../src/core/workspace/tree.ts';
import { WRITE_FILE } from '../../../src/engine/tools/write-file.ts';
import { sha256 } from '../../core/workspace/trees.ts';
import { run } from './workspace-run.ts';

describe('write_file', () => {
  it('makes a new file with its directories and tells its digest', async () => {
    const { outcome, files } = await run(WRITE_FILE, { a: 'x' }, { path: 'b/c.txt', content: 'hällo\n' });
    expect(files).toEqual({ a: 'x', 'b/c.txt': 'hällo\n' });
    expect(outcome).toMatchObject({
      result: { path: 'b/c.txt', created: true, size_bytes: 7, executable: false, sha256: sha256('hällo\n') },
    });
  });

  it('replaces a file and keeps its executable bit unless told otherwise', async () => {
    const before = { run: { content: 'old', mode: '100755' as const } };
    expect((await run(WRITE_FILE, before, { path: 'run', content: 'new' })).files).toEqual({ run: '*new' });
    expect((await run(WRITE_FILE, before, { path: 'run', content: 'new', executable: false })).files).toEqual({ run: 'new' });
    expect((await run(WRITE_FILE, {}, { path: 'run', content: 'new', executable: true })).files).toEqual({ run: '*new' });
  });

  it('writes any bytes from base64', async () => {
    const { outcome } = await run(WRITE_FILE, {}, { path: 'a', content: 'AP8=', encoding: 'base64' });
    expect(outcome).toMatchObject({ writes: [{ kind: 'put', path: 'a', mode: '100644', bytes: Uint8Array.of(0, 255) }] });
  });

  it('adds to the end of a file, on a line of its own, and keeps its executable bit', async () => {
    const add = (content: string) => ({ path: 'a', content, append: true });
    expect((await run(WRITE_FILE, { a: 'one\n' }, add('two\n'))).files).toEqual({ a: 'one\ntwo\n' });
    expect((await run(WRITE_FILE, { a: 'öne' }, add('two'))).files).toEqual({ a: 'öne\ntwo' });
    expect((await run(WRITE_FILE, { a: '' }, add('two'))).files).toEqual({ a: 'two' });
    const { outcome, files } = await run(WRITE_FILE, { a: { content: 'one', mode: '100755' as const } }, add('two'));
    expect(files).toEqual({ a: '*one\ntwo' });
    expect(outcome).toMatchObject({ result: { created: false, size_bytes: 7, executable: true, sha256: sha256('one\ntwo') } });
  });

  it.each([
    ['to a file that is not there', { path: 'none', content: 'x' }, 'not_found'],
    ['to a link', { path: 'link', content: 'x' }, 'is_symlink'],
    ['to what is no text', { path: 'bytes', content: 'x' }, 'not_text'],
    ['bytes', { path: 'a', content: 'AP8=', encoding: 'base64' }, 'invalid_arguments'],
    ['more than a file may hold', { path: 'a', content: 'x'.repeat(MAX_FILE_BYTES - 1) }, 'too_large'],
  ])('does not add %s', async (_what, args, code) => {
    const before = { a: 'y', link: { content: 'a', mode: '120000' as const }, bytes: '\u0000' };
    const { outcome, files } = await run(WRITE_FILE, before, { ...args, append: true });
    expect(outcome).toMatchObject({ status: 'failed', error: { code }, dispatched: false });
    expect(files['a']).toBe('y');
  });

  it('takes a file of exactly the largest size', async () => {
    expect((await run(WRITE_FILE, {}, { path: 'a', content: 'x'.repeat(MAX_FILE_BYTES) })).outcome.status).toBe('succeeded');
  });

  it.each([
    ['a directory', { path: 'dir', content: '' }, 'is_directory', /'dir' is a directory/],
    ['a place below a file', { path: 'dir/a/b', content: '' }, 'not_a_directory', /'dir\/a', which is a file/],
    ['a place below a link', { path: 'link/b', content: '' }, 'not_a_directory', /symbolic link/],
    ['a link', { path: 'link', content: '' }, 'is_symlink', /delete it first/],
    ['a path outside', { path: 'dir/../../a', content: '' }, 'invalid_path', /arguments\.path/],
    ['base64 that is none', { path: 'a', content: 'a*b=', encoding: 'base64' }, 'invalid_arguments', /arguments\.content/],
    ['half a surrogate pair', { path: 'a', content: 'x\ud800' }, 'invalid_arguments', /well-formed/],
    ['one byte too many', { path: 'a', content: `é${'x'.repeat(MAX_FILE_BYTES - 1)}` }, 'too_large', /1048577/],
  ])('fails for %s and changes nothing', async (_name, args, code, message) => {
    const before = { 'dir/a': 'x', link: { content: 'dir', mode: '120000' as const } };
    const { outcome, files } = await run(WRITE_FILE, before, args);
    expect(outcome).toMatchObject({ status: 'failed', error: { code, message: expect.stringMatching(message) }, dispatched: false });
    expect(files).toEqual({ 'dir/a': 'x', link: '→ dir' });
  });
});

describe('base64', () => {
  it('brings any bytes back and agrees with Node', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(encodeBase64(bytes)).toBe(Buffer.from(bytes).toString('base64'));
        expect(decodeBase64(encodeBase64(bytes))).toEqual(bytes);
      }),
    );
    const large = new Uint8Array(MAX_FILE_BYTES).fill(7);
    expect(Buffer.compare(decodeBase64(encodeBase64(large)) ?? new Uint8Array(), large)).toBe(0);
  });

  it.each(['a', 'ab', 'abc', 'abc=\n', 'ab-_', '====', 'a===', 'ab=c', ' abcd'])('refuses %j', (text) => {
    expect(decodeBase64(text)).toBeNull();
  });
});
