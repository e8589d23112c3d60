import type { AuditEntryView } from '../../api/guard.ts';
import type { ResultOf } from '../../api/operations.ts';
import type { AuditFileVerdict } from '../../api/verify-audit-file.ts';
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
  if (result.valid) {
    const signed =
      result.head_signature === 'valid' ? `signed up to row ${result.signed_seq ?? 0}` : `head signature ${result.head_signature}`;
    return style.paint('green', oneLine(`valid: ${result.entries} rows, head ${result.head}, ${signed}, trail ${result.trail}`));
  }
  const where = result.first_bad_seq === undefined ? '' : ` at row ${result.first_bad_seq}`;
  return style.paint('red', `NOT VALID${where}: ${oneLine(result.problem ?? 'the chain does not hold')}`);
}

/** Whether an exported log holds, and what that rests on. */
export function renderFileVerdict(verdict: AuditFileVerdict, style: Style): string {
  const { rows, masked_rows: masked, head, plan_id: plan } = verdict;
  if (!verdict.valid) {
    const row = verdict.first_bad_seq === undefined ? '' : ` at row ${verdict.first_bad_seq}`;
    const line = verdict.line === undefined ? '' : ` (line ${verdict.line})`;
    return style.paint('red', oneLine(`NOT VALID${row}${line}: ${verdict.problem ?? ''}: ${verdict.detail ?? ''}`));
  }
  const hidden = masked === 0 ? '' : `, ${masked} with secrets masked`;
  const what = `plan ${plan}: ${rows} rows${hidden}, head ${head.hash}`;
  if (verdict.signature === 'unchecked') {
    return style.paint('yellow', oneLine(`chain holds; NO SIGNATURE WAS CHECKED, so rows may be missing at the end; ${what}`));
  }
  return style.paint('green', oneLine(`valid and signed, complete as of ${verdict.as_of ?? ''}; ${what}`));
}
