import type { Traced } from '../../core/plan/commands.ts';
import type { ActorRef, Plan } from '../../core/plan/plan.ts';
import { MAX_PUSH_CONFIGS, type PushOrder, type PushStatus } from '../../core/push/push-config.ts';
import type { Refusal } from '../../core/refusal.ts';
import { invalidField, notFound } from '../../core/refusal.ts';
import { err, ok, type Result } from '../../core/result.ts';
import { deliveryIdOf, type LivePush, originOf, PushBook, type PushHost } from './push-book.ts';
import { PushCourier } from './push-courier.ts';
import type { PushState } from './push-store.ts';

/**
 * The webhooks of one plan: who registers, replaces and deletes them, and how their deliveries stand. Each change is a row of the log,
 * committed with it. A secret goes in here and comes out with deliveries only.
 */
export class PushDesk {
  private readonly host: PushHost;
  private readonly book: PushBook;
  private readonly courier: PushCourier;

  constructor(host: PushHost) {
    this.host = host;
    this.book = new PushBook(host);
    this.courier = new PushCourier(host, this.book);
  }

  /** When a delivery is due, with the log at this row; null: none is. */
  wakeAtMs(seq: number): number | null {
    return this.courier.wakeAtMs(seq);
  }

  /** Rows follow this state: whoever had been told everything up to it reads on from it, and not from the beginning of the log. */
  follow(before: Plan): void {
    for (const { state, reader } of this.book.all()) if (state.seq === before.seq) reader.startAt(before);
  }

  /** Begins the deliveries that are due, and waits for none. */
  kick(): void {
    this.courier.kick();
  }

  /** The same again changes nothing; another target under the same id takes the place of the first and goes on where it stood. */
  set({ id: given, wire, target, by, afterSeq, ...traced }: PushOrder & Traced): Result<PushStatus, Refusal> {
    const plan = this.host.plan();
    if (plan === null) return err(notFound('plan', ''));
    const id = given ?? plan.id;
    const known = this.book.get(id);
    if (known !== null && known.state.stopped === null && isSame(known, { wire, target })) return ok(this.statusOf(known));
    if (known === null && this.book.all().length >= MAX_PUSH_CONFIGS) {
      const message = `the task has ${MAX_PUSH_CONFIGS} configurations already, and may not have more; delete one, or give the id of one to replace it`;
      return err(invalidField('id', message, { limit: MAX_PUSH_CONFIGS, task_id: plan.id }));
    }
    const createdAt = new Date(this.host.nowMs()).toISOString();
    const goesOn = known !== null && known.state.stopped === null;
    const config = { id, wire, target, createdAt, born: goesOn ? known.config.born : plan.seq + 1 };
    const state: PushState = goesOn
      ? { ...known.state, part: known.config.wire === wire ? known.state.part : 0, tries: 0, nextAtMs: 0 }
      : startedAt(Math.min(afterSeq ?? plan.seq, plan.seq));
    const live = goesOn ? known : this.book.live(config, state);
    const change = {
      config_id: id,
      change: known === null ? ('created' as const) : ('replaced' as const),
      origin: originOf(target.url),
      wire,
    };
    const recorded = this.host.record({ ...change, ...traced }, by, () => {
      if (!goesOn && known !== null) this.book.erase(id);
      this.book.put({ ...live, config, state });
    });
    if (!recorded.ok) return recorded;
    if (state.seq === plan.seq) live.reader.startAt(plan);
    live.config = config;
    live.state = state;
    live.revision += 1;
    this.book.add(live);
    return ok(this.statusOf(live));
  }

  /** By id. */
  list(): readonly PushStatus[] {
    return this.book
      .all()
      .toSorted((a, b) => (a.config.id < b.config.id ? -1 : 1))
      .map((live) => this.statusOf(live));
  }

  /** False: there was none; that is no failure. */
  remove(id: string, by: ActorRef): Result<boolean, Refusal> {
    const live = this.book.get(id);
    if (live === null) return ok(false);
    const { wire, target } = live.config;
    const change = { config_id: id, change: 'deleted' as const, origin: originOf(target.url), wire };
    const recorded = this.host.record(change, by, () => this.book.erase(id));
    if (!recorded.ok) return recorded;
    this.book.forget(id);
    return ok(true);
  }

  /** Sends again what was given up (or one of it), and goes on where it was stopped. */
  retry(id: string, sequence: number | null, by: ActorRef): Result<PushStatus, Refusal> {
    const live = this.book.get(id);
    if (live === null) return err(notFound('push_config', id));
    if (sequence !== null && !this.book.letters(id).some((letter) => letter.sequence === sequence))
      return err(notFound('delivery', deliveryIdOf(this.host, live.config, sequence)));
    const { wire, target } = live.config;
    const state: PushState = { ...live.state, stopped: null, tries: 0, nextAtMs: 0, givenUpInRow: 0 };
    let { again } = live;
    const change = { config_id: id, change: 'resumed' as const, origin: originOf(target.url), wire };
    const recorded = this.host.record(change, by, () => {
      again = this.book.requeue(id, sequence);
      this.book.write(live, state);
    });
    if (!recorded.ok) return recorded;
    live.again = again;
    live.state = state;
    return ok(this.statusOf(live));
  }

  private statusOf(live: LivePush): PushStatus {
    const { config, state, reader } = live;
    const { stopped, delivered, tries, givenUp, lastError, lastDeliveredAt } = state;
    const letters = this.book.letters(config.id);
    return {
      id: config.id,
      wire: config.wire,
      url: config.target.url,
      schemes: config.target.authentication?.schemes ?? [],
      createdAt: config.createdAt,
      stopped,
      delivered,
      // Whoever is told everything costs nothing to look at, however long the log is.
      waiting: (state.seq === this.host.plan()?.seq ? 0 : reader.count(config.wire, state)) + live.again.length,
      tries,
      nextTryAt: stopped === null && tries > 0 ? new Date(state.nextAtMs).toISOString() : null,
      lastError,
      lastDeliveredAt,
      deadLetters: letters.map(({ cursor: _cursor, ...letter }) => ({
        ...letter,
        deliveryId: deliveryIdOf(this.host, config, letter.sequence),
      })),
      givenUp,
    };
  }
}

function startedAt(seq: number): PushState {
  return {
    seq,
    part: 0,
    sequence: 0,
    tries: 0,
    nextAtMs: 0,
    stopped: null,
    givenUpInRow: 0,
    delivered: 0,
    givenUp: 0,
    lastError: null,
    lastDeliveredAt: null,
  };
}

function isSame({ config }: LivePush, { wire, target }: Pick<PushOrder, 'wire' | 'target'>): boolean {
  return config.wire === wire && JSON.stringify(config.target) === JSON.stringify(target);
}
