/**
 * Brings a local D1 database to the current schema: every `*.sql` of the migrations folder, in the order of their names, each once.
 * Applied names are kept in the table that `wrangler d1 migrations` uses, so both tools agree on what has been done.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Applies what is missing and returns the names of the migrations that were applied. Each is one transaction. */
export async function applyLocalMigrations(database: D1Database, migrationsDir: string): Promise<readonly string[]> {
  await database
    .prepare(
      'CREATE TABLE IF NOT EXISTS d1_migrations(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)',
    )
    .run();
  const { results } = await database.prepare('SELECT name FROM d1_migrations').all<{ name: string }>();
  const done = new Set(results.map((row) => row.name));
  const pending = (await readdir(migrationsDir))
    .filter((name) => name.endsWith('.sql') && !done.has(name))
    .sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10) || a.localeCompare(b));
  for (const name of pending) {
    const sql = await readFile(join(migrationsDir, name), 'utf8');
    // The local database takes a whole file as one statement list; the batch makes it and its record one transaction.
    await database.batch([database.prepare(sql), database.prepare('INSERT INTO d1_migrations (name) VALUES (?)').bind(name)]);
  }
  return pending;
}
