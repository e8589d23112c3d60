/**
 * Idempotency keys of `authorize`. A decision holds under its key for seven days (design section 12), far longer than the state remembers
 * closed decisions: what a key stands for is read from the log, of which whoever keeps it has an index.
 */
import type { Refusal } from '../../refusal.ts';
import { invalidState } from '../../refusal.ts';
import type { LogRow } from '../events.ts';
import type { Plan } from '../plan.ts';
import type { AuthorizationAnswer } from './commands.ts';

export const KEY_TTL_MS = 7 * 24 * 3600 * 1000;

/** Keys of the last seven days that one plan remembers. Beyond it none is taken that would be forgotten too early. */
export const MAX_REMEMBERED_KEYS = 100_000;

type RowOf<T extends LogRow['type']> = Extract<LogRow, { readonly type: T }>;

/** What is known of the key of one request. */
export interface KeyedDecision {
  /** The newest decision under it, in the last seven days. */
  readonly decided: RowOf<'call_decided'> | null;
  /** How its call ended; null: it did not, or not by itself. */
  readonly settled: RowOf<'call_settled'> | null;
  /** No other key can be remembered until then; null: there is room. */
  readonly isFullUntilMs: number | null;
}

/** The key under which a row decides. */
export function keyOf(row: LogRow): string | null {
  return row.type === 'call_decided' ? (row.data.call.external?.idempotencyKey ?? null) : null;
}

/** What a log says of a key: the definition, which an index answers faster. */
export function keyedIn(rows: readonly LogRow[], key: string, nowMs: number): KeyedDecision {
  const decided = rows.findLast((row): row is RowOf<'call_decided'> => keyOf(row) === key && Date.parse(row.at) > nowMs - KEY_TTL_MS);
  const settled = rows.find((row): row is RowOf<'call_settled'> => decided !== undefined && isEndOf(row, decided));
  return { decided: decided ?? null, settled: settled ?? null, isFullUntilMs: null };
}

export function isEndOf(row: LogRow, decided: RowOf<'call_decided'>): boolean {
  return row.type === 'call_settled' && row.seq > decided.seq && row.data.call_id === decided.data.call.id;
}

/**
 * The answer to a request under a key whose decision the state has forgotten: it is closed, and never becomes a permission again. Null: it
 * was refused and may be asked for again, as if for the first time.
 */
export function answerForgotten({ decided, settled }: KeyedDecision): AuthorizationAnswer | null {
  if (decided === null) return null;
  const { call } = decided.data;
  const reason = endOf(settled) ?? (call.status === 'refused' ? (call.reason ?? 'It was refused.') : null);
  if (reason === null && call.status !== 'authorised') return null;
  return {
    callId: call.id,
    allowed: false,
    reason: reason ?? 'This decision is closed. Remediation: use a new idempotency key for a new call.',
    requiresApproval: false,
    approvalId: null,
    expiresAt: null,
    decidedSeq: decided.seq,
    guards: null,
  };
}

function endOf(settled: KeyedDecision['settled']): string | null {
  if (settled === null) return null;
  const { told, expired, reason } = settled.data;
  if (told !== undefined) return settledAs(told.outcome);
  return expired === true ? `This authorisation has expired and was charged. ${NEW_KEY}` : reason;
}

const NEW_KEY = 'Remediation: use a new idempotency key for a new call.';

export function settledAs(outcome: string): string {
  return `This decision is settled: ${outcome}. ${NEW_KEY}`;
}

/** A key that could be forgotten before its time would let a call be made twice: it is not taken at all. */
export function noRoomForKey(plan: Pick<Plan, 'id'>, untilMs: number): Refusal {
  const until = new Date(untilMs).toISOString();
  return invalidState(
    `the plan remembers ${MAX_REMEMBERED_KEYS} idempotency keys of the last 7 days and takes no other before ${until}: ` +
      'ask without a key, come back then, or open another plan',
    { plan_id: plan.id, limit: MAX_REMEMBERED_KEYS, until },
  );
}
