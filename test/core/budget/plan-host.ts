import {
  askAnswered,
  authorize,
  freedHeard,
  leaseClosed,
  ledgerChanged,
  prefetch,
  recalled,
  reportLease,
  returnLease,
  sweepLease,
} from '../../../src/core/budget/lease.ts';
import {
  inOrder,
  type LeaseOutput,
  type LeaseState,
  type LeaseStep,
  type LedgerView,
  leaseFreeMicroUsd,
  openLease,
} from '../../../src/core/budget/lease-state.ts';
import {
  type AskAnswer,
  type BudgetRefusal,
  type LeaseRow,
  type Recall,
  type RecallReply,
  TELL_MS,
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

/** What a plan holds from one of the nodes above it: the rows survive, the state does not. */
export interface HeldLease {
  readonly node: NodeHost;
  /** The cap that comes with each ask; null: none. */
  readonly brings: number | null;
  /** False: nothing is held from the node; it is told what was charged. */
  readonly covers: boolean;
  readonly rows: Map<string, LeaseRow>;
  state: LeaseState;
}

/** An authorisation that is being decided. */
interface Pending {
  readonly id: string;
  readonly need: number;
  readonly sinceMs: number;
  readonly done: (outcome: Outcome) => void;
}

type TicketOutcome = Extract<LeaseOutput, { readonly kind: 'ready' | 'refused' | 'busy' }>;

/** As a plan object has it. */
const MAX_ROUNDS = 16;

/**
 * A plan object with a lease from each node above it: a session, a profile, or both. Its ledger and lease rows survive, and are committed
 * together; who waits for money does not. It decides as a plan object does: from what is free in every lease at that moment, and where
 * that is not enough it puts money aside in one lease after the other, without holding anything but that while it waits.
 */
export class PlanHost {
  readonly id: string;
  readonly leases: readonly HeldLease[];
  incarnation = 0;
  readonly reservations = new Map<string, { readonly day: string; readonly amount: number }>();
  /** By day: `total` is what was charged, `covered` each charge up to its reservation. */
  readonly settled = new Map<string, { total: number; covered: number }>();
  ended = false;
  private readonly world: World;
  private readonly capMicroUsd: number;
  private pending = new Map<string, Pending>();
  private tickets = new Map<string, (outcome: TicketOutcome) => void>();
  private nextId = 0;
  private toldMs = 0;

  constructor(
    world: World,
    id: string,
    above: readonly { readonly node: NodeHost; readonly brings: number | null; readonly covers?: boolean }[],
    capMicroUsd: number,
  ) {
    this.world = world;
    this.id = id;
    this.capMicroUsd = capMicroUsd;
    this.leases = above.map(({ node, brings, covers = true }) => {
      const state = openLease([], this.ledger(), { capMicroUsd: brings, covers });
      return { node, brings, covers, rows: new Map(), state };
    });
    for (const lease of this.leases) lease.node.children.set(id, this.holderOf(lease));
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
    const pending = { id: this.newId(), need, sinceMs: this.world.nowMs, done };
    this.pending.set(pending.id, pending);
    this.decide(pending, [], null, 1);
  }

  prefetch(want: number): void {
    for (const lease of this.held) this.step(lease, (state) => prefetch(state, want, this.world.nowMs));
  }

  /** Charges an effect: `charged` may be less than was reserved, or more. */
  settle(id: string, charged: number): void {
    const held = this.reservations.get(id);
    if (held === undefined) return;
    this.reservations.delete(id);
    const day = this.settled.get(held.day) ?? { total: 0, covered: 0 };
    this.settled.set(held.day, { total: day.total + charged, covered: day.covered + Math.min(charged, held.amount) });
    this.world.freed(Math.max(0, held.amount - charged));
    this.follow([]);
  }

  /** A cost that comes when nothing is reserved for it any more. */
  chargeLate(day: string, charged: number): void {
    const before = this.settled.get(day) ?? { total: 0, covered: 0 };
    this.settled.set(day, { ...before, total: before.total + charged });
    this.follow([]);
  }

  rest(): void {
    for (const lease of this.leases) this.step(lease, (state) => returnLease(state, this.world.nowMs));
  }

  end(): void {
    this.ended = true;
    this.follow([]);
  }

  sweep(): void {
    for (const lease of this.leases) this.step(lease, (state) => sweepLease(state, this.world.nowMs));
  }

  crash(): void {
    this.incarnation += 1;
    const lost = this.pending;
    this.pending = new Map();
    this.tickets = new Map();
    this.toldMs = 0;
    for (const lease of this.leases) {
      // What was put aside for a decision is free again.
      this.world.freed(asideIn(lease));
      lease.state = openLease(lease.rows.values(), this.ledger(), { capMicroUsd: lease.brings, covers: lease.covers });
    }
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

  /** Put aside on a day in the lease from a node, for decisions that are not made yet. */
  asideFrom(node: NodeHost, isCounted: (day: string) => boolean): number {
    const promised = this.leases.find((lease) => lease.node === node)?.state.promised ?? [];
    return promised.reduce((sum, { day, needMicroUsd }) => sum + (isCounted(day) ? needMicroUsd : 0), 0);
  }

  waitingSince(): readonly number[] {
    return [...this.pending.values()].map((each) => each.sinceMs);
  }

  /** Those that have to cover what is reserved. */
  get held(): readonly HeldLease[] {
    return this.leases.filter(({ covers }) => covers);
  }

  /* ---------------------------------------------------------------- deciding */

  private decide(pending: Pending, tickets: readonly string[], refused: BudgetRefusal | null, round: number): void {
    if (this.ended) {
      this.release(tickets);
      this.finish(pending, { kind: 'busy' });
      return;
    }
    const { need } = pending;
    if (this.used() + need > this.capMicroUsd) {
      this.release(tickets);
      this.finish(pending, { kind: 'refused', level: 'plan' });
      return;
    }
    const { today } = this.world;
    if (need === 0 || Math.min(...this.held.map((lease) => this.freeWith(lease, today, tickets))) >= need) {
      this.world.judgeAuthorisation(this, today, need);
      this.reservations.set(pending.id, { day: today, amount: need });
      // A crash before the commit takes the reservation with it.
      if (this.follow(tickets, () => this.reservations.delete(pending.id))) this.finish(pending, { kind: 'authorised', id: pending.id });
      return;
    }
    this.release(tickets);
    if (!this.pending.has(pending.id)) return;
    if (refused !== null) this.finish(pending, { kind: 'refused', level: refused.level });
    else if (round === MAX_ROUNDS) this.finish(pending, { kind: 'busy' });
    else this.obtain(pending, 0, [], round);
  }

  /** Puts the money aside in one lease after the other, each time waiting for it. */
  private obtain(pending: Pending, index: number, tickets: readonly string[], round: number): void {
    const lease = this.held[index];
    if (lease === undefined) {
      this.decide(pending, tickets, null, round + 1);
      return;
    }
    const ticket = this.newId();
    const { incarnation } = this;
    this.tickets.set(ticket, (outcome) =>
      // As with a promise: in a turn of its own, right after what the step sends.
      this.world.schedule.after(0, () => {
        if (this.incarnation !== incarnation) return;
        if (outcome.kind === 'ready') {
          this.obtain(pending, index + 1, [...tickets, ticket], round);
          return;
        }
        this.release(tickets);
        if (!this.pending.has(pending.id)) return;
        if (outcome.kind === 'busy') this.finish(pending, { kind: 'busy' });
        else this.decide(pending, [], outcome.refusal, round + 1);
      }),
    );
    this.step(lease, (state) => authorize(state, { id: ticket, needMicroUsd: pending.need }, this.world.nowMs));
  }

  private freeWith({ state }: HeldLease, today: string, tickets: readonly string[]): number {
    const aside = state.promised.reduce(
      (sum, { id, day, needMicroUsd }) => sum + (day === today && tickets.includes(id) ? needMicroUsd : 0),
      0,
    );
    return leaseFreeMicroUsd(state, today) + aside;
  }

  /** No decision was made with what was put aside. */
  private release(tickets: readonly string[]): void {
    for (const lease of this.leases) {
      const freed = lease.state.promised.filter(({ id }) => tickets.includes(id));
      if (freed.length === 0) continue;
      this.world.freed(freed.reduce((sum, { needMicroUsd }) => sum + needMicroUsd, 0));
      this.step(lease, (state) => ledgerChanged(state, state.ledger, tickets, this.world.nowMs));
    }
  }

  private finish({ id, done }: Pending, outcome: Outcome): void {
    if (this.pending.delete(id)) done(outcome);
  }

  private newId(): string {
    this.nextId += 1;
    return `${this.id}/${this.nextId}`;
  }

  /* ---------------------------------------------------------------- steps */

  /** What follows from a change of the ledger, in every lease: committed with it. False: the plan died before, and `undo` was called. */
  private follow(tickets: readonly string[], undo: () => void = () => {}): boolean {
    const { nowMs } = this.world;
    const tells = nowMs - this.toldMs >= TELL_MS;
    if (tells) this.toldMs = nowMs;
    return this.commit(
      this.leases.map((lease) => {
        const followed = ledgerChanged(lease.state, this.ledger(), tickets, nowMs);
        return { lease, made: tells ? inOrder(followed, reportLease(followed.lease, nowMs)) : followed };
      }),
      undo,
    );
  }

  private step(lease: HeldLease, transition: (state: LeaseState) => LeaseStep): void {
    this.commit([{ lease, made: transition(lease.state) }]);
  }

  /** Commit, then act on the outputs in order. */
  private commit(steps: readonly { readonly lease: HeldLease; readonly made: LeaseStep }[], undo: () => void = () => {}): boolean {
    const { network, random } = this.world;
    if (random.chance(network.faults.crashBefore)) {
      undo();
      this.crash();
      return false;
    }
    for (const { lease, made } of steps) {
      for (const [day, row] of made.changes) lease.rows.set(day, row);
      lease.state = made.lease;
    }
    if (random.chance(network.faults.crashAfter)) {
      this.crash();
      this.world.check();
      return true;
    }
    const { incarnation } = this;
    for (const { lease, made } of steps) {
      for (const output of made.outputs) if (this.incarnation === incarnation) this.act(lease, output);
    }
    this.world.check();
    return true;
  }

  private act(lease: HeldLease, output: LeaseOutput): void {
    const { network } = this.world;
    const { node } = lease;
    switch (output.kind) {
      case 'ready':
      case 'refused':
      case 'busy': {
        const told = this.tickets.get(output.ticket);
        this.tickets.delete(output.ticket);
        if (told === undefined) throw new Error(`${output.ticket} is ${output.kind} and nobody waits for it`);
        told(output);
        return;
      }
      case 'recall_reply':
        this.reply?.(output.reply);
        return;
      case 'ask': {
        const ended = (answer: AskAnswer | null): void =>
          this.step(lease, (state) => askAnswered(state, output.call, answer, this.world.nowMs));
        const name = `${this.id}#${this.incarnation}.${node.id}.${output.call}`;
        network.call<AskAnswer>(
          'plan.ask',
          this,
          node,
          TIMEOUT_MS.sessionAsk,
          (respond) => node.deliverAsk(name, this.id, output.ask, respond),
          ended,
          ended,
        );
        return;
      }
      case 'freed': {
        const ended = (acknowledged: true | null): void => {
          if (acknowledged !== null) this.step(lease, (state) => freedHeard(state, output.freed, this.world.nowMs));
        };
        network.call<true>(
          'plan.freed',
          this,
          node,
          TIMEOUT_MS.sessionAsk,
          (respond) => node.deliverFreed(this.id, output.freed, () => respond(true)),
          ended,
          ended,
        );
        return;
      }
      case 'close': {
        const ended = (acknowledged: true | null): void => {
          if (acknowledged !== null) this.step(lease, (state) => leaseClosed(state, output.close, this.world.nowMs));
        };
        network.call<true>(
          'plan.close',
          this,
          node,
          TIMEOUT_MS.sessionAsk,
          (respond) => node.deliverClose(this.id, output.close, () => respond(true)),
          ended,
          ended,
        );
      }
    }
  }

  private reply: ((reply: RecallReply) => void) | null = null;

  /** What a node can recall from: this plan, and of it the lease from that node. */
  private holderOf(lease: HeldLease): Holder {
    const plan = this;
    return {
      id: this.id,
      get incarnation() {
        return plan.incarnation;
      },
      deliverRecall: (_call: string, recall: Recall, respond: (reply: RecallReply) => void) => {
        this.reply = respond;
        const { incarnation } = this;
        const aside = asideIn(lease);
        this.step(lease, (state) => recalled(state, recall, this.world.nowMs));
        // What goes back of it is free from now on; after a crash that was said already.
        if (this.incarnation === incarnation) this.world.freed(Math.max(0, aside - asideIn(lease)));
        this.reply = null;
      },
    };
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

/** Put aside for decisions that are not made yet. */
function asideIn({ state }: HeldLease): number {
  return state.promised.reduce((sum, { needMicroUsd }) => sum + needMicroUsd, 0);
}
