import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { effectiveLimit, type Limit } from '../../../src/core/guard-policy.ts';
import {
  chargeLate as chargeLateOn,
  dueWarning,
  EMPTY_LEDGER,
  grant,
  isExhausted,
  MAX_TOOLS,
  markWarned,
  type PlanLedger,
  release,
  remaining,
  reservedMicroUsd,
  reserve as reserveOn,
  settle,
  spendRows,
  spentMicroUsd,
  usedOn,
  utilisation,
} from '../../../src/core/ledger.ts';
import { parseCostUsd } from '../../../src/core/money.ts';

const DAY = '2026-11-03';
const reserve = (ledger: PlanLedger, cap: Limit | null, id: string, amountMicroUsd: number) =>
  reserveOn(ledger, cap, { id, amountMicroUsd, day: DAY });
const chargeLate = (ledger: PlanLedger, amountMicroUsd: number) => chargeLateOn(ledger, amountMicroUsd, DAY, null);

const usd = (amount: number): number => {
  const parsed = parseCostUsd(amount);
  if (!parsed.ok) throw new Error(parsed.error);
  return parsed.value;
};
const capOf = (value: number, ceiling: number | null = null): Limit => ({ value, field: 'max_total_cost', origin: 'profile', ceiling });
const CAP_1 = capOf(usd(1));

function must<T>(result: { ok: true; value: T } | { ok: false; error: unknown }): T {
  if (!result.ok) throw new Error(JSON.stringify(result.error));
  return result.value;
}
const spend = (ledger: PlanLedger, cap: Limit | null, id: string, amount: number, reported: unknown = amount): PlanLedger =>
  must(settle(must(reserve(ledger, cap, id, usd(amount))), id, reported)).ledger;

describe('reserving', () => {
  it('admits what fits and what is exactly the rest, refuses a micro-USD more', () => {
    const held = must(reserve(EMPTY_LEDGER, CAP_1, 'a', usd(0.7)));
    expect(reserve(held, CAP_1, 'b', usd(0.3)).ok).toBe(true);
    expect(reserve(held, CAP_1, 'b', usd(0.300001))).toEqual({
      ok: false,
      error: { kind: 'exceeded', capMicroUsd: 1_000_000, totalMicroUsd: 1_000_001 },
    });
  });

  it('admits exactly three of ten parallel steps of 0.30 against 1.00', () => {
    let ledger = EMPTY_LEDGER;
    let started = 0;
    for (let step = 0; step < 10; step += 1) {
      const held = reserve(ledger, CAP_1, `s${step}`, usd(0.3));
      if (!held.ok) continue;
      ledger = held.value;
      started += 1;
    }
    expect(started).toBe(3);
  });

  it('passes 2,500 charges of 0.004 against 10.00 and refuses the 2,501st', () => {
    let ledger = EMPTY_LEDGER;
    for (let n = 0; n < 2500; n += 1) ledger = spend(ledger, capOf(usd(10)), `e${n}`, 0.004);
    expect(spentMicroUsd(ledger)).toBe(10_000_000);
    expect(reserve(ledger, capOf(usd(10)), 'last', usd(0.004)).ok).toBe(false);
  });

  it('leaves exactly nothing after 0.1 and 0.7 of 0.8', () => {
    const cap = capOf(usd(0.8));
    const ledger = spend(spend(EMPTY_LEDGER, cap, 'a', 0.1), cap, 'b', 0.7);
    expect(remaining(ledger, cap)).toBe(0);
    expect(isExhausted(ledger, cap)).toBe(true);
  });

  it('takes a cap of 0 for a cap: free calls pass, paid ones do not; and no cap for none', () => {
    expect(reserve(EMPTY_LEDGER, capOf(0), 'free', 0).ok).toBe(true);
    expect(reserve(EMPTY_LEDGER, capOf(0), 'paid', 1).ok).toBe(false);
    expect(reserve(EMPTY_LEDGER, null, 'paid', usd(1_000_000)).ok).toBe(true);
    expect(utilisation(EMPTY_LEDGER, capOf(0))).toBe(1);
    expect(utilisation(EMPTY_LEDGER, null)).toBeNull();
    expect(isExhausted(EMPTY_LEDGER, capOf(0))).toBe(true);
  });

  it('lets a free call pass when the cap is used up to the last cent', () => {
    expect(reserve(spend(EMPTY_LEDGER, CAP_1, 'a', 1), CAP_1, 'free', 0).ok).toBe(true);
  });

  it('refuses a second reservation under the same id, and amounts that are none', () => {
    const held = must(reserve(EMPTY_LEDGER, CAP_1, 'a', 1));
    expect(reserve(held, CAP_1, 'a', 1)).toEqual({ ok: false, error: { kind: 'already_reserved' } });
    for (const amount of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      expect(reserve(EMPTY_LEDGER, null, 'x', amount)).toEqual({ ok: false, error: { kind: 'not_an_amount' } });
      expect(grant(EMPTY_LEDGER, amount).ok).toBe(false);
      expect(chargeLate(EMPTY_LEDGER, amount)).toEqual(EMPTY_LEDGER);
    }
  });

  it('takes a foreign word for an id like any other', () => {
    const held = must(reserve(must(reserve(EMPTY_LEDGER, null, '__proto__', 5)), null, 'constructor', 7));
    expect(reservedMicroUsd(held)).toBe(12);
    expect(reservedMicroUsd(must(release(held, '__proto__')))).toBe(7);
  });
});

