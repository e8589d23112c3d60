import { SYSTEM } from '../../core/plan/work.ts';
import { judgeAttempt } from '../../core/push/judge-attempt.ts';
import type { PushStop } from '../../core/push/push-config.ts';
import { deliveryIdOf, type LivePush, originOf, type PushBook, type PushHost } from './push-book.ts';
import { type Delivery, postNotification } from './push-post.ts';
import type { PushNotification } from './push-reader.ts';
import type { PushState, StoredLetter } from './push-store.ts';

/** So many receivers of one plan are waited for at once. */
const MAX_AT_ONCE = 4;

/** A delivery of which nothing was heard for so long beyond its time died with its process. */
const LEASE_MARGIN_MS = 2_000;

/** So many notifications given up one after the other, and the webhook is stopped. */
const MAX_GIVEN_UP_IN_ROW = 10;

/** After a failure of ours a webhook is left alone for so long. */
const BROKEN_PAUSE_MS = 60_000;

/** What is sent: the next notification of the log, or one that was given up and is sent again. */
interface Outgoing {
  readonly notification: PushNotification;
  readonly sequence: number;
  readonly letter: StoredLetter | null;
}

/**
 * Delivers what webhooks have to be told.
 *
 * Promise: each webhook gets its notifications one after the other in the order of the log, each at least once and always under the same
 * id; the cursor moves only after the receiver has answered. A slow or dead receiver delays neither the plan nor other receivers. While
 * nothing is due nothing is held: no request, no timer, only the plan's one alarm.
 */
export class PushCourier {
  private readonly host: PushHost;
  private readonly book: PushBook;
  private atOnce = 0;

  constructor(host: PushHost, book: PushBook) {
    this.host = host;
    this.book = book;
  }

  /** When something is due, with the log at this row; null: nothing is. */
  wakeAtMs(seq: number): number | null {
    let wakeAtMs: number | null = null;
    for (const live of this.book.all()) {
      if (!hasWork(live, seq)) continue;
      const at = live.busyUntilMs ?? live.state.nextAtMs;
      wakeAtMs = wakeAtMs === null ? at : Math.min(wakeAtMs, at);
    }
    return wakeAtMs;
  }

  /** Begins what is due, and waits for none of it. */
  kick(): void {
    for (const live of this.book.all()) {
      if (this.atOnce >= MAX_AT_ONCE) return;
      if (live.busyUntilMs !== null || !this.isDue(live)) continue;
      this.atOnce += 1;
      live.busyUntilMs = this.leaseMs();
      this.host.background(this.serve(live));
    }
  }

  private isDue(live: LivePush): boolean {
    const plan = this.host.plan();
    return plan !== null && this.book.get(live.config.id) === live && hasWork(live, plan.seq) && live.state.nextAtMs <= this.host.nowMs();
  }

  private leaseMs(): number {
    return this.host.nowMs() + this.host.parts().timing.timeoutMs + LEASE_MARGIN_MS;
  }

  private async serve(live: LivePush): Promise<void> {
    try {
      while (this.isDue(live)) {
        const outgoing = this.nextOf(live);
        if (outgoing === null) break;
        live.busyUntilMs = this.leaseMs();
        const { config, revision } = live;
        const delivery: Delivery = {
          id: deliveryIdOf(this.host, config, outgoing.sequence),
          sequence: outgoing.sequence,
          body: outgoing.notification.body(),
        };
        const attempt = await postNotification(config, delivery, this.host.parts());
        // Deleted meanwhile, or the plan's log is trusted no more.
        if (this.book.get(config.id) !== live || this.host.plan() === null) return;
        const isDelivered = attempt.kind === 'answered' && attempt.status >= 200 && attempt.status < 300;
        // Registered anew meanwhile: what the old target said counts only if it was a yes.
        if (live.revision !== revision && !isDelivered) continue;
        this.settle(live, outgoing, attempt);
      }
    } catch (cause) {
      this.host.report('a webhook could not be served', cause);
      live.state = { ...live.state, nextAtMs: this.host.nowMs() + BROKEN_PAUSE_MS };
    } finally {
      live.busyUntilMs = null;
      this.atOnce -= 1;
      this.kick();
      this.host.stepped();
    }
  }

