import type { SignedHead } from '../../core/audit/head.ts';

const NEWEST = 10;

/** Heads in one answer, where they are walked through. */
const HEADS_PAGE = 500;

/**
 * Signed heads beside the log, in a table of their own: they are made outside the commit, and a plan that was never signed has none. The
 * table appears with the first one.
 */
export class HeadStore {
  private readonly sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.sql = sql;
  }

  /**
   * Oldest first: the first behind a row, or the newest few. A row that cannot be read is left out: it proves nothing. A log may have been
   * signed thousands of times, and no answer grows with it.
   */
  list(after?: number): readonly SignedHead[] {
    if (!this.exists()) return [];
    const stored =
      after === undefined
        ? this.sql.exec('SELECT body FROM heads ORDER BY seq DESC LIMIT ?', NEWEST).toArray().reverse()
        : this.sql.exec('SELECT body FROM heads WHERE seq > ? ORDER BY seq LIMIT ?', after, HEADS_PAGE).toArray();
    return stored.flatMap(({ body }) => {
      try {
        return [JSON.parse(String(body)) as SignedHead];
      } catch {
        return [];
      }
    });
  }

  /** The row that was signed last; 0: none was. */
  newestSeq(): number {
    return this.exists() ? Number(this.sql.exec('SELECT max(seq) AS seq FROM heads').toArray()[0]?.['seq'] ?? 0) : 0;
  }

  /** What was signed first of a row stays: a second signature of it, after a crash, says nothing new. */
  add(head: SignedHead): void {
    this.sql.exec('CREATE TABLE IF NOT EXISTS heads (seq INTEGER PRIMARY KEY, body TEXT NOT NULL)');
    this.sql.exec('INSERT OR IGNORE INTO heads (seq, body) VALUES (?, ?)', head.seq, JSON.stringify(head));
  }

  private exists(): boolean {
    return this.sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'heads'").toArray().length > 0;
  }
}
