// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are templates of script steps.
/**
 * Notifications over real HTTP: the official clients of both versions register webhooks, a receiver on this machine gets what they are
 * told, and SIGKILL of the server loses none of it.
 */
import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectOfficial } from '../a2a/oracles.ts';
import { startServer, temporaryFolder } from '../support/server.ts';
import { PEERS } from './peers.ts';
import { startReceiver } from './receiver.ts';
import { type Notification, startWebhook, stateIn, type Webhook } from './webhook.ts';
import { type ActionDocument, makeWorld, PATIENT, type World } from './world.ts';

let state: string;
let webhook: Webhook;
let world: World;

const start = async (): Promise<World> => makeWorld(await startServer({ entry: 'test', state }), await startReceiver());

beforeAll(async () => {
  [state, webhook] = await Promise.all([temporaryFolder(), startWebhook()]);
  world = await start();
  await world.addAction(asksOnce());
  await world.addAction(manySteps());
});
afterAll(async () => {
  expect(await world.verifyAll()).toBeGreaterThan(0);
  await world.stop();
  await webhook.close();
  await rm(state, { recursive: true, force: true });
});

const statesAt = (path: string): readonly string[] => webhook.arrived(path).flatMap((each) => stateIn(each) ?? []);

const untilState = (path: string, wanted: string): Promise<void> => expect.poll(() => statesAt(path).at(-1), PATIENT).toBe(wanted);

/** Each in its turn, a repeat only right after it and word for word the same. */
function expectInOrder(arrived: readonly Notification[]): void {
  let last = 0;
  const texts = new Map<string, string>();
  for (const { id, sequence, text } of arrived) {
    expect(sequence === last || sequence === last + 1, `${sequence} after ${last}`).toBe(true);
    expect(texts.get(id) ?? text).toBe(text);
    texts.set(id, text);
    last = sequence;
  }
  expect(texts.size).toBe(last);
}

describe.each(PEERS)('A webhook of $name', ({ version, connect }) => {
  test('comes with a message and is told of its task, in the wire of the client, to the end', async () => {
    const { connection } = world.server;
    const client = await connect(connection.url, connection.agent_key);
    const path = `inline-${version}`;
    const webhookConfig = { url: webhook.at(path), token: 'token-1', credentials: 'k1' };
    const task = await client.send({ text: 'start', start: { action: 'asks-once' }, blocking: false, webhook: webhookConfig });
    await untilState(path, 'input-required');
    const asked = webhook.arrived(path).findLast((each) => stateIn(each) === 'input-required');
    expect(asked?.text).toContain('Which colour?');
    await world.human.call('_cleveragents/plan/status', { plan_id: task.taskId });
    const approval = await world.pending(task.taskId);
    const { approval_id, digest } = approval;
    await world.human.call('_cleveragents/approval/decide', { approval_id, decision: 'answer', text: 'blue', digest });
    await untilState(path, 'completed');

    const arrived = webhook.arrived(path);
    expectInOrder(arrived);
    expect(arrived.map(({ sequence }) => sequence)).toEqual(arrived.map((_, index) => index + 1));
    for (const { headers, body } of arrived) {
      expectOfficial(version, version === '1.0' ? 'event' : 'task', body);
      expect(headers.authorization).toBe('Bearer k1');
      expect(headers['x-a2a-notification-token']).toBe('token-1');
      expect(headers['content-type']).toBe(version === '1.0' ? 'application/a2a+json' : 'application/json');
      if (version === '1.0') expect(Object.keys(body)).toHaveLength(1);
      else expect(body).toMatchObject({ kind: 'task', id: task.taskId });
    }
    expect(arrived.at(-1)?.text.includes('the answer was')).toBe(version === '0.3');
    await client.wire.settle();
  });

  test('is registered, shown without its secrets, listed and deleted', async () => {
    const { connection } = world.server;
    const client = await connect(connection.url, connection.agent_key);
    const path = `crud-${version}`;
    const task = await client.send({ text: 'start', start: { action: 'asks-once' } });
    const url = webhook.at(path);
    const created = await client.webhooks.create(task.taskId, { id: 'mine', url, token: 'never-shown-t', credentials: 'never-shown-c' });
    expect(created).toEqual({ id: 'mine', url });
    expect((await client.webhooks.create(task.taskId, { url: `${url}-2` })).id).toBe(task.taskId);
    expect(await client.webhooks.get(task.taskId, 'mine')).toEqual(created);
    expect((await client.webhooks.list(task.taskId)).map(({ id }) => id).toSorted()).toEqual([task.taskId, 'mine'].toSorted());
    await expect(client.webhooks.get(task.taskId, 'other')).rejects.toThrow();
    await client.webhooks.delete(task.taskId, 'mine');
    await client.webhooks.delete(task.taskId, 'mine');
    await expect(client.webhooks.get(task.taskId, 'mine')).rejects.toThrow();
    await client.cancel(task.taskId);
    await untilState(`${path}-2`, 'canceled');
    expect(webhook.arrived(path)).toEqual([]);
    const exported = JSON.stringify(await world.human.call('_cleveragents/audit/export', { plan_id: task.taskId }));
    expect(exported).toContain('push_config');
    expect(exported).not.toContain('never-shown');
    await client.wire.settle();
  });
});

