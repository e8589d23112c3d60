import { describe, expect, it } from 'vitest';
import {
  askAnswered,
  authorize,
  freedHeard,
  hasToReturn,
  hasUnsaidCharges,
  leaseClosed,
  ledgerChanged,
  nextLeaseSweepMs,
  prefetch,
  recalled,
  reportLease,
  returnLease,
  sweepLease,
} from '../../../src/core/budget/lease.ts';
import {
  type LeaseOutput,
  type LeaseState,
  type LeaseStep,
  type LedgerView,
  leaseCounts,
  leaseFreeMicroUsd,
  openLease,
} from '../../../src/core/budget/lease-state.ts';
import type { AskAnswer } from '../../../src/core/budget/protocol.ts';
import { NOON, TODAY } from './node-driver.ts';

const TOMORROW = '2026-11-04';

/** A plan's lease with the ledger of the plan beside it. */
class LeaseDriver {
  lease: LeaseState;
  nowMs = NOON;
  out: readonly LeaseOutput[] = [];
  private days = new Map<string, { settledMicroUsd: number; reservedMicroUsd: number }>();
  private call = 0;
  private readonly covers: boolean;

  constructor(covers = true) {
    this.covers = covers;
    this.lease = openLease([], { days: new Map(), ended: false }, { covers });
  }

  authorize(id: string, needMicroUsd: number): void {
    this.take(authorize(this.lease, { id, needMicroUsd }, this.nowMs));
  }

  answer(answer: AskAnswer | null): void {
    this.take(askAnswered(this.lease, this.call, answer, this.nowMs));
  }

  grant(g: number, day = TODAY): void {
    this.answer({ kind: 'granted', day, g });
  }

  refuse(day = TODAY): void {
    this.answer({ kind: 'refused', day, refusal: { level: 'org', capMicroUsd: 5, usedMicroUsd: 5, window: 'total' } });
  }

  recall(g: number, max: number, more: { readonly aside?: true } = {}): void {
    this.take(recalled(this.lease, { day: TODAY, g, max, ...more }, this.nowMs));
  }

  /** Books what the plan's log says, and reports it. */
  book(settledMicroUsd: number, reservedMicroUsd: number, more: { decided?: readonly string[]; day?: string; ended?: boolean } = {}): void {
    this.days = new Map(this.days).set(more.day ?? TODAY, { settledMicroUsd, reservedMicroUsd });
    this.take(ledgerChanged(this.lease, this.ledger(more.ended), more.decided ?? [], this.nowMs));
  }

  rest(): void {
    this.take(returnLease(this.lease, this.nowMs));
  }

  report(): void {
    this.take(reportLease(this.lease, this.nowMs));
  }

  sweep(): void {
    this.take(sweepLease(this.lease, this.nowMs));
  }

  prefetch(want: number): void {
    this.take(prefetch(this.lease, want, this.nowMs));
  }

  closed(s: number, v = 0): void {
    this.take(leaseClosed(this.lease, { day: TODAY, s, v }, this.nowMs));
  }

  heard(r: number, s: number, v: number): void {
    this.take(freedHeard(this.lease, { day: TODAY, r, s, v }, this.nowMs));
  }

  crash(): void {
    this.lease = openLease(this.lease.rows.values(), this.ledger(this.lease.ledger.ended), { covers: this.covers });
  }

  private ledger(ended = false): LedgerView {
    return { days: this.days, ended };
  }

  private take(step: LeaseStep): void {
    this.lease = step.lease;
    this.out = step.outputs;
    for (const output of step.outputs) if (output.kind === 'ask') this.call = output.call;
  }
}

/** A plan that holds a lease of `g` and has reserved `reserved` of it. */
function leased(g: number, reserved: number): LeaseDriver {
  const plan = new LeaseDriver();
  plan.authorize('first', reserved);
  plan.grant(g);
  plan.book(0, reserved, { decided: ['first'] });
  return plan;
}