describe('settling by what the tool reported', () => {
  it.each([
    ['no cost', undefined, 0.3, ['estimated'], 0],
    ['null', null, 0.3, ['estimated'], 0],
    ['zero', 0, 0, [], 0],
    ['less', 0.1, 0.1, [], 0],
    ['the same', 0.3, 0.3, [], 0],
    ['more', 0.5, 0.5, ['overrun'], 0.2],
    ['a negative cost', -0.01, 0.3, ['cost_error'], 0],
    ['NaN', Number.NaN, 0.3, ['cost_error'], 0],
    ['infinity', Number.POSITIVE_INFINITY, 0.3, ['cost_error'], 0],
    ['text', '0.10', 0.3, ['cost_error'], 0],
    ['an object', { usd: 1 }, 0.3, ['cost_error'], 0],
    ['an absurd number', 1e300, 0.3, ['cost_error'], 0],
    ['the largest charge', 1_000_000, 1_000_000, ['overrun'], 999_999.7],
    ['more than the largest charge', 1_000_000.000_001, 0.3, ['cost_error'], 0],
    ['a thousand million', 1e9, 0.3, ['cost_error'], 0],
  ])('%s', (_what, reported, charged, marks, overrun) => {
    const settled = must(settle(must(reserve(EMPTY_LEDGER, CAP_1, 'a', usd(0.3))), 'a', reported));
    expect(settled.chargedMicroUsd).toBe(usd(charged));
    expect(settled.marks).toEqual(marks);
    expect(settled.overrunMicroUsd).toBe(usd(overrun));
    expect(spentMicroUsd(settled.ledger)).toBe(usd(charged));
    expect(settled.ledger.overrunMicroUsd).toBe(usd(overrun));
    expect(settled.ledger.reservations).toEqual([]);
  });

  it('counts a report of 0.0000004 as more than nothing', () => {
    expect(must(settle(must(reserve(EMPTY_LEDGER, CAP_1, 'a', usd(0.3))), 'a', 0.0000004)).chargedMicroUsd).toBe(1);
  });

  it('shows an overrun to the next reservation, and blocks even free calls until it is covered', () => {
    const over = spend(EMPTY_LEDGER, CAP_1, 'a', 0.9, 1.2);
    expect(over).toMatchObject({ settledMicroUsd: usd(0.9), overrunMicroUsd: usd(0.3) });
    expect(reserve(over, CAP_1, 'b', 0).ok).toBe(false);
    expect(remaining(over, CAP_1)).toBe(0);
    expect(reserve(must(grant(over, usd(0.2))), CAP_1, 'b', 0).ok).toBe(true);
    expect(reserve(must(grant(over, usd(0.2))), CAP_1, 'b', 1).ok).toBe(false);
  });

  it('settles or releases once only', () => {
    const ledger = must(reserve(EMPTY_LEDGER, CAP_1, 'a', 5));
    const settled = must(settle(ledger, 'a', 0)).ledger;
    expect(settle(settled, 'a', 1)).toEqual({ ok: false, error: 'not_reserved' });
    expect(release(settled, 'a')).toEqual({ ok: false, error: 'not_reserved' });
  });

  it('gives everything back after a hundred effects that failed before dispatch', () => {
    let ledger = EMPTY_LEDGER;
    for (let n = 0; n < 100; n += 1) ledger = must(release(must(reserve(ledger, CAP_1, `e${n}`, usd(1))), `e${n}`));
    expect(remaining(ledger, CAP_1)).toBe(usd(1));
    expect(ledger).toEqual(EMPTY_LEDGER);
  });

  it('records a late cost as spent', () => {
    expect(spentMicroUsd(chargeLate(EMPTY_LEDGER, 7))).toBe(7);
  });
});

