/**
 * One running server per state folder. The lock is a file with the owner's process id and start time: an owner that is gone
 * (killed, machine restarted, id given to another process) does not keep the folder.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

interface LockOwner {
  readonly pid: number;
  /** Kernel start time of the owner where the system tells it; tells a reused process id from the owner. */
  readonly started?: string;
}

/** The folder is in use by a living process. */
export class StateInUseError extends Error {
  override readonly name = 'StateInUseError';
  readonly pid: number;
  constructor(stateDir: string, pid: number) {
    super(
      `The data folder ${stateDir} is in use by another running server (process ${pid}). Stop it, or choose another folder with --state.`,
    );
    this.pid = pid;
  }
}

/** Takes the lock of `stateDir`, which must exist. Returns the function that gives it back. Throws `StateInUseError`. */
export function acquireStateLock(stateDir: string): () => void {
  const path = join(stateDir, 'server.lock');
  const own: LockOwner = describeProcess(process.pid);
  for (let attempt = 0; attempt < 10; attempt += 1) {
    if (createExclusively(path, JSON.stringify(own))) return () => rmSync(path, { force: true });
    const text = readText(path);
    if (text === undefined) continue;
    const owner = parseOwner(text);
    if (owner !== undefined && isAlive(owner)) throw new StateInUseError(stateDir, owner.pid);
    removeExactly(path, text);
  }
  throw new StateInUseError(stateDir, parseOwner(readText(path) ?? '')?.pid ?? 0);
}

/** True when a process with this id runs, whoever owns it. One that has ended and waits for its parent to notice does not count. */
export function processExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
  return processStatus(pid)?.[0] !== 'Z';
}

function isAlive(owner: LockOwner): boolean {
  if (!processExists(owner.pid)) return false;
  const { started } = describeProcess(owner.pid);
  return started === undefined || owner.started === undefined || started === owner.started;
}

function describeProcess(pid: number): LockOwner {
  const started = processStatus(pid)?.[19];
  return started === undefined ? { pid } : { pid, started };
}

/** Fields of /proc/<pid>/stat from the third (state) on; the name before it may hold blanks. Undefined outside Linux. */
function processStatus(pid: number): readonly string[] | undefined {
  return readText(`/proc/${pid}/stat`)?.split(') ').at(-1)?.split(' ');
}

function createExclusively(path: string, text: string): boolean {
  try {
    writeFileSync(path, text, { flag: 'wx', mode: 0o600 });
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

/** Removes the stale lock that was read, and not a fresh one that somebody else has put in its place meanwhile. */
function removeExactly(path: string, text: string): void {
  const aside = `${path}.${process.pid}`;
  try {
    renameSync(path, aside);
  } catch {
    return;
  }
  const moved = readText(aside);
  if (moved !== undefined && moved !== text) createExclusively(path, moved);
  rmSync(aside, { force: true });
}

function parseOwner(text: string): LockOwner | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || !('pid' in value) || typeof value.pid !== 'number') return undefined;
    return 'started' in value && typeof value.started === 'string' ? { pid: value.pid, started: value.started } : { pid: value.pid };
  } catch {
    return undefined;
  }
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