  /** Letters that are sent again are older than what the log has next, so they go first. Null: all is told. */
  private nextOf(live: LivePush): Outgoing | null {
    const { config, state, reader, letterReader } = live;
    const [letter] = live.again;
    if (letter !== undefined) {
      const notification = letterReader.next(config.wire, letter.cursor);
      if (typeof notification !== 'number') return { notification, sequence: letter.sequence, letter };
      this.book.dropAgain(live, letter);
      return this.nextOf(live);
    }
    const notification = reader.next(config.wire, state);
    if (typeof notification !== 'number') return { notification, sequence: state.sequence + 1, letter: null };
    if (notification !== state.seq) this.book.save(live, { ...state, seq: notification, part: 0 });
    return null;
  }

  private settle(live: LivePush, outgoing: Outgoing, attempt: Awaited<ReturnType<typeof postNotification>>): void {
    const { notification, letter } = outgoing;
    const { timing, random } = this.host.parts();
    const nowMs = this.host.nowMs();
    if (attempt.kind === 'forbidden') {
      this.stop(live, live.state, 'target_refused');
      return;
    }
    const tries = live.state.tries + 1;
    // A letter was given up because of its age; sent again it has as long as a new one.
    const ageMs = letter === null ? nowMs - Date.parse(notification.at) : 0;
    const judgement = judgeAttempt(attempt, { timing, tries, ageMs, nowMs, random: random() });
    const lastError =
      attempt.kind === 'answered'
        ? `HTTP ${attempt.status}`
        : attempt.problem === 'timeout'
          ? `no answer in ${timing.timeoutMs / 1000} s`
          : 'not reachable';
    const passed: PushState = {
      ...live.state,
      ...(letter === null ? { ...notification.after, sequence: outgoing.sequence } : {}),
      tries: 0,
      nextAtMs: 0,
    };
    switch (judgement.kind) {
      case 'delivered': {
        const state = {
          ...passed,
          delivered: passed.delivered + 1,
          givenUpInRow: 0,
          lastError: null,
          lastDeliveredAt: new Date(nowMs).toISOString(),
        };
        this.book.save(live, state, () => letter !== null && this.book.dropLetter(live, letter));
        return;
      }
      case 'gone':
        this.stop(live, { ...live.state, lastError }, 'gone');
        return;
      case 'retry':
        this.book.save(live, { ...live.state, tries, nextAtMs: nowMs + judgement.pauseMs, lastError });
        return;
      case 'dead': {
        const given: StoredLetter = {
          sequence: outgoing.sequence,
          seq: notification.seq,
          cursor: notification.cursor,
          reason: judgement.reason,
          tries,
          lastError,
          at: new Date(nowMs).toISOString(),
          again: false,
        };
        const state = {
          ...passed,
          givenUp: passed.givenUp + (letter === null ? 1 : 0),
          givenUpInRow: passed.givenUpInRow + 1,
          lastError,
        };
        this.book.save(live, state, () => this.book.giveUp(live, given));
        if (state.givenUpInRow >= MAX_GIVEN_UP_IN_ROW) this.stop(live, state, 'failing');
        return;
      }
    }
  }

  private stop(live: LivePush, state: PushState, reason: PushStop): void {
    const { id, wire, target } = live.config;
    const stopped = { ...state, stopped: reason, tries: 0, nextAtMs: 0 };
    const change = { config_id: id, change: 'stopped' as const, origin: originOf(target.url), wire, reason };
    const recorded = this.host.record(change, SYSTEM, () => this.book.write(live, stopped));
    if (recorded.ok) live.state = stopped;
  }
}

function hasWork({ state, again }: LivePush, seq: number): boolean {
  return state.stopped === null && (state.seq < seq || again.length > 0);
}
