import { CommanderError } from 'commander';
import { type Client, createClient } from '../client/client.ts';
import { cliCommands } from './cli-command.ts';
import { type CliIo, UsageError } from './cli-io.ts';
import type { CommandContext } from './command-context.ts';
import { EXIT, type ExitCode, exitCodeOf } from './exit-code.ts';
import { FORMATS, type Format, failureOutcome, type Note, type Outcome, printOutcome } from './output.ts';
import { buildProgram, type Invocation } from './program.ts';
import { styleFor } from './render/style.ts';
import { findServer } from './server-address.ts';

/** Runs one command line and answers its exit code. Never throws; everything it says goes through `io`. */
export async function runCli(argv: readonly string[], io: CliIo, version: string): Promise<ExitCode> {
  const startedAtMs = Date.now();
  const format = formatIn(argv) ?? (io.isTerminal ? 'rich' : 'plain');
  const finish = (command: string, outcome: Outcome): ExitCode => {
    printOutcome(io, format, outcome, { command, startedAtMs, endedAtMs: Date.now() });
    return outcome.exitCode;
  };

  const parsed = parse(argv, version, io);
  if ('error' in parsed) return finish(wordsOf(argv), failureOutcome(parsed.error, EXIT.usage));
  if ('help' in parsed) {
    if (parsed.help === EXIT.ok) return EXIT.ok;
    if (format !== 'json') {
      io.err(parsed.text);
      return parsed.help;
    }
    return finish(wordsOf(argv), failureOutcome(new UsageError(`A command is missing after: agents ${wordsOf(argv)}`), parsed.help));
  }
  const { invocation } = parsed;
  const command = invocation.command.words.join(' ');
  const notes: Note[] = [];
  try {
    const { url, key } = invocation;
    const address = await findServer({
      ...(url === undefined ? {} : { url }),
      ...(key === undefined ? {} : { key }),
      env: io.env,
      cwd: io.cwd,
    }).catch((error: unknown) => {
      // Whether a file holds is found out without any server.
      if (invocation.command.isOffline === true && url === undefined) return null;
      throw error;
    });
    const context: CommandContext = {
      io,
      client: address === null ? NO_CLIENT : createClient({ ...address, ...(io.fetch === undefined ? {} : { fetch: io.fetch }) }),
      serverUrl: address?.url ?? null,
      params: invocation.params,
      style: styleFor(format === 'rich', io.env),
      isConfirmed: invocation.isConfirmed,
      note: (note) => notes.push(note),
    };
    return finish(command, { ...(await invocation.command.run(context)), notes });
  } catch (error) {
    const failure = failureOutcome(error, exitCodeOf(error));
    return finish(command, { ...failure, notes: [...notes, ...failure.notes] });
  }
}

const NO_CLIENT: Client = {
  call: (name) => Promise.reject(new UsageError(`${name} needs a server`)),
};

type Parsed = { readonly invocation: Invocation } | { readonly help: ExitCode; readonly text: string } | { readonly error: Error };

function parse(argv: readonly string[], version: string, io: CliIo): Parsed {
  let invocation: Invocation | undefined;
  let complaint = '';
  const output = {
    out: io.out,
    err: (text: string): void => {
      complaint += text;
    },
  };
  try {
    const program = buildProgram(cliCommands(), { version, output, onInvocation: (found) => (invocation = found) });
    program.parse([...argv], { from: 'user' });
  } catch (error) {
    if (error instanceof UsageError) return { error };
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return { help: EXIT.ok, text: '' };
    // A group without a command: the parser has written its help where complaints go.
    if (error.code === 'commander.help') return { help: EXIT.usage, text: complaint };
    const message = complaint.trim().replace(/^error: /, '');
    return { error: new UsageError(message === '' ? error.message : message) };
  }
  return invocation === undefined ? { error: new UsageError('No command was given. See agents --help.') } : { invocation };
}

/** The format must be known before the line is parsed, since a line that cannot be parsed is reported in it. */
function formatIn(argv: readonly string[]): Format | undefined {
  const at = argv.indexOf('--format');
  const value = at === -1 ? argv.find((word) => word.startsWith('--format='))?.slice('--format='.length) : argv[at + 1];
  return FORMATS.find((format) => format === value);
}

const wordsOf = (argv: readonly string[]): string => {
  const end = argv.findIndex((word) => word.startsWith('-'));
  return argv.slice(0, end === -1 ? 2 : Math.min(end, 2)).join(' ');
};
