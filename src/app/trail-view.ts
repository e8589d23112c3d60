import type { AuditEntryView, TrailVerdictView } from '../api/guard.ts';
import type { AuditEntry } from '../core/plan/audit.ts';
import type { TrailVerdict } from './verify-trail.ts';

/** An entry of a trail as operations answer it. */
export function entryView({ actor, ...entry }: AuditEntry): AuditEntryView {
  return {
    seq: entry.seq,
    timestamp: entry.timestamp,
    event_type: entry.eventType,
    guard_name: entry.guardName,
    result: entry.result,
    reason: entry.reason,
    context: entry.context,
    actor: { kind: actor.kind, id: actor.id, ...(actor.name === undefined ? {} : { name: actor.name }) },
    hash: entry.hash,
  };
}

/** What verifying found, as operations answer it. */
export function verdictView(verdict: TrailVerdict): TrailVerdictView {
  return {
    valid: verdict.valid,
    entries: verdict.entries,
    head: verdict.head,
    head_signature: verdict.headSignature,
    ...(verdict.signedSeq === null ? {} : { signed_seq: verdict.signedSeq }),
    trail: verdict.trail,
    ...(verdict.problem === null ? {} : { first_bad_seq: verdict.problem.seq, problem: verdict.problem.problem }),
    ...(verdict.findings.length === 0 ? {} : { findings: verdict.findings.map((found) => ({ ...found })) }),
  };
}
