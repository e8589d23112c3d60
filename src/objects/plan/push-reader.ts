import type { PushRenderer } from '../../app/ports.ts';
import type { JsonValue } from '../../core/json.ts';
import type { LogRow } from '../../core/plan/events.ts';
import { evolve } from '../../core/plan/evolve.ts';
import type { Plan } from '../../core/plan/plan.ts';
import { snapshotOf, updateOf } from '../../core/plan/snapshot.ts';
import type { PushWire } from '../../core/push/push-config.ts';
import type { PushCursor } from './push-store.ts';

/** One notification of the log. */
export interface PushNotification {
  /** Its own place, and the place behind it. */
  readonly cursor: PushCursor;
  readonly after: PushCursor;
  /** The row that it tells of, and when that was written. */
  readonly seq: number;
  readonly at: string;
  readonly body: () => string;
}

export interface PushLog {
  rows(afterSeq: number): Iterable<LogRow>;
  load(digest: string): JsonValue;
}

/**
 * Reads the log as notifications. They are a function of the log alone: whoever reads the same place again, after a crash too, gets the
 * same body. The state before the place is kept, so that reading on costs only what is new.
 */
export class PushReader {
  private readonly log: PushLog;
  private readonly render: PushRenderer;
  private before: { readonly seq: number; readonly plan: Plan | null } = { seq: 0, plan: null };

  constructor(log: PushLog, render: PushRenderer) {
    this.log = log;
    this.render = render;
  }

  /** The state at a row, where somebody knows it: nothing before it has to be read. */
  startAt(plan: Plan): void {
    this.before = { seq: plan.seq, plan };
  }

  /** The next notification, or the row with which the log ends. */
  next(wire: PushWire, { seq, part }: PushCursor): PushNotification | number {
    this.foldTo(seq);
    let done = part;
    for (const row of this.log.rows(this.before.seq)) {
      const plan = evolve(this.before.plan, row);
      const told = this.told(wire, this.before.plan, row, plan);
      const body = told[done];
      if (body !== undefined) {
        const cursor = { seq: this.before.seq, part: done };
        const after = done + 1 < told.length ? { ...cursor, part: done + 1 } : { seq: row.seq, part: 0 };
        return { cursor, after, seq: row.seq, at: row.at, body };
      }
      done = 0;
      this.before = { seq: row.seq, plan };
    }
    return this.before.seq;
  }

  /** How many notifications are behind a place. */
  count(wire: PushWire, { seq, part }: PushCursor): number {
    this.foldTo(seq);
    let plan = this.before.plan;
    let count = -part;
    for (const row of this.log.rows(this.before.seq)) {
      const next = evolve(plan, row);
      count += this.told(wire, plan, row, next).length;
      plan = next;
    }
    return Math.max(0, count);
  }

  private told(wire: PushWire, before: Plan | null, row: LogRow, after: Plan): readonly (() => string)[] {
    const load = (digest: string) => this.log.load(digest);
    const update = updateOf(before, row, after, load);
    return update === null ? [] : this.render(wire, { before, update, task: () => snapshotOf(after, load) });
  }

  private foldTo(seq: number): void {
    if (this.before.seq > seq) this.before = { seq: 0, plan: null };
    let { plan } = this.before;
    if (this.before.seq === seq) return;
    for (const row of this.log.rows(this.before.seq)) {
      if (row.seq > seq) break;
      plan = evolve(plan, row);
    }
    this.before = { seq, plan };
  }
}
