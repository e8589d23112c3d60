import { describe, expect, it } from 'vitest';
import { nextSweepMs } from '../../../src/core/budget/node.ts';
import { showNode } from '../../../src/core/budget/node-state.ts';
import { DRY_MS, PATIENCE_MS, REMEMBER_CLOSED_MS, REPEAT_MS, TELL_MS } from '../../../src/core/budget/protocol.ts';
import { NOON, NodeDriver, TODAY } from './node-driver.ts';

const granted = (g: number) => ({ kind: 'granted', day: TODAY, g });
const refusedBy = (level: 'session' | 'org', capMicroUsd: number, usedMicroUsd: number) => ({
  kind: 'refused',
  day: TODAY,
  refusal: { level, capMicroUsd, usedMicroUsd, window: 'total' },
});

/** A session that has leased from its org and granted to `p1` what it asked for. */
function leasedSession(lease: number, caps: { total?: number } = {}): NodeDriver {
  const session = new NodeDriver('session', caps);
  session.ask('p1', lease);
  session.above({ kind: 'granted', day: TODAY, g: lease });
  return session;
}

describe('an ask', () => {
  it('is granted what it needs, and the grant is written before it is answered', () => {
    const org = new NodeDriver('org', { total: 100 });
    const call = org.ask('s1', 30);
    expect(org.answer(call)).toEqual(granted(30));
    expect(org.wrote).toEqual([
      { table: 'account', key: `${TODAY} s1`, row: { child: 's1', day: TODAY, g: 30, r: 0, s: 0, v: 0, capMicroUsd: null } },
    ]);
  });

  it('is granted to the last micro-dollar of the cap, and not one more', () => {
    const org = new NodeDriver('org', { total: 100 });
    expect(org.answer(org.ask('s1', 100))).toEqual(granted(100));
    const call = org.ask('s2', 1);
    org.reply('s1', { left: 0 });
    expect(org.answer(call)).toEqual(refusedBy('org', 100, 100));
  });

  it('that had not seen the last grant is told of it again and gets nothing new', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 30);
    const call = org.ask('s1', 30, { seen: { g: 0, r: 0, s: 0, v: 0 } });
    expect(org.answer(call)).toEqual(granted(30));
    expect(org.wrote).toEqual([]);
  });

  it('that has seen more than was granted belongs to an account that is closed', () => {
    const org = new NodeDriver('org', { total: 100 });
    expect(org.answer(org.ask('s1', 1, { seen: { g: 5, r: 0, s: 5, v: 0 } }))).toEqual({ kind: 'closed', day: TODAY });
  });

  it('brings returns and settlements with it', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 60);
    org.ask('s1', 70, { seen: { g: 60, r: 40, s: 20, v: 0 } });
    expect(org.account('s1')).toEqual({ g: 130, r: 40, s: 20, v: 0 });
  });

  it('with want gets an even share of what is free while nobody else waits', () => {
    const org = new NodeDriver('org', { total: 100 });
    expect(org.answer(org.ask('s1', 5, { want: 50 }))).toEqual(granted(50));
    expect(org.answer(org.ask('s2', 5, { want: 50 }))).toEqual(granted(25));
  });

  it('with want gets only its need while somebody else waits', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 80);
    const head = org.ask('s2', 50, { want: 500 });
    const next = org.ask('s3', 10, { want: 500 });
    org.reply('s1', { r: 80 });
    expect(org.answer(head)).toEqual(granted(50));
    // Now it is alone: a third of the 50 that are free.
    expect(org.answer(next)).toEqual(granted(16));
  });

  it('for a first lease needs nothing, so it is never refused and moves nobody', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 100);
    expect(org.answer(org.ask('s2', 0, { want: 640 }))).toEqual(granted(0));
    expect(org.sent('recall')).toEqual([]);
  });

  it('of a node without any cap is granted at once', () => {
    const org = new NodeDriver('org');
    expect(org.answer(org.ask('s1', 5, { want: 1_000_000 }))).toEqual(granted(1_000_000));
  });

  it('against a cap of 0 is refused for anything that costs, without a call to anybody', () => {
    const org = new NodeDriver('org', { total: 0 });
    expect(org.answer(org.ask('s1', 1))).toEqual(refusedBy('org', 0, 0));
    expect(org.out).toHaveLength(1);
  });
});

