/** What a plan writes into the stores of its org: its row of the index, its entries of the trail, how its decisions turned out, what it spent. */
import type { AuditRow, OutcomeRow, PlanIndexRow, PlanSpend } from '../../app/ports.ts';
import { spendRows } from '../../core/ledger.ts';
import { auditEntryOf } from '../../core/plan/audit.ts';
import type { LogRow } from '../../core/plan/events.ts';
import { type CallDecision, outcomeOf } from '../../core/plan/outcomes.ts';
import { type Plan, pendingApprovals } from '../../core/plan/plan.ts';
import { taskStateOf } from '../../core/plan/task-state.ts';

export function auditRowOf(plan: Plan, row: LogRow): AuditRow | null {
  const entry = auditEntryOf(row);
  return entry === null
    ? null
    : {
        org: plan.org,
        planId: plan.id,
        seq: entry.seq,
        at: entry.timestamp,
        eventType: entry.eventType,
        guardName: entry.guardName,
        result: entry.result,
        reason: entry.reason,
        actorKind: entry.actor.kind,
        actorId: entry.actor.id,
        context: entry.context,
        hash: entry.hash,
      };
}

export function outcomeRowOf(
  plan: Plan,
  row: LogRow,
  decisionOf: (callId: string, beforeSeq: number) => CallDecision | null,
): OutcomeRow | null {
  const outcome = outcomeOf(plan, row, decisionOf);
  if (outcome === null) return null;
  return {
    ...outcome,
    org: plan.org,
    planId: plan.id,
    actor: plan.action.actor,
    action: plan.action.name,
    project: plan.project?.name ?? null,
  };
}

/** The spending that the index is told, and what it is known by. */
export function spendOf({ profile, sessionId, ledger }: Plan): { readonly told: PlanSpend; readonly key: string } {
  const told = { profile: profile.name, rows: spendRows(ledger) };
  return { told, key: JSON.stringify([sessionId, told]) };
}

export function indexRowOf(plan: Plan, wakeAt: string | null): PlanIndexRow {
  return {
    org: plan.org,
    planId: plan.id,
    sessionId: plan.sessionId,
    actionName: plan.action.name,
    project: plan.project?.name ?? null,
    profile: plan.profile.name,
    phase: plan.phase,
    state: plan.state,
    taskState: taskStateOf(plan),
    createdBy: plan.requester.id,
    createdAt: plan.createdAt,
    updatedAt: plan.updatedAt,
    statusAt: plan.statusAt,
    seq: plan.seq,
    wakeAt,
    pendingApprovals: pendingApprovals(plan).length,
  };
}
