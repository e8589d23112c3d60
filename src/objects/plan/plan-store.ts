import type { JsonValue } from '../../core/json.ts';
import type { LogRow } from '../../core/plan/events.ts';
import { evolve } from '../../core/plan/evolve.ts';
import type { Plan } from '../../core/plan/plan.ts';

/** A snapshot of the state every so many rows bounds what a wake has to fold. */
const SNAPSHOT_EVERY = 32;

/** One row holds at most 2 MB; parts stay well below. */
const PART_CHARACTERS = 500_000;

const SCHEMA_VERSION = 1;

/**
 * The plan's SQLite: log, blobs, the newest snapshot, and the cursor of the D1 outbox. Nothing is stored before the first commit, so an
 * object that is asked for an unknown plan stays empty.
 */
export class PlanStore {
  private readonly sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.sql = sql;
  }

  exists(): boolean {
    return this.sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'log'").toArray().length > 0;
  }

  /** The state: the newest snapshot and the rows after it. */
  load(): Plan | null {
    if (!this.exists()) return null;
    const parts = this.sql.exec('SELECT body FROM snapshot ORDER BY part').toArray();
    let plan: Plan | null = parts.length === 0 ? null : (JSON.parse(parts.map((part) => String(part['body'])).join('')) as Plan);
    for (const row of this.rows(plan?.seq ?? 0, Number.MAX_SAFE_INTEGER)) plan = evolve(plan, row);
    return plan;
  }

  *rows(afterSeq: number, limit: number): Generator<LogRow> {
    for (const row of this.sql.exec('SELECT body FROM log WHERE seq > ? ORDER BY seq LIMIT ?', afterSeq, limit)) {
      yield JSON.parse(String(row['body'])) as LogRow;
    }
  }

  /** Within the caller's transaction. */
  append(rows: readonly LogRow[], blobs: ReadonlyMap<string, Uint8Array>, plan: Plan): void {
    const first = rows[0];
    const last = rows.at(-1);
    if (first === undefined || last === undefined) return;
    if (first.seq === 1) this.createSchema();
    for (const [digest, bytes] of blobs) {
      this.sql.exec('INSERT OR IGNORE INTO blobs (digest, bytes) VALUES (?, ?)', digest, bytes);
    }
    for (const row of rows) this.sql.exec('INSERT INTO log (seq, body) VALUES (?, ?)', row.seq, JSON.stringify(row));
    if (Math.floor(last.seq / SNAPSHOT_EVERY) > Math.floor((first.seq - 1) / SNAPSHOT_EVERY)) this.snapshot(plan);
  }

  blob(digest: string): Uint8Array | null {
    const row = this.sql.exec('SELECT bytes FROM blobs WHERE digest = ?', digest).toArray()[0];
    const bytes = row?.['bytes'];
    return bytes instanceof ArrayBuffer ? new Uint8Array(bytes) : null;
  }

  json(digest: string): JsonValue {
    const bytes = this.blob(digest);
    return bytes === null ? null : (JSON.parse(new TextDecoder().decode(bytes)) as JsonValue);
  }

  /** Up to which row the index and the audit trail in D1 are known to be. */
  flushedSeq(): number {
    return Number(this.sql.exec("SELECT value FROM meta WHERE key = 'flushed_seq'").toArray()[0]?.['value'] ?? 0);
  }

  setFlushedSeq(seq: number): void {
    this.sql.exec("INSERT INTO meta (key, value) VALUES ('flushed_seq', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", seq);
  }

  private snapshot(plan: Plan): void {
    const text = JSON.stringify(plan);
    const parts = Math.max(1, Math.ceil(text.length / PART_CHARACTERS));
    for (let part = 0; part < parts; part += 1) {
      const body = text.slice(part * PART_CHARACTERS, (part + 1) * PART_CHARACTERS);
      this.sql.exec('INSERT INTO snapshot (part, body) VALUES (?, ?) ON CONFLICT (part) DO UPDATE SET body = excluded.body', part, body);
    }
    this.sql.exec('DELETE FROM snapshot WHERE part >= ?', parts);
  }

  private createSchema(): void {
    this.sql.exec(`
      CREATE TABLE log (seq INTEGER PRIMARY KEY, body TEXT NOT NULL);
      CREATE TABLE blobs (digest TEXT PRIMARY KEY, bytes BLOB NOT NULL) WITHOUT ROWID;
      CREATE TABLE snapshot (part INTEGER PRIMARY KEY, body TEXT NOT NULL);
      CREATE TABLE meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
    `);
    this.sql.exec("INSERT INTO meta (key, value) VALUES ('schema_version', ?)", SCHEMA_VERSION);
  }
}