describe('authorising', () => {
  it('is ready at once where the lease has room, without a word to anybody', () => {
    const plan = leased(100, 40);
    plan.authorize('a', 60);
    expect(plan.out).toEqual([{ kind: 'ready', ticket: 'a', day: TODAY }]);
  });

  it('that is ready has its money put aside until it is decided', () => {
    const plan = leased(100, 40);
    plan.authorize('a', 60);
    expect(leaseFreeMicroUsd(plan.lease, TODAY)).toBe(0);
    plan.recall(100, 100);
    expect(plan.out).toEqual([{ kind: 'recall_reply', reply: { day: TODAY, r: 0, s: 0, v: 0, left: 0 } }]);
    plan.book(0, 100, { decided: ['a'] });
    expect(plan.lease.promised).toEqual([]);
  });

  it('without room gives everything back first, and asks for the whole need', () => {
    const plan = leased(100, 40);
    plan.authorize('a', 61);
    expect(plan.out).toMatchObject([{ kind: 'ask', ask: { day: TODAY, seen: { g: 100, r: 60, s: 0, v: 0 }, need: 61 } }]);
    expect(leaseFreeMicroUsd(plan.lease, TODAY)).toBe(0);
  });

  it('wants the cost of 64 recent calls on top of what waits', () => {
    const plan = new LeaseDriver();
    plan.authorize('a', 10);
    expect(plan.out).toMatchObject([{ kind: 'ask', ask: { need: 10, want: 10 + 640 } }]);
  });

  it('of what costs nothing passes with an empty lease, and past whoever waits', () => {
    const plan = new LeaseDriver();
    plan.authorize('a', 10);
    plan.authorize('free', 0);
    expect(plan.out).toEqual([{ kind: 'ready', ticket: 'free', day: TODAY }]);
  });

  it('has one ask on the way, and serves the line in order when the grant comes', () => {
    const plan = new LeaseDriver();
    plan.authorize('a', 10);
    plan.authorize('b', 5);
    expect(plan.out).toEqual([]);
    plan.grant(15);
    expect(plan.out).toEqual([
      { kind: 'ready', ticket: 'a', day: TODAY },
      { kind: 'ready', ticket: 'b', day: TODAY },
    ]);
  });

  it('does not let a small need overtake a large one', () => {
    const plan = leased(100, 90);
    plan.authorize('large', 50);
    plan.authorize('small', 5);
    expect(plan.out).toEqual([]);
  });

  it('is served by what the plan itself frees while it waits', () => {
    const plan = leased(100, 90);
    plan.authorize('a', 50);
    plan.book(30, 0);
    expect(plan.out).toEqual([{ kind: 'ready', ticket: 'a', day: TODAY }]);
  });

  it('that is refused takes with it whoever needs as much, and lets the others ask', () => {
    const plan = new LeaseDriver();
    for (const [id, need] of [
      ['a', 10],
      ['b', 12],
      ['c', 4],
    ] as const)
      plan.authorize(id, need);
    plan.refuse();
    expect(plan.out).toMatchObject([
      { kind: 'refused', ticket: 'a', refusal: { level: 'org' } },
      { kind: 'refused', ticket: 'b' },
      { kind: 'ask', ask: { need: 4 } },
    ]);
  });

  it.each([
    ['not reached', null],
    ['busy', { kind: 'busy', day: TODAY }],
    ['closed', { kind: 'closed', day: TODAY }],
  ] as const)('is busy, never exceeded, when the session is %s', (_title, answer) => {
    const plan = new LeaseDriver();
    plan.authorize('a', 10);
    plan.authorize('b', 4);
    plan.answer(answer);
    expect(plan.out).toEqual([
      { kind: 'busy', ticket: 'a' },
      { kind: 'busy', ticket: 'b' },
    ]);
  });

  it('asks again when a grant was taken back before it could be used, and gives up after five', () => {
    const plan = new LeaseDriver();
    plan.authorize('a', 10);
    for (let ask = 1; ask < 5; ask += 1) {
      plan.grant(0);
      expect(plan.out).toMatchObject([{ kind: 'ask' }]);
    }
    plan.grant(0);
    expect(plan.out).toEqual([{ kind: 'busy', ticket: 'a' }]);
  });

  it('takes in a grant that comes too late, for the next one', () => {
    const plan = new LeaseDriver();
    plan.authorize('a', 10);
    plan.answer(null);
    plan.grant(10);
    plan.authorize('b', 10);
    expect(plan.out).toEqual([{ kind: 'ready', ticket: 'b', day: TODAY }]);
  });

  it('of an ended plan is busy', () => {
    const plan = new LeaseDriver();
    plan.book(0, 0, { ended: true });
    plan.authorize('a', 1);
    expect(plan.out).toEqual([{ kind: 'busy', ticket: 'a' }]);
  });

  it('has a first lease fetched ahead, which nobody waits for', () => {
    const plan = new LeaseDriver();
    plan.prefetch(640);
    expect(plan.out).toMatchObject([{ kind: 'ask', ask: { need: 0, want: 640 } }]);
    plan.grant(640);
    expect(plan.out).toEqual([]);
    plan.authorize('a', 10);
    expect(plan.out).toEqual([{ kind: 'ready', ticket: 'a', day: TODAY }]);
  });
});

