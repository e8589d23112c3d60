/** What every plan index must do; the part of the port suite that has the most to say. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { BudgetRef, PlanIndex, PlanIndexRow, PlanListQuery } from '../../src/app/ports.ts';

export function planIndexSuite(adapter: string, plans: PlanIndex): void {
  describe(`${adapter}: plan index`, () => {
    it('reserves an id once per org and hides it until its first commit', async () => {
      const row = planOf(newOrg(), 'p1', { seq: 0, wakeAt: at(1) });
      expect(await plans.reserve(row)).toBe(true);
      expect(await plans.reserve({ ...row, phase: 'execute' })).toBe(false);
      expect(await plans.reserve(planOf(newOrg(), 'p1'))).toBe(true);
      expect(await plans.get(row.org, 'p1')).toEqual(row);
      expect(await walk(plans, { org: row.org, pageSize: 10 })).toEqual([]);
      await plans.upsert({ ...row, seq: 1 });
      expect(await walk(plans, { org: row.org, pageSize: 10 })).toEqual(['p1']);
    });

    it('answers null for a foreign plan', async () => {
      await plans.upsert(planOf(newOrg(), 'px'));
      expect(await plans.get(newOrg(), 'px')).toBeNull();
    });

    it('ends at the highest seq, whatever the order in which rows arrive and however often', async () => {
      const org = newOrg();
      const rows = [1, 2, 3].map((seq) => planOf(org, 'p1', { seq, state: `s${seq}`, statusAt: at(seq), project: seq === 2 ? 'x' : null }));
      for (const order of [2, 0, 1, 2, 0]) {
        const row = rows[order];
        if (row !== undefined) await plans.upsert(row);
      }
      expect(await plans.get(org, 'p1')).toEqual(rows[2]);
      expect((await page(plans, { org, pageSize: 10 })).totalSize).toBe(1);
    });

    it('walks over every plan that has not ended, those that have not committed anything too, while plans move', async () => {
      const org = newOrg();
      const live = ['submitted', 'working', 'input-required', 'auth-required'];
      const ended = ['completed', 'failed', 'canceled', 'rejected'];
      for (const [index, taskState] of [...live, ...ended].entries()) {
        await plans.upsert(planOf(org, `p${index}`, { taskState, sessionId: index % 2 === 0 ? 'even' : 'odd' }));
      }
      await plans.reserve(planOf(org, 'p9', { seq: 0, taskState: 'submitted', sessionId: 'odd' }));
      await plans.upsert(planOf(newOrg(), 'foreign'));
      const walkLive = async (sessionId: string | null, limit: number): Promise<string[]> => {
        const seen: string[] = [];
        for (;;) {
          const ids = await plans.listLive({ org, sessionId, afterPlanId: seen.at(-1) ?? '', limit });
          seen.push(...ids);
          if (ids.length < limit) return seen;
          // A status that changes meanwhile moves no plan out of the walk.
          await plans.upsert(planOf(org, 'p2', { seq: 2 + seen.length, taskState: 'working', statusAt: at(50), sessionId: 'even' }));
        }
      };
      for (const limit of [1, 2, 100]) {
        expect(await walkLive(null, limit)).toEqual(['p0', 'p1', 'p2', 'p3', 'p9']);
        expect(await walkLive('odd', limit)).toEqual(['p1', 'p3', 'p9']);
        expect(await walkLive('none', limit)).toEqual([]);
      }
    });

    it('lists newest status first, then by id, in pages of any size', async () => {
      const org = newOrg();
      for (const [id, second] of [
        ['d', 1],
        ['b', 3],
        ['a', 3],
        ['c', 2],
        ['e', 3],
      ] as const) {
        await plans.upsert(planOf(org, id, { statusAt: at(second) }));
      }
      await plans.upsert(planOf(newOrg(), 'foreign'));
      for (const pageSize of [1, 2, 3, 5, 50]) expect(await walk(plans, { org, pageSize })).toEqual(['a', 'b', 'e', 'c', 'd']);
    });

    it('says no next page when the last page is exactly full', async () => {
      const org = newOrg();
      for (const id of ['a', 'b']) await plans.upsert(planOf(org, id));
      expect(await page(plans, { org, pageSize: 2 })).toMatchObject({ nextPageToken: '', totalSize: 2 });
    });

    const filters: readonly (readonly [keyof PlanListQuery, Omit<PlanListQuery, 'org' | 'pageSize'>, Partial<PlanIndexRow>])[] = [
      ['sessionId', { sessionId: 's2' }, { sessionId: 's2' }],
      ['actionName', { actionName: 'deploy' }, { actionName: 'deploy' }],
      ['project', { project: 'site' }, { project: 'site' }],
      ['phase', { phase: 'apply' }, { phase: 'apply' }],
      ['state', { state: 'waiting' }, { state: 'waiting' }],
      ['taskState', { taskState: 'completed' }, { taskState: 'completed' }],
      ['statusAtOrAfter', { statusAtOrAfter: at(7) }, { statusAt: at(7) }],
      ['withPendingApprovals', { withPendingApprovals: true }, { pendingApprovals: 2 }],
    ];
    it.each(filters)('filters by %s, and counts what it filtered', async (_, filter, match) => {
      const org = newOrg();
      await plans.upsert(planOf(org, 'other'));
      await plans.upsert(planOf(org, 'match1', match));
      await plans.upsert(planOf(org, 'match2', match));
      const first = await page(plans, { org, pageSize: 1, ...filter });
      expect(first.rows.map(({ planId }) => planId)).toEqual(['match1']);
      expect(first.totalSize).toBe(2);
      expect(await walk(plans, { org, pageSize: 1, ...filter })).toEqual(['match1', 'match2']);
    });

    it('loses and repeats nothing while every plan changes status between the pages', async () => {
      const org = newOrg();
      const ids = Array.from({ length: 9 }, (_, n) => `p${n}`);
      for (const [n, id] of ids.entries()) await plans.upsert(planOf(org, id, { seq: 1, statusAt: at(n) }));
      let seq = 1;
      const seen = await walk(plans, { org, pageSize: 2 }, async () => {
        seq += 1;
        // To the front, in an order that differs each time, and some of them twice; two plans are new.
        for (const [n, id] of ids.entries()) await plans.upsert(planOf(org, id, { seq, statusAt: at(100 * seq + ((n * 7) % 9)) }));
        await plans.upsert(planOf(org, `p${seq % 9}`, { seq: seq + 1, statusAt: at(100 * seq + 50) }));
        await plans.upsert(planOf(org, `new${seq}`, { seq: 1, statusAt: at(0.5) }));
        seq += 1;
      });
      expect(seen).toEqual([...ids].reverse());
    });

    it('keeps a filtered walk whole when plans leave and enter the filter between the pages', async () => {
      const org = newOrg();
      for (const id of ['a', 'b', 'c', 'd']) await plans.upsert(planOf(org, id, { taskState: 'working' }));
      await plans.upsert(planOf(org, 'z', { taskState: 'input-required' }));
      const query = { org, pageSize: 1, taskState: 'working' };
      const first = await page(plans, query);
      await plans.upsert(planOf(org, 'c', { seq: 2, taskState: 'working', statusAt: at(-9) }));
      await plans.upsert(planOf(org, 'c', { seq: 3, taskState: 'completed', statusAt: at(9) }));
      await plans.upsert(planOf(org, 'a', { seq: 2, statusAt: at(10) }));
      await plans.upsert(planOf(org, 'z', { seq: 2, taskState: 'working' }));
      const rest: PlanIndexRow[] = [];
      for (let token = first.nextPageToken; token !== ''; ) {
        const next = await page(plans, { ...query, pageToken: token });
        expect(next.totalSize).toBe(4);
        rest.push(...next.rows);
        token = next.nextPageToken;
      }
      expect(rest.map(({ planId, taskState }) => [planId, taskState])).toEqual([
        ['b', 'working'],
        ['c', 'working'],
        ['d', 'working'],
      ]);
      expect(await walk(plans, query)).toEqual(['a', 'b', 'd', 'z']);
    });

    it('shows in any walk, under any changes between its pages, exactly the list of its first page', async () => {
      const states = fc.constantFrom('working', 'input-required', 'completed');
      const change = fc.record({ plan: fc.nat(7), seq: fc.integer({ min: 0, max: 6 }), second: fc.nat(5), taskState: states });
      const rounds = fc.array(fc.array(change, { maxLength: 6 }), { minLength: 1, maxLength: 6 });
      await fc.assert(
        fc.asyncProperty(
          rounds,
          fc.integer({ min: 1, max: 3 }),
          fc.option(states, { nil: undefined }),
          async (changes, pageSize, taskState) => {
            const org = newOrg();
            const query: PlanListQuery = { org, pageSize, ...(taskState === undefined ? {} : { taskState }) };
            const apply = async (round: (typeof changes)[number] | undefined) => {
              for (const { plan, seq, second, taskState } of round ?? []) {
                await plans.upsert(planOf(org, `p${plan}`, { seq, statusAt: at(second), taskState }));
              }
            };
            await apply(changes[0]);
            const whole = await page(plans, { ...query, pageSize: 50 });
            const rest = changes.slice(1);
            const seen = await walk(plans, query, () => apply(rest.shift()));
            expect(seen).toEqual(whole.rows.map(({ planId }) => planId));
          },
        ),
        { numRuns: 25 },
      );
    });

    it('shows in a walk neither a plan that was reserved before it nor one that was made after its first page', async () => {
      const org = newOrg();
      for (const id of ['b', 'c']) await plans.upsert(planOf(org, id));
      await plans.reserve(planOf(org, 'd', { seq: 0 }));
      const first = await page(plans, { org, pageSize: 1 });
      await plans.upsert(planOf(org, 'd', { seq: 1 }));
      await plans.upsert(planOf(org, 'd', { seq: 2, state: 'running' }));
      await plans.upsert(planOf(org, 'e', { seq: 1 }));
      const second = await page(plans, { org, pageSize: 5, pageToken: first.nextPageToken });
      expect(second.rows.map(({ planId }) => planId)).toEqual(['c']);
    });

    it.each([
      ['nonsense', 'nonsense'],
      ['not text of a token', '%%%'],
      ['another version', btoa('[2,0,0,0,"","",[]]').replaceAll('=', '')],
      ['JSON that is no token', btoa('{"a":1}').replaceAll('=', '')],
      ['something endless', 'A'.repeat(10_000)],
    ])('refuses a page token that is not ours: %s', async (_, pageToken) => {
      const result = await plans.list({ org: newOrg(), pageSize: 5, pageToken });
      expect(result).toMatchObject({ ok: false, error: { kind: 'invalid', issues: [{ field: 'page_token' }] } });
    });

    it('refuses a page token of another org or with other filters', async () => {
      const org = newOrg();
      for (const id of ['a', 'b']) await plans.upsert(planOf(org, id));
      const { nextPageToken: pageToken } = await page(plans, { org, pageSize: 1 });
      const refusal = { ok: false, error: { kind: 'invalid', issues: [{ field: 'page_token' }] } };
      expect(await plans.list({ org: newOrg(), pageSize: 1, pageToken })).toMatchObject(refusal);
      expect(await plans.list({ org, pageSize: 1, pageToken, state: 'waiting' })).toMatchObject(refusal);
      expect(await plans.list({ org, pageSize: 5, pageToken })).toMatchObject({ ok: true, value: { rows: [{ planId: 'b' }] } });
    });

    it('lists the waiting plans of one session, newest first, at most as many as asked', async () => {
      const org = newOrg();
      const rows = [
        planOf(org, 'old', { taskState: 'input-required', statusAt: at(1) }),
        planOf(org, 'new', { taskState: 'auth-required', statusAt: at(3) }),
        planOf(org, 'mid', { taskState: 'input-required', statusAt: at(2) }),
        planOf(org, 'working', { taskState: 'working', statusAt: at(4) }),
        planOf(org, 'elsewhere', { taskState: 'input-required', sessionId: 's2' }),
        planOf(org, 'reserved', { taskState: 'input-required', seq: 0 }),
        planOf(newOrg(), 'foreign', { taskState: 'input-required' }),
      ];
      for (const row of rows) await plans.upsert(row);
      expect((await plans.listWaiting(org, 's1', 10)).map(({ planId }) => planId)).toEqual(['new', 'mid', 'old']);
      expect((await plans.listWaiting(org, 's1', 2)).map(({ planId }) => planId)).toEqual(['new', 'mid']);
    });

    it('lists what is overdue across orgs, longest first, reserved plans too', async () => {
      // Long before every other test's times, since this list has no org.
      const early = (n: number) => new Date(Date.UTC(1971, 0, 1) + n * 1_000).toISOString();
      const orgs = [newOrg(), newOrg()] as const;
      await plans.upsert(planOf(orgs[0], 'o2', { wakeAt: early(2) }));
      await plans.upsert(planOf(orgs[1], 'o1', { wakeAt: early(1) }));
      await plans.reserve(planOf(orgs[0], 'o3', { wakeAt: early(3), seq: 0 }));
      await plans.upsert(planOf(orgs[0], 'later', { wakeAt: early(4) }));
      await plans.upsert(planOf(orgs[0], 'never', { wakeAt: null }));
      expect((await plans.listOverdue(early(4), 10)).map(({ planId }) => planId)).toEqual(['o1', 'o2', 'o3']);
      expect((await plans.listOverdue(early(4), 1)).map(({ planId }) => planId)).toEqual(['o1']);
    });

    it('tells the spending of plans by tool and by plan, biggest first, of an org, a session or a profile', async () => {
      const org = newOrg();
      const spend = (day: string, tool: string | null, spentMicroUsd: number, reservedMicroUsd = 0) => ({
        day,
        tool,
        spentMicroUsd,
        reservedMicroUsd,
      });
      const [day, other] = ['2026-11-03', '2026-11-02'];
      await plans.upsert(planOf(org, 'a', { sessionId: 's1' }), {
        profile: 'frugal',
        rows: [spend(day, 't1', 5, 2), spend(other, 't1', 3), spend(other, null, 1, 4)],
      });
      await plans.upsert(planOf(org, 'b', { sessionId: 's2' }), { profile: 'other', rows: [spend(day, 't2', 20)] });
      await plans.upsert(planOf(newOrg(), 'a', { sessionId: 's1' }), { profile: 'frugal', rows: [spend(day, 't1', 1000)] });
      const amounts = (spentMicroUsd: number, reservedMicroUsd: number) => ({ spentMicroUsd, reservedMicroUsd });
      const read = (of: BudgetRef, limit = 10) => plans.spending({ org, of, day, limit });
      const at = planOf(org, 'a').updatedAt;
      const ofA = {
        ...amounts(9, 6),
        spentIn: { total: 9, monthly: 9, daily: 5 },
        reservedIn: { total: 6, monthly: 6, daily: 2 },
        tools: [
          { tool: 't1', ...amounts(8, 2) },
          { tool: null, ...amounts(1, 4) },
        ],
        toolCount: 2,
        plans: [{ planId: 'a', sessionId: 's1', at, ...amounts(9, 6) }],
        planCount: 1,
        reservedByChild: new Map([['a', 6]]),
      };
      expect(await read({ kind: 'session', id: 's1' })).toEqual(ofA);
      expect(await read({ kind: 'profile', name: 'frugal' })).toEqual(ofA);
      expect(await read({ kind: 'org' }, 1)).toEqual({
        ...amounts(29, 6),
        spentIn: { total: 29, monthly: 29, daily: 25 },
        reservedIn: { total: 6, monthly: 6, daily: 2 },
        tools: [{ tool: 't2', ...amounts(20, 0) }],
        toolCount: 3,
        plans: [{ planId: 'b', sessionId: 's2', at, ...amounts(20, 0) }],
        planCount: 2,
        reservedByChild: new Map([['s1', 6]]),
      });
      expect(await read({ kind: 'session', id: 'nobody' })).toMatchObject({
        ...amounts(0, 0),
        tools: [],
        toolCount: 0,
        plans: [],
        planCount: 0,
      });
    });

    it('forgets what is held no longer, moves with its plan, and takes no earlier word for a later one', async () => {
      const org = newOrg();
      const row = (tool: string, spentMicroUsd: number, reservedMicroUsd: number) => ({
        day: '2026-11-03',
        tool,
        spentMicroUsd,
        reservedMicroUsd,
      });
      const read = async (of: BudgetRef) => {
        const { spentMicroUsd, reservedMicroUsd } = await plans.spending({ org, of, day: '2026-11-03', limit: 10 });
        return [spentMicroUsd, reservedMicroUsd];
      };
      await plans.upsert(planOf(org, 'a', { seq: 2, sessionId: 's1' }), { profile: 'other', rows: [row('t1', 0, 7), row('t2', 0, 1)] });
      await plans.upsert(planOf(org, 'a', { seq: 4, sessionId: 's2' }), { profile: 'frugal', rows: [row('t2', 3, 0)] });
      expect(await plans.upsert(planOf(org, 'a', { seq: 3, sessionId: 's1' }), { profile: 'other', rows: [row('t1', 0, 7)] })).toBe(false);
      await plans.upsert(planOf(org, 'a', { seq: 5, sessionId: 's2' }));
      expect(await read({ kind: 'org' })).toEqual([3, 0]);
      expect(await read({ kind: 'session', id: 's2' })).toEqual([3, 0]);
      expect(await read({ kind: 'profile', name: 'frugal' })).toEqual([3, 0]);
      expect(await read({ kind: 'session', id: 's1' })).toEqual([0, 0]);
    });

    it('says of a plan that was closed that it holds nothing and has spent what it was charged, however often that is told', async () => {
      const org = newOrg();
      const [day, next] = ['2026-11-03', '2026-11-04'];
      const plan = planOf(org, 'a', { seq: 2, sessionId: 's1', profile: 'frugal' });
      const rows = [
        { day, tool: 't1', spentMicroUsd: 5, reservedMicroUsd: 7 },
        { day, tool: null, spentMicroUsd: 1, reservedMicroUsd: 0 },
      ];
      await plans.upsert(plan, { profile: 'frugal', rows });
      await plans.upsert(planOf(org, 'b', { seq: 1, sessionId: 's1' }), {
        profile: 'other',
        rows: [{ ...rows[0], day, tool: 't1' } as never],
      });
      const days = [
        { day, chargedMicroUsd: 20 },
        { day: next, chargedMicroUsd: 4 },
      ];
      for (let times = 0; times < 2; times += 1) await plans.closeSpending(plan, { days });
      const spending = await plans.spending({ org, of: { kind: 'profile', name: 'frugal' }, day, limit: 10 });
      expect(spending).toMatchObject({ spentMicroUsd: 24, reservedMicroUsd: 0 });
      expect(spending.tools).toEqual([
        { tool: null, spentMicroUsd: 19, reservedMicroUsd: 0 },
        { tool: 't1', spentMicroUsd: 5, reservedMicroUsd: 0 },
      ]);
      // What is known to be spent is not taken back by one who knows less, and another plan is another's.
      await plans.closeSpending(plan, { days: [{ day, chargedMicroUsd: 3 }] });
      const all = await plans.spending({ org, of: { kind: 'session', id: 's1' }, day, limit: 10 });
      expect(all).toMatchObject({ spentMicroUsd: 29, reservedMicroUsd: 7 });
    });
  });
}

/** The ids of a whole walk; `between` runs after every page but the last. */
async function walk(plans: PlanIndex, query: PlanListQuery, between: () => Promise<void> = async () => {}): Promise<string[]> {
  const seen: string[] = [];
  let pageToken = '';
  do {
    const { rows, nextPageToken } = await page(plans, { ...query, pageToken });
    seen.push(...rows.map(({ planId }) => planId));
    pageToken = nextPageToken;
    if (pageToken !== '') await between();
  } while (pageToken !== '');
  return seen;
}

async function page(plans: PlanIndex, query: PlanListQuery) {
  const result = await plans.list(query);
  if (!result.ok) throw new Error(result.error.message);
  expect(result.value.rows.length).toBeLessThanOrEqual(query.pageSize);
  return result.value;
}

function newOrg(): string {
  return `org-${crypto.randomUUID()}`;
}

function at(n: number): string {
  return new Date(Date.UTC(2026, 0, 1) + n * 1_000).toISOString();
}

function planOf(org: string, planId: string, more: Partial<PlanIndexRow> = {}): PlanIndexRow {
  return {
    org,
    planId,
    sessionId: 's1',
    actionName: 'commands',
    project: null,
    profile: 'manual',
    phase: 'strategize',
    state: 'running',
    taskState: 'working',
    createdBy: 'k1',
    createdAt: at(0),
    updatedAt: at(0),
    statusAt: at(0),
    seq: 1,
    wakeAt: null,
    pendingApprovals: 0,
    ...more,
  };
}
