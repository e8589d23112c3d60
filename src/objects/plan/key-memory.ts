import type { LogRow } from '../../core/plan/events.ts';
import { isEndOf, KEY_TTL_MS, type KeyedDecision, keyOf, MAX_REMEMBERED_KEYS } from '../../core/plan/external/keys.ts';

const DAY_MS = 24 * 3600 * 1000;

/** What of the log it reads. */
interface LogReader {
  rows(afterSeq: number, limit: number): Iterable<LogRow>;
}

/**
 * Which row of the log decided under which idempotency key, for seven days: an index beside the log, written in the transaction of the
 * decision and made anew from the log where it is missing. It is bounded, and says when it is full instead of forgetting too early.
 */
export class KeyMemory {
  private readonly sql: SqlStorage;
  private readonly log: LogReader;
  private readonly limit: number;
  private isOpen = false;
  /** Null: not counted since the object was loaded. */
  private counted: { keys: number; oldestMs: number; atMs: number } | null = null;

  constructor(sql: SqlStorage, log: LogReader, limit = MAX_REMEMBERED_KEYS) {
    this.sql = sql;
    this.log = log;
    this.limit = limit;
  }

  about(key: string, nowMs: number): KeyedDecision {
    this.open(nowMs);
    const [found] = this.sql.exec('SELECT seq FROM keys WHERE key = ? AND at > ?', key, nowMs - KEY_TTL_MS).toArray();
    if (found === undefined) return { decided: null, settled: null, isFullUntilMs: this.fullUntil(nowMs) };
    const [decided] = this.log.rows(Number(found['seq']) - 1, 1);
    if (decided?.type !== 'call_decided') throw new Error(`row ${String(found['seq'])} of the log decides nothing`);
    const [ended] = this.sql
      .exec(
        'SELECT seq FROM log WHERE seq > ? AND instr(body, \'"type":"call_settled"\') AND instr(body, ?) ORDER BY seq LIMIT 1',
        decided.seq,
        `"call_id":${JSON.stringify(decided.data.call.id)},`,
      )
      .toArray();
    const [settled] = ended === undefined ? [] : this.log.rows(Number(ended['seq']) - 1, 1);
    const isEnd = settled?.type === 'call_settled' && isEndOf(settled, decided);
    return { decided, settled: isEnd ? settled : null, isFullUntilMs: null };
  }

  /** Within the transaction that appends the rows. */
  remember(rows: readonly LogRow[]): void {
    for (const row of rows) {
      const key = keyOf(row);
      if (key === null) continue;
      this.open(Date.parse(row.at));
      const isNew = this.sql.exec('SELECT 1 FROM keys WHERE key = ?', key).toArray().length === 0;
      this.insert(key, row);
      if (isNew && this.counted !== null) this.counted.keys += 1;
    }
  }

  private insert(key: string, { seq, at }: LogRow): void {
    this.sql.exec(
      'INSERT INTO keys (key, seq, at) VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET seq = excluded.seq, at = excluded.at',
      key,
      seq,
      Date.parse(at),
    );
  }

  private open(nowMs: number): void {
    if (this.isOpen) return;
    this.isOpen = true;
    if (this.sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'keys'").toArray().length > 0) return;
    this.sql.exec('CREATE TABLE keys (key TEXT PRIMARY KEY, seq INTEGER NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID');
    const before = this.sql.exec('SELECT seq FROM log WHERE instr(body, \'"idempotencyKey":"\') ORDER BY seq').toArray();
    for (const { seq } of before) {
      const [row] = this.log.rows(Number(seq) - 1, 1);
      const key = row === undefined ? null : keyOf(row);
      if (row !== undefined && key !== null && Date.parse(row.at) > nowMs - KEY_TTL_MS) this.insert(key, row);
    }
  }

  /** When the oldest key makes room; null: there is room now. Counted once a day, and when there may be room again. */
  private fullUntil(nowMs: number): number | null {
    const known = this.counted;
    const isOver = known !== null && known.keys >= this.limit && known.oldestMs + KEY_TTL_MS <= nowMs;
    const counted = known === null || isOver || nowMs - known.atMs >= DAY_MS ? this.count(nowMs) : known;
    return counted.keys < this.limit ? null : counted.oldestMs + KEY_TTL_MS;
  }

  private count(nowMs: number): NonNullable<KeyMemory['counted']> {
    this.sql.exec('DELETE FROM keys WHERE at <= ?', nowMs - KEY_TTL_MS);
    const [row] = this.sql.exec('SELECT count(*) AS keys, min(at) AS oldest FROM keys').toArray();
    this.counted = { keys: Number(row?.['keys'] ?? 0), oldestMs: Number(row?.['oldest'] ?? nowMs), atMs: nowMs };
    return this.counted;
  }
}
