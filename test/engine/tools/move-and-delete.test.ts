import { describe, expect, it } from 'vitest';
import { DELETE_FILE } from '../../../src/engine/tools/delete-file.ts';
import { MOVE_FILE } from '../../../src/engine/tools/move-file.ts';
import { run } from './workspace-run.ts';

const BEFORE = {
  'dir/a': 'x',
  run: { content: 'r', mode: '100755' as const },
  'dir/up': { content: '../run', mode: '120000' as const },
};
const SHOWN = { 'dir/a': 'x', run: '*r', 'dir/up': '→ ../run' };

describe('delete_file', () => {
  it('deletes a file, and of a link only the link', async () => {
    const { 'dir/a': _a, ...withoutFile } = SHOWN;
    expect((await run(DELETE_FILE, BEFORE, { path: 'dir/a' })).files).toEqual(withoutFile);
    const { 'dir/up': _up, ...withoutLink } = SHOWN;
    expect((await run(DELETE_FILE, BEFORE, { path: 'dir/up' })).files).toEqual(withoutLink);
  });

  it.each([
    ['a file that is not there', { path: 'b' }, 'not_found'],
    ['a directory', { path: 'dir' }, 'is_directory'],
    ['a path outside', { path: '../run' }, 'invalid_path'],
  ])('fails for %s and changes nothing', async (_name, args, code) => {
    const { outcome, files } = await run(DELETE_FILE, BEFORE, args);
    expect(outcome).toMatchObject({ status: 'failed', error: { code }, dispatched: false });
    expect(files).toEqual(SHOWN);
  });
});

describe('move_file', () => {
  it('moves a file with its mode, making directories', async () => {
    const { run: _run, ...rest } = SHOWN;
    expect((await run(MOVE_FILE, BEFORE, { from: 'run', to: 'bin/deep/run' })).files).toEqual({ ...rest, 'bin/deep/run': '*r' });
  });

  it('replaces what is there only when told to', async () => {
    const { outcome, files } = await run(MOVE_FILE, BEFORE, { from: 'run', to: 'dir/a' });
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'already_exists', message: expect.stringContaining('overwrite') } });
    expect(files).toEqual(SHOWN);
    const { run: _run, ...rest } = SHOWN;
    expect((await run(MOVE_FILE, BEFORE, { from: 'run', to: 'dir/a', overwrite: true })).files).toEqual({ ...rest, 'dir/a': '*r' });
  });

  it('moves a link where its target stays inside, and refuses where it would not', async () => {
    const { 'dir/up': _up, ...rest } = SHOWN;
    expect((await run(MOVE_FILE, BEFORE, { from: 'dir/up', to: 'other/up' })).files).toEqual({ ...rest, 'other/up': '→ ../run' });
    const { outcome, files } = await run(MOVE_FILE, BEFORE, { from: 'dir/up', to: 'up' });
    expect(outcome).toMatchObject({
      status: 'failed',
      error: { code: 'invalid_path', message: expect.stringContaining('inside the tree') },
    });
    expect(files).toEqual(SHOWN);
  });

  it.each([
    ['a file that is not there', { from: 'b', to: 'c' }, 'not_found', /'b'/],
    ['a directory', { from: 'dir', to: 'c' }, 'is_directory', /'dir'/],
    ['a directory as its new path', { from: 'run', to: 'dir' }, 'is_directory', /'dir'/],
    ['a place below a file', { from: 'dir/a', to: 'run/a' }, 'not_a_directory', /'run'/],
    ['a place below itself', { from: 'run', to: 'run/run' }, 'not_a_directory', /'run'/],
    ['its own path', { from: 'run', to: 'run', overwrite: true }, 'no_change', /already/],
    ['a source outside', { from: '../x', to: 'c' }, 'invalid_path', /arguments\.from/],
    ['a target outside', { from: 'run', to: '/tmp/run' }, 'invalid_path', /arguments\.to/],
  ])('fails for %s and changes nothing', async (_name, args, code, message) => {
    const { outcome, files } = await run(MOVE_FILE, BEFORE, args);
    expect(outcome).toMatchObject({ status: 'failed', error: { code, message: expect.stringMatching(message) }, dispatched: false });
    expect(files).toEqual(SHOWN);
  });
});
