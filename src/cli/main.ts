/** Entry of the `agents` command: gives it this process and takes its exit code. */
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import packageDocument from '../../package.json' with { type: 'json' };
import type { CliIo } from './cli-io.ts';
import { runCli } from './run-cli.ts';

const STDOUT = 1;

/** Synchronous and complete, also on pipes that are slow: the process may end right after. */
function writeAll(data: string | Uint8Array): void {
  let rest = typeof data === 'string' ? Buffer.from(data) : data;
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(STDOUT, rest));
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : undefined;
      // The reader went away (`agents … | head`): not our failure.
      if (code === 'EPIPE') return;
      if (code !== 'EAGAIN') throw error;
    }
  }
}

async function confirm(question: string): Promise<boolean> {
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^(?:y|yes)$/i.test((await prompt.question(`${question} [y/N] `)).trim());
  } finally {
    prompt.close();
  }
}

const io: CliIo = {
  cwd: process.cwd(),
  env: process.env,
  out: writeAll,
  err: (text) => process.stderr.write(text),
  isTerminal: process.stdout.isTTY === true,
  ...(process.stdin.isTTY === true && process.stderr.isTTY === true ? { confirm } : {}),
};

process.exitCode = await runCli(process.argv.slice(2), io, packageDocument.version);
