import type { Day } from './budget/window.ts';
import type { Limit } from './guard-policy.ts';
import { effectiveLimit } from './guard-policy.ts';
import { addMicroUsd, MAX_AMOUNT_MICRO_USD, parseCostUsd } from './money.ts';
import type { Result } from './result.ts';
import { err, ok } from './result.ts';

/**
 * The budget of one plan: reserve → settle or release (design section 7, "Budgets"). Values in, values out.
 *
 * Promise: no reservation is made unless settled + overrun + reserved stays within cap + grants afterwards. What a tool charges
 * beyond its reservation is kept apart as overrun; it is spent all the same, so it blocks until a grant or a higher cap covers it.
 */
export interface PlanLedger {
  /** Charged so far, each charge up to its reservation. */
  readonly settledMicroUsd: number;
  /** Charged beyond reservations. */
  readonly overrunMicroUsd: number;
  /** Added to the cap by humans. */
  readonly grantedMicroUsd: number;
  /** What is open, by effect id. */
  readonly reservations: readonly Reservation[];
  /** All charges of this plan here by the UTC day on which they were reserved, overruns included: what the budgets above count. */
  readonly days: readonly DayCharges[];
  /** The same charges by day and tool: on each day their sum is that of `days`. What a budget above is told of tools. */
  readonly tools: readonly ToolCharges[];
  /** Whether the one warning was given. */
  readonly warned: boolean;
}

export interface Reservation {
  readonly id: string;
  readonly amountMicroUsd: number;
  /** The UTC day of the reservation: money counts in the window in which it was reserved, whenever it settles. */
  readonly day: Day;
  /** Canonical name of the tool that it is for; absent: for none. */
  readonly tool?: string;
}

export interface DayCharges {
  readonly day: Day;
  readonly chargedMicroUsd: number;
}

export interface ToolCharges extends DayCharges {
  /** Null: charged without a call, or for one of the tools after the first `MAX_TOOLS`. */
  readonly tool: string | null;
}

/** So many tools of a plan are told apart here; its log tells apart all of them. */
export const MAX_TOOLS = 64;

export const EMPTY_LEDGER: PlanLedger = {
  settledMicroUsd: 0,
  overrunMicroUsd: 0,
  grantedMicroUsd: 0,
  reservations: [],
  days: [],
  tools: [],
  warned: false,
};

export type LedgerRefusal =
  | { readonly kind: 'exceeded'; readonly capMicroUsd: number; readonly totalMicroUsd: number }
  | { readonly kind: 'already_reserved' }
  | { readonly kind: 'not_an_amount' };

export type SettleMark = 'estimated' | 'overrun' | 'cost_error';

export interface Settlement {
  readonly ledger: PlanLedger;
  /** The whole charge, overrun included. */
  readonly chargedMicroUsd: number;
  readonly overrunMicroUsd: number;
  readonly marks: readonly SettleMark[];
}

/** Holds `amountMicroUsd` for the effect `id` on `day`. Equal to the cap is within it. An amount of 0 is held too, so that every effect settles alike. */
export function reserve(
  ledger: PlanLedger,
  cap: Limit | null,
  { id, amountMicroUsd, day, tool }: Reservation,
): Result<PlanLedger, LedgerRefusal> {
  if (!isAmount(amountMicroUsd)) return err({ kind: 'not_an_amount' });
  if (ledger.reservations.some((reservation) => reservation.id === id)) return err({ kind: 'already_reserved' });
  const limit = effectiveLimit(cap, ledger.grantedMicroUsd);
  const totalMicroUsd = addMicroUsd(spentMicroUsd(ledger), reservedMicroUsd(ledger), amountMicroUsd);
  if (limit !== null && totalMicroUsd > limit) return err({ kind: 'exceeded', capMicroUsd: limit, totalMicroUsd });
  const held = { id, amountMicroUsd, day, ...(tool === undefined ? {} : { tool }) };
  return ok({ ...ledger, reservations: [...ledger.reservations, held] });
}

/**
 * Turns a reservation into a charge by what the tool reported, in USD: nothing → the estimate, marked; 0 → 0; less → that; more →
 * the true cost, marked overrun; no usable number or above `MAX_CHARGE_MICRO_USD` → the estimate, marked cost_error. `not_reserved`: it was settled or released before.
 */
