/** The official SDK clients over HTTP+JSON do everything that there is to do, and what they did looks the same over JSON-RPC. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PEERS, type PeerClient, REST_PEERS, type Shown } from './peers.ts';
import { type ActionDocument, PATIENT, startWorld, type World } from './world.ts';

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(async () => {
  expect(await world.verifyAll()).toBeGreaterThan(0);
  await world.stop();
});

describe.each(REST_PEERS)('$name', ({ version, connect }) => {
  let rest: PeerClient;
  let human: PeerClient;
  let rpc: PeerClient;
  let action: string;
  beforeAll(async () => {
    const { url, key, agent_key: agentKey } = world.server.connection;
    const overRpc = PEERS.find((peer) => peer.version === version);
    if (overRpc === undefined) throw new Error(`no client of ${version}`);
    [rest, human, rpc] = await Promise.all([connect(url, agentKey), connect(url, key), overRpc.connect(url, agentKey)]);
    action = await world.addAction(asksOnce(version));
  });
  afterAll(async () => {
    await Promise.all([rest, human, rpc].map(({ wire }) => wire.settle()));
    expect(rest.wire.checked() + human.wire.checked()).toBeGreaterThan(8);
  });

  test('sends, waits, answers, reads and subscribes; the task is the same over JSON-RPC', async () => {
    const waiting = await rest.send({ text: 'go', start: { action } });
    expect(waiting).toMatchObject({ kind: 'task', state: 'input-required' });
    expect(waiting.data[0]).toMatchObject({ kind: 'question' });
    expect(await rest.get(waiting.taskId)).toEqual(await rpc.get(waiting.taskId));

    const events: Shown[] = [];
    const watched = (async () => {
      for await (const event of rest.subscribe(waiting.taskId)) events.push(event);
    })();
    await expect.poll(() => events.length, PATIENT).toBe(1);
    const [approval] = waiting.data;
    const answer = { approval_id: approval?.['approval_id'] ?? '', digest: approval?.['digest'] ?? '', decision: 'answer', text: 'blue' };
    const done = await human.send({ taskId: waiting.taskId, data: answer });
    expect(done).toMatchObject({ kind: 'task', taskId: waiting.taskId, state: 'completed' });
    await watched;
    expect(events[0]).toMatchObject({ kind: 'task', taskId: waiting.taskId });
    expect(events.at(-1)).toMatchObject({ kind: 'status', state: 'completed' });
    expect(await rest.get(waiting.taskId)).toEqual(await rpc.get(waiting.taskId));
  });

  test('streams the story that JSON-RPC streams', async () => {
    const tell = async (client: PeerClient): Promise<readonly string[]> => {
      const events = await read(client.stream({ text: 'go', start: { action } }));
      return events.map(({ kind, state, artifacts }) => `${kind} ${state} ${artifacts.length}`);
    };
    const told = await tell(rest);
    expect(told[0]).toMatch(/^task /);
    expect(told.at(-1)).toBe('status input-required 0');
    expect(told).toEqual(await tell(rpc));
  });

  test('cancels, and gets the errors of A2A as its own', async () => {
    const waiting = await rest.send({ text: 'go', start: { action }, blocking: false });
    expect((await rest.cancel(waiting.taskId)).state).toBe('canceled');
    await expect(rest.cancel(waiting.taskId)).rejects.toThrow(/cancel/i);
    await expect(rest.cancel(waiting.taskId)).rejects.toSatisfy(isA('TaskNotCancelableError'));
    await expect(rest.get('01HXRCF1ABCDE12345678901AB')).rejects.toSatisfy(isA('TaskNotFoundError'));
    await expect(rest.send({ taskId: waiting.taskId, text: 'more' })).rejects.toSatisfy(isA('UnsupportedOperationError'));
    if (version === '0.3')
      expect((await read(rest.subscribe(waiting.taskId))).map(({ kind, state }) => `${kind} ${state}`)).toEqual(['task canceled']);
    else await expect(read(rest.subscribe(waiting.taskId))).rejects.toSatisfy(isA('UnsupportedOperationError'));
  });

  test('registers, reads, lists and deletes webhooks, which are the same over JSON-RPC', async () => {
    const { taskId } = await rest.send({ text: 'go', start: { action } });
    const config = { id: 'hook', url: 'http://127.0.0.1:9/hook', token: 'token-1' };
    const made = await rest.webhooks.create(taskId, config);
    expect(made).toMatchObject({ id: 'hook', url: config.url });
    expect(await rest.webhooks.get(taskId, 'hook')).toEqual(await rpc.webhooks.get(taskId, 'hook'));
    expect(await rest.webhooks.list(taskId)).toEqual(await rpc.webhooks.list(taskId));
    expect(await rest.webhooks.list(taskId)).toHaveLength(1);
    await rest.webhooks.delete(taskId, 'hook');
    expect(await rest.webhooks.list(taskId)).toEqual([]);
    await rest.cancel(taskId);
  });

  test('lists the tasks of a context, where the client knows how', async () => {
    const sent = await rest.send({ text: 'go', start: { action } });
    await rest.send({ text: 'go', start: { action } });
    if (rest.list === null) expect(version).toBe('0.3');
    else expect(await rest.list(sent.contextId)).toMatchObject([{ taskId: sent.taskId, state: 'input-required' }]);
  });

  test('gets the card for its key', async () => {
    expect((await rest.card()).skills.map(({ id }) => id)).toContain(action);
  });

  test('carries a file of every byte there and back', async () => {
    const bytes = Buffer.from(Array.from({ length: 4096 }, (_, index) => index % 256)).toString('base64');
    const { url, agent_key: key } = world.server.connection;
    const v1 = version === '1.0';
    const part = v1 ? { raw: bytes, mediaType: 'image/png' } : { file: { fileWithBytes: bytes, mimeType: 'image/png' } };
    const message = { messageId: 'm', role: 'ROLE_USER', [v1 ? 'parts' : 'content']: [{ text: 'go' }, part] };
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}`, ...(v1 ? { 'a2a-version': '1.0' } : {}) };
    const metadata = { 'urn:cleveragents:extensions:v1': { action } };
    const base = `${url}${v1 ? '' : '/v1'}`;
    const sent = await fetch(`${base}/message:send`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ message: { ...message, metadata } }),
    });
    const { task } = (await sent.json()) as { task: { id: string } };
    const kept = await (await fetch(`${base}/tasks/${task.id}`, { headers })).json();
    expect(kept).toMatchObject({ history: [{ [v1 ? 'parts' : 'content']: [{ text: 'go' }, part] }] });
  });
});

test('a stream is resumed after the event that was seen last', async () => {
  const { url, agent_key: key } = world.server.connection;
  const [peer] = REST_PEERS;
  const client = await peer?.connect(url, key);
  if (client === undefined) throw new Error('no client');
  const { taskId } = await client.send({ text: 'go', start: { action: await world.addAction(asksOnce('resumed')) } });
  await client.cancel(taskId);
  await expect.poll(async () => (await client.get(taskId)).state, PATIENT).toBe('canceled');
  const idsAfter = async (lastEventId: string): Promise<readonly number[]> => {
    const response = await fetch(`${url}/tasks/${taskId}:subscribe`, {
      headers: { authorization: `Bearer ${key}`, 'a2a-version': '1.0', 'last-event-id': lastEventId },
    });
    return [...(await response.text()).matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
  };
  const all = await idsAfter('1');
  expect(all.length).toBeGreaterThan(1);
  const [first = 0] = all;
  expect(await idsAfter(String(first))).toEqual(all.filter((id) => id > first));
});

test('the example of the README works as it stands', async () => {
  const { url, key } = world.server.connection;
  const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8');
  const example = /^curl -s "http:\/\/127\.0\.0\.1:8787\/tasks\?.*\n.*$/m.exec(readme)?.[0] ?? '';
  const command = example.replace('http://127.0.0.1:8787', url);
  const { stdout } = await promisify(execFile)('sh', ['-c', command], { env: { ...process.env, KEY: key } });
  expect(JSON.parse(stdout)).toMatchObject({ pageSize: 5, tasks: expect.any(Array), totalSize: expect.any(Number) });
});

const isA =
  (name: string) =>
  (error: unknown): boolean =>
    error instanceof Error && [error.name, error.constructor.name].includes(name);

async function read(events: AsyncIterable<Shown>): Promise<readonly Shown[]> {
  const all: Shown[] = [];
  for await (const event of events) all.push(event);
  return all;
}

/** An action that asks one question and writes what it is told. */
function asksOnce(name: string): ActionDocument {
  return {
    name: `asks-${name}`,
    description: 'One question, one artifact',
    actor: 'scripted/steps',
    automation_profile: 'auto',
    apply: 'none',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text is a template of a script step.
    execute: [{ id: 'colour', ask: 'Which colour?' }, { artifact: { name: 'answer', text: 'the answer was ${steps.colour.result}' } }],
  };
}