describe('the queue', () => {
  it('is first come, first served: who needs less does not overtake', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 60);
    const large = org.ask('s2', 50);
    const small = org.ask('s3', 10);
    expect(org.answer(small)).toBeUndefined();
    org.reply('s1', { r: 10, s: 50 });
    expect(org.answer(large)).toEqual(granted(50));
  });

  it('has one entry per child: a later ask takes the place of the earlier, which is answered busy', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 100);
    const first = org.ask('s2', 50);
    org.ask('s3', 10);
    const again = org.ask('s2', 20);
    expect(org.answer(first)).toEqual({ kind: 'busy', day: TODAY });
    org.reply('s1', { r: 30, left: 1 });
    expect(org.answer(again)).toEqual(granted(20));
  });

  it('answers busy to whoever has waited too long, when anything happens', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 100);
    const call = org.ask('s2', 10);
    org.nowMs += PATIENCE_MS.org;
    org.freed('s1', 0, 1);
    expect(org.answer(call)).toEqual({ kind: 'busy', day: TODAY });
  });

  it('is gone after a crash, with the marks and the calls on the way; the money is not', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 100);
    const call = org.ask('s2', 10);
    org.crash();
    org.reply('s1', { r: 50 });
    expect(org.answer(call)).toBeUndefined();
    expect(org.account('s1').g).toBe(100);
  });
});

describe('a recall round', () => {
  it('asks every holder but the asker, in parallel', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 40);
    org.ask('s2', 40);
    org.ask('s1', 40, { seen: { g: 40, r: 0, s: 40, v: 0 } });
    expect(org.sent('recall').map((each) => each.child)).toEqual(['s2']);
  });

  it('asks the asker for what it holds of another day, since that may be on its way', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 90, { day: '2026-11-02' });
    org.ask('s1', 50);
    expect(org.sent('recall')).toMatchObject([{ child: 's1', recall: { day: '2026-11-02', g: 90 } }]);
  });

  it('ends early when enough has come back', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 50);
    org.ask('s2', 50);
    const call = org.ask('s3', 20);
    org.reply('s1', { r: 50 });
    expect(org.answer(call)).toEqual(granted(20));
  });

  it('that moved nothing is the ground for a refusal', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 100);
    const call = org.ask('s2', 10);
    org.reply('s1', { s: 60, left: 0 });
    expect(org.answer(call)).toEqual(refusedBy('org', 100, 100));
  });

  it('in which a holder was not reached ends in busy, never in exceeded', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 100);
    const call = org.ask('s2', 10);
    org.reply('s1', null);
    expect(org.sent('recall')).toHaveLength(1);
    org.reply('s1', null);
    expect(org.answer(call)).toEqual({ kind: 'busy', day: TODAY });
  });

  it('in which a holder has something and cannot give it ends in busy', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 100);
    const call = org.ask('s2', 10);
    org.reply('s1', { left: 40 });
    org.reply('s1', { left: 40 });
    expect(org.answer(call)).toEqual({ kind: 'busy', day: TODAY });
  });

  it('is the last after five, however much moved', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 100);
    const call = org.ask('s2', 90);
    for (let round = 1; round <= 5; round += 1) {
      expect(org.answer(call)).toBeUndefined();
      org.reply('s1', { r: round, left: 50 });
    }
    expect(org.answer(call)).toEqual({ kind: 'busy', day: TODAY });
  });

  it('leaves a holder alone that had nothing left, for five seconds', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 100);
    org.ask('s2', 10);
    org.reply('s1', { left: 0 });
    org.ask('s2', 10);
    expect(org.sent('recall')).toEqual([]);
    org.nowMs += DRY_MS;
    org.ask('s2', 10);
    expect(org.sent('recall')).toHaveLength(1);
  });

  it('asks a dry holder again once it was granted something', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 90);
    org.ask('s2', 20);
    org.reply('s1', { left: 0 });
    org.ask('s1', 10);
    org.ask('s2', 20);
    expect(org.sent('recall').map((each) => each.child)).toEqual(['s1']);
  });

  it('does not take a holder for dry by a reply that knew less than was granted', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 90);
    org.ask('s2', 95);
    // The recall is on its way; s1 is granted 10 more before it answers for its 90.
    org.nowMs += PATIENCE_MS.org;
    org.ask('s1', 10);
    org.reply('s1', { left: 0 });
    org.ask('s2', 50);
    expect(org.sent('recall').map((each) => each.child)).toEqual(['s1']);
  });
});