export function settle(ledger: PlanLedger, id: string, reportedUsd: unknown): Result<Settlement, 'not_reserved'> {
  const reservation = ledger.reservations.find((open) => open.id === id);
  if (reservation === undefined) return err('not_reserved');
  const { chargedMicroUsd, marks } = chargeOf(reservation.amountMicroUsd, reportedUsd);
  const overrunMicroUsd = Math.max(0, chargedMicroUsd - reservation.amountMicroUsd);
  return ok({
    ledger: {
      ...without(ledger, id),
      settledMicroUsd: addMicroUsd(ledger.settledMicroUsd, chargedMicroUsd - overrunMicroUsd),
      overrunMicroUsd: addMicroUsd(ledger.overrunMicroUsd, overrunMicroUsd),
      ...chargedOn(ledger, reservation.day, chargedMicroUsd, reservation.tool ?? null),
    },
    chargedMicroUsd,
    overrunMicroUsd,
    marks,
  });
}

/** Gives a reservation back: the effect failed before it was dispatched. */
export function release(ledger: PlanLedger, id: string): Result<PlanLedger, 'not_reserved'> {
  return ledger.reservations.some((open) => open.id === id) ? ok(without(ledger, id)) : err('not_reserved');
}

/** Records a cost that arrives when nothing is reserved for it (a late result of a terminal plan): all of it is overrun, on the day it came. */
export function chargeLate(ledger: PlanLedger, amountMicroUsd: number, day: Day, tool: string | null): PlanLedger {
  if (!isAmount(amountMicroUsd)) return ledger;
  const overrunMicroUsd = addMicroUsd(ledger.overrunMicroUsd, amountMicroUsd);
  return { ...ledger, overrunMicroUsd, ...chargedOn(ledger, day, amountMicroUsd, tool) };
}

/** Records a cost that was allowed and spent at once, within the cap. */
export function chargeAtOnce(ledger: PlanLedger, amountMicroUsd: number, day: Day): PlanLedger {
  if (!isAmount(amountMicroUsd)) return ledger;
  const settledMicroUsd = addMicroUsd(ledger.settledMicroUsd, amountMicroUsd);
  return { ...ledger, settledMicroUsd, ...chargedOn(ledger, day, amountMicroUsd, null) };
}

/** What is charged and reserved on a day. */
export function usedOn({ days, reservations }: PlanLedger, day: Day): number {
  const charged = days.find((each) => each.day === day)?.chargedMicroUsd ?? 0;
  return addMicroUsd(charged, ...reservations.flatMap((each) => (each.day === day ? [each.amountMicroUsd] : [])));
}

/** What a plan tells of its spending, so that it can be shown above: by the day of the reservation and by tool. */
export interface SpendRow {
  readonly day: Day;
  /** Null: as in `ToolCharges`, or held for no tool. */
  readonly tool: string | null;
  readonly spentMicroUsd: number;
  readonly reservedMicroUsd: number;
}

/** Charged and reserved by day and tool. The sums are those of the ledger. */
export function spendRows({ tools, reservations }: PlanLedger): readonly SpendRow[] {
  const named = new Set(tools.map(({ tool }) => tool));
  const rows = new Map<string, SpendRow>();
  const add = (day: Day, tool: string | null, spentMicroUsd: number, reservedMicroUsd: number): void => {
    const key = JSON.stringify([day, tool]);
    const before = rows.get(key) ?? { day, tool, spentMicroUsd: 0, reservedMicroUsd: 0 };
    rows.set(key, {
      ...before,
      spentMicroUsd: addMicroUsd(before.spentMicroUsd, spentMicroUsd),
      reservedMicroUsd: addMicroUsd(before.reservedMicroUsd, reservedMicroUsd),
    });
  };
  for (const { day, tool, chargedMicroUsd } of tools) add(day, tool, chargedMicroUsd, 0);
  for (const { day, tool, amountMicroUsd } of reservations) {
    if (amountMicroUsd === 0) continue;
    const isNamed = tool !== undefined && (named.has(tool) || named.size < MAX_TOOLS);
    if (isNamed) named.add(tool);
    add(day, isNamed ? tool : null, 0, amountMicroUsd);
  }
  return [...rows.values()];
}

/** A human raises the cap by an amount. */
export function grant(ledger: PlanLedger, amountMicroUsd: number): Result<PlanLedger, LedgerRefusal> {
  if (!isAmount(amountMicroUsd)) return err({ kind: 'not_an_amount' });
  return ok({ ...ledger, grantedMicroUsd: addMicroUsd(ledger.grantedMicroUsd, amountMicroUsd) });
}

/** All that was charged. */
export function spentMicroUsd(ledger: PlanLedger): number {
  return addMicroUsd(ledger.settledMicroUsd, ledger.overrunMicroUsd);
}

