import { chmod, lstat, mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { ResultOf } from '../api/operations.ts';
import { projectLinkIssue, projectPathIssue } from '../api/project-files.ts';
import { UsageError } from './cli-io.ts';
import type { CommandContext } from './command-context.ts';

/** What an export did. */
export interface ExportResult {
  readonly name: string;
  readonly head: string;
  readonly directory: string;
  readonly files: number;
}

type ExportedFile = ResultOf<'_cleveragents/project/export'>['files'][number];

/**
 * Writes a project's head into a new or empty directory. Names are checked again here: what a server answers must not reach outside.
 * Links are made last, so that nothing is ever written through one.
 */
export async function exportProject({ client, io, params }: CommandContext): Promise<ExportResult> {
  const name = String(params['name']);
  const directory = resolve(io.cwd, String(params['dir']));
  await requireEmpty(directory);
  const links: ExportedFile[] = [];
  let files = 0;
  let head = '';
  for (let pageToken = ''; ; ) {
    const page = await client.call('_cleveragents/project/export', {
      name,
      page_size: 100,
      ...(pageToken === '' ? {} : { page_token: pageToken }),
    });
    if (head !== '' && head !== page.head) throw new Error(`The project changed while it was exported (head ${head} became ${page.head})`);
    head = page.head;
    await mkdir(directory, { recursive: true });
    for (const file of page.files) {
      const issue = projectPathIssue(file.path);
      if (issue !== null) throw new Error(`The server answered a path that is not safe: ${JSON.stringify(file.path)} ${issue}`);
      files += 1;
      if (file.mode === '120000') links.push(file);
      else await writeOne(directory, file);
    }
    if (page.next_page_token === '') break;
    pageToken = page.next_page_token;
  }
  for (const link of links) await linkOne(directory, link);
  return { name, head, directory, files };
}

async function requireEmpty(directory: string): Promise<void> {
  try {
    // A link would lead the files elsewhere.
    if (!(await lstat(directory)).isDirectory()) throw new UsageError(`${directory} exists and is not a directory`);
    if ((await readdir(directory)).length > 0) throw new UsageError(`${directory} is not empty; export into a new directory`);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return;
    throw error;
  }
}

async function writeOne(directory: string, file: ExportedFile): Promise<void> {
  const at = join(directory, file.path);
  await mkdir(dirname(at), { recursive: true });
  // `wx`: a second file of the same name (on a file system that ignores case) must not replace the first in silence.
  await writeFile(at, Buffer.from(file.base64, 'base64'), { flag: 'wx' });
  if (file.mode === '100755') await chmod(at, 0o755);
}

async function linkOne(directory: string, file: ExportedFile): Promise<void> {
  const target = Buffer.from(file.base64, 'base64').toString('utf8');
  const issue = projectLinkIssue(file.path, target);
  if (issue !== null) throw new Error(`The server answered a link that is not safe: ${JSON.stringify(file.path)} ${issue}`);
  const at = join(directory, file.path);
  await mkdir(dirname(at), { recursive: true });
  await symlink(target, at);
}
