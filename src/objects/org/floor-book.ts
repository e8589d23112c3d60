import type { FloorWord } from '../../app/ports.ts';
import type { JsonObject } from '../../core/json.ts';
import { PushBook, type PushTarget } from '../node/push-book.ts';

/** After this nobody is about to save the version that was announced: whoever announced it was refused, or gave up. */
const ANNOUNCED_FOR_MS = 10 * 60_000;

/**
 * The policy floor that binds the plans of the org, as its node tells it. The versions themselves are in D1; this is the one that plans read
 * when they wake.
 *
 * Promise: a floor is announced here before it is saved there, so that from then on the node looks for it by itself until it has it and every
 * live plan knows it, whatever becomes of the call that saved it.
 */
export class FloorBook {
  private readonly sql: SqlStorage;
  readonly push: PushBook;

  constructor(sql: SqlStorage) {
    this.sql = sql;
    this.push = new PushBook(sql, 'floor');
  }

  /** Null: none was set since the node exists. */
  show(): FloorWord | null {
    if (!this.exists()) return null;
    const [row] = this.sql.exec('SELECT version, policy, by_actor FROM floor').toArray();
    if (row === undefined) return null;
    return {
      version: Number(row['version']),
      policy: JSON.parse(String(row['policy'])) as JsonObject,
      by: JSON.parse(String(row['by_actor'])) as FloorWord['by'],
    };
  }

  /** A version that is about to be saved. */
  announce(target: PushTarget, version: number, nowMs: number): void {
    this.push.begin(target, version, nowMs);
  }

  /** The newest version wins, in whatever order they come. */
  put({ version, policy, by }: FloorWord): void {
    if ((this.show()?.version ?? 0) >= version) return;
    this.sql.exec(
      'CREATE TABLE IF NOT EXISTS floor (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL, policy TEXT NOT NULL, by_actor TEXT NOT NULL)',
    );
    this.sql.exec(
      'INSERT OR REPLACE INTO floor (one, version, policy, by_actor) VALUES (1, ?, ?, ?)',
      version,
      JSON.stringify(policy),
      JSON.stringify(by),
    );
  }

  /** Whether what was announced is here, or will not come any more. */
  hasArrived(nowMs: number): boolean {
    const push = this.push.current();
    return push === null || (this.show()?.version ?? 0) >= push.version || nowMs - push.begunMs >= ANNOUNCED_FOR_MS;
  }

  private exists(): boolean {
    return this.sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'floor'").toArray().length > 0;
  }
}
