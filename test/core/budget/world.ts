import { leaseCounts, rowOf } from '../../../src/core/budget/lease-state.ts';
import { accountKey, type Caps, leaseFree, NO_CAPS, type NodeState, showNode, usedIn } from '../../../src/core/budget/node-state.ts';
import { type Ask, type BudgetRefusal, DRY_MS, PATIENCE_MS, TIMEOUT_MS } from '../../../src/core/budget/protocol.ts';
import { CAP_WINDOWS, type CapWindow, dayOf, sameWindow } from '../../../src/core/budget/window.ts';
import { type Faults, Network } from './network.ts';
import { NodeHost } from './node-host.ts';
import { type HeldLease, type Outcome, PlanHost } from './plan-host.ts';
import { Random, Schedule } from './schedule.ts';

export interface WorldShape {
  readonly seed: number;
  readonly startMs: number;
  readonly faults: Faults;
  readonly orgCaps: Caps;
  readonly sessionCaps: readonly Caps[];
  readonly plansPerSession: number;
  readonly planCap: number;
  /** Given: there are profiles, roots above plans. */
  readonly profiles?: {
    readonly count: number;
    /** What plans bring to them, in turn (`Ask.capMicroUsd`); `tells`: they hold nothing from it and tell what they charge. */
    readonly caps: readonly (number | null | 'tells')[];
    /** Plans hold from a profile and from their session, or from a profile in its place. */
    readonly beside: boolean;
  };
  /** Compares whole states at every step; too slow for the large runs. */
  readonly deepChecks: boolean;
  /** Whether tools charge more than was reserved: then leases may be overdrawn, and only what was authorised stays within caps. */
  readonly overruns: boolean;
}

/** How long after it was freed money may be missed by a refusal: the dry mark, and the longest service. */
const BLIND_MS = DRY_MS + PATIENCE_MS.session + TIMEOUT_MS.orgAsk;

/** No ask waits longer than patience and one round of calls. */
const ANSWER_MS = PATIENCE_MS.session + TIMEOUT_MS.orgAsk;

/**
 * An org, its sessions and their plans over a bad network, in virtual time, with the books of somebody who sees everything at once.
 * `check` runs after every step of anybody and throws at the first broken promise.
 */
export class World {
  readonly schedule: Schedule;
  readonly random: Random;
  readonly network: Network;
  readonly org: NodeHost;
  readonly sessions: NodeHost[] = [];
  readonly profiles: NodeHost[] = [];
  readonly plans: PlanHost[] = [];
  readonly deepChecks: boolean;
  crashes = 0;
  checks = 0;
  readonly outcomes = { authorised: 0, refused: 0, busy: 0, lost: 0 };
  longestWaitMs = 0;
  private readonly shape: WorldShape;
  private readonly wasLowered = new Set<string>();
  /** What authorisations are held to: a lowered cap binds once everybody has heard of it. */
  private readonly bounds = new Map<string, Caps>();
  private readonly frees: { readonly at: number; readonly amount: number }[] = [];
  private capCalls = 0;

  constructor(shape: WorldShape) {
    this.shape = shape;
    this.deepChecks = shape.deepChecks;
    this.schedule = new Schedule(shape.startMs);
    this.random = new Random(shape.seed);
    this.network = new Network(this.schedule, this.random, shape.faults);
    this.org = new NodeHost(this, 'org', 'org', null, shape.orgCaps);
    this.bounds.set('org', shape.orgCaps);
    const { profiles } = shape;
    for (let index = 0; index < (profiles?.count ?? 0); index += 1) {
      const profile = new NodeHost(this, `f${index}`, 'profile', null, NO_CAPS);
      this.profiles.push(profile);
      this.bounds.set(profile.id, NO_CAPS);
    }
    shape.sessionCaps.forEach((caps, index) => {
      const session = new NodeHost(this, `s${index}`, 'session', this.org, caps);
      this.sessions.push(session);
      this.bounds.set(session.id, caps);
      for (let plan = 0; plan < shape.plansPerSession; plan += 1) {
        const number = this.plans.length;
        const profile = this.profiles[number % Math.max(1, this.profiles.length)];
        const brings = profiles?.caps[number % profiles.caps.length] ?? null;
        const above = [
          ...(profile !== undefined && profiles?.beside === false ? [] : [{ node: session, brings: null }]),
          ...(profile === undefined ? [] : [{ node: profile, brings: brings === 'tells' ? null : brings, covers: brings !== 'tells' }]),
        ];
        this.plans.push(new PlanHost(this, `${session.id}p${plan}`, above, shape.planCap));
      }
    });
  }

