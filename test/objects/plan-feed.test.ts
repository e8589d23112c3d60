import { runInDurableObject } from 'cloudflare:test';
import { describe, expect, it } from 'vitest';
import type { PlanFeedItem } from '../../src/app/ports.ts';
import { evolve } from '../../src/core/plan/evolve.ts';
import type { Plan } from '../../src/core/plan/plan.ts';
import { updateOf } from '../../src/core/plan/snapshot.ts';
import type { Principal } from '../../src/core/principal.ts';
import {
  alarmOf,
  answer,
  cancel,
  crash,
  evict,
  isSettled,
  isTerminal,
  logOf,
  newOrg,
  onlyPending,
  pause,
  performed,
  planOf,
  startSteps,
  stubOf,
  until,
} from './plan-support.ts';

const steps = (label: string, size: number, ms = 5) => [
  { ask: 'May it begin?' },
  ...Array.from({ length: size }, (_, index) => ({ call: { tool: 'test/slow', arguments: { label, ms, padding: `${index}` } } })),
  { say: 'half' },
  { artifact: { id: 'notes', text: 'done' } },
];

interface Follower {
  readonly items: PlanFeedItem[];
  readonly done: Promise<void>;
  readonly abort: AbortController;
}

async function follow(person: Principal, planId: string, afterSeq: number | null = null, maxMs = 30_000): Promise<Follower> {
  const abort = new AbortController();
  const feed = await planOf(person, planId).follow({ afterSeq, signal: abort.signal, maxMs });
  if (feed === null) throw new Error('there is no such plan');
  const items: PlanFeedItem[] = [];
  const done = (async () => {
    for await (const item of feed) items.push(item);
  })();
  return { items, done, abort };
}

const seqs = (items: readonly PlanFeedItem[]) => items.map((item) => (item.kind === 'snapshot' ? item.snapshot.plan.seq : item.update.seq));

/** The rows of the log that followers learn of, as the log itself says. */
async function newsAfter(person: Principal, planId: string, seq: number): Promise<readonly number[]> {
  let state: Plan | null = null;
  const news: number[] = [];
  for (const row of await logOf(person, planId)) {
    const after: Plan = evolve(state, row);
    if (row.seq > seq && updateOf(state, row, after, () => null) !== null) news.push(row.seq);
    state = after;
  }
  return news;
}

async function begin(person: Principal, planId: string): Promise<void> {
  const question = onlyPending(await until(person, planId, isSettled));
  await answer(person, planId, question, { decision: 'answer', text: 'yes' });
}

const socketsOf = (person: Principal, planId: string) =>
  runInDurableObject(stubOf(person, planId), (_object, state) => state.getWebSockets().length);

describe('the feed of a plan', () => {
  it('brings three followers the plan as it is, then every piece of news once and in order, and ends with the plan', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, steps(person.org, 10));
    await until(person, planId, isSettled);
    const followers = await Promise.all([follow(person, planId), follow(person, planId), follow(person, planId)]);
    await begin(person, planId);
    await Promise.all(followers.map((each) => each.done));
    for (const { items } of followers) {
      const [first, ...rest] = items;
      expect(first?.kind).toBe('snapshot');
      const at = seqs(items)[0] ?? 0;
      expect(seqs(rest)).toEqual(await newsAfter(person, planId, at));
      const last = rest.at(-1);
      expect(last?.kind === 'update' && last.update.snapshot.plan.terminal).toBe(true);
      expect(rest.some((item) => item.kind === 'update' && item.update.kind === 'artifact')).toBe(true);
      expect(rest.some((item) => item.kind === 'update' && item.update.kind === 'status' && item.update.said !== null)).toBe(true);
    }
    await expect.poll(() => socketsOf(person, planId)).toBe(0);
  });

  it('resumes behind any row without a gap or a repeat, while the plan goes on', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, steps(person.org, 10));
    await begin(person, planId);
    await until(person, planId, () => performed(person.org).length >= 3);
    const resumed = await Promise.all([0, 1, 3, 7].map((seq) => follow(person, planId, seq)));
    await Promise.all(resumed.map((each) => each.done));
    for (const [index, seq] of [0, 1, 3, 7].entries()) {
      expect(seqs(resumed[index]?.items ?? [])).toEqual(await newsAfter(person, planId, seq));
    }
    const { seq } = (await until(person, planId, isTerminal)).plan;
    const late = await follow(person, planId, 2);
    await late.done;
    expect(seqs(late.items)).toEqual(await newsAfter(person, planId, 2));
    const nothing = await follow(person, planId, seq);
    await nothing.done;
    expect(nothing.items).toEqual([]);
  });

  it('shows an ended plan once and is over', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [{ say: 'hello' }]);
    await until(person, planId, isTerminal);
    const { items, done } = await follow(person, planId);
    await done;
    expect(items).toHaveLength(1);
    expect(items[0]).toMatchObject({ kind: 'snapshot', snapshot: { plan: { terminal: true } } });
  });

  it('survives the object sleeping under open followers, and leaves them nothing to notice', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, steps(person.org, 3));
    await until(person, planId, isSettled);
    const follower = await follow(person, planId);
    await expect.poll(() => follower.items.length).toBe(1);
    for (let nap = 0; nap < 3; nap += 1) {
      await evict(person, planId, 'hibernate');
      await planOf(person, planId).read();
      expect(await socketsOf(person, planId)).toBe(1);
    }
    await begin(person, planId);
    await follower.done;
    expect(seqs(follower.items).slice(1)).toEqual(await newsAfter(person, planId, seqs(follower.items)[0] ?? 0));
  });

  it('is taken up again by itself when the object was killed or closed its connections', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, steps(person.org, 10, 30));
    await until(person, planId, isSettled);
    const followers = [await follow(person, planId), await follow(person, planId, 0)];
    await evict(person, planId, 'close');
    await begin(person, planId);
    await until(person, planId, () => performed(person.org).length >= 4);
    await crash(person, planId);
    await until(person, planId, isTerminal, 20_000);
    await Promise.all(followers.map((each) => each.done));
    const [withSnapshot, fromStart] = followers.map((each) => seqs(each.items));
    expect(withSnapshot?.slice(1)).toEqual(await newsAfter(person, planId, withSnapshot?.[0] ?? 0));
    expect(fromStart).toEqual(await newsAfter(person, planId, 0));
  });

  it('delivers the end to whoever connects in the very moment of it (40 runs)', async () => {
    const person = await newOrg();
    for (let run = 0; run < 40; run += 1) {
      const planId = await startSteps(person, [{ say: 'hello' }]);
      for (let turn = 0; turn < run % 8; turn += 1) await pause(0);
      const { items, done } = await follow(person, planId);
      await done;
      const last = items.at(-1);
      const plan = last?.kind === 'snapshot' ? last.snapshot.plan : last?.update.snapshot.plan;
      expect(plan?.terminal, `run ${run}`).toBe(true);
    }
  }, 60_000);

  it('is not there for an unknown plan', async () => {
    const person = await newOrg();
    expect(
      await planOf(person, '01JAAAAAAAAAAAAAAAAAAAAAAA').follow({ afterSeq: null, signal: new AbortController().signal, maxMs: 1000 }),
    ).toBeNull();
  });
});