describe('messages that come twice, late or out of order', () => {
  it('change nothing: counts only grow', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 60);
    org.freed('s1', 20, 30);
    org.freed('s1', 10, 10);
    org.freed('s1', 20, 30);
    expect(org.account('s1')).toEqual({ g: 60, r: 20, s: 30, v: 0 });
  });

  it('cannot return more than was granted', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 60);
    org.freed('s1', 1_000, 0);
    expect(org.account('s1').r).toBe(60);
  });

  it('find a closed account closed: an ask, a return and a close from before do nothing', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 60);
    org.close('s1', 25);
    org.close('s1', 25);
    org.freed('s1', 60, 20);
    expect(org.answer(org.ask('s1', 60, { seen: { g: 0, r: 0, s: 0, v: 0 } }))).toEqual({ kind: 'closed', day: TODAY });
    expect(showNode(org.state, TODAY).caps[0]).toMatchObject({ spentMicroUsd: 25, leasedMicroUsd: 0, remainingMicroUsd: 75 });
  });

  it('are refused once closed accounts of their day are forgotten', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 60);
    org.close('s1', 25);
    org.nowMs += REMEMBER_CLOSED_MS + 86_400_000;
    org.sweep();
    expect(org.state.closed.size).toBe(0);
    expect(org.answer(org.ask('s1', 60, { seen: { g: 0, r: 0, s: 0, v: 0 } }))).toEqual({ kind: 'closed', day: TODAY });
    org.close('s1', 25);
    expect(showNode(org.state, TODAY).caps[0]?.spentMicroUsd).toBe(25);
  });
});

describe('close', () => {
  it('counts what was settled and frees the rest, with grants that never arrived', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 100);
    org.close('s1', 40);
    expect(org.account('s1')).toEqual({ g: 0, r: 0, s: 0, v: 0 });
    expect(org.answer(org.ask('s2', 60))).toEqual(granted(60));
  });

  it('takes the ask of the closed account out of the queue', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 100);
    const call = org.ask('s2', 10);
    org.close('s2', 0);
    expect(org.answer(call)).toEqual({ kind: 'closed', day: TODAY });
    expect(org.state.queue).toEqual([]);
  });

  it('counts a late cost once more, on top', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 50);
    org.close('s1', 50);
    org.close('s1', 50, 7);
    org.close('s1', 50, 7);
    expect(showNode(org.state, TODAY).caps[0]).toMatchObject({ spentMicroUsd: 57, remainingMicroUsd: 43 });
  });
});

