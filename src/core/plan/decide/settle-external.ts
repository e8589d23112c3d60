/** How calls end that were authorised for an executor outside: it says so, or it does not and they expire. */

import { parseReportedUsd, remaining, reservedMicroUsd, spentMicroUsd } from '../../ledger.ts';
import type { Refusal } from '../../refusal.ts';
import { invalidField, invalidState, notFound } from '../../refusal.ts';
import { err, ok, type Result } from '../../result.ts';
import type { Charge } from '../events.ts';
import { reservationId } from '../evolve.ts';
import type { ExternalCommands, SettlementAnswer } from '../external/commands.ts';
import { openAuthorizations, retentionEndsMs } from '../external/external.ts';
import type { Call, Plan } from '../plan.ts';
import { SYSTEM, type Work } from '../work.ts';
import { warnOnce } from './calls.ts';
import { chargeFor } from './settle.ts';

type Settle = ExternalCommands['settle_external'];

/** Once; the same again gets the same answer. What comes after the expiry or after the plan's end is recorded as cost and nothing else. */
export function settleExternal(work: Work, command: Settle): Result<SettlementAnswer, Refusal> {
  const plan = work.plan();
  const { callId, outcome, costUsd } = command;
  const call = plan.calls[callId];
  const context = { plan_id: plan.id, decision_id: `${plan.id}.${callId}` };
  if (call?.external === undefined) {
    return Number(callId.slice(1)) < plan.nextCall
      ? err(invalidState('this decision was closed long ago and is not remembered any more', context))
      : err(notFound('decision', `${plan.id}.${callId}`, context));
  }
  if (outcome === 'not_dispatched' && costUsd !== null && costUsd > 0)
    return err(invalidField('cost_usd', 'what was not dispatched costs nothing', context));
  const { settled, expiresAt } = call.external;
  if (settled !== null) {
    if (settled.outcome === outcome && settled.costUsd === costUsd) return ok(answerFor(plan, call));
    return err(invalidState(`this decision is settled already: ${settled.outcome}`, { ...context, outcome: settled.outcome }));
  }
  if (expiresAt === null) return err(invalidState('this call was not allowed, so there is nothing to settle', context));
  // Past its deadline it has expired, whether or not the alarm has come round to it.
  if (!call.external.isExpired && expiresAt <= work.context.now) expire(work, call);
  record(work, command, work.plan().calls[callId] ?? call);
  warnOnce(work);
  return ok(answerFor(work.plan(), work.plan().calls[callId] ?? call));
}

function record(work: Work, { by, callId, outcome, costUsd }: Settle, call: Call): void {
  const isExpired = call.external?.isExpired === true;
  const isLate = isExpired || work.plan().terminal;
  work.emit('call_settled', by, {
    call_id: callId,
    attempt: call.attempt,
    outcome: outcome === 'succeeded' ? 'succeeded' : 'failed',
    result: null,
    error: null,
    reason: isExpired ? 'told after the authorisation had expired' : outcome === 'not_dispatched' ? 'not dispatched' : null,
    retry_at: null,
    charge: chargeOfTold(work, call, outcome, costUsd, isExpired),
    changes: [],
    read_paths: [],
    taint: outcome === 'not_dispatched' ? null : sourceOf(call),
    told: { outcome, cost_usd: costUsd },
    ...(isLate ? { late: true as const } : {}),
  });
}

/** What expired was charged in full: only what it cost beyond that is charged still. */
function chargeOfTold(work: Work, call: Call, outcome: Settle['outcome'], costUsd: number | null, isExpired: boolean): Charge | null {
  if (!isExpired) return outcome === 'not_dispatched' ? null : chargeFor(work, reservationId(call), told(costUsd));
  if (costUsd === null) return null;
  const charge = { id: reservationId(call), reserved_micro_usd: 0, reported: costUsd };
  const cost = parseReportedUsd(costUsd);
  if (!cost.ok) return { ...charge, charged_micro_usd: 0, marks: ['cost_error'] };
  const excess = cost.value - call.estimateMicroUsd;
  return excess <= 0 ? null : { ...charge, charged_micro_usd: excess, marks: ['overrun'] };
}

/** Where the content came from that is in the executor's context now, also where the call failed or nobody knows; null: from nowhere outside. */
function sourceOf({ external, hosts = [], tool }: Call): string | null {
  if (external?.readsOutside !== true) return null;
  return hosts.length === 0 ? tool : hosts.slice(0, 5).join(', ');
}

function told(costUsd: number | null) {
  return { status: 'failed', error: { code: '', message: '', transient: false }, dispatched: true, reportedUsd: costUsd } as const;
}

/** Time has passed: whoever got these may have acted on them, so they are charged in full. */
export function expireAuthorizations(work: Work): void {
  const { now } = work.context;
  for (const call of openAuthorizations(work.plan())) {
    if (call.external?.expiresAt != null && call.external.expiresAt <= now) expire(work, call);
  }
  warnOnce(work);
}

/**
 * Ends a plan of which nobody was heard for as long as its retention is, whether or not the alarm has come round to it. What is still open
 * is charged in full first. False: it is not over.
 */
export function endRetention(work: Work): boolean {
  const plan = work.plan();
  const endMs = retentionEndsMs(plan);
  if (endMs === null || Date.parse(work.context.now) < endMs) return false;
  for (const call of openAuthorizations(plan)) expire(work, call);
  work.emit('retention_ended', SYSTEM, {
    reason: `nothing has happened in the plan since ${plan.updatedAt}; its retention of ${plan.external?.retentionDays} days is over`,
    to: { phase: plan.phase, state: 'cancelled', terminal: true },
  });
  return true;
}

function expire(work: Work, call: Call): void {
  const reason = `the authorisation expired at ${call.external?.expiresAt ?? ''} without an outcome, and is charged in full`;
  work.emit('call_settled', SYSTEM, {
    call_id: call.id,
    attempt: call.attempt,
    outcome: 'failed',
    result: null,
    error: null,
    reason,
    retry_at: null,
    charge: chargeFor(work, reservationId(call), { status: 'unknown', reason }),
    changes: [],
    read_paths: [],
    taint: sourceOf(call),
    expired: true,
    ...(work.plan().terminal ? { late: true as const } : {}),
  });
}

function answerFor(plan: Plan, call: Call): SettlementAnswer {
  const settled = call.external?.settled;
  return {
    callId: call.id,
    outcome: settled?.outcome ?? 'failed',
    chargedMicroUsd: settled?.chargedMicroUsd ?? 0,
    marks: settled?.marks ?? [],
    isLate: settled?.isLate === true,
    spentMicroUsd: spentMicroUsd(plan.ledger),
    reservedMicroUsd: reservedMicroUsd(plan.ledger),
    remainingMicroUsd: remaining(plan.ledger, plan.policy.planCapMicroUsd),
  };
}
