import type { BudgetWarning } from '../../app/ports.ts';
import { type NodeState, showNode } from '../../core/budget/node-state.ts';
import { CAP_WINDOWS, dayOf, windowKey } from '../../core/budget/window.ts';

/**
 * The windows of a node that are nearly used up and were not reported as such under the cap in force: 90 % of it is spent. Once per window
 * and cap; a raised cap is a new one. A cap of 0 warns of nothing: it was never there to be used.
 */
export function dueWarnings(state: NodeState, marks: readonly BudgetWarning[], nowMs: number): readonly BudgetWarning[] {
  if (CAP_WINDOWS.every((window) => state.caps[window] === null)) return [];
  const day = dayOf(nowMs);
  return showNode(state, day).caps.flatMap(({ window, capMicroUsd, spentMicroUsd, leasedMicroUsd }) => {
    if (capMicroUsd === null || capMicroUsd === 0) return [];
    if (spentMicroUsd * 10 < capMicroUsd * 9) return [];
    const key = windowKey(window, day);
    const earlier = marks.find((mark) => mark.windowKey === key);
    if (earlier !== undefined && earlier.capMicroUsd >= capMicroUsd) return [];
    return [{ window, windowKey: key, capMicroUsd, usedMicroUsd: spentMicroUsd + leasedMicroUsd, at: new Date(nowMs).toISOString() }];
  });
}
