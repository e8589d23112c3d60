import type { DeadLetter, PushStop, PushTarget, PushWire } from '../../core/push/push-config.ts';

/** A webhook as it was registered. */
export interface StoredPush {
  readonly id: string;
  readonly wire: PushWire;
  readonly target: PushTarget;
  readonly createdAt: string;
  /** The row of the log that tells of its registration; tells it from an earlier one of the same id. */
  readonly born: number;
}

/** A place between two notifications: everything up to a row is done, and so many notifications of the next row that has any. */
export interface PushCursor {
  readonly seq: number;
  readonly part: number;
}

/** How its deliveries stand. */
export interface PushState extends PushCursor {
  /** Number of the last notification that was delivered or given up. */
  readonly sequence: number;
  /** Attempts of the next one so far. */
  readonly tries: number;
  readonly nextAtMs: number;
  readonly stopped: PushStop | null;
  readonly givenUpInRow: number;
  readonly delivered: number;
  readonly givenUp: number;
  readonly lastError: string | null;
  readonly lastDeliveredAt: string | null;
}

export interface StoredLetter extends Omit<DeadLetter, 'deliveryId'> {
  /** Where the notification is found again. */
  readonly cursor: PushCursor;
}

/** Letters that are kept of one webhook; the oldest go first. */
const MAX_LETTERS = 200;

/**
 * Webhooks and their cursors over the log, in tables of their own that appear with the first one. There is no row per notification: what
 * is to be told follows from the cursor and the log, so nothing is lost between the two.
 */
export class PushStore {
  private readonly sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.sql = sql;
  }

  list(): readonly { readonly config: StoredPush; readonly state: PushState }[] {
    if (this.sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'push_configs'").toArray().length === 0) return [];
    return this.sql
      .exec('SELECT config, state FROM push_configs ORDER BY id')
      .toArray()
      .map(({ config, state }) => ({ config: JSON.parse(String(config)) as StoredPush, state: JSON.parse(String(state)) as PushState }));
  }

  /** Within the caller's transaction. */
  put(config: StoredPush, state: PushState): void {
    this.sql.exec('CREATE TABLE IF NOT EXISTS push_configs (id TEXT PRIMARY KEY, config TEXT NOT NULL, state TEXT NOT NULL) WITHOUT ROWID');
    this.sql.exec(
      'CREATE TABLE IF NOT EXISTS push_letters (id TEXT NOT NULL, sequence INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (id, sequence)) WITHOUT ROWID',
    );
    this.sql.exec(
      'INSERT OR REPLACE INTO push_configs (id, config, state) VALUES (?, ?, ?)',
      config.id,
      JSON.stringify(config),
      JSON.stringify(state),
    );
  }

  setState(id: string, state: PushState): void {
    this.sql.exec('UPDATE push_configs SET state = ? WHERE id = ?', JSON.stringify(state), id);
  }

  remove(id: string): void {
    this.sql.exec('DELETE FROM push_configs WHERE id = ?', id);
    this.dropLetters(id);
  }

  /** Oldest first. */
  letters(id: string): readonly StoredLetter[] {
    return this.sql
      .exec('SELECT body FROM push_letters WHERE id = ? ORDER BY sequence', id)
      .toArray()
      .map(({ body }) => JSON.parse(String(body)) as StoredLetter);
  }

  putLetter(id: string, letter: StoredLetter): void {
    this.sql.exec('INSERT OR REPLACE INTO push_letters (id, sequence, body) VALUES (?, ?, ?)', id, letter.sequence, JSON.stringify(letter));
    this.sql.exec(
      'DELETE FROM push_letters WHERE id = ? AND sequence NOT IN (SELECT sequence FROM push_letters WHERE id = ? ORDER BY sequence DESC LIMIT ?)',
      id,
      id,
      MAX_LETTERS,
    );
  }

  removeLetter(id: string, sequence: number): void {
    this.sql.exec('DELETE FROM push_letters WHERE id = ? AND sequence = ?', id, sequence);
  }

  dropLetters(id: string): void {
    this.sql.exec('DELETE FROM push_letters WHERE id = ?', id);
  }
}
