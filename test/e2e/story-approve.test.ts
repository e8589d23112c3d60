// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are templates of script steps.
/**
 * The main job from end to end, told by the two official SDK clients: hand over work, watch it stop for a human with its diff, approve
 * exactly that, and find exactly those changes in the project.
 */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/core/json.ts';
import { ORACLES_PRESENT } from '../a2a/oracles.ts';
import { temporaryFolder } from '../support/server.ts';
import { type Outgoing, PEERS, type PeerClient, type Shown } from './peers.ts';
import { copyRepository, differences, readTree } from './source-tree.ts';
import { PATIENT, startWorld, type World } from './world.ts';

/** What the action edits: a line is added to the first, the others are written anew. */
const EDITED = ['package.json', 'tsconfig.json', 'wrangler.toml'] as const;

/** A line of package.json that stays, before which a line is added. */
const LICENSE = '"license": "Apache-2.0"';

let world: World;
let folder: string;
beforeAll(async () => {
  [world, folder] = await Promise.all([startWorld(), temporaryFolder()]);
  await copyRepository(join(folder, 'source'));
});
afterAll(async () => {
  await world.stop();
  await rm(folder, { recursive: true, force: true });
});
afterEach(async () => {
  expect(await world.verifyAll()).toBeGreaterThan(0);
});

