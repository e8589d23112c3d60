import { evaluateGate, GATES } from '../../gates.ts';
import type { JsonValue } from '../../json.ts';
import { chargeOf } from '../../ledger.ts';
import { effectiveLimit } from '../../guard-policy.ts';
import type { Refusal } from '../../refusal.ts';
import { invalidState } from '../../refusal.ts';
import { err, ok, type Result } from '../../result.ts';
import type { SettleOutcome } from '../commands.ts';
import type { Charge } from '../events.ts';
import { reservationId } from '../evolve.ts';
import type { Call } from '../plan.ts';
import { SYSTEM, type Work } from '../work.ts';
import { openGateIfDue, warnOnce } from './calls.ts';
import { failUnattended, openApproval } from './open-approval.ts';

/** First pause before a retry; doubles with every attempt up to a minute. */
export const RETRY_BASE_MS = 500;
const RETRY_MAX_MS = 60_000;

/** Records how a call ended: its charge, its changes, and what follows from a failure. A result that comes too late counts as cost only. */
export function settleCall(work: Work, callId: string, attempt: number, outcome: SettleOutcome): Result<null, Refusal> {
  const plan = work.plan();
  const call = plan.calls[callId];
  const reservation = `${callId}.${attempt}`;
  const isReserved = plan.ledger.reservations.some((each) => each.id === reservation);
  const isOpen = call !== undefined && call.attempt === attempt && (call.status === 'authorised' || call.status === 'sent' || call.status === 'unknown');
  if (!isOpen || plan.terminal) {
    if (!isReserved) return err(invalidState(`call ${callId} is not open`));
    work.emit('call_settled', SYSTEM, {
      ...empty(callId, attempt),
      outcome: outcome.status === 'succeeded' ? 'succeeded' : 'failed',
      charge: chargeFor(work, reservation, outcome),
      late: true,
    });
    return ok(null);
  }
  if (outcome.status === 'succeeded') settleSuccess(work, call, outcome);
  else if (outcome.status === 'failed') settleFailure(work, call, outcome);
  else settleUnknown(work, call, outcome.reason);
  warnOnce(work);
  openGateIfDue(work);
  return ok(null);
}

function settleSuccess(work: Work, call: Call, outcome: Extract<SettleOutcome, { status: 'succeeded' }>): void {
  for (const bytes of outcome.blobs.values()) work.storeBytes(bytes);
  work.emit('call_settled', SYSTEM, {
    ...empty(call.id, call.attempt),
    outcome: 'succeeded',
    result: work.store(outcome.result),
    charge: chargeFor(work, reservationId(call), outcome),
    changes: outcome.changes,
    read_paths: outcome.readPaths,
    taint: outcome.taint,
  });
}

/** A passing failure of a call that may be repeated is retried through the gate modify_config; every other failure is the actor's to deal with. */
function settleFailure(work: Work, call: Call, outcome: Extract<SettleOutcome, { status: 'failed' }>): void {
  const plan = work.plan();
  const charge = outcome.dispatched ? chargeFor(work, reservationId(call), outcome) : null;
  const limit = effectiveLimit(plan.policy.maxRetries, plan.grants.retries);
  const retriesLeft = limit === null || call.attempt - 1 < limit;
  const mayRepeat = outcome.error.transient && (call.scope === 'workspace' || call.idempotent || !outcome.dispatched);
  const threshold = plan.policy.thresholds.modify_config;
  const confidence = call.confidence;
  const ruling = evaluateGate({ threshold, confidence: confidence?.value ?? null, unattended: plan.policy.unattended });
  const retries = mayRepeat && retriesLeft;
  work.emit('call_settled', SYSTEM, {
    ...empty(call.id, call.attempt),
    outcome: retries && ruling !== 'fail' ? 'retrying' : 'failed',
    error: outcome.error,
    reason: outcome.error.message,
    retry_at: retries && ruling === 'proceed' ? new Date(Date.parse(work.context.now) + backoffMs(call.attempt)).toISOString() : null,
    charge,
  });
  if (!retries) return;
  const reason = `modify_config (${GATES.modify_config.transition}): attempt ${call.attempt} of ${limit === null ? 'any number' : limit + 1} failed: ${outcome.error.message}`;
  work.emit('gate_decided', SYSTEM, {
    gate: 'modify_config',
    outcome: ruling,
    via: 'threshold',
    threshold,
    confidence,
    reason,
    subject_digest: call.digest,
  });
  if (ruling === 'ask') {
    openApproval(work, {
      kind: 'gate',
      reason,
      gate: 'modify_config',
      threshold,
      confidence,
      callIds: [call.id],
      subject: { call: { tool: call.tool, arguments: call.arguments, class: call.riskClass }, details: { error: outcome.error.message, attempt: call.attempt } },
      binds: { gate: 'modify_config', call: call.digest, attempt: call.attempt },
    });
  }
  if (ruling === 'fail') failUnattended(work, reason);
}

/** Sent, and nobody can say whether it happened: repeating could do it twice, so a human decides. The reservation stays until then. */
function settleUnknown(work: Work, call: Call, reason: string): void {
  if (call.status === 'unknown') return;
  work.emit('call_settled', SYSTEM, { ...empty(call.id, call.attempt), outcome: 'unknown', reason, charge: null });
  if (work.plan().policy.unattended) {
    failUnattended(work, reason);
    return;
  }
  openApproval(work, {
    kind: 'unknown_outcome',
    reason,
    callIds: [call.id],
    subject: {
      call: { tool: call.tool, arguments: call.arguments, class: call.riskClass },
      question: `Whether ${call.tool} happened is not known. Mark it done, mark it failed, or retry it.`,
      choices: ['done', 'failed', 'retry'],
    },
    binds: { call: call.digest, attempt: call.attempt },
    estimateMicroUsd: call.estimateMicroUsd,
  });
}

/** What the call costs: its report judged against its reservation. A workspace call that reports nothing still costs its price. */
export function chargeFor(work: Work, id: string, outcome: SettleOutcome): Charge {
  const reserved = work.plan().ledger.reservations.find((each) => each.id === id)?.amountMicroUsd ?? 0;
  const reportedUsd = outcome.status === 'unknown' ? null : outcome.reportedUsd;
  const { chargedMicroUsd, marks } = chargeOf(reserved, reportedUsd);
  return { id, reserved_micro_usd: reserved, reported: asJson(reportedUsd), charged_micro_usd: chargedMicroUsd, marks };
}

/** NaN, Infinity and foreign objects become text, which a later reading judges just the same: no usable number. */
function asJson(value: unknown): JsonValue {
  if (value === undefined || value === null) return null;
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  return typeof value === 'string' ? value.slice(0, 100) : `(${typeof value})`;
}

function empty(callId: string, attempt: number) {
  return { call_id: callId, attempt, result: null, error: null, reason: null, retry_at: null, changes: [], read_paths: [], taint: null } as const;
}

function backoffMs(attempt: number): number {
  return Math.min(RETRY_MAX_MS, RETRY_BASE_MS * 2 ** (attempt - 1));
}
