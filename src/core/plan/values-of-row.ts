import type { PathChange } from './at-once.ts';
import type { LogRow } from './events.ts';
import type { Approval, Call, DiffSummary, PlanMessage, Stored } from './plan.ts';

/**
 * Digests of the values that a row refers to and that are kept beside the log: long or secret arguments, results, messages, and the files
 * that a call wrote. Told by the type of the row, so that what a caller wrote into a value is never taken for a reference.
 */
export function valuesOfRow(row: LogRow): readonly string[] {
  switch (row.type) {
    case 'plan_created':
      return digests([row.data.arguments, row.data.input, ...ofMessage(row.data.message)]);
    case 'gate_decided':
      return digests(ofDiff(row.data.diff));
    case 'call_decided':
      return digests([...ofCall(row.data.call), row.data.checkpoint?.cursor]);
    case 'call_settled':
      return [...digests([row.data.result]), ...ofChanges(row.data.changes)];
    case 'call_sent':
      return row.data.write === undefined ? [] : [...digests([row.data.write.result]), ...ofChanges(row.data.write.changes)];
    case 'message_said':
    case 'message_received':
      return digests(ofMessage(row.data.message));
    case 'artifact_produced':
      return digests(row.data.artifact.parts);
    case 'approval_opened':
      return digests(ofApproval(row.data.approval));
    case 'imported':
      return digests([row.data.trail]);
    case 'plan_rejected':
    case 'decision_made':
    case 'strategy_completed':
    case 'execution_completed':
    case 'plan_failed':
    case 'plan_restarted':
    case 'approval_decided':
    case 'approval_refused':
    case 'approval_closed':
    case 'approval_extended':
    case 'approval_reminded':
    case 'limit_granted':
    case 'budget_warning':
    case 'plan_applied':
    case 'apply_constrained':
    case 'plan_cancelled':
    case 'retention_ended':
    case 'check_recorded':
    case 'session_associated':
    case 'guard_revised':
    case 'guard_revision_refused':
    case 'halted':
    case 'halt_cleared':
    case 'push_config_changed':
      return [];
  }
}

const digests = (values: readonly (Stored | null | undefined)[]): readonly string[] =>
  values.flatMap((value) => (value !== null && value !== undefined && 'blob' in value ? [value.blob] : []));

const ofChanges = (changes: readonly PathChange[]): readonly string[] =>
  changes.flatMap(([, change]) => (change.kind === 'write' ? [change.blob] : []));

const ofMessage = (message: PlanMessage | null): readonly (Stored | undefined)[] =>
  message === null ? [] : [message.parts, message.metadata];

const ofCall = (call: Call): readonly (Stored | null)[] => [call.arguments, call.result];

const ofDiff = (diff: DiffSummary | undefined): readonly Stored[] => (diff === undefined ? [] : [diff.patch]);

const ofApproval = ({ subject }: Approval): readonly (Stored | undefined)[] => [
  subject.call?.arguments,
  ...(subject.calls ?? []).map((call) => call.arguments),
  ...ofDiff(subject.diff),
];
