/**
 * Windows of budgets, in UTC.
 *
 * Promise: accounts are kept per UTC day at every level, and days nest in months and in the whole. So any cap (total, monthly, daily, or
 * several at once) is a sum over days: a cap that is added later counts what was really spent in its window, nothing is ever reset,
 * and money is counted in the window of the instant at which it was reserved, whenever it settles.
 */

/** A UTC day, `2026-11-03`. */
export type Day = string;

export const CAP_WINDOWS = ['total', 'monthly', 'daily'] as const;
export type CapWindow = (typeof CAP_WINDOWS)[number];

/** The UTC day of an instant, given in milliseconds since the epoch. */
export function dayOf(nowMs: number): Day {
  return new Date(nowMs).toISOString().slice(0, 10);
}

/** The UTC day of an instant that is written as ISO 8601 in UTC, as in every row of a log. */
export function dayOfInstant(at: string): Day {
  return at.slice(0, 10);
}

/** The window that holds a day: `total`, `2026-11`, `2026-11-03`. */
export function windowKey(kind: CapWindow, day: Day): string {
  switch (kind) {
    case 'total':
      return 'total';
    case 'monthly':
      return day.slice(0, 7);
    case 'daily':
      return day;
  }
}

/** Whether two days count against the same cap. */
export function sameWindow(kind: CapWindow, one: Day, other: Day): boolean {
  return windowKey(kind, one) === windowKey(kind, other);
}

/** When the window that holds an instant ends, in milliseconds since the epoch; null for the one that does not. */
export function windowEndMs(kind: CapWindow, nowMs: number): number | null {
  const at = new Date(nowMs);
  switch (kind) {
    case 'total':
      return null;
    case 'monthly':
      return Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1, 1);
    case 'daily':
      return Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate() + 1);
  }
}
