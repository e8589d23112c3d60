/** Whatever a command does, its JSON is one whole envelope, and its `exit_code` is the process's (case U100). */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OPERATION_NAMES } from '../../src/api/operations.ts';
import { type CliCommand, cliCommands } from '../../src/cli/cli-command.ts';
import type { Flag } from '../../src/cli/flags.ts';
import { runCli } from '../../src/cli/run-cli.ts';
import { Refused, type Service, serve } from './service.ts';

let service: Service;
let cwd: string;

beforeAll(async () => {
  cwd = mkdtempSync(join(tmpdir(), 'envelope-'));
  const refuse = (): never => {
    throw new Refused({ kind: 'budget_exceeded', message: 'the budget of the session is used up' });
  };
  service = await serve(Object.fromEntries(OPERATION_NAMES.map((name) => [name, refuse])));
});

afterAll(async () => {
  await service.close();
  rmSync(cwd, { recursive: true, force: true });
});

/** A text for a flag that its kind takes. */
function sampleOf(flag: Flag): readonly string[] {
  switch (flag.kind) {
    case 'boolean':
      return [];
    case 'number':
      return ['1'];
    case 'json':
      return ['{"a":1}'];
    case 'pairs':
      return ['name=5'];
    case 'list':
    case 'any':
    case 'text':
      return [flag.choices?.[0] ?? '5'];
  }
}

const table = cliCommands().map((command): readonly [string, CliCommand] => [command.words.join(' '), command]);

describe.each(table)('agents %s --format json', (_, command) => {
  it('answers a refusal with the six keys, the command and the exit code with which it ends', async () => {
    const positions = command.positional.flatMap(sampleOf);
    const mandatory = command.flags.filter((flag) => flag.required).flatMap((flag) => [`--${flag.name}`, ...sampleOf(flag)]);
    const out: Buffer[] = [];
    const exitCode = await runCli(
      [...command.words, ...positions, ...mandatory, '--format', 'json'],
      {
        cwd,
        env: { CLEVERAGENTS_URL: service.url, CLEVERAGENTS_SERVER_TOKEN: 'ca_1_s' },
        isTerminal: false,
        out: (data) => out.push(Buffer.from(data)),
        err: () => undefined,
      },
      '1.2.3',
    );
    const text = Buffer.concat(out).toString('utf8');
    const envelope = JSON.parse(text) as Record<string, unknown>;
    expect(Object.keys(envelope).sort()).toEqual(['command', 'data', 'exit_code', 'messages', 'status', 'timing']);
    expect(envelope['command']).toBe(command.words.join(' '));
    expect(envelope['exit_code']).toBe(exitCode);
    expect(exitCode).toBeGreaterThan(0);
  });
});
