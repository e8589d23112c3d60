import { createHash } from 'node:crypto';
import { lstat, readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { PROJECT_LIMITS, projectLinkIssue, projectPathIssue } from '../api/project-files.ts';
import { IgnoreRules } from './ignore-rules.ts';

/** One file of a directory as it goes into a project. */
export interface WalkedFile {
  /** Relative, `/` between names. */
  readonly path: string;
  readonly mode: '100644' | '100755' | '120000';
  readonly digest: string;
  readonly sizeBytes: number;
}

export interface SkippedFile {
  readonly path: string;
  readonly reason: string;
}

export interface WalkedTree {
  readonly files: readonly WalkedFile[];
  /** Left out, each with its reason; what `.gitignore` excludes is not named. */
  readonly skipped: readonly SkippedFile[];
  /** Links that lead out of the directory; a tree with one is not imported. */
  readonly escaping: readonly SkippedFile[];
}

/** Never part of a project: git's own data, and the local state with its keys. */
const ALWAYS_EXCLUDED: ReadonlySet<string> = new Set(['.git', '.cleveragents']);

/**
 * Reads a directory: respects `.gitignore` files at every level, keeps the executable bit, keeps symbolic links as links and never
 * follows one. Contents are read to be digested and not kept; `readWalked` reads them again.
 */
export async function walkTree(root: string): Promise<WalkedTree> {
  const files: WalkedFile[] = [];
  const skipped: SkippedFile[] = [];
  const escaping: SkippedFile[] = [];

  const visit = async (directory: string, inherited: IgnoreRules): Promise<void> => {
    const names = await readdir(join(root, directory), { encoding: 'buffer' });
    const rules = inherited.with(directory, await readIgnoreFile(root, directory));
    for (const raw of names.sort(Buffer.compare)) {
      const name = raw.toString('utf8');
      if (ALWAYS_EXCLUDED.has(name)) continue;
      const path = directory === '' ? name : `${directory}/${name}`;
      if (!Buffer.from(name).equals(raw)) {
        skipped.push({ path, reason: 'its name is not UTF-8' });
        continue;
      }
      const stats = await lstat(join(root, path));
      if (rules.excludes(path, stats.isDirectory())) continue;
      if (stats.isDirectory()) {
        await visit(path, rules);
        continue;
      }
      const issue = projectPathIssue(path);
      if (issue !== null) skipped.push({ path, reason: issue });
      else if (stats.isSymbolicLink()) await visitLink(path);
      else if (!stats.isFile()) skipped.push({ path, reason: 'is neither a file nor a link' });
      else if (stats.size > PROJECT_LIMITS.maxFileBytes) skipped.push({ path, reason: `is larger than 1 MiB (${stats.size} bytes)` });
      else {
        const bytes = await readFile(join(root, path));
        files.push({ path, mode: (stats.mode & 0o100) === 0 ? '100644' : '100755', digest: sha256(bytes), sizeBytes: bytes.length });
      }
    }
  };

  const visitLink = async (path: string): Promise<void> => {
    const target = await readlink(join(root, path));
    const issue = projectLinkIssue(path, target);
    if (issue !== null) {
      escaping.push({ path, reason: `the link to ${JSON.stringify(target)} ${issue}` });
      return;
    }
    const bytes = Buffer.from(target);
    files.push({ path, mode: '120000', digest: sha256(bytes), sizeBytes: bytes.length });
  };

  await visit('', IgnoreRules.none);
  return { files, skipped, escaping };
}

/** The bytes of a walked file; refuses (by a throw that names it) when it has changed since. */
export async function readWalked(root: string, file: WalkedFile): Promise<Uint8Array> {
  const at = join(root, file.path);
  const bytes = file.mode === '120000' ? Buffer.from(await readlink(at)) : await readFile(at);
  if (sha256(bytes) !== file.digest) throw new Error(`${file.path} changed while it was imported; import again`);
  return bytes;
}

async function readIgnoreFile(root: string, directory: string): Promise<string> {
  const path = join(root, directory, '.gitignore');
  try {
    // As git does: an ignore file that is a link is not read.
    return (await lstat(path)).isFile() ? await readFile(path, 'utf8') : '';
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '';
    throw error;
  }
}

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
