/** The plan as the operations show it (api/views.ts), made from a snapshot. */
import type { ApprovalView, PlanSummary, PlanView } from '../api/views.ts';
import { maskJson, maskText } from '../core/audit/mask.ts';
import { effectiveLimit } from '../core/guard-policy.ts';
import type { JsonObject } from '../core/json.ts';
import { isExhausted, remaining, reservedMicroUsd, spentMicroUsd } from '../core/ledger.ts';
import { toUsd } from '../core/money.ts';
import { elapsedMs } from '../core/plan/evolve.ts';
import type { Approval, Failure, Stored } from '../core/plan/plan.ts';
import { haltOf, pendingApprovals } from '../core/plan/plan.ts';
import { type PlanSnapshot, type PublicPlan, valueIn } from '../core/plan/snapshot.ts';
import { stepsTaken } from '../core/plan/steps-taken.ts';
import { taskStateOf } from '../core/plan/task-state.ts';
import type { PlanIndexRow } from './ports.ts';

/** Longest patch, in characters, that travels inside an approval; a longer one is fetched apart. */
export const MAX_SHOWN_PATCH = 64 * 1024;

export function planViewOf(snapshot: PlanSnapshot, nowMs: number): PlanView {
  const { plan } = snapshot;
  const cap = plan.policy.planCapMicroUsd;
  const left = remaining(plan.ledger, cap);
  const worked = plan.workedMs + (plan.workingSince === null ? 0 : elapsedMs(plan.workingSince, new Date(nowMs).toISOString()));
  const capMicroUsd = effectiveLimit(cap, plan.ledger.grantedMicroUsd);
  return {
    plan_id: plan.id,
    task_id: plan.id,
    action_name: plan.action.name,
    project: plan.project?.name ?? null,
    session_id: plan.sessionId,
    phase: plan.phase,
    state: plan.state,
    ...(plan.resumeState === null ? {} : { resume_state: plan.resumeState }),
    task_state: taskStateOf(plan),
    attempt: plan.attempt,
    ...(plan.external === undefined ? {} : { external: true as const }),
    profile: { name: plan.profile.name, level: plan.profile.level, digest: plan.profile.digest },
    budget: {
      cap_usd: capMicroUsd === null ? null : toUsd(capMicroUsd),
      ...(cap === null ? {} : { cap_source: cap.field }),
      spent_usd: toUsd(spentMicroUsd(plan.ledger)),
      reserved_usd: toUsd(reservedMicroUsd(plan.ledger)),
      overrun_usd: toUsd(plan.ledger.overrunMicroUsd),
      remaining_usd: left === null ? null : toUsd(left),
      exhausted: isExhausted(plan.ledger, cap),
    },
    steps: {
      used: stepsTaken(plan),
      limit: effectiveLimit(plan.policy.maxSteps, plan.grants.steps),
      ...(plan.step === null ? {} : { current: plan.step.id }),
    },
    wall_clock: {
      worked_seconds: Math.floor(worked / 1000),
      limit_seconds: effectiveLimit(plan.policy.maxWallClockSeconds, plan.grants.seconds),
    },
    pending: pendingOf(plan).map((approval) => approvalViewOf(snapshot, approval)),
    created_at: plan.createdAt,
    updated_at: plan.updatedAt,
    ...(plan.appliedAt === null ? {} : { applied_at: plan.appliedAt }),
    ...(plan.appliedHead === null ? {} : { applied_head: plan.appliedHead }),
    ...(plan.failure === null ? {} : { error: { first: shownFailure(plan.failure.first), last: shownFailure(plan.failure.last) } }),
    ...(plan.cancelReason === null ? {} : { cancel_reason: maskText(plan.cancelReason) }),
    ...(plan.written === undefined ? {} : { written_at_once: { ...plan.written, paths: [...plan.written.paths] } }),
    ...haltedOf(plan),
    seq: plan.seq,
    head_hash: plan.headHash,
  };
}

