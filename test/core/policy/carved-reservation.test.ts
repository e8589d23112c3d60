/** What a child plan may spend is a reservation of its parent (design section 7, "Budgets"): its cap while it runs, settled at its end. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Limit } from '../../../src/core/guard-policy.ts';
import { EMPTY_LEDGER, type PlanLedger, remaining, reserve, reservedMicroUsd, settle, spentMicroUsd } from '../../../src/core/ledger.ts';
import { toUsd } from '../../../src/core/money.ts';

const DAY = '2026-11-03';
const numRuns = Number(process.env['FC_RUNS'] ?? 2000);
const capOf = (value: number): Limit => ({ value, field: 'tool_budget', origin: 'plan', ceiling: null });

const ops = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('carve' as const), child: fc.integer({ min: 0, max: 3 }), amount: fc.integer({ min: 0, max: 400 }) }),
    fc.record({
      kind: fc.constant('spend' as const),
      who: fc.integer({ min: -1, max: 3 }),
      amount: fc.integer({ min: 0, max: 150 }),
      /** What the tool charges of it, in percent: above 100 is an overrun. */
      percent: fc.constantFrom(0, 50, 100, 130),
    }),
    fc.record({ kind: fc.constant('end' as const), child: fc.integer({ min: 0, max: 3 }) }),
  ),
  { maxLength: 60 },
);

describe('a child plan that spends from a reservation of its parent', () => {
  it('never makes the family authorise more than the parent may, and gives back what it did not use', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1000 }), ops, (cap, history) => {
        let parent: PlanLedger = EMPTY_LEDGER;
        const children = new Map<number, { ledger: PlanLedger; cap: Limit; id: string }>();
        let n = 0;
        for (const op of history) {
          n += 1;
          if (op.kind === 'carve') {
            if (children.has(op.child)) continue;
            const carved = reserve(parent, capOf(cap), { id: `child${n}`, amountMicroUsd: op.amount, day: DAY });
            if (!carved.ok) continue;
            parent = carved.value;
            children.set(op.child, { ledger: EMPTY_LEDGER, cap: capOf(op.amount), id: `child${n}` });
          } else if (op.kind === 'spend') {
            const child = children.get(op.who);
            if (op.who >= 0 && child === undefined) continue;
            const ledger = child?.ledger ?? parent;
            const held = reserve(ledger, child?.cap ?? capOf(cap), { id: `call${n}`, amountMicroUsd: op.amount, day: DAY });
            if (!held.ok) continue;
            // Held: what the parent has settled and reserved covers every child's authorisations. An overrun is apart: it was never authorised.
            const before = parent.settledMicroUsd + reservedMicroUsd(child === undefined ? held.value : parent);
            expect(before).toBeLessThanOrEqual(cap);
            if (child !== undefined) expect(spentMicroUsd(held.value) + reservedMicroUsd(held.value)).toBeLessThanOrEqual(child.cap.value);
            const settled = settle(held.value, `call${n}`, toUsd(Math.floor((op.amount * op.percent) / 100)));
            if (!settled.ok) throw new Error(settled.error);
            if (child === undefined) parent = settled.value.ledger;
            else child.ledger = settled.value.ledger;
          } else {
            const child = children.get(op.child);
            if (child === undefined) continue;
            const spent = spentMicroUsd(child.ledger);
            const ended = settle(parent, child.id, toUsd(spent));
            if (!ended.ok) throw new Error(ended.error);
            parent = ended.value.ledger;
            children.delete(op.child);
          }
        }
        // Everything that anybody was charged is the parent's when all have ended, overruns apart from what was within the cap.
        let total = spentMicroUsd(parent);
        for (const child of children.values()) {
          total += spentMicroUsd(child.ledger);
          const ended = settle(parent, child.id, toUsd(spentMicroUsd(child.ledger)));
          if (!ended.ok) throw new Error(ended.error);
          parent = ended.value.ledger;
        }
        expect(spentMicroUsd(parent)).toBe(total);
        expect(parent.settledMicroUsd).toBeLessThanOrEqual(cap);
        expect(reservedMicroUsd(parent)).toBe(0);
        expect(remaining(parent, capOf(cap))).toBe(Math.max(0, cap - total));
      }),
      { numRuns },
    );
  });
});
