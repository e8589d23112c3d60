/**
 * Runs the built Worker on this machine: workerd behind one direct loopback socket, D1 and Durable Objects stored in a folder.
 *
 * The same module carries `npm start`, local mode, end-to-end tests and benchmarks. It calls nothing outside this machine,
 * writes no line to standard output, and leaves no process behind: not after `stop()`, not after SIGKILL of this process.
 */
import { mkdir, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import type { Miniflare as MiniflareInstance, WorkerdStructuredLog } from 'miniflare';
import { REPOSITORY } from './build-worker.ts';
import { applyLocalMigrations } from './local-migrations.ts';
import { prepareRuntimeGuard, type RuntimeGuard } from './runtime-guard.ts';
import { ensureAuditKey, ensureCardKey } from './signing-key-files.ts';
import { acquireStateLock } from './state-lock.ts';
import { readWorkerConfig } from './worker-config.ts';

/** How to run the Worker. */
export interface LocalServerOptions {
  /** Folder for everything that lasts. Made when absent. One server at a time. */
  readonly stateDir: string;
  /** Port on 127.0.0.1; 0 takes a free one. */
  readonly port: number;
  /** `worker.js` of a build. */
  readonly bundlePath: string;
  /** Turns authentication off (`AUTH_MODE=open`). Safe only because the socket is a loopback socket. */
  readonly open?: boolean;
  /** Variables that replace or join those of wrangler.toml. */
  readonly bindings?: Readonly<Record<string, string>>;
  /** Receives one line per log entry of the Worker or the runtime. Default: standard error. */
  readonly log?: (line: string) => void;
}

/** A running Worker. */
export interface LocalServer {
  /** Base URL without a trailing slash, such as `http://127.0.0.1:8787`. */
  readonly url: string;
  readonly port: number;
  /** Process id of workerd, where it is known. */
  readonly runtimePid: number | undefined;
  /** The Worker's D1 database, for set-up. */
  d1(): Promise<D1Database>;
  /** Ends the runtime and gives the folder back. May be called more than once. */
  stop(): Promise<void>;
}

/** The port is taken by another program. */
export class PortInUseError extends Error {
  override readonly name = 'PortInUseError';
  constructor(port: number) {
    super(`Port ${port} on 127.0.0.1 is in use by another program. Stop it, or choose another port with --port (0 takes a free one).`);
  }
}

/** Read by miniflare and wrangler code in this process. Not in a `.env` file: that would become bindings of the Worker. */
const QUIET_ENVIRONMENT = {
  CLOUDFLARE_CF_FETCH_ENABLED: 'false',
  WRANGLER_SEND_METRICS: 'false',
  WRANGLER_SEND_ERROR_REPORTS: 'false',
  WRANGLER_HIDE_BANNER: 'true',
} as const;

/** Starts the Worker; resolves when it answers. Throws `PortInUseError` and `StateInUseError`. */
export async function startLocalServer(options: LocalServerOptions): Promise<LocalServer> {
  Object.assign(process.env, QUIET_ENVIRONMENT);
  const stateDir = resolve(options.stateDir);
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  const unlock = acquireStateLock(stateDir);
  let guard: RuntimeGuard | undefined;
  let miniflare: MiniflareInstance | undefined;

  let stopping: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    stopping ??= (async () => {
      await miniflare?.dispose();
      await guard?.release();
      await rm(join(stateDir, 'tmp'), { recursive: true, force: true });
      unlock();
    })();
    return stopping;
  };

  try {
    guard = await prepareRuntimeGuard(stateDir);
    await assertPortFree(options.port);
    miniflare = await createMiniflare(options, stateDir, guard);
    await miniflare.ready;
    const { port } = await miniflare.unsafeGetDirectURL();
    const running = miniflare;
    const d1 = async (): Promise<D1Database> => (await running.getD1Database('DB')) as unknown as D1Database;
    await applyLocalMigrations(await d1(), join(REPOSITORY, 'migrations'));
    return { url: `http://127.0.0.1:${port}`, port: Number(port), runtimePid: guard.runtimePid(), d1, stop };
  } catch (error) {
    await stop();
    throw isAddressInUse(error) ? new PortInUseError(options.port) : error;
  }
}

async function createMiniflare(options: LocalServerOptions, stateDir: string, guard: RuntimeGuard): Promise<MiniflareInstance> {
  const { Log, LogLevel, Miniflare } = await import('miniflare');
  const log = options.log ?? ((line: string) => void process.stderr.write(`${line}\n`));
  const config = await readWorkerConfig({
    AUDIT_SIGNING_KEY: await ensureAuditKey(stateDir),
    CARD_SIGNING_KEY: await ensureCardKey(stateDir),
    PUSH_LOOPBACK: 'on',
    ...options.bindings,
    ...(options.open === true ? { AUTH_MODE: 'open' } : {}),
  });
  const contents = await readFile(options.bundlePath, 'utf8');

  class LineLog extends Log {
    protected override log(message: string): void {
      log(message);
    }
  }

  return withoutSignalHandlers(
    () =>
      new Miniflare({
        host: '127.0.0.1',
        port: 0,
        cf: false,
        telemetry: { enabled: false },
        enableDevRegistry: false,
        log: new LineLog(LogLevel.WARN),
        logRequests: false,
        handleStructuredLogs: ({ level, message }: WorkerdStructuredLog) => log(`[${level}] ${message}`),
        unsafeRuntimeEnv: { ...guard.runtimeEnv },
        resourcePersistencePath: join(stateDir, 'storage'),
        resourceTmpPath: join(stateDir, 'tmp'),
        workers: [
          {
            config: {
              ...config,
              manifest: {
                mainModule: 'worker.js',
                modulesRoot: dirname(options.bundlePath),
                modules: { 'worker.js': { type: 'esm', contents } },
              },
            },
            dev: { unsafeDirectSockets: [{ host: '127.0.0.1', port: options.port }] },
          },
        ],
      }),
  );
}

/** Miniflare answers signals with an immediate `process.exit`, before anything else can end in order. The program decides that, not a library. */
function withoutSignalHandlers<T>(make: () => T): T {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  const before = signals.map((signal) => new Set(process.listeners(signal)));
  const made = make();
  signals.forEach((signal, index) => {
    for (const listener of process.listeners(signal)) if (before[index]?.has(listener) !== true) process.off(signal, listener);
  });
  return made;
}

/** Asked before the runtime starts, since the answer is quicker and clearer; the runtime's own failure is translated as well. */
async function assertPortFree(port: number): Promise<void> {
  if (port === 0) return;
  await new Promise<void>((free, taken) => {
    const probe = createServer();
    probe.once('error', taken);
    probe.listen({ host: '127.0.0.1', port, exclusive: true }, () => probe.close(() => free()));
  });
}

function isAddressInUse(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'EADDRINUSE' || error.code === 'ERR_ADDRESS_IN_USE');
}
