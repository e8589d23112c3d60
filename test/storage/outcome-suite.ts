/** What every store of outcomes must do. */
import { describe, expect, it } from 'vitest';
import type { OutcomeRow, OutcomeStore } from '../../src/app/ports.ts';
import type { JudgedGroup } from '../../src/core/calibration.ts';

type CallRow = Exclude<OutcomeRow, { kind: 'plan' }>;
type PlanRow = Extract<OutcomeRow, { kind: 'plan' }>;

export function outcomeSuite(adapter: string, outcomes: OutcomeStore): void {
  const statistics = (org: string, more: object = {}) =>
    outcomes.statistics({ org, project: 'site', actor: 'scripted/steps', action: 'edit', ...more });
  const judged = async (org: string, more: object = {}, limit = 1_000) => (await outcomes.judged({ org, ...more }, limit)).toSorted(byText);

  describe(`${adapter}: outcomes`, () => {
    it('know nothing of an org without any', async () => {
      const org = newOrg();
      expect(await statistics(org)).toEqual({ plans: { ok: 0, total: 0 }, calls: {} });
      expect(await judged(org)).toEqual([]);
      await expect(outcomes.record([])).resolves.toBeUndefined();
    });

    it('count a row once however often it comes, and keep the first', async () => {
      const org = newOrg();
      await outcomes.record([callOf(org, 1), callOf(org, 2, { outcome: 'failed' })]);
      await outcomes.record([callOf(org, 2), callOf(org, 1, { outcome: 'failed', confidence: 0 }), callOf(org, 3)]);
      expect((await statistics(org)).calls).toEqual({ write: { ok: 2, total: 3 } });
      expect(await judged(org)).toEqual([group({ count: 2 }), group({ ok: false, count: 1 })].toSorted(byText));
    });

    it('take the last word of a plan, in whatever order its words come', async () => {
      const org = newOrg();
      const failed = planOf(org, 'p1', { seq: 5, outcome: 'failed' });
      const applied = planOf(org, 'p1', { seq: 9 });
      for (const rows of [[failed], [applied], [failed], [applied, failed]]) await outcomes.record(rows);
      expect((await statistics(org)).plans).toEqual({ ok: 1, total: 1 });
      await outcomes.record([planOf(org, 'p2', { seq: 9 })]);
      await outcomes.record([planOf(org, 'p2', { seq: 12, outcome: 'failed' })]);
      expect((await statistics(org)).plans).toEqual({ ok: 1, total: 2 });
    });

    it('count exactly the last 50 by time, not by arrival', async () => {
      const org = newOrg();
      const calls = Array.from({ length: 60 }, (_, n) => callOf(org, n + 1, { outcome: n < 10 ? 'failed' : 'ok' }));
      const plans = Array.from({ length: 60 }, (_, n) => planOf(org, `p${n}`, { at: at(n), outcome: n < 15 ? 'failed' : 'ok' }));
      await outcomes.record([...calls.slice(30), ...plans.slice(30)]);
      await outcomes.record([...calls.slice(0, 30), ...plans.slice(0, 30)]);
      expect(await statistics(org)).toEqual({ plans: { ok: 45, total: 50 }, calls: { write: { ok: 50, total: 50 } } });
      await outcomes.record([callOf(org, 99, { at: at(99), outcome: 'failed' }), callOf(org, 100, { at: at(-1), outcome: 'failed' })]);
      expect((await statistics(org)).calls).toEqual({ write: { ok: 49, total: 50 } });
    });

    it('keep orgs, projects, actors, actions and classes apart; a plan without a project is one of its own', async () => {
      const org = newOrg();
      await outcomes.record([
        callOf(org, 1),
        callOf(org, 2, { riskClass: 'read', outcome: 'failed' }),
        callOf(org, 3, { project: 'other' }),
        callOf(org, 4, { project: null, outcome: 'failed' }),
        callOf(org, 5, { actor: 'somebody' }),
        callOf(org, 6, { action: 'review' }),
        callOf(newOrg(), 7),
        planOf(org, 'p1'),
        planOf(org, 'p2', { action: 'review', outcome: 'failed' }),
        planOf(org, 'p3', { project: null, outcome: 'failed' }),
        planOf(newOrg(), 'p4'),
      ]);
      // What a call is part of does not matter to it, only who proposed it and where.
      expect(await statistics(org)).toEqual({
        plans: { ok: 1, total: 1 },
        calls: { write: { ok: 2, total: 2 }, read: { ok: 0, total: 1 } },
      });
      expect(await statistics(org, { project: null })).toEqual({ plans: { ok: 0, total: 1 }, calls: { write: { ok: 0, total: 1 } } });
      expect((await statistics(org, { actor: 'somebody' })).calls).toEqual({ write: { ok: 1, total: 1 } });
      expect((await statistics(org, { action: 'review' })).plans).toEqual({ ok: 0, total: 1 });
      const size = async (more: object) => (await judged(org, more)).reduce((n, { count }) => n + count, 0);
      expect(
        await Promise.all([{}, { project: 'site' }, { actor: 'somebody' }, { action: 'review' }, { project: 'none' }].map(size)),
      ).toEqual([6, 4, 1, 1, 0]);
    });

    it('leave gates out of the statistics, and judge one that was left to its plan by the plan as it stands', async () => {
      const org = newOrg();
      const gate = { kind: 'gate', gate: 'select_tool', riskClass: 'external_write_revertible' } as const;
      await outcomes.record([
        callOf(org, 1, { ...gate, outcome: null, planId: 'p1', confidence: 0.4 }),
        callOf(org, 2, { ...gate, outcome: 'failed', planId: 'p1', confidence: 0.5 }),
        callOf(org, 1, { ...gate, outcome: null, planId: 'p2', confidence: 0.6 }),
      ]);
      const of = (confidence: number, ok: boolean): JudgedGroup => ({ riskClass: gate.riskClass, confidence, ok, count: 1 });
      expect(await judged(org)).toEqual([of(0.5, false)]);
      await outcomes.record([planOf(org, 'p1', { seq: 3, outcome: 'failed' })]);
      expect(await judged(org)).toEqual([of(0.4, false), of(0.5, false)]);
      await outcomes.record([planOf(org, 'p1', { seq: 8 })]);
      expect(await judged(org)).toEqual([of(0.4, true), of(0.5, false)]);
      expect((await statistics(org)).calls).toEqual({});
    });

    it('judge only what had a confidence, the newest plans first, at most so many', async () => {
      const org = newOrg();
      const rows = Array.from({ length: 5 }, (_, n) => callOf(org, 1, { planId: `p${n}`, confidence: n / 10 }));
      await outcomes.record([...rows, callOf(org, 2, { planId: 'p9', confidence: null })]);
      expect((await judged(org, {}, 2)).map(({ confidence }) => confidence)).toEqual([0.3, 0.4]);
      expect(await judged(org)).toHaveLength(5);
    });

    it('take hundreds of rows with long names at once', async () => {
      const org = newOrg();
      const long = 'é'.repeat(200);
      const rows = Array.from({ length: 500 }, (_, n) => callOf(org, n + 1, { project: long, actor: long, action: long }));
      await outcomes.record(rows);
      expect(await judged(org, { project: long })).toEqual([group({ count: 500 })]);
      expect((await statistics(org, { project: long, actor: long })).calls).toEqual({ write: { ok: 50, total: 50 } });
    });
  });
}

const group = (more: Partial<JudgedGroup>): JudgedGroup => ({ riskClass: 'write', confidence: 0.69, ok: true, count: 1, ...more });

function byText(a: JudgedGroup, b: JudgedGroup): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1;
}

function newOrg(): string {
  return `org-${crypto.randomUUID()}`;
}

/** The n-th second of a day. */
function at(n: number): string {
  return new Date(Date.UTC(2026, 0, 1) + n * 1_000).toISOString();
}

function callOf(org: string, seq: number, more: Partial<CallRow> = {}): CallRow {
  return {
    ...{ org, planId: 'p', seq, kind: 'call', riskClass: 'write', actor: 'scripted/steps', action: 'edit', project: 'site' },
    ...{ confidence: 0.69, threshold: 0.7, gate: 'execute_command', outcome: 'ok', at: at(seq) },
    ...more,
  };
}

function planOf(org: string, planId: string, more: Partial<PlanRow> = {}): PlanRow {
  return { org, planId, seq: 9, kind: 'plan', actor: 'scripted/steps', action: 'edit', project: 'site', outcome: 'ok', at: at(9), ...more };
}
