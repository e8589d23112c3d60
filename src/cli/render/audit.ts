import type { AuditEntryView, TrailVerdictView } from '../../api/guard.ts';
import type { ResultOf } from '../../api/operations.ts';
import type { AuditFileVerdict } from '../../api/verify-audit-file.ts';
import type { OrgLogVerdict } from '../audit-commands.ts';
import { clip, oneLine, type Style, table } from './style.ts';

/** The trail, one decision per line. */
export function renderAudit(trail: ResultOf<'_cleveragents/plan/guard/audit'>, style: Style): string {
  const totals = `${trail.allowed_count} allowed, ${trail.denied_count} denied`;
  if (trail.entries.length === 0) return style.paint('dim', `no entries; ${totals}`);
  const more = trail.next_after_seq === undefined ? '' : `; more with --after-seq ${trail.next_after_seq}`;
  return `${entryTable(trail.entries, style)}\n${style.paint('dim', `${totals}${more}`)}`;
}

/** The org's own log, one row per line. */
export function renderOrgLog(page: ResultOf<'_cleveragents/org/log/list'>, style: Style): string {
  const more = page.next_after_seq === undefined ? '' : `more with --after-seq ${page.next_after_seq}`;
  if (page.entries.length === 0) return style.paint('dim', more === '' ? 'no entries' : `no entries here; ${more}`);
  return `${entryTable(page.entries, style)}${more === '' ? '' : `\n${style.paint('dim', more)}`}`;
}

function entryTable(entries: readonly AuditEntryView[], style: Style): string {
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
  return table(['seq', 'time', 'result', 'guard', 'event', 'actor', 'subject', 'reason'], entries.map(row), style);
}

/** What a decision was about, in the order in which its context names it best. */
function subjectOf({ context }: AuditEntryView): string {
  const named = ['tool', 'approval_id', 'call_id', 'chosen', 'action', 'operation', 'plan_id', 'id'].map((member) => context[member]);
  const { operations } = context;
  const text = named.find((value): value is string => typeof value === 'string' && value !== '');
  return text ?? (Array.isArray(operations) ? operations.join(', ') : '');
}

/** Whether the org's log holds and what it says of plans: a line for the log, and one for each plan that does not fit. */
export function renderOrgVerdict(verdict: OrgLogVerdict, style: Style): string {
  const lines = verdict.log === undefined ? [] : [renderVerification(verdict.log, style)];
  for (const { plan_id: plan, problem, reported_seq: reported, seq } of verdict.plan_problems) {
    const now = seq === undefined ? '' : `, ends with row ${seq} now`;
    lines.push(style.paint('red', oneLine(`NOT VALID: plan ${plan}: ${problem}; had reported row ${reported}${now}`)));
  }
  const good = verdict.plans_checked - verdict.plan_problems.length;
  return [...lines, style.paint(verdict.valid ? 'green' : 'red', `${good} of ${verdict.plans_checked} plans are as they reported`)].join(
    '\n',
  );
}

/** Whether the chain holds, in one line. */
export function renderVerification(result: TrailVerdictView, style: Style): string {
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
  const what = `${plan === 'org' ? 'log of the org' : `plan ${plan}`}: ${rows} rows${hidden}, head ${head.hash}`;
  if (verdict.signature === 'unchecked') {
    return style.paint('yellow', oneLine(`chain holds; NO SIGNATURE WAS CHECKED, so rows may be missing at the end; ${what}`));
  }
  return style.paint('green', oneLine(`valid and signed, complete as of ${verdict.as_of ?? ''}; ${what}`));
}
