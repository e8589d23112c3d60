import type { PushParts } from '../../app/ports.ts';
import type { Traced } from '../../core/plan/commands.ts';
import type { ActorRef, Plan } from '../../core/plan/plan.ts';
import type { PushChange } from '../../core/push/push-config.ts';
import type { Refusal } from '../../core/refusal.ts';
import type { Result } from '../../core/result.ts';
import { type PushLog, PushReader } from './push-reader.ts';
import { type PushState, PushStore, type StoredLetter, type StoredPush } from './push-store.ts';

/** What the webhooks of a plan need from its object. */
export interface PushHost extends PushLog {
  readonly sql: SqlStorage;
  transact(write: () => void): void;
  plan(): Plan | null;
  parts(): PushParts;
  nowMs(): number;
  /** Commits a row of the log that tells of a change, together with the change. Refused: neither is there. */
  record(change: PushChange & Traced, by: ActorRef, write: () => void): Result<null, Refusal>;
  /** Something may be due at another time than before. */
  stepped(): void;
  /** Goes on after the call that began it. */
  background(work: Promise<void>): void;
  report(problem: string, cause: unknown): void;
}

/** A webhook in memory, as it is stored. */
export interface LivePush {
  config: StoredPush;
  state: PushState;
  /** Letters to be sent again, oldest first. */
  again: readonly StoredLetter[];
  /** Counts registrations under this id, so that an answer of an earlier target is told from one of this. */
  revision: number;
  /** Until when a delivery that is under way may take; null: none is. */
  busyUntilMs: number | null;
  readonly reader: PushReader;
  readonly letterReader: PushReader;
}

/** The webhooks of a plan, in memory and in the store alike. */
export class PushBook {
  private readonly host: PushHost;
  private readonly store: PushStore;
  private readonly byId = new Map<string, LivePush>();

  constructor(host: PushHost) {
    this.host = host;
    this.store = new PushStore(host.sql);
    for (const { config, state } of this.store.list()) {
      const again = this.store.letters(config.id).filter((letter) => letter.again);
      this.byId.set(config.id, this.live(config, state, again));
    }
  }

  all(): readonly LivePush[] {
    return [...this.byId.values()];
  }

  get(id: string): LivePush | null {
    return this.byId.get(id) ?? null;
  }

  live(config: StoredPush, state: PushState, again: readonly StoredLetter[] = []): LivePush {
    const render: PushParts['render'] = (...args) => this.host.parts().render(...args);
    const readers = { reader: new PushReader(this.host, render), letterReader: new PushReader(this.host, render) };
    return { config, state, again, revision: 0, busyUntilMs: null, ...readers };
  }

  /** To the store, within the caller's transaction. */
  put(live: LivePush): void {
    this.store.put(live.config, live.state);
  }

  write({ config }: LivePush, state: PushState): void {
    this.store.setState(config.id, state);
  }

  add(live: LivePush): void {
    this.byId.set(live.config.id, live);
  }

  /** To the store, within the caller's transaction. */
  erase(id: string): void {
    this.store.remove(id);
  }

  forget(id: string): void {
    this.byId.delete(id);
  }

  /** With what else changes, in one transaction. */
  save(live: LivePush, state: PushState, also: () => void = () => {}): void {
    this.host.transact(() => {
      this.store.setState(live.config.id, state);
      also();
    });
    live.state = state;
  }

  letters(id: string): readonly StoredLetter[] {
    return this.store.letters(id);
  }

  giveUp(live: LivePush, letter: StoredLetter): void {
    this.store.putLetter(live.config.id, letter);
    live.again = live.again.filter(({ sequence }) => sequence !== letter.sequence);
  }

  dropLetter(live: LivePush, letter: StoredLetter): void {
    this.store.removeLetter(live.config.id, letter.sequence);
    live.again = live.again.filter(({ sequence }) => sequence !== letter.sequence);
  }

  /** A letter that the log knows nothing of any more. */
  dropAgain(live: LivePush, letter: StoredLetter): void {
    this.dropLetter(live, letter);
  }

  /** To the store, within the caller's transaction; answers the letters that are due then. */
  requeue(id: string, sequence: number | null): readonly StoredLetter[] {
    const letters = this.store.letters(id);
    const chosen = letters.filter((letter) => sequence === null || letter.sequence === sequence || letter.again);
    for (const letter of chosen) if (!letter.again) this.store.putLetter(id, { ...letter, again: true });
    return chosen.map((letter) => ({ ...letter, again: true }));
  }

  dropLetters(id: string): void {
    this.store.dropLetters(id);
  }
}

/** Of the plan, of the registration, of the notification: no other delivery anywhere has it. */
export function deliveryIdOf(host: Pick<PushHost, 'plan'>, { born }: StoredPush, sequence: number): string {
  return `${host.plan()?.id ?? ''}.${born}.${sequence}`;
}

/** Where a webhook leads, without the path and the query, which may hold a secret. */
export function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : '';
}
