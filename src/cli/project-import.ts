import { randomUUID } from 'node:crypto';
import { realpath, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { PROJECT_LIMITS } from '../api/project-files.ts';
import type { Client } from '../client/client.ts';
import { ResourceNotFoundError } from '../client/errors.ts';
import { UsageError } from './cli-io.ts';
import type { CommandContext } from './command-context.ts';
import { readWalked, type SkippedFile, type WalkedFile, walkTree } from './walk-tree.ts';

/** What an import did. */
export interface ImportResult {
  readonly name: string;
  readonly head: string;
  readonly previous: string;
  readonly files: number;
  readonly blobs_sent: number;
  readonly skipped: readonly SkippedFile[];
}

/** Room for the envelope around a batch. */
const ENVELOPE_BYTES = 64 * 1024;
const MAX_BLOBS_PER_CALL = 1000;

/**
 * Makes a directory the head of a project: asks which blobs are missing, sends those in batches, then one commit against the head
 * that was seen at the start. A project that does not exist is made. Files that are too large are left out and named.
 */
export async function importProject({ client, io, params, note }: CommandContext): Promise<ImportResult> {
  const name = String(params['name']);
  const root = await directoryAt(resolve(io.cwd, String(params['dir'])));
  const tree = await walkTree(root);
  if (tree.escaping.length > 0) {
    const named = tree.escaping.map(({ path, reason }) => `  ${path}: ${reason}`).join('\n');
    throw new UsageError(`Links that lead out of the directory cannot be imported:\n${named}\nRemove them, or exclude them in .gitignore.`);
  }
  for (const { path, reason } of tree.skipped)
    note({ level: 'warning', text: `${path} is left out: it ${reason.replace(/^(?:it|is) /, 'is ')}` });
  if (tree.files.length > PROJECT_LIMITS.maxFiles) {
    throw new UsageError(`The directory has ${tree.files.length} files; a project holds at most ${PROJECT_LIMITS.maxFiles}`);
  }

  const head = await headOf(client, name);
  const sent = await sendMissing(client, name, { root, files: tree.files });
  const committed = await client.call('_cleveragents/project/commit', {
    name,
    commit_id: randomUUID(),
    expected_head: head,
    mode: 'replace',
    changes: tree.files.map(({ path, mode, digest, sizeBytes }) => ({ path, entry: { mode, digest, size_bytes: sizeBytes } })),
    message: typeof params['message'] === 'string' ? params['message'] : `Import of ${tree.files.length} files`,
  });
  return { name, head: committed.head, previous: committed.previous, files: committed.files, blobs_sent: sent, skipped: tree.skipped };
}

async function directoryAt(path: string): Promise<string> {
  try {
    if ((await stat(path)).isDirectory()) return await realpath(path);
  } catch (cause) {
    throw new UsageError(`${path} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
  throw new UsageError(`${path} is not a directory`);
}

async function headOf(client: Client, name: string): Promise<string> {
  try {
    return (await client.call('_cleveragents/project/show', { name })).head;
  } catch (error) {
    if (!(error instanceof ResourceNotFoundError)) throw error;
    return (await client.call('_cleveragents/project/create', { name })).head;
  }
}

async function sendMissing(
  client: Client,
  name: string,
  { root, files }: { readonly root: string; readonly files: readonly WalkedFile[] },
): Promise<number> {
  const byDigest = new Map(files.map((file) => [file.digest, file]));
  if (byDigest.size === 0) return 0;
  const { missing } = await client.call('_cleveragents/project/blob/missing', { name, digests: [...byDigest.keys()] });
  const wanted = missing.flatMap((digest) => byDigest.get(digest) ?? []);
  for (const batch of batchesOf(wanted)) {
    const blobs: { digest: string; base64: string }[] = [];
    for (const file of batch) blobs.push({ digest: file.digest, base64: Buffer.from(await readWalked(root, file)).toString('base64') });
    await client.call('_cleveragents/project/blob/put', { name, blobs });
  }
  return wanted.length;
}

/** Groups of files whose call fits in a body. */
export function batchesOf(files: readonly WalkedFile[]): readonly (readonly WalkedFile[])[] {
  const batches: WalkedFile[][] = [];
  let batch: WalkedFile[] = [];
  let bytes = 0;
  for (const file of files) {
    const cost = Math.ceil(file.sizeBytes / 3) * 4 + 120;
    if (batch.length > 0 && (bytes + cost > PROJECT_LIMITS.maxBodyBytes - ENVELOPE_BYTES || batch.length >= MAX_BLOBS_PER_CALL)) {
      batches.push(batch);
      batch = [];
      bytes = 0;
    }
    batch.push(file);
    bytes += cost;
  }
  if (batch.length > 0) batches.push(batch);
  return batches;
}
