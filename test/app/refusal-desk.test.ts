/** How refusals of one isolate reach the log of their org: at once, then together, and never lost without a word. */
import { describe, expect, it } from 'vitest';
import { type RefusalNote, refusalNote } from '../../src/core/org-log/refusals.ts';
import { RefusalDesk } from '../../src/storage/refusal-desk.ts';

const START = Date.parse('2026-11-30T12:00:00.000Z');
const note = (key: string): RefusalNote =>
  refusalNote({ kind: 'agent', id: key }, 'role_missing', 'op', null, new Date(START).toISOString());

interface World {
  readonly desk: RefusalDesk;
  readonly clock: { ms: number };
  readonly lost: RefusalNote[];
}

/** Time passes by waiting only. */
function world(): World {
  const clock = { ms: START };
  const lost: RefusalNote[] = [];
  let ids = 0;
  const desk = new RefusalDesk({
    nowMs: () => clock.ms,
    newId: () => {
      ids += 1;
      return `batch ${ids}`;
    },
    wait: async (ms) => {
      clock.ms += ms;
    },
    report: (_problem, _org, notes) => lost.push(...notes),
  });
  return { desk, clock, lost };
}

const counted = (batches: readonly (readonly RefusalNote[])[]): number => batches.flat().reduce((sum, { count }) => sum + count, 0);

describe('refusals on their way to the log of the org', () => {
  it('are sent at once, and those that come meanwhile together: one message a second at most', async () => {
    const { desk, clock } = world();
    const batches: (readonly RefusalNote[])[] = [];
    const times: number[] = [];
    const send = async (_id: string, notes: readonly RefusalNote[]) => {
      batches.push(notes);
      times.push(clock.ms - START);
    };
    const work = desk.take('acme', note('a'), send);
    for (let index = 0; index < 500; index += 1) expect(desk.take('acme', note(`k${index % 3}`), send)).toBeNull();
    await work;
    expect(counted(batches)).toBe(501);
    expect(times).toEqual([0, 1_000]);
    expect(batches[1]).toHaveLength(3);
  });

  it('of one org do not wait for those of another', async () => {
    const { desk } = world();
    const sent: string[] = [];
    const first = desk.take('acme', note('a'), () => new Promise(() => sent.push('acme')));
    const second = desk.take('other', note('a'), async () => {
      sent.push('other');
    });
    expect(first).not.toBeNull();
    await second;
    expect(sent).toEqual(['acme', 'other']);
  });

  it('are sent again under the same id where the log was not reached', async () => {
    const { desk, lost } = world();
    const ids: string[] = [];
    await desk.take('acme', note('a'), async (id) => {
      ids.push(id);
      if (ids.length < 3) throw new Error('not reached');
    });
    expect(ids).toEqual(['batch 1', 'batch 1', 'batch 1']);
    expect(lost).toEqual([]);
  });

  it('that cannot be delivered are said, not dropped silently, and those after them are sent', async () => {
    const { desk, lost } = world();
    await desk.take('acme', note('a'), async () => {
      throw new Error('not reached');
    });
    expect(lost.map(({ actor }) => actor.id)).toEqual(['a']);
    const sent: string[] = [];
    await desk.take('acme', note('b'), async (_id, notes) => {
      sent.push(...notes.map(({ actor }) => actor.id));
    });
    expect(sent).toEqual(['b']);
  });

  it('whose sender was ended by the platform are sent by the next one, under the same id', async () => {
    const { desk, clock } = world();
    const sent: { readonly id: string; readonly keys: readonly string[] }[] = [];
    // It never comes back.
    void desk.take('acme', note('a'), () => new Promise(() => {}));
    await Promise.resolve();
    expect(desk.take('acme', note('b'), async () => {})).toBeNull();
    clock.ms += 30_000;
    await desk.take('acme', note('c'), async (id, notes) => {
      sent.push({ id, keys: notes.map(({ actor }) => actor.id) });
    });
    expect(sent).toEqual([
      { id: 'batch 1', keys: ['a'] },
      { id: 'batch 2', keys: ['b', 'c'] },
    ]);
  });
});
