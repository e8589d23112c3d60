import type { AuditEntry } from '../plan/audit.ts';

const COLUMNS = [
  'plan_id',
  'seq',
  'timestamp',
  'event_type',
  'guard_name',
  'result',
  'reason',
  'actor_kind',
  'actor_id',
  'actor_name',
  'context',
  'hash',
] as const;

/** The first line of a CSV export. Lines end as RFC 4180 says. */
export const CSV_HEADER = `${COLUMNS.join(',')}\r\n`;

/** One audit entry as a line of CSV. */
export function csvLine(planId: string, entry: AuditEntry): string {
  const cells = [
    planId,
    String(entry.seq),
    entry.timestamp,
    entry.eventType,
    entry.guardName,
    entry.result,
    entry.reason ?? '',
    entry.actor.kind,
    entry.actor.id,
    entry.actor.name ?? '',
    JSON.stringify(entry.context),
    entry.hash,
  ];
  return `${cells.map(csvCell).join(',')}\r\n`;
}

/**
 * A cell that no spreadsheet takes for a formula: what begins like one gets a quote in front (tabs and line breaks included, which some
 * programs skip). Then the quoting of RFC 4180.
 */
export function csvCell(text: string): string {
  const safe = /^[=+\-@\t\r\n\uFF0B\uFF0D\uFF1D\uFF20]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
