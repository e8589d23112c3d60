/** What a newcomer finds after the first start: two keys, the examples, and one plan that waits; and the commands that are printed work. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { CONNECTION_FILE } from '../../src/cli/connection-file.ts';
import { type Client, createClient } from '../../src/client/client.ts';
import { AuthenticationError, AuthorizationError } from '../../src/client/errors.ts';
import { startServer, type TestServer, temporaryFolder } from '../support/server.ts';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(state?: string): Promise<{ readonly server: TestServer; readonly person: Client; readonly agent: Client }> {
  const server = await startServer(state === undefined ? {} : { state });
  cleanups.push(server.stop);
  const { url, connection } = server;
  return { server, person: createClient({ url, key: connection.key }), agent: createClient({ url, key: connection.agent_key }) };
}

/** The id of the approval in the line that is printed for it. */
const approvalIn = (server: TestServer): string => /npx agents approvals approve (\S+)/.exec(server.stdout())?.[1] ?? '';

describe('the first start', () => {
  test('leaves a plan of the agent that waits for the person, who can look at it, approve it, and see it in the project', async () => {
    const { server, person, agent } = await start();
    const { approvals } = await person.call('_cleveragents/approval/list', {});
    expect(approvals).toMatchObject([{ approval_id: approvalIn(server), gate: 'select_tool', diff: { additions: 3, deletions: 3 } }]);
    const [approval] = approvals;
    const planId = approval?.plan_id ?? '';
    const diff = await person.call('_cleveragents/plan/diff', { plan_id: planId });
    expect(diff.files.map(({ path }) => path)).toEqual(['config/defaults.json', 'docs/usage.md', 'src/greeting.js']);

    // The agent that asked cannot answer.
    const decision = { approval_id: approvalIn(server), decision: 'approve', digest: approval?.digest ?? '' } as const;
    await expect(agent.call('_cleveragents/approval/decide', decision)).rejects.toBeInstanceOf(AuthorizationError);
    await person.call('_cleveragents/approval/decide', decision);
    await expect
      .poll(async () => (await person.call('_cleveragents/plan/status', { plan_id: planId })).state, { timeout: 10_000 })
      .toBe('applied');
    const { base64 } = await person.call('_cleveragents/project/file/read', { name: 'example', path: 'src/greeting.js' });
    expect(Buffer.from(base64, 'base64').toString()).toContain("GREETING = 'Good morning'");
  });

  test('prints a message that any A2A client can send, and it is answered', async () => {
    const { server } = await start();
    const printed = /curl -s (\S+) \\\n\s+-H '([^']+)' -H '([^']+)' -H '([^']+)' \\\n\s+-d '([^']+)'/.exec(server.stdout());
    const [, url = '', ...rest] = printed ?? [];
    const body = rest.pop() ?? '';
    const headers = rest.map((header) => header.split(': ') as [string, string]);
    const response = await fetch(url, { method: 'POST', headers, body });
    expect(await response.json()).toMatchObject({
      result: {
        task: {
          status: { state: 'TASK_STATE_COMPLETED' },
          artifacts: expect.arrayContaining([expect.objectContaining({ name: 'README.md' })]),
        },
      },
    });
  });

  test('sets what a message uses that names nothing, and leaves the profile open', async () => {
    const { person } = await start();
    const { settings } = await person.call('_cleveragents/config/list', {});
    const values = Object.fromEntries(settings.map(({ key, value }) => [key, value]));
    expect(values).toMatchObject({ 'core.default-action': 'commands', 'core.default-project': 'example', 'core.automation-profile': null });
    const { actions } = await person.call('_cleveragents/action/list', {});
    expect(actions.map(({ name }) => name)).toEqual(['commands', 'edit-three-files', 'hello', 'help']);
    expect(await person.call('_cleveragents/project/show', { name: 'example' })).toMatchObject({ files: 9, commits: 1 });
  });
});

describe('a start after one that was interrupted', () => {
  test('finishes: new keys, the old ones void, the same plan, and nothing that was changed since is changed back', async () => {
    const state = await temporaryFolder();
    cleanups.push(() => rm(state, { recursive: true, force: true }));
    const first = await start(state);
    const approval = approvalIn(first.server);
    expect(approval).not.toBe('');
    await first.person.call('_cleveragents/config/set', { key: 'core.default-action', value: 'hello' });
    await first.server.kill('SIGKILL');
    // The file is written last: without it the start did not come to its end.
    await rm(join(state, CONNECTION_FILE));

    const second = await start(state);
    expect(approvalIn(second.server)).toBe(approval);
    expect(await second.person.call('_cleveragents/plan/list', {})).toMatchObject({ total_size: 1 });
    const { keys } = await second.person.call('_cleveragents/key/list', {});
    expect(keys.map(({ key_id: id, kind, roles }) => [id, kind, roles])).toEqual([
      ['dev-agent', 'agent', ['operator']],
      ['dev-person', 'human', ['viewer', 'operator', 'approver', 'admin']],
    ]);
    const { url } = second.server;
    const old = createClient({ url, key: first.server.connection.key });
    await expect(old.call('_cleveragents/plan/list', {})).rejects.toBeInstanceOf(AuthenticationError);
    const setting = await second.person.call('_cleveragents/config/get', { key: 'core.default-action' });
    expect(setting.value).toBe('hello');
    expect(await second.person.call('_cleveragents/project/show', { name: 'example' })).toMatchObject({ commits: 1 });
  });
});