describe('the cap', () => {
  it('is lowered without taking back what is reserved, and blocks until covered', () => {
    const held = must(reserve(EMPTY_LEDGER, CAP_1, 'a', usd(0.8)));
    const lower = capOf(usd(0.5));
    expect(reserve(held, lower, 'b', 0).ok).toBe(false);
    expect(must(settle(held, 'a', 0.8)).chargedMicroUsd).toBe(usd(0.8));
    expect(remaining(held, lower)).toBe(0);
  });

  it('rises with a grant, but not past the own limit of the org', () => {
    const granted = must(grant(EMPTY_LEDGER, usd(5)));
    const cap = capOf(usd(1), usd(2));
    expect(reserve(granted, cap, 'a', usd(2)).ok).toBe(true);
    expect(reserve(granted, cap, 'a', usd(2) + 1).ok).toBe(false);
  });
});

describe('the warning', () => {
  it('comes once, when 90 % is charged', () => {
    let ledger = EMPTY_LEDGER;
    const warnedAt: number[] = [];
    for (const [index, amount] of [0.89, 0.02, 0.05].entries()) {
      ledger = spend(ledger, CAP_1, `e${index}`, amount);
      if (dueWarning(ledger, CAP_1) === null) continue;
      warnedAt.push(index);
      ledger = markWarned(ledger);
    }
    expect(warnedAt).toEqual([1]);
  });

  it('is due at exactly 90 %, never without a cap and never for a cap of 0', () => {
    expect(dueWarning(spend(EMPTY_LEDGER, CAP_1, 'a', 0.9), CAP_1)).toEqual({ spentMicroUsd: usd(0.9), capMicroUsd: usd(1) });
    expect(dueWarning(spend(EMPTY_LEDGER, CAP_1, 'a', 0.899999), CAP_1)).toBeNull();
    expect(dueWarning(spend(EMPTY_LEDGER, null, 'a', 1000), null)).toBeNull();
    expect(dueWarning(EMPTY_LEDGER, capOf(0))).toBeNull();
  });
});

type Move =
  | { kind: 'reserve'; id: number; amount: number }
  | { kind: 'settle'; id: number; reported: unknown }
  | { kind: 'release'; id: number }
  | { kind: 'grant'; amount: number }
  | { kind: 'cap'; value: number | null; ceiling: number | null };

