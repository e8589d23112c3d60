/** The part of the fold that only external plans have. Total, like the rest of it. */
import type { Day } from '../../budget/window.ts';
import { chargeAtOnce } from '../../ledger.ts';
import { addMicroUsd } from '../../money.ts';
import type { EventBodies } from '../events.ts';
import { type Approval, type Call, type Plan, pendingApprovals } from '../plan.ts';
import { COUNTED_STEPS, type ExternalState, isHeld, isOpen, NO_EXTERNAL_STATE, REMEMBERED_DECISIONS } from './external.ts';

/** Closed approvals that are kept; what they said stays in the log. */
const KEPT_APPROVALS = 200;

/** What a plan of an executor outside knows as it is opened. */
export function openedOutside({ retention_days: retentionDays }: EventBodies['plan_created']): ExternalState {
  return retentionDays === undefined ? NO_EXTERNAL_STATE : { ...NO_EXTERNAL_STATE, retentionDays };
}

/** What a decision about a call changes beside the call itself. Denied calls use up nothing. */
export function countCall(plan: Plan, call: Call): Plan {
  if (plan.external === undefined) return plan;
  const forgot = forgetOld(plan);
  if (call.status !== 'authorised') return forgot;
  return { ...forgot, stepsUsed: Math.max(plan.stepsUsed, call.step), external: withCallIn(plan.external, call.step) };
}

function withCallIn(state: ExternalState, step: number): ExternalState {
  const counts: Record<string, number> = { ...state.callsByStep, [step]: (state.callsByStep[step] ?? 0) + 1 };
  const steps = Object.keys(counts);
  if (steps.length <= COUNTED_STEPS) return { ...state, callsByStep: counts };
  const oldest = Math.min(...steps.map(Number));
  return {
    ...state,
    callsByStep: Object.fromEntries(Object.entries(counts).filter(([number]) => Number(number) !== oldest)),
    firstStep: Math.max(state.firstStep, oldest + 1),
  };
}

/** Keeps the state bounded: closed decisions and approvals go, oldest first. Nothing that is open or can still be used does. */
function forgetOld(plan: Plan): Plan {
  const calls = Object.values(plan.calls);
  if (calls.length <= REMEMBERED_DECISIONS && plan.approvals.length <= KEPT_APPROVALS) return plan;
  const usable = new Set(plan.approvals.filter((each) => each.status === 'pending' || each.status === 'approved').map((each) => each.id));
  const closed = calls.filter((call) => !isNeeded(call, usable));
  const gone = new Set(closed.slice(0, Math.max(0, calls.length - REMEMBERED_DECISIONS)).map((call) => call.id));
  const kept = calls.filter((call) => !gone.has(call.id));
  return {
    ...plan,
    calls: Object.fromEntries(kept.map((call) => [call.id, call])),
    approvals: keptApprovals(plan, new Set(kept.flatMap((call) => call.approvalId ?? []))),
  };
}

function isNeeded(call: Call, usable: ReadonlySet<string>): boolean {
  return isOpen(call) || (isHeld(call) && call.approvalId !== null && usable.has(call.approvalId));
}

function keptApprovals({ approvals }: Plan, referenced: ReadonlySet<string>): readonly Approval[] {
  const closed = approvals.filter((each) => each.status !== 'pending' && !referenced.has(each.id));
  const gone = new Set(closed.slice(0, Math.max(0, closed.length - KEPT_APPROVALS)));
  return gone.size === 0 ? approvals : approvals.filter((each) => !gone.has(each));
}

/** What a check recorded: a step that was begun, a cost that was spent. */
export function checkRecorded(plan: Plan, data: EventBodies['check_recorded'], day: Day): Plan {
  return {
    ...plan,
    stepsUsed: Math.max(plan.stepsUsed, data.steps_used ?? 0),
    ledger: chargeAtOnce(plan.ledger, data.charged_micro_usd ?? 0, day),
  };
}

/**
 * Counters only grow. What was spent elsewhere beyond the cap of this plan is overrun here: it blocks until it is covered. It counts
 * against the plan alone: no budget of a session or an org here has ever reserved it.
 */
export function imported(plan: Plan, data: EventBodies['imported']): Plan {
  const { ledger } = plan;
  const { guards } = data;
  return {
    ...plan,
    ...(guards === undefined
      ? {}
      : {
          policy: guards.policy,
          policyDigest: guards.policy_digest,
          guards: { revision: plan.guards.revision + 1, locked: guards.locked, own: guards.own },
        }),
    stepsUsed: Math.max(plan.stepsUsed, data.step_count),
    workedMs: plan.workedMs + data.worked_ms,
    ledger: {
      ...ledger,
      settledMicroUsd: addMicroUsd(ledger.settledMicroUsd, data.settled_micro_usd),
      overrunMicroUsd: addMicroUsd(ledger.overrunMicroUsd, data.overrun_micro_usd),
    },
    external: {
      ...(plan.external ?? NO_EXTERNAL_STATE),
      imported: {
        trail: data.trail,
        entries: data.entries,
        allowed: data.allowed,
        denied: data.denied,
        startTime: data.start_time,
        ...(data.max_entries === undefined ? {} : { maxEntries: data.max_entries }),
      },
    },
  };
}

/** The outcome that the caller gave to a call, or that nobody gave one in time. */
export function settledOutside(call: Call, data: EventBodies['call_settled']): Call {
  if (call.external === undefined) return call;
  if (data.expired === true) return { ...call, external: { ...call.external, isExpired: true } };
  if (data.told === undefined) return call;
  const { charge, told } = data;
  const before = call.external.isExpired ? call.estimateMicroUsd : 0;
  return {
    ...call,
    external: {
      ...call.external,
      settled: {
        outcome: told.outcome,
        costUsd: told.cost_usd,
        chargedMicroUsd: addMicroUsd(before, charge?.charged_micro_usd ?? 0),
        marks: charge?.marks ?? [],
        isLate: data.late === true,
      },
    },
  };
}

/** What is asked of a human about this call: a question that shows it. */
export function pendingAbout(plan: Plan, call: Call): Approval | null {
  return pendingApprovals(plan).find((each) => each.callIds.includes(call.id)) ?? null;
}
