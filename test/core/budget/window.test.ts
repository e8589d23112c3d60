import { describe, expect, it } from 'vitest';
import { dayOf, sameWindow, windowEndMs, windowKey } from '../../../src/core/budget/window.ts';

describe('windows', () => {
  it('are days, months and the whole, in UTC', () => {
    expect(dayOf(Date.UTC(2026, 10, 3, 23, 59, 59, 999))).toBe('2026-11-03');
    expect(dayOf(Date.UTC(2026, 10, 4))).toBe('2026-11-04');
    expect(['total', 'monthly', 'daily'].map((kind) => windowKey(kind as 'total', '2026-11-03'))).toEqual([
      'total',
      '2026-11',
      '2026-11-03',
    ]);
  });

  it('nest: one day is in one month, and every day is in the whole', () => {
    expect(sameWindow('daily', '2026-11-03', '2026-11-04')).toBe(false);
    expect(sameWindow('monthly', '2026-11-30', '2026-11-01')).toBe(true);
    expect(sameWindow('monthly', '2026-11-30', '2026-12-01')).toBe(false);
    expect(sameWindow('monthly', '2025-11-30', '2026-11-30')).toBe(false);
    expect(sameWindow('total', '2025-01-01', '2026-11-30')).toBe(true);
  });

  it('end at the next midnight, at the first of the next month over the turn of a year, or never', () => {
    const at = Date.UTC(2026, 11, 31, 23, 0);
    expect(windowEndMs('daily', at)).toBe(Date.UTC(2027, 0, 1));
    expect(windowEndMs('monthly', at)).toBe(Date.UTC(2027, 0, 1));
    expect(windowEndMs('daily', Date.UTC(2027, 0, 1))).toBe(Date.UTC(2027, 0, 2));
    expect(windowEndMs('total', at)).toBeNull();
  });
});
