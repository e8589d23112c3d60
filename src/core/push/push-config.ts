/** Webhooks of a plan as they are kept and as they are shown. */
import type { ActorRef } from '../plan/plan.ts';

/** The wire that a webhook reads: that of the request which registered it. */
export type PushWire = '1.0' | '0.3';

/** So many webhooks may be registered for one plan. */
export const MAX_PUSH_CONFIGS = 10;

/** What a client gives. `token` and the credentials are secrets: they go out with deliveries and nowhere else. */
export interface PushTarget {
  readonly url: string;
  readonly token?: string;
  readonly authentication?: { readonly schemes: readonly string[]; readonly credentials?: string };
}

export interface PushOrder {
  /** Absent: the id of the plan, so that a request that is repeated replaces its own. */
  readonly id?: string;
  readonly wire: PushWire;
  readonly target: PushTarget;
  readonly by: ActorRef;
  /** Told is what happens behind this row of the log; absent: from now on. */
  readonly afterSeq?: number;
}

/** Why nothing more is sent: the receiver said that it is gone; too many notifications in a row were given up; nothing may be sent there any more. */
export type PushStop = 'gone' | 'failing' | 'target_refused';

/** A notification that was given up. Its delivery id and number stay the same when it is sent again. */
export interface DeadLetter {
  readonly deliveryId: string;
  readonly sequence: number;
  /** The row of the log that it tells of. */
  readonly seq: number;
  readonly reason: 'refused' | 'expired';
  readonly tries: number;
  readonly lastError: string;
  readonly at: string;
  /** Somebody asked for it to be sent again. */
  readonly again: boolean;
}

/** A webhook without its secrets, and how its deliveries stand. */
export interface PushStatus {
  readonly id: string;
  readonly wire: PushWire;
  readonly url: string;
  /** The schemes of its authentication; empty: it has none. */
  readonly schemes: readonly string[];
  readonly createdAt: string;
  readonly stopped: PushStop | null;
  readonly delivered: number;
  /** Updates of the plan that are still to be told. */
  readonly waiting: number;
  /** Of the notification that is next. */
  readonly tries: number;
  readonly nextTryAt: string | null;
  readonly lastError: string | null;
  readonly lastDeliveredAt: string | null;
  /** The newest that are kept, oldest first. */
  readonly deadLetters: readonly DeadLetter[];
  /** All that were ever given up. */
  readonly givenUp: number;
}

/** What the log of the plan says of a change: who may be told what is a matter of security. Never a secret, and no path that may hold one. */
export interface PushChange {
  readonly config_id: string;
  readonly change: 'created' | 'replaced' | 'deleted' | 'stopped' | 'resumed';
  /** Scheme, host and port of where it leads. */
  readonly origin: string;
  readonly wire: PushWire;
  readonly reason?: PushStop;
}
