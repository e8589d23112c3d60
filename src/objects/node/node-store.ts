import type { BudgetWarning } from '../../app/ports.ts';
import {
  type Account,
  type Caps,
  type ClosedAccount,
  NO_CAPS,
  NO_ROWS,
  type NodeChange,
  type NodeRows,
  type Spent,
} from '../../core/budget/node-state.ts';
import type { LeaseRow } from '../../core/budget/protocol.ts';
import type { CapWindow, Day } from '../../core/budget/window.ts';

/** What a node calls itself by. Every call brings it; an alarm has nobody to ask. */
export interface NodeName {
  readonly org: string;
  /** Session id, profile name, or the org's own name. */
  readonly id: string;
}

/**
 * The tables of a budget node: an append-only list, one entry per version. Amounts are micro-USD. `budget_node` has one row; its
 * presence is what makes an object a node.
 */
const MIGRATIONS: readonly string[] = [
  `CREATE TABLE budget_node (
     one INTEGER PRIMARY KEY CHECK (one = 1),
     schema_version INTEGER NOT NULL,
     org TEXT NOT NULL,
     id TEXT NOT NULL,
     cap_total INTEGER,
     cap_monthly INTEGER,
     cap_daily INTEGER,
     last_day TEXT
   );
   CREATE TABLE budget_account (
     child TEXT NOT NULL, day TEXT NOT NULL, g INTEGER NOT NULL, r INTEGER NOT NULL, s INTEGER NOT NULL, v INTEGER NOT NULL, cap INTEGER,
     PRIMARY KEY (day, child)
   ) WITHOUT ROWID;
   CREATE TABLE budget_closed (
     child TEXT NOT NULL, day TEXT NOT NULL, s INTEGER NOT NULL, v INTEGER NOT NULL,
     PRIMARY KEY (day, child)
   ) WITHOUT ROWID;
   CREATE TABLE budget_spent (day TEXT PRIMARY KEY, s INTEGER NOT NULL, v INTEGER NOT NULL) WITHOUT ROWID;
   CREATE TABLE budget_lease (
     day TEXT PRIMARY KEY, g INTEGER NOT NULL, r INTEGER NOT NULL, v INTEGER NOT NULL, phase TEXT NOT NULL, closed INTEGER NOT NULL
   ) WITHOUT ROWID;
   CREATE TABLE budget_warning (
     window_key TEXT PRIMARY KEY, window TEXT NOT NULL, cap INTEGER NOT NULL, used INTEGER NOT NULL, at TEXT NOT NULL,
     told INTEGER NOT NULL
   ) WITHOUT ROWID;`,
];

/**
 * The durable part of a budget node.
 *
 * Promise: what was never told anything that counts stores nothing, so that a probe with an invented id leaves no trace. Writes are
 * made inside a transaction of the caller.
 */
export class NodeStore {
  private readonly sql: SqlStorage;
  private stored: NodeName | null = null;
  private day: Day | null = null;
  /** By window. */
  private readonly marks = new Map<string, BudgetWarning & { readonly told: boolean }>();

  constructor(sql: SqlStorage) {
    this.sql = sql;
    this.reload();
  }

  /** After a transaction that was rolled back, and with it perhaps the tables. */
  reload(): void {
    const { sql } = this;
    const isMade = sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'budget_node'").toArray().length > 0;
    if (isMade) this.migrate();
    const row = isMade ? sql.exec('SELECT org, id, last_day FROM budget_node').one() : null;
    this.stored = row === null ? null : { org: String(row['org']), id: String(row['id']) };
    this.day = typeof row?.['last_day'] === 'string' ? row['last_day'] : null;
    this.marks.clear();
    if (isMade) for (const mark of readWarnings(sql)) this.marks.set(mark.windowKey, mark);
  }

  /** Null as long as nothing was written. */
  name(): NodeName | null {
    return this.stored;
  }

  /** The UTC day of the last step that found anything stored. */
  lastDay(): Day | null {
    return this.day;
  }

  setLastDay(day: Day): void {
    this.sql.exec('UPDATE budget_node SET last_day = ?', day);
    this.day = day;
  }

  rows(): NodeRows {
    if (this.stored === null) return NO_ROWS;
    const all = (query: string) => this.sql.exec(query).toArray();
    const caps = this.sql.exec('SELECT cap_total, cap_monthly, cap_daily FROM budget_node').one();
    return {
      caps: { ...NO_CAPS, total: amountOf(caps['cap_total']), monthly: amountOf(caps['cap_monthly']), daily: amountOf(caps['cap_daily']) },
      accounts: all('SELECT child, day, g, r, s, v, cap AS capMicroUsd FROM budget_account') as unknown as Account[],
      closed: all('SELECT child, day, s, v FROM budget_closed') as unknown as ClosedAccount[],
      spent: all('SELECT day, s, v FROM budget_spent') as unknown as Spent[],
      leases: all('SELECT day, g, r, v, phase, closed AS closedMicroUsd FROM budget_lease') as unknown as LeaseRow[],
    };
  }