const id = fc.nat(6);
const move: fc.Arbitrary<Move> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('reserve' as const), id, amount: fc.nat(600_000) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('settle' as const),
      id,
      reported: fc.oneof(fc.constant(undefined), fc.constant(0), fc.double({ min: 0, max: 1, noNaN: true }), fc.double(), fc.anything()),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('release' as const), id }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('grant' as const), amount: fc.nat(500_000) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('cap' as const), value: fc.option(fc.nat(2_000_000)), ceiling: fc.option(fc.nat(3_000_000)) }),
  },
);

it('never authorises past cap and grants, never lets money appear or vanish, under any order of moves', () => {
  fc.assert(
    fc.property(fc.array(move, { maxLength: 60 }), (moves) => {
      let cap: Limit | null = capOf(1_000_000);
      let ledger = EMPTY_LEDGER;
      let charged = 0;
      const open = new Map<string, number>();
      for (const next of moves) {
        if (next.kind === 'cap') {
          cap = next.value === null ? null : capOf(next.value, next.ceiling);
        } else if (next.kind === 'grant') {
          ledger = must(grant(ledger, next.amount));
        } else if (next.kind === 'reserve') {
          const before = remaining(ledger, cap);
          const held = reserve(ledger, cap, String(next.id), next.amount);
          const limit = effectiveLimit(cap, ledger.grantedMicroUsd);
          if (held.ok) {
            expect(open.has(String(next.id))).toBe(false);
            open.set(String(next.id), next.amount);
            ledger = held.value;
            if (limit !== null)
              expect(ledger.settledMicroUsd + ledger.overrunMicroUsd + reservedMicroUsd(ledger)).toBeLessThanOrEqual(limit);
          } else if (held.error.kind === 'exceeded') {
            // No false refusal either: what is refused really would not fit.
            expect(
              before === null ? false : next.amount > before || charged + [...open.values()].reduce((a, b) => a + b, 0) > (limit ?? 0),
            ).toBe(true);
          }
        } else if (next.kind === 'settle') {
          const settled = settle(ledger, String(next.id), next.reported);
          expect(settled.ok).toBe(open.has(String(next.id)));
          if (settled.ok) {
            open.delete(String(next.id));
            charged += settled.value.chargedMicroUsd;
            ledger = settled.value.ledger;
          }
        } else {
          const released = release(ledger, String(next.id));
          expect(released.ok).toBe(open.delete(String(next.id)));
          if (released.ok) ledger = released.value;
        }
        expect(spentMicroUsd(ledger)).toBe(charged);
        expect(reservedMicroUsd(ledger)).toBe([...open.values()].reduce((a, b) => a + b, 0));
        expect(ledger.settledMicroUsd >= 0 && ledger.overrunMicroUsd >= 0).toBe(true);
        const left = remaining(ledger, cap);
        expect(left === null || left >= 0).toBe(true);
      }
    }),
    { numRuns: 2000 },
  );
});

it('keeps settled, each charge up to its reservation, within the cap while the cap does not change', () => {
  fc.assert(
    fc.property(
      fc.array(
        move.filter((m) => m.kind !== 'cap'),
        { maxLength: 60 },
      ),
      (moves) => {
        let ledger = EMPTY_LEDGER;
        for (const next of moves) {
          const result =
            next.kind === 'grant'
              ? grant(ledger, next.amount)
              : next.kind === 'reserve'
                ? reserve(ledger, CAP_1, String(next.id), next.amount)
                : next.kind === 'release'
                  ? release(ledger, String(next.id))
                  : null;
          if (result?.ok === true) ledger = result.value;
          if (next.kind === 'settle') {
            const settled = settle(ledger, String(next.id), next.reported);
            if (settled.ok) ledger = settled.value.ledger;
          }
          expect(ledger.settledMicroUsd + reservedMicroUsd(ledger)).toBeLessThanOrEqual(1_000_000 + ledger.grantedMicroUsd);
        }
      },
    ),
    { numRuns: 2000 },
  );
});

