/**
 * What became of what a plan decided, as a projection of its log (design section 6): calls feed the success of later calls, plans that
 * of later gates, and all of them show whether confidence keeps its word. What counts:
 *
 * - A **call** ends `succeeded` or `failed`, in the words of whoever performed it: an executor outside that says nothing until its
 *   authorisation expires, or that the call never left, has said nothing about the operation. A retry is not an end, and of a call that never ran (refused, denied) nothing was learnt. A
 *   retry that may not run leaves a failed call. What comes after the plan has ended is cost only.
 * - A **gate** is a prediction. A human's no to it is `failed`, and ends it. A yes to a phase gate is `ok`; a yes to calls is judged by
 *   what those calls then do. A gate that confidence alone passed is judged as its plan ends. So every prediction is judged once.
 * - A **plan** is `ok` when it is applied. It is `failed` when it fails or is constrained, or is cancelled from Execute on; if it goes on
 *   and is applied after all, the later word counts. Before Execute only its actor's own failure says something about it: one that is
 *   cancelled there, or stopped by a gate, a limit or a rejection, has shown nothing.
 */
import { GATES } from '../gates.ts';
import type { ThresholdName } from '../profile.ts';
import { type RiskClass, riskierOf } from '../tool.ts';
import { gateRiskClass } from './decide/confidence-of.ts';
import type { LogRow } from './events.ts';
import type { Approval, Plan } from './plan.ts';

export type Verdict = 'ok' | 'failed';

interface Common {
  /** The row of the log that says it; with the plan's id the outcome's identity. */
  readonly seq: number;
  readonly at: string;
}

/** A decision with the confidence that it was made by. */
export interface JudgedDecision extends Common {
  readonly kind: 'call' | 'gate';
  readonly riskClass: RiskClass;
  /** At the decision, 0 to 1; null: there was none. */
  readonly confidence: number | null;
  readonly gate: ThresholdName | null;
  readonly threshold: number | null;
  /** null, gates only: as the plan ends. */
  readonly outcome: Verdict | null;
}

/** How the plan stands; the one with the highest seq counts. */
export interface PlanVerdict extends Common {
  readonly kind: 'plan';
  readonly outcome: Verdict;
}

export type Outcome = JudgedDecision | PlanVerdict;

export type CallDecision = Extract<LogRow, { readonly type: 'call_decided' }>;

/**
 * The outcome that a row of the log tells, or null. `plan` is any later state of the same plan; `decisionOf` finds the last decision of a
 * call before a row.
 */
export function outcomeOf(
  plan: Pick<Plan, 'approvals'>,
  row: LogRow,
  decisionOf: (callId: string, beforeSeq: number) => CallDecision | null,
): Outcome | null {
  const of = { seq: row.seq, at: row.at };
  switch (row.type) {
    case 'call_settled': {
      const { outcome, late, expired, told, call_id: callId } = row.data;
      const neverRan = expired === true || told?.outcome === 'not_dispatched';
      if (late === true || neverRan || (outcome !== 'succeeded' && outcome !== 'failed')) return null;
      const decision = decisionOf(callId, row.seq);
      return decision === null ? null : { ...of, ...predictionOf(decision), outcome: outcome === 'succeeded' ? 'ok' : 'failed' };
    }
    case 'call_decided':
      return row.data.call.status === 'failed' ? { ...of, ...predictionOf(row), outcome: 'failed' } : null;
    case 'gate_decided': {
      const { gate, confidence, threshold, outcome, via, call_ids: callIds } = row.data;
      const isJudgedByCalls = gate === 'modify_config' || callIds !== undefined;
      if (outcome !== 'proceed' || via !== 'threshold' || confidence === null || isJudgedByCalls) return null;
      return { ...of, kind: 'gate', riskClass: gateRiskClass(gate), confidence: confidence.value, gate, threshold, outcome: null };
    }
    case 'approval_decided': {
      const approval = plan.approvals.find((each) => each.id === row.data.approval_id);
      if (approval === undefined || approval.gate === null || approval.confidence === null) return null;
      const { gate, confidence, threshold } = approval;
      const isApproved = row.data.decision === 'approve';
      if (isApproved && approval.callIds.length > 0) return null;
      const outcome = isApproved ? 'ok' : 'failed';
      return { ...of, kind: 'gate', riskClass: askedRiskClass(approval, gate), confidence: confidence.value, gate, threshold, outcome };
    }
    case 'plan_applied':
      return { ...of, kind: 'plan', outcome: 'ok' };
    case 'apply_constrained':
      return { ...of, kind: 'plan', outcome: 'failed' };
    case 'plan_failed': {
      const { phase } = row.data.to;
      const counts = hasBegun(phase) || (phase === 'strategize' && row.actor.kind === 'actor');
      return counts ? { ...of, kind: 'plan', outcome: 'failed' } : null;
    }
    case 'plan_cancelled':
      return hasBegun(row.data.to.phase) ? { ...of, kind: 'plan', outcome: 'failed' } : null;
    // Not how anything ended that was predicted: a plan that is given up by its executor, or never begun, has shown nothing either.
    case 'retention_ended':
    case 'plan_rejected':
    case 'plan_created':
    case 'decision_made':
    case 'call_sent':
    case 'message_said':
    case 'artifact_produced':
    case 'message_received':
    case 'strategy_completed':
    case 'execution_completed':
    case 'plan_restarted':
    case 'approval_opened':
    case 'approval_refused':
    case 'approval_closed':
    case 'approval_extended':
    case 'approval_reminded':
    case 'limit_granted':
    case 'budget_warning':
    case 'check_recorded':
    case 'session_associated':
    case 'imported':
    case 'guard_revised':
    case 'guard_revision_refused':
    case 'halted':
    case 'halt_cleared':
    case 'push_config_changed':
      return null;
  }
}

function hasBegun(phase: Plan['phase']): boolean {
  return phase === 'execute' || phase === 'apply';
}

/** What was thought of a call when it was decided; gate and threshold are those of its verdict on confidence. */
function predictionOf({ data: { call, guards } }: CallDecision) {
  const verdict = guards.find(({ guard }) => guard === 'confidence');
  const field = verdict?.limitField;
  const gate = field === 'edit_code' || field === 'execute_command' ? field : null;
  return {
    kind: 'call',
    riskClass: call.riskClass,
    confidence: call.confidence?.value ?? null,
    gate,
    threshold: gate === null ? null : (verdict?.limit ?? null),
  } as const;
}

/** The class of a gate that a human answered: its own, or that of the riskiest call that it was about. */
function askedRiskClass({ subject: { call, calls } }: Approval, gate: ThresholdName): RiskClass {
  const classes = [...(calls ?? []), ...(call === undefined ? [] : [call])].map((each) => each.class);
  return GATES[gate].form === 'phase' || classes.length === 0 ? gateRiskClass(gate) : classes.reduce(riskierOf);
}