describe.each(PEERS)('with $name', ({ version, connect }) => {
  const project = `repository-${version}`;
  let agent: PeerClient;
  let human: PeerClient;
  let imported: ReadonlyMap<string, string>;

  beforeAll(async () => {
    const { url, key, agent_key: agentKey } = world.server.connection;
    [agent, human] = await Promise.all([connect(url, agentKey), connect(url, key)]);
    await world.agents(['project', 'import', join(folder, 'source'), '--name', project]);
    imported = await exported('imported');
    await world.addAction(editThreeFiles(`edit-${version}`, project));
  });
  afterEach(async () => {
    await Promise.all([agent.wire.settle(), human.wire.settle()]);
  });
  afterAll(() => {
    // Where the official schemas are at hand, the answers of these stories were held to them.
    if (ORACLES_PRESENT) expect(agent.wire.checked() + human.wire.checked()).toBeGreaterThan(20);
  });

  async function exported(name: string): Promise<ReadonlyMap<string, string>> {
    const directory = join(folder, `${version}-${name}`);
    await rm(directory, { recursive: true, force: true });
    await mkdir(directory);
    await world.agents(['project', 'export', project, directory]);
    return readTree(directory);
  }

  test('a real source tree of at least 200 files comes back from the project as it went in', async () => {
    expect(imported.size).toBeGreaterThanOrEqual(200);
    expect(differences(await readTree(join(folder, 'source')), imported)).toEqual([]);
  });

  test('a streamed message starts the plan, a structured answer applies it, and exactly three files change', async () => {
    const head = await world.headOf(project);
    const events = await read(agent.stream(startOf(`edit-${version}`, { word: 'streamed' })));
    expect(events[0]?.kind).toBe('task');
    expect(events.map((event) => event.state).filter((state) => state !== '')).toEqual(
      expect.arrayContaining(['working', 'input-required']),
    );
    expect(statesOnlyGoForward(events)).toBe(true);
    const waiting = lastOf(events);
    expect(waiting).toMatchObject({ kind: 'status', state: 'input-required' });

    const [approval] = waiting.data;
    expect(waiting.data).toHaveLength(1);
    expect(approval).toMatchObject({ kind: 'gate', gate: 'select_tool', digest: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(approval?.['approval_id']).toMatch(new RegExp(`^${waiting.taskId}\\.\\d+$`));
    const diff = approval?.['diff'] as { patch: string; files: { path: string; status: string }[] };
    expect(diff.files.map((file) => `${file.status} ${file.path}`)).toEqual(EDITED.map((path) => `modified ${path}`));
    expect(diff.patch).toContain('+  "note": "streamed",');
    // A person who reads only the text sees the same.
    expect(waiting.text).toContain('+  "note": "streamed",');
    expect(waiting.text).toContain(String(approval?.['approval_id']));
    expect(await world.headOf(project), 'nothing has been applied yet').toBe(head);

    const done = await human.send({ taskId: waiting.taskId, data: approvalOf(approval) });
    expect(done).toMatchObject({ kind: 'task', state: 'completed' });
    expect(await agent.get(waiting.taskId)).toMatchObject({ state: 'completed' });
    const after = await exported('applied');
    expect(differences(imported, after)).toEqual([...EDITED].sort());
    expect(contentOf(after, 'package.json')).toBe(
      contentOf(imported, 'package.json').replace(LICENSE, `"note": "streamed",\n  ${LICENSE}`),
    );
    expect(contentOf(after, 'tsconfig.json')).toBe('{ "extends": "streamed" }\n');
    expect(contentOf(after, 'wrangler.toml')).toBe('name = "streamed"\n');

    const report = (await agent.get(waiting.taskId)).artifacts;
    expect(report.map((artifact) => artifact.id)).toEqual(expect.arrayContaining(['result', 'changes.diff']));
    expect(report.find((artifact) => artifact.id === 'changes.diff')?.text).toContain('+  "note": "streamed",');

    const applied = await world.human.call('_cleveragents/project/show', { name: project });
    const again = await human.send({ taskId: waiting.taskId, data: approvalOf(approval) });
    expect(again, 'the same answer again is a retry: the task as it is').toMatchObject({ state: 'completed', taskId: waiting.taskId });
    expect(await world.human.call('_cleveragents/project/show', { name: project }), 'and nothing is applied twice').toEqual(applied);
  });

  test('a blocking send answers the waiting task, and the text "Approved — proceed with the apply phase." in its context applies it', async () => {
    const waiting = await agent.send({ ...startOf(`edit-${version}`, { word: 'by-text' }), contextId: `context-${version}` });
    expect(waiting).toMatchObject({ kind: 'task', state: 'input-required', contextId: `context-${version}` });
    const total = await world.totalPlans();

    const refused = await agent
      .send({ contextId: waiting.contextId, text: 'Approved — proceed with the apply phase.' })
      .catch((error: unknown) => error);
    if (!(refused instanceof Error)) expect(refused).toMatchObject({ state: 'input-required' });
    expect(await agent.get(waiting.taskId), 'an agent approves nothing, in whatever words').toMatchObject({ state: 'input-required' });

    const wrong = await human.send({ taskId: waiting.taskId, text: 'Yes, after you rename it' });
    expect(wrong).toMatchObject({ taskId: waiting.taskId, state: 'input-required' });

    const events = await read(human.stream({ contextId: waiting.contextId, text: 'Approved — proceed with the apply phase.' }));
    expect(lastOf(events)).toMatchObject({ taskId: waiting.taskId, state: 'completed' });
    expect(await world.totalPlans(), 'no answer started a second plan').toBe(total);
    const { base64 } = await world.human.call('_cleveragents/project/file/read', { name: project, path: 'wrangler.toml' });
    expect(Buffer.from(base64, 'base64').toString('utf8')).toBe('name = "by-text"\n');
  });

  test('whoever watches a waiting task sees how it ends', async () => {
    const waiting = await agent.send(startOf(`edit-${version}`, { word: 'watched' }));
    const seen: Shown[] = [];
    const watching = (async () => {
      for await (const event of agent.subscribe(waiting.taskId)) {
        seen.push(event);
        if (event.state === 'completed') return;
      }
    })();
    await expect.poll(() => seen.length, PATIENT).toBeGreaterThan(0);
    expect(seen[0]).toMatchObject({ taskId: waiting.taskId, state: 'input-required' });
    await human.send({ taskId: waiting.taskId, data: approvalOf(waiting.data[0]), blocking: false });
    await watching;
    expect(lastOf(seen).state).toBe('completed');
  });

  test('a send that does not block answers at once, and polling finds the rest', async () => {
    const first = await agent.send({ ...startOf(`edit-${version}`, { word: 'polled' }), blocking: false });
    expect(first.kind).toBe('task');
    await expect.poll(async () => (await agent.get(first.taskId)).state, PATIENT).toBe('input-required');
    const { data } = await agent.get(first.taskId);
    await human.send({ taskId: first.taskId, data: approvalOf(data[0]), blocking: false });
    await expect.poll(async () => (await agent.get(first.taskId)).state, PATIENT).toBe('completed');
  });

  test('a refused diff leaves the project as it is', async () => {
    const head = await world.headOf(project);
    const waiting = await agent.send(startOf(`edit-${version}`, { word: 'unwanted' }));
    const refused = await human.send({
      taskId: waiting.taskId,
      data: { ...approvalOf(waiting.data[0]), decision: 'deny', reason: 'Not this' },
    });
    expect(refused.state).toBe('input-required');
    expect(await agent.cancel(waiting.taskId)).toMatchObject({ state: 'canceled' });
    expect(await world.headOf(project)).toBe(head);
  });

  test('an approval with the digest of something else approves nothing', async () => {
    const waiting = await agent.send(startOf(`edit-${version}`, { word: 'misread' }));
    const wrong = { ...approvalOf(waiting.data[0]), digest: '0'.repeat(64) };
    await expect(human.send({ taskId: waiting.taskId, data: wrong })).rejects.toThrow();
    expect(await agent.get(waiting.taskId)).toMatchObject({ state: 'input-required' });
    await agent.cancel(waiting.taskId);
  });

  test('plain commands drive the default action of the org', async () => {
    const waiting = await agent.send({ text: `write notes-${version}.md: hello` });
    expect(waiting).toMatchObject({ state: 'input-required', plan: { action: 'commands' } });
    expect(waiting.text).toContain('+hello');
    expect((await human.send({ taskId: waiting.taskId, data: approvalOf(waiting.data[0]) })).state).toBe('completed');
    const file = await world.human.call('_cleveragents/project/file/read', { name: 'example', path: `notes-${version}.md` });
    expect(Buffer.from(file.base64, 'base64').toString('utf8').trimEnd()).toBe('hello');

    const answer = await agent.send({ text: `read notes-${version}.md` });
    expect(answer.state).toBe('completed');
    expect(JSON.stringify([answer.text, answer.artifacts])).toContain('hello');
  });
});

function editThreeFiles(name: string, project: string) {
  return {
    name,
    description: 'Leaves a note in three files',
    arguments: {
      type: 'object',
      properties: { word: { type: 'string' } },
      required: ['word'],
      additionalProperties: false,
    },
    actor: 'scripted/steps',
    project,
    automation_profile: 'supervised',
    apply: 'project' as const,
    strategize: [{ decide: { type: 'strategy_choice' as const, question: 'Which files?', chosen: 'The three at the top' } }],
    execute: [
      { id: 'look', call: { tool: 'read_file', arguments: { path: 'package.json' } } },
      {
        call: {
          tool: 'edit_file',
          arguments: { path: 'package.json', old_text: LICENSE, new_text: `"note": "\${args.word}",\n  ${LICENSE}` },
        },
      },
      {
        calls: [
          { tool: 'write_file', arguments: { path: 'tsconfig.json', content: '{ "extends": "${args.word}" }\n' } },
          { tool: 'write_file', arguments: { path: 'wrangler.toml', content: 'name = "${args.word}"\n' } },
        ],
      },
      { say: 'The note is ${args.word}.' },
    ],
  };
}

const startOf = (action: string, args: JsonObject): Outgoing => ({ text: 'Leave a note', start: { action, arguments: args } });

function approvalOf(approval: JsonObject | undefined): JsonObject {
  return { approval_id: approval?.['approval_id'] ?? null, decision: 'approve', digest: approval?.['digest'] ?? null };
}

async function read(events: AsyncIterable<Shown>): Promise<readonly Shown[]> {
  const all: Shown[] = [];
  for await (const event of events) all.push(event);
  return all;
}

function lastOf(events: readonly Shown[]): Shown {
  const last = events.at(-1);
  if (last === undefined) throw new Error('the stream had no events');
  return last;
}

/** submitted → working → …, never back to submitted; nothing after a terminal state. */
function statesOnlyGoForward(events: readonly Shown[]): boolean {
  const states = events.map((event) => event.state).filter((state) => state !== '');
  const firstWorking = states.indexOf('working');
  return !states.slice(Math.max(firstWorking, 0)).includes('submitted') && !states.slice(0, -1).includes('completed');
}

const contentOf = (tree: ReadonlyMap<string, string>, path: string): string =>
  Buffer.from((tree.get(path) ?? '').slice(2), 'base64').toString('utf8');
