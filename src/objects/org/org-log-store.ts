import { exceedsDepth } from '../../core/json.ts';
import type { OpenChange, OrgLogTables } from '../../core/org-log/book.ts';
import type { OrgLogRow } from '../../core/org-log/org-event.ts';
import type { KnownPlan } from '../../core/org-log/plan-report.ts';
import type { RefusalNote } from '../../core/org-log/refusals.ts';

/** A row holds values of the greatest depth that is accepted, a few levels down. */
const MAX_ROW_DEPTH = 90;

/** The last row is no row any more: somebody wrote into the storage. Nothing can be put behind it. */
export class UnreadableOrgLog extends Error {
  override readonly name = 'UnreadableOrgLog';
}

/**
 * The tables of the org's log inside its object. They appear with the first row: an object that is only asked stores nothing. Names begin
 * with `org_log`, since the object is a budget node as well.
 */
export class OrgLogStore implements OrgLogTables {
  private readonly sql: SqlStorage;
  private isThere = false;
  private hasRowSeq = false;

  constructor(sql: SqlStorage) {
    this.sql = sql;
  }

  exists(): boolean {
    this.isThere ||= this.sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'org_log'").toArray().length > 0;
    return this.isThere;
  }

  /** Within the transaction of the first write. */
  create(org: string): void {
    if (this.exists()) {
      this.addRowSeq();
      return;
    }
    this.sql.exec(`
      CREATE TABLE org_log (seq INTEGER PRIMARY KEY, body TEXT NOT NULL);
      CREATE TABLE org_log_seen (id TEXT PRIMARY KEY, at TEXT NOT NULL) WITHOUT ROWID;
      CREATE TABLE org_log_plans (
        plan_id TEXT PRIMARY KEY, seq INTEGER NOT NULL, hash TEXT NOT NULL, ended INTEGER NOT NULL, created_hash TEXT, row_seq INTEGER)
        WITHOUT ROWID;
      CREATE TABLE org_log_refusals (bucket TEXT PRIMARY KEY, note TEXT) WITHOUT ROWID;
      CREATE TABLE org_log_changes (change_id TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
      CREATE TABLE org_log_meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
    `);
    this.sql.exec("INSERT INTO org_log_meta (key, value) VALUES ('schema_version', 1), ('org', ?)", org);
  }

  /** A log from before the row of a plan was kept beside what is known of it. */
  private addRowSeq(): void {
    if (this.hasRowSeq) return;
    const [table] = this.sql.exec("SELECT sql FROM sqlite_master WHERE name = 'org_log_plans'").toArray();
    if (!String(table?.['sql']).includes('row_seq')) this.sql.exec('ALTER TABLE org_log_plans ADD COLUMN row_seq INTEGER');
    this.hasRowSeq = true;
  }

  /** Whose log it is; null: it was never begun. */
  org(): string | null {
    const value = this.meta('org');
    return value === null ? null : String(value);
  }

  last(): OrgLogRow | null {
    const [stored] = this.sql.exec('SELECT body FROM org_log ORDER BY seq DESC LIMIT 1').toArray();
    if (stored === undefined) return null;
    const row = parseRow(String(stored['body']));
    if (row === null) throw new UnreadableOrgLog('the last row of the log of the org cannot be read');
    return row;
  }

  /** Whether there is anything behind a row, readable or not. */
  hasMoreThan(seq: number): boolean {
    return this.sql.exec('SELECT 1 FROM org_log WHERE seq > ? LIMIT 1', seq).toArray().length > 0;
  }

  /** Rows in their order up to the first one that is no row any more. */
  *rows(afterSeq: number, limit: number): Generator<OrgLogRow> {
    if (!this.exists()) return;
    for (const { body } of this.sql.exec('SELECT body FROM org_log WHERE seq > ? ORDER BY seq LIMIT ?', afterSeq, limit)) {
      const row = parseRow(String(body));
      if (row === null) return;
      yield row;
    }
  }

  append(row: OrgLogRow): void {
    this.sql.exec('INSERT INTO org_log (seq, body) VALUES (?, ?)', row.seq, JSON.stringify(row));
  }

  firstSeen(id: string, at: string): boolean {
    return this.sql.exec('INSERT OR IGNORE INTO org_log_seen (id, at) VALUES (?, ?)', id, at).rowsWritten > 0;
  }

  /** Forgets ids that nobody sends again. */
  forgetSeen(before: string): void {
    this.sql.exec('DELETE FROM org_log_seen WHERE at < ?', before);
  }

