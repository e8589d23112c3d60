/** The conformance agent as a process of its own, as `npm run conformance` starts it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { REPOSITORY } from '../../src/cli/build-worker.ts';
import type { SetUp } from './set-ups.ts';

export interface ConformanceAgent {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts it on a free port; throws what it wrote when it ends instead. */
export async function startConformanceAgent(setUp: SetUp, versions = '1.0,0.3'): Promise<ConformanceAgent> {
  const program = join(REPOSITORY, 'test/conformance/start.ts');
  const flags = ['--port', '0', '--set-up', setUp, '--versions', versions];
  const child = spawn(process.execPath, [program, ...flags], { cwd: REPOSITORY, stdio: ['ignore', 'pipe', 'pipe'] });
  let written = '';
  const ended = once(child, 'exit');
  const announced = new Promise<string>((done) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        written += chunk;
        const url = /is at (http:\S+)\n/.exec(written)?.[1];
        if (url !== undefined) done(url);
      });
    }
  });
  const url = await Promise.race([announced, ended.then(() => null)]);
  if (url === null) throw new Error(`The conformance agent did not start.\n${written}`);
  return {
    url,
    stop: async () => {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