export function reservedMicroUsd(ledger: PlanLedger): number {
  return addMicroUsd(...ledger.reservations.map((reservation) => reservation.amountMicroUsd));
}

/** What can still be reserved: never below 0; null without a cap. */
export function remaining(ledger: PlanLedger, cap: Limit | null): number | null {
  const limit = effectiveLimit(cap, ledger.grantedMicroUsd);
  return limit === null ? null : Math.max(0, limit - addMicroUsd(spentMicroUsd(ledger), reservedMicroUsd(ledger)));
}

/** The share of the cap that is charged or reserved, from 0 to 1 and above for an overrun; a cap of 0 is used up. Null without a cap. */
export function utilisation(ledger: PlanLedger, cap: Limit | null): number | null {
  const limit = effectiveLimit(cap, ledger.grantedMicroUsd);
  if (limit === null) return null;
  return limit === 0 ? 1 : addMicroUsd(spentMicroUsd(ledger), reservedMicroUsd(ledger)) / limit;
}

/** Whether nothing that costs anything can be reserved. */
export function isExhausted(ledger: PlanLedger, cap: Limit | null): boolean {
  return remaining(ledger, cap) === 0;
}

/** The one warning of a plan, due when 90 % of the cap is charged. A cap of 0 warns of nothing: it was never there to be used. */
export function dueWarning(ledger: PlanLedger, cap: Limit | null): { readonly spentMicroUsd: number; readonly capMicroUsd: number } | null {
  const limit = effectiveLimit(cap, ledger.grantedMicroUsd);
  if (ledger.warned || limit === null || limit === 0) return null;
  const spent = spentMicroUsd(ledger);
  return spent >= limit - Math.floor(limit / 10) ? { spentMicroUsd: spent, capMicroUsd: limit } : null;
}

/** Notes that the warning was given. */
export function markWarned(ledger: PlanLedger): PlanLedger {
  return { ...ledger, warned: true };
}

/**
 * The largest charge that is believed: a million dollars. A report above it is no usable number: thousands of charges still add up exactly
 * at every level, so one false report cannot make caps useless.
 */
export const MAX_CHARGE_MICRO_USD = 1_000_000_000_000;

/** What a tool or an executor reports that it cost, in USD. */
export function parseReportedUsd(value: unknown): Result<number, string> {
  const reported = parseCostUsd(value);
  if (!reported.ok || reported.value <= MAX_CHARGE_MICRO_USD) return reported;
  return err('is larger than the largest charge ($1000000)');
}

/** The charge for a report, apart from any ledger: what external plans and budget nodes use as well. */
export function chargeOf(
  estimateMicroUsd: number,
  reportedUsd: unknown,
): { readonly chargedMicroUsd: number; readonly marks: readonly SettleMark[] } {
  if (reportedUsd === undefined || reportedUsd === null) return { chargedMicroUsd: estimateMicroUsd, marks: ['estimated'] };
  const reported = parseReportedUsd(reportedUsd);
  if (!reported.ok) return { chargedMicroUsd: estimateMicroUsd, marks: ['cost_error'] };
  return { chargedMicroUsd: reported.value, marks: reported.value > estimateMicroUsd ? ['overrun'] : [] };
}

function chargedOn({ days, tools }: PlanLedger, day: Day, amountMicroUsd: number, tool: string | null): Pick<PlanLedger, 'days' | 'tools'> {
  if (amountMicroUsd === 0) return { days, tools };
  const named = new Set(tools.map((each) => each.tool));
  const toldOf = tool === null || named.has(tool) || named.size < MAX_TOOLS ? tool : null;
  return {
    days: withCharge(days, { day, chargedMicroUsd: amountMicroUsd }, (each) => each.day === day),
    tools: withCharge(tools, { day, tool: toldOf, chargedMicroUsd: amountMicroUsd }, (each) => each.day === day && each.tool === toldOf),
  };
}

function withCharge<T extends DayCharges>(all: readonly T[], charge: T, isOf: (each: T) => boolean): readonly T[] {
  if (!all.some(isOf)) return [...all, charge];
  return all.map((each) => (isOf(each) ? { ...each, chargedMicroUsd: addMicroUsd(each.chargedMicroUsd, charge.chargedMicroUsd) } : each));
}

function without(ledger: PlanLedger, id: string): PlanLedger {
  return { ...ledger, reservations: ledger.reservations.filter((open) => open.id !== id) };
}

function isAmount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0 && value <= MAX_AMOUNT_MICRO_USD;
}
