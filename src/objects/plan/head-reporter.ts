import { LogDamaged, type OrgLog } from '../../app/ports.ts';
import type { PlanReport } from '../../core/org-log/plan-report.ts';
import type { LogRow } from '../../core/plan/events.ts';
import type { Plan } from '../../core/plan/plan.ts';

/** A plan at work reports after so many rows, and with the first row that is flushed after so long. */
const REPORT_EVERY_ROWS = 64;
const REPORT_EVERY_MS = 10 * 60_000;

export interface HeadReporterHost {
  readonly sql: SqlStorage;
  orgLog(): OrgLog;
  nowMs(): number;
  report(problem: string, cause: unknown): void;
}

/**
 * Tells the org's log where the log of a plan stands: with its first row, now and then, and at its end. The org's log keeps it where
 * whoever deletes or cuts the plan does not reach.
 *
 * Promise: the position moves only when the org's log has answered, so a report that was lost is made again; the org's log records it once.
 */
export class HeadReporter {
  private readonly host: HeadReporterHost;

  constructor(host: HeadReporterHost) {
    this.host = host;
  }

  /** Reports what is due with rows up to `last`. Never throws; answers why it could not, null when nothing is left to do. */
  async report(plan: Plan, last: LogRow, firstRow: () => LogRow | undefined, verified: boolean | null): Promise<unknown> {
    try {
      const reports = this.due(plan, last, firstRow).map((report) => (verified === null ? report : { ...report, verified }));
      const newest = reports.at(-1);
      if (newest === undefined) return null;
      await this.host.orgLog().report(plan.org, reports);
      this.reported(newest);
      return null;
    } catch (cause) {
      if (!(cause instanceof LogDamaged)) return cause;
      // The plan's own outbox does not wait for somebody to put the org's log right.
      this.host.report('the head could not be reported', cause);
      return null;
    }
  }

  private due(plan: Plan, last: LogRow, firstRow: () => LogRow | undefined): readonly PlanReport[] {
    const known = this.cursor();
    const first = known === null ? firstRow() : undefined;
    const at = known ?? { seq: 1, atMs: this.host.nowMs() };
    const position = { plan_id: plan.id, seq: last.seq, hash: last.hash };
    const isEnd = plan.terminal && last.seq >= plan.seq && (last.seq > at.seq || known === null);
    const isLater = last.seq > at.seq && (last.seq - at.seq >= REPORT_EVERY_ROWS || this.host.nowMs() - at.atMs >= REPORT_EVERY_MS);
    const created: readonly PlanReport[] =
      first === undefined ? [] : [{ kind: 'created', plan_id: plan.id, seq: first.seq, hash: first.hash }];
    return isEnd ? [...created, { kind: 'ended', ...position }] : isLater ? [...created, { kind: 'head', ...position }] : created;
  }

  /** Null: nothing was reported yet. */
  private cursor(): { readonly seq: number; readonly atMs: number } | null {
    const isThere = this.host.sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'head_report'").toArray().length > 0;
    const [row] = isThere ? this.host.sql.exec('SELECT seq, at_ms FROM head_report').toArray() : [];
    return row === undefined ? null : { seq: Number(row['seq']), atMs: Number(row['at_ms']) };
  }

  private reported({ seq }: PlanReport): void {
    this.host.sql.exec(
      'CREATE TABLE IF NOT EXISTS head_report (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, at_ms INTEGER NOT NULL)',
    );
    this.host.sql.exec('INSERT OR REPLACE INTO head_report (one, seq, at_ms) VALUES (1, ?, ?)', seq, this.host.nowMs());
  }
}
