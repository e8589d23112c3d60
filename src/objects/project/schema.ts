/**
 * The tables of a project's object: an append-only list, one entry per version. `project` has one row; its presence is what makes an
 * object a project.
 */
const MIGRATIONS: readonly string[] = [
  `CREATE TABLE project (
     one INTEGER PRIMARY KEY CHECK (one = 1),
     schema_version INTEGER NOT NULL,
     head TEXT NOT NULL,
     files INTEGER NOT NULL,
     total_bytes INTEGER NOT NULL,
     commits INTEGER NOT NULL,
     updated_at TEXT NOT NULL
   );
   CREATE TABLE blobs (digest TEXT PRIMARY KEY, size_bytes INTEGER NOT NULL, bytes BLOB NOT NULL) WITHOUT ROWID;
   CREATE TABLE manifests (tree TEXT NOT NULL, part INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (tree, part)) WITHOUT ROWID;
   CREATE TABLE history (
     n INTEGER PRIMARY KEY,
     head TEXT NOT NULL,
     previous TEXT NOT NULL,
     files INTEGER NOT NULL,
     message TEXT NOT NULL,
     by TEXT NOT NULL,
     at TEXT NOT NULL
   );
   CREATE TABLE commits (id TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;`,
  // What was asked under an id: the same id with something else is a mistake and must not look done.
  'ALTER TABLE commits ADD COLUMN request TEXT;',
];

/** Whether the project was ever created. Reads only: asking an object that holds nothing leaves it holding nothing. */
export function isCreated(sql: SqlStorage): boolean {
  return sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'project'").toArray().length > 0;
}

/** Creates the tables, and the row that says the project has this head and no commits. */
export function createSchema(sql: SqlStorage, head: { readonly tree: string; readonly at: string }): void {
  for (const migration of MIGRATIONS) sql.exec(migration);
  sql.exec('INSERT INTO project VALUES (1, ?, ?, 0, 0, 0, ?)', MIGRATIONS.length, head.tree, head.at);
}

/** Brings the tables of an older version to this one. Inside a transaction of the caller. */
export function migrateSchema(sql: SqlStorage): void {
  const version = Number(sql.exec('SELECT schema_version FROM project').one()['schema_version']);
  if (version >= MIGRATIONS.length) return;
  for (const migration of MIGRATIONS.slice(version)) sql.exec(migration);
  sql.exec('UPDATE project SET schema_version = ?', MIGRATIONS.length);
}
