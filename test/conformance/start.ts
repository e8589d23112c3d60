/** `npm run conformance`: the product as an agent that a public conformance suite can be pointed at, without keys, on this machine only. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { parseProtocolVersions } from '../../src/a2a/version.ts';
import { bootstrapOrg } from '../../src/cli/bootstrap-org.ts';
import { ensureWorkerBuilt } from '../../src/cli/build-worker.ts';
import { startLocalServer } from '../../src/cli/local-server.ts';
import { waitForEnd } from '../../src/cli/run-server.ts';
import { createClient } from '../../src/client/client.ts';
import { SET_UP_NAMES, SET_UPS } from './set-ups.ts';

const USAGE = `Usage: npm run conformance -- [--port N] [--set-up NAME] [--versions LIST]

  --port N         port on 127.0.0.1; 0 takes a free one (default 9999)
  --set-up NAME    ${SET_UP_NAMES.map((name) => `${name}: ${SET_UPS[name].description}`).join('\n                   ')}
                   (default main)
  --versions LIST  what is served: 1.0,0.3 (default), 1.0 or 0.3
`;

/** Nothing of a suite asks anybody, and nothing of it is applied anywhere. */
const ACTION = {
  name: 'conformance',
  description: 'Does what the public conformance suites expect of the messages that they send',
  actor: 'conformance/scenarios',
  automation_profile: 'full-auto',
  apply: 'none',
} as const;

async function main(args: readonly string[]): Promise<number> {
  const flags = parseFlags(args);
  if (typeof flags === 'string') {
    process.stderr.write(`${flags}\n\n${USAGE}`);
    return 2;
  }
  const ending = waitForEnd();
  const stateDir = await mkdtemp(join(tmpdir(), 'cleveragents-conformance-'));
  try {
    const bundlePath = await ensureWorkerBuilt({ entry: 'test/conformance/conformance-worker.ts', outDir: 'dist/conformance-worker' });
    const bindings = { ...SET_UPS[flags.setUp].bindings, A2A_VERSIONS: flags.versions.join(',') };
    const server = await startLocalServer({ stateDir, port: flags.port, bundlePath, open: true, bindings });
    try {
      const { key } = await bootstrapOrg(await server.d1(), 'dev');
      const client = createClient({ url: server.url, key });
      await client.call('_cleveragents/action/add', { action: ACTION });
      await client.call('_cleveragents/config/set', { key: 'core.default-action', value: ACTION.name });
      process.stdout.write(
        `The conformance agent (${flags.setUp}, A2A ${flags.versions.join(' and ')}) is at ${server.url}\nStop with Ctrl-C.\n`,
      );
      await ending;
    } finally {
      await server.stop();
    }
    return 0;
  } finally {
    await rm(stateDir, { recursive: true, force: true });
  }
}

function parseFlags(args: readonly string[]) {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        port: { type: 'string', default: '9999' },
        'set-up': { type: 'string', default: 'main' },
        versions: { type: 'string', default: '' },
      },
    });
    const port = /^\d{1,5}$/.test(values.port) ? Number(values.port) : Number.NaN;
    if (!(port <= 65_535)) return `--port must be a number from 0 to 65535, not "${values.port}".`;
    const setUp = SET_UP_NAMES.find((name) => name === values['set-up']);
    if (setUp === undefined) return `--set-up must be one of ${SET_UP_NAMES.join(', ')}, not "${values['set-up']}".`;
    return { port, setUp, versions: parseProtocolVersions(values.versions) };
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

process.exitCode = await main(process.argv.slice(2));
