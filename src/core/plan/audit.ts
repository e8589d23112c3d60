import { maskJson, maskText } from '../audit/mask.ts';
import type { JsonObject } from '../json.ts';
import { type EventBodies, isLogRow, type LogRow } from './events.ts';

/** One entry of the trail, with the source's fields (guards.md "Audit Entry Fields") and its place in the chain. */
export interface AuditEntry {
  readonly seq: number;
  readonly timestamp: string;
  readonly eventType: string;
  readonly guardName: string;
  readonly result: 'allowed' | 'denied';
  readonly reason: string | null;
  readonly actor: LogRow['actor'];
  readonly context: JsonObject;
  readonly hash: string;
}

/**
 * The decision about one call as the source tells it: one entry per guard, each with its own event type, result and reason. What was not
 * decided by guards stays the one entry that it is.
 */
export function entriesOfGuards(entry: AuditEntry): readonly AuditEntry[] {
  const { guards, ...context } = entry.context;
  if (!Array.isArray(guards) || guards.length === 0) return [entry];
  return (guards as readonly JsonObject[]).map(({ guard, event_type: eventType, result, reason, ...numbers }): AuditEntry => {
    const allowed = result === 'allowed';
    return {
      ...entry,
      eventType: String(eventType),
      guardName: String(guard),
      result: allowed ? 'allowed' : 'denied',
      reason: typeof reason === 'string' ? reason : null,
      context: { ...context, ...numbers },
    };
  });
}

/** The entry of a row that may have been tampered with; null as well where what is in it is no row that was written here. */
export function readEntryOf(row: LogRow): AuditEntry | null {
  try {
    return isLogRow(row) ? auditEntryOf(row) : null;
  } catch {
    return null;
  }
}

/**
 * The audit trail is a projection of the log: one entry per decision, nothing for rows in which nothing was decided. Entries are kept and
 * handed over outside the plan, so secrets are masked here.
 */
