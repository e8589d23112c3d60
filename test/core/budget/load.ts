import { NO_CAPS } from '../../../src/core/budget/node-state.ts';
import { NO_FAULTS } from './network.ts';
import { Random } from './schedule.ts';
import { World } from './world.ts';

export interface LoadResult {
  readonly world: World;
  readonly authorisedMicroUsd: number;
  readonly refusedNeeds: readonly number[];
  readonly recalls: number;
  readonly asks: number;
  readonly messages: number;
  readonly levels: ReadonlySet<string>;
}

/** 1,000 calls over 50 plans in 10 sessions of one org, all within a second of a working network, with one tight cap. */
export function load(shape: {
  readonly seed: number;
  readonly tight: 'plan' | 'session' | 'org' | 'none';
  readonly capMicroUsd: number;
  readonly costs: readonly number[];
  readonly spreadMs: number;
}): LoadResult {
  const { seed, tight, capMicroUsd } = shape;
  const caps = { ...NO_CAPS, total: capMicroUsd };
  const world = new World({
    seed,
    startMs: Date.UTC(2026, 10, 3, 12),
    faults: NO_FAULTS,
    orgCaps: tight === 'org' ? caps : NO_CAPS,
    sessionCaps: Array.from({ length: 10 }, () => (tight === 'session' ? caps : NO_CAPS)),
    plansPerSession: 5,
    planCap: tight === 'plan' ? capMicroUsd : Number.MAX_SAFE_INTEGER,
    deepChecks: false,
    overruns: false,
  });
  const random = new Random(seed);
  let authorisedMicroUsd = 0;
  const refusedNeeds: number[] = [];
  const levels = new Set<string>();
  for (let call = 0; call < 1_000; call += 1) {
    const plan = world.plans[call % world.plans.length];
    if (plan === undefined) continue;
    const need = random.pick(shape.costs);
    world.schedule.after(random.int(0, shape.spreadMs), () =>
      world.authorize(plan, need, (outcome) => {
        if (outcome.kind === 'refused') {
          refusedNeeds.push(need);
          levels.add(outcome.level);
        }
        if (outcome.kind !== 'authorised') return;
        authorisedMicroUsd += need;
        world.schedule.after(random.int(1, 50), () => plan.settle(outcome.id, need));
      }),
    );
  }
  world.run(shape.spreadMs + 30_000);
  const { counts, sent } = world.network;
  const count = (kind: string): number => counts.get(kind) ?? 0;
  return {
    world,
    authorisedMicroUsd,
    refusedNeeds,
    recalls: count('org.recall') + count('session.recall'),
    asks: count('plan.ask') + count('session.ask'),
    messages: sent,
    levels,
  };
}
