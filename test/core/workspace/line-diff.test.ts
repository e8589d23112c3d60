import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { diffLines, LineDiffBudget, type LineRun } from '../../../src/core/workspace/line-diff.ts';

const side = (runs: readonly LineRun[], dropped: LineRun['kind']) => runs.filter((run) => run.kind !== dropped).flatMap((run) => run.lines);
const numbered = (count: number, prefix: string) => Array.from({ length: count }, (_, index) => `${prefix}${index}\n`);
const anyLines = fc.array(fc.constantFrom('a\n', 'b\n', 'c\n'), { maxLength: 30 });

describe('the diff of lines', () => {
  it('holds both sides whole', () => {
    fc.assert(
      fc.property(anyLines, anyLines, (before, after) => {
        const runs = diffLines(before, after, new LineDiffBudget());
        expect([side(runs, '+'), side(runs, '-')]).toEqual([before, after]);
      }),
    );
  });

  it('is the shortest while the budget allows', () => {
    const before = numbered(500, 'a');
    const after = before.flatMap((line, index) => (index % 10 === 0 ? [`new ${line}`] : [line]));
    const runs = diffLines(before, after, new LineDiffBudget());
    expect(
      side(runs, '+').length -
        side(
          runs.filter((run) => run.kind === ' '),
          '+',
        ).length,
    ).toBe(50);
  });

  it('uses up its budget on files that share nothing, and then is coarse but whole', () => {
    const budget = new LineDiffBudget();
    const first = budget.editLength;
    for (let file = 0; file < 10; file += 1) diffLines(numbered(2_000, 'a'), numbered(2_000, 'b'), budget);
    expect([first > 500, budget.editLength]).toEqual([true, 0]);
    const runs = diffLines(['x\n', 'one\n', 'two\n', 'y\n'], ['x\n', '1\n', 'two\n', '2\n', 'y\n'], budget);
    expect(runs).toEqual([
      { kind: ' ', lines: ['x\n'] },
      { kind: '-', lines: ['one\n', 'two\n'] },
      { kind: '+', lines: ['1\n', 'two\n', '2\n'] },
      { kind: ' ', lines: ['y\n'] },
    ]);
  });
});
