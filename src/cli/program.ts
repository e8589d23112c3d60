import { Argument, Command, Option } from 'commander';
import type { CliCommand } from './cli-command.ts';
import { type GivenValue, paramsFromFlags } from './flag-values.ts';
import type { Flag } from './flags.ts';
import { FORMATS } from './output.ts';

/** A command line that was understood: what to run, with which parameters and common options. */
export interface Invocation {
  readonly command: CliCommand;
  readonly params: Readonly<Record<string, unknown>>;
  readonly isConfirmed: boolean;
  readonly url?: string;
  readonly key?: string;
  readonly format?: (typeof FORMATS)[number];
}

/** Where the parser writes help and its complaints. */
export interface ParserOutput {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

/** What groups of commands are about, for `agents --help`. */
const GROUPS: ReadonlyMap<string, string> = new Map([
  ['plan', 'Use actions, watch plans, apply their changes'],
  ['plan guard', 'Guards in force, their decisions, the chain'],
  ['plan guard denylist', 'Tools that ask for every call'],
  ['plan guard allowlist', 'Tools that need not ask'],
  ['plan guard confirmation', 'Tools that a human confirms each time'],
  ['budget', 'What may be spent and what was'],
  ['guard', 'Plans that are executed elsewhere: open one, ask before each call, say how it ended'],
  ['halt', 'The kill switch'],
  ['plan profile', 'The profile that is locked to a plan'],
  ['audit', 'Logs of plans as files, and whether they hold'],
  ['approvals', 'What waits for a human'],
  ['action', 'Templates from which plans are made'],
  ['project', 'Trees of files that plans work on'],
  ['session', 'Conversations'],
  ['key', 'Keys of people and agents'],
  ['config', 'Settings of the org and of projects'],
  ['org', 'The organisation'],
  ['org policy', 'What no profile, plan or approval can loosen'],
  ['org log', "The org's own log: configuration, keys, refusals, heads of plans"],
  ['health', 'Whether the service answers'],
  ['tool', 'Tools that plans can call'],
  ['actor', 'Actors that can drive a plan'],
  ['automation-profile', 'How much a plan may do without asking'],
]);

const AFTER_HELP = `
The server is taken from --url and --key, else from CLEVERAGENTS_URL and CLEVERAGENTS_SERVER_TOKEN, else from
.cleveragents/connection.json in this folder or one above (made by \`npm start\`).

Exit codes: 0 ok, 1 error, 2 usage, 3 not found, 4 conflict, 5 the plan waits for approval.

Examples:
  agents plan use commands --arg text="read README.md"
  agents approvals list
  agents plan apply 01HXRCF1ABCDE12345678901AB
`;

/** Builds the parser. Each parsed command is given to `onInvocation`; nothing is run here. Throws commander's errors. */
export function buildProgram(
  commands: readonly CliCommand[],
  {
    version,
    output,
    onInvocation,
  }: { readonly version: string; readonly output: ParserOutput; readonly onInvocation: (invocation: Invocation) => void },
): Command {
  const program = new Command('agents')
    .description('CleverAgents from the command line')
    .version(version)
    .exitOverride()
    .configureOutput({ writeOut: output.out, writeErr: output.err })
    .showHelpAfterError('(add --help for the usage)')
    .addOption(new Option('--url <address>', 'Address of the server'))
    .addOption(new Option('--key <key>', 'Key (better in CLEVERAGENTS_SERVER_TOKEN: arguments are visible to others)'))
    .addOption(new Option('--format <format>', 'Output; rich on a terminal, else plain').choices(FORMATS))
    .addHelpText('after', AFTER_HELP);
  for (const command of commands) addCommand(program, command, onInvocation);
  return program;
}

function addCommand(program: Command, command: CliCommand, onInvocation: (invocation: Invocation) => void): void {
  const parent = groupOf(program, command.words.slice(0, -1));
  const built = parent.command(command.words.at(-1) ?? '').description(command.summary);
  for (const flag of command.positional) {
    const positional = new Argument(flag.required ? `<${flag.path.join('.')}>` : `[${flag.path.join('.')}]`, flag.description);
    built.addArgument(flag.choices === null ? positional : positional.choices([...flag.choices]));
  }
  const options = command.flags.map((flag) => {
    const option = optionOf(flag);
    built.addOption(option);
    // Absent, true and false are three things: what is not said is left to the server.
    if (flag.kind === 'boolean') built.addOption(new Option(`--no-${flag.name}`).hideHelp());
    return { flag, option };
  });
  if (command.asks) built.option('-y, --yes', 'Do not ask');
  if (command.examples.length > 0) {
    built.addHelpText(
      'after',
      `\nExamples:\n${command.examples.map((example) => `  agents ${command.words.join(' ')} ${example}`).join('\n')}\n`,
    );
  }
  built.action((...parsed: readonly unknown[]) => {
    const values: { flag: Flag; value: GivenValue }[] = [];
    for (const [index, flag] of command.positional.entries()) {
      const value = parsed[index];
      if (typeof value === 'string') values.push({ flag, value });
    }
    const given = built.opts<Record<string, unknown>>();
    for (const { flag, option } of options) {
      const value = given[option.attributeName()];
      if (value !== undefined) values.push({ flag, value: value as GivenValue });
    }
    onInvocation({
      ...program.opts<Pick<Invocation, 'url' | 'key' | 'format'>>(),
      command,
      params: paramsFromFlags(values),
      isConfirmed: given['yes'] === true,
    });
  });
}

function groupOf(program: Command, words: readonly string[]): Command {
  let at = program;
  for (const [index, word] of words.entries()) {
    const existing = at.commands.find((command) => command.name() === word);
    at = existing ?? at.command(word).description(GROUPS.get(words.slice(0, index + 1).join(' ')) ?? '');
  }
  return at;
}

function optionOf(flag: Flag): Option {
  const description = flag.kind === 'boolean' ? `${flag.description} (--no-${flag.name}: false)`.trimStart() : flag.description;
  const option = new Option(`--${flag.name}${placeholder(flag)}`, description);
  if (flag.kind === 'list' || flag.kind === 'pairs') {
    return option.argParser((value: string, previous: readonly string[] | undefined) => [...(previous ?? []), value]);
  }
  if (flag.required) option.makeOptionMandatory();
  return flag.choices === null ? option : option.choices([...flag.choices]);
}

function placeholder({ kind, choices }: Flag): string {
  switch (kind) {
    case 'boolean':
      return '';
    case 'number':
      return ' <number>';
    case 'json':
      return ' <json>';
    case 'pairs':
      return ' <name=value>';
    case 'list':
      return choices === null ? ' <text,…>' : ` <${choices.join(',')}>`;
    case 'text':
    case 'any':
      return ' <text>';
  }
}