test('SIGKILL of the server loses nothing: each webhook gets all of it in order, under the delivery ids of the first attempt', async () => {
  const plans: string[] = [];
  // One is on its way then, and the other plan is wherever it is.
  let isKilled = false;
  const killed = new Promise<void>((done) => {
    webhook.onArrival('kill-1.0', async (_nth, { text }) => {
      if (isKilled || !text.includes('said 3')) return undefined;
      isKilled = true;
      await world.server.kill('SIGKILL');
      done();
      return undefined;
    });
  });
  for (const version of ['1.0', '0.3'] as const) {
    const peer = PEERS.find((each) => each.version === version);
    const { connection } = world.server;
    const client = await peer?.connect(connection.url, connection.agent_key);
    const task = await client?.send({
      text: 'start',
      start: { action: 'many-steps', arguments: { url: world.receiver.at('steps') } },
      blocking: false,
      webhook: { url: webhook.at(`kill-${version}`), credentials: 'k1' },
    });
    plans.push(task?.taskId ?? '');
  }
  await killed;
  const { receiver } = world;
  world = makeWorld(await startServer({ entry: 'test', state }), receiver);
  for (const version of ['1.0', '0.3']) await untilState(`kill-${version}`, 'completed');
  for (const version of ['1.0', '0.3']) {
    const arrived = webhook.arrived(`kill-${version}`);
    expectInOrder(arrived);
    expect(arrived.every(({ headers }) => headers.authorization === 'Bearer k1')).toBe(true);
  }
  const said = new Set(webhook.arrived('kill-1.0').flatMap(({ text }) => /said \d/.exec(text)?.[0] ?? []));
  expect([...said]).toEqual(['said 1', 'said 2', 'said 3', 'said 4', 'said 5', 'said 6']);
  for (const planId of plans) {
    const { configs } = await world.human.call('_cleveragents/push/list', { plan_id: planId });
    expect(configs).toMatchObject([{ status: 'active', waiting: 0, given_up: 0, last_error: null }]);
  }
});

test('what a receiver refuses for good is listed for people, and sent again when they ask', async () => {
  let isMended = false;
  webhook.onArrival('refuses', (nth) => (isMended ? 204 : nth === 1 ? 302 : 410));
  const { connection } = world.server;
  const client = await PEERS[0]?.connect(connection.url, connection.agent_key);
  const task = await client?.send({ text: 'start', start: { action: 'asks-once' }, webhook: { url: webhook.at('refuses'), id: 'w' } });
  const planId = task?.taskId ?? '';
  const configs = async () => (await world.human.call('_cleveragents/push/list', { plan_id: planId })).configs;
  await expect.poll(async () => (await configs())[0]?.status, PATIENT).toBe('stopped');
  expect(await configs()).toMatchObject([{ config_id: 'w', reason: 'gone', delivered: 0, last_error: 'HTTP 410' }]);
  expect(await world.agents(['push', 'list', planId])).toContain('gone');
  expect(webhook.arrived('refuses')).toHaveLength(2);
  expect(webhook.arrived('elsewhere'), 'a redirect is not followed').toEqual([]);
  isMended = true;
  await world.agents(['push', 'retry', planId, 'w']);
  await untilState('refuses', 'input-required');
  expectInOrder(webhook.arrived('refuses'));
});

test('a deployment refuses webhooks on its own machine and over http, whoever asks', async () => {
  const folder = await temporaryFolder();
  try {
    const server = await startServer({ state: folder, flags: ['--var', 'PUSH_LOOPBACK=off'] });
    for (const { connect } of PEERS) {
      const client = await connect(server.connection.url, server.connection.agent_key);
      const task = await client.send({ text: 'read README.md' });
      for (const url of [webhook.at('deployed'), 'http://hooks.example.com/', 'https://169.254.169.254/'])
        await expect(client.webhooks.create(task.taskId, { url })).rejects.toThrow(/url/);
      expect(await client.webhooks.list(task.taskId)).toEqual([]);
    }
    await sleep(50);
    expect(webhook.arrived('deployed')).toEqual([]);
    await server.stop();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

function asksOnce(): ActionDocument {
  return {
    name: 'asks-once',
    description: 'One question, one artifact',
    actor: 'scripted/steps',
    automation_profile: 'auto',
    apply: 'none',
    execute: [{ id: 'colour', ask: 'Which colour?' }, { artifact: { name: 'answer', text: 'the answer was ${steps.colour.result}' } }],
  };
}

function manySteps(): ActionDocument {
  const step = (number: number) => [
    { call: { tool: 'test/slow', arguments: { url: '${args.url}', label: `${number}`, ms: 40 } } },
    { say: `said ${number}` },
  ];
  return {
    name: 'many-steps',
    description: 'Words and effects in turns',
    arguments: { type: 'object', properties: { url: { type: 'string' } }, required: ['url'] },
    actor: 'scripted/steps',
    automation_profile: 'auto',
    apply: 'none',
    execute: [1, 2, 3, 4, 5, 6].flatMap(step),
  };
}
