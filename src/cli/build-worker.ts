/**
 * Builds a Worker entry into one ES module, and only when something it was built from has changed.
 *
 * The output folder holds `worker.js` (the file that is deployed, run locally and tested end to end), its source map, and
 * `build.json`: the hash of every input.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Which entry is built and where to. Paths are relative to the repository. */
export interface WorkerBuild {
  readonly entry: string;
  readonly outDir: string;
}

/** What `build.json` holds: SHA-256 of every input by its path. */
interface BuildRecord {
  readonly inputs: Readonly<Record<string, string>>;
}

/** The Worker that is deployed. */
export const PRODUCT_BUILD: WorkerBuild = { entry: 'src/worker.ts', outDir: 'dist/worker' };

/** The same composition plus the test tool package; used by end-to-end tests only. */
export const TEST_BUILD: WorkerBuild = { entry: 'test/worker/test-worker.ts', outDir: 'dist/test-worker' };

/** The repository's root, which every path here is relative to. */
export const REPOSITORY = resolve(fileURLToPath(import.meta.url), '../../..');

/** Inputs that esbuild does not see: the versions of packages, and this recipe. */
const RECIPE_INPUTS = ['package-lock.json', 'src/cli/build-worker.ts'];

/** A build could not be made; the reasons are on standard error. */
export class BuildFailedError extends Error {
  override readonly name = 'BuildFailedError';
}

/**
 * Builds when needed, in a process of its own: the bundler stays out of the server's memory, and a second core works
 * while this one loads the runtime's library. Returns the path of `worker.js`.
 */
export async function ensureWorkerBuilt(build: WorkerBuild): Promise<string> {
  if (!(await isBuildCurrent(build))) {
    const script = join(REPOSITORY, 'scripts/build.ts');
    const child = spawn(process.execPath, [script, build.entry, build.outDir], { stdio: ['ignore', 'ignore', 'inherit'] });
    const [code] = await once(child, 'exit');
    if (code !== 0) throw new BuildFailedError(`${build.entry} could not be built.`);
  }
  return join(REPOSITORY, build.outDir, 'worker.js');
}

/** Builds when needed. `rebuilt` tells whether anything was done. */
export async function buildWorker(build: WorkerBuild): Promise<{ readonly rebuilt: boolean }> {
  const outDir = join(REPOSITORY, build.outDir);
  const bundlePath = join(outDir, 'worker.js');
  if (await isBuildCurrent(build)) return { rebuilt: false };

  const { build: esbuild } = await import('esbuild');
  const result = await esbuild({
    absWorkingDir: REPOSITORY,
    entryPoints: [build.entry],
    outfile: bundlePath,
    write: false,
    bundle: true,
    metafile: true,
    format: 'esm',
    target: 'es2024',
    platform: 'neutral',
    conditions: ['workerd', 'worker', 'browser'],
    mainFields: ['browser', 'module', 'main'],
    external: ['cloudflare:*', 'node:*'],
    loader: { '.sql': 'text' },
    // Identifiers are kept: a stack trace from production stays readable without the map.
    minifySyntax: true,
    minifyWhitespace: true,
    sourcemap: true,
    logLevel: 'warning',
  });

  const sources = Object.keys(result.metafile.inputs).filter((path) => !path.startsWith('node_modules/') && !isBuiltin(path));
  const record: BuildRecord = { inputs: await hashFiles([...RECIPE_INPUTS, ...sources]) };
  await mkdir(outDir, { recursive: true });
  for (const file of result.outputFiles) await replaceFile(join(outDir, relative(outDir, file.path)), file.contents);
  // Last: a build that was interrupted has no record that matches its inputs.
  await replaceFile(join(outDir, 'build.json'), JSON.stringify(record, null, 1));
  return { rebuilt: true };
}

/** True when the output exists and every input still has the hash it was built from. */
export async function isBuildCurrent(build: WorkerBuild): Promise<boolean> {
  const record = await readBuildRecord(join(REPOSITORY, build.outDir));
  if (record === undefined) return false;
  const now = await hashFiles(Object.keys(record.inputs));
  return Object.entries(record.inputs).every(([path, hash]) => now[path] === hash);
}

/** Undefined when nothing was built there. */
async function readBuildRecord(outDir: string): Promise<BuildRecord | undefined> {
  try {
    return JSON.parse(await readFile(join(outDir, 'build.json'), 'utf8')) as BuildRecord;
  } catch (error) {
    if (error instanceof SyntaxError || isNotFound(error)) return undefined;
    throw error;
  }
}

async function hashFiles(paths: readonly string[]): Promise<Record<string, string>> {
  const entries = await Promise.all(
    paths.map(async (path): Promise<[string, string]> => {
      try {
        return [
          path,
          createHash('sha256')
            .update(await readFile(join(REPOSITORY, path)))
            .digest('hex'),
        ];
      } catch (error) {
        if (isNotFound(error)) return [path, 'absent'];
        throw error;
      }
    }),
  );
  return Object.fromEntries(entries);
}

/** Several starts may build at once; a reader must never see half a file. */
async function replaceFile(path: string, contents: string | Uint8Array): Promise<void> {
  const temporary = `${path}.${process.pid}.tmp`;
  await writeFile(temporary, contents);
  await rename(temporary, path);
}

function isNotFound(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