describe('a recall', () => {
  it('gets at most what is asked for of what is unused, and hears what is left', () => {
    const plan = leased(100, 40);
    plan.recall(100, 25);
    expect(plan.out).toEqual([{ kind: 'recall_reply', reply: { day: TODAY, r: 25, s: 0, v: 0, left: 35 } }]);
    expect(plan.lease.watched).toBe(false);
    plan.recall(100, 100);
    expect(plan.out).toEqual([{ kind: 'recall_reply', reply: { day: TODAY, r: 60, s: 0, v: 0, left: 0 } }]);
    expect(plan.lease.watched).toBe(true);
  });

  it('leaves what is put aside for a decision that is not made yet, unless a cap is exceeded: then that decision is made again', () => {
    const plan = leased(100, 40);
    plan.authorize('a', 50);
    plan.recall(100, 100);
    expect(plan.out).toEqual([{ kind: 'recall_reply', reply: { day: TODAY, r: 10, s: 0, v: 0, left: 0 } }]);
    expect(plan.lease.promised.map(({ id }) => id)).toEqual(['a']);
    plan.recall(100, 50, { aside: true });
    expect(plan.out.at(-1)).toEqual({ kind: 'recall_reply', reply: { day: TODAY, r: 60, s: 0, v: 0, left: 0 } });
    expect(plan.lease.promised).toEqual([]);
    expect(leaseFreeMicroUsd(plan.lease, TODAY), 'what the decision finds').toBe(0);
  });

  it('takes nothing that is put aside where what is unused is enough', () => {
    const plan = leased(100, 40);
    plan.authorize('a', 50);
    plan.recall(100, 10, { aside: true });
    expect(plan.lease.promised.map(({ id }) => id)).toEqual(['a']);
  });

  it('never gets what is reserved', () => {
    const plan = leased(100, 100);
    plan.recall(100, 100);
    expect(plan.out).toEqual([{ kind: 'recall_reply', reply: { day: TODAY, r: 0, s: 0, v: 0, left: 0 } }]);
  });

  it('that brings a grant which was lost serves the line before it gives back', () => {
    const plan = new LeaseDriver();
    plan.authorize('a', 10);
    plan.recall(30, 100);
    expect(plan.out).toEqual([
      { kind: 'ready', ticket: 'a', day: TODAY },
      { kind: 'recall_reply', reply: { day: TODAY, r: 20, s: 0, v: 0, left: 0 } },
    ]);
  });

  it('that comes twice gets nothing twice', () => {
    const plan = leased(100, 40);
    plan.recall(100, 60);
    plan.recall(100, 60);
    expect(leaseCounts(plan.lease, TODAY)).toEqual({ g: 100, r: 60, s: 0, v: 0 });
  });

  it('of a closed account gets all that was not settled, whatever was granted meanwhile', () => {
    const plan = leased(100, 40);
    plan.book(40, 0, { ended: true });
    plan.recall(150, 1);
    expect(plan.out.at(-1)).toEqual({ kind: 'recall_reply', reply: { day: TODAY, r: 110, s: 40, v: 0, left: 0 } });
  });

  it('makes no ask', () => {
    const plan = leased(100, 90);
    plan.authorize('a', 50);
    plan.recall(100, 100);
    expect(plan.out.map((each) => each.kind)).toEqual(['recall_reply']);
  });
});

describe('a watched plan', () => {
  it('sends back what it frees in the same step, and tells', () => {
    const plan = leased(100, 100);
    plan.recall(100, 100);
    plan.book(30, 60);
    expect(plan.out).toEqual([{ kind: 'freed', freed: { day: TODAY, r: 10, s: 30, v: 0 } }]);
  });

  it('is no longer watched once it was granted something', () => {
    const plan = leased(100, 100);
    plan.recall(100, 100);
    plan.authorize('a', 5);
    plan.grant(105);
    plan.book(30, 65, { decided: ['a'] });
    expect(plan.out).toEqual([]);
    expect(leaseFreeMicroUsd(plan.lease, TODAY)).toBe(10);
  });

  it('is what a plan takes itself for after a crash', () => {
    const plan = leased(100, 100);
    plan.crash();
    plan.book(30, 60);
    expect(plan.out).toEqual([{ kind: 'freed', freed: { day: TODAY, r: 10, s: 30, v: 0 } }]);
  });
});

