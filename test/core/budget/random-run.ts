import { type Caps, NO_CAPS } from '../../../src/core/budget/node-state.ts';
import { DRY_MS } from '../../../src/core/budget/protocol.ts';
import { CAP_WINDOWS, dayOf } from '../../../src/core/budget/window.ts';
import { type Faults, NO_FAULTS } from './network.ts';
import type { NodeHost } from './node-host.ts';
import type { PlanHost } from './plan-host.ts';
import { Random } from './schedule.ts';
import { World } from './world.ts';

const DAY_MS = 86_400_000;

const FAULTS: Readonly<Record<string, Faults>> = {
  none: NO_FAULTS,
  disorder: { ...NO_FAULTS, duplicate: 0.2, slow: 0.2, slowMs: 2_000 },
  loss: { ...NO_FAULTS, loss: 0.1, slow: 0.05, slowMs: 6_000 },
  crashes: { ...NO_FAULTS, crashBefore: 0.01, crashAfter: 0.02 },
  all: { loss: 0.1, duplicate: 0.15, slow: 0.15, delayMs: 30, slowMs: 7_000, crashBefore: 0.01, crashAfter: 0.02 },
};

/** From whom plans hold: a session below the org, a profile, or a session and a profile at once. */
export type Root = 'org' | 'profile' | 'both';

export interface RunResult {
  readonly world: World;
  readonly faults: string;
}

/** One run that is wholly named by its seed: its shape, its faults, what plans do, when caps change and who dies. */
export function randomRun(seed: number, deepChecks = false, root: Root = 'org'): RunResult {
  const random = new Random(seed * 7919 + 1);
  const faults = random.pick(Object.keys(FAULTS));
  const overruns = random.chance(0.4);
  const sessions = random.int(1, 4);
  const horizonMs = random.pick([3_000, 15_000, 60_000]);
  const midnight = random.pick([Date.UTC(2026, 10, 4), Date.UTC(2026, 11, 1), Date.UTC(2027, 0, 1)]);
  const world = new World({
    seed,
    startMs: random.chance(0.5) ? midnight - random.int(0, horizonMs) : midnight + 43_200_000,
    faults: FAULTS[faults] ?? NO_FAULTS,
    orgCaps: randomCaps(random, 40 * sessions),
    sessionCaps: Array.from({ length: sessions }, () => randomCaps(random, 60)),
    plansPerSession: random.int(1, 4),
    planCap: random.chance(0.3) ? random.int(0, 60) : Number.MAX_SAFE_INTEGER,
    ...(root === 'org'
      ? {}
      : {
          profiles: {
            count: root === 'both' ? random.int(1, 2) : sessions,
            caps: randomBrought(random, root === 'both'),
            beside: root === 'both',
          },
        }),
    deepChecks,
    overruns,
  });
  const firstDay = world.today;
  work(world, random, horizonMs, overruns);
  world.run(horizonMs);
  calm(world);
  world.run(30_000);
  for (const plan of world.plans) {
    if (plan.waitingSince().length > 0) throw new Error(`${plan.id} still waits for an answer`);
    for (const id of [...plan.reservations.keys()]) plan.settle(id, plan.reservations.get(id)?.amount ?? 0);
  }
  probe(world, random);
  for (const plan of world.plans) plan.end();
  sweep(world);
  world.run(10_000);
  // The next day everything of this one is closed, whatever was lost on the way.
  world.run(DAY_MS);
  sweep(world);
  world.run(10_000);
  sweep(world);
  world.run(10_000);
  for (const day of new Set([firstDay, dayOf(world.nowMs - DAY_MS), world.today])) world.checkBooks(day);
  for (const node of world.nodes) {
    if (node.rows.accounts.size > 0) throw new Error(`${node.id} still has open accounts: ${[...node.rows.accounts.keys()].join(', ')}`);
    if (node.state.queue.length > 0 || node.state.jobs.length > 0) throw new Error(`${node.id} is still at work`);
  }
  return { world, faults };
}

function randomCaps(random: Random, scale: number): Caps {
  if (random.chance(0.3)) return NO_CAPS;
  const cap = (probability: number): number | null => (random.chance(probability) ? random.int(0, 2 * scale) : null);
  return { total: cap(0.7), monthly: cap(0.2), daily: cap(0.4) };
}

/** Of one version of a profile, or of several; some without any, and where plans have a session beside it some that only tell. */
function randomBrought(random: Random, mayTell: boolean): readonly (number | null | 'tells')[] {
  return Array.from({ length: random.int(1, 4) }, () => {
    if (mayTell && random.chance(0.3)) return 'tells';
    return random.chance(0.15) ? null : random.int(0, 120);
  });
}

