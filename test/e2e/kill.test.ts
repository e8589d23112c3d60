// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are templates of script steps.
/**
 * SIGKILL of the server at moments that hurt, and a restart on the same folder: plans go on by themselves, no step is done twice, and
 * whatever was acknowledged is there. What happened outside is counted by a receiver that outlives the server.
 */
import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startServer, temporaryFolder } from '../support/server.ts';
import { type Receiver, startReceiver } from './receiver.ts';
import { type ActionDocument, makeWorld, PATIENT, type World } from './world.ts';

/** Of an answer that is never given. */
const NEVER = new Promise<void>(() => undefined);

const STEPS = ['one', 'two', 'three', 'four', 'five'] as const;

let state: string;
let receiver: Receiver;
let world: World;
beforeAll(async () => {
  [state, receiver] = await Promise.all([temporaryFolder(), startReceiver()]);
  world = await start();
  await world.addAction(fiveSteps());
  await world.addAction(onlyOnce());
});
afterAll(async () => {
  await world.stop();
  await rm(state, { recursive: true, force: true });
});
afterEach(async () => {
  expect(await world.verifyAll()).toBeGreaterThan(0);
});

const start = async (): Promise<World> => makeWorld(await startServer({ entry: 'test', state }), receiver);

const kill = async (): Promise<void> => {
  expect(await world.server.kill('SIGKILL')).toEqual({ code: null, signal: 'SIGKILL' });
};

/** The label of each effect that arrived, in order, a repeat under the same idempotency key once. */
function performed(path: string): readonly unknown[] {
  const byKey = new Map(receiver.received(path).map((effect) => [effect.idempotencyKey, effect.args['label']]));
  return [...byKey.values()];
}

/** Looks at the receiver alone: reading the plan would wake it. */
const untilAllPerformed = (path: string): Promise<void> => expect.poll(() => performed(path).length, PATIENT).toBe(STEPS.length);

test('killed while calls are under way: one that may be repeated is, under its own idempotency key; one that may not asks a human', async () => {
  const path = 'under-way';
  const once = await world.use('only-once', { arguments: { url: receiver.at('once') } });
  const arrived = new Promise<void>((done) => {
    receiver.onNext('once', () => {
      done();
      return NEVER;
    });
  });
  const { plan_id } = await world.use('five-steps', { arguments: { url: receiver.at(path), file: 'kill/under-way.md' } });
  await arrived;
  await expect.poll(() => receiver.received(path).length, PATIENT).toBe(2);
  // The third arrives, and the server dies before it is answered.
  await new Promise<void>((killed) => receiver.onNext(path, async () => kill().then(killed)));
  world = await start();

  await untilAllPerformed(path);
  expect(performed(path)).toEqual(STEPS);
  const labels = receiver.received(path).map(({ args }) => args['label']);
  expect(labels.filter((label) => label !== 'three')).toEqual(['one', 'two', 'four', 'five']);
  const approval = await world.pending(plan_id);
  expect(approval.diff?.files.map((file) => file.path)).toEqual(['kill/under-way.md']);
  await world.approve(approval);
  await world.until(plan_id, (plan) => plan.state === 'applied');
  expect(await textOf('kill/under-way.md')).toBe('one\ntwo\n');

  const unknown = await world.pending(once.plan_id);
  expect(unknown.kind).toBe('unknown_outcome');
  const { approval_id, digest } = unknown;
  await world.human.call('_cleveragents/approval/decide', { approval_id, decision: 'answer', text: 'done', digest });
  await world.until(once.plan_id, (plan) => plan.state === 'applied');
  expect(receiver.received('once')).toHaveLength(1);
});

test.each([0, 70])(
  'killed %i ms after a step was answered, three plans finish by themselves and none does anything twice',
  async (delayMs) => {
    const plans: { readonly path: string; readonly planId: string }[] = [];
    // Started one after the other, so that the kill meets each at another place.
    for (const name of ['a', 'b', 'c']) {
      const path = `between-${delayMs}-${name}`;
      const { plan_id } = await world.use('five-steps', { arguments: { url: receiver.at(path), file: `kill/${path}.md` } });
      plans.push({ path, planId: plan_id });
    }
    const last = plans.at(-1)?.path ?? '';
    await new Promise<void>((arrived) => receiver.onNext(last, arrived));
    await sleep(delayMs);
    await kill();
    const before = plans.map(({ path }) => performed(path));
    world = await start();
    for (const [index, { path, planId }] of plans.entries()) {
      await untilAllPerformed(path);
      expect(performed(path)).toEqual(STEPS);
      expect(performed(path).slice(0, before[index]?.length)).toEqual(before[index]);
      // At most the one step whose outcome was lost was sent again.
      expect(receiver.received(path).length).toBeLessThanOrEqual(STEPS.length + 1);
      const { diff } = await world.pending(planId);
      expect(diff?.files.map((file) => file.path)).toEqual([`kill/${path}.md`]);
    }
  },
);