  /** All of them, those below first. */
  get nodes(): readonly NodeHost[] {
    return [...this.sessions, ...this.profiles, this.org];
  }

  get nowMs(): number {
    return this.schedule.nowMs;
  }

  get today(): string {
    return dayOf(this.nowMs);
  }

  authorize(plan: PlanHost, need: number, done: (outcome: Outcome) => void = () => {}): void {
    const start = this.nowMs;
    plan.authorize(need, (outcome) => {
      // A plan that ends while it waits for money has lost the call, whatever the line is told.
      this.outcomes[outcome.kind === 'busy' && plan.ended ? 'lost' : outcome.kind] += 1;
      this.longestWaitMs = Math.max(this.longestWaitMs, this.nowMs - start);
      done(outcome);
    });
  }

  setCaps(node: NodeHost, caps: Caps): void {
    this.capCalls += 1;
    const call = `caps${this.capCalls}`;
    const bound = this.bounds.get(node.id) ?? NO_CAPS;
    const either = (kind: CapWindow): number | null =>
      bound[kind] === null || caps[kind] === null ? null : Math.max(bound[kind], caps[kind]);
    const before = node.rows.caps;
    this.wasLowered.add(node.id);
    this.bounds.set(node.id, { total: either('total'), monthly: either('monthly'), daily: either('daily') });
    // A raise is new money: whoever was refused a moment ago was refused rightly.
    for (const kind of CAP_WINDOWS)
      this.freed(caps[kind] === null ? Number.MAX_SAFE_INTEGER : Math.max(0, caps[kind] - (before[kind] ?? caps[kind])));
    node.deliverCaps(call, caps, (unreached) => {
      if (unreached.length === 0 && node.rows.caps === caps) this.bounds.set(node.id, caps);
      // Whoever lowered it tries again while somebody was not reached.
      if (unreached.length > 0 && node.rows.caps === caps) this.schedule.after(2_000, () => this.setCaps(node, node.rows.caps));
    });
  }

  freed(amount: number): void {
    if (amount > 0) this.frees.push({ at: this.nowMs, amount });
  }

  /** Runs for so long; throws if it never comes to rest. */
  run(ms: number): void {
    if (!this.schedule.runUntil(this.nowMs + ms, 500_000)) throw new Error('livelock: there is always something more to do');
  }

  /** At an authorisation: no level passes what it is held to. */
  judgeAuthorisation(plan: PlanHost, day: string, need: number): void {
    if (need === 0) return;
    for (const { node, brings } of plan.held) {
      const after = this.authorisedIn(node, 'total', day) + need;
      if (brings !== null && after > brings) {
        throw new Error(`overshoot: ${plan.id} brings the cap ${brings} to ${node.id} and is authorised ${need}, which makes ${after}`);
      }
    }
    for (const node of this.above(plan)) {
      const bound = this.bounds.get(node.id) ?? NO_CAPS;
      for (const kind of CAP_WINDOWS) {
        const cap = bound[kind];
        if (cap === null) continue;
        const after = this.authorisedIn(node, kind, day) + need;
        if (after > cap)
          throw new Error(`overshoot: ${plan.id} is authorised ${need}, which makes ${after} of the ${kind} cap ${cap} of ${node.id}`);
      }
    }
  }