describe('caps', () => {
  it('that are lowered recall what is unused, take back nothing that is reserved, and say when everybody has heard', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 100);
    org.caps({ total: 30 });
    expect(org.sent('recall')).toMatchObject([{ child: 's1', recall: { g: 100, max: 70 } }]);
    expect(org.sent('caps_set')).toEqual([]);
    org.reply('s1', { r: 45, s: 20, left: 0 });
    expect(org.sent('caps_set')).toEqual([{ kind: 'caps_set', call: 'caps', unreached: [] }]);
    expect(showNode(org.state, TODAY).caps[0]).toMatchObject({
      spentMicroUsd: 20,
      leasedMicroUsd: 35,
      remainingMicroUsd: 0,
      excessMicroUsd: 25,
    });
    expect(org.answer(org.ask('s2', 1))).toEqual(refusedBy('org', 30, 55));
  });

  it('that are lowered name whoever was not reached, and the sweep tries again', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 100);
    org.caps({ total: 30 });
    org.reply('s1', null);
    expect(org.sent('caps_set')).toEqual([{ kind: 'caps_set', call: 'caps', unreached: ['s1'] }]);
    expect(nextSweepMs(org.state, org.nowMs)).toBe(org.nowMs + 30_000);
    org.sweep();
    expect(org.sent('recall')).toMatchObject([{ child: 's1', recall: { max: 70 } }]);
    org.reply('s1', { r: 70 });
    expect(nextSweepMs(org.state, org.nowMs)).toBe(Date.UTC(2026, 10, 4));
  });

  it('that are raised serve whoever waits', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 100);
    const call = org.ask('s2', 10);
    org.caps({ total: 110 });
    expect(org.answer(call)).toEqual(granted(10));
    expect(org.sent('caps_set')).toEqual([{ kind: 'caps_set', call: 'caps', unreached: [] }]);
  });

  it('that are removed limit nothing', () => {
    const org = new NodeDriver('org', { total: 0 });
    org.caps({});
    expect(org.answer(org.ask('s1', 1_000))).toEqual(granted(1_000));
  });

  it('apply together, and the tightest is named', () => {
    const org = new NodeDriver('org', { total: 100, daily: 40, monthly: 60 });
    const call = org.ask('s1', 50);
    expect(org.answer(call)).toMatchObject({ refusal: { capMicroUsd: 40, window: 'daily' } });
  });

  it('of a window count what was spent in it before they were set', () => {
    const org = new NodeDriver('org');
    org.ask('s1', 5, { day: '2026-11-02' });
    org.close('s1', 5, 0, '2026-11-02');
    org.ask('s1', 3);
    org.caps({ daily: 10, monthly: 10, total: 10 });
    const rooms = showNode(org.state, TODAY).caps.map(({ window, remainingMicroUsd }) => [window, remainingMicroUsd]);
    expect(rooms).toEqual([
      ['total', 2],
      ['monthly', 2],
      ['daily', 7],
    ]);
  });

  it('of a day are whole again the next day, and what was reserved before midnight settles before midnight', () => {
    const org = new NodeDriver('org', { daily: 10, total: 15 });
    org.ask('s1', 10);
    org.nowMs += 86_400_000;
    expect(org.answer(org.ask('s1', 5, { day: '2026-11-04' }))).toEqual({ kind: 'granted', day: '2026-11-04', g: 5 });
    org.close('s1', 8);
    expect(showNode(org.state, TODAY).caps[2]).toMatchObject({ window: 'daily', spentMicroUsd: 8 });
    expect(showNode(org.state, '2026-11-04').caps.map((each) => each.spentMicroUsd + each.leasedMicroUsd)).toEqual([13, 13, 5]);
  });
});

