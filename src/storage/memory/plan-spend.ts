import type { BudgetRef, ClosedSpend, PlanIndexRow, PlanSpend, Spending, SpendingQuery } from '../../app/ports.ts';
import { sameWindow } from '../../core/budget/window.ts';
import type { SpendRow } from '../../core/ledger.ts';
import { compareText } from './documents.ts';

interface Told extends SpendRow {
  readonly org: string;
  readonly planId: string;
  readonly sessionId: string;
  readonly profile: string;
  readonly at: string;
}

/** What plans tell of their spending, in memory. */
export class MemorySpend {
  private readonly byPlan = new Map<string, readonly Told[]>();

  tell({ org, planId, sessionId, updatedAt }: PlanIndexRow, { profile, rows }: PlanSpend): void {
    const key = JSON.stringify([org, planId]);
    const before = this.byPlan.get(key) ?? [];
    const isTold = (each: Told) => rows.some(({ day, tool }) => day === each.day && tool === each.tool);
    const released = before.filter((each) => !isTold(each)).map((each) => ({ ...each, reservedMicroUsd: 0 }));
    this.byPlan.set(key, [...released, ...rows.map((row) => ({ ...row, org, planId, sessionId, profile, at: updatedAt }))]);
  }

  close({ org, planId, sessionId, profile, updatedAt: at }: PlanIndexRow, { days }: ClosedSpend): void {
    const key = JSON.stringify([org, planId]);
    const rows = (this.byPlan.get(key) ?? []).map((each) => ({ ...each, reservedMicroUsd: 0 }));
    for (const { day, chargedMicroUsd } of days) {
      const told = rows.reduce((sum, row) => sum + (row.day === day ? row.spentMicroUsd : 0), 0);
      const rest = chargedMicroUsd - told;
      if (rest <= 0) continue;
      const index = rows.findIndex((row) => row.day === day && row.tool === null);
      const known = rows[index];
      if (known === undefined)
        rows.push({ org, planId, sessionId, profile, at, day, tool: null, spentMicroUsd: rest, reservedMicroUsd: 0 });
      else rows[index] = { ...known, at, spentMicroUsd: known.spentMicroUsd + rest };
    }
    this.byPlan.set(key, rows);
  }

  read({ org, of, day, limit }: SpendingQuery): Spending {
    const rows = [...this.byPlan.values()]
      .flat()
      .filter((row) => row.org === org && isOf(row, of) && row.spentMicroUsd + row.reservedMicroUsd > 0);
    const tools = groups(rows, ({ tool }) => tool ?? '').map(({ first: { tool }, sums }) => ({ tool, ...sums }));
    const plans = groups(rows, ({ planId }) => planId).map(({ first, all, sums }) => {
      const at =
        all
          .map((each) => each.at)
          .sort(compareText)
          .at(-1) ?? first.at;
      return { planId: first.planId, sessionId: first.sessionId, at, ...sums };
    });
    const children = groups(rows, (row) => (of.kind === 'org' ? row.sessionId : row.planId));
    const within = (amount: 'spentMicroUsd' | 'reservedMicroUsd') => {
      const sum = (isIn: (row: Told) => boolean) => rows.reduce((all, row) => all + (isIn(row) ? row[amount] : 0), 0);
      return { total: sum(() => true), monthly: sum((row) => sameWindow('monthly', row.day, day)), daily: sum((row) => row.day === day) };
    };
    const [spentIn, reservedIn] = [within('spentMicroUsd'), within('reservedMicroUsd')];
    return {
      spentMicroUsd: spentIn.total,
      reservedMicroUsd: reservedIn.total,
      spentIn,
      reservedIn,
      tools: tools.slice(0, limit),
      toolCount: tools.length,
      plans: plans.slice(0, limit),
      planCount: plans.length,
      reservedByChild: new Map(children.flatMap(({ key, sums }) => (sums.reservedMicroUsd === 0 ? [] : [[key, sums.reservedMicroUsd]]))),
    };
  }
}

function isOf({ sessionId, profile }: Told, of: BudgetRef): boolean {
  return of.kind === 'org' || (of.kind === 'session' ? sessionId === of.id : profile === of.name);
}

/** Biggest first. */
function groups(rows: readonly Told[], keyOf: (row: Told) => string) {
  const byKey = new Map<string, Told[]>();
  for (const row of rows) byKey.set(keyOf(row), [...(byKey.get(keyOf(row)) ?? []), row]);
  const summed = [...byKey].flatMap(([key, all]) => {
    const [first] = all;
    if (first === undefined) return [];
    const sums = {
      spentMicroUsd: all.reduce((sum, row) => sum + row.spentMicroUsd, 0),
      reservedMicroUsd: all.reduce((sum, row) => sum + row.reservedMicroUsd, 0),
    };
    return [{ key, first, all, sums }];
  });
  const size = ({ sums }: (typeof summed)[number]) => sums.spentMicroUsd + sums.reservedMicroUsd;
  return summed.sort((one, other) => size(other) - size(one) || compareText(one.key, other.key));
}
