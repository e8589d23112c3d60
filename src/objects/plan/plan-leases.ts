import type { BudgetNodePort, BudgetRef, ClosedSpend } from '../../app/ports.ts';
import {
  askAnswered,
  authorize,
  freedHeard,
  hasToReturn,
  hasUnsaidCharges,
  leaseClosed,
  ledgerChanged,
  nextLeaseSweepMs,
  recalled,
  reportLease,
  returnLease,
  sweepLease,
} from '../../core/budget/lease.ts';
import {
  inOrder,
  type LeaseOutput,
  type LeaseState,
  type LeaseStep,
  leaseFreeMicroUsd,
  openLease,
  rowOf,
} from '../../core/budget/lease-state.ts';
import {
  type AskAnswer,
  type BudgetRefusal,
  type LeaseRow,
  REPEAT_MS,
  type Recall,
  type RecallReply,
  TELL_MS,
  TIMEOUT_MS,
} from '../../core/budget/protocol.ts';
import { type Day, dayOf } from '../../core/budget/window.ts';
import { addMicroUsd } from '../../core/money.ts';
import type { Plan } from '../../core/plan/plan.ts';
import { isBuiltinProfileName } from '../../core/profile.ts';
import { LeaseStore } from './lease-store.ts';
import { atLeast, holdsFrom, isParentOf, keyOf, parentsOf, refOf, spentView, viewOf } from './lease-views.ts';

export interface PlanLeasesParts {
  readonly sql: SqlStorage;
  transact(write: () => void): void;
  /** Bindings of this deployment; asked for when something is to be sent. */
  parent(org: string, ref: BudgetRef): BudgetNodePort;
  nowMs(): number;
  /** After each step: when the leases have to be looked at again may have changed. */
  stepped(): void;
  report(problem: string, cause: unknown): void;
}

/** How asking for money ended. Money that is `ready` is put aside under its tickets until a decision was made with it. */
export type Obtained =
  | { readonly kind: 'ready'; readonly tickets: readonly string[] }
  | { readonly kind: 'refused'; readonly refusal: BudgetRefusal }
  | { readonly kind: 'busy' };

/** Steps that follow from a decision: written in its transaction, acted on after it. */
export type FollowingSteps = readonly { readonly lease: Held; readonly step: LeaseStep }[];

/** Who holds the leases, as those above know it. */
export type PlanName = Pick<Plan, 'org' | 'id'>;

interface Held {
  readonly key: string;
  readonly ref: BudgetRef;
  state: LeaseState;
}

type TicketOutcome = Extract<LeaseOutput, { readonly kind: 'ready' | 'refused' | 'busy' }>;

/** A plan that has decided nothing for so long is idle: it gives back what it does not use. */
const IDLE_MS = 2_000;

/**
 * A plan's leases: with its session, and with everything under its profile where that is limited (design section 10). Where it is not, the
 * profile's node is only told what was charged: the limit may come later, and counts it then.
 *
 * Promise: what a decision reserves is covered by every lease at the moment of its commit, and the lease rows are written in that
 * commit. Each message is one step of core/budget/lease; nothing is awaited inside one, and the end of every ask is reported.
 */
export class PlanLeases {
  private readonly parts: PlanLeasesParts;
  private readonly store: LeaseStore;
  private readonly leases = new Map<string, Held>();
  private readonly waiting = new Map<string, (outcome: TicketOutcome) => void>();
  private ticketCount = 0;
  private plan: Plan | null = null;
  /** The plan was closed: it has no state any more, and what it held is spent. */
  private retired: PlanName | null = null;
  private dueMs: number | null = null;
  private owingMs: number | null = null;
  private usedMs: number;
  private toldMs = 0;
  /** When giving back was tried last; a parent that does not answer is not asked all the time. */
  private returnedMs = 0;

  constructor(parts: PlanLeasesParts, plan: Plan | null) {
    this.parts = parts;
    this.store = new LeaseStore(parts.sql);
    this.plan = plan;
    this.usedMs = parts.nowMs();
    if (plan === null) return;
    for (const [key, rows] of this.store.load()) this.open(plan, refOf(key), rows);
    for (const ref of parentsOf(plan)) if (!this.leases.has(keyOf(ref))) this.open(plan, ref, []);
    this.look();
  }