describe('an overdraft', () => {
  it('counts on top at once, and the unused leases of others have to cover what exceeds the cap', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 50);
    org.ask('s2', 50);
    org.freed('s1', 0, 50, 20);
    expect(org.sent('recall')).toMatchObject([{ child: 's2', recall: { max: 20 } }]);
    org.reply('s2', { r: 20 });
    expect(showNode(org.state, TODAY).caps[0]).toMatchObject({
      spentMicroUsd: 70,
      leasedMicroUsd: 30,
      remainingMicroUsd: 0,
      excessMicroUsd: 0,
    });
  });

  it('of a child that never had a lease is counted all the same', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.freed('s1', 0, 0, 5);
    expect(showNode(org.state, TODAY).caps[0]).toMatchObject({ spentMicroUsd: 5, remainingMicroUsd: 95 });
  });

  it('below a session goes up at once, and again until it is acknowledged', () => {
    const session = leasedSession(10);
    session.freed('p1', 0, 10, 4);
    const freed = { kind: 'freed', freed: { day: TODAY, r: 0, s: 10, v: 4 } };
    expect(session.out).toContainEqual(freed);
    session.sweep();
    expect(session.out).toContainEqual(freed);
    session.acknowledgeFreed(0, 10, 4);
    session.sweep();
    expect(session.out).toEqual([]);
  });
});