export function auditEntryOf(row: LogRow): AuditEntry | null {
  const entry = (eventType: string, guardName: string, allowed: boolean, reason: string | null, context: object): AuditEntry => ({
    seq: row.seq,
    timestamp: row.at,
    eventType,
    guardName,
    result: allowed ? 'allowed' : 'denied',
    reason: reason === null ? null : maskText(reason),
    actor: row.actor,
    // Through JSON, so that members without a value are absent and the entry is what a reader will get.
    context: maskJson(
      JSON.parse(JSON.stringify({ ...row.about, ...context, trace_id: row.trace_id, on_behalf_of: row.on_behalf_of })) as JsonObject,
    ) as JsonObject,
    hash: row.hash,
  });
  switch (row.type) {
    case 'plan_created':
      return entry('plan_created', 'plan', true, null, {
        action: row.data.action.name,
        profile: row.data.profile.name,
        profile_digest: row.data.profile.digest,
        policy_digest: row.data.policy_digest,
        project: row.data.project?.name,
        ...('inline' in row.data.arguments
          ? { arguments: Object.keys(row.data.arguments.inline) }
          : { arguments_digest: row.data.arguments.blob, arguments_bytes: row.data.arguments.bytes }),
      });
    case 'plan_rejected':
      return entry('plan_rejected', 'plan', false, row.data.reason, {});
    case 'call_decided': {
      const { call, guards, allowed, guard, reason, event_type: eventType } = row.data;
      return entry(eventType, guard ?? 'call', allowed, reason, {
        call_id: call.id,
        attempt: call.attempt,
        tool: call.tool,
        class: call.riskClass,
        step: call.step,
        arguments_digest: call.argumentsDigest,
        estimate_micro_usd: call.estimateMicroUsd,
        reserved_micro_usd: row.data.reserved_micro_usd,
        confidence: call.confidence,
        threshold: guards.find((verdict) => verdict.guard === 'confidence')?.limit,
        exceeded_level: guards.find((verdict) => !verdict.allowed)?.exceededLevel,
        consumed_approval: row.data.consumed_approval,
        checkpoint_id: row.data.checkpoint_id,
        checkpoint_tree: row.data.checkpoint?.tree,
        policy_digest: row.data.policy_digest,
        guards: guards.map((verdict) => ({
          guard: verdict.guard,
          event_type: verdict.eventType,
          result: verdict.allowed ? 'allowed' : 'denied',
          reason: verdict.reason,
          limit: verdict.limit,
          actual: verdict.actual,
          exceeded_level: verdict.exceededLevel,
        })),
      });
    }
    case 'call_settled':
      return entry(
        row.data.expired === true ? 'authorisation_expired' : 'effect_settled',
        'effect',
        row.data.outcome === 'succeeded',
        row.data.reason ?? row.data.error?.message ?? null,
        {
          call_id: row.data.call_id,
          attempt: row.data.attempt,
          outcome: row.data.outcome,
          charge: row.data.charge,
          told: row.data.told,
          written: writtenOf(row.data),
          late: row.data.late,
        },
      );
    case 'gate_decided':
      return entry(
        row.data.outcome === 'proceed' ? 'gate_allowed' : 'gate_blocked',
        row.data.gate,
        row.data.outcome === 'proceed',
        row.data.reason,
        {
          gate: row.data.gate,
          via: row.data.via,
          threshold: row.data.threshold,
          confidence: row.data.confidence,
          approval_id: row.data.approval_id,
          subject_digest: row.data.subject_digest,
          policy_digest: row.data.policy_digest,
          call_ids: row.data.call_ids,
        },
      );
    case 'approval_decided':
      return entry('approval_decided', row.data.kind, row.data.decision !== 'deny', row.data.reason, {
        approval_id: row.data.approval_id,
        decision: row.data.decision,
        digest: row.data.digest,
        text: row.data.text,
        grant: row.data.grant,
      });
    case 'approval_refused':
      return entry('approval_refused', 'approval', false, row.data.reason, {
        approval_id: row.data.approval_id,
        decision: row.data.decision,
        offered_digest: row.data.offered_digest,
      });
    case 'approval_closed':
      return entry(`approval_${row.data.status}`, 'approval', false, row.data.reason, { approval_id: row.data.approval_id });
    case 'approval_extended':
      return entry('approval_extended', 'approval', true, null, row.data);
    case 'limit_granted':
      return entry(row.data.event, 'limit', true, null, { approval_id: row.data.approval_id, grant: row.data.grant });
    case 'budget_warning':
      return entry('budget_warning', 'budget_cap', true, null, row.data);
    case 'plan_failed':
      return entry('plan_failed', 'plan', false, row.data.reason, { remediation: row.data.remediation, phase: row.data.to.phase });
    case 'apply_constrained':
      return entry('apply_constrained', 'apply', false, row.data.reason, row.data.report);
    case 'plan_applied':
      return entry('plan_applied', 'apply', true, null, { head: row.data.head, previous: row.data.previous });
    case 'check_recorded':
      return entry(row.data.event_type, row.data.guard, row.data.allowed, row.data.reason, { check: row.data.check, ...row.data.context });
    case 'session_associated':
      return entry('session_associated', 'plan', true, null, row.data);
    case 'imported':
      return entry('imported', 'plan', true, null, {
        entries: row.data.entries,
        allowed: row.data.allowed,
        denied: row.data.denied,
        evicted: row.data.allowed + row.data.denied - row.data.entries,
        max_entries: row.data.max_entries,
        step_count: row.data.step_count,
        spent_micro_usd: row.data.settled_micro_usd + row.data.overrun_micro_usd,
        start_time: row.data.start_time,
      });
    case 'plan_cancelled':
      return entry('plan_cancelled', 'plan', true, row.data.reason, {});
    case 'retention_ended':
      return entry('retention_ended', 'plan', true, row.data.reason, {});
    case 'plan_restarted':
      return entry('plan_restarted', 'plan', true, row.data.reason, { phase: row.data.to.phase });
    case 'decision_made':
      return entry('decision_made', 'decision', true, null, {
        decision_id: row.data.decision.id,
        type: row.data.decision.type,
        question: row.data.decision.question,
        chosen: row.data.decision.chosen,
        confidence: row.data.decision.confidence,
        threshold: row.data.decision.threshold,
      });
    case 'guard_revised': {
      const { revision, origin, change, loosens, policy_digest, previous_digest, grants, withdrawn } = row.data;
      return entry('guard_revised', 'policy', true, null, {
        revision,
        origin,
        change,
        loosens,
        policy_digest,
        previous_digest,
        grants,
        withdrawn,
      });
    }
    case 'guard_revision_refused':
      return entry('guard_revision_refused', 'policy', false, row.data.reason, { change: row.data.change });
    case 'halted':
      return entry('halted', 'halt', false, row.data.reason, ofHalt(row.data));
    case 'halt_cleared':
      return entry('halt_cleared', 'halt', true, null, ofHalt(row.data));
    case 'push_config_changed': {
      const { change, reason, ...config } = row.data;
      return entry(`push_config_${change}`, 'push', true, reason ?? null, config);
    }
    case 'strategy_completed':
    case 'execution_completed':
      return entry(row.type, 'plan', true, null, {});
    case 'call_sent':
    case 'message_said':
    case 'artifact_produced':
    case 'message_received':
    case 'approval_opened':
    case 'approval_reminded':
      return null;
  }
}

/** What is in the project since then. */
function writtenOf({ written, changes }: EventBodies['call_settled']): JsonObject | undefined {
  if (written === undefined) return undefined;
  const { commit_id, head, previous } = written;
  return { commit_id, head, previous, paths: changes.map(([path]) => path) };
}

function ofHalt({ level, epoch, session_id }: EventBodies['halt_cleared']): JsonObject {
  return { level, epoch, ...(session_id === undefined ? {} : { session_id }) };
}