  /**
   * The plan is closed and nothing says what of its money was reserved: all that was granted and never returned is spent. Answers what
   * its sessions are told, by day, and writes nothing but that, in the caller's transaction; `sweep` tells them, until they have heard it.
   * The node of `profile` is told the same where it has granted nothing: it heard of charges later than they were made, and of no reservation.
   */
  retire(of: PlanName, profile: string | null): ClosedSpend {
    this.resume(of);
    const days = new Map<Day, number>();
    for (const { ref, state } of this.leases.values()) {
      if (ref.kind !== 'session') continue;
      for (const [day, { settledMicroUsd }] of state.ledger.days) days.set(day, addMicroUsd(days.get(day) ?? 0, settledMicroUsd));
    }
    if (profile !== null && !isBuiltinProfileName(profile)) this.held({ kind: 'profile', name: profile });
    for (const lease of this.leases.values()) {
      const rows = [...lease.state.rows.values()];
      const ledger = lease.ref.kind === 'profile' && rows.every(({ g }) => g === 0) ? atLeast(spentView(rows), days) : lease.state.ledger;
      const step = returnLease({ ...lease.state, ledger }, this.parts.nowMs());
      this.store.write(lease.key, step.changes);
      lease.state = step.lease;
    }
    this.look();
    return { days: [...days].map(([day, chargedMicroUsd]) => ({ day, chargedMicroUsd })) };
  }

  /** Holds what a plan that was closed before still has to tell. */
  resume(of: PlanName): void {
    this.plan = null;
    this.retired = of;
    this.leases.clear();
    for (const [key, rows] of this.store.load()) {
      this.leases.set(key, { key, ref: refOf(key), state: openLease(rows, spentView(rows)) });
    }
    this.look();
  }

  /** What may be reserved today without asking, with what was put aside for `tickets`. */
  freeMicroUsd(tickets: readonly string[]): number {
    if (this.plan === null) return 0;
    const today = dayOf(this.parts.nowMs());
    return Math.min(...holdsFrom(this.plan).map((ref) => freeOf(this.leases.get(keyOf(ref))?.state, today, tickets)));
  }

  /** Whether any cap above is set, at this moment: one that was set a moment ago has to count. Null: nobody answers. */
  async isLimited(): Promise<boolean | null> {
    const { plan } = this;
    if (plan === null) return null;
    const nodes: readonly BudgetRef[] = [{ kind: 'session', id: plan.sessionId }, { kind: 'org' }];
    try {
      const views = await Promise.all(nodes.map((ref) => this.parts.parent(plan.org, ref).show(null)));
      return views.some(({ caps }) => caps.some(({ capMicroUsd }) => capMicroUsd !== null));
    } catch (cause) {
      this.parts.report('the budgets above the plan could not be read', cause);
      return null;
    }
  }

  /** Puts `needMicroUsd` aside in every lease, asking for it where it is not here. */
  async obtain(needMicroUsd: number): Promise<Obtained> {
    const tickets: string[] = [];
    for (const ref of this.plan === null ? [] : holdsFrom(this.plan)) {
      this.ticketCount += 1;
      const id = `t${this.ticketCount}`;
      const outcome = await new Promise<TicketOutcome>((resolve, reject) => {
        this.waiting.set(id, resolve);
        try {
          this.run(this.held(ref), (state, nowMs) => authorize(state, { id, needMicroUsd }, nowMs));
        } catch (cause) {
          this.waiting.delete(id);
          reject(cause);
        }
      });
      if (outcome.kind !== 'ready') {
        this.release(tickets);
        return outcome.kind === 'busy' ? { kind: 'busy' } : { kind: 'refused', refusal: outcome.refusal };
      }
      tickets.push(id);
    }
    return { kind: 'ready', tickets };
  }

  /** No decision was made with what was put aside. */
  release(tickets: readonly string[]): void {
    if (tickets.length === 0) return;
    for (const lease of this.leases.values()) {
      if (!lease.state.promised.some(({ id }) => tickets.includes(id))) continue;
      this.run(lease, (state, nowMs) => ledgerChanged(state, state.ledger, tickets, nowMs));
    }
  }

