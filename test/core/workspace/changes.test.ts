import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  applyChanges,
  type Change,
  changesBetween,
  changesFromJson,
  changesToJson,
  findChangedEntry,
  NO_CHANGES,
  normaliseChanges,
  withChange,
} from '../../../src/core/workspace/changes.ts';
import { anyChanges, anyFiles, entryOf, treeOf } from './trees.ts';

const write = (content: string): Change => {
  const { mode, blob, sizeBytes } = entryOf('x', content);
  return { kind: 'write', mode, blob, sizeBytes };
};

describe('changes over a tree', () => {
  it('have the same effect after they are normalised, and normalising once is enough', () => {
    let applied = 0;
    fc.assert(
      fc.property(anyFiles, anyChanges, (files, changes) => {
        const base = treeOf(files);
        const normal = normaliseChanges(base, changes);
        const [direct, after] = [applyChanges(base, changes), applyChanges(base, normal)];
        expect(after).toEqual(direct);
        expect([...normaliseChanges(base, normal)]).toEqual([...normal]);
        if (!direct.ok) return;
        applied += 1;
        expect([...changesBetween(base, direct.value)]).toEqual([...normal]);
      }),
    );
    expect(applied).toBeGreaterThan(10);
  });

  it('lead from any tree to any other', () => {
    fc.assert(
      fc.property(anyFiles, anyFiles, (before, after) => {
        const [base, current] = [treeOf(before), treeOf(after)];
        const result = applyChanges(base, changesBetween(base, current));
        if (!result.ok) throw new Error(result.error.message);
        expect([...result.value.entries]).toEqual([...current.entries]);
        expect(result.value.totalBytes).toBe(current.totalBytes);
      }),
    );
  });

  it('show an entry as the tree with the changes would', () => {
    fc.assert(
      fc.property(anyFiles, anyChanges, (files, changes) => {
        const base = treeOf(files);
        const result = applyChanges(base, changes);
        if (!result.ok) return;
        for (const path of [...Object.keys(files), ...changes.keys()]) {
          expect(findChangedEntry(base, changes, path)).toEqual(result.value.entries.get(path) ?? null);
        }
      }),
    );
  });

  it('come back from their JSON form, through text', () => {
    fc.assert(
      fc.property(anyFiles, anyChanges, (files, changes) => {
        const normal = normaliseChanges(treeOf(files), changes);
        const read = changesFromJson(JSON.parse(JSON.stringify(changesToJson(normal))));
        if (!read.ok) throw new Error(read.error.message);
        expect([...read.value]).toEqual([...normal]);
      }),
    );
  });

  it('keep a change of the mode alone, and drop what writes the same again', () => {
    const base = treeOf({ a: 'x', b: 'y' });
    const same = write('x');
    const executable: Change = same.kind === 'write' ? { ...same, mode: '100755' } : same;
    expect([
      ...normaliseChanges(
        base,
        new Map([
          ['a', executable],
          ['b', write('y')],
          ['c', { kind: 'delete' as const }],
        ]),
      ),
    ]).toEqual([['a', executable]]);
  });

  it('keep the last word on a path, in the order of paths', () => {
    const changes = withChange(withChange(withChange(NO_CHANGES, 'b', write('1')), 'a', write('2')), 'b', { kind: 'delete' });
    expect([...changes]).toEqual([
      ['a', write('2')],
      ['b', { kind: 'delete' }],
    ]);
    expect(NO_CHANGES.size).toBe(0);
  });

  it('may put a directory where a file was, when the file goes', () => {
    const base = treeOf({ a: 'x' });
    expect(applyChanges(base, new Map([['a/b', write('y')]]))).toMatchObject({
      error: { kind: 'invalid', issues: [{ field: 'files["a/b"]' }] },
    });
    expect(
      applyChanges(
        base,
        new Map<string, Change>([
          ['a/b', write('y')],
          ['a', { kind: 'delete' }],
        ]),
      ).ok,
    ).toBe(true);
  });

  it('are refused where they write to a place that is no path', () => {
    expect(applyChanges(treeOf({}), new Map([['../a', write('y')]]))).toMatchObject({ error: { issues: [{ field: 'changes["../a"]' }] } });
  });

  it.each([
    ['no array', { a: 1 }],
    ['a row that is none', [7]],
    ['an unknown kind', [['rename', 'a']]],
    ['a delete with more', [['delete', 'a', 1]]],
    ['a path outside', [['delete', '../a']]],
    ['a write without its size', [['write', 'a', '100644', 'a'.repeat(64)]]],
    ['a write with a wrong mode', [['write', 'a', '1', 'a'.repeat(64), 1]]],
    ['a write with a wrong digest', [['write', 'a', '100644', 'xyz', 1]]],
    [
      'a path twice',
      [
        ['delete', 'a'],
        ['delete', 'a'],
      ],
    ],
  ])('are not read from %s', (_name, value) => {
    expect(changesFromJson(value)).toMatchObject({ ok: false, error: { kind: 'invalid' } });
  });
});