describe('an overrun', () => {
  it('eats what the lease has free', () => {
    const plan = leased(100, 40);
    plan.book(70, 0);
    expect(leaseCounts(plan.lease, TODAY)).toEqual({ g: 100, r: 0, s: 70, v: 0 });
    expect(leaseFreeMicroUsd(plan.lease, TODAY)).toBe(30);
  });

  it('beyond that is overdrawn, told at once and again until it is heard', () => {
    const plan = leased(100, 100);
    plan.book(125, 0);
    const freed = { kind: 'freed', freed: { day: TODAY, r: 0, s: 100, v: 25 } };
    expect(plan.out).toEqual([freed]);
    plan.sweep();
    expect(plan.out).toEqual([freed]);
    expect(nextLeaseSweepMs(plan.lease, plan.nowMs)).toBe(plan.nowMs + 30_000);
    plan.heard(0, 100, 25);
    plan.sweep();
    expect(plan.out).toEqual([]);
  });

  it('never touches what other calls have reserved', () => {
    const plan = leased(100, 100);
    plan.book(60, 60);
    expect(leaseCounts(plan.lease, TODAY)).toEqual({ g: 100, r: 0, s: 40, v: 20 });
    plan.book(120, 0);
    expect(leaseCounts(plan.lease, TODAY)).toEqual({ g: 100, r: 0, s: 100, v: 20 });
  });

  it('is taken in after a crash between the charge and the row', () => {
    const plan = leased(100, 100);
    plan.lease = openLease(plan.lease.rows.values(), {
      days: new Map([[TODAY, { settledMicroUsd: 130, reservedMicroUsd: 0 }]]),
      ended: false,
    });
    plan.recall(100, 100);
    expect(plan.out.at(-1)).toEqual({ kind: 'recall_reply', reply: { day: TODAY, r: 0, s: 100, v: 30, left: 0 } });
  });
});

describe('a parent from which nothing is held', () => {
  const told = (v: number) => ({ kind: 'freed', freed: { day: TODAY, r: 0, s: 0, v } });

  it('is told of no charge by itself, and of all of them when it is time', () => {
    const plan = new LeaseDriver(false);
    for (const charged of [10, 25, 40]) {
      plan.book(charged, 5);
      expect(plan.out).toEqual([]);
      expect(hasUnsaidCharges(plan.lease)).toBe(true);
    }
    plan.report();
    expect(plan.out).toEqual([told(40)]);
    expect(hasUnsaidCharges(plan.lease)).toBe(false);
    expect(hasToReturn(plan.lease)).toBe(true);
    plan.heard(0, 0, 40);
    expect(hasToReturn(plan.lease)).toBe(false);
    expect(nextLeaseSweepMs(plan.lease, plan.nowMs)).toBe(Date.parse(`${TOMORROW}T00:00:00Z`));
  });

  it('is not told of the next charges because it has heard of some', () => {
    const plan = new LeaseDriver(false);
    plan.book(10, 0);
    plan.report();
    plan.book(25, 0);
    plan.heard(0, 0, 10);
    expect(plan.out).toEqual([]);
    expect(hasUnsaidCharges(plan.lease)).toBe(true);
    plan.report();
    expect(plan.out).toEqual([told(25)]);
    plan.book(25, 0, { ended: true });
    plan.book(40, 0, { day: TOMORROW });
    plan.closed(0, 25);
    expect(plan.out).toEqual([]);
  });

  it('hears nothing of a plan that reserves, charges nothing, rests and ends', () => {
    const plan = new LeaseDriver(false);
    plan.book(0, 50);
    plan.report();
    expect(plan.out).toEqual([]);
    plan.rest();
    expect(plan.out).toEqual([]);
    expect(hasToReturn(plan.lease)).toBe(false);
    plan.book(0, 0, { ended: true });
    plan.rest();
    plan.sweep();
    expect(plan.out).toEqual([]);
    expect(plan.lease.rows.size).toBe(0);
    expect(nextLeaseSweepMs(plan.lease, plan.nowMs)).toBeNull();
  });

  it('is told again until it has heard, over a crash as well, and of the same charge once', () => {
    const plan = new LeaseDriver(false);
    plan.book(30, 0);
    plan.crash();
    expect(hasToReturn(plan.lease)).toBe(true);
    plan.rest();
    expect(plan.out).toEqual([told(30)]);
    plan.sweep();
    expect(plan.out).toEqual([told(30)]);
    plan.crash();
    plan.rest();
    expect(plan.out).toEqual([told(30)]);
    plan.heard(0, 0, 30);
    plan.rest();
    plan.sweep();
    expect(plan.out).toEqual([]);
  });

  it('gets nothing by a recall, and keeps nothing from going on', () => {
    const plan = new LeaseDriver(false);
    plan.book(30, 20);
    plan.recall(0, 100, { aside: true });
    expect(plan.out.at(-1)).toEqual({ kind: 'recall_reply', reply: { day: TODAY, r: 0, s: 0, v: 30, left: 0 } });
  });

  it('closes when the plan ends, with what was charged until then and later', () => {
    const plan = new LeaseDriver(false);
    plan.book(30, 20);
    plan.book(30, 20, { ended: true });
    expect(plan.out.at(-1)).toEqual({ kind: 'close', close: { day: TODAY, s: 0, v: 30 } });
    plan.closed(0, 30);
    plan.book(45, 0, { ended: true });
    expect(plan.out.at(-1)).toEqual({ kind: 'close', close: { day: TODAY, s: 0, v: 45 } });
    plan.closed(0, 45);
    plan.sweep();
    expect(plan.out).toEqual([]);
  });
});

