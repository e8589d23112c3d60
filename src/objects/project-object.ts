import { DurableObject } from 'cloudflare:workers';
import type { CommitOutcome, CommitRequest, CommittedOutcome, ProjectHead, ProjectPort } from '../app/ports.ts';
import { notFound, type Refusal } from '../core/refusal.ts';
import { err, type Result } from '../core/result.ts';
import { EMPTY_TREE, treeDigest } from '../core/workspace/tree.ts';
import { BlobTable, checkBatch } from './project/blob-table.ts';
import { commitTree, findCommit, type ProjectTables, readHead } from './project/commit-tree.ts';
import { createSchema, isCreated, migrateSchema } from './project/schema.ts';
import { type ProjectSearchOptions, searchTree } from './project/search-tree.ts';
import { TreeTable } from './project/tree-table.ts';
import { sha256 } from './sha256.ts';

/**
 * One project: its files by digest, its trees, its head and its history.
 *
 * Promise: the head moves only by compare-and-set, each move is one transaction, and a commit id is committed at most once. Blobs and
 * trees that were stored stay, so a plan that holds an older head can read it. An object that was never created stores nothing,
 * whatever it is asked.
 *
 * Every method reads and writes without an `await` in between; they are async because callers reach them by RPC.
 */
export class ProjectObject extends DurableObject implements ProjectPort {
  private tables: ProjectTables | null = null;

  async create(): Promise<ProjectHead> {
    const { sql } = this.ctx.storage;
    if (!isCreated(sql)) {
      this.ctx.storage.transactionSync(() => {
        createSchema(sql, { tree: treeDigest(sha256, EMPTY_TREE), at: this.now() });
        new TreeTable(sql).put(EMPTY_TREE);
      });
    }
    return readHead(sql);
  }

  async head(): Promise<ProjectHead | null> {
    const tables = this.open();
    return tables === null ? null : readHead(tables.sql);
  }

  async missingBlobs(digests: readonly string[]): Promise<readonly string[]> {
    return this.open()?.blobs.missing(digests) ?? [...new Set(digests)];
  }

  async putBlobs(blobs: readonly { readonly digest: string; readonly bytes: Uint8Array }[]): Promise<Result<null, Refusal>> {
    const tables = this.open();
    if (tables === null) return err(this.unknown());
    const checked = checkBatch(blobs);
    if (checked.ok) this.ctx.storage.transactionSync(() => tables.blobs.put(blobs));
    return checked;
  }

  /** At most 8 MiB at once; `readBlobs` goes through any number. */
  async getBlobs(digests: readonly string[]): Promise<ReadonlyMap<string, Uint8Array>> {
    const { blobs, taken } = await this.readBlobs(digests);
    if (taken < digests.length) throw new RangeError('the blobs are more than one message holds; use readBlobs');
    return blobs;
  }

  /** The blobs of the first `taken` digests, as many as fit one message: ask again for the rest. */
  async readBlobs(digests: readonly string[]): Promise<{ readonly blobs: ReadonlyMap<string, Uint8Array>; readonly taken: number }> {
    return this.open()?.blobs.read(digests) ?? { blobs: new Map(), taken: digests.length };
  }

  async manifest(tree: string): Promise<string | null> {
    return this.open()?.trees.manifest(tree) ?? null;
  }

  async commit(request: CommitRequest): Promise<Result<CommitOutcome, Refusal>> {
    const tables = this.open();
    if (tables === null) return err(this.unknown());
    return this.ctx.storage.transactionSync(() => commitTree(tables, request, this.now()));
  }

  async committed(commitId: string): Promise<CommittedOutcome | null> {
    const tables = this.open();
    return tables === null ? null : (findCommit(tables.sql, commitId)?.outcome ?? null);
  }

  async search(tree: string, query: string, options: ProjectSearchOptions): ReturnType<ProjectPort['search']> {
    const tables = this.open();
    const searched = tables?.trees.tree(tree) ?? null;
    if (tables === null || searched === null) return { hits: [], truncated: false };
    return searchTree(searched, tables.blobs, query, options);
  }

  /** Newest first. */
  async history(limit: number): ReturnType<ProjectPort['history']> {
    const tables = this.open();
    if (tables === null) return [];
    const rows = tables.sql.exec('SELECT head, message, by, at FROM history ORDER BY n DESC LIMIT ?', limit).toArray();
    return rows.map((row) => ({
      head: String(row['head']),
      message: String(row['message']),
      by: String(row['by']),
      at: String(row['at']),
    }));
  }

  /** Null for a project that was never created. */
  private open(): ProjectTables | null {
    if (this.tables !== null) return this.tables;
    const { storage } = this.ctx;
    if (!isCreated(storage.sql)) return null;
    storage.transactionSync(() => migrateSchema(storage.sql));
    this.tables = { sql: storage.sql, blobs: new BlobTable(storage.sql), trees: new TreeTable(storage.sql) };
    return this.tables;
  }

  private now(): string {
    return new Date().toISOString();
  }

  /** Callers know the project by name; what the object knows is its own name, which ends with it. */
  private unknown(): Refusal {
    return notFound('project', projectNameOf(this.ctx.id.name ?? ''));
  }
}

function projectNameOf(objectName: string): string {
  try {
    const parts: unknown = JSON.parse(objectName);
    const last: unknown = Array.isArray(parts) ? parts.at(-1) : null;
    return typeof last === 'string' ? last : objectName;
  } catch {
    return objectName;
  }
}
