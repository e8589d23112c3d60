/** A seeded source of choices (mulberry32): the same seed gives the same run. */
export class Random {
  private state: number;

  constructor(seed: number) {
    this.state = seed >>> 0;
  }

  /** In [0, 1). */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let t = this.state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** An integer from `low` to `high`, both included. */
  int(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  chance(probability: number): boolean {
    return probability > 0 && this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.int(0, items.length - 1)];
    if (item === undefined) throw new Error('nothing to pick from');
    return item;
  }
}

/** Virtual time: what is due first runs first, and what is due at the same time runs in the order in which it was scheduled. */
export class Schedule {
  nowMs: number;
  ran = 0;
  private sequence = 0;
  private readonly heap: { readonly at: number; readonly sequence: number; readonly run: () => void }[] = [];

  constructor(nowMs: number) {
    this.nowMs = nowMs;
  }

  after(delayMs: number, run: () => void): void {
    const { heap } = this;
    this.sequence += 1;
    heap.push({ at: this.nowMs + delayMs, sequence: this.sequence, run });
    let child = heap.length - 1;
    while (child > 0) {
      const parent = (child - 1) >> 1;
      if (!this.isBefore(child, parent)) break;
      this.swap(child, parent);
      child = parent;
    }
  }

  /** Runs what is due until `untilMs`; false if more than `limit` things were due, which no run of this size needs. */
  runUntil(untilMs: number, limit: number): boolean {
    for (let count = 0; this.heap[0] !== undefined && this.heap[0].at <= untilMs; count += 1) {
      if (count >= limit) return false;
      const next = this.take();
      this.nowMs = next.at;
      this.ran += 1;
      next.run();
    }
    this.nowMs = untilMs;
    return true;
  }

  private take(): { readonly at: number; readonly run: () => void } {
    const { heap } = this;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined) throw new Error('nothing is due');
    if (heap.length === 0) return first;
    heap[0] = last;
    for (let parent = 0; ; ) {
      let least = parent;
      for (const child of [2 * parent + 1, 2 * parent + 2]) if (child < heap.length && this.isBefore(child, least)) least = child;
      if (least === parent) return first;
      this.swap(parent, least);
      parent = least;
    }
  }

  private isBefore(one: number, other: number): boolean {
    const a = this.heap[one];
    const b = this.heap[other];
    if (a === undefined || b === undefined) return false;
    return a.at !== b.at ? a.at < b.at : a.sequence < b.sequence;
  }

  private swap(one: number, other: number): void {
    const a = this.heap[one];
    const b = this.heap[other];
    if (a === undefined || b === undefined) return;
    this.heap[one] = b;
    this.heap[other] = a;
  }
}
