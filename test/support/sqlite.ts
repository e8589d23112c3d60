/** Storage of an object outside workerd, over Node's SQLite. */
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';

/** The part of the platform's interface that the tables use. Bytes are `ArrayBuffer` there and `Uint8Array` here. */
export function makeSql(): SqlStorage {
  const database = new DatabaseSync(':memory:');
  const exec = (query: string, ...bindings: readonly unknown[]) => {
    if (bindings.length === 0 && query.includes(';')) {
      database.exec(query);
      return cursorOf([]);
    }
    // Node binds empty bytes as NULL.
    const values = bindings.map((value) => (isEmpty(value) ? 'x' : value instanceof ArrayBuffer ? new Uint8Array(value) : value));
    let at = 0;
    const statement = query.replaceAll('?', () => (isEmpty(bindings[at++]) ? 'zeroblob(0 * length(?))' : '?'));
    return cursorOf(database.prepare(statement).all(...(values as SQLInputValue[])));
  };
  return { exec } as unknown as SqlStorage;
}

function cursorOf(found: readonly object[]) {
  const rows = found.map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, asPlatformValue(value)])));
  return {
    toArray: () => rows,
    one: () => {
      const [row] = rows;
      if (row === undefined || rows.length > 1) throw new Error('not exactly one row');
      return row;
    },
    [Symbol.iterator]: () => rows[Symbol.iterator](),
  };
}

const isEmpty = (value: unknown): boolean => value instanceof ArrayBuffer && value.byteLength === 0;

const asPlatformValue = (value: unknown): unknown => (value instanceof Uint8Array ? new Uint8Array(value).buffer : value);
