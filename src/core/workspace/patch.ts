import { diffLines, type LineDiffBudget, type LineRun } from './line-diff.ts';
import type { ContentPair } from './renames.ts';
import { splitLines } from './text.ts';
import type { FileMode } from './tree.ts';

/** One side of a file's patch. `text` is null for a binary file. Where both sides hold the same bytes, both texts may be empty. */
export interface PatchSide {
  readonly path: string;
  readonly mode: FileMode;
  readonly text: string | null;
}

export interface WrittenPatch {
  readonly text: string;
  readonly additions: number;
  readonly deletions: number;
}

/** Unchanged lines around a change, as git shows them. */
const CONTEXT_LINES = 3;

/**
 * The patch of one file in git's extended unified form, which `git apply` takes (binary contents excepted: they are named, not shown).
 * `similarity`, in per cent, marks a rename. There are no `index` lines: git's object names are not our digests.
 */
export function formatPatch(sides: ContentPair<PatchSide>, similarity: number | null, budget: LineDiffBudget): WrittenPatch {
  const { before, after } = sides;
  // git writes a change of the type as the end of one file and the start of another.
  if (before !== null && after !== null && (before.mode === '120000') !== (after.mode === '120000')) {
    const ended = formatPatch({ before, after: null }, null, budget);
    const started = formatPatch({ before: null, after }, null, budget);
    return { text: ended.text + started.text, additions: started.additions, deletions: ended.deletions };
  }
  const oldPath = before?.path ?? after?.path ?? '';
  const newPath = after?.path ?? oldPath;
  const oldName = before === null ? '/dev/null' : quote(`a/${oldPath}`);
  const newName = after === null ? '/dev/null' : quote(`b/${newPath}`);
  const lines = [`diff --git ${quote(`a/${oldPath}`)} ${quote(`b/${newPath}`)}\n`];
  if (before === null && after !== null) lines.push(`new file mode ${after.mode}\n`);
  else if (after === null && before !== null) lines.push(`deleted file mode ${before.mode}\n`);
  else if (before !== null && after !== null && before.mode !== after.mode)
    lines.push(`old mode ${before.mode}\n`, `new mode ${after.mode}\n`);
  if (similarity !== null)
    lines.push(`similarity index ${similarity}%\n`, `rename from ${quote(oldPath)}\n`, `rename to ${quote(newPath)}\n`);

  if (before?.text === null || after?.text === null) {
    lines.push(`Binary files ${oldName} and ${newName} differ\n`);
    return { text: lines.join(''), additions: 0, deletions: 0 };
  }
  const runs = diffLines(splitLines(before?.text ?? ''), splitLines(after?.text ?? ''), budget);
  const additions = countOf(runs, '+');
  const deletions = countOf(runs, '-');
  if (additions + deletions > 0) lines.push(`--- ${markEnd(oldName)}\n`, `+++ ${markEnd(newName)}\n`, hunksOf(runs));
  return { text: lines.join(''), additions, deletions };
}

interface Line {
  readonly kind: LineRun['kind'];
  readonly text: string;
}

/** The hunks: each change with its context, changes closer than twice the context in one hunk. */
function hunksOf(runs: readonly LineRun[]): string {
  const output: string[] = [];
  let hunk: Line[] = [];
  let oldStart = 1;
  let newStart = 1;
  let oldLine = 1;
  let newLine = 1;
  const close = () => {
    if (hunk.length > 0) output.push(headerOf(hunk, oldStart, newStart) + hunk.map(formatLine).join(''));
    hunk = [];
  };
  for (const [index, run] of runs.entries()) {
    if (run.kind === ' ') {
      const isLast = index === runs.length - 1;
      const joins = hunk.length > 0 && !isLast && run.lines.length <= 2 * CONTEXT_LINES;
      const after = hunk.length > 0 ? run.lines.slice(0, joins ? run.lines.length : CONTEXT_LINES) : [];
      for (const text of after) hunk.push({ kind: ' ', text });
      oldLine += run.lines.length;
      newLine += run.lines.length;
      if (joins) continue;
      close();
      const lead = isLast ? [] : run.lines.slice(-CONTEXT_LINES);
      oldStart = oldLine - lead.length;
      newStart = newLine - lead.length;
      hunk = lead.map((text): Line => ({ kind: ' ', text }));
      continue;
    }
    for (const text of run.lines) hunk.push({ kind: run.kind, text });
    if (run.kind === '-') oldLine += run.lines.length;
    else newLine += run.lines.length;
  }
  close();
  return output.join('');
}

function headerOf(hunk: readonly Line[], oldStart: number, newStart: number): string {
  const oldCount = hunk.filter((line) => line.kind !== '+').length;
  const newCount = hunk.filter((line) => line.kind !== '-').length;
  return `@@ -${rangeOf(oldStart, oldCount)} +${rangeOf(newStart, newCount)} @@\n`;
}

/** A range without lines is named by the line before it. */
function rangeOf(start: number, count: number): string {
  if (count === 0) return `${start - 1},0`;
  return count === 1 ? `${start}` : `${start},${count}`;
}

function formatLine({ kind, text }: Line): string {
  return text.endsWith('\n') ? kind + text : `${kind}${text}\n\\ No newline at end of file\n`;
}

function countOf(runs: readonly LineRun[], kind: LineRun['kind']): number {
  return runs.reduce((count, run) => (run.kind === kind ? count + run.lines.length : count), 0);
}

/** A quotation mark is the one character of a valid path that git escapes (with `core.quotePath=false`). */
function quote(name: string): string {
  return name.includes('"') ? `"${name.replaceAll('"', '\\"')}"` : name;
}

/** A tab ends a name with spaces, so that what follows is not read as part of it. */
function markEnd(name: string): string {
  return name.includes(' ') && !name.startsWith('"') ? `${name}\t` : name;
}
