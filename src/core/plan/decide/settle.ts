import { evaluateGate, GATES } from '../../gates.ts';
import { effectiveLimit } from '../../guard-policy.ts';
import type { JsonValue } from '../../json.ts';
import { chargeOf } from '../../ledger.ts';
import type { Refusal } from '../../refusal.ts';
import { invalidState } from '../../refusal.ts';
import { err, ok, type Result } from '../../result.ts';
import type { CommittedWrite, PathChange } from '../at-once.ts';
import type { SettleOutcome } from '../commands.ts';
import type { Charge } from '../events.ts';
import { reservationId } from '../evolve.ts';
import { type Call, pendingApprovals } from '../plan.ts';
import { SYSTEM, type Work } from '../work.ts';
import { openGateIfDue, redecide, warnOnce } from './calls.ts';
import { failUnattended, openApproval } from './open-approval.ts';

/** First pause before a retry; doubles with every attempt up to a minute. */
export const RETRY_BASE_MS = 500;
const RETRY_MAX_MS = 60_000;

/** What a human can say of a call whose outcome is not known. */
export const UNKNOWN_CHOICES = ['done', 'failed', 'retry'] as const;

/** Records how a call ended: its charge, its changes, and what follows from a failure. A result that comes too late counts as cost only. */
export function settleCall(work: Work, callId: string, attempt: number, outcome: SettleOutcome): Result<null, Refusal> {
  const plan = work.plan();
  const call = plan.calls[callId];
  const reservation = `${callId}.${attempt}`;
  const isReserved = plan.ledger.reservations.some((each) => each.id === reservation);
  const isOpen =
    call !== undefined && call.attempt === attempt && (call.status === 'authorised' || call.status === 'sent' || call.status === 'unknown');
  if (outcome.status === 'written') return settleWrite(work, call, attempt, outcome);
  if (call?.atOnce === true && outcome.status === 'succeeded' && outcome.changes.length > 0)
    return err(invalidState(`call ${callId} changes nothing but what the project holds`));
  if (!isOpen || plan.terminal) {
    // A call that was not marked as sent lost its reservation when the plan ended; if it ran all the same, it is paid for.
    if (!isReserved && !(isOpen && plan.terminal)) return err(invalidState(`call ${callId} is not open`));
    const costsNothing = outcome.status === 'failed' && !outcome.dispatched;
    work.emit('call_settled', SYSTEM, {
      ...empty(callId, attempt),
      outcome: outcome.status === 'succeeded' ? 'succeeded' : 'failed',
      reason: outcome.status === 'unknown' ? outcome.reason : outcome.status === 'failed' ? outcome.error.message : null,
      charge: costsNothing ? null : chargeFor(work, reservation, outcome, call?.estimateMicroUsd ?? 0),
      late: true,
    });
    return ok(null);
  }
  if (call.status === 'unknown' && outcome.status !== 'unknown') closeUnknown(work, call);
  if (outcome.status === 'succeeded') settleSuccess(work, call, outcome);
  else if (outcome.status === 'failed') settleFailure(work, call, outcome);
  else settleUnknown(work, call, outcome.reason);
  warnOnce(work);
  openGateIfDue(work);
  return ok(null);
}

/** The project holds the write. That is so also where the plan has ended meanwhile, and then said with what it cost. */
function settleWrite(work: Work, call: Call | undefined, attempt: number, outcome: CommittedWrite): Result<null, Refusal> {
  const write = call?.write;
  if (call === undefined || write === undefined || call.status !== 'sent' || call.attempt !== attempt)
    return err(invalidState('no such write was sent'));
  const { terminal } = work.plan();
  work.emit('call_settled', SYSTEM, {
    ...empty(call.id, attempt),
    outcome: 'succeeded',
    result: write.result,
    charge: chargeOfReport(work, reservationId(call), write.reportedUsd, call.estimateMicroUsd),
    changes: outcome.changes,
    written: { commit_id: write.commitId, head: outcome.head, previous: outcome.previous, before: outcome.before },
    taint: write.taint,
    ...(terminal ? { late: true as const } : {}),
  });
  if (terminal) return ok(null);
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
    ...(outcome.tree === undefined || outcome.changes.length === 0 ? {} : { tree: outcome.tree }),
    read_paths: outcome.readPaths,
    taint: outcome.taint,
    ...seenIn(outcome),
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
  if (mayRepeat && !retriesLeft) {
    // The guard of retries says so, in the words of every limit: a human can grant more, an unattended plan fails.
    work.emit('call_settled', SYSTEM, {
      ...empty(call.id, call.attempt),
      outcome: 'retrying',
      error: outcome.error,
      reason: outcome.error.message,
      charge,
      ...seenIn(outcome),
    });
    redecide(work, [call.id]);
    return;
  }
  const retries = mayRepeat;
  work.emit('call_settled', SYSTEM, {
    ...empty(call.id, call.attempt),
    outcome: retries && ruling !== 'fail' ? 'retrying' : 'failed',
    error: outcome.error,
    reason: outcome.error.message,
    retry_at: retries && ruling === 'proceed' ? new Date(Date.parse(work.context.now) + backoffMs(call.attempt)).toISOString() : null,
    charge,
    ...seenIn(outcome),
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
    policy_digest: plan.policyDigest,
  });
  if (ruling === 'ask') openRetryGate(work, call.id, reason);
  if (ruling === 'fail') failUnattended(work, reason);
}