  write(name: NodeName, changes: readonly NodeChange[]): void {
    if (changes.length === 0) return;
    this.ensure(name);
    for (const change of changes) this.put(change);
  }

  warnings(): readonly BudgetWarning[] {
    return [...this.marks.values()].map(({ told: _told, ...mark }) => mark);
  }

  /** Those that the org's log was not told of yet. */
  untoldWarnings(): readonly BudgetWarning[] {
    return [...this.marks.values()].flatMap(({ told, ...mark }) => (told ? [] : [mark]));
  }

  putWarning(name: NodeName, mark: BudgetWarning): void {
    this.ensure(name);
    this.keep(mark, false);
  }

  markTold(mark: BudgetWarning): void {
    const kept = this.marks.get(mark.windowKey);
    // Another may have taken its place under a raised cap.
    if (kept?.capMicroUsd === mark.capMicroUsd) this.keep(mark, true);
  }

  private keep(mark: BudgetWarning, told: boolean): void {
    const { window, windowKey, capMicroUsd, usedMicroUsd, at } = mark;
    this.sql.exec(
      'INSERT OR REPLACE INTO budget_warning (window_key, window, cap, used, at, told) VALUES (?, ?, ?, ?, ?, ?)',
      windowKey,
      window,
      capMicroUsd,
      usedMicroUsd,
      at,
      told ? 1 : 0,
    );
    this.marks.set(windowKey, { ...mark, told });
  }

  private ensure({ org, id }: NodeName): void {
    if (this.stored !== null) return;
    for (const migration of MIGRATIONS) this.sql.exec(migration);
    this.sql.exec('INSERT INTO budget_node (one, schema_version, org, id) VALUES (1, ?, ?, ?)', MIGRATIONS.length, org, id);
    this.stored = { org, id };
  }

  /** The rows that were made by an older version are brought to this one. */
  private migrate(): void {
    const version = Number(this.sql.exec('SELECT schema_version FROM budget_node').one()['schema_version']);
    if (version >= MIGRATIONS.length) return;
    for (const migration of MIGRATIONS.slice(version)) this.sql.exec(migration);
    this.sql.exec('UPDATE budget_node SET schema_version = ?', MIGRATIONS.length);
  }

  private put(change: NodeChange): void {
    switch (change.table) {
      case 'caps':
        this.putCaps(change.row);
        return;
      case 'account':
        if (change.row === null) this.drop('budget_account', change.key);
        else {
          const { child, day, g, r, s, v, capMicroUsd } = change.row;
          this.sql.exec(
            'INSERT OR REPLACE INTO budget_account (child, day, g, r, s, v, cap) VALUES (?, ?, ?, ?, ?, ?, ?)',
            child,
            day,
            g,
            r,
            s,
            v,
            capMicroUsd,
          );
        }
        return;
      case 'closed':
        if (change.row === null) this.drop('budget_closed', change.key);
        else {
          const { child, day, s, v } = change.row;
          this.sql.exec('INSERT OR REPLACE INTO budget_closed (child, day, s, v) VALUES (?, ?, ?, ?)', child, day, s, v);
        }
        return;
      case 'spent': {
        const { day, s, v } = change.row;
        this.sql.exec('INSERT OR REPLACE INTO budget_spent (day, s, v) VALUES (?, ?, ?)', day, s, v);
        return;
      }
      case 'lease':
        if (change.row === null) this.sql.exec('DELETE FROM budget_lease WHERE day = ?', change.key);
        else {
          const { day, g, r, v, phase, closedMicroUsd } = change.row;
          this.sql.exec(
            'INSERT OR REPLACE INTO budget_lease (day, g, r, v, phase, closed) VALUES (?, ?, ?, ?, ?, ?)',
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

  private putCaps({ total, monthly, daily }: Caps): void {
    this.sql.exec('UPDATE budget_node SET cap_total = ?, cap_monthly = ?, cap_daily = ?', total, monthly, daily);
  }

  /** An account's key is its day, a blank, and the child, whatever the child is called. */
  private drop(table: 'budget_account' | 'budget_closed', key: string): void {
    const at = key.indexOf(' ');
    this.sql.exec(`DELETE FROM ${table} WHERE day = ? AND child = ?`, key.slice(0, at), key.slice(at + 1));
  }
}

function amountOf(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value);
}

function readWarnings(sql: SqlStorage): readonly (BudgetWarning & { readonly told: boolean })[] {
  return sql
    .exec('SELECT window, window_key, cap, used, at, told FROM budget_warning ORDER BY at')
    .toArray()
    .map((row) => ({
      window: String(row['window']) as CapWindow,
      windowKey: String(row['window_key']),
      capMicroUsd: Number(row['cap']),
      usedMicroUsd: Number(row['used']),
      at: String(row['at']),
      told: Number(row['told']) === 1,
    }));
}
