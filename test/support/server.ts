/** Real server processes for end-to-end tests: started as a person starts them, on a free port and a folder of their own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { REPOSITORY } from '../../src/cli/build-worker.ts';
import { type Connection, readConnection } from '../../src/cli/connection-file.ts';

/** How to start a server. */
export interface StartServerOptions {
  /** Folder to use and to keep; without it a temporary one, removed by `stop`. */
  readonly state?: string;
  /** Port to use; default a free one. */
  readonly port?: number;
  /** Without authentication. */
  readonly open?: boolean;
  /** `worker`: the product; `test`: with the test tool package. Default `worker`. */
  readonly entry?: 'worker' | 'test';
  /** Further flags of the command. */
  readonly flags?: readonly string[];
}

/** How a process ended. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A started server that answers. */
export interface TestServer {
  readonly url: string;
  readonly connection: Connection;
  readonly state: string;
  readonly pid: number;
  /** What it has written so far. */
  stdout(): string;
  stderr(): string;
  /** Sends a signal and waits for the end of the server process. The folder stays. */
  kill(signal: NodeJS.Signals): Promise<Exit>;
  /** Ends the server if it still runs, and removes its folder if it was a temporary one. */
  stop(): Promise<void>;
}

/** What a run that ended said. */
export interface FinishedRun extends Exit {
  readonly stdout: string;
  readonly stderr: string;
}

/** A new folder under the system's temporary one. The caller removes it. */
export function temporaryFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'cleveragents-'));
}

/** Starts a server and waits until it has announced itself. Throws what it wrote when it ends instead. */
export async function startServer(options: StartServerOptions = {}): Promise<TestServer> {
  const state = options.state ?? (await temporaryFolder());
  const run = spawnServer(state, options);
  const ended = once(run.child, 'exit');
  const readyTimeoutMs = 30_000;
  const announced = new Promise<boolean>((done) => {
    run.child.stdout?.on('data', () => {
      if (run.stdout().includes('Stop with Ctrl-C.')) done(true);
    });
    setTimeout(() => done(false), readyTimeoutMs).unref();
  });
  const ready = await Promise.race([announced, ended.then(() => false)]);
  const connection = ready ? await readConnection(state) : undefined;
  if (connection === undefined) {
    run.child.kill('SIGKILL');
    throw new Error(`The server did not start.\n${run.stdout()}\n${run.stderr()}`);
  }

  const kill = async (signal: NodeJS.Signals): Promise<Exit> => {
    if (run.child.exitCode === null && run.child.signalCode === null) {
      run.child.kill(signal);
      await ended;
    }
    return { code: run.child.exitCode, signal: run.child.signalCode };
  };
  return {
    url: connection.url,
    connection,
    state,
    pid: run.child.pid ?? 0,
    stdout: run.stdout,
    stderr: run.stderr,
    kill,
    stop: async () => {
      await kill('SIGTERM');
      if (options.state === undefined) await rm(state, { recursive: true, force: true });
    },
  };
}

/** Runs a server that is expected to end by itself, and returns how it did. */
export async function runServerToEnd(
  state: string,
  options: StartServerOptions & { readonly flags?: readonly string[] },
): Promise<FinishedRun> {
  const run = spawnServer(state, options);
  const [code, signal] = (await once(run.child, 'close')) as [number | null, NodeJS.Signals | null];
  return { code, signal, stdout: run.stdout(), stderr: run.stderr() };
}

function spawnServer(state: string, options: StartServerOptions & { readonly flags?: readonly string[] }): SpawnedRun {
  const program = options.entry === 'test' ? 'test/support/test-server.ts' : 'src/cli/start.ts';
  const flags = [
    '--port',
    String(options.port ?? 0),
    '--state',
    state,
    ...(options.open === true ? ['--open'] : []),
    ...(options.flags ?? []),
  ];
  const child = spawn(process.execPath, [join(REPOSITORY, program), ...flags], { cwd: REPOSITORY, stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  return { child, stdout: () => stdout, stderr: () => stderr };
}

interface SpawnedRun {
  readonly child: ChildProcess;
  readonly stdout: () => string;
  readonly stderr: () => string;
}
