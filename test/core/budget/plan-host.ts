import {
  askAnswered,
  authorize,
  freedHeard,
  leaseClosed,
  ledgerChanged,
  prefetch,
  recalled,
  returnLease,
  sweepLease,
} from '../../../src/core/budget/lease.ts';
import { type LeaseOutput, type LeaseState, type LeaseStep, type LedgerView, openLease } from '../../../src/core/budget/lease-state.ts';
import {
  type AskAnswer,
  type BudgetRefusal,
  type LeaseRow,
  type Recall,
  type RecallReply,
  TIMEOUT_MS,
} from '../../../src/core/budget/protocol.ts';
import type { Holder, NodeHost } from './node-host.ts';
import type { World } from './world.ts';

export type Outcome =
  | { readonly kind: 'authorised'; readonly id: string }
  | { readonly kind: 'refused'; readonly level: 'plan' | BudgetRefusal['level'] }
  | { readonly kind: 'busy' }
  /** The plan died with the call. */
  | { readonly kind: 'lost' };

/** A plan object: its ledger and lease rows survive; who waits for money does not. */
export class PlanHost implements Holder {
  readonly id: string;
  readonly session: NodeHost;
  incarnation = 0;
  lease: LeaseState;
  readonly rows = new Map<string, LeaseRow>();
  readonly reservations = new Map<string, { readonly day: string; readonly amount: number }>();
  /** By day: `total` is what was charged, `covered` each charge up to its reservation. */
  readonly settled = new Map<string, { total: number; covered: number }>();
  ended = false;
  private readonly world: World;
  /** The cap that comes with each of its asks. */
  readonly brings: number | null;
  private readonly capMicroUsd: number;
  private waiting = new Map<string, { readonly need: number; readonly sinceMs: number; readonly done: (outcome: Outcome) => void }>();
  private nextTicket = 0;

  constructor(world: World, id: string, session: NodeHost, capMicroUsd: number, brings: number | null = null) {
    this.world = world;
    this.id = id;
    this.session = session;
    this.capMicroUsd = capMicroUsd;
    this.brings = brings;
    this.lease = openLease([], this.ledger(), brings);
    session.children.set(id, this);
  }

  authorize(need: number, done: (outcome: Outcome) => void): void {
    if (this.ended) {
      done({ kind: 'lost' });
      return;
    }
    // Its own cap first, as the guards have it; the levels above only hear of what passes here.
    if (this.used() + need > this.capMicroUsd) {
      done({ kind: 'refused', level: 'plan' });
      return;
    }
    this.nextTicket += 1;
    const id = `${this.id}/${this.nextTicket}`;
    this.step(
      () => {
        this.waiting.set(id, { need, sinceMs: this.world.nowMs, done });
        return authorize(this.lease, { id, needMicroUsd: need }, this.world.nowMs);
      },
      () => done({ kind: 'lost' }),
    );
  }

  prefetch(want: number): void {
    this.step(() => prefetch(this.lease, want, this.world.nowMs));
  }

  /** Charges an effect: `charged` may be less than was reserved, or more. */
  settle(id: string, charged: number): void {
    const held = this.reservations.get(id);
    if (held === undefined) return;
    this.reservations.delete(id);
    const day = this.settled.get(held.day) ?? { total: 0, covered: 0 };
    this.settled.set(held.day, { total: day.total + charged, covered: day.covered + Math.min(charged, held.amount) });
    this.world.freed(Math.max(0, held.amount - charged));
    this.step(() => ledgerChanged(this.lease, this.ledger(), [], this.world.nowMs));
  }

  /** A cost that comes when nothing is reserved for it any more. */
  chargeLate(day: string, charged: number): void {
    const before = this.settled.get(day) ?? { total: 0, covered: 0 };
    this.settled.set(day, { ...before, total: before.total + charged });
    this.step(() => ledgerChanged(this.lease, this.ledger(), [], this.world.nowMs));
  }

  rest(): void {
    this.step(() => returnLease(this.lease, this.world.nowMs));
  }

  end(): void {
    this.ended = true;
    this.step(() => ledgerChanged(this.lease, this.ledger(), [], this.world.nowMs));
  }

  sweep(): void {
    this.step(() => sweepLease(this.lease, this.world.nowMs));
  }

  deliverRecall(_call: string, recall: Recall, respond: (reply: RecallReply) => void): void {
    this.reply = respond;
    this.step(() => recalled(this.lease, recall, this.world.nowMs));
    this.reply = null;
  }

