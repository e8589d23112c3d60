import type { CommitOutcome, CommitRequest, CommittedOutcome, ProjectHead, TreeChange } from '../../app/ports.ts';
import { digestOf } from '../../core/digest.ts';
import { type FieldIssue, invalidField, type Refusal } from '../../core/refusal.ts';
import { err, ok, type Result } from '../../core/result.ts';
import { applyChanges, type Change, type Changes } from '../../core/workspace/changes.ts';
import { symlinkTargetIssue } from '../../core/workspace/path.ts';
import { decodeText } from '../../core/workspace/text.ts';
import { EMPTY_TREE } from '../../core/workspace/tree.ts';
import { sha256 } from '../sha256.ts';
import type { BlobTable } from './blob-table.ts';
import type { TreeTable } from './tree-table.ts';

/** Longest message of a commit, in UTF-16 units. */
export const MAX_MESSAGE_LENGTH = 65_536;

const MAX_NAMED = 20;

export interface ProjectTables {
  readonly sql: SqlStorage;
  readonly blobs: BlobTable;
  readonly trees: TreeTable;
}

/**
 * Compare-and-set of the project's head. Synchronous and inside one transaction of the caller, so nothing comes between the
 * comparison and the write.
 *
 * A commit id that was committed answers that outcome again to the same request, and refuses another one (`already_exists`). `moved` is not remembered: nothing was
 * done, and the same id may be tried on another head. Refused (`invalid`): changes that make no tree, blobs that are not here (named
 * in `details.missing`), sizes that are not those of the blobs, links that lead out of the tree.
 */
export function commitTree(tables: ProjectTables, request: CommitRequest, at: string): Result<CommitOutcome, Refusal> {
  const digest = requestDigest(request);
  const done = findCommit(tables.sql, request.commitId);
  if (done !== null) return done.request === null || done.request === digest ? ok(done.outcome) : err(usedBefore(request.commitId));
  const { head: previous, commits } = readHead(tables.sql);
  if (request.expectedHead !== null && request.expectedHead !== previous) return ok({ status: 'moved', head: previous });

  const changes = readChanges(request, tables.blobs);
  if (!changes.ok) return changes;
  const base = request.mode === 'replace' ? EMPTY_TREE : tables.trees.tree(previous);
  if (base === null) throw new Error(`the tree of the head ${previous} is lost`);
  const tree = applyChanges(base, changes.value);
  if (!tree.ok) return tree;

  const head = tables.trees.put(tree.value);
  const files = tree.value.entries.size;
  const n = commits + 1;
  const { sql } = tables;
  sql.exec(
    'UPDATE project SET head = ?, files = ?, total_bytes = ?, commits = ?, updated_at = ?',
    head,
    files,
    tree.value.totalBytes,
    n,
    at,
  );
  sql.exec('INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?)', n, head, previous, files, request.message, request.by, at);
  sql.exec('INSERT INTO commits (id, n, request) VALUES (?, ?, ?)', request.commitId, n, digest);
  return ok({ status: 'committed', head, previous, files });
}

export function readHead(sql: SqlStorage): ProjectHead {
  const row = sql.exec('SELECT head, files, total_bytes, commits, updated_at FROM project').one();
  return {
    head: String(row['head']),
    files: Number(row['files']),
    totalBytes: Number(row['total_bytes']),
    commits: Number(row['commits']),
    updatedAt: String(row['updated_at']),
  };
}

/** What was committed under an id, and what was asked then; null: nothing was. */
export function findCommit(
  sql: SqlStorage,
  commitId: string,
): { readonly outcome: CommittedOutcome; readonly request: string | null } | null {
  const [row] = sql.exec('SELECT head, previous, files, request FROM commits JOIN history USING (n) WHERE id = ?', commitId).toArray();
  if (row === undefined) return null;
  return {
    outcome: { status: 'committed', head: String(row['head']), previous: String(row['previous']), files: Number(row['files']) },
    request: row['request'] === null ? null : String(row['request']),
  };
}

/** What makes two commits the same: everything but who asks and when. */
function requestDigest({ expectedHead, mode, changes, message }: CommitRequest): string {
  return digestOf(sha256, { expectedHead, mode, changes, message });
}

function usedBefore(commitId: string): Refusal {
  const message = 'this commit_id was used for another commit; use a new one for a new commit';
  return { kind: 'already_exists', message, entity: 'commit', id: commitId, details: { commit_id: commitId } };
}

/** The request's changes, with everything checked that concerns blobs; `applyChanges` checks what concerns paths. */
function readChanges(request: CommitRequest, blobs: BlobTable): Result<Changes, Refusal> {
  if (request.commitId === '') return err(invalidField('commit_id', 'must not be empty'));
  if (request.message.length > MAX_MESSAGE_LENGTH)
    return err(invalidField('message', `must be at most ${MAX_MESSAGE_LENGTH} characters long`));
  const changes = new Map<string, Change>();
  for (const { path, entry } of request.changes) {
    if (changes.has(path)) return err(invalidField(fieldOf(path), 'is changed twice'));
    changes.set(path, entry === null ? { kind: 'delete' } : { kind: 'write', ...entry });
  }
  const written = request.changes.flatMap(({ path, entry }) => (entry === null ? [] : [{ path, entry }]));
  const sizes = blobs.sizes(written.map(({ entry }) => entry.blob));
  const missing = [...new Set(written.filter(({ entry }) => !sizes.has(entry.blob)).map(({ entry }) => entry.blob))];
  if (missing.length > 0) {
    const named = missing.slice(0, MAX_NAMED).join(', ');
    return err(
      invalidField('changes', `blobs are missing; put them first: ${named}${missing.length > MAX_NAMED ? ', …' : ''}`, { missing }),
    );
  }
  const issues = written.flatMap(({ path, entry }): FieldIssue[] => {
    const issue = entryIssue(path, entry, sizes, blobs);
    return issue === null ? [] : [{ field: fieldOf(path), message: issue }];
  });
  const [first] = issues;
  if (first !== undefined) return err({ kind: 'invalid', message: `${first.field}: ${first.message}`, issues: issues.slice(0, MAX_NAMED) });
  return ok(changes);
}

function entryIssue(
  path: string,
  entry: NonNullable<TreeChange['entry']>,
  sizes: ReadonlyMap<string, number>,
  blobs: BlobTable,
): string | null {
  const size = sizes.get(entry.blob);
  if (size !== entry.sizeBytes) return `its blob has ${size} bytes, not ${entry.sizeBytes}`;
  if (entry.mode !== '120000') return null;
  const target = decodeText(blobs.get(entry.blob) ?? new Uint8Array());
  const issue = target === null ? 'must be text' : symlinkTargetIssue(path, target);
  return issue === null ? null : `the target of a symbolic link ${issue}`;
}

function fieldOf(path: string): string {
  return `changes[${JSON.stringify(path.length > 120 ? `${path.slice(0, 120)}…` : path)}]`;
}
