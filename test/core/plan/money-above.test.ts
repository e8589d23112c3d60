/** What a decision may reserve of the budgets above the plan (design sections 4 and 10): whatever is authorised was covered. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { usedOn } from '../../../src/core/ledger.ts';
import { type Decided, decide } from '../../../src/core/plan/decide.ts';
import { nextTask } from '../../../src/core/plan/next-task.ts';
import type { Plan } from '../../../src/core/plan/plan.ts';
import { type MoneyAbove, NO_LIMIT_ABOVE } from '../../../src/core/plan/work.ts';
import { CATALOGUE, call, FACTS, PlanDriver, type PlanOptions, sha256 } from './plan-driver.ts';

const numRuns = Math.ceil(Number(process.env['FC_RUNS'] ?? 5000) / 2);

/** A plan in Execute that is about to be asked for its next step. */
function ready(options: PlanOptions): PlanDriver {
  const driver = PlanDriver.make(options, { execute: [] });
  for (let turns = 0; turns < 30; turns += 1) {
    const task = nextTask(driver.plan, driver.nowMs);
    if (task.kind === 'propose' && driver.plan.phase === 'execute') return driver;
    if (task.kind !== 'sleep') driver.turn(task);
    else driver.approve();
  }
  throw new Error(`the plan does not get to work: ${driver.at}`);
}

interface Costed {
  readonly cost: number;
  readonly tool: string;
}

function proposeWith(driver: PlanDriver, calls: readonly Costed[], money: MoneyAbove): Decided {
  const { plan } = driver;
  return decide(
    plan,
    {
      type: 'propose',
      proposal: {
        kind: 'calls',
        stepId: 's1',
        calls: calls.map(({ cost, tool }, n) => call(tool, { n }, { declaredCostUsd: cost / 1_000_000 })),
        cursor: 1,
      } as never,
      actorName: plan.action.actor,
      basis: { attempt: plan.attempt, cursor: plan.cursor, phase: plan.phase },
      guidanceSeen: 0,
      facts: calls.map(() => FACTS),
    },
    { now: driver.now, sha256, catalogue: CATALOGUE, money },
  );
}

const reservedNow = (plan: Plan | null, now: string): number => (plan === null ? 0 : usedOn(plan.ledger, now.slice(0, 10)));

/** As the object does it: asks a budget of `room` for what is lacking, and decides again, until it is decided. */
function decideAgainst(driver: PlanDriver, calls: readonly Costed[], room: number): { readonly decided: Decided; readonly rounds: number } {
  let money: MoneyAbove = { ...NO_LIMIT_ABOVE, freeMicroUsd: 0 };
  for (let rounds = 1; ; rounds += 1) {
    const decided = proposeWith(driver, calls, money);
    if (decided.lack === undefined) return { decided, rounds };
    const { needMicroUsd } = decided.lack;
    if (needMicroUsd <= room) money = { ...money, freeMicroUsd: needMicroUsd };
    else {
      money = {
        ...money,
        freeMicroUsd: 0,
        refused: { needMicroUsd, refusal: { level: 'session', capMicroUsd: room, usedMicroUsd: 0, window: 'total' } },
      };
    }
  }
}

const batch = fc.array(
  fc.record({ cost: fc.integer({ min: 0, max: 900_000 }), tool: fc.constantFrom('files.read', 'files.write', 'web.get') }),
  { minLength: 1, maxLength: 12 },
);

describe('a batch under a budget above the plan', () => {
  it('never reserves more than is there, whatever the limits of the plan and the gate do to its calls', () => {
    fc.assert(
      fc.property(
        batch,
        fc.integer({ min: 0, max: 2_000_000 }),
        fc.option(fc.integer({ min: 0, max: 6 }), { nil: null }),
        fc.option(fc.integer({ min: 0, max: 3_000_000 }), { nil: null }),
        fc.constantFrom('auto', 'cautious', 'full-auto', 'supervised'),
        (calls, room, maxCalls, cap, profile) => {
          const driver = ready({
            profile,
            guardrails: {
              ...(maxCalls === null ? {} : { max_tool_calls_per_step: maxCalls }),
              ...(cap === null ? {} : { tool_budget: cap / 1_000_000 }),
            },
          });
          const before = reservedNow(driver.plan, driver.now);
          const { decided, rounds } = decideAgainst(driver, calls, room);
          expect(reservedNow(decided.plan, driver.now) - before).toBeLessThanOrEqual(room);
          expect(rounds).toBeLessThanOrEqual(4);
        },
      ),
      { numRuns },
    );
  });

  it('of two hundred calls asks a few times, runs what fits and asks once about the rest', () => {
    const driver = ready({});
    const { decided, rounds } = decideAgainst(
      driver,
      Array.from({ length: 200 }, () => ({ cost: 600_000, tool: 'files.read' })),
      700_000,
    );
    expect(rounds).toBeLessThanOrEqual(3);
    const calls = Object.values(decided.plan?.calls ?? {});
    expect(calls.filter(({ status }) => status === 'authorised')).toHaveLength(1);
    expect(calls.filter(({ status }) => status === 'asked')).toHaveLength(199);
    expect(decided.plan?.approvals.map(({ kind, callIds, suggestedGrant }) => [kind, callIds.length, suggestedGrant])).toEqual([
      ['limit', 199, null],
    ]);
  });

  it('is refused where nobody can be asked and it cannot wait, and never says that anything is used up', () => {
    const driver = ready({});
    const decided = proposeWith(driver, [{ cost: 1, tool: 'files.read' }], { ...NO_LIMIT_ABOVE, freeMicroUsd: 0, isUnreachable: true });
    const row = decided.rows.find(({ type }) => type === 'call_decided');
    expect(row?.data).toMatchObject({ allowed: false, guard: 'budget_cap', reserved_micro_usd: 0 });
    expect(JSON.stringify(row)).toContain('could not be asked');
    expect(JSON.stringify(row)).not.toContain('exceeded');
  });
});