describe('days', () => {
  it('counts a charge, overruns included, on the day on which it was reserved, and a late one on the day it came', () => {
    const held = must(reserveOn(EMPTY_LEDGER, null, { id: 'a', amountMicroUsd: 100, day: '2026-11-03' }));
    const both = must(reserveOn(held, null, { id: 'b', amountMicroUsd: 10, day: '2026-11-04' }));
    expect([usedOn(both, '2026-11-03'), usedOn(both, '2026-11-04'), usedOn(both, '2026-11-05')]).toEqual([100, 10, 0]);
    const settled = must(settle(both, 'a', 0.00015)).ledger;
    expect(settled.days).toEqual([{ day: '2026-11-03', chargedMicroUsd: 150 }]);
    expect(usedOn(must(release(settled, 'b')), '2026-11-04')).toBe(0);
    expect(usedOn(chargeLateOn(settled, 7, '2026-11-05', null), '2026-11-05')).toBe(7);
  });
});

describe('tools', () => {
  const days = ['2026-11-03', '2026-11-04'] as const;
  const charge = fc.record({
    day: fc.constantFrom(...days),
    tool: fc.option(fc.integer({ min: 0, max: MAX_TOOLS + 5 }), { nil: undefined }),
    amount: fc.integer({ min: 0, max: 1000 }),
    reported: fc.constantFrom<unknown>(undefined, 0, 0.0005, 0.01, 'much'),
    isLate: fc.boolean(),
  });

  it('are told apart to the micro-dollar on every day, whatever they charge; after the first so many the rest is told as one', () => {
    fc.assert(
      fc.property(fc.array(charge, { maxLength: 120 }), (charges) => {
        let ledger = EMPTY_LEDGER;
        for (const [n, { day, tool, amount, reported, isLate }] of charges.entries()) {
          const name = tool === undefined ? {} : { tool: `own.t${tool}` };
          const id = `c${n}`;
          ledger = isLate
            ? chargeLateOn(ledger, amount, day, name.tool ?? null)
            : must(settle(must(reserveOn(ledger, null, { id, amountMicroUsd: amount, day, ...name })), id, reported)).ledger;
          for (const each of days) {
            const byTool = ledger.tools.filter((row) => row.day === each).reduce((sum, row) => sum + row.chargedMicroUsd, 0);
            expect(byTool).toBe(usedOn(ledger, each));
          }
        }
        const keys = ledger.tools.map(({ day, tool }) => `${day} ${tool}`);
        expect(new Set(keys).size).toBe(keys.length);
        expect(new Set(ledger.tools.map(({ tool }) => tool).filter((tool) => tool !== null)).size).toBeLessThanOrEqual(MAX_TOOLS);
      }),
    );
  });
});

describe('what a plan tells of its spending', () => {
  it('says of every day and tool what is charged and what is held, and that nothing is held where it was released', () => {
    const held = must(reserveOn(EMPTY_LEDGER, null, { id: 'a', amountMicroUsd: 100, day: '2026-11-03', tool: 'own.a' }));
    const both = must(reserveOn(held, null, { id: 'b', amountMicroUsd: 10, day: '2026-11-03', tool: 'own.b' }));
    expect(spendRows(both)).toEqual([
      { day: '2026-11-03', tool: 'own.a', spentMicroUsd: 0, reservedMicroUsd: 100 },
      { day: '2026-11-03', tool: 'own.b', spentMicroUsd: 0, reservedMicroUsd: 10 },
    ]);
    const settled = chargeLateOn(must(settle(must(release(both, 'b')), 'a', 0.00015)).ledger, 7, '2026-11-04', null);
    expect(spendRows(settled)).toEqual([
      { day: '2026-11-03', tool: 'own.a', spentMicroUsd: 150, reservedMicroUsd: 0 },
      { day: '2026-11-04', tool: null, spentMicroUsd: 7, reservedMicroUsd: 0 },
    ]);
  });
});