/** Asks whether a failed call may be repeated. */
export function openRetryGate(work: Work, callId: string, reason: string): void {
  const plan = work.plan();
  const call = plan.calls[callId];
  if (call === undefined) return;
  openApproval(work, {
    kind: 'gate',
    reason,
    gate: 'modify_config',
    threshold: plan.policy.thresholds.modify_config,
    confidence: call.confidence,
    callIds: [call.id],
    subject: {
      call: { tool: call.tool, arguments: call.arguments, class: call.riskClass },
      details: { error: call.error?.message ?? null, attempt: call.attempt },
    },
    binds: { gate: 'modify_config', call: call.digest, attempt: call.attempt },
    estimateMicroUsd: call.estimateMicroUsd,
  });
}

/** Sent, and nobody can say whether it happened: repeating could do it twice, so a human decides. The reservation stays until then. */
function settleUnknown(work: Work, call: Call, reason: string): void {
  if (call.status === 'unknown') return;
  if (work.plan().policy.unattended) {
    abandonUnknown(work, call, reason);
    failUnattended(work, reason);
    return;
  }
  work.emit('call_settled', SYSTEM, { ...empty(call.id, call.attempt), outcome: 'unknown', reason, charge: null });
  openUnknown(work, call.id, reason);
}

/** Nobody will say what became of it: it counts as failed, and is charged in full. */
function abandonUnknown(work: Work, call: Call, reason: string): void {
  const charge = chargeFor(work, reservationId(call), { status: 'unknown', reason });
  work.emit('call_settled', SYSTEM, { ...empty(call.id, call.attempt), outcome: 'failed', reason, charge });
}

/** Before a plan ends by command: calls whose outcome only a human could have told are charged, so that no reservation stays behind. */
export function abandonAllUnknown(work: Work): void {
  for (const call of Object.values(work.plan().calls)) {
    if (call.status === 'unknown') abandonUnknown(work, call, 'the plan ended before anybody said what became of it');
  }
}

/** The outcome came after all: there is nothing left to ask. */
function closeUnknown(work: Work, call: Call): void {
  for (const approval of pendingApprovals(work.plan())) {
    if (approval.kind !== 'unknown_outcome' || !approval.callIds.includes(call.id)) continue;
    work.emit('approval_closed', SYSTEM, { approval_id: approval.id, status: 'revoked', reason: 'the outcome has become known' });
  }
}

/** Asks a human what became of a call. */
export function openUnknown(work: Work, callId: string, reason: string): void {
  const call = work.plan().calls[callId];
  if (call === undefined) return;
  openApproval(work, {
    kind: 'unknown_outcome',
    reason,
    callIds: [call.id],
    subject: {
      call: { tool: call.tool, arguments: call.arguments, class: call.riskClass },
      question: `Whether ${call.tool} happened is not known. Mark it done, mark it failed, or retry it.`,
      choices: [...UNKNOWN_CHOICES],
    },
    binds: { call: call.digest, attempt: call.attempt },
    estimateMicroUsd: call.estimateMicroUsd,
  });
}

/** What the call costs: its report judged against its reservation, or its estimate where that is gone. A call that reports nothing costs its price. */
export function chargeFor(
  work: Work,
  id: string,
  outcome: Exclude<SettleOutcome, { readonly status: 'written' }>,
  estimateMicroUsd = 0,
): Charge {
  return chargeOfReport(work, id, outcome.status === 'unknown' ? null : outcome.reportedUsd, estimateMicroUsd);
}

function chargeOfReport(work: Work, id: string, reportedUsd: unknown, estimateMicroUsd: number): Charge {
  const held = work.plan().ledger.reservations.find((each) => each.id === id);
  const reserved = held?.amountMicroUsd ?? 0;
  const { chargedMicroUsd, marks } = chargeOf(held === undefined ? estimateMicroUsd : reserved, reportedUsd);
  return { id, reserved_micro_usd: reserved, reported: asJson(reportedUsd), charged_micro_usd: chargedMicroUsd, marks };
}

/** NaN, Infinity and foreign objects become text, which a later reading judges just the same: no usable number. */
export function asJson(value: unknown): JsonValue {
  if (value === undefined || value === null) return null;
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  return typeof value === 'string' ? value.slice(0, 100) : `(${typeof value})`;
}

/** What is known of the project's files now, in the row that says how the call ended. */
function seenIn({ seen }: { readonly seen?: readonly PathChange[] }): { readonly seen?: readonly PathChange[] } {
  return seen === undefined || seen.length === 0 ? {} : { seen };
}

function empty(callId: string, attempt: number) {
  return {
    call_id: callId,
    attempt,
    result: null,
    error: null,
    reason: null,
    retry_at: null,
    changes: [],
    read_paths: [],
    taint: null,
  } as const;
}

function backoffMs(attempt: number): number {
  return Math.min(RETRY_MAX_MS, RETRY_BASE_MS * 2 ** (attempt - 1));
}
