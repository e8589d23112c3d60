import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { genesisHash, verifyChain } from '../../../src/core/plan/chain.ts';
import { decide } from '../../../src/core/plan/decide.ts';
import type { LogRow } from '../../../src/core/plan/events.ts';
import { replay } from '../../../src/core/plan/evolve.ts';
import { NO_LIMIT_ABOVE } from '../../../src/core/plan/work.ts';
import { CATALOGUE, createCommand, PLAN_ID, PlanDriver, sha256 } from './plan-driver.ts';
import { commandOf, type History, history } from './plan-histories.ts';
import { sameState, Witness } from './plan-invariants.ts';

const numRuns = Number(process.env['FC_RUNS'] ?? 5000);

/** So often a command is decided twice, to see that the decision depends on nothing else. */
const TWIN_EVERY = 5;
const GENESIS = genesisHash(sha256, 'acme', PLAN_ID);

/** Plays a history and checks after every command; answers the driver for what is checked at the end. */
function play(given: History): PlanDriver {
  const driver = new PlanDriver();
  const witness = new Witness();
  let commands = 0;
  const run = (command: Parameters<PlanDriver['do']>[0]): void => {
    const before = driver.rows.length;
    commands += 1;
    if (commands % TWIN_EVERY !== 0) {
      driver.do(command);
      witness.see(driver.rows.slice(before), driver.plan, driver.nowMs);
      return;
    }
    const context = { now: driver.now, sha256, catalogue: CATALOGUE, money: NO_LIMIT_ABOVE };
    const twin = decide(driver.current, command, context);
    const result = driver.do(command);
    const written = driver.rows.slice(before);
    if (!isDeepStrictEqual(twin.rows, written) || !isDeepStrictEqual(twin.result, result)) expect(twin.rows).toEqual(written);
    witness.see(written, driver.plan, driver.nowMs);
  };
  run(createCommand(given.options));
  for (const op of given.ops) {
    const command = commandOf(driver, given, op);
    if (command !== null) run(command);
  }
  return driver;
}

const tamperings = ['change', 'drop', 'swap', 'insert', 'rehash'] as const;

/** The log after somebody without the chain's cooperation has changed one thing in it. */
function tampered(rows: readonly LogRow[], kind: (typeof tamperings)[number], at: number): readonly LogRow[] {
  const index = at % rows.length;
  const row = rows[index];
  const next = rows[(index + 1) % rows.length];
  if (row === undefined || next === undefined) return rows;
  switch (kind) {
    case 'change':
      return rows.with(index, { ...row, at: '2030-01-01T00:00:00.000Z' });
    case 'drop':
      return rows.toSpliced(index, 1);
    case 'swap':
      return rows.with(index, next).with((index + 1) % rows.length, row);
    case 'insert':
      return rows.toSpliced(index, 0, row);
    case 'rehash': {
      // The one row is made to look right; the next one still says what came before it.
      const changed = { ...row, actor: { ...row.actor, id: 'somebody-else' } };
      return rows.with(index, { ...changed, hash: sha256(JSON.stringify(changed)) });
    }
  }
}

describe('any history of a plan', () => {
  it(
    `keeps every invariant after every command (${numRuns} histories)`,
    () => {
      fc.assert(
        fc.property(history, (given) => {
          const { rows, plan } = play(given);
          const stored = JSON.parse(JSON.stringify(rows)) as LogRow[];
          sameState(replay(stored), plan);
          const verdict = verifyChain(sha256, GENESIS, stored);
          expect(verdict).toEqual({ valid: true, entries: rows.length, head: plan.headHash });
        }),
        { numRuns, verbose: 0 },
      );
    },
    Math.max(120_000, numRuns * 200),
  );

  it(
    'has a log in which nothing can be changed, dropped, moved or added unseen',
    () => {
      fc.assert(
        fc.property(history, fc.constantFrom(...tamperings), fc.nat(), (given, kind, at) => {
          const { rows, plan } = play(given);
          fc.pre(rows.length > 1);
          const verdict = verifyChain(sha256, GENESIS, tampered(rows, kind, at));
          expect(verdict.valid && verdict.head === plan.headHash).toBe(false);
        }),
        { numRuns: Math.ceil(numRuns / 25) },
      );
    },
    Math.max(120_000, numRuns * 200),
  );

  it('cannot be passed off as the log of another plan', () => {
    const { rows } = PlanDriver.run({}, {});
    expect(verifyChain(sha256, genesisHash(sha256, 'acme', 'another'), rows).valid).toBe(false);
    expect(verifyChain(sha256, genesisHash(sha256, 'other', PLAN_ID), rows).valid).toBe(false);
  });
});
