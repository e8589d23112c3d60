import { type PlanLedger, spentMicroUsd } from '../ledger.ts';
import { addMicroUsd } from '../money.ts';
import type { LogRow } from './events.ts';

/** What one tool has cost a plan. */
export interface ToolSpend {
  /** Canonical name; null: charged without a call (what an executor outside told, what was imported). */
  readonly tool: string | null;
  /** Calls that money was reserved for or charged to, free ones included. */
  readonly calls: number;
  readonly spentMicroUsd: number;
  readonly reservedMicroUsd: number;
}

/**
 * A plan's spending by tool, from its whole log.
 *
 * Promise: exact. The sums are those of the ledger, to the micro-dollar: what no call accounts for is named as such.
 */
export class SpendByTool {
  private readonly toolOf = new Map<string, string>();
  private readonly spent = new Map<string, number>();
  private readonly calls = new Map<string, Set<string>>();

  /** Rows in the order of the log. */
  add(row: LogRow): void {
    if (row.type === 'call_decided') {
      const { call, allowed } = row.data;
      this.toolOf.set(call.id, call.tool);
      if (allowed) this.countCall(call.tool, call.id);
    } else if (row.type === 'call_settled' && row.data.charge !== null) {
      const { call_id: callId, charge } = row.data;
      const tool = this.toolOf.get(callId);
      if (tool === undefined) return;
      this.countCall(tool, callId);
      this.spent.set(tool, addMicroUsd(this.spent.get(tool) ?? 0, charge.charged_micro_usd));
    }
  }

  /** Dearest first. The ledger is that of the last row that was added. */
  result(ledger: PlanLedger): readonly ToolSpend[] {
    const reserved = new Map<string | null, number>();
    for (const { id, amountMicroUsd } of ledger.reservations) {
      const tool = this.toolOf.get(callOfReservation(id)) ?? null;
      reserved.set(tool, addMicroUsd(reserved.get(tool) ?? 0, amountMicroUsd));
    }
    const tools = [...this.calls].map(
      ([tool, calls]): ToolSpend => ({
        tool,
        calls: calls.size,
        spentMicroUsd: this.spent.get(tool) ?? 0,
        reservedMicroUsd: reserved.get(tool) ?? 0,
      }),
    );
    const withoutCall = spentMicroUsd(ledger) - addMicroUsd(...this.spent.values());
    const held = reserved.get(null) ?? 0;
    if (withoutCall > 0 || held > 0) tools.push({ tool: null, calls: 0, spentMicroUsd: withoutCall, reservedMicroUsd: held });
    return tools.toSorted(
      (one, other) =>
        other.spentMicroUsd + other.reservedMicroUsd - one.spentMicroUsd - one.reservedMicroUsd ||
        ((one.tool ?? '') < (other.tool ?? '') ? -1 : 1),
    );
  }

  private countCall(tool: string, callId: string): void {
    const calls = this.calls.get(tool) ?? new Set<string>();
    this.calls.set(tool, calls.add(callId));
  }
}

/** A reservation is named after its call and the attempt (`reservationId`). */
function callOfReservation(id: string): string {
  return id.slice(0, id.lastIndexOf('.'));
}
