import type { FloorWord, OrgPolicyStore, OutsideCommand } from '../../app/ports.ts';
import type { JsonObject } from '../../core/json.ts';
import type { OrgPolicy } from '../../core/org-policy.ts';
import type { ActorRef } from '../../core/plan/plan.ts';
import type { SwitchHost } from '../node/halt-switch.ts';
import { type TellPlans, tellWhatIsDue } from '../node/tell-plans.ts';
import { FloorBook } from './floor-book.ts';

/** The policy floor in an org's object: the book, and the plans that have to be bound by it. */
export class OrgFloor {
  private readonly storage: DurableObjectStorage;
  private readonly book: FloorBook;
  private readonly host: SwitchHost;

  constructor(storage: DurableObjectStorage, host: SwitchHost) {
    this.storage = storage;
    this.book = new FloorBook(storage.sql);
    this.host = host;
  }

  word(): FloorWord | null {
    return this.book.show();
  }

  announce(org: string, version: number): void {
    this.storage.transactionSync(() => this.book.announce({ org, sessionId: null }, version, this.host.nowMs()));
    this.host.rearm();
  }

  put(floor: FloorWord): void {
    this.storage.transactionSync(() => this.book.put(floor));
  }

  told(version: number): void {
    this.book.push.end(version);
  }

  wakeAtMs(): number | null {
    return this.book.push.dueMs();
  }

  /** What was announced and never came is looked for where the versions are kept. */
  async wake(tell: TellPlans, policies: Pick<OrgPolicyStore, 'latest'>): Promise<void> {
    const due = this.book.push.current();
    if (due === null || due.dueMs > this.host.nowMs()) return;
    try {
      if ((this.book.show()?.version ?? 0) < due.version) {
        const latest = await policies.latest(due.org);
        if (latest !== null) this.put({ version: latest.version, policy: latest.policy, by: keyOf(latest.savedBy) });
      }
    } catch (cause) {
      this.host.report('the floor could not be read; it is read again', cause);
      this.book.push.postpone(due, this.host.nowMs());
      return;
    }
    if (this.book.hasArrived(this.host.nowMs())) await tellWhatIsDue(this.book.push, () => commandOf(this.book.show()), tell, this.host);
    else this.book.push.postpone(due, this.host.nowMs());
  }
}

function commandOf(floor: FloorWord | null): OutsideCommand | null {
  return floor === null ? null : { type: 'apply_floor', by: floor.by, floor: floor.policy as JsonObject & OrgPolicy };
}

/** Setting the floor is for people. */
function keyOf(id: string): ActorRef {
  return { kind: 'human', id, name: id };
}
