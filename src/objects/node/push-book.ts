/** The plans that are told: all that are live in the org, or in one of its sessions. */
export interface PushTarget {
  readonly org: string;
  readonly sessionId: string | null;
}

/** A round over the plans that is not finished. */
export interface Push extends PushTarget {
  /** What is told: the epoch of a halt, the version of a floor. */
  readonly version: number;
  /** Plans up to this id have been told in this round; '' at its beginning. */
  readonly cursor: string;
  /** How many of them did not acknowledge. */
  readonly missed: number;
  readonly round: number;
  readonly begunMs: number;
  readonly dueMs: number;
}

/** Whoever began it tells the plans first; if nobody has said by then that all know, the node does it itself. */
const GRACE_MS = 3_000;

/** Between rounds in which somebody was missed: doubled up to the longest. */
const MAX_PAUSE_MS = 5 * 60_000;

/**
 * The duty of a node to tell the plans below of something, until all that are live have acknowledged it.
 *
 * Promise: the duty outlives every crash; only a round that missed nobody ends it. A newer version takes the place of an older one and
 * begins anew. One row per topic; no table before the first.
 */
export class PushBook {
  private readonly sql: SqlStorage;
  private readonly topic: string;
  /** When something is due; undefined: not read yet. Whoever sets the alarm asks often. */
  private due: number | null | undefined;

  constructor(sql: SqlStorage, topic: string) {
    this.sql = sql;
    this.topic = topic;
  }

  /** Inside the transaction that makes what is to be told. A duty to tell something newer stays. */
  begin({ org, sessionId }: PushTarget, version: number, nowMs: number): void {
    this.sql.exec(
      `CREATE TABLE IF NOT EXISTS pushes (
         topic TEXT PRIMARY KEY, org TEXT NOT NULL, session_id TEXT, version INTEGER NOT NULL, cursor TEXT NOT NULL, missed INTEGER NOT NULL,
         round INTEGER NOT NULL, begun_ms INTEGER NOT NULL, due_ms INTEGER NOT NULL) WITHOUT ROWID`,
    );
    if ((this.current()?.version ?? 0) > version) return;
    this.due = undefined;
    this.sql.exec(
      'INSERT OR REPLACE INTO pushes VALUES (?, ?, ?, ?, ?, 0, 0, ?, ?)',
      ...[this.topic, org, sessionId, version, '', nowMs, nowMs + GRACE_MS],
    );
  }

  /** Null: everybody knows. */
  dueMs(): number | null {
    if (this.due === undefined) this.due = this.current()?.dueMs ?? null;
    return this.due;
  }

  current(): Push | null {
    if (!this.exists()) return null;
    const [row] = this.sql.exec('SELECT * FROM pushes WHERE topic = ?', this.topic).toArray();
    if (row === undefined) return null;
    return {
      org: String(row['org']),
      sessionId: row['session_id'] === null ? null : String(row['session_id']),
      version: Number(row['version']),
      cursor: String(row['cursor']),
      missed: Number(row['missed']),
      round: Number(row['round']),
      begunMs: Number(row['begun_ms']),
      dueMs: Number(row['due_ms']),
    };
  }

  /** Everybody knows this version; one that came meanwhile is still to be told. */
  end(version: number): void {
    this.due = undefined;
    if (this.exists()) this.sql.exec('DELETE FROM pushes WHERE topic = ? AND version <= ?', this.topic, version);
  }

  /** A part of the round is done: behind `cursor` is the next one; null: that was the last. Nothing happens where another version came meanwhile. */
  advance(of: Push, { cursor, missed }: { readonly cursor: string | null; readonly missed: number }, nowMs: number): void {
    const all = of.missed + missed;
    if (cursor === null && all === 0) {
      this.end(of.version);
    } else if (cursor === null) {
      this.postpone(of, nowMs);
    } else {
      this.update(of, { cursor, missed: all, round: of.round, dueMs: nowMs });
    }
  }

  /** Begins the round again after a pause: somebody was missed, or nobody could be asked who there is. */
  postpone(of: Push, nowMs: number): void {
    const pauseMs = Math.min(MAX_PAUSE_MS, GRACE_MS * 2 ** Math.min(of.round, 20));
    this.update(of, { cursor: '', missed: 0, round: of.round + 1, dueMs: nowMs + pauseMs });
  }

  private update(of: Push, { cursor, missed, round, dueMs }: Pick<Push, 'cursor' | 'missed' | 'round' | 'dueMs'>): void {
    this.due = undefined;
    this.sql.exec(
      'UPDATE pushes SET cursor = ?, missed = ?, round = ?, due_ms = ? WHERE topic = ? AND version = ?',
      ...[cursor, missed, round, dueMs, this.topic, of.version],
    );
  }

  private exists(): boolean {
    return this.sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'pushes'").toArray().length > 0;
  }
}
