import type { OrgEventType, OrgLogRow } from './org-event.ts';

/** Which rows are wanted; what is left out does not restrict. */
export interface RowFilter {
  readonly limit: number;
  readonly types?: readonly OrgEventType[];
  readonly planId?: string;
  /** ISO time; rows of that moment are wanted. */
  readonly since?: string;
}

/**
 * The first rows that fit, out of rows in their order of which at most `scanLimit` came. `scannedSeq` is the last row that was looked at:
 * from there the next page goes on, also where none of the rows fitted.
 */
export function selectRows(
  rows: Iterable<OrgLogRow>,
  scanLimit: number,
  { limit, types, planId, since }: RowFilter,
): { readonly rows: readonly OrgLogRow[]; readonly scannedSeq: number; readonly isEnd: boolean } {
  const found: OrgLogRow[] = [];
  let scanned = 0;
  let scannedSeq = 0;
  for (const row of rows) {
    // One more than wanted is looked at, so that the last page is known to be the last.
    if (found.length === limit) return { rows: found, scannedSeq, isEnd: false };
    scanned += 1;
    scannedSeq = row.seq;
    const isOfPlan = planId === undefined || ('plan_id' in row.data && row.data.plan_id === planId) || concerns(row, planId);
    if ((types?.includes(row.type) ?? true) && isOfPlan && (since === undefined || row.at >= since)) found.push(row);
  }
  return { rows: found, scannedSeq, isEnd: scanned < scanLimit };
}

/** A plan that is halted, or was asked for by somebody who may not know of it. */
function concerns(row: OrgLogRow, planId: string): boolean {
  if (row.type === 'access_refused') return row.data.subjects.includes(planId);
  return 'subject' in row.data && typeof row.data.subject === 'object' && Reflect.get(row.data.subject ?? {}, 'plan_id') === planId;
}
