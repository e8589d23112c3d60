/** A plan that the test plays: the real lease of core/budget against real nodes, so that its money can be moved by hand. */
import { evictDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { ulid } from 'ulid';
import type { BudgetNodePort, BudgetRef } from '../../src/app/ports.ts';
import {
  askAnswered,
  authorize,
  freedHeard,
  leaseClosed,
  ledgerChanged,
  recalled,
  returnLease,
  sweepLease,
} from '../../src/core/budget/lease.ts';
import { type LeaseOutput, type LeaseState, type LeaseStep, type LedgerView, openLease } from '../../src/core/budget/lease-state.ts';
import { type BudgetRefusal, type LeaseRow, type Recall, type RecallReply, TIMEOUT_MS } from '../../src/core/budget/protocol.ts';
import { objectName } from '../../src/storage/objects.ts';
import { disturbedBudgets, PLAYED, playedKey } from '../worker/test-worker.ts';
import { pause, services } from './plan-support.ts';

export const budgets = disturbedBudgets(services.budgets);

export const newName = (kind: string): string => `${kind}-${ulid().toLowerCase()}`;

export const nodeStub = (org: string, ref: BudgetRef) => {
  const name = objectName(org, ref.kind, ref.kind === 'org' ? org : ref.kind === 'session' ? ref.id : ref.name);
  return ref.kind === 'org'
    ? env.ORGS.getByName(name)
    : ref.kind === 'session'
      ? env.SESSIONS.getByName(name)
      : env.PROFILE_BUDGETS.getByName(name);
};

/** What it had not stored is gone. */
export async function crashNode(org: string, ref: BudgetRef): Promise<void> {
  await evictDurableObject(nodeStub(org, ref));
}

export type PlayedOutcome =
  | { readonly kind: 'authorised'; readonly id: string }
  | { readonly kind: 'refused'; readonly refusal: BudgetRefusal }
  | { readonly kind: 'busy' };

export class LeasePlayer {
  readonly id = ulid();
  readonly recalls: Recall[] = [];
  lease: LeaseState;
  private readonly parent: BudgetNodePort;
  private readonly rows = new Map<string, LeaseRow>();
  private readonly waiting = new Map<string, { readonly need: number; readonly done: (outcome: PlayedOutcome) => void }>();
  private readonly reserved = new Map<string, { readonly day: string; readonly amount: number }>();
  private readonly charged = new Map<string, number>();
  private ended = false;
  private tickets = 0;
  private readonly capMicroUsd: number | null;

  constructor(org: string, parent: BudgetRef, capMicroUsd: number | null = null) {
    this.capMicroUsd = capMicroUsd;
    this.parent = budgets.node(org, parent);
    this.lease = openLease([], this.ledger(), { capMicroUsd });
    PLAYED.set(playedKey(org, this.id), (_from, recall) => this.recall(recall));
  }

  authorize(need: number): Promise<PlayedOutcome> {
    return new Promise((done) => {
      this.tickets += 1;
      const id = `${this.id}/${this.tickets}`;
      this.waiting.set(id, { need, done });
      this.step(authorize(this.lease, { id, needMicroUsd: need }, Date.now()));
    });
  }

  /** Authorises and charges at once; answers what came of it. */
  async spend(need: number, charge = need): Promise<PlayedOutcome> {
    const outcome = await this.authorize(need);
    if (outcome.kind === 'authorised') this.settle(outcome.id, charge);
    return outcome;
  }

  settle(id: string, charge: number): void {
    const held = this.reserved.get(id);
    if (held === undefined) throw new Error(`${id} is not reserved`);
    this.reserved.delete(id);
    this.charged.set(held.day, (this.charged.get(held.day) ?? 0) + charge);
    this.step(ledgerChanged(this.lease, this.ledger(), [], Date.now()));
  }

  rest(): void {
    this.step(returnLease(this.lease, Date.now()));
  }

  end(): void {
    this.ended = true;
    this.step(ledgerChanged(this.lease, this.ledger(), [], Date.now()));
  }

  sweep(): void {
    this.step(sweepLease(this.lease, Date.now()));
  }

  /** As after a crash of its object: the rows and the books stay. */
  crash(): void {
    for (const { done } of this.waiting.values()) done({ kind: 'busy' });
    this.waiting.clear();
    this.lease = openLease(this.rows.values(), this.ledger(), { capMicroUsd: this.capMicroUsd });
  }

  /** Charged and reserved. */
  used(): number {
    let sum = 0;
    for (const amount of this.charged.values()) sum += amount;
    for (const { amount } of this.reserved.values()) sum += amount;
    return sum;
  }

  private recall(recall: Recall): RecallReply {
    this.recalls.push(recall);
    let reply: RecallReply | null = null;
    for (const output of this.commit(recalled(this.lease, recall, Date.now()))) {
      if (output.kind === 'recall_reply') reply = output.reply;
      else this.act(output);
    }
    if (reply === null) throw new Error('a recall was not answered');
    return reply;
  }

  private commit({ lease, changes, outputs }: LeaseStep): readonly LeaseOutput[] {
    for (const [day, row] of changes) this.rows.set(day, row);
    this.lease = lease;
    return outputs;
  }

  private step(step: LeaseStep): void {
    for (const output of this.commit(step)) this.act(output);
  }

  private act(output: LeaseOutput): void {
    switch (output.kind) {
      case 'ready': {
        const { need, done } = this.take(output.ticket);
        this.reserved.set(output.ticket, { day: output.day, amount: need });
        this.step(ledgerChanged(this.lease, this.ledger(), [output.ticket], Date.now()));
        done({ kind: 'authorised', id: output.ticket });
        return;
      }
      case 'refused':
        this.take(output.ticket).done({ kind: 'refused', refusal: output.refusal });
        return;
      case 'busy':
        this.take(output.ticket).done({ kind: 'busy' });
        return;
      case 'ask':
        void within(TIMEOUT_MS.sessionAsk, this.parent.ask(this.id, output.ask)).then((answer) =>
          this.step(askAnswered(this.lease, output.call, answer, Date.now())),
        );
        return;
      case 'freed':
        void within(
          TIMEOUT_MS.sessionAsk,
          this.parent.freed(this.id, output.freed).then(() => true),
        ).then((heard) => {
          if (heard) this.step(freedHeard(this.lease, output.freed, Date.now()));
        });
        return;
      case 'close':
        void within(
          TIMEOUT_MS.sessionAsk,
          this.parent.close(this.id, output.close).then(() => true),
        ).then((heard) => {
          if (heard) this.step(leaseClosed(this.lease, output.close, Date.now()));
        });
        return;
      case 'recall_reply':
        throw new Error('nobody recalled');
    }
  }

  private take(ticket: string) {
    const found = this.waiting.get(ticket);
    this.waiting.delete(ticket);
    // A ticket of before a crash: nobody waits for it any more.
    return found ?? { need: 0, done: () => {} };
  }

  private ledger(): LedgerView {
    const days = new Map<string, { settledMicroUsd: number; reservedMicroUsd: number }>();
    for (const [day, amount] of this.charged) days.set(day, { settledMicroUsd: amount, reservedMicroUsd: 0 });
    for (const { day, amount } of this.reserved.values()) {
      const before = days.get(day) ?? { settledMicroUsd: 0, reservedMicroUsd: 0 };
      days.set(day, { ...before, reservedMicroUsd: before.reservedMicroUsd + amount });
    }
    return { days, ended: this.ended };
  }
}

/** Null where there was no answer in time, or none at all. */
async function within<T>(ms: number, work: Promise<T>): Promise<T | null> {
  const late = pause(ms).then(() => null);
  return Promise.race([work.catch(() => null), late]);
}

/** Looks until what it finds is accepted; fails with what it saw last. */
export async function eventually<T>(look: () => Promise<T>, accepts: (seen: T) => boolean, ms = 15_000): Promise<T> {
  const deadline = performance.now() + ms;
  for (;;) {
    const seen = await look();
    if (accepts(seen)) return seen;
    if (performance.now() > deadline) throw new Error(`seen last: ${JSON.stringify(seen)}`);
    await pause(20);
  }
}
