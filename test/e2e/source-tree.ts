/** Real directories: the project's own files to import, and what an export wrote. */
import { execFileSync } from 'node:child_process';
import { cp, lstat, mkdir, readdir, readFile, readlink } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { REPOSITORY } from '../../src/cli/build-worker.ts';

/** Copies the files of this repository that git knows into `target`. Answers their paths. */
export async function copyRepository(target: string): Promise<readonly string[]> {
  const listed = execFileSync('git', ['ls-files', '-z'], { cwd: REPOSITORY, encoding: 'utf8' }).split('\0');
  const paths: string[] = [];
  for (const path of listed.filter((each) => each !== '')) {
    const exists = await lstat(join(REPOSITORY, path)).then(
      () => true,
      () => false,
    );
    if (!exists) continue;
    await mkdir(dirname(join(target, path)), { recursive: true });
    await cp(join(REPOSITORY, path), join(target, path), { verbatimSymlinks: true });
    paths.push(path);
  }
  return paths.sort();
}

/** Every file below a folder by its path, with its content and whether it can be run. */
export async function readTree(root: string): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>();
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const name = relative(root, path);
    if (entry.isSymbolicLink()) files.set(name, `→ ${await readlink(path)}`);
    else if (entry.isFile()) {
      const { mode } = await lstat(path);
      files.set(name, `${(mode & 0o100) !== 0 ? 'x' : '-'} ${(await readFile(path)).toString('base64')}`);
    }
  }
  return files;
}

/** Paths that differ between two trees. */
export function differences(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): readonly string[] {
  return [...new Set([...before.keys(), ...after.keys()])].filter((path) => before.get(path) !== after.get(path)).sort();
}
