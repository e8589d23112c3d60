import type { Confidence } from '../../confidence.ts';
import { evaluateGate, GATES } from '../../gates.ts';
import type { JsonValue } from '../../json.ts';
import { THRESHOLDS, type ThresholdName } from '../../profile.ts';
import type { EventBodies, Move } from '../events.ts';
import type { ApprovalSubject } from '../plan.ts';
import { SYSTEM, type Work } from '../work.ts';
import { failUnattended, openApproval } from './open-approval.ts';

export interface GateRequest {
  readonly gate: ThresholdName;
  readonly confidence: Confidence | null;
  readonly subject: ApprovalSubject;
  readonly binds: JsonValue;
  readonly subjectDigest: string | null;
  readonly to?: Move;
  readonly callIds?: readonly string[];
  readonly estimateMicroUsd?: number;
  /** Further members of the event when the gate lets the plan through. */
  readonly onProceed?: Partial<Pick<EventBodies['gate_decided'], 'diff' | 'apply_id' | 'rebase'>>;
  /** A guard that wants a human whatever the confidence says (the apply approval). */
  readonly alwaysAsk?: { readonly guard: string; readonly reason: string };
}

/** Asks one gate: records what it said with the numbers it said it by, and goes on, opens an approval, or (unattended) fails the plan. */
export function passGate(work: Work, request: GateRequest): 'proceed' | 'ask' | 'fail' {
  const plan = work.plan();
  const threshold = plan.policy.thresholds[request.gate];
  const ruled = evaluateGate({ threshold, confidence: request.confidence?.value ?? null, unattended: plan.policy.unattended });
  const outcome = request.alwaysAsk !== undefined && ruled === 'proceed' ? (plan.policy.unattended ? 'fail' : 'ask') : ruled;
  const reason =
    request.alwaysAsk !== undefined && ruled === 'proceed'
      ? request.alwaysAsk.reason
      : explain(request.gate, threshold, request.confidence, outcome);
  work.emit('gate_decided', SYSTEM, {
    gate: request.gate,
    outcome,
    via: 'threshold',
    threshold,
    confidence: request.confidence,
    reason,
    subject_digest: request.subjectDigest,
    policy_digest: plan.policyDigest,
    ...(request.callIds === undefined ? {} : { call_ids: request.callIds }),
    ...(outcome === 'proceed' ? { ...request.onProceed, ...(request.to === undefined ? {} : { to: request.to }) } : {}),
  });
  if (outcome === 'ask') {
    openApproval(work, {
      kind: 'gate',
      reason,
      subject: request.subject,
      binds: { gate: request.gate, subject: request.binds },
      gate: request.gate,
      threshold,
      confidence: request.confidence,
      ...(request.alwaysAsk === undefined ? {} : { guard: request.alwaysAsk.guard }),
      ...(request.callIds === undefined ? {} : { callIds: request.callIds }),
      ...(request.estimateMicroUsd === undefined ? {} : { estimateMicroUsd: request.estimateMicroUsd }),
    });
  }
  if (outcome === 'fail') failUnattended(work, reason);
  return outcome;
}

/** For people: the transition first, then the threshold with its meaning, since its name alone misleads. */
function explain(gate: ThresholdName, threshold: number, confidence: Confidence | null, outcome: string): string {
  const because =
    threshold === 0
      ? 'it is 0, so it always proceeds'
      : threshold === 1
        ? 'it is 1, so it always asks'
        : `it is ${threshold}, the confidence ${confidence?.value ?? 'unknown'}`;
  const rule = `threshold ${gate} ("${THRESHOLDS[gate]}"): ${because}`;
  return outcome === 'proceed' ? `${GATES[gate].transition}: goes on by ${rule}.` : `${GATES[gate].transition}: needs a human by ${rule}.`;
}
