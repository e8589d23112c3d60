import type { AuditEntryView } from '../../api/guard.ts';
import type { ResultOf } from '../../api/operations.ts';
import { clip, oneLine, type Style, table } from './style.ts';

/** The trail, one decision per line. */
export function renderAudit(trail: ResultOf<'_cleveragents/plan/guard/audit'>, style: Style): string {
  const totals = `${trail.allowed_count} allowed, ${trail.denied_count} denied`;
  if (trail.entries.length === 0) return style.paint('dim', `no entries; ${totals}`);
  const row = (entry: AuditEntryView): readonly string[] => [
    String(entry.seq),
    entry.timestamp,
    entry.result,
    oneLine(entry.guard_name),
    oneLine(entry.event_type),
    oneLine(`${entry.actor.kind}:${entry.actor.name ?? entry.actor.id}`),
    clip(oneLine(subjectOf(entry)), 40),
    clip(oneLine(entry.reason ?? ''), 100),
  ];
  const shown = table(['seq', 'time', 'result', 'guard', 'event', 'actor', 'subject', 'reason'], trail.entries.map(row), style);
  const more = trail.next_after_seq === undefined ? '' : `; more with --after-seq ${trail.next_after_seq}`;
  return `${shown}\n${style.paint('dim', `${totals}${more}`)}`;
}

/** What a decision was about, in the order in which its context names it best. */
function subjectOf({ context }: AuditEntryView): string {
  const named = ['tool', 'approval_id', 'call_id', 'chosen', 'action'].map((member) => context[member]);
  return named.find((value): value is string => typeof value === 'string' && value !== '') ?? '';
}

/** Whether the chain holds, in one line. */
export function renderVerification(result: ResultOf<'_cleveragents/plan/guard/audit/verify'>, style: Style): string {
  if (result.valid) return style.paint('green', `valid: ${result.entries} rows, head ${result.head}`);
  const where = result.first_bad_seq === undefined ? '' : ` at row ${result.first_bad_seq}`;
  return style.paint('red', `NOT VALID${where}: ${oneLine(result.problem ?? 'the chain does not hold')}`);
}