describe('followers that go away', () => {
  it('leave nothing behind: after 100 opened and aborted ones the object has no connection, and the plan is what it was', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, steps(person.org, 2));
    const before = await until(person, planId, isSettled);
    for (let wave = 0; wave < 10; wave += 1) {
      const followers = await Promise.all(
        Array.from({ length: 10 }, async (_, index) => {
          if (index % 2 === 0) return follow(person, planId);
          // One that goes before it has read anything at all.
          const abort = new AbortController();
          await planOf(person, planId).follow({ afterSeq: null, signal: abort.signal, maxMs: 60_000 });
          return { abort, done: Promise.resolve(), items: [] };
        }),
      );
      for (const each of followers) each.abort.abort();
      await Promise.all(followers.map((each) => each.done));
    }
    await expect.poll(() => socketsOf(person, planId)).toBe(0);
    expect(await planOf(person, planId).read()).toEqual(before);
  });

  it('by breaking off their loop or after their time close their connection', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, steps(person.org, 2));
    await until(person, planId, isSettled);
    const feed = await planOf(person, planId).follow({ afterSeq: null, signal: new AbortController().signal, maxMs: 60_000 });
    for await (const _item of feed ?? []) break;
    const timed = await follow(person, planId, null, 50);
    await timed.done;
    expect(timed.items).toHaveLength(1);
    await expect.poll(() => socketsOf(person, planId)).toBe(0);
  });

  it('one that reads slowly does not delay the plan', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, steps(person.org, 5, 1));
    await until(person, planId, isSettled);
    const feed = await planOf(person, planId).follow({ afterSeq: null, signal: new AbortController().signal, maxMs: 60_000 });
    const read: number[] = [];
    await begin(person, planId);
    const reading = (async () => {
      for await (const item of feed ?? []) {
        read.push(...seqs([item]));
        await pause(100);
      }
    })();
    await until(person, planId, isTerminal);
    expect(read.length).toBeLessThan(5);
    await reading;
    expect(read.slice(1)).toEqual(await newsAfter(person, planId, read[0] ?? 0));
  });
});

describe('a plan that waits with a follower', () => {
  it('sleeps: the object is evicted at once, nothing in it runs, and its one alarm is that of the expiry', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [{ call: { tool: 'test/slow', arguments: { label: person.org, ms: 20 } } }, { ask: 'Go on?' }]);
    await until(person, planId, isSettled);
    const follower = await follow(person, planId);
    await expect.poll(() => follower.items.length).toBe(1);
    // An eviction waits for timers and calls that are still open; a plan that waits has none.
    const began = Date.now();
    await evict(person, planId);
    expect(Date.now() - began).toBeLessThan(1_000);
    const alarm = await alarmOf(person, planId);
    expect(alarm).toBeGreaterThan(Date.now() + 5 * 24 * 3600 * 1000);
    expect(await socketsOf(person, planId)).toBe(1);
    expect((await cancel(person, planId)).ok).toBe(true);
    await follower.done;
  });
});