/** Why nothing is authorised now, where the kill switch is set. */
export function haltedOf(plan: PublicPlan): Pick<PlanView, 'halted'> {
  const halt = haltOf(plan);
  return halt === null || halt.reason === null
    ? {}
    : { halted: { level: halt.level, reason: maskText(halt.reason), by: halt.by.id, at: halt.at } };
}

export function pendingOf(plan: PublicPlan): readonly Approval[] {
  return pendingApprovals(plan);
}

export function approvalViewOf(snapshot: PlanSnapshot, approval: Approval): ApprovalView {
  const { subject } = approval;
  const patch = subject.diff === undefined ? null : textOf(valueIn(snapshot, subject.diff.patch));
  return {
    approval_id: approval.id,
    plan_id: snapshot.plan.id,
    kind: approval.kind,
    status: approval.status,
    digest: approval.digest,
    reason: maskText(approval.reason),
    ...(approval.gate === null ? {} : { gate: approval.gate }),
    ...(approval.guard === null ? {} : { guard: approval.guard }),
    ...(subject.call === undefined
      ? {}
      : { call: { tool: subject.call.tool, arguments: shownArguments(snapshot, subject.call.arguments), class: subject.call.class } }),
    ...(subject.calls === undefined
      ? {}
      : {
          calls: subject.calls.map((call) => ({ tool: call.tool, arguments: shownArguments(snapshot, call.arguments), class: call.class })),
        }),
    ...(subject.diff === undefined
      ? {}
      : {
          diff: {
            digest: subject.diff.digest,
            base: subject.diff.base,
            result: subject.diff.result,
            files: [...subject.diff.files],
            additions: subject.diff.additions,
            deletions: subject.diff.deletions,
            ...(patch === null || patch.length > MAX_SHOWN_PATCH ? {} : { patch }),
          },
        }),
    ...(subject.question === undefined ? {} : { question: maskText(subject.question) }),
    ...(subject.decision === undefined ? {} : { decision: maskJson(subject.decision) as JsonObject }),
    ...(subject.details === undefined ? {} : { details: maskJson(subject.details) as JsonObject }),
    ...(subject.choices === undefined ? {} : { choices: [...subject.choices] }),
    ...(approval.suggestedGrant === null ? {} : { suggested_grant: { ...approval.suggestedGrant } as JsonObject }),
    ...(approval.estimateMicroUsd === null ? {} : { estimate_usd: toUsd(approval.estimateMicroUsd) }),
    ...(approval.threshold === null ? {} : { threshold: approval.threshold }),
    ...(approval.confidence === null ? {} : { confidence: approval.confidence.value, components: { ...approval.confidence.components } }),
    opened_at: approval.openedAt,
    expires_at: approval.expiresAt,
    ...(approval.decided === null ? {} : { decided_by: approval.decided.by.id, decided_at: approval.decided.at }),
  };
}

/** The true arguments except for the secrets in them; the approval's digest covers what is hidden as well (core/audit/mask.ts). */
export function shownArguments(snapshot: PlanSnapshot, stored: Stored<JsonObject>): JsonObject {
  return maskJson(valueIn(snapshot, stored)) as JsonObject;
}

function shownFailure({ message, at }: Failure): Failure {
  return { message: maskText(message), at };
}

/** The text of a stored text part. */
export function textOf(part: unknown): string | null {
  return typeof part === 'object' && part !== null && 'text' in part && typeof part.text === 'string' ? part.text : null;
}

export function planSummaryOf(row: PlanIndexRow): PlanSummary {
  return {
    plan_id: row.planId,
    action_name: row.actionName,
    project: row.project,
    session_id: row.sessionId,
    profile: row.profile,
    phase: row.phase as PlanSummary['phase'],
    state: row.state as PlanSummary['state'],
    task_state: row.taskState as PlanSummary['task_state'],
    pending_approvals: row.pendingApprovals,
    created_at: row.createdAt,
    updated_at: row.updatedAt,
  };
}