test('killed right after an approval was acknowledged, the approval stands and the apply happens exactly once', async () => {
  const { plan_id } = await world.use('five-steps', { arguments: { url: receiver.at('apply'), file: 'kill/applied.md' } });
  const approval = await world.pending(plan_id);
  const before = await project();
  await world.approve(approval);
  await kill();
  world = await start();
  await world.until(plan_id, (plan) => plan.state === 'applied');
  const after = await project();
  expect(after.commits).toBe(before.commits + 1);
  expect(after.head).toBe(approval.diff?.result);
  expect(await textOf('kill/applied.md')).toBe('one\ntwo\n');
});

test.each([1, 6])('killed %i ms after an approval was sent, it was given as a whole or not at all', async (delayMs) => {
  const file = `kill/maybe-${delayMs}.md`;
  const { plan_id } = await world.use('five-steps', { arguments: { url: receiver.at(`maybe-${delayMs}`), file } });
  const approval = await world.pending(plan_id);
  const before = await project();
  const answered = world.approve(approval).then(
    () => true,
    () => false,
  );
  await sleep(delayMs);
  await kill();
  const isAcknowledged = await answered;
  world = await start();
  const plan = await world.until(plan_id, ({ state: now, pending }) => now === 'applied' || pending.length > 0);
  if (isAcknowledged) expect(plan.state).toBe('applied');
  if (plan.state !== 'applied') {
    expect(await project()).toEqual(before);
    await world.approve(await world.pending(plan_id));
    await world.until(plan_id, (each) => each.state === 'applied');
  }
  expect((await project()).commits).toBe(before.commits + 1);
  expect(await textOf(file)).toBe('one\ntwo\n');
});

test('everything that was acknowledged a moment before a kill is there after it', async () => {
  const { human, agent } = world;
  const [session, key, action, plan] = await Promise.all([
    human.call('session.create', { session_id: 'before-the-kill' }),
    human.call('_cleveragents/key/create', { name: 'short-lived', kind: 'agent', roles: ['viewer'] }),
    human.call('_cleveragents/action/add', { action: { ...onlyOnce(), name: 'before-the-kill' } }),
    agent.call('_cleveragents/plan/use', { action_name: 'hello', idempotency_key: 'before-the-kill' }),
    human.call('_cleveragents/project/create', { name: 'before-the-kill' }),
    human.call('_cleveragents/config/set', { key: 'core.default-action', value: 'hello' }),
  ]);
  const connection = world.server.connection;
  await kill();
  world = await start();
  expect({ ...world.server.connection, url: '' }).toEqual({ ...connection, url: '' });
  const [sessions, keys, shown, again, project_, config] = await Promise.all([
    world.human.call('session.show', { session_id: session.session_id }),
    world.human.call('_cleveragents/key/list', {}),
    world.human.call('_cleveragents/action/show', { name: action.name }),
    world.agent.call('_cleveragents/plan/use', { action_name: 'hello', idempotency_key: 'before-the-kill' }),
    world.human.call('_cleveragents/project/show', { name: 'before-the-kill' }),
    world.human.call('_cleveragents/config/get', { key: 'core.default-action' }),
  ]);
  expect(sessions.status).toBe('open');
  expect(keys.keys.map((each) => each.key_id)).toContain(key.key_id);
  expect(shown.document).toMatchObject({ name: 'before-the-kill' });
  expect(again.plan_id, 'the same key answers the same plan').toBe(plan.plan_id);
  expect(project_.files).toBe(0);
  expect(config.value).toBe('hello');
  await world.until(plan.plan_id, (each) => each.state === 'applied');
});

const project = () => world.human.call('_cleveragents/project/show', { name: 'example' });

async function textOf(path: string): Promise<string> {
  const { base64 } = await world.human.call('_cleveragents/project/file/read', { name: 'example', path });
  return Buffer.from(base64, 'base64').toString('utf8');
}

/** Five effects outside and two writes, one after the other. */
function fiveSteps(): ActionDocument {
  const effect = (label: string) => ({ call: { tool: 'test/slow', arguments: { url: '${args.url}', label, ms: 60 } } });
  const [one, two, three, four, five] = STEPS;
  return {
    name: 'five-steps',
    description: 'Effects and changes in turns',
    arguments: { type: 'object', properties: { url: { type: 'string' }, file: { type: 'string' } }, required: ['url', 'file'] },
    actor: 'scripted/steps',
    project: 'example',
    automation_profile: 'supervised',
    execute: [
      effect(one),
      { call: { tool: 'write_file', arguments: { path: '${args.file}', content: 'one\n' } } },
      effect(two),
      { call: { tool: 'edit_file', arguments: { path: '${args.file}', old_text: 'one\n', new_text: 'one\ntwo\n' } } },
      effect(three),
      effect(four),
      effect(five),
    ],
  };
}

function onlyOnce(): ActionDocument {
  return {
    name: 'only-once',
    description: 'One effect that must not be repeated',
    arguments: { type: 'object', properties: { url: { type: 'string' } } },
    actor: 'scripted/steps',
    automation_profile: 'full-auto',
    apply: 'none',
    execute: [{ call: { tool: 'test/external_once', arguments: { url: '${args.url}' } } }],
  };
}
