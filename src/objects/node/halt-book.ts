import { type HaltChange, nextWord } from '../../core/halt-word.ts';
import type { HaltLevel, HaltWord } from '../../core/plan/plan.ts';
import { PushBook, type PushTarget } from './push-book.ts';

/**
 * The kill switch of a node: its newest word, durable, and how far the plans below have been told of it.
 *
 * Promise: a new word and the duty to tell it are written in one transaction, so that no crash leaves a word of which nobody is told. There is
 * no table before the first setting; an object that is only asked stores nothing.
 */
export class HaltBook {
  private readonly sql: SqlStorage;
  private readonly level: HaltLevel;
  /** Telling the plans; whoever owns the alarm sets it for when that is due. */
  readonly push: PushBook;

  constructor(sql: SqlStorage, level: HaltLevel) {
    this.sql = sql;
    this.level = level;
    this.push = new PushBook(sql, 'halt');
  }

  /** Null: never set. */
  show(): HaltWord | null {
    if (!this.exists()) return null;
    const [row] = this.sql.exec('SELECT epoch, reason, by_actor, at FROM halt_word').toArray();
    if (row === undefined) return null;
    return {
      level: this.level,
      epoch: Number(row['epoch']),
      reason: row['reason'] === null ? null : String(row['reason']),
      by: JSON.parse(String(row['by_actor'])) as HaltWord['by'],
      at: String(row['at']),
    };
  }

  /** The word that holds after this; inside a transaction of the caller. What holds already is told again. Null: nothing was set to clear. */
  change(target: PushTarget, change: HaltChange, nowMs: number): HaltWord | null {
    const known = this.show();
    const word = nextWord(known, this.level, change);
    if (word === null) return null;
    if (word !== known) {
      this.sql.exec(
        `CREATE TABLE IF NOT EXISTS halt_word (
           one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER NOT NULL, reason TEXT, by_actor TEXT NOT NULL, at TEXT NOT NULL)`,
      );
      this.sql.exec(
        'INSERT OR REPLACE INTO halt_word (one, epoch, reason, by_actor, at) VALUES (1, ?, ?, ?, ?)',
        word.epoch,
        word.reason,
        JSON.stringify(word.by),
        word.at,
      );
      this.push.begin(target, word.epoch, nowMs);
    }
    return word;
  }

  private exists(): boolean {
    return this.sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'halt_word'").toArray().length > 0;
  }
}
