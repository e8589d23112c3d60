/**
 * The life of a local server as a program: build if needed, start, seed a new folder once, announce, end in order on a signal.
 * `npm start` runs the product's Worker through it, end-to-end tests the test Worker.
 */
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { BuildFailedError, ensureWorkerBuilt, REPOSITORY, type WorkerBuild } from './build-worker.ts';
import { readConnection, writeConnection } from './connection-file.ts';
import { type LocalServer, PortInUseError, startLocalServer } from './local-server.ts';
import { seedDevelopment } from './seed-development.ts';
import { StateInUseError } from './state-lock.ts';

/** What the command line says. */
export interface RunServerOptions {
  readonly build: WorkerBuild;
  readonly stateDir: string;
  readonly port: number;
  readonly open: boolean;
  /** Settings that replace or join those of wrangler.toml. */
  readonly bindings: Readonly<Record<string, string>>;
  /** Receives what a person should read, line by line. */
  readonly say: (line: string) => void;
}

/** Failures that a person can mend; their message says how. Anything else is a bug and keeps its stack. */
const EXPECTED = [BuildFailedError, PortInUseError, StateInUseError] as const;

/** Runs until a signal comes. Resolves with the exit code: 0 after a signal, 1 when the server could not start. */
export async function runServer(options: RunServerOptions): Promise<number> {
  const ending = waitForEnd();
  let server: LocalServer | undefined;
  try {
    // The runtime's library is large: from the second start on, its compiled form is read back in half the time.
    enableCompileCache(join(REPOSITORY, 'node_modules/.cache/compiled'));
    // Loading it takes as long as a build; on a second core it costs nothing.
    const [bundlePath] = await Promise.all([ensureWorkerBuilt(options.build), import('miniflare')]);
    server = await startLocalServer({
      stateDir: options.stateDir,
      port: options.port,
      bundlePath,
      open: options.open,
      bindings: options.bindings,
    });
    await announce(options, server);
    await ending;
    return 0;
  } catch (error) {
    if (!EXPECTED.some((kind) => error instanceof kind)) throw error;
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  } finally {
    await server?.stop();
  }
}

async function announce(options: RunServerOptions, server: LocalServer): Promise<void> {
  const { say, stateDir } = options;
  const known = await readConnection(stateDir);
  const seeded = known === undefined ? await seedDevelopment({ url: server.url, d1: await server.d1(), open: options.open }) : undefined;
  const { org, key, agent_key } = seeded ?? known ?? { org: '', key: '', agent_key: '' };
  await writeConnection(stateDir, { url: server.url, org, key, agent_key });

  say(`CleverAgents is running at ${server.url} (ready in ${(performance.now() / 1000).toFixed(1)} s)`);
  say('');
  say(`  Agent Card   ${server.url}/.well-known/agent-card.json`);
  if (options.open) {
    say('  Key          none needed: authentication is off (--open)');
  } else {
    say(`  Your key     ${key}  (a person's key: may approve)`);
    say(`  Agent's key  ${agent_key}  (for A2A clients: may start work, never approve)`);
  }
  say(`  Data         ${stateDir}${seeded === undefined ? ' (kept from an earlier start)' : ''}`);
  if (stateDir !== join(REPOSITORY, '.cleveragents')) {
    say('');
    say('For the commands below, in the shell where you type them (the data folder is not the usual one):');
    say('');
    say(`  export CLEVERAGENTS_URL=${server.url}${options.open ? '' : ` CLEVERAGENTS_SERVER_TOKEN=${key}`}`);
  }
  for (const line of seeded?.nextSteps ?? AGAIN) say(line);
  say('');
  say('Stop with Ctrl-C.');
}

/** What to try when the example plan is an old acquaintance. */
const AGAIN = [
  '',
  '  npx agents approvals list   # what waits for you',
  '  npx agents plan list        # all plans',
  '  npx agents --help           # everything else',
] as const;

/** A signal, or the end of the npm that started us: npm does not always pass a signal on, and must not leave a server behind. */
export function waitForEnd(): Promise<void> {
  return new Promise((end) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => end());
    if (process.env['npm_lifecycle_event'] === undefined) return;
    const parent = process.ppid;
    setInterval(() => {
      if (process.ppid !== parent) end();
    }, 250).unref();
  });
}