describe('resting and ending', () => {
  it('returns everything unused', () => {
    const plan = leased(100, 40);
    plan.book(25, 10);
    plan.rest();
    expect(plan.out).toEqual([{ kind: 'freed', freed: { day: TODAY, r: 65, s: 25, v: 0 } }]);
  });

  it('waits while somebody in the line is waiting for money', () => {
    const plan = leased(100, 90);
    plan.authorize('a', 50);
    plan.rest();
    expect(plan.out).toEqual([]);
  });

  it('closes when nothing is reserved any more, and not before', () => {
    const plan = leased(100, 40);
    plan.book(0, 40, { ended: true });
    expect(plan.out.map((each) => each.kind)).toEqual(['freed']);
    plan.book(40, 0, { ended: true });
    expect(plan.out).toEqual([{ kind: 'close', close: { day: TODAY, s: 40, v: 0 } }]);
  });

  it('repeats the close until it is acknowledged, over a crash as well', () => {
    const plan = leased(100, 40);
    plan.book(40, 0, { ended: true });
    plan.crash();
    plan.sweep();
    expect(plan.out).toEqual([{ kind: 'close', close: { day: TODAY, s: 40, v: 0 } }]);
    plan.closed(39);
    plan.sweep();
    expect(plan.out).toHaveLength(1);
    plan.closed(40);
    plan.sweep();
    expect(plan.out).toEqual([]);
    expect(nextLeaseSweepMs(plan.lease, plan.nowMs)).toBeNull();
  });

  it('closes once more for a cost that comes late', () => {
    const plan = leased(100, 40);
    plan.book(40, 0, { ended: true });
    plan.closed(40);
    plan.book(47, 0, { ended: true });
    expect(plan.out).toEqual([{ kind: 'close', close: { day: TODAY, s: 40, v: 7 } }]);
  });

  it('has nothing to close where it never held or spent anything', () => {
    const plan = new LeaseDriver();
    plan.book(0, 0, { ended: true });
    expect(plan.out).toEqual([]);
  });
});

describe('midnight', () => {
  it('sends the unused lease of the day home and asks for the new day', () => {
    const plan = leased(100, 40);
    plan.nowMs += 86_400_000;
    plan.authorize('a', 10);
    expect(plan.out).toMatchObject([
      { kind: 'freed', freed: { day: TODAY, r: 60, s: 0 } },
      { kind: 'ask', ask: { day: TOMORROW, seen: { g: 0, r: 0, s: 0, v: 0 }, need: 10 } },
    ]);
  });

  it('lets what was reserved before it settle in its own day', () => {
    const plan = leased(100, 40);
    plan.nowMs += 86_400_000;
    plan.book(35, 0);
    expect(plan.out.at(-1)).toEqual({ kind: 'close', close: { day: TODAY, s: 35, v: 0 } });
    expect(leaseCounts(plan.lease, TOMORROW)).toEqual({ g: 0, r: 0, s: 0, v: 0 });
  });

  it('makes a refusal of the day before no refusal of today', () => {
    const plan = new LeaseDriver();
    plan.authorize('a', 10);
    plan.nowMs += 86_400_000;
    plan.refuse(TODAY);
    expect(plan.out).toMatchObject([{ kind: 'ask', ask: { day: TOMORROW, need: 10 } }]);
  });
});
