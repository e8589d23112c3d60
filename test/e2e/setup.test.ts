/** A start from nothing, a second start, the things that go wrong at a start, and every way to end. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { delimiter, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { convertV4MiniflareOptions } from 'miniflare';
import { afterEach, describe, expect, test } from 'vitest';
import { unstable_getMiniflareWorkerOptions } from 'wrangler';
import { buildWorker, ensureWorkerBuilt, isBuildCurrent, PRODUCT_BUILD, REPOSITORY } from '../../src/cli/build-worker.ts';
import { applyLocalMigrations } from '../../src/cli/local-migrations.ts';
import { startLocalServer } from '../../src/cli/local-server.ts';
import { processExists } from '../../src/cli/state-lock.ts';
import { readWorkerConfig } from '../../src/cli/worker-config.ts';
import { runServerToEnd, type StartServerOptions, startServer, type TestServer, temporaryFolder } from '../support/server.ts';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

describe('a start', () => {
  test('in a new folder answers, and writes a connection file that only its owner can read', async () => {
    const server = await start();
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
    expect(server.connection.url).toBe(server.url);
    expect((await stat(join(server.state, 'connection.json'))).mode & 0o777).toBe(0o600);
    expect(server.stdout()).toContain(`${server.url}/.well-known/agent-card.json`);
  });

  test('with the test Worker answers as well', async () => {
    const server = await start({ entry: 'test' });
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
  });

  test('in the folder of an earlier start keeps its keys and data', async () => {
    const state = await folder();
    const first = await start({ state });
    await first.kill('SIGTERM');
    const second = await start({ state });
    expect({ ...second.connection, url: '' }).toEqual({ ...first.connection, url: '' });
    expect(second.stdout()).toContain('kept from an earlier start');
    expect(second.stderr()).not.toContain('built');
  });

  test('with --open says that authentication is off, and prints no key', async () => {
    const server = await start({ open: true });
    expect(server.stdout()).toContain('authentication is off');
    expect(server.stdout()).not.toContain('Your key');
  });

  test('listens on the loopback address only', async () => {
    const server = await start();
    expect(new URL(server.url).hostname).toBe('127.0.0.1');
    // All of 127/8 is this machine: a server on every address would answer here.
    await expect(fetch(`http://127.0.0.2:${new URL(server.url).port}/health`)).rejects.toThrow();
  });
});

describe('a start that cannot be', () => {
  test('on a busy port says so, names the port, and leaves nothing running', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    cleanups.push(async () => other.close());
    const address = other.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const state = await folder();
    const run = await runServerToEnd(state, { port });
    expect(run.code).toBe(1);
    expect(run.stderr).toContain(`Port ${port} on 127.0.0.1 is in use`);
    expect(run.stderr).not.toContain('    at ');
    expect(existsSync(join(state, 'server.lock'))).toBe(false);
  });

  test('in a folder that a running server uses says so, and does not disturb that server', async () => {
    const server = await start();
    const run = await runServerToEnd(server.state, {});
    expect(run.code).toBe(1);
    expect(run.stderr).toContain(`in use by another running server (process ${server.pid})`);
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
  });

  test.each([
    [['--port', '70000'], '--port must be a number from 0 to 65535'],
    [['--port', 'http'], '--port must be a number from 0 to 65535'],
    [['--var', 'PUBLIC_URL'], '--var takes NAME=VALUE'],
    [['--prot', '1'], '--prot'],
  ])('with the flags %j explains what is wrong', async (flags, message) => {
    const run = await runServerToEnd(await folder(), { flags });
    expect(run.code).toBe(2);
    expect(run.stderr).toContain(message);
    expect(run.stderr).toContain('Usage:');
  });
});

describe('the end', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)('by %s is clean: exit code 0, no process and no lock left', async (signal) => {
    const server = await start();
    const children = childrenOf(server.pid);
    expect(children.length).toBeGreaterThan(0);
    expect(await server.kill(signal)).toEqual({ code: 0, signal: null });
    expect(children.filter(processExists)).toEqual([]);
    expect(existsSync(join(server.state, 'server.lock'))).toBe(false);
  });

  test('by SIGKILL takes the runtime along, and the same folder and port start again', async () => {
    const state = await folder();
    const server = await start({ state });
    const children = childrenOf(server.pid);
    await server.kill('SIGKILL');
    await until(() => !children.some(processExists));
    const again = await start({ state, port: Number(new URL(server.url).port) });
    expect(again.url).toBe(server.url);
    expect((await fetch(`${again.url}/health`)).status).toBe(200);
  });

  test('by SIGKILL of the server and its watchdog leaves a runtime that the next start ends', async () => {
    const state = await folder();
    const server = await start({ state });
    const runtime = Number(await readFile(join(state, 'runtime.pid'), 'utf8'));
    for (const child of childrenOf(server.pid)) if (child !== runtime) process.kill(child, 'SIGKILL');
    await server.kill('SIGKILL');
    await sleep(200);
    expect(processExists(runtime)).toBe(true);
    const again = await start({ state });
    expect(processExists(runtime)).toBe(false);
    expect((await fetch(`${again.url}/health`)).status).toBe(200);
  });

  test('of the runtime alone is repaired: a new runtime answers on the same port', async () => {
    const server = await start();
    const pidFile = join(server.state, 'runtime.pid');
    const runtime = Number(await readFile(pidFile, 'utf8'));
    process.kill(runtime, 'SIGKILL');
    await until(async () => Number(await readFile(pidFile, 'utf8')) !== runtime);
    await until(() =>
      fetch(`${server.url}/health`).then(
        (response) => response.status === 200,
        () => false,
      ),
    );
  });
});

describe('a build', () => {
  test('happens only when an input has changed', async () => {
    const sources = await folder();
    const entry = join(sources, 'worker.ts');
    const build = { entry: relative(REPOSITORY, entry), outDir: relative(REPOSITORY, join(sources, 'out')) };
    await writeFile(entry, `import { word } from './word.ts';\nexport default { fetch: () => new Response(word) };\n`);
    await writeFile(join(sources, 'word.ts'), `export const word = 'one';\n`);
    expect(await isBuildCurrent(build)).toBe(false);
    expect(await buildWorker(build)).toEqual({ rebuilt: true });
    expect(await buildWorker(build)).toEqual({ rebuilt: false });
    await writeFile(join(sources, 'word.ts'), `export const word = 'two';\n`);
    expect(await buildWorker(build)).toEqual({ rebuilt: true });
    expect(await readFile(join(sources, 'out/worker.js'), 'utf8')).toContain('two');
  });

  test('is what a deployment uploads, and is smaller than 1 MiB compressed', async () => {
    const output = execFileSync(process.execPath, [join(REPOSITORY, 'scripts/deploy-dry-run.ts')], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    expect(output).toMatch(/Compressed size: [\d.]+ KiB/);
    expect(output).toContain('--dry-run: exiting now.');
  });
});

test('the local runtime gets the bindings, objects and triggers that wrangler would give it', async () => {
  const { modulesRules: _rules, ...options } = unstable_getMiniflareWorkerOptions(join(REPOSITORY, 'wrangler.toml')).workerOptions;
  const name = 'cleveragents-edge';
  const modules = [{ type: 'ESModule' as const, path: 'worker.js', contents: '' }];
  const config = convertV4MiniflareOptions({ workers: [{ ...options, name, modules }] }).workers[0]?.config;
  const { manifest: _manifest, ...expected } = config ?? {};
  // `dev: { remote: false }` is the default, and absent members come as undefined.
  const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value, (key, member) => (key === 'dev' ? undefined : member)));
  expect(plain(await readWorkerConfig())).toEqual(plain(expected));
});

test('migrations apply once each, in order, and a failing one leaves nothing behind', async () => {
  const sources = await folder();
  const server = await startLocalServer({ stateDir: await folder(), port: 0, bundlePath: await ensureWorkerBuilt(PRODUCT_BUILD) });
  cleanups.push(server.stop);
  const database = await server.d1();
  await mkdir(sources, { recursive: true });
  await writeFile(join(sources, '9001_first.sql'), `CREATE TABLE probe (word TEXT);\nINSERT INTO probe VALUES ('a;b');\n`);
  await writeFile(
    join(sources, '9002_second.sql'),
    `INSERT INTO probe VALUES ('second');--> statement-breakpoint\nINSERT INTO nowhere VALUES (1);\n`,
  );
  await expect(applyLocalMigrations(database, sources)).rejects.toThrow('nowhere');
  expect((await database.prepare('SELECT word FROM probe').all()).results).toEqual([{ word: 'a;b' }]);
  await writeFile(join(sources, '9002_second.sql'), `INSERT INTO probe VALUES ('second');\n`);
  expect(await applyLocalMigrations(database, sources)).toEqual(['9002_second.sql']);
  expect(await applyLocalMigrations(database, sources)).toEqual([]);
});

const oldNode = findOldNode();
test.skipIf(oldNode === undefined)('an older Node hands over to the packaged one (skipped where no older Node is installed)', async () => {
  const child = spawn(oldNode ?? '', [join(REPOSITORY, 'bin/start.mjs'), '--help'], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk;
  });
  expect((await once(child, 'close'))[0]).toBe(0);
  expect(output).toContain('Usage: npm start');
});

async function start(options: StartServerOptions = {}): Promise<TestServer> {
  const server = await startServer(options);
  cleanups.push(server.stop);
  return server;
}

async function folder(): Promise<string> {
  const path = await temporaryFolder();
  cleanups.push(() => rm(path, { recursive: true, force: true }));
  return path;
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error('The condition did not come true within 10 s.');
    await sleep(25);
  }
}

/** Process ids of the children of a process; from /proc, and where there is none from pgrep. */
function childrenOf(pid: number): readonly number[] {
  if (!existsSync('/proc/self/stat'))
    return execFileSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' })
      .trim()
      .split('\n')
      .map(Number);
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && parentOf(name) === pid)
    .map(Number);
}

function parentOf(pid: string): number | undefined {
  try {
    return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[1]);
  } catch {
    return undefined;
  }
}

/** A Node below 22.18 on the path, if there is one. */
function findOldNode(): string | undefined {
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((directory) => join(directory, 'node'))
    .find((path) => existsSync(path) && /^v(1\d|20|21)\./.test(execFileSync(path, ['--version'], { encoding: 'utf8' })));
}