  /** What follows from a decision that was made with these tickets: computed before its transaction, from the plan after it. */
  follow(plan: Plan, tickets: readonly string[]): FollowingSteps {
    for (const ref of parentsOf(plan)) if (!this.leases.has(keyOf(ref))) this.open(plan, ref, []);
    const nowMs = this.parts.nowMs();
    const tells = nowMs - this.toldMs >= TELL_MS;
    if (tells) this.toldMs = nowMs;
    this.usedMs = nowMs;
    return [...this.leases.values()].map((lease) => {
      const followed = ledgerChanged(lease.state, viewOf(plan, lease.key), tickets, nowMs);
      if (RESTING.has(plan.state) || !isParentOf(plan, lease.key))
        return { lease, step: inOrder(followed, returnLease(followed.lease, nowMs)) };
      return { lease, step: tells ? inOrder(followed, reportLease(followed.lease, nowMs)) : followed };
    });
  }

  /** In the transaction of the decision. */
  write(steps: FollowingSteps): void {
    for (const { lease, step } of steps) this.store.write(lease.key, step.changes);
  }

  /** After the transaction of the decision. */
  act(plan: Plan, steps: FollowingSteps): void {
    this.plan = plan;
    for (const { lease, step } of steps) lease.state = step.lease;
    this.look();
    for (const { lease, step } of steps) this.send(lease, step.outputs);
  }

  /** A parent wants back what is unused. What it granted and what never arrived here is returned as well. */
  recalled(ref: BudgetRef, recall: Recall): RecallReply | null {
    if (this.plan === null && this.retired === null) return null;
    const held = this.held(ref);
    const { phase, g, r, v } = rowOf(held.state, recall.day);
    if (this.retired !== null && phase === 'open' && g < recall.g) {
      // Of a grant of which nothing is known here nothing is known to be unused: it stays what it is for those above, used.
      return { day: recall.day, r, s: g - r, v, left: 0 };
    }
    const outputs = this.run(held, (state, nowMs) => recalled(state, recall, nowMs));
    return outputs.find((output) => output.kind === 'recall_reply')?.reply ?? null;
  }

  /** When `sweep` is due; null while nothing depends on time. */
  get wakeAtMs(): number | null {
    return this.dueMs;
  }

  sweep(): void {
    this.owingMs = null;
    for (const lease of this.leases.values()) if (!hasUnsaidCharges(lease.state)) this.run(lease, sweepLease);
    this.rest();
  }

  /** Time has passed in which nothing was decided: what is unused goes back, and those above hear what was charged. */
  rest(): void {
    const nowMs = this.parts.nowMs();
    this.sayCharges(nowMs);
    if (nowMs < this.idleAtMs()) return;
    this.returnedMs = nowMs;
    for (const lease of this.leases.values()) if (hasToReturn(lease.state)) this.run(lease, returnLease);
  }

  /* ---------------------------------------------------------------- inside */

  /** To those from which nothing is held; what is charged within a moment is said together. */
  private sayCharges(nowMs: number): void {
    if (nowMs < this.toldMs + TELL_MS) return;
    const behind = [...this.leases.values()].filter(({ state }) => hasUnsaidCharges(state));
    if (behind.length === 0) return;
    this.toldMs = nowMs;
    for (const lease of behind) this.run(lease, reportLease);
  }

  private idleAtMs(): number {
    return Math.max(this.usedMs + IDLE_MS, this.returnedMs + REPEAT_MS);
  }

  private open(plan: Plan, ref: BudgetRef, rows: readonly LeaseRow[]): Held {
    const key = keyOf(ref);
    const capMicroUsd = ref.kind === 'profile' ? (plan.policy.profileCapMicroUsd?.value ?? null) : null;
    const covers = ref.kind !== 'profile' || capMicroUsd !== null;
    const held = { key, ref, state: openLease(rows, viewOf(plan, key), { capMicroUsd, covers }) };
    this.leases.set(key, held);
    return held;
  }

  /** A parent of which nothing is stored has given nothing that was used: rows are committed before they are used. */
  private held(ref: BudgetRef): Held {
    const known = this.leases.get(keyOf(ref));
    if (known !== undefined) return known;
    if (this.plan !== null) return this.open(this.plan, ref, []);
    if (this.retired === null) throw new Error('no plan');
    const lease = { key: keyOf(ref), ref, state: openLease([], spentView([])) };
    this.leases.set(lease.key, lease);
    return lease;
  }

