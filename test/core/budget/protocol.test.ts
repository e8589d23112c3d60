import { describe, expect, it } from 'vitest';
import { load } from './load.ts';
import { randomRun } from './random-run.ts';

/** The long run: BUDGET_RUNS=6000. One run again: BUDGET_SEED=<seed> BUDGET_RUNS=1. */
const runs = Number(process.env['BUDGET_RUNS'] ?? process.env['FC_RUNS'] ?? 130);
const first = Number(process.env['BUDGET_SEED'] ?? 1);

/** Longest wait of an authorisation. Without faults it is round trips; with them, asks that time out one after the other. */
const LONGEST_WAIT_MS = { calm: 2_000, faulty: 30_000 };

describe.each(['org', 'profile', 'both'] as const)(
  'budgets over a network that loses, doubles and reorders, between objects that die: %s',
  (root) => {
    it(
      `keep every promise in ${runs} random runs`,
      () => {
        const sum = { messages: 0, recalls: 0, crashes: 0, checks: 0, authorised: 0, refused: 0, busy: 0, lost: 0 };
        for (let seed = first; seed < first + runs; seed += 1) {
          try {
            const { world, faults } = randomRun(seed, seed % 10 === 0, root);
            const { counts } = world.network;
            sum.messages += world.network.sent;
            sum.recalls += (counts.get('org.recall') ?? 0) + (counts.get('session.recall') ?? 0) + (counts.get('profile.recall') ?? 0);
            sum.crashes += world.crashes;
            sum.checks += world.checks;
            for (const kind of ['authorised', 'refused', 'busy', 'lost'] as const) sum[kind] += world.outcomes[kind];
            if (faults === 'none' && world.outcomes.busy > 0) throw new Error('busy, though nothing went wrong');
            if (world.longestWaitMs > LONGEST_WAIT_MS[faults === 'none' ? 'calm' : 'faulty']) {
              throw new Error(`an authorisation waited ${world.longestWaitMs} ms`);
            }
          } catch (cause) {
            throw new Error(`seed ${seed}: ${cause instanceof Error ? cause.message : String(cause)} (BUDGET_SEED=${seed} BUDGET_RUNS=1)`, {
              cause,
            });
          }
        }
        console.log(`budget protocol, ${root}: ${runs} runs, ${JSON.stringify(sum)}`);
        if (runs < 100) return;
        for (const [kind, count] of Object.entries(sum)) expect([kind, count > runs / 10]).toEqual([kind, true]);
      },
      Math.max(60_000, runs * 200),
    );
  },
);

describe('1,000 calls over 50 plans and 10 sessions', () => {
  const bursts = [0, 1_000] as const;

  it.each((['plan', 'session', 'org'] as const).flatMap((tight) => bursts.map((spreadMs) => [tight, spreadMs] as const)))(
    'against a tight cap of the %s within %i ms: exactly the admissible number pass, and that level is named',
    (tight, spreadMs) => {
      const capMicroUsd = { plan: 100, session: 500, org: 5_000 }[tight];
      const { world, recalls, asks, messages, levels } = load({ seed: 7, tight, capMicroUsd, costs: [10], spreadMs });
      expect(world.outcomes).toEqual({ authorised: 500, refused: 500, busy: 0, lost: 0 });
      expect([...levels]).toEqual([tight]);
      console.log(`tight ${tight}, ${spreadMs} ms: ${recalls} recalls, ${asks} asks, ${messages} messages`);
      expect(recalls).toBeLessThan(400);
    },
  );

  it.each(['session', 'org'] as const)('of mixed costs against a tight cap of the %s use it up to the micro-dollar', (tight) => {
    const capMicroUsd = { session: 500, org: 5_000 }[tight];
    const result = load({ seed: 11, tight, capMicroUsd, costs: [1, 2, 5, 10, 20, 30], spreadMs: 1_000 });
    expect(result.authorisedMicroUsd).toBe(5_000);
    expect(result.world.outcomes.busy).toBe(0);
    expect(result.recalls).toBeLessThan(400);
    for (const plan of result.world.plans) plan.end();
    result.world.run(5_000);
    result.world.checkBooks(result.world.today);
  });

  it.each(['session', 'org'] as const)('are never refused where the cap of the %s is enough for all', (tight) => {
    const { world } = load({ seed: 13, tight, capMicroUsd: { session: 1_000, org: 10_000 }[tight], costs: [10], spreadMs: 1_000 });
    expect(world.outcomes).toEqual({ authorised: 1_000, refused: 0, busy: 0, lost: 0 });
  });

  it('cost few messages where nothing is tight: no recall, and an ask for every fifth call', () => {
    const { recalls, asks } = load({ seed: 7, tight: 'none', capMicroUsd: 0, costs: [10], spreadMs: 1_000 });
    expect(recalls).toBe(0);
    expect(asks).toBeLessThan(200);
  });
});