  /** At a grant: with all that the node knows to be used, also by those who only tell it, it is within every cap that binds the asker. */
  judgeGrants(node: NodeHost, before: NodeState, after: NodeState): void {
    for (const [key, { g, child, day, capMicroUsd }] of after.accounts) {
      if (g <= (before.accounts.get(key)?.g ?? 0)) continue;
      for (const kind of CAP_WINDOWS) {
        const used = usedIn(after, kind, day);
        const brought = kind === 'total' ? (capMicroUsd ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY;
        const cap = Math.min(brought, after.caps[kind] ?? Number.POSITIVE_INFINITY);
        if (used > cap)
          throw new Error(`over-granted: ${node.id} grants ${child} up to ${g}, which makes ${used} of the ${kind} cap ${cap}`);
      }
    }
  }

  /** At a refusal: the level it names had not got the money, but for what was freed so lately that word of it may not have come. */
  judgeRefusal(by: NodeHost, ask: Ask, refusal: BudgetRefusal): void {
    // What the org says to a session is not final: the session looks through its own plans first.
    if (by.level === 'org') return;
    const node = refusal.level === 'org' ? this.org : by;
    const unused = refusal.capMicroUsd - this.usedOf(node, refusal.window, ask.day) - this.asideFrom(node, refusal.window, ask.day);
    const late = this.frees.reduce((sum, { at, amount }) => sum + (this.nowMs - at <= BLIND_MS ? amount : 0), 0);
    if (unused - late >= ask.need) {
      throw new Error(
        `false refusal: ${by.id} refuses ${ask.need} by the ${refusal.window} cap of ${node.id}, and ${unused} is unused there (${late} lately)`,
      );
    }
  }

  /** What is true at every moment, whoever has died and whatever is on its way. */
  check(): void {
    this.checks += 1;
    // Large worlds are looked at every so often; the bounds of authorisations and refusals are checked at each of them anyway.
    if (this.plans.length > 20 && this.checks % 10 !== 0) return;
    for (const node of this.nodes) {
      for (const since of node.waitingSince()) {
        if (this.nowMs - since > ANSWER_MS) throw new Error(`${node.id} leaves an ask without an answer for ${this.nowMs - since} ms`);
      }
    }
    for (const plan of this.plans) for (const lease of plan.held) this.checkPlan(plan, lease);
    for (const session of this.sessions) this.checkSession(session);
    for (const node of this.nodes) this.checkCaps(node);
  }

  /** used(plan) ≤ g − r ≤ G − R, towards each node that it holds from. */
  private checkPlan(plan: PlanHost, { node, rows, state }: HeldLease): void {
    for (const day of new Set([...rows.keys(), ...plan.settled.keys()])) {
      const { g, r } = leaseCounts(state, day);
      const used = this.authorisedBy(plan, (each) => each === day);
      if (used > g - r) throw new Error(`${plan.id} has authorised ${used} on ${day} and holds ${g - r} from ${node.id}`);
      const account = node.rows.accounts.get(accountKey(plan.id, day));
      if (account !== undefined && rows.get(day)?.phase === 'open' && (g > account.g || r < account.r)) {
        throw new Error(`${plan.id} believes g ${g} r ${r}, ${node.id} G ${account.g} R ${account.r}`);
      }
    }
  }

  /** Handed out and settled ≤ g − r ≤ G − R. */
  private checkSession(session: NodeHost): void {
    for (const [day, { g, r, phase }] of session.rows.leases) {
      if (leaseFree(session.state, day) < 0 && phase === 'open') {
        throw new Error(`${session.id} has handed out more than its lease on ${day}`);
      }
      const account = this.org.rows.accounts.get(accountKey(session.id, day));
      if (account !== undefined && phase === 'open' && (g > account.g || r < account.r)) {
        throw new Error(`${session.id} believes g ${g} r ${r}, the org G ${account.g} R ${account.r}`);
      }
    }
  }

  /** Without overruns and lowered caps, what a node counts as used is within its caps, and never less than what is used. */
  private checkCaps(node: NodeHost): void {
    for (const kind of CAP_WINDOWS) {
      const bound = (this.bounds.get(node.id) ?? NO_CAPS)[kind];
      const used = usedIn(node.state, kind, this.today);
      if (
        bound !== null &&
        !this.shape.overruns &&
        !this.isTold(node) &&
        node.rows.caps[kind] === bound &&
        used > bound &&
        !this.wasLowered.has(node.id)
      ) {
        throw new Error(`${node.id} counts ${used} of the ${kind} cap ${bound}`);
      }
      const authorised = this.authorisedIn(node, kind, this.today);
      const told = this.toldTo(node, kind);
      if (authorised + told > used) {
        throw new Error(
          `${node.id} counts ${used} in its ${kind} window; ${authorised} is authorised, and it has acknowledged ${told} more`,
        );
      }
    }
  }

  /** From whom a plan holds what it uses. */
  above(plan: PlanHost): readonly NodeHost[] {
    return plan.held.flatMap(({ node }) => (node.parent === null ? [node] : [node, node.parent]));
  }

  plansOf(node: NodeHost): readonly PlanHost[] {
    return this.plans.filter((plan) => this.above(plan).includes(node));
  }

  /** Whether there are plans that hold nothing from a node and tell it what they charge: nobody holds those to its caps. */
  private isTold(node: NodeHost): boolean {
    return this.plans.some((plan) => plan.leases.some((lease) => lease.node === node && !lease.covers));
  }

  /** What a node has acknowledged of the charges of plans that hold nothing from it. */
  private toldTo(node: NodeHost, kind: CapWindow): number {
    let sum = 0;
    for (const { node: parent, covers, state } of this.plans.flatMap((plan) => plan.leases)) {
      if (parent !== node || covers) continue;
      for (const day of state.rows.keys()) {
        const { phase, closedMicroUsd } = rowOf(state, day);
        const heard = Math.max(state.heard.get(day)?.v ?? 0, phase === 'closed' ? closedMicroUsd : 0);
        if (sameWindow(kind, day, this.today)) sum += heard;
      }
    }
    return sum;
  }

  /** Reserved and settled up to reservations. */
  authorisedIn(node: NodeHost, kind: CapWindow, day: string): number {
    return this.plansOf(node).reduce((sum, plan) => sum + this.authorisedBy(plan, (each) => sameWindow(kind, each, day)), 0);
  }

  /** Reserved and charged, overruns included. */
  usedOf(node: NodeHost, kind: CapWindow, day: string): number {
    let sum = 0;
    const isHeldFrom = new Set(this.plansOf(node));
    for (const plan of this.plans) {
      if (!isHeldFrom.has(plan) && plan.leases.every((lease) => lease.node !== node)) continue;
      for (const [each, { total }] of plan.settled) if (sameWindow(kind, each, day)) sum += total;
      if (!isHeldFrom.has(plan)) continue;
      for (const held of plan.reservations.values()) if (sameWindow(kind, held.day, day)) sum += held.amount;
    }
    return sum;
  }

  /** Put aside by plans for decisions that wait for money from elsewhere: nobody else can have it meanwhile. */
  private asideFrom(node: NodeHost, kind: CapWindow, day: string): number {
    const isCounted = (each: string): boolean => sameWindow(kind, each, day);
    return this.plansOf(node).reduce(
      (sum, plan) =>
        sum +
        plan.leases.reduce(
          (all, lease) => all + (lease.node === node || lease.node.parent === node ? plan.asideFrom(lease.node, isCounted) : 0),
          0,
        ),
      0,
    );
  }

  private authorisedBy(plan: PlanHost, isCounted: (day: string) => boolean): number {
    let sum = 0;
    for (const [day, { covered }] of plan.settled) if (isCounted(day)) sum += covered;
    for (const { day, amount } of plan.reservations.values()) if (isCounted(day)) sum += amount;
    return sum;
  }

  /** After everything has settled and closed: the books of every level agree with the charges to the micro-dollar. */
  checkBooks(day: string): void {
    for (const node of this.nodes) {
      for (const { window, capMicroUsd, spentMicroUsd, leasedMicroUsd, remainingMicroUsd, excessMicroUsd } of showNode(node.state, day)
        .caps) {
        const charged = this.usedOf(node, window, day);
        if (spentMicroUsd !== charged) throw new Error(`${node.id} shows ${spentMicroUsd} spent (${window}), charged were ${charged}`);
        if (leasedMicroUsd !== 0) throw new Error(`${node.id} still shows ${leasedMicroUsd} leased (${window})`);
        if (capMicroUsd !== null && spentMicroUsd + (remainingMicroUsd ?? 0) - excessMicroUsd !== capMicroUsd) {
          throw new Error(`${node.id}: spent ${spentMicroUsd} and remaining ${remainingMicroUsd} are not the cap ${capMicroUsd}`);
        }
      }
    }
  }
}