/** Plans authorise, settle, rest, end; caps move; objects die. */
function work(world: World, random: Random, horizonMs: number, overruns: boolean): void {
  const at = (run: () => void): void => world.schedule.after(random.int(0, horizonMs), run);
  for (const plan of world.plans) {
    if (random.chance(0.5)) plan.prefetch(random.int(0, 100));
    for (let call = random.int(0, 10); call > 0; call -= 1) at(() => useMoney(world, random, plan, overruns));
    for (let rest = random.int(0, 2); rest > 0; rest -= 1) at(() => plan.rest());
    if (random.chance(0.2)) at(() => plan.end());
    if (overruns && random.chance(0.2)) at(() => plan.chargeLate(world.today, random.int(1, 10)));
  }
  const { nodes } = world;
  for (let change = random.int(0, 3); change > 0; change -= 1) {
    at(() => {
      const node = random.pick(nodes);
      world.setCaps(node, moved(random, node));
    });
  }
  if (world.network.faults.crashAfter > 0) {
    for (let crash = random.int(0, 4); crash > 0; crash -= 1) at(() => random.pick([...nodes, ...world.plans]).crash());
  }
  for (let ms = 5_000; ms < horizonMs; ms += 5_000) world.schedule.after(ms, () => sweep(world));
}

function moved(random: Random, node: NodeHost): Caps {
  const kind = random.pick(CAP_WINDOWS);
  const before = node.rows.caps[kind];
  const after = random.chance(0.15)
    ? null
    : before === null
      ? random.int(0, 150)
      : random.chance(0.5)
        ? before + random.int(1, 60)
        : random.int(0, before);
  return { ...node.rows.caps, [kind]: after };
}

function useMoney(world: World, random: Random, plan: PlanHost, overruns: boolean): void {
  const need = random.chance(0.1) ? 0 : random.chance(0.1) ? random.int(20, 80) : random.int(1, 15);
  world.authorize(plan, need, (outcome) => {
    if (outcome.kind === 'busy' && random.chance(0.5))
      world.schedule.after(random.int(100, 2_000), () => useMoney(world, random, plan, overruns));
    if (outcome.kind !== 'authorised' || random.chance(0.05)) return;
    const mode = random.next();
    const charged = mode < 0.5 ? need : mode < 0.7 ? random.int(0, need) : mode < 0.85 ? 0 : overruns ? need + random.int(1, 20) : need;
    world.schedule.after(random.pick([1, 100, 3_000, 12_000]), () => plan.settle(outcome.id, charged));
  });
}

/** Nothing goes wrong from here on; what was lost before stays lost. */
function calm(world: World): void {
  world.network.faults = NO_FAULTS;
}

function sweep(world: World): void {
  for (const plan of world.plans) plan.sweep();
  for (const node of world.nodes) node.sweep();
}

/** All that is left can be had by one plan, to the micro-dollar, wherever it lies; one more is refused by the level that is used up. */
function probe(world: World, random: Random): void {
  const live = world.plans.filter((plan) => !plan.ended);
  for (const plan of live) if (random.chance(0.5)) plan.rest();
  sweep(world);
  world.run(DRY_MS + 10_000);
  if (live.length === 0) return;
  const plan = random.pick(live);
  const roomOf = (node: NodeHost): number =>
    Math.min(...CAP_WINDOWS.map((kind) => (node.rows.caps[kind] ?? Number.POSITIVE_INFINITY) - world.usedOf(node, kind, world.today)));
  const brought = (): number =>
    Math.min(...plan.held.map(({ node, brings }) => (brings ?? Number.POSITIVE_INFINITY) - world.usedOf(node, 'total', world.today)));
  const room = Math.min(brought(), ...world.above(plan).map(roomOf));
  if (!Number.isFinite(room)) return;
  const own = plan.budget() - plan.used();
  if (room > 0 && own >= room) expectOutcome(world, plan, room, 'authorised');
  if (own < Math.max(1, room + 1)) return;
  const level = expectOutcome(world, plan, 1, 'refused');
  const named = world.above(plan).filter((node) => node.level === level);
  const left = Math.min(...(level === 'profile' ? [brought()] : []), ...named.map(roomOf));
  if (left >= 1) throw new Error(`the ${level} is named, and has ${left} left`);
}

function expectOutcome(world: World, plan: PlanHost, need: number, kind: 'authorised' | 'refused'): string | null {
  let seen: string | null = null;
  let level: string | null = null;
  world.authorize(plan, need, (outcome) => {
    seen = outcome.kind;
    level = outcome.kind === 'refused' ? outcome.level : null;
    if (outcome.kind === 'authorised') plan.settle(outcome.id, need);
  });
  world.run(20_000);
  if (seen !== kind) throw new Error(`at rest, ${plan.id} asks for ${need} and is ${seen}, not ${kind}`);
  return level;
}
