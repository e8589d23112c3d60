import { diffArrays } from 'diff';

/** A run of lines that both sides have (` `), or only the old (`-`) or the new side (`+`). */
export interface LineRun {
  readonly kind: ' ' | '-' | '+';
  readonly lines: readonly string[];
}

/** Most lines removed and added together for which the shortest diff of one file is looked for. The search is quadratic in it. */
const MAX_EDIT_LENGTH = 1_000;

/** Work for all files of one diff, in steps of that search. */
const MAX_TOTAL_STEPS = 4_000_000;

/** What is left of the work that one diff of trees may take. Made new for each. */
export class LineDiffBudget {
  #steps = MAX_TOTAL_STEPS;

  /** The edit length that may still be tried. */
  get editLength(): number {
    return Math.min(MAX_EDIT_LENGTH, Math.floor(Math.sqrt(this.#steps)));
  }

  spend(editLength: number): void {
    this.#steps = Math.max(0, this.#steps - editLength * editLength);
  }
}

/**
 * The runs that turn the old lines into the new ones. The shortest such list while the budget allows, otherwise (no clock is asked)
 * all that lies between the common start and the common end is replaced as one block.
 */
export function diffLines(before: readonly string[], after: readonly string[], budget: LineDiffBudget): readonly LineRun[] {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1;
  const removed = before.slice(head, before.length - tail);
  const added = after.slice(head, after.length - tail);
  const runs: LineRun[] = [
    { kind: ' ', lines: before.slice(0, head) },
    ...diffMiddle(removed, added, budget),
    { kind: ' ', lines: before.slice(before.length - tail) },
  ];
  return runs.filter((run) => run.lines.length > 0);
}

function diffMiddle(removed: readonly string[], added: readonly string[], budget: LineDiffBudget): readonly LineRun[] {
  const block: LineRun[] = [
    { kind: '-', lines: removed },
    { kind: '+', lines: added },
  ];
  if (removed.length === 0 || added.length === 0) return block;
  const maxEditLength = budget.editLength;
  // The difference of the lengths is the least there is to edit: no need to search in vain.
  const shortest =
    Math.abs(removed.length - added.length) <= maxEditLength ? diffArrays([...removed], [...added], { maxEditLength }) : undefined;
  if (shortest === undefined) {
    budget.spend(maxEditLength);
    return block;
  }
  const runs = shortest.map((change): LineRun => ({ kind: change.removed ? '-' : change.added ? '+' : ' ', lines: change.value }));
  budget.spend(runs.reduce((edits, run) => (run.kind === ' ' ? edits : edits + run.lines.length), 0));
  return runs;
}
