import type { ResultOf } from '../../api/operations.ts';
import { printable, type Style } from './style.ts';

/** The unified patch with its digest and counts below, so that both stay on screen. */
export function renderDiff(diff: ResultOf<'_cleveragents/plan/diff'>, style: Style): string {
  if (diff.files.length === 0) return style.paint('dim', 'no changes');
  const { files, additions, deletions } = diff.totals;
  const summary = `${files} ${files === 1 ? 'file' : 'files'} changed, ${style.paint('green', `+${additions}`)} ${style.paint('red', `-${deletions}`)}`;
  const cut = diff.truncated === true ? `\n${style.paint('yellow', 'The patch is cut; the digest covers all of it.')}` : '';
  return `${renderPatch(diff.patch, style)}\n${summary}${cut}\n${style.paint('dim', `digest ${diff.digest}`)}`;
}

/** Colours by line; plain output is the patch as it can be given to `git apply`. */
export function renderPatch(patch: string, style: Style): string {
  return printable(patch)
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => {
      if (/^(?:diff |index |new file|deleted file|rename |similarity |old mode|new mode|--- |\+\+\+ )/.test(line))
        return style.paint('bold', line);
      if (line.startsWith('@@')) return style.paint('cyan', line);
      if (line.startsWith('+')) return style.paint('green', line);
      if (line.startsWith('-')) return style.paint('red', line);
      return line;
    })
    .join('\n');
}
