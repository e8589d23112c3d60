/** What follows from one attempt to deliver a notification: pure, so that pauses, ends and ages are tested by table. */

/** Milliseconds; a deployment has one, tests have shorter ones. */
export interface PushTiming {
  /** Longest time that a receiver may take to answer. */
  readonly timeoutMs: number;
  /** First pause; each further one is twice as long. */
  readonly pauseMs: number;
  /** Longest pause, also of those that a receiver asks for. */
  readonly maxPauseMs: number;
  /** A notification that is older than this when an attempt fails is given up. */
  readonly maxAgeMs: number;
}

export const PUSH_TIMING: PushTiming = { timeoutMs: 10_000, pauseMs: 1_000, maxPauseMs: 3_600_000, maxAgeMs: 86_400_000 };

/** So often is something sent that the receiver refuses each time. */
export const MAX_REFUSALS = 8;

export type Attempt =
  | { readonly kind: 'answered'; readonly status: number; readonly retryAfter: string | null }
  | { readonly kind: 'unanswered'; readonly problem: 'timeout' | 'unreachable' };

export type Judgement =
  | { readonly kind: 'delivered' }
  /** The receiver wants nothing any more. */
  | { readonly kind: 'gone' }
  | { readonly kind: 'retry'; readonly pauseMs: number }
  /** Given up; it is kept as a dead letter. */
  | { readonly kind: 'dead'; readonly reason: 'refused' | 'expired' };

export interface AttemptContext {
  readonly timing: PushTiming;
  /** Attempts of this notification, this one included. */
  readonly tries: number;
  /** Since what it tells has happened. */
  readonly ageMs: number;
  readonly nowMs: number;
  /** From 0 to below 1. */
  readonly random: number;
}

export function judgeAttempt(attempt: Attempt, { timing, tries, ageMs, nowMs, random }: AttemptContext): Judgement {
  if (attempt.kind === 'answered') {
    if (attempt.status >= 200 && attempt.status < 300) return { kind: 'delivered' };
    if (attempt.status === 410) return { kind: 'gone' };
    if (isRefusal(attempt.status) && tries >= MAX_REFUSALS) return { kind: 'dead', reason: 'refused' };
  }
  if (ageMs >= timing.maxAgeMs) return { kind: 'dead', reason: 'expired' };
  const own = Math.min(timing.maxPauseMs, timing.pauseMs * 2 ** Math.min(tries - 1, 40));
  const asked = attempt.kind === 'answered' ? pauseAskedFor(attempt.retryAfter, nowMs) : 0;
  // At least half of it, so that a storm spreads out and nobody comes at once.
  return { kind: 'retry', pauseMs: Math.min(timing.maxPauseMs, Math.max(Math.round(own * (0.5 + random / 2)), asked)) };
}

/** Redirects are not followed, and what a client did wrong stays wrong; too early, too long and too many are a matter of time. */
function isRefusal(status: number): boolean {
  return status >= 300 && status < 500 && status !== 408 && status !== 425 && status !== 429;
}

/** `Retry-After` in seconds or as a date (RFC 9110 section 10.2.3); 0: none, or none that is understood. */
function pauseAskedFor(value: string | null, nowMs: number): number {
  const text = value?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const atMs = /[a-z]/i.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(atMs) ? 0 : Math.max(0, atMs - nowMs);
}
