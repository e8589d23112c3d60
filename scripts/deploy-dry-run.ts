/** `npm run deploy:dry`: what a deployment would upload, without a network. Fails when it is too large. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { delimiter, dirname, join } from 'node:path';
import { REPOSITORY } from '../src/cli/build-worker.ts';

/** Compressed size that the Worker must stay under; the platform's own limits are higher. */
const LIMIT_KIB = 1024;

const wrangler = join(REPOSITORY, 'node_modules/wrangler/bin/wrangler.js');
const child = spawn(process.execPath, [wrangler, 'deploy', '--dry-run', '--config', join(REPOSITORY, 'wrangler.toml')], {
  cwd: REPOSITORY,
  stdio: ['ignore', 'pipe', 'inherit'],
  env: {
    ...process.env,
    // The build command says `node`: the one that runs this.
    PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH'] ?? ''}`,
    CLOUDFLARE_CF_FETCH_ENABLED: 'false',
    WRANGLER_SEND_METRICS: 'false',
    WRANGLER_SEND_ERROR_REPORTS: 'false',
    WRANGLER_HIDE_BANNER: 'true',
  },
});
let output = '';
child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
  output += chunk;
  process.stdout.write(chunk);
});
const [code] = await once(child, 'close');
const size = /gzip: ([\d.]+) (B|KiB|MiB)/.exec(output);
process.exitCode = verdict(code, size?.[1], size?.[2]);

function verdict(wranglerCode: unknown, amount: string | undefined, unit: string | undefined): number {
  if (wranglerCode !== 0 || amount === undefined) {
    process.stderr.write('The dry run failed.\n');
    return 1;
  }
  const sizeKib = Number(amount) * (unit === 'MiB' ? 1024 : unit === 'B' ? 1 / 1024 : 1);
  process.stdout.write(`Compressed size: ${sizeKib.toFixed(2)} KiB of ${LIMIT_KIB} KiB\n`);
  return sizeKib < LIMIT_KIB ? 0 : 1;
}