  private run(lease: Held, make: (state: LeaseState, nowMs: number) => LeaseStep): readonly LeaseOutput[] {
    const nowMs = this.parts.nowMs();
    const made = make(lease.state, nowMs);
    // What comes late from a session that the plan has left goes back at once.
    const isLeft = this.plan !== null && !isParentOf(this.plan, lease.key);
    const step = isLeft ? inOrder(made, returnLease(made.lease, nowMs)) : made;
    if (step.changes.size > 0) this.parts.transact(() => this.store.write(lease.key, step.changes));
    lease.state = step.lease;
    this.look();
    this.send(lease, step.outputs);
    this.parts.stepped();
    return step.outputs;
  }

  /** When to look again. What has to be told again is told at the time that was set first, however often something happens before. */
  private look(): void {
    const nowMs = this.parts.nowMs();
    const leases = [...this.leases.values()];
    const sweeps = leases.flatMap(({ state }) => nextLeaseSweepMs(state, nowMs) ?? []);
    const isOwing = sweeps.includes(nowMs + REPEAT_MS);
    this.owingMs = isOwing ? (this.owingMs ?? nowMs + REPEAT_MS) : null;
    const due = sweeps.filter((at) => at !== nowMs + REPEAT_MS);
    if (this.owingMs !== null) due.push(this.owingMs);
    if (leases.some(({ state }) => hasToReturn(state))) due.push(this.idleAtMs());
    if (leases.some(({ state }) => hasUnsaidCharges(state))) due.push(this.toldMs + TELL_MS);
    this.dueMs = due.length === 0 ? null : Math.min(...due);
  }

  private send(lease: Held, outputs: readonly LeaseOutput[]): void {
    for (const output of outputs) {
      switch (output.kind) {
        case 'ready':
        case 'refused':
        case 'busy':
          this.waiting.get(output.ticket)?.(output);
          this.waiting.delete(output.ticket);
          break;
        case 'ask':
          this.call<AskAnswer>(
            lease,
            (parent, planId) => parent.ask(planId, output.ask),
            (answer) => this.run(lease, (state, nowMs) => askAnswered(state, output.call, answer, nowMs)),
          );
          break;
        case 'freed':
          this.call(
            lease,
            (parent, planId) => parent.freed(planId, output.freed).then(() => true),
            (heard) => heard && this.run(lease, (state, nowMs) => freedHeard(state, output.freed, nowMs)),
          );
          break;
        case 'close':
          this.call(
            lease,
            (parent, planId) => parent.close(planId, output.close).then(() => true),
            (heard) => heard && this.run(lease, (state, nowMs) => leaseClosed(state, output.close, nowMs)),
          );
          break;
        case 'recall_reply':
          break;
      }
    }
  }

  /**
   * `ended` hears of the reply, or of null after a failure or when nobody answered in time; of a reply that comes later than that as well:
   * what was granted is here then, and goes back.
   */
  private call<T>(lease: Held, send: (parent: BudgetNodePort, planId: string) => Promise<T>, ended: (reply: T | null) => void): void {
    const of = this.plan ?? this.retired;
    if (of === null) return;
    const end = (reply: T | null): void => {
      try {
        ended(reply);
      } catch (cause) {
        this.parts.report('a step of a lease failed', cause);
      }
    };
    let timer: ReturnType<typeof setTimeout> | null = setTimeout(() => {
      timer = null;
      end(null);
    }, TIMEOUT_MS.sessionAsk);
    const stop = (): boolean => {
      const isOpen = timer !== null;
      if (timer !== null) clearTimeout(timer);
      timer = null;
      return isOpen;
    };
    Promise.resolve()
      .then(() => send(this.parts.parent(of.org, lease.ref), of.id))
      .then(
        (reply) => {
          stop();
          end(reply);
        },
        (cause: unknown) => {
          this.parts.report(`the budget of the ${lease.ref.kind} could not be reached`, cause);
          if (stop()) end(null);
        },
      );
  }
}

/** A plan in one of these does nothing by itself. */
const RESTING: ReadonlySet<Plan['state']> = new Set(['waiting', 'errored', 'constrained']);

function freeOf(state: LeaseState | undefined, today: Day, tickets: readonly string[]): number {
  if (state === undefined) return 0;
  const aside = state.promised.flatMap(({ id, day, needMicroUsd }) => (day === today && tickets.includes(id) ? [needMicroUsd] : []));
  return addMicroUsd(leaseFreeMicroUsd(state, today), ...aside);
}
