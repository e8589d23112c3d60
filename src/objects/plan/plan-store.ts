import type { PlanRetirement } from '../../app/ports.ts';
import type { JsonValue } from '../../core/json.ts';
import type { LogDamage } from '../../core/plan/chain.ts';
import type { LogRow } from '../../core/plan/events.ts';
import { PLAN_STATE_VERSION, type Plan } from '../../core/plan/plan.ts';

/** A snapshot of the state every so many rows bounds what a wake has to fold. */
const SNAPSHOT_EVERY = 32;

/** One row of the platform holds at most 2 MB, which the local runtime does not enforce; parts stay well below, whatever is in them. */
const PART_CHARACTERS = 500_000;
const PART_BYTES = 1024 * 1024;

/** A row of the log above this is kept in parts beside it, so that reading a page of the log stays cheap. */
const MAX_ROW_CHARACTERS = 64 * 1024;

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

  /** The newest snapshot. Null: the log is still shorter than what is snapshotted. */
  snapshotPlan(): { readonly kind: 'read'; readonly plan: Plan | null } | { readonly kind: 'unreadable' } {
    const parts = this.sql.exec('SELECT body FROM snapshot ORDER BY part').toArray();
    if (parts.length === 0) return { kind: 'read', plan: null };
    try {
      const plan: unknown = JSON.parse(parts.map((part) => String(part['body'])).join(''));
      // Made by another version of the fold: the log says the same in the shape of this one.
      if (isOfAnotherVersion(plan)) return { kind: 'read', plan: null };
      return isPlanShaped(plan) ? { kind: 'read', plan } : { kind: 'unreadable' };
    } catch {
      return { kind: 'unreadable' };
    }
  }

  *rows(afterSeq: number, limit: number): Generator<LogRow> {
    for (const { body } of this.bodies(afterSeq, limit)) yield JSON.parse(body) as LogRow;
  }

  /** Rows as they are stored, whatever is in them. A long row of which nothing is left is empty. */
  *bodies(afterSeq: number, limit: number): Generator<{ readonly seq: number; readonly body: string }> {
    for (const row of this.sql.exec('SELECT seq, body FROM log WHERE seq > ? ORDER BY seq LIMIT ?', afterSeq, limit)) {
      const [seq, body] = [Number(row['seq']), String(row['body'])];
      yield { seq, body: body === '' ? this.longBody(seq) : body };
    }
  }

  /** Number of the last row; 0: there is none. */
  lastSeq(): number {
    return Number(this.sql.exec('SELECT max(seq) AS seq FROM log').toArray()[0]?.['seq'] ?? 0);
  }

  /** The rows before one, the newest first. */
  *rowsBefore(seq: number): Generator<LogRow> {
    for (const row of this.sql.exec('SELECT seq, body FROM log WHERE seq < ? ORDER BY seq DESC', seq)) {
      const body = String(row['body']);
      yield JSON.parse(body === '' ? this.longBody(Number(row['seq'])) : body) as LogRow;
    }
  }

  /** Within the caller's transaction. */
  append(rows: readonly LogRow[], blobs: ReadonlyMap<string, Uint8Array>, plan: Plan): void {
    const first = rows[0];
    const last = rows.at(-1);
    if (first === undefined || last === undefined) return;
    if (first.seq === 1) this.createSchema();
    for (const [digest, bytes] of blobs) {
      for (let part = 0; part === 0 || part * PART_BYTES < bytes.byteLength; part += 1) {
        const slice = bytes.subarray(part * PART_BYTES, (part + 1) * PART_BYTES);
        this.sql.exec('INSERT OR IGNORE INTO blobs (digest, part, bytes) VALUES (?, ?, ?)', digest, part, slice);
      }
    }
    for (const row of rows) this.appendRow(row);
    if (Math.floor(last.seq / SNAPSHOT_EVERY) > Math.floor((first.seq - 1) / SNAPSHOT_EVERY)) this.snapshot(plan);
  }

  blob(digest: string): Uint8Array | null {
    const parts: Uint8Array[] = [];
    for (const { bytes } of this.sql.exec('SELECT bytes FROM blobs WHERE digest = ? ORDER BY part', digest)) {
      if (bytes instanceof ArrayBuffer) parts.push(new Uint8Array(bytes));
    }
    const [first, second] = parts;
    if (first === undefined || second === undefined) return first ?? null;
    const whole = new Uint8Array(parts.reduce((size, part) => size + part.byteLength, 0));
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.byteLength;
    }
    return whole;
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

  /** What was found wrong with the log by something outside it. */
  damage(): LogDamage | null {
    const value = this.sql.exec("SELECT value FROM meta WHERE key = 'damage'").toArray()[0]?.['value'];
    return value === undefined ? null : (JSON.parse(String(value)) as LogDamage);
  }

  setDamage(damage: LogDamage): void {
    this.sql.exec("INSERT OR IGNORE INTO meta (key, value) VALUES ('damage', ?)", JSON.stringify(damage));
  }

  /** How the plan was closed whose log is damaged; null: it was not. */
  retirement(): PlanRetirement | null {
    // Whoever damaged the log may have taken the table away as well.
    const isThere = this.sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'meta'").toArray().length > 0;
    const [found] = isThere ? this.sql.exec("SELECT value FROM meta WHERE key = 'retired'").toArray() : [];
    return found === undefined ? null : (JSON.parse(String(found['value'])) as PlanRetirement);
  }

  setRetirement(retirement: PlanRetirement): void {
    this.sql.exec('CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID');
    this.sql.exec("INSERT OR IGNORE INTO meta (key, value) VALUES ('retired', ?)", JSON.stringify(retirement));
  }

  private appendRow(row: LogRow): void {
    const body = JSON.stringify(row);
    const isLong = body.length > MAX_ROW_CHARACTERS;
    this.sql.exec('INSERT INTO log (seq, body) VALUES (?, ?)', row.seq, isLong ? '' : body);
    if (!isLong) return;
    for (const [part, text] of partsOf(body).entries())
      this.sql.exec('INSERT INTO log_parts (seq, part, body) VALUES (?, ?, ?)', row.seq, part, text);
  }

  private longBody(seq: number): string {
    return this.sql
      .exec('SELECT body FROM log_parts WHERE seq = ? ORDER BY part', seq)
      .toArray()
      .map((part) => String(part['body']))
      .join('');
  }

  private snapshot(plan: Plan): void {
    const parts = partsOf(JSON.stringify(plan));
    for (const [part, body] of parts.entries()) {
      this.sql.exec('INSERT INTO snapshot (part, body) VALUES (?, ?) ON CONFLICT (part) DO UPDATE SET body = excluded.body', part, body);
    }
    this.sql.exec('DELETE FROM snapshot WHERE part >= ?', parts.length);
  }

  private createSchema(): void {
    this.sql.exec(`
      CREATE TABLE log (seq INTEGER PRIMARY KEY, body TEXT NOT NULL);
      CREATE TABLE log_parts (seq INTEGER NOT NULL, part INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (seq, part)) WITHOUT ROWID;
      CREATE TABLE blobs (digest TEXT NOT NULL, part INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (digest, part)) WITHOUT ROWID;
      CREATE TABLE snapshot (part INTEGER PRIMARY KEY, body TEXT NOT NULL);
      CREATE TABLE meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
    `);
    this.sql.exec("INSERT INTO meta (key, value) VALUES ('schema_version', ?)", SCHEMA_VERSION);
  }
}

/** What folding and verifying rely on; whether it is the state that the log tells is for them to say. */
function isOfAnotherVersion(value: unknown): boolean {
  const v = typeof value === 'object' && value !== null ? Reflect.get(value, 'v') : undefined;
  return typeof v === 'number' && v !== PLAN_STATE_VERSION;
}

function isPlanShaped(value: unknown): value is Plan {
  if (typeof value !== 'object' || value === null) return false;
  const { seq, headHash, org, id } = value as Partial<Plan>;
  return Number.isSafeInteger(seq) && [headHash, org, id].every((text) => typeof text === 'string');
}

/** A text in pieces that each fit one row; a pair of UTF-16 units that belongs together is never torn, since SQLite keeps UTF-8. */
function partsOf(text: string): readonly string[] {
  const parts: string[] = [];
  for (let start = 0; start < text.length; ) {
    let end = Math.min(text.length, start + PART_CHARACTERS);
    const last = text.charCodeAt(end - 1);
    if (end < text.length && last >= 0xd800 && last <= 0xdbff) end -= 1;
    parts.push(text.slice(start, end));
    start = end;
  }
  return parts;
}