describe('a session', () => {
  it('whose lease is short asks its org, having given back what it does not use', () => {
    const session = leasedSession(40);
    session.freed('p1', 30, 10);
    // Nothing waits, and p1 has settled all it holds: everything unused is home already.
    expect(session.sent('freed')).toEqual([{ kind: 'freed', freed: { day: TODAY, r: 30, s: 10, v: 0 } }]);
    session.ask('p2', 25, { want: 100 });
    expect(session.sent('ask')).toMatchObject([{ ask: { seen: { g: 40, r: 30, s: 10, v: 0 }, need: 25, want: 100 } }]);
  });

  it('does not ask above where its own cap is what is short', () => {
    const session = leasedSession(40, { total: 50 });
    session.ask('p2', 20);
    expect(session.sent('ask')).toEqual([]);
    expect(session.sent('recall').map((each) => each.child)).toEqual(['p1']);
  });

  it('looks through its own plans when the org refuses, and passes the refusal on when there is nothing', () => {
    const session = leasedSession(40);
    const call = session.ask('p2', 20);
    const refused = refusedBy('org', 40, 40) as Parameters<typeof session.above>[0];
    session.above(refused);
    expect(session.sent('recall').map((each) => each.child)).toEqual(['p1']);
    session.reply('p1', { left: 0 });
    session.above(refused);
    expect(session.answer(call)).toEqual(refusedBy('org', 40, 40));
  });

  it('serves its plan from what another plan gave back after the org refused', () => {
    const session = leasedSession(40);
    const call = session.ask('p2', 20);
    session.above(refusedBy('org', 40, 40) as Parameters<typeof session.above>[0]);
    session.reply('p1', { r: 25, left: 0 });
    expect(session.answer(call)).toMatchObject({ kind: 'granted', g: 20 });
  });

  it('does not take what the org said of yesterday for an answer about today', () => {
    const session = new NodeDriver('session');
    session.ask('p1', 5);
    const call = session.ask('p1', 5, { day: '2026-11-04' });
    session.above(refusedBy('org', 40, 40) as Parameters<typeof session.above>[0]);
    expect(session.answer(call)).toBeUndefined();
    expect(session.sent('ask')).toMatchObject([{ ask: { day: '2026-11-04', need: 5 } }]);
  });

  it('tells its org what was spent when nobody holds anything', () => {
    const session = leasedSession(40);
    session.close('p1', 40);
    expect(session.sent('freed')).toEqual([{ kind: 'freed', freed: { day: TODAY, r: 0, s: 40, v: 0 } }]);
  });

  it('that does not reach its org answers busy', () => {
    const session = new NodeDriver('session');
    const call = session.ask('p1', 5);
    session.above(null);
    session.above(null);
    expect(session.answer(call)).toEqual({ kind: 'busy', day: TODAY });
  });

  it('takes in a grant that comes after it stopped waiting', () => {
    const session = new NodeDriver('session');
    session.ask('p1', 5);
    session.nowMs += PATIENCE_MS.session;
    session.ask('p2', 5);
    session.above({ kind: 'granted', day: TODAY, g: 5 });
    expect(session.account('p2').g).toBe(5);
  });

  it('that is recalled gives what is free, then what its plans have unused, and says that nothing is left', () => {
    const session = leasedSession(40);
    session.recall(40, 100, 'r');
    expect(session.sent('recall')).toMatchObject([{ child: 'p1', recall: { g: 40, max: 100 } }]);
    session.reply('p1', { r: 15, s: 20, left: 0 });
    expect(session.sent('recall_reply')).toEqual([{ kind: 'recall_reply', call: 'r', reply: { day: TODAY, r: 15, s: 20, v: 0, left: 0 } }]);
    expect(session.state.watched).toBe(true);
  });

  it('that did not reach a plan says that something may be left', () => {
    const session = leasedSession(40);
    session.recall(40, 100, 'r');
    session.reply('p1', null);
    expect(session.sent('recall_reply')).toMatchObject([{ reply: { r: 0, left: 40 } }]);
    expect(session.state.watched).toBe(false);
  });

  it('that is recalled with a grant it has not seen serves its own queue first', () => {
    const session = new NodeDriver('session');
    const call = session.ask('p1', 5);
    session.recall(8, 100);
    expect(session.answer(call)).toEqual(granted(5));
    expect(session.sent('recall_reply')).toEqual([]);
    session.reply('p1', { left: 0 });
    expect(session.sent('recall_reply')).toMatchObject([{ reply: { r: 3, left: 0 } }]);
  });

  it('that is watched sends up at once what its plans free, and no longer once it is granted something', () => {
    const session = leasedSession(40);
    session.recall(40, 100);
    session.reply('p1', { r: 0, s: 20, left: 0 });
    session.freed('p1', 5, 20);
    expect(session.sent('freed')).toEqual([{ kind: 'freed', freed: { day: TODAY, r: 5, s: 20, v: 0 } }]);
    session.ask('p2', 3);
    session.above({ kind: 'granted', day: TODAY, g: 43 });
    session.freed('p1', 9, 20);
    expect(session.sent('freed')).toEqual([]);
  });

  it('says again what it gave back, until it is heard', () => {
    const session = leasedSession(40);
    session.freed('p1', 30, 10);
    const freed = { kind: 'freed', freed: { day: TODAY, r: 30, s: 10, v: 0 } };
    expect(session.out).toContainEqual(freed);
    // Its org has heard of the charge by another way, and not of the rest.
    session.acknowledgeFreed(0, 10, 0);
    expect(nextSweepMs(session.state, session.nowMs)).toBe(session.nowMs + REPEAT_MS);
    session.sweep();
    expect(session.out).toEqual([freed]);
    session.acknowledgeFreed(30, 10, 0);
    session.sweep();
    expect(session.out).toEqual([]);
  });

  it('takes itself for watched after a crash, since it may have been', () => {
    const session = leasedSession(40);
    session.crash();
    session.freed('p1', 5, 20);
    expect(session.sent('freed')).toHaveLength(1);
  });

  it('closes a day that is over when its plans have closed it, and repeats that until it is acknowledged', () => {
    const session = leasedSession(40);
    session.nowMs += 86_400_000;
    session.sweep();
    expect(session.sent('close')).toEqual([]);
    session.close('p1', 33, 2);
    const close = { kind: 'close', close: { day: TODAY, s: 33, v: 2 } };
    expect(session.out).toContainEqual(close);
    session.sweep();
    expect(session.out).toContainEqual(close);
    session.acknowledgeClose(33, 2);
    session.sweep();
    expect(session.out).toEqual([]);
    expect(nextSweepMs(session.state, session.nowMs)).toBeNull();
  });

  it('answers busy for a day that it has closed', () => {
    const session = leasedSession(40);
    session.nowMs += 86_400_000;
    session.close('p1', 40);
    expect(session.answer(session.ask('p2', 1))).toEqual({ kind: 'busy', day: TODAY });
  });

  it('that learns of a grant on a day that is over closes it', () => {
    const session = new NodeDriver('session');
    session.nowMs = NOON + 86_400_000;
    session.recall(70, 70);
    expect(session.sent('recall_reply')).toMatchObject([{ reply: { r: 70, s: 0, left: 0 } }]);
    expect(session.sent('close')).toEqual([{ kind: 'close', close: { day: TODAY, s: 0, v: 0 } }]);
  });
});

