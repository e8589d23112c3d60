import { describe, expect, it } from 'vitest';
import { EDIT_FILE } from '../../../src/engine/tools/edit-file.ts';
import { run } from './workspace-run.ts';

describe('edit_file', () => {
  it('replaces the only occurrence and leaves the rest as it is, mode and line ends included', async () => {
    const { outcome, files } = await run(
      EDIT_FILE,
      { a: { content: '\ufeffone\r\ntwo\n', mode: '100755' } },
      { path: 'a', old_text: 'one\r\n', new_text: '' },
    );
    expect(files).toEqual({ a: '*\ufefftwo\n' });
    expect(outcome).toMatchObject({ result: { path: 'a', replacements: 1, size_bytes: 7 } });
  });

  it('replaces every occurrence when told to', async () => {
    const { outcome, files } = await run(EDIT_FILE, { a: 'x.x.x' }, { path: 'a', old_text: 'x', new_text: 'xx', replace_all: true });
    expect(files).toEqual({ a: 'xx.xx.xx' });
    expect(outcome).toMatchObject({ result: { replacements: 3 } });
  });

  it.each(['$&', '$1', '$$', "$'", '\\n', '.*'])('takes %s literally, as what is replaced and as what replaces it', async (text) => {
    expect((await run(EDIT_FILE, { a: `<x>` }, { path: 'a', old_text: 'x', new_text: text })).files).toEqual({ a: `<${text}>` });
    expect((await run(EDIT_FILE, { a: `<${text}>` }, { path: 'a', old_text: text, new_text: 'x' })).files).toEqual({ a: '<x>' });
  });

  it.each([
    ['text that is not there', { path: 'a', old_text: 'three', new_text: '' }, 'no_match', /does not occur in 'a'$/],
    ['text that is there twice', { path: 'a', old_text: 'one', new_text: '' }, 'several_matches', /more than once.*replace_all/],
    ['text that overlaps itself', { path: 'b', old_text: 'aa', new_text: '' }, 'several_matches', /more than once/],
    ['line ends of the other kind', { path: 'crlf', old_text: 'one\ntwo', new_text: '' }, 'no_match', /\\r\\n/],
    ['no change', { path: 'a', old_text: 'two', new_text: 'two' }, 'no_change', /same/],
    ['a file that is not there', { path: 'c', old_text: 'x', new_text: '' }, 'not_found', /'c'/],
    ['a binary file', { path: 'bin', old_text: 'x', new_text: '' }, 'not_text', /cannot be edited/],
    ['a link', { path: 'link', old_text: 'x', new_text: '' }, 'is_symlink', /'a'/],
    ['a directory', { path: 'dir', old_text: 'x', new_text: '' }, 'is_directory', /directory/],
    ['half a surrogate pair', { path: 'a', old_text: 'two', new_text: '\udc00' }, 'invalid_arguments', /well-formed/],
    ['a path outside', { path: '..', old_text: 'x', new_text: '' }, 'invalid_path', /arguments\.path/],
  ])('fails for %s and changes nothing', async (_name, args, code, message) => {
    const before = {
      a: 'one two one',
      b: 'aaa',
      crlf: 'one\r\ntwo',
      bin: { content: Uint8Array.of(120, 0) },
      link: { content: 'a', mode: '120000' as const },
      'dir/x': 'x',
    };
    const { outcome, files } = await run(EDIT_FILE, before, args);
    expect(outcome).toMatchObject({ status: 'failed', error: { code, message: expect.stringMatching(message) }, dispatched: false });
    expect(files).toEqual((await run(EDIT_FILE, before, { path: 'nowhere', old_text: 'x', new_text: 'y' })).files);
  });

  it('refuses a small call that asks for a huge file, without making it', async () => {
    const args = { path: 'a', old_text: 'x', new_text: 'y'.repeat(500_000), replace_all: true };
    const { outcome } = await run(EDIT_FILE, { a: 'x'.repeat(500_000) }, args);
    expect(outcome).toMatchObject({
      status: 'failed',
      error: { code: 'too_large', message: expect.stringContaining('250000000000 bytes') },
    });
  });
});
