/**
 * The objects of projects outside workerd: the same tables and the same commit as ProjectObject, over Node's SQLite. Only what the
 * platform gives (storage, one object per name) is replaced.
 */
import type { ProjectPort, Projects } from '../../src/app/ports.ts';
import { notFound } from '../../src/core/refusal.ts';
import { err } from '../../src/core/result.ts';
import { EMPTY_TREE, treeDigest } from '../../src/core/workspace/tree.ts';
import { BlobTable, checkBatch } from '../../src/objects/project/blob-table.ts';
import { commitTree, findCommit, type ProjectTables, readHead } from '../../src/objects/project/commit-tree.ts';
import { createSchema, isCreated } from '../../src/objects/project/schema.ts';
import { searchTree } from '../../src/objects/project/search-tree.ts';
import { TreeTable } from '../../src/objects/project/tree-table.ts';
import { sha256 } from '../../src/objects/sha256.ts';
import { makeSql } from '../support/sqlite.ts';

export interface TestProjects extends Projects {
  /** Objects that hold something, as `[org, name]`. */
  stored(): readonly (readonly [string, string])[];
}

export function makeSqliteProjects(): TestProjects {
  const objects = new Map<string, SqlStorage>();
  const sqlOf = (org: string, name: string): SqlStorage => {
    const key = JSON.stringify([org, name]);
    const known = objects.get(key) ?? makeSql();
    objects.set(key, known);
    return known;
  };
  return {
    project: (org, name) => makePort(sqlOf(org, name), name),
    stored: () => [...objects].filter(([, sql]) => isCreated(sql)).map(([key]) => JSON.parse(key) as [string, string]),
  };
}

function makePort(sql: SqlStorage, name: string): ProjectPort {
  const open = (): ProjectTables | null => (isCreated(sql) ? { sql, blobs: new BlobTable(sql), trees: new TreeTable(sql) } : null);
  const now = (): string => new Date().toISOString();
  return {
    async create() {
      if (!isCreated(sql)) {
        createSchema(sql, { tree: treeDigest(sha256, EMPTY_TREE), at: now() });
        new TreeTable(sql).put(EMPTY_TREE);
      }
      return readHead(sql);
    },
    async head() {
      return open() === null ? null : readHead(sql);
    },
    async missingBlobs(digests) {
      return open()?.blobs.missing(digests) ?? [...new Set(digests)];
    },
    async putBlobs(blobs) {
      const tables = open();
      if (tables === null) return err(notFound('project', name));
      const checked = checkBatch(blobs);
      if (checked.ok) tables.blobs.put(blobs);
      return checked;
    },
    async getBlobs(digests) {
      return open()?.blobs.read(digests).blobs ?? new Map();
    },
    async manifest(tree) {
      return open()?.trees.manifest(tree) ?? null;
    },
    async commit(request) {
      const tables = open();
      return tables === null ? err(notFound('project', name)) : commitTree(tables, request, now());
    },
    async committed(commitId) {
      return open() === null ? null : (findCommit(sql, commitId)?.outcome ?? null);
    },
    async search(tree, query, options) {
      const tables = open();
      const searched = tables?.trees.tree(tree) ?? null;
      return tables === null || searched === null ? { hits: [], truncated: false } : searchTree(searched, tables.blobs, query, options);
    },
    async history(limit) {
      const rows = open()?.sql.exec('SELECT head, message, by, at FROM history ORDER BY n DESC LIMIT ?', limit).toArray() ?? [];
      return rows as unknown as Awaited<ReturnType<ProjectPort['history']>>;
    },
  };
}