describe('the sweep of an org', () => {
  it('asks for what is still out on a day that is over: its holder may never have learned of it', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 60);
    org.sweep();
    expect(org.sent('recall')).toEqual([]);
    org.nowMs += 86_400_000;
    org.sweep();
    expect(org.sent('recall')).toMatchObject([{ child: 's1', recall: { day: TODAY, g: 60 } }]);
  });
});

describe('budget/show', () => {
  it('shows cap, spent, leased and remaining, by child, and they add up', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 40);
    org.ask('s2', 20);
    org.freed('s1', 10, 15);
    org.close('s2', 12);
    const { caps, children } = showNode(org.state, TODAY);
    expect(caps[0]).toEqual({
      window: 'total',
      capMicroUsd: 100,
      spentMicroUsd: 27,
      leasedMicroUsd: 15,
      remainingMicroUsd: 58,
      excessMicroUsd: 0,
    });
    expect(children).toEqual([
      { child: 's1', spentMicroUsd: 15, leasedMicroUsd: 15 },
      { child: 's2', spentMicroUsd: 12, leasedMicroUsd: 0 },
    ]);
  });
});

describe('a profile, whose plans bring the cap that is locked in them', () => {
  const brings = (capMicroUsd: number) => ({ capMicroUsd });

  it('grants up to the cap of the asker, and names it with the level when it refuses', () => {
    const profile = new NodeDriver('profile');
    expect(profile.answer(profile.ask('p1', 60, brings(100)))).toEqual(granted(60));
    profile.freed('p1', 0, 60);
    const call = profile.ask('p2', 41, brings(100));
    expect(profile.answer(call)).toEqual({
      kind: 'refused',
      day: TODAY,
      refusal: { level: 'profile', window: 'total', capMicroUsd: 100, usedMicroUsd: 60 },
    });
    expect(profile.answer(profile.ask('p2', 40, brings(100)))).toEqual(granted(40));
  });

  it('keeps to its own cap where that is tighter', () => {
    const profile = new NodeDriver('profile', { total: 50 });
    profile.ask('p1', 50, brings(100));
    profile.freed('p1', 0, 50);
    expect(profile.answer(profile.ask('p2', 1, brings(100)))).toMatchObject({ refusal: { capMicroUsd: 50 } });
  });

  it('takes back what a plan under a tighter cap does not use before another goes past that cap', () => {
    const profile = new NodeDriver('profile');
    profile.ask('tight', 40, brings(50));
    const call = profile.ask('loose', 60, brings(1_000));
    expect(profile.answer(call)).toBeUndefined();
    expect(profile.sent('recall').map(({ child }) => child)).toEqual(['tight']);
    profile.reply('tight', { r: 30, s: 10, left: 0 });
    expect(profile.answer(call)).toEqual(granted(60));
  });

  it('is busy while such a plan is not reached, after a crash of the node too', () => {
    const profile = new NodeDriver('profile');
    profile.ask('tight', 40, brings(50));
    profile.crash();
    const call = profile.ask('loose', 60, brings(1_000));
    profile.reply('tight', null);
    profile.reply('tight', null);
    expect(profile.answer(call)).toEqual({ kind: 'busy', day: TODAY });
  });

  it('goes past the cap of a plan that has nothing left, which then is refused', () => {
    const profile = new NodeDriver('profile');
    profile.ask('tight', 40, brings(50));
    profile.freed('tight', 0, 40);
    expect(profile.answer(profile.ask('loose', 60, brings(1_000)))).toEqual(granted(60));
    profile.freed('loose', 0, 60);
    expect(profile.answer(profile.ask('tight', 1, brings(50)))).toMatchObject({ refusal: { capMicroUsd: 50, usedMicroUsd: 100 } });
  });

  it('calls in what is unused above a cap when another overdraws', () => {
    const profile = new NodeDriver('profile');
    profile.ask('tight', 40, brings(50));
    profile.ask('loose', 5, brings(1_000));
    profile.freed('loose', 0, 5, 20);
    expect(profile.sent('recall').map(({ child, recall }) => [child, recall.max])).toEqual([['tight', 15]]);
  });
});

