import type { RefusalNote } from '../core/org-log/refusals.ts';
import { mergeRefusals, refusalBucket } from '../core/org-log/refusals.ts';

/** Sends refusals that were counted together; the same id again counts nothing. */
export type SendRefusals = (batchId: string, notes: readonly RefusalNote[]) => Promise<void>;

export interface RefusalDeskHost {
  nowMs(): number;
  newId(): string;
  wait(ms: number): Promise<void>;
  /** Said of what could not be delivered. */
  report(problem: string, org: string, notes: readonly RefusalNote[], cause: unknown): void;
}

/** Between two batches of one org. Whoever is refused all the time costs the org's object one message a second, per isolate. */
const PAUSE_MS = 1_000;

const ATTEMPTS = 4;

/** Longest time that a sender is believed to be alive: the platform ends what goes on after an answer. */
const SENDER_MS = 25_000;

interface Desk {
  readonly waiting: Map<string, RefusalNote>;
  /** Not known to have arrived; whoever sends next sends it first, under its id. */
  inFlight: { readonly id: string; readonly notes: readonly RefusalNote[] } | null;
  senderUntilMs: number;
  lastSentMs: number;
}

/**
 * The refusals of one isolate on their way to the orgs' logs. The first one is sent at once, those that follow are put together; nobody
 * who is refused waits for any of it, and what was taken is kept until it has arrived.
 */
export class RefusalDesk {
  private readonly host: RefusalDeskHost;
  private readonly desks = new Map<string, Desk>();

  constructor(host: RefusalDeskHost) {
    this.host = host;
  }

  /** Takes one refusal. The answer is work to be kept alive in the background; null: somebody else is sending. */
  take(org: string, note: RefusalNote, send: SendRefusals): Promise<void> | null {
    const now = this.host.nowMs();
    const desk = this.desks.get(org) ?? { waiting: new Map(), inFlight: null, senderUntilMs: 0, lastSentMs: 0 };
    this.desks.set(org, desk);
    const bucket = refusalBucket(note);
    desk.waiting.set(bucket, mergeRefusals(desk.waiting.get(bucket) ?? null, note));
    if (now < desk.senderUntilMs) return null;
    desk.senderUntilMs = now + SENDER_MS;
    return this.sendAll(org, desk, send);
  }

  private async sendAll(org: string, desk: Desk, send: SendRefusals): Promise<void> {
    const until = desk.senderUntilMs;
    while (desk.inFlight !== null || desk.waiting.size > 0) {
      const pauseMs = desk.lastSentMs + PAUSE_MS - this.host.nowMs();
      if (pauseMs > 0) await this.host.wait(pauseMs);
      if (desk.inFlight === null) {
        desk.inFlight = { id: this.host.newId(), notes: [...desk.waiting.values()] };
        desk.waiting.clear();
      }
      await this.deliver(org, desk, desk.inFlight, send);
      // Its time is over: what is left is for the next one who is refused.
      if (this.host.nowMs() >= until) return;
    }
    desk.senderUntilMs = 0;
  }

  private async deliver(org: string, desk: Desk, batch: NonNullable<Desk['inFlight']>, send: SendRefusals): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await send(batch.id, batch.notes);
        break;
      } catch (cause) {
        if (attempt < ATTEMPTS) {
          await this.host.wait(200 * 3 ** (attempt - 1));
          continue;
        }
        // Not lost silently: the operator's log has them.
        this.host.report('refusals could not be written to the log of the org', org, batch.notes, cause);
        break;
      }
    }
    if (desk.inFlight === batch) desk.inFlight = null;
    desk.lastSentMs = this.host.nowMs();
  }
}