  crash(): void {
    this.incarnation += 1;
    const lost = this.waiting;
    this.waiting = new Map();
    this.lease = openLease(this.rows.values(), this.ledger(), this.brings);
    this.world.crashes += 1;
    for (const { done } of lost.values()) done({ kind: 'lost' });
  }

  /** Charged and reserved, overruns included. */
  used(): number {
    let sum = 0;
    for (const { total } of this.settled.values()) sum += total;
    for (const { amount } of this.reservations.values()) sum += amount;
    return sum;
  }

  budget(): number {
    return this.capMicroUsd;
  }

  waitingSince(): readonly number[] {
    return [...this.waiting.values()].map((each) => each.sinceMs);
  }

  private reply: ((reply: RecallReply) => void) | null = null;

  /** Commit, then act on the outputs in order; what the lease calls ready is decided in the same turn. */
  private step(transition: () => LeaseStep, onCrash: () => void = () => {}): void {
    const { network, random } = this.world;
    if (random.chance(network.faults.crashBefore)) {
      this.crash();
      onCrash();
      return;
    }
    const { lease, changes, outputs } = transition();
    for (const [day, row] of changes) this.rows.set(day, row);
    this.lease = lease;
    if (random.chance(network.faults.crashAfter)) {
      this.crash();
      this.world.check();
      return;
    }
    const { incarnation } = this;
    for (const output of outputs) if (this.incarnation === incarnation) this.act(output);
    this.world.check();
  }

  private act(output: LeaseOutput): void {
    const { network } = this.world;
    switch (output.kind) {
      case 'ready': {
        const waiting = this.waiting.get(output.ticket);
        this.waiting.delete(output.ticket);
        if (waiting === undefined) throw new Error(`${output.ticket} is ready and nobody waits for it`);
        const fits = !this.ended && this.used() + waiting.need <= this.capMicroUsd;
        if (fits) {
          this.world.judgeAuthorisation(this, output.day, waiting.need);
          this.reservations.set(output.ticket, { day: output.day, amount: waiting.need });
        } else this.world.freed(waiting.need);
        this.step(() => ledgerChanged(this.lease, this.ledger(), [output.ticket], this.world.nowMs));
        waiting.done(fits ? { kind: 'authorised', id: output.ticket } : { kind: 'refused', level: 'plan' });
        return;
      }
      case 'refused':
        this.finish(output.ticket, { kind: 'refused', level: output.refusal.level });
        return;
      case 'busy':
        this.finish(output.ticket, { kind: 'busy' });
        return;
      case 'recall_reply':
        this.reply?.(output.reply);
        return;
      case 'ask': {
        const ended = (answer: AskAnswer | null): void => this.step(() => askAnswered(this.lease, output.call, answer, this.world.nowMs));
        const name = `${this.id}#${this.incarnation}.${output.call}`;
        network.call<AskAnswer>(
          'plan.ask',
          this,
          this.session,
          TIMEOUT_MS.sessionAsk,
          (respond) => this.session.deliverAsk(name, this.id, output.ask, respond),
          ended,
          ended,
        );
        return;
      }
      case 'freed': {
        const ended = (acknowledged: true | null): void => {
          if (acknowledged !== null) this.step(() => freedHeard(this.lease, output.freed, this.world.nowMs));
        };
        network.call<true>(
          'plan.freed',
          this,
          this.session,
          TIMEOUT_MS.sessionAsk,
          (respond) => this.session.deliverFreed(this.id, output.freed, () => respond(true)),
          ended,
          ended,
        );
        return;
      }
      case 'close': {
        const ended = (acknowledged: true | null): void => {
          if (acknowledged !== null) this.step(() => leaseClosed(this.lease, output.close, this.world.nowMs));
        };
        network.call<true>(
          'plan.close',
          this,
          this.session,
          TIMEOUT_MS.sessionAsk,
          (respond) => this.session.deliverClose(this.id, output.close, () => respond(true)),
          ended,
          ended,
        );
      }
    }
  }

  private finish(ticket: string, outcome: Outcome): void {
    const waiting = this.waiting.get(ticket);
    this.waiting.delete(ticket);
    waiting?.done(outcome);
  }

  private ledger(): LedgerView {
    const days = new Map<string, { settledMicroUsd: number; reservedMicroUsd: number }>();
    for (const [day, { total }] of this.settled) days.set(day, { settledMicroUsd: total, reservedMicroUsd: 0 });
    for (const { day, amount } of this.reservations.values()) {
      const before = days.get(day) ?? { settledMicroUsd: 0, reservedMicroUsd: 0 };
      days.set(day, { ...before, reservedMicroUsd: before.reservedMicroUsd + amount });
    }
    return { days, ended: this.ended };
  }
}
