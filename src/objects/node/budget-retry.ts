import type { SwitchHost } from './halt-switch.ts';
import { PushBook, type PushTarget } from './push-book.ts';
import { type TellPlans, tellWhatIsDue } from './tell-plans.ts';

/**
 * The duty of a session or an org to tell its live plans that there may be money again: a cap was raised or removed, or a day or month
 * began that has a cap of its own. Plans that wait for it decide again; to all others it says nothing.
 *
 * Whoever raised a cap tells them at once; this makes sure that those he did not reach hear of it, and repeats it for the others.
 */
export class BudgetRetry {
  private readonly push: PushBook;
  private readonly host: SwitchHost;

  constructor(storage: DurableObjectStorage, host: SwitchHost) {
    this.push = new PushBook(storage.sql, 'budget');
    this.host = host;
  }

  /** In the same turn as what it follows from, so that both are durable or neither. */
  begin(target: PushTarget): void {
    const nowMs = this.host.nowMs();
    this.push.begin(target, nowMs, nowMs);
    this.host.rearm();
  }

  wakeAtMs(): number | null {
    return this.push.dueMs();
  }

  wake(tell: TellPlans): Promise<void> {
    return tellWhatIsDue(this.push, () => ({ type: 'retry_budget' }), tell, this.host);
  }
}
