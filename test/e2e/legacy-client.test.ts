/** A deployment that serves 0.3 alone, and the newest SDK client in its mode for such agents: every operation, in both bindings. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startServer, type TestServer } from '../support/server.ts';
import { LEGACY_PEERS, type PeerClient, type Shown } from './peers.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ flags: ['--var', 'A2A_VERSIONS=0.3'] });
}, 60_000);
afterAll(() => server.stop());

const read = async (events: AsyncIterable<Shown>): Promise<Shown[]> => {
  const all: Shown[] = [];
  for await (const event of events) all.push(event);
  return all;
};

test('lists nothing of 1.0 on its card, and refuses it', async () => {
  const card = (await (await fetch(`${server.url}/.well-known/agent-card.json`, { headers: { 'A2A-Version': '1.0' } })).json()) as {
    supportedInterfaces: { protocolVersion: string }[];
    protocolVersion: string;
  };
  expect(card.protocolVersion).toBe('0.3.0');
  expect(card.supportedInterfaces.map(({ protocolVersion }) => protocolVersion)).toEqual(['0.3', '0.3']);
  const response = await fetch(`${server.url}/a2a`, {
    method: 'POST',
    headers: { 'A2A-Version': '1.0', 'Content-Type': 'application/json', Authorization: `Bearer ${server.connection.agent_key}` },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id: 'x' } }),
  });
  expect(await response.json()).toMatchObject({ error: { code: -32009 } });
});

describe.each(LEGACY_PEERS)('$name', ({ connect }) => {
  let client: PeerClient;
  beforeAll(async () => {
    client = await connect(server.url, server.connection.agent_key);
  });
  afterAll(() => client.wire.settle());

  test('sends, is asked, answers, reads, and cancels', async () => {
    const asked = await client.send({ text: 'ask which colour?\nsay done' });
    expect(asked).toMatchObject({ kind: 'task', state: 'input-required' });
    const { taskId } = asked;
    expect(await client.get(taskId)).toMatchObject({ taskId, state: 'input-required' });
    expect(await client.send({ taskId, text: 'blue' })).toMatchObject({ taskId, state: 'completed' });
    const other = await client.send({ text: 'ask which colour?' });
    expect(await client.cancel(other.taskId)).toMatchObject({ state: 'canceled' });
    await expect(client.get('nothing')).rejects.toThrow(/not found/i);
  });

  test('streams and subscribes', async () => {
    const events = await read(client.stream({ text: 'say one\nask two?' }));
    expect(events[0]).toMatchObject({ kind: 'task' });
    expect(events.at(-1)).toMatchObject({ kind: 'status', state: 'input-required' });
    const taskId = events[0]?.taskId ?? '';
    const watched = read(client.subscribe(taskId));
    await client.send({ taskId, text: 'yes' });
    expect((await watched).at(-1)).toMatchObject({ state: 'completed' });
  });

  test('registers, reads, lists and deletes webhooks', async () => {
    const { taskId } = await client.send({ text: 'ask which colour?' });
    const made = await client.webhooks.create(taskId, { id: 'mine', url: 'https://example.com/hook' });
    expect(made).toMatchObject({ id: 'mine', url: 'https://example.com/hook' });
    expect(await client.webhooks.get(taskId, 'mine')).toMatchObject({ id: 'mine' });
    expect(await client.webhooks.list(taskId)).toMatchObject([{ id: 'mine' }]);
    await client.webhooks.delete(taskId, 'mine');
    expect(await client.webhooks.list(taskId)).toEqual([]);
  });
});
