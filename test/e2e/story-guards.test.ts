/** Guards, budgets and cancellation of real plans on a real server; what a tool did outside is counted by its receiver. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { EXTENSION_URI } from '../../src/a2a/extension.ts';
import type { JsonObject } from '../../src/core/json.ts';
import { PEERS, type PeerClient } from './peers.ts';
import { type ActionDocument, PATIENT, post, type RawAnswer, runAgents, startWorld, type World } from './world.ts';

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(async () => {
  await world.stop();
});
afterEach(async () => {
  expect(await world.verifyAll()).toBeGreaterThan(0);
});

describe.each(PEERS)('over $name', ({ version, connect }) => {
  let agent: PeerClient;
  let human: PeerClient;
  beforeAll(async () => {
    const { url, key, agent_key: agentKey } = world.server.connection;
    [agent, human] = await Promise.all([connect(url, agentKey), connect(url, key)]);
  });
  afterEach(async () => {
    await Promise.all([agent.wire.settle(), human.wire.settle()]);
  });

  test('a tool on the denylist asks for each call, and runs once for the approval of exactly that call', async () => {
    const path = `denied-${version}`;
    const action = await world.addAction(
      script(path, [
        { id: 'first', call: { tool: 'test/counter', arguments: { url: world.receiver.at(path), label: 'first' } } },
        { id: 'second', call: { tool: 'test/counter', arguments: { url: world.receiver.at(path), label: 'second' } } },
      ]),
    );
    const first = await agent.send({ text: 'Count', start: { action, guardrails: { tool_denylist: ['test/counter'] } } });
    expect(first.state).toBe('input-required');
    expect(first.data).toHaveLength(1);
    expect(first.data[0]).toMatchObject({ kind: 'call', guard: 'denylist', call: { tool: 'test/counter', arguments: { label: 'first' } } });
    expect(world.receiver.received(path)).toEqual([]);

    await expect(agent.send({ taskId: first.taskId, data: answerTo(first.data[0]) }), 'an agent key approves nothing').rejects.toThrow();
    await human.send({ taskId: first.taskId, text: 'approve' });
    expect(world.receiver.received(path), 'words do not approve a call').toEqual([]);
    expect(await agent.get(first.taskId)).toMatchObject({ state: 'input-required' });

    const second = await human.send({ taskId: first.taskId, data: answerTo(first.data[0]) });
    expect(world.receiver.received(path).map(({ args }) => args['label'])).toEqual(['first']);
    expect(second.state).toBe('input-required');
    expect(second.data[0]).toMatchObject({ kind: 'call', call: { arguments: { label: 'second' } } });
    expect(second.data[0]?.['approval_id']).not.toBe(first.data[0]?.['approval_id']);
    const repeated = await human.send({ taskId: first.taskId, data: answerTo(first.data[0]) });
    expect(repeated.data[0]?.['approval_id'], 'an answer that is sent twice counts once').toBe(second.data[0]?.['approval_id']);
    const borrowed = { ...answerTo(second.data[0]), digest: first.data[0]?.['digest'] ?? null };
    await expect(human.send({ taskId: first.taskId, data: borrowed }), 'the digest of the first call').rejects.toThrow();
    expect(world.receiver.received(path)).toHaveLength(1);

    const done = await human.send({ taskId: first.taskId, data: answerTo(second.data[0]) });
    expect(done.state).toBe('completed');
    expect(world.receiver.received(path).map(({ args }) => args['label'])).toEqual(['first', 'second']);

    const { entries, denied_count } = await world.human.call('_cleveragents/plan/guard/audit', { plan_id: first.taskId, limit: 1000 });
    expect(denied_count).toBeGreaterThanOrEqual(2);
    expect(entries.filter((entry) => entry.guard_name === 'denylist' && entry.result === 'denied')).toHaveLength(2);
  });

  test('a plan over its budget says so, keeps what it finished, and goes on after a grant', async () => {
    const path = `priced-${version}`;
    const action = await world.addAction(
      script(path, [
        { call: { tool: 'write_file', arguments: { path: 'kept.md', content: 'finished before the money ended\n' } } },
        {
          calls: Array.from({ length: 5 }, (_, index) => ({
            tool: 'test/priced',
            arguments: { url: world.receiver.at(path), label: `${index}` },
          })),
        },
      ]),
    );
    const waiting = await agent.send({ text: 'Spend', start: { action, guardrails: { max_total_cost: 0.3 } } });
    expect(waiting.state).toBe('input-required');
    expect(waiting.text).toMatch(/Budget cap exceeded: \$0\.40 > \$0\.30\. Remediation: /);
    // What fits runs while the rest waits.
    await world.until(waiting.taskId, (plan) => plan.budget.reserved_usd === 0);
    expect(world.receiver.received(path)).toHaveLength(3);
    expect((await agent.get(waiting.taskId)).plan).toMatchObject({ spent_usd: 0.3, reserved_usd: 0, remaining_usd: { plan: 0 } });
    expect(waiting.data).toHaveLength(1);
    expect(waiting.data[0]).toMatchObject({ kind: 'limit', guard: 'budget_cap' });
    const { patch } = await world.human.call('_cleveragents/plan/diff', { plan_id: waiting.taskId });
    expect(patch).toContain('+finished before the money ended');

    await expect(
      agent.send({ taskId: waiting.taskId, data: { ...answerTo(waiting.data[0]), grant: { cost_usd: 100 } } }),
    ).rejects.toThrow();
    const done = await human.send({ taskId: waiting.taskId, data: { ...answerTo(waiting.data[0]), grant: { cost_usd: 0.2 } } });
    expect(done).toMatchObject({ state: 'completed', plan: { spent_usd: 0.5, remaining_usd: { plan: 0 } } });
    expect(world.receiver.received(path)).toHaveLength(5);
    expect(done.artifacts.find((artifact) => artifact.text.includes('finished before'))).toBeDefined();
  });

  test('a cancel in the middle of a call stops the plan at once and for good', async () => {
    const path = `slow-${version}`;
    const action = await world.addAction(
      script(path, [
        { call: { tool: 'test/slow', arguments: { url: world.receiver.at(path), ms: 1500 } }, cost_usd: 0.05 },
        { call: { tool: 'test/counter', arguments: { url: world.receiver.at(`${path}-after`) } } },
      ]),
    );
    const events: string[] = [];
    const started = await agent.send({ text: 'Wait', start: { action }, blocking: false });
    const watching = (async () => {
      for await (const event of agent.subscribe(started.taskId)) if (event.state !== '') events.push(event.state);
    })();
    await expect.poll(() => world.receiver.received(path).length, PATIENT).toBe(1);
    expect((await agent.get(started.taskId)).state).toBe('working');

    const canceled = await agent.cancel(started.taskId);
    expect(canceled.state).toBe('canceled');
    await watching;
    expect(events.at(-1)).toBe('canceled');
    // The official clients turn -32002 into an error of theirs; the wire is looked at below.
    await expect(agent.cancel(started.taskId)).rejects.toThrow();
    expect((await raw('cancel', { id: started.taskId })).body?.error?.code).toBe(-32002);

    await sleep(1700);
    const after = await world.status(started.taskId);
    expect(after).toMatchObject({ state: 'cancelled', task_state: 'canceled', budget: { reserved_usd: 0 } });
    // The call had left: its cost is counted, its result is not.
    expect(after.budget.spent_usd).toBe(0.05);
    expect(world.receiver.received(`${path}-after`)).toEqual([]);
    await expect(human.send({ taskId: started.taskId, text: 'go on' })).rejects.toThrow();
  });

  test('ten sends of one message under one Idempotency-Key make one task, and another message under that key none', async () => {
    const path = `repeated-${version}`;
    const action = await world.addAction(script(path, [{ call: { tool: 'test/counter', arguments: { url: world.receiver.at(path) } } }]));
    const before = await world.totalPlans();
    const sent = (text: string) => ({
      message: {
        ...(version === '1.0'
          ? { role: 'ROLE_USER', parts: [{ text }] }
          : { kind: 'message', role: 'user', parts: [{ kind: 'text', text }] }),
        messageId: 'm',
        metadata: { [EXTENSION_URI]: { action } },
      },
    });
    const key = { 'idempotency-key': `key-${version}` };
    const answers = await Promise.all(Array.from({ length: 10 }, () => raw('send', sent('Count'), key)));
    const ids = answers.map(({ body }) => {
      const result = (body?.result ?? {}) as { id?: string; task?: { id: string } };
      return result.task?.id ?? result.id;
    });
    expect(new Set(ids).size).toBe(1);
    expect(await world.totalPlans()).toBe(before + 1);
    await world.until(ids[0] ?? '', (plan) => plan.state === 'applied');
    expect(world.receiver.received(path)).toHaveLength(1);
    expect((await raw('send', sent('Count again'), key)).body?.error?.code).toBe(-32602);
    expect(await world.totalPlans()).toBe(before + 1);
  });

  function raw(operation: 'send' | 'cancel', params: object, headers: Readonly<Record<string, string>> = {}): Promise<RawAnswer> {
    const { url, agent_key: key } = world.server.connection;
    const method = version === '1.0' ? { send: 'SendMessage', cancel: 'CancelTask' } : { send: 'message/send', cancel: 'tasks/cancel' };
    return post(url, JSON.stringify({ jsonrpc: '2.0', id: 1, method: method[operation], params }), {
      authorization: `Bearer ${key}`,
      ...(version === '1.0' ? { 'a2a-version': '1.0' } : {}),
      ...headers,
    });
  }
});

describe('limits in one step', () => {
  test('50 priced calls of $0.10 in one batch against a cap of $1.00 admit exactly ten', async () => {
    const calls = Array.from({ length: 50 }, (_, index) => ({
      tool: 'test/priced',
      arguments: { url: world.receiver.at('fifty'), label: `${index}` },
    }));
    const action = await world.addAction(script('fifty', [{ calls }]));
    const { plan_id } = await world.use(action, { guardrails: { tool_budget: 1 } });
    const approval = await world.pending(plan_id);
    expect(approval).toMatchObject({
      kind: 'limit',
      guard: 'budget_cap',
      reason: expect.stringContaining('Budget cap exceeded: $1.10 > $1.00.'),
    });
    const settled = await world.until(plan_id, (plan) => plan.budget.reserved_usd === 0);
    expect(settled.budget).toMatchObject({ spent_usd: 1, remaining_usd: 0 });
    expect(world.receiver.received('fifty')).toHaveLength(10);
    expect(world.receiver.distinct('fifty')).toBe(10);
  });

  test('20 approvals of one limit sent at once raise it once', async () => {
    const calls = Array.from({ length: 6 }, (_, index) => ({
      tool: 'test/priced',
      arguments: { url: world.receiver.at('race'), label: `${index}` },
    }));
    const action = await world.addAction(script('race', [{ calls }]));
    const { plan_id } = await world.use(action, { guardrails: { tool_budget: 0.1 } });
    const approval = await world.pending(plan_id);
    const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => world.approve(approval, { cost_usd: 0.2 })));
    expect(outcomes.filter((outcome) => outcome.status === 'fulfilled')).toHaveLength(1);
    const next = await world.pending(plan_id);
    expect(next.reason).toContain('Budget cap exceeded: $0.40 > $0.30.');
    await world.until(plan_id, (plan) => plan.budget.reserved_usd === 0);
    expect(world.receiver.received('race')).toHaveLength(3);
  });

  test('a passing failure is retried under one idempotency key', async () => {
    const action = await world.addAction(
      script('retry', [{ call: { tool: 'test/fail_transient', arguments: { url: world.receiver.at('retry'), times: 1 } } }]),
    );
    const { plan_id } = await world.use(action);
    await world.until(plan_id, (plan) => plan.state === 'applied');
    expect(world.receiver.received('retry')).toHaveLength(2);
    expect(world.receiver.distinct('retry')).toBe(1);
  });

  test.each(['../outside.md', '/etc/outside.md', 'a/../../outside.md', 'nul\0.md', `${'long/'.repeat(900)}x.md`, ''])(
    'a call that would write to %j writes nothing, and says why',
    async (path) => {
      const name = `path-${(await world.totalPlans()).toString()}`;
      const action = await world.addAction({
        ...script(name, [{ call: { tool: 'write_file', arguments: { path, content: 'x' } } }]),
        project: 'example',
        apply: 'project',
      });
      const { plan_id } = await world.use(action);
      const plan = await world.until(plan_id, ({ state }) => !['queued', 'running', 'complete'].includes(state));
      expect(plan.state).not.toBe('applied');
      expect((await world.human.call('_cleveragents/plan/diff', { plan_id })).files).toEqual([]);
      const reason = JSON.stringify([plan.error?.last.message, plan.pending.map((each) => each.reason)]);
      expect(reason).toContain('arguments.path');
    },
  );

  test('an unsafe tool is refused under a profile that forbids it, whoever would approve', async () => {
    const action = await world.addAction(
      script('unsafe', [{ call: { tool: 'test/unsafe', arguments: { url: world.receiver.at('unsafe') } } }]),
    );
    const { plan_id } = await world.use(action);
    await world.until(plan_id, (plan) => plan.state !== 'running' && plan.state !== 'queued');
    await sleep(200);
    expect(world.receiver.received('unsafe')).toEqual([]);
    const { entries } = await world.human.call('_cleveragents/plan/guard/audit', { plan_id });
    expect(entries.find((entry) => entry.result === 'denied')?.guard_name).toBe('unsafe_tools');
  });
});

describe('the command line', () => {
  const json = async (...args: readonly string[]) => {
    const { code, stdout } = await runAgents([...args, '--format', 'json'], world.server.connection);
    return { code, answer: JSON.parse(stdout) as JsonObject };
  };

  test('sets the cap of a plan and shows it; what is not on its list is said to be absent; a plan that is not there is exit code 3', async () => {
    const action = await world.addAction(script('guards', [{ ask: 'Go on?' }]));
    const { plan_id } = await world.use(action);
    expect((await json('plan', 'guard', 'set', plan_id, '--max-cost', '10')).code).toBe(0);
    const shown = await json('plan', 'guard', 'show', plan_id);
    expect(shown).toMatchObject({ code: 0, answer: { data: { policy: { max_total_cost: 10 } } } });
    expect((await runAgents(['plan', 'guard', 'show', plan_id], world.server.connection)).stdout).toMatch(/max_total_cost.*10/);
    const absent = await runAgents(['plan', 'guard', 'denylist', 'remove', plan_id, 'no_such_tool'], world.server.connection);
    expect(absent.code).not.toBe(0);
    expect(`${absent.stdout}${absent.stderr}`).toContain("'no_such_tool' is not on the denylist of this plan");
    const unknown = await json('plan', 'guard', 'show', '01JZZZZZZZZZZZZZZZZZZZZZZZ');
    expect(unknown).toMatchObject({ code: 3, answer: { exit_code: 3 } });
    expect(JSON.stringify(unknown.answer)).toContain('-32001');
  });

  test('makes one session by one create, and the same one when its id is given again', async () => {
    const listed = async () => {
      const { answer } = await json('session', 'list');
      return (answer as { data: { sessions: { session_id: string }[] } }).data.sessions.map(({ session_id: id }) => id);
    };
    const before = await listed();
    const first = await json('session', 'create', '--session-id', 'only-once');
    expect(first).toMatchObject({ code: 0, answer: { data: { session_id: 'only-once' } } });
    expect(await listed()).toHaveLength(before.length + 1);
    expect(await json('session', 'create', '--session-id', 'only-once')).toMatchObject({
      code: 0,
      answer: { data: { session_id: 'only-once' } },
    });
    expect((await listed()).filter((id) => id === 'only-once')).toEqual(['only-once']);
    expect(await listed()).toHaveLength(before.length + 1);
  });

  test('makes a session with a cap, shows it, and refuses one below zero', async () => {
    expect((await json('session', 'create', '--session-id', 'capped', '--max-cost', '2')).code).toBe(0);
    expect(await json('session', 'show', 'capped')).toMatchObject({ code: 0, answer: { data: { max_cost: 2 } } });
    const negative = await json('session', 'create', '--session-id', 'negative', '--max-cost', '-1');
    expect(negative.code).not.toBe(0);
    expect((await json('session', 'show', 'negative')).code).toBe(3);
  });
});

function script(name: string, execute: readonly JsonObject[]): ActionDocument {
  return {
    name: `story-${name}`,
    description: 'A plan of the test',
    actor: 'scripted/steps',
    automation_profile: 'supervised',
    apply: 'none',
    execute: [...execute],
  };
}

const answerTo = (approval: JsonObject | undefined): JsonObject => ({
  approval_id: approval?.['approval_id'] ?? null,
  decision: 'approve',
  digest: approval?.['digest'] ?? null,
});