  plan(planId: string): KnownPlan | null {
    const [row] = this.sql.exec('SELECT * FROM org_log_plans WHERE plan_id = ?', planId).toArray();
    return row === undefined ? null : knownPlanOf(row);
  }

  putPlan({ plan_id, seq, hash, ended, createdHash, rowSeq }: KnownPlan): void {
    this.sql.exec(
      'INSERT OR REPLACE INTO org_log_plans (plan_id, seq, hash, ended, created_hash, row_seq) VALUES (?, ?, ?, ?, ?, ?)',
      plan_id,
      seq,
      hash,
      ended ? 1 : 0,
      createdHash,
      rowSeq,
    );
  }

  /** In the order of their ids. */
  plans(afterPlanId: string, limit: number): readonly KnownPlan[] {
    if (!this.exists()) return [];
    return this.sql
      .exec('SELECT * FROM org_log_plans WHERE plan_id > ? ORDER BY plan_id LIMIT ?', afterPlanId, limit)
      .toArray()
      .map(knownPlanOf);
  }

  refusals(): ReadonlyMap<string, RefusalNote | null> {
    if (!this.exists()) return new Map();
    const stored = this.sql.exec('SELECT bucket, note FROM org_log_refusals').toArray();
    return new Map(stored.map(({ bucket, note }) => [String(bucket), note === null ? null : (JSON.parse(String(note)) as RefusalNote)]));
  }

  putRefusal(bucket: string, note: RefusalNote | null): void {
    const text = note === null ? null : JSON.stringify(note);
    this.sql.exec('INSERT OR REPLACE INTO org_log_refusals (bucket, note) VALUES (?, ?)', bucket, text);
  }

  dropRefusal(bucket: string): void {
    this.sql.exec('DELETE FROM org_log_refusals WHERE bucket = ?', bucket);
  }

  openChanges(): readonly OpenChange[] {
    if (!this.exists()) return [];
    return this.sql
      .exec('SELECT body FROM org_log_changes ORDER BY change_id')
      .toArray()
      .map(({ body }) => JSON.parse(String(body)) as OpenChange);
  }

  putChange(changeId: string, change: OpenChange): void {
    this.sql.exec('INSERT OR REPLACE INTO org_log_changes (change_id, body) VALUES (?, ?)', changeId, JSON.stringify(change));
  }

  dropChange(changeId: string): void {
    this.sql.exec('DELETE FROM org_log_changes WHERE change_id = ?', changeId);
  }

  /** Up to which row the entries in D1 are known to be. */
  flushedSeq(): number {
    return Number(this.meta('flushed_seq') ?? 0);
  }

  setFlushedSeq(seq: number): void {
    this.sql.exec(
      "INSERT INTO org_log_meta (key, value) VALUES ('flushed_seq', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
      seq,
    );
  }

  private meta(key: string): SqlStorageValue {
    if (!this.exists()) return null;
    return this.sql.exec('SELECT value FROM org_log_meta WHERE key = ?', key).toArray()[0]?.['value'] ?? null;
  }
}

function knownPlanOf(row: Record<string, SqlStorageValue>): KnownPlan {
  const { plan_id: planId, seq, hash, ended, created_hash: createdHash, row_seq: rowSeq } = row;
  return {
    plan_id: String(planId),
    seq: Number(seq),
    hash: String(hash),
    ended: ended === 1,
    createdHash: createdHash === null || createdHash === undefined ? null : String(createdHash),
    rowSeq: rowSeq === null || rowSeq === undefined ? null : Number(rowSeq),
  };
}

/** Null: what is stored is no row of a log at all. Whether it is the row that was written is for the chain to say. */
function parseRow(body: string): OrgLogRow | null {
  try {
    const row: unknown = JSON.parse(body);
    // Measured before anything walks through it: somebody else wrote it.
    const isRow = typeof row === 'object' && row !== null && !Array.isArray(row) && !exceedsDepth(row, MAX_ROW_DEPTH);
    if (!isRow) return null;
    const { seq, hash, prev, type, at, data } = row as Readonly<Record<string, unknown>>;
    const hasTexts = [hash, prev, type, at].every((text) => typeof text === 'string');
    return hasTexts && Number.isSafeInteger(seq) && typeof data === 'object' && data !== null ? (row as OrgLogRow) : null;
  } catch {
    return null;
  }
}
