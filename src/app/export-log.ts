import { writeAuditPage } from '../api/audit-file.ts';
import { CSV_HEADER, csvLine } from '../core/audit/csv.ts';
import type { SignedHead } from '../core/audit/head.ts';
import type { AuditEntry } from '../core/plan/audit.ts';
import type { ChainedRow } from '../core/plan/chain.ts';
import type { Services } from './services.ts';

/** A log that can be exported: a plan's, or the org's own. */
export interface ExportSource<R extends ChainedRow, H extends ExportHeads> {
  readonly org: string;
  /** Names it in the file. */
  readonly logId: string;
  /** Null: there is no such log. */
  rows(afterSeq: number, limit: number): Promise<readonly R[] | null>;
  /** With its end signed. */
  heads(): Promise<H | null>;
  /** The first signed heads behind a row; none: there are no more. */
  signedAfter(seq: number): Promise<readonly SignedHead[]>;
  entryOf(row: R): AuditEntry | null;
}

export interface ExportHeads {
  readonly seq: number;
  readonly signed: readonly SignedHead[];
}

export interface ExportedPage<H> {
  readonly content: string;
  readonly rows: number;
  readonly heads: H;
  /** Null on the last page. */
  readonly nextAfterSeq: number | null;
}

/** A page ends after the row with which it is this long, whatever its limit. */
const MAX_PAGE_CHARACTERS = 1_000_000;

/** Rows that are read at once: together they stay far below what a message between objects may hold. */
const READ_ROWS = 50;

/** One page of a log as a file; null: there is no such log. */
export async function exportPage<R extends ChainedRow, H extends ExportHeads>(
  source: ExportSource<R, H>,
  { format, limit, afterSeq }: { readonly format: 'jsonl' | 'csv'; readonly limit: number; readonly afterSeq: number },
  { auditKeys: keys, sha256, clock }: Services,
): Promise<ExportedPage<H> | null> {
  const rows = await readRows(source, afterSeq, limit);
  if (rows === null) return null;
  const lastSeq = rows.at(-1)?.seq ?? afterSeq;
  // Signed after the rows were read: if the log has moved on meanwhile, what is new belongs to one more page.
  const heads = await source.heads();
  if (heads === null) return null;
  const isLast = heads.seq <= lastSeq || rows.length === 0;
  const isFirst = afterSeq === 0;
  const { org, logId } = source;
  const at = new Date(clock.nowMs()).toISOString();
  const content =
    format === 'csv'
      ? `${isFirst ? CSV_HEADER : ''}${rows
          .flatMap((row) => source.entryOf(row) ?? [])
          .map((entry) => csvLine(logId, entry))
          .join('')}`
      : await writeAuditPage(
          {
            org,
            planId: logId,
            isFirst,
            rows,
            heads: await headsOf(source, afterSeq, isLast ? Number.MAX_SAFE_INTEGER : lastSeq),
            isLast,
            afterSeq,
            at,
          },
          { sha256, keys },
        );
  return { content, rows: rows.length, heads, nextAfterSeq: isLast ? null : lastSeq };
}

async function headsOf(
  { signedAfter }: Pick<ExportSource<ChainedRow, ExportHeads>, 'signedAfter'>,
  afterSeq: number,
  toSeq: number,
): Promise<readonly SignedHead[]> {
  const heads: SignedHead[] = [];
  for (let after = afterSeq; ; ) {
    const signed = await signedAfter(after);
    heads.push(...signed.filter(({ seq }) => seq <= toSeq));
    const last = signed.at(-1);
    if (last === undefined || last.seq <= after || last.seq >= toSeq) return heads;
    after = last.seq;
  }
}

/** Rows behind a position, until there are enough of them or they are long enough. */
async function readRows<R extends ChainedRow>(
  source: Pick<ExportSource<R, ExportHeads>, 'rows'>,
  afterSeq: number,
  limit: number,
): Promise<readonly R[] | null> {
  const rows: R[] = [];
  let characters = 0;
  while (rows.length < limit && characters < MAX_PAGE_CHARACTERS) {
    const wanted = Math.min(READ_ROWS, limit - rows.length);
    const read = await source.rows(rows.at(-1)?.seq ?? afterSeq, wanted);
    if (read === null) return null;
    for (const row of read) {
      if (characters >= MAX_PAGE_CHARACTERS) return rows;
      rows.push(row);
      characters += JSON.stringify(row).length;
    }
    if (read.length < wanted) break;
  }
  return rows;
}
