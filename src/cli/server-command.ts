/** The command line of a local server: flags in, exit code out. The product and the test Worker share it. */
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { REPOSITORY, type WorkerBuild } from './build-worker.ts';
import { runServer } from './run-server.ts';

const USAGE = `Usage: npm start -- [--port N] [--state DIR] [--open] [--var NAME=VALUE]

  --port N     port on 127.0.0.1; 0 takes a free one (default 8787)
  --state DIR  folder for everything that lasts (default .cleveragents)
  --open       no authentication, for conformance suites; loopback only
  --var NAME=VALUE  a setting of the deployment, as in wrangler.toml; may be given more than once
`;

/** Runs until the server ends. 0: ended by a signal, or help was asked for; 1: could not start; 2: wrong flags. */
export async function serverCommand(args: readonly string[], build: WorkerBuild): Promise<number> {
  const flags = parseFlags(args);
  if (typeof flags === 'string') {
    process.stderr.write(`${flags}\n\n${USAGE}`);
    return 2;
  }
  if (flags.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  return runServer({ ...flags, build, say: (line) => process.stdout.write(`${line}\n`) });
}

interface Flags {
  readonly port: number;
  readonly stateDir: string;
  readonly open: boolean;
  readonly bindings: Readonly<Record<string, string>>;
  readonly help: boolean;
}

/** The flags, or what is wrong with them. */
function parseFlags(args: readonly string[]): Flags | string {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        port: { type: 'string', default: '8787' },
        state: { type: 'string', default: join(REPOSITORY, '.cleveragents') },
        open: { type: 'boolean', default: false },
        var: { type: 'string', multiple: true, default: [] },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    const port = /^\d{1,5}$/.test(values.port) ? Number(values.port) : Number.NaN;
    if (!(port <= 65_535)) return `--port must be a number from 0 to 65535, not "${values.port}".`;
    const variables = values.var.map((text) => /^([A-Z][A-Z0-9_]*)=([\s\S]*)$/.exec(text));
    const wrong = variables.indexOf(null);
    if (wrong >= 0) return `--var takes NAME=VALUE, with NAME in capitals, not "${values.var[wrong]}".`;
    const bindings = Object.fromEntries(variables.map((match) => [match?.[1] ?? '', match?.[2] ?? '']));
    return { port, stateDir: resolve(values.state), open: values.open, bindings, help: values.help };
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
