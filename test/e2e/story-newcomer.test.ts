/** What a newcomer does after `npm start`: copies the commands that are on the screen, one after the other, and each works as printed. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { readTree } from './source-tree.ts';
import { type AgentsRun, PATIENT, runAgents } from './world.ts';

let server: TestServer;
let folder: string;
beforeAll(async () => {
  [server, folder] = await Promise.all([startServer(), mkdtemp(join(tmpdir(), 'newcomer-'))]);
});
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Runs a printed line without its comment; `more` is what the person answers or adds. */
function run(command: string, ...more: readonly string[]): Promise<AgentsRun> {
  const words = command.replace(/#.*/, '').trim().split(/\s+/);
  expect(words.slice(0, 2)).toEqual(['npx', 'agents']);
  return runAgents([...words.slice(2), ...more], server.connection);
}

/** The printed line that has all these words. */
function printed(...words: readonly string[]): string {
  const line = server
    .stdout()
    .split('\n')
    .find((each) => words.every((word) => each.includes(word)));
  if (line === undefined) throw new Error(`nothing with ${words.join(' ')} was printed:\n${server.stdout()}`);
  return line;
}

describe('the commands that a first start prints', () => {
  test('show an example plan that waits, its diff, and apply it when a person approves', async () => {
    const waiting = await run(printed('approvals list'));
    expect(waiting.code).toBe(0);
    const diff = await run(printed('plan diff'));
    expect(diff.code).toBe(0);
    expect(diff.stdout).toContain('src/greeting.js');
    const planId = /plan diff (\S+)/.exec(printed('plan diff'))?.[1] ?? '';
    expect(waiting.stdout).toContain(planId);
    expect((await runAgents(['plan', 'status', planId], server.connection)).code, 'exit code 5: it waits for an approval').toBe(5);

    expect((await run(printed('project show'))).code).toBe(0);
    const approved = await run(printed('approvals approve'), '--yes');
    expect([approved.code, approved.stderr]).toEqual([0, expect.stringContaining('src/greeting.js')]);
    const person = createClient(server.connection);
    await expect.poll(async () => (await person.call('_cleveragents/plan/status', { plan_id: planId })).state, PATIENT).toBe('applied');

    await runAgents(['project', 'export', 'example', join(folder, 'example')], server.connection);
    const greeting = (await readTree(join(folder, 'example'))).get('src/greeting.js') ?? '';
    expect(Buffer.from(greeting.slice(2), 'base64').toString('utf8')).toContain('Good morning');

    const trail = await runAgents(['plan', 'guard', 'audit', planId], server.connection);
    expect([trail.code, trail.stdout]).toEqual([0, expect.stringContaining('write_file')]);
    expect((await runAgents(['plan', 'guard', 'verify', planId], server.connection)).code).toBe(0);
    expect((await runAgents(['approvals', 'list'], server.connection)).stdout).not.toContain(planId);
  });

  test('show how any client sends a message: the curl line, copied into a shell, reads a file', async (context) => {
    const curl = await promisify(execFile)('sh', ['-c', 'command -v curl']).catch(() => null);
    if (curl === null) context.skip('curl is not installed here');
    const lines = server.stdout().split('\n');
    const first = lines.findIndex((line) => line.trim().startsWith('curl'));
    const command = lines.slice(first, first + 3).join('\n');
    const { stdout } = await promisify(execFile)('sh', ['-c', command]);
    const { result } = JSON.parse(stdout) as { result: { task: { status: { state: string } } } };
    expect(result.task.status.state).toBe('TASK_STATE_COMPLETED');
  });
});

test('the command line says in its exit code what happened: 2 wrong use, 3 not found, 4 conflict, 5 waits', async () => {
  const codes = await Promise.all(
    [
      ['plan', 'status', 'latest'],
      ['plan', 'status', '01HXRCF1ABCDEFGHJKMNPQRSTV'],
      ['project', 'create', 'example'],
      ['health', 'check'],
    ].map((args) => runAgents(args, server.connection).then(({ code }) => code)),
  );
  expect(codes).toEqual([2, 3, 4, 0]);
  const wrongKey = await runAgents(['plan', 'list'], { url: server.url, key: 'ca_nobody_0000000000000000000000' });
  expect(wrongKey.code).toBe(1);
  expect(wrongKey.stderr).not.toContain('    at ');
});

test('a second start keeps plans, projects and keys, and runs no second example', async () => {
  const { url, key } = server.connection;
  const list = (at: string) => createClient({ url: at, key }).call('_cleveragents/plan/list', {});
  const before = await list(url);
  expect(before.plans.length).toBeGreaterThan(0);
  await server.kill('SIGTERM');
  const again = await startServer({ state: server.state });
  try {
    expect(again.connection.key).toBe(key);
    expect((await list(again.url)).plans).toEqual(before.plans);
  } finally {
    await again.stop();
  }
});
