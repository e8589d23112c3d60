import { runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { BudgetRef } from '../../src/app/ports.ts';
import type { CapWindow } from '../../src/core/budget/window.ts';
import { FAULTS } from '../worker/test-worker.ts';
import { budgets, crashNode, eventually, LeasePlayer, newName, nodeStub } from './lease-player.ts';

const USD = 1_000_000;
const DAY_MS = 86_400_000;
const MAY = { mayLoosen: true };
const ORG: BudgetRef = { kind: 'org' };

/** An org, a session in it, and as many plans as are wanted. */
function newWorld(plans: number) {
  const org = newName('org');
  const session: BudgetRef = { kind: 'session', id: newName('s') };
  return { org, session, plans: Array.from({ length: plans }, () => new LeasePlayer(org, session)) };
}

async function windowOf(org: string, ref: BudgetRef, window: CapWindow = 'total', day: string | null = null) {
  const found = (await budgets.node(org, ref).show(day)).caps.find((each) => each.window === window);
  if (found === undefined) throw new Error('no such window');
  return found;
}

const tables = (org: string, ref: BudgetRef): Promise<number> =>
  runInDurableObject(
    nodeStub(org, ref) as DurableObjectStub,
    (_instance, state) =>
      state.storage.sql.exec("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'budget%'").toArray().length,
  );

/** The nodes' clock and the test's: everything lives in one isolate. */
function moveDate(ms: number): void {
  if (!vi.isFakeTimers()) vi.useFakeTimers({ toFake: ['Date'], now: Date.now(), shouldAdvanceTime: false });
  vi.setSystemTime(Date.now() + ms);
}

afterEach(() => {
  vi.useRealTimers();
  FAULTS.between.clear();
});

describe('a node that was never told anything', () => {
  it.each([ORG, { kind: 'session', id: 'nobody' }, { kind: 'profile', name: 'nobody' }] as const)(
    'shows nothing spent and stores nothing, whatever it is asked ($kind)',
    async (ref) => {
      const org = newName('org');
      const node = budgets.node(org, ref);
      const shown = await node.show(null);
      expect(shown.children).toEqual([]);
      expect(shown.caps.map(({ capMicroUsd, spentMicroUsd, leasedMicroUsd }) => [capMicroUsd, spentMicroUsd, leasedMicroUsd])).toEqual([
        [null, 0, 0],
        [null, 0, 0],
        [null, 0, 0],
      ]);
      await node.freed('01JDX0000000000000000000AA', { day: shown.day, r: 5, s: 0, v: 0 });
      expect(await tables(org, ref)).toBe(0);
    },
  );
});

describe('grants', () => {
  it('go through session and org, and are refused by the level and window that is used up, to the micro-dollar', async () => {
    const { org, session, plans } = newWorld(2);
    const [one, two] = plans as [LeasePlayer, LeasePlayer];
    await budgets.node(org, session).setCaps({ daily: 1 * USD }, MAY);
    expect((await one.spend(400_000)).kind).toBe('authorised');
    expect((await two.spend(600_000)).kind).toBe('authorised');
    expect(await one.spend(1)).toEqual({
      kind: 'refused',
      refusal: { level: 'session', window: 'daily', capMicroUsd: USD, usedMicroUsd: USD },
    });
    await budgets.node(org, session).setCaps({ daily: null }, MAY);
    await budgets.node(org, ORG).setCaps({ monthly: USD + 5 }, MAY);
    expect((await one.spend(5)).kind).toBe('authorised');
    expect(await two.spend(1)).toMatchObject({ kind: 'refused', refusal: { level: 'org', window: 'monthly', capMicroUsd: USD + 5 } });
    expect(await two.spend(0)).toMatchObject({ kind: 'authorised' });
    for (const plan of plans) plan.end();
    for (const ref of [session, ORG]) {
      const seen = await eventually(
        () => windowOf(org, ref),
        ({ leasedMicroUsd }) => leasedMicroUsd === 0,
      );
      expect(seen.spentMicroUsd).toBe(USD + 5);
    }
  });

  it('take back what another plan leased and does not use', async () => {
    const { org, session, plans } = newWorld(3);
    await budgets.node(org, ORG).setCaps({ total: USD }, MAY);
    const [one, two, three] = plans as [LeasePlayer, LeasePlayer, LeasePlayer];
    expect((await one.spend(10_000)).kind).toBe('authorised');
    expect((await two.spend(10_000)).kind).toBe('authorised');
    expect((await three.spend(980_000)).kind).toBe('authorised');
    expect(one.recalls.length + two.recalls.length).toBeGreaterThan(0);
    expect(await one.spend(1)).toMatchObject({ kind: 'refused', refusal: { level: 'org', usedMicroUsd: USD } });
    expect((await windowOf(org, session)).capMicroUsd).toBeNull();
  });

  it('are busy and never refused where somebody who may hold money cannot be reached; silence frees nothing', async () => {
    const { org, session, plans } = newWorld(2);
    const [silent, asker] = plans as [LeasePlayer, LeasePlayer];
    await budgets.node(org, session).setCaps({ total: USD }, MAY);
    expect((await silent.spend(10_000)).kind).toBe('authorised');
    expect((await windowOf(org, session)).leasedMicroUsd).toBeGreaterThan(0);
    FAULTS.between.set(org, ({ operation, child }) => (operation === 'plan.recall' && child === silent.id ? 'silence' : null));
    expect(await asker.spend(980_000)).toEqual({ kind: 'busy' });
    FAULTS.between.delete(org);
    expect((await asker.spend(980_000)).kind).toBe('authorised');
  });

  it('go on over a session that dies between its commit and its answer, and over every loss of a message', async () => {
    const { org, session, plans } = newWorld(1);
    const [plan] = plans as [LeasePlayer];
    await budgets.node(org, ORG).setCaps({ total: 100 }, MAY);
    let spent = 0;
    // A plan's lost ask is busy; a session's is made up for by the session.
    for (const [operation, outcome] of [
      ['session.ask', 'busy'],
      ['org.ask', 'authorised'],
    ] as const) {
      let lost = 0;
      FAULTS.between.set(org, (call) => {
        if (call.operation !== operation || lost > 0) return null;
        lost += 1;
        return 'after';
      });
      expect((await plan.spend(10)).kind).toBe(outcome);
      expect(lost).toBe(1);
      await crashNode(org, session);
      plan.rest();
      expect((await plan.spend(10)).kind).toBe('authorised');
      spent += outcome === 'busy' ? 10 : 20;
      plan.rest();
    }
    await crashNode(org, session);
    await crashNode(org, ORG);
    plan.crash();
    expect((await plan.spend(100 - spent)).kind).toBe('authorised');
    expect(await plan.spend(1)).toMatchObject({ kind: 'refused', refusal: { level: 'org', usedMicroUsd: 100 } });
    plan.end();
    expect(
      await eventually(
        () => windowOf(org, ORG),
        ({ leasedMicroUsd }) => leasedMicroUsd === 0,
      ),
    ).toMatchObject({
      spentMicroUsd: 100,
      remainingMicroUsd: 0,
      excessMicroUsd: 0,
    });
  });

  it('end as busy with the object that dies while they wait, which keeps what it had committed', async () => {
    const { org, session, plans } = newWorld(2);
    const [silent, asker] = plans as [LeasePlayer, LeasePlayer];
    await budgets.node(org, session).setCaps({ total: USD }, MAY);
    expect((await silent.spend(10_000)).kind).toBe('authorised');
    let waits = false;
    FAULTS.between.set(org, ({ operation }) => {
      if (operation !== 'plan.recall') return null;
      waits = true;
      return 'silence';
    });
    const asked = asker.spend(980_000);
    await eventually(async () => waits, Boolean);
    await runInDurableObject(nodeStub(org, session) as DurableObjectStub, (_instance, state) => state.abort('killed by a test')).catch(
      () => undefined,
    );
    expect(await asked).toEqual({ kind: 'busy' });
    FAULTS.between.delete(org);
    expect((await asker.spend(980_000)).kind).toBe('authorised');
    expect((await asker.spend(10_000)).kind).toBe('authorised');
    expect(await asker.spend(1)).toMatchObject({ kind: 'refused', refusal: { level: 'session', usedMicroUsd: USD } });
  });
});

describe('caps that change while plans run', () => {
  it('are lowered: what is unused is recalled before it is answered, what is reserved stays, and those not reached are named', async () => {
    const { org, session, plans } = newWorld(2);
    const [one, two] = plans as [LeasePlayer, LeasePlayer];
    const node = budgets.node(org, session);
    await node.setCaps({ total: 100 * USD }, MAY);
    const held = await one.authorize(2 * USD);
    expect((await two.spend(1 * USD)).kind).toBe('authorised');
    expect((await windowOf(org, session)).leasedMicroUsd).toBeGreaterThan(2 * USD);
    expect(await node.setCaps({ total: 1 * USD }, { mayLoosen: false })).toMatchObject({
      ok: true,
      value: { loosened: false, unreached: [] },
    });
    expect(await windowOf(org, session)).toMatchObject({ capMicroUsd: USD, excessMicroUsd: 2 * USD, remainingMicroUsd: 0 });
    expect(await two.spend(1)).toMatchObject({ kind: 'refused', refusal: { level: 'session', capMicroUsd: USD, usedMicroUsd: 3 * USD } });
    if (held.kind !== 'authorised') throw new Error(held.kind);
    one.settle(held.id, 2 * USD);
    one.end();
    two.end();
    expect(
      await eventually(
        () => windowOf(org, session),
        ({ leasedMicroUsd }) => leasedMicroUsd === 0,
      ),
    ).toMatchObject({
      spentMicroUsd: 3 * USD,
      excessMicroUsd: 2 * USD,
    });
  });

  it('name whom they did not reach', async () => {
    const { org, session, plans } = newWorld(1);
    const [one] = plans as [LeasePlayer];
    const node = budgets.node(org, session);
    await node.setCaps({ total: 100 * USD }, MAY);
    expect((await one.spend(USD)).kind).toBe('authorised');
    FAULTS.between.set(org, ({ operation }) => (operation === 'plan.recall' ? 'before' : null));
    expect(await node.setCaps({ total: 2 * USD }, MAY)).toMatchObject({ value: { unreached: [one.id] } });
  });

  it('are raised and removed only by who may; a raise serves whoever asks next', async () => {
    const { org, session, plans } = newWorld(1);
    const [one] = plans as [LeasePlayer];
    const node = budgets.node(org, session);
    await node.setCaps({ total: 10 }, { mayLoosen: false });
    expect((await one.spend(10)).kind).toBe('authorised');
    expect((await one.spend(1)).kind).toBe('refused');
    for (const change of [{ total: 11 }, { total: null }]) {
      expect(await node.setCaps(change, { mayLoosen: false })).toEqual({ ok: false, error: 'would_loosen' });
    }
    expect(await node.setCaps({ total: 11 }, MAY)).toMatchObject({ value: { loosened: true, caps: { total: 11 } } });
    expect((await one.spend(1)).kind).toBe('authorised');
    expect((await one.spend(1)).kind).toBe('refused');
    await node.setCaps({ total: null }, MAY);
    expect((await one.spend(1_000)).kind).toBe('authorised');
  });

  it('change one window and leave the others', async () => {
    const org = newName('org');
    const node = budgets.node(org, ORG);
    await Promise.all([node.setCaps({ total: 10 }, MAY), node.setCaps({ daily: 5 }, MAY), node.setCaps({ monthly: 7 }, MAY)]);
    await crashNode(org, ORG);
    expect((await node.show(null)).caps.map(({ window, capMicroUsd }) => [window, capMicroUsd])).toEqual([
      ['total', 10],
      ['monthly', 7],
      ['daily', 5],
    ]);
  });
});

describe('days in UTC', () => {
  it('begin anew for a daily cap, and go on for the total; the alarm closes the day that is over', async () => {
    const { org, session, plans } = newWorld(1);
    const [plan] = plans as [LeasePlayer];
    const yesterday = (await budgets.node(org, session).show(null)).day;
    await budgets.node(org, session).setCaps({ daily: 100, total: 150 }, MAY);
    expect((await plan.spend(90)).kind).toBe('authorised');
    expect(await plan.spend(20)).toMatchObject({ kind: 'refused', refusal: { window: 'daily' } });
    moveDate(DAY_MS);
    plan.sweep();
    expect((await plan.spend(50)).kind).toBe('authorised');
    expect(await plan.spend(20)).toMatchObject({ kind: 'refused', refusal: { level: 'session', window: 'total', capMicroUsd: 150 } });
    plan.end();
    await eventually(
      () => windowOf(org, session),
      ({ leasedMicroUsd }) => leasedMicroUsd === 0,
    );
    await runDurableObjectAlarm(nodeStub(org, session) as DurableObjectStub);
    expect(await windowOf(org, session, 'daily', yesterday)).toMatchObject({ spentMicroUsd: 90, leasedMicroUsd: 0 });
    expect(await windowOf(org, session, 'daily')).toMatchObject({ spentMicroUsd: 50, leasedMicroUsd: 0 });
    const atOrg = await eventually(
      () => windowOf(org, ORG),
      ({ spentMicroUsd, leasedMicroUsd }) => spentMicroUsd === 140 && leasedMicroUsd === 0,
    );
    expect(atOrg.spentMicroUsd).toBe(140);
  });

  it('settle a hold in the day in which it was reserved: neither day goes below zero, and the new one is not charged for it', async () => {
    const { org, session, plans } = newWorld(1);
    const [plan] = plans as [LeasePlayer];
    const yesterday = (await budgets.node(org, session).show(null)).day;
    await budgets.node(org, session).setCaps({ daily: 100 }, MAY);
    const held = await plan.authorize(90);
    if (held.kind !== 'authorised') throw new Error(JSON.stringify(held));
    moveDate(DAY_MS);
    plan.sweep();
    expect((await plan.spend(60)).kind, 'the new day has its own 100').toBe('authorised');
    // The call comes back for less than was held for it.
    plan.settle(held.id, 70);
    plan.end();
    const seen: number[] = [];
    await eventually(
      async () => {
        const [old, today] = [await windowOf(org, session, 'daily', yesterday), await windowOf(org, session, 'daily')];
        seen.push(old.spentMicroUsd, old.leasedMicroUsd, today.spentMicroUsd, today.leasedMicroUsd);
        return { old, today };
      },
      ({ old, today }) => old.leasedMicroUsd === 0 && today.leasedMicroUsd === 0 && today.spentMicroUsd > 0,
    );
    expect(Math.min(...seen), 'never below zero').toBeGreaterThanOrEqual(0);
    expect(await windowOf(org, session, 'daily', yesterday)).toMatchObject({ spentMicroUsd: 70, leasedMicroUsd: 0 });
    expect(await windowOf(org, session, 'daily')).toMatchObject({ spentMicroUsd: 60, leasedMicroUsd: 0 });
    expect(await windowOf(org, session)).toMatchObject({ spentMicroUsd: 130, leasedMicroUsd: 0 });
  });
});

describe('what is told of a node', () => {
  it('is a warning once at nine tenths, again only under a raised cap, and it stays known', async () => {
    const { org, session, plans } = newWorld(1);
    const [plan] = plans as [LeasePlayer];
    const node = budgets.node(org, session);
    await node.setCaps({ total: 100 }, MAY);
    await plan.spend(89);
    plan.rest();
    await eventually(
      () => windowOf(org, session),
      ({ spentMicroUsd }) => spentMicroUsd === 89,
    );
    expect((await node.show(null)).warnings).toEqual([]);
    await plan.spend(1);
    plan.rest();
    const first = await eventually(
      () => node.show(null),
      ({ warnings }) => warnings.length > 0,
    );
    expect(first.warnings).toMatchObject([{ window: 'total', windowKey: 'total', capMicroUsd: 100 }]);
    await plan.spend(5);
    plan.rest();
    await eventually(
      () => windowOf(org, session),
      ({ spentMicroUsd }) => spentMicroUsd === 95,
    );
    await crashNode(org, session);
    expect((await node.show(null)).warnings).toEqual(first.warnings);
    await node.setCaps({ total: 1_000 }, MAY);
    expect((await node.show(null)).warnings).toEqual(first.warnings);
    await plan.spend(900);
    plan.rest();
    const second = await eventually(
      () => node.show(null),
      ({ warnings }) => warnings[0]?.capMicroUsd === 1_000,
    );
    expect(second.warnings).toHaveLength(1);
  });

  it('lists at most a hundred children, the biggest first, and says how many there are', async () => {
    const org = newName('org');
    const node = budgets.node(org, ORG);
    const { day } = await node.show(null);
    for (let n = 1; n <= 120; n += 1) await node.close(`s${n}`, { day, s: n, v: 0 });
    const shown = await node.show(null);
    expect(shown.childCount).toBe(120);
    expect(shown.children).toHaveLength(100);
    expect(shown.children[0]).toEqual({ child: 's120', spentMicroUsd: 120, leasedMicroUsd: 0 });
    expect(shown.children.at(-1)?.child).toBe('s21');
  });
});

describe('all plans of an org under a profile', () => {
  it('are held to the limit that is locked in each, whatever session they are in, and it is named', async () => {
    const org = newName('org');
    const ref: BudgetRef = { kind: 'profile', name: 'careful' };
    const loose = new LeasePlayer(org, ref, 1_000);
    const tight = new LeasePlayer(org, ref, 500);
    expect((await tight.spend(200)).kind).toBe('authorised');
    expect((await loose.spend(400)).kind).toBe('authorised');
    expect(await tight.spend(1)).toEqual({
      kind: 'refused',
      refusal: { level: 'profile', window: 'total', capMicroUsd: 500, usedMicroUsd: 600 },
    });
    await crashNode(org, ref);
    expect((await loose.spend(400)).kind).toBe('authorised');
    expect(await loose.spend(1)).toMatchObject({ kind: 'refused', refusal: { level: 'profile', capMicroUsd: 1_000, usedMicroUsd: 1_000 } });
    expect((await tight.spend(0)).kind).toBe('authorised');
    for (const plan of [loose, tight]) plan.end();
    expect(
      await eventually(
        () => windowOf(org, ref),
        ({ leasedMicroUsd }) => leasedMicroUsd === 0,
      ),
    ).toMatchObject({ spentMicroUsd: 1_000 });
  });
});
