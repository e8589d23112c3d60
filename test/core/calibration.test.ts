import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bandOf, calibrate, type JudgedGroup } from '../../src/core/calibration.ts';
import { RISK_CLASSES } from '../../src/core/tool.ts';

const judged = (confidence: number, ok: boolean, more: Partial<JudgedGroup> = {}): JudgedGroup => ({
  ...{ riskClass: 'write', confidence, ok, count: 1 },
  ...more,
});

describe('calibration', () => {
  it('of nothing counts nothing and makes no number up', () => {
    const { overall, classes } = calibrate([]);
    expect(overall).toMatchObject({ n: 0, ok: 0, okShare: null, meanConfidence: null, brier: null });
    expect(overall.bands).toHaveLength(10);
    expect(overall.bands.every(({ n, okShare }) => n === 0 && okShare === null)).toBe(true);
    expect(classes.map(({ riskClass, score }) => [riskClass, score.n, score.brier])).toEqual(RISK_CLASSES.map((each) => [each, 0, null]));
  });

  it('puts confidence beside what happened', () => {
    const { overall } = calibrate([judged(0.8, true, { count: 3 }), judged(0.8, false), judged(0.3, false, { count: 2 })]);
    expect(overall).toMatchObject({ n: 6, ok: 3, okShare: 0.5, meanConfidence: 0.633333 });
    // (3 × 0.04 + 0.64 + 2 × 0.09) / 6
    expect(overall.brier).toBe(0.156667);
    expect(overall.bands[8]).toEqual({ from: 0.8, to: 0.9, n: 4, ok: 3, okShare: 0.75, meanConfidence: 0.8 });
    expect(overall.bands[3]).toEqual({ from: 0.3, to: 0.4, n: 2, ok: 0, okShare: 0, meanConfidence: 0.3 });
  });

  it('keeps classes apart', () => {
    const { classes } = calibrate([judged(0.9, true), judged(0.9, false, { riskClass: 'read' })]);
    expect(classes.map(({ score }) => [score.n, score.brier])).toEqual([
      [1, 0.81],
      [1, 0.01],
      [0, null],
      [0, null],
      [0, null],
      [0, null],
    ]);
  });

  it.each([
    [0, 0],
    [0.099999, 0],
    [0.1, 1],
    [0.3, 3],
    [0.6, 6],
    [0.699999, 6],
    [0.7, 7],
    [0.999999, 9],
    [1, 9],
  ])('puts %f into band %i', (confidence, band) => {
    expect(bandOf(confidence)).toBe(band);
  });

  it('puts what arithmetic makes of a tenth where the tenth belongs', () => {
    expect([1 - 0.9, 1 - 0.8, 0.1 + 0.2].map(bandOf)).toEqual([1, 2, 3]);
  });

  const groups = fc.array(
    fc.record({
      riskClass: fc.constantFrom(...RISK_CLASSES),
      confidence: fc.integer({ min: 0, max: 1_000_000 }).map((millionths) => millionths / 1e6),
      ok: fc.boolean(),
      count: fc.integer({ min: 1, max: 1_000 }),
    }),
  );

  it('adds up: bands and classes hold every decision once, however the groups are cut', () => {
    fc.assert(
      fc.property(groups, (all) => {
        const { overall, classes } = calibrate(all);
        const total = (each: readonly { readonly n: number; readonly ok: number }[]) => [
          each.reduce((sum, { n }) => sum + n, 0),
          each.reduce((sum, { ok }) => sum + ok, 0),
        ];
        expect(total(overall.bands)).toEqual([overall.n, overall.ok]);
        expect(total(classes.map(({ score }) => score))).toEqual([overall.n, overall.ok]);
        const single = all.flatMap((group) => Array.from({ length: Math.min(group.count, 20) }, () => ({ ...group, count: 1 })));
        const capped = all.map((group) => ({ ...group, count: Math.min(group.count, 20) }));
        expect(calibrate(single).overall.brier ?? 0).toBeCloseTo(calibrate(capped).overall.brier ?? 0, 5);
      }),
    );
  });

  it('gives a Brier score from 0 to 1: 0 for a prophet, 1 for his opposite', () => {
    fc.assert(
      fc.property(groups, (all) => {
        const { brier } = calibrate(all).overall;
        expect(brier === null ? all.length === 0 : brier >= 0 && brier <= 1).toBe(true);
        if (all.length === 0) return;
        expect(calibrate(all.map((group) => ({ ...group, confidence: group.ok ? 1 : 0 }))).overall.brier).toBe(0);
        expect(calibrate(all.map((group) => ({ ...group, confidence: group.ok ? 0 : 1 }))).overall.brier).toBe(1);
      }),
    );
  });
});
