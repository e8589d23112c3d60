import type { OutsideCommand } from '../../app/ports.ts';
import type { PushBook, PushTarget } from './push-book.ts';

/** Tells a part of the live plans behind an id; `next` is where the next part begins, null at the end. */
export type TellPlans = (
  of: PushTarget,
  afterPlanId: string,
  command: OutsideCommand,
) => Promise<{ readonly unreached: readonly string[]; readonly next: string | null }>;

/**
 * Does one part of what is due: tells the plans the newest word, whatever the duty began with. Never throws; what fails is done again after a
 * pause. One part per alarm, since an alarm may call only so many objects.
 */
export async function tellWhatIsDue(
  push: PushBook,
  command: () => OutsideCommand | null,
  tell: TellPlans,
  { nowMs, report }: { readonly nowMs: () => number; readonly report: (problem: string, cause: unknown) => void },
): Promise<void> {
  const due = push.current();
  if (due === null || due.dueMs > nowMs()) return;
  const word = command();
  if (word === null) {
    push.end(due.version);
    return;
  }
  try {
    const { unreached, next } = await tell({ org: due.org, sessionId: due.sessionId }, due.cursor, word);
    push.advance(due, { cursor: next, missed: unreached.length }, nowMs());
  } catch (cause) {
    report('the plans below could not be told; it is done again', cause);
    push.postpone(due, nowMs());
  }
}
