import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_GLOB_LENGTH, matchesPathGlob } from '../../../src/core/workspace/path-glob.ts';
import { anyPath } from './trees.ts';

describe('a path glob', () => {
  it.each([
    ['*.ts', 'src/core/path.ts'],
    ['*.ts', 'a.ts'],
    ['src', 'src/core/path.ts'],
    ['src/', 'src/core/path.ts'],
    ['core', 'src/core/path.ts'],
    ['src/*/path.ts', 'src/core/path.ts'],
    ['src/**/path.ts', 'src/core/deep/path.ts'],
    ['src/**/path.ts', 'src/path.ts'],
    ['**/path.ts', 'path.ts'],
    ['**', 'anything/at/all'],
    ['/README.md', 'README.md'],
    ['a?c', 'a😀c'],
    ['.git', '.git/config'],
    ['.git', 'vendor/.git/config'],
    ['a+(b)[c]', 'a+(b)[c]'],
  ])('%s matches %s', (glob, path) => {
    expect(matchesPathGlob(glob, path)).toBe(true);
  });

  it.each([
    ['*.ts', 'a.tsx'],
    ['*.ts', 'ats'],
    ['src/*', 'lib/src/a'],
    ['/README.md', 'docs/README.md'],
    ['src/', 'src'],
    ['src/*.ts', 'src/core/path.ts.d/x.js'],
    ['a?c', 'ac'],
    ['a?c', 'a/c'],
    ['', 'a'],
    ['/', 'a'],
    ['SRC', 'src/a'],
    ['a'.repeat(MAX_GLOB_LENGTH + 1), 'a'.repeat(MAX_GLOB_LENGTH + 1)],
  ])('%s does not match %s', (glob, path) => {
    expect(matchesPathGlob(glob, path)).toBe(false);
  });

  it('matches every path by itself and by `**`', () => {
    fc.assert(
      fc.property(anyPath, (path) => {
        expect([matchesPathGlob(`/${path}`, path), matchesPathGlob('**', path)]).toEqual([true, true]);
      }),
    );
  });

  it('takes little time for the globs that break regular expressions', () => {
    const path = `${'a'.repeat(250)}/`.repeat(4).slice(0, -1);
    const started = performance.now();
    expect(matchesPathGlob(`${'*a'.repeat(200)}b`, path)).toBe(false);
    expect(matchesPathGlob(`${'**/*/'.repeat(90)}b`, path)).toBe(false);
    expect(performance.now() - started).toBeLessThan(500);
  });
});