describe('sums of absurd charges', () => {
  it('stay safe integers that only grow, and exceed every cap', () => {
    const org = new NodeDriver('org', { total: Number.MAX_SAFE_INTEGER - 1 });
    const charge = Number.MAX_SAFE_INTEGER - 10;
    for (const child of ['s1', 's2', 's3']) {
      org.ask(child, 0, { seen: { g: 0, r: 0, s: 0, v: charge } });
    }
    const { caps, children } = showNode(org.state, TODAY);
    const total = caps.find(({ window }) => window === 'total');
    expect(total).toMatchObject({ spentMicroUsd: Number.MAX_SAFE_INTEGER, leasedMicroUsd: 0, remainingMicroUsd: 0, excessMicroUsd: 1 });
    expect(children.every((child) => Number.isSafeInteger(child.spentMicroUsd) && child.leasedMicroUsd === 0)).toBe(true);
  });
});

describe('a session with a call that is held for long', () => {
  it('tells its org all the same what the others charge: at once, then at most every second, and again where it was not heard', () => {
    const session = leasedSession(60);
    session.ask('p2', 20);
    session.above({ kind: 'granted', day: TODAY, g: 80 });
    const told = () => session.sent('freed').map(({ freed }) => freed.s);
    session.freed('p1', 0, 5);
    expect(told()).toEqual([5]);
    session.freed('p1', 0, 7);
    expect(told(), 'within the same second').toEqual([]);
    expect(nextSweepMs(session.state, session.nowMs)).toBe(NOON + TELL_MS);
    session.nowMs += TELL_MS;
    session.sweep();
    expect(told()).toEqual([7]);
    // Nobody acknowledged it: once more, but not every second.
    expect(nextSweepMs(session.state, session.nowMs)).toBe(session.nowMs + REPEAT_MS);
    session.nowMs += REPEAT_MS;
    session.sweep();
    expect(told()).toEqual([7]);
    session.acknowledgeFreed(0, 7, 0);
    expect(nextSweepMs(session.state, session.nowMs)).toBe(Date.UTC(2026, 10, 4));
    session.nowMs += TELL_MS;
    session.freed('p2', 0, 2);
    expect(told()).toEqual([9]);
    expect(
      session.wrote.map(({ table }) => table),
      'nothing is given back for it',
    ).toEqual(['account']);
  });
});

describe('a cap that is lowered below what is handed out', () => {
  it('calls in what is put aside as well, from holders with nothing left too, and hands that on to those below a session', () => {
    const org = new NodeDriver('org', { total: 100 });
    org.ask('s1', 60);
    org.ask('s2', 40);
    org.ask('s3', 10);
    expect(
      org.sent('recall').map(({ recall }) => recall.aside),
      'whoever waits for money lets others finish',
    ).toEqual([undefined, undefined]);
    org.reply('s2', { left: 0 });
    org.reply('s1', { left: 0 });
    org.caps({ total: 50 });
    expect(org.sent('recall').map(({ child, recall }) => [child, recall.aside])).toEqual([
      ['s1', true],
      ['s2', true],
    ]);
    const session = leasedSession(60);
    session.recall(60, 50, 'recall', true);
    expect(session.sent('recall').map(({ child, recall }) => [child, recall.aside])).toEqual([['p1', true]]);
  });
});
