/**
 * Keeps the runtime process (workerd) from outliving us.
 *
 * Miniflare starts workerd as a plain child: when Node is killed with SIGKILL, workerd lives on and keeps the port and the data
 * files open. Two things prevent that. workerd is started through a one-line script that records its process id and then becomes
 * workerd; and a watchdog (a shell that waits on a pipe from us) ends that process when the pipe closes without a farewell.
 * A runtime that is left over all the same is ended before the next start on the same folder.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { processExists } from './state-lock.ts';

/** What `prepareRuntimeGuard` hands to the server. */
export interface RuntimeGuard {
  /** Environment for the runtime process. */
  readonly runtimeEnv: Readonly<Record<string, string>>;
  /** Process id of the running workerd, if it is known. */
  runtimePid(): number | undefined;
  /** After the runtime was stopped: sends the watchdog away and removes the traces. */
  release(): Promise<void>;
}

const PID_FILE_VARIABLE = 'CLEVERAGENTS_RUNTIME_PID_FILE';

/** Ends a left-over runtime of this folder, then starts the watchdog. Call with the folder's lock held, before miniflare starts. */
export async function prepareRuntimeGuard(stateDir: string): Promise<RuntimeGuard> {
  if (process.platform === 'win32') return { runtimeEnv: {}, runtimePid: () => undefined, release: () => Promise.resolve() };
  const pidFile = join(stateDir, 'runtime.pid');
  await endLeftOver(pidFile);
  installLauncher(stateDir);
  const watchdog = startWatchdog(pidFile);
  return {
    runtimeEnv: { [PID_FILE_VARIABLE]: pidFile },
    runtimePid: () => readPid(pidFile),
    release: async () => {
      await farewell(watchdog);
      rmSync(pidFile, { force: true });
    },
  };
}

async function endLeftOver(pidFile: string): Promise<void> {
  const pid = readPid(pidFile);
  if (pid === undefined) return;
  for (let waitedMs = 0; processExists(pid) && waitedMs < 5_000; waitedMs += 20) {
    const owner = ownerOf(pid, pidFile);
    if (owner === 'somebody else') return;
    if (owner === 'us') killIfAlive(pid);
    await sleep(20);
  }
}

/** The id may have been given to another process since; only a process that carries our variable is ours. One that is just ending shows nothing. */
function ownerOf(pid: number, pidFile: string): 'us' | 'somebody else' | 'ending' {
  if (!existsSync('/proc/self/environ')) return 'somebody else';
  let environment: string;
  try {
    environment = readFileSync(`/proc/${pid}/environ`, 'utf8');
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EACCES' ? 'somebody else' : 'ending';
  }
  if (environment === '') return 'ending';
  return environment.split('\0').includes(`${PID_FILE_VARIABLE}=${pidFile}`) ? 'us' : 'somebody else';
}

function killIfAlive(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It ended by itself in between.
  }
}

function installLauncher(stateDir: string): void {
  const require = createRequire(import.meta.url);
  const { default: workerd } = require('workerd') as { readonly default: string };
  const launcher = join(stateDir, 'start-runtime');
  writeFileSync(launcher, `#!/bin/sh\necho $$ > "$${PID_FILE_VARIABLE}"\nexec '${workerd.replaceAll("'", "'\\''")}' "$@"\n`, {
    mode: 0o700,
  });
  process.env['MINIFLARE_WORKERD_PATH'] = launcher;
}

function startWatchdog(pidFile: string): ChildProcess {
  const script = `trap '' INT TERM HUP; if read -r farewell; then exit 0; fi; kill -KILL "$(cat "$1")"`;
  // Detached: an interrupt from the terminal goes to the whole foreground group, and the watchdog must outlive it.
  const watchdog = spawn('/bin/sh', ['-c', script, 'cleveragents-watchdog', pidFile], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  watchdog.unref();
  return watchdog;
}

async function farewell(watchdog: ChildProcess): Promise<void> {
  if (watchdog.exitCode !== null || watchdog.signalCode !== null) return;
  const ended = new Promise<void>((done) => watchdog.once('exit', () => done()));
  watchdog.ref();
  watchdog.stdin?.end('farewell\n');
  await ended;
}

function readPid(pidFile: string): number | undefined {
  try {
    const pid = Number.parseInt(readFileSync(pidFile, 'utf8'), 10);
    return Number.isSafeInteger(pid) && pid > 1 ? pid : undefined;
  } catch {
    return undefined;
  }
}
