import type { Random, Schedule } from './schedule.ts';

/** What goes wrong, as probabilities per message or per step. */
export interface Faults {
  readonly loss: number;
  readonly duplicate: number;
  /** A message takes up to `slowMs` instead of up to `delayMs`, so that later ones overtake it. */
  readonly slow: number;
  readonly delayMs: number;
  readonly slowMs: number;
  /** The receiver dies before it commits what a message asked of it. */
  readonly crashBefore: number;
  /** The receiver dies between its commit and what it would have sent. */
  readonly crashAfter: number;
}

export const NO_FAULTS: Faults = { loss: 0, duplicate: 0, slow: 0, delayMs: 20, slowMs: 20, crashBefore: 0, crashAfter: 0 };

/** Whoever can be called. What it had not stored is gone with its incarnation. */
export interface Party {
  readonly id: string;
  incarnation: number;
}

/** Messages between parties: lost, doubled, late, out of order; a call has a reply or, after its timeout, none. */
export class Network {
  faults: Faults;
  sent = 0;
  readonly counts = new Map<string, number>();
  private readonly schedule: Schedule;
  private readonly random: Random;

  constructor(schedule: Schedule, random: Random, faults: Faults) {
    this.schedule = schedule;
    this.random = random;
    this.faults = faults;
  }

  post(kind: string, deliver: () => void): void {
    this.sent += 1;
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
    const { loss, duplicate, slow, delayMs, slowMs } = this.faults;
    const copies = this.random.chance(loss) ? 0 : this.random.chance(duplicate) ? 2 : 1;
    for (let copy = 0; copy < copies; copy += 1) {
      this.schedule.after(this.random.chance(slow) ? this.random.int(delayMs, slowMs) : this.random.int(1, delayMs), deliver);
    }
  }

  /**
   * A call with a reply. `done` runs once with the reply, or with null after the timeout; `late` runs for every reply that comes after
   * that. Neither runs once the caller has died; a callee that died does not reply.
   */
  call<T>(
    kind: string,
    from: Party,
    to: Party,
    timeoutMs: number,
    deliver: (respond: (reply: T) => void) => void,
    done: (reply: T | null) => void,
    late: (reply: T) => void,
  ): void {
    const caller = from.incarnation;
    let isOpen = true;
    const end = (reply: T | null): void => {
      if (from.incarnation !== caller) return;
      if (isOpen) {
        isOpen = false;
        done(reply);
      } else if (reply !== null) late(reply);
    };
    this.post(kind, () => {
      const callee = to.incarnation;
      deliver((reply) => {
        if (to.incarnation === callee) this.post(`${kind} reply`, () => end(reply));
      });
    });
    this.schedule.after(timeoutMs, () => {
      if (isOpen) end(null);
    });
  }
}
