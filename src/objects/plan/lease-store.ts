import type { LeasePhase, LeaseRow } from '../../core/budget/protocol.ts';
import type { Day } from '../../core/budget/window.ts';

/**
 * The leases of a plan in its SQLite: one row per parent and day. They are no events: grants and returns are positions towards the budgets
 * above and not decisions of the plan, and replaying its log must give the plan whatever its neighbours did.
 */
export class LeaseStore {
  private readonly sql: SqlStorage;
  private exists: boolean;

  constructor(sql: SqlStorage) {
    this.sql = sql;
    this.exists = sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'lease'").toArray().length > 0;
  }

  /** By parent. */
  load(): ReadonlyMap<string, readonly LeaseRow[]> {
    const byParent = new Map<string, LeaseRow[]>();
    if (!this.exists) return byParent;
    for (const row of this.sql.exec('SELECT parent, day, g, r, v, phase, closed FROM lease ORDER BY parent, day')) {
      const parent = String(row['parent']);
      const rows = byParent.get(parent) ?? [];
      rows.push({
        day: String(row['day']),
        g: Number(row['g']),
        r: Number(row['r']),
        v: Number(row['v']),
        phase: String(row['phase']) as LeasePhase,
        closedMicroUsd: Number(row['closed']),
      });
      byParent.set(parent, rows);
    }
    return byParent;
  }

  /** Within the caller's transaction. */
  write(parent: string, changes: ReadonlyMap<Day, LeaseRow>): void {
    if (changes.size === 0) return;
    if (!this.exists) {
      this.sql.exec(
        `CREATE TABLE IF NOT EXISTS lease (
           parent TEXT NOT NULL, day TEXT NOT NULL, g INTEGER NOT NULL, r INTEGER NOT NULL, v INTEGER NOT NULL,
           phase TEXT NOT NULL, closed INTEGER NOT NULL, PRIMARY KEY (parent, day)) WITHOUT ROWID`,
      );
      this.exists = true;
    }
    for (const { day, g, r, v, phase, closedMicroUsd } of changes.values()) {
      this.sql.exec(
        'INSERT OR REPLACE INTO lease (parent, day, g, r, v, phase, closed) VALUES (?, ?, ?, ?, ?, ?, ?)',
        parent,
        day,
        g,
        r,
        v,
        phase,
        closedMicroUsd,
      );
    }
  }
}
