/** A secret that somebody put into a text is not shown by what tells of a plan; and a plain A2A caller sees that a plan is halted. */
import { beforeEach, describe, expect, it } from 'vitest';
import { EXTENSION_URI } from '../../src/a2a/extension.ts';
import { sendMessage } from '../../src/app/send-message.ts';
import { runStandard } from '../../src/app/standard.ts';
import { eventsOf } from '../../src/app/task-view.ts';
import { MASK } from '../../src/core/audit/mask.ts';
import { makeService, type TestCaller, type TestService } from './service.ts';

const KEY = `sk-${'a1B2'.repeat(8)}`;
const PASSWORD = 'correct-horse-battery-9';

let service: TestService;
let admin: TestCaller;

beforeEach(async () => {
  service = makeService();
  admin = await service.caller('acme');
  await admin.call('_cleveragents/action/add', {
    action: {
      name: 'tidy',
      description: 'Tidies',
      actor: 'scripted/steps',
      apply: 'none',
      automation_profile: 'manual',
      execute: [{ say: 'Hi' }],
    },
  });
});

const use = async () => (await admin.call('_cleveragents/plan/use', { action_name: 'tidy', session_id: 's1' })).plan_id;
const open = async () => {
  const planId = service.services.ids.ulid();
  await admin.call('_cleveragents/guard/configure', { plan_id: planId, automation_profile: 'auto', session_id: 's1' });
  return planId;
};

async function taskOf(id: string) {
  const call = { principal: admin.principal, idempotencyKey: null, signal: new AbortController().signal };
  const got = await runStandard({ op: 'get', params: { id } } as never, call as never, service.services);
  if (!got.ok || !('status' in got.value)) throw new Error(JSON.stringify(got));
  return got.value;
}

describe('the reason of a halt', () => {
  it.each(['plan', 'session', 'org'] as const)('at the level %s is shown without the secret in it, wherever it is shown', async (level) => {
    const hosted = await use();
    const outside = await open();
    const reason = `leaked ${KEY} today`;
    const of = level === 'session' ? { session_id: 's1' } : {};
    const shown: unknown[] = [];
    for (const planId of level === 'plan' ? [hosted, outside] : [hosted]) {
      shown.push(await admin.call('_cleveragents/halt/set', { level, reason, ...(level === 'plan' ? { plan_id: planId } : of) }));
    }
    for (const planId of [hosted, outside]) {
      shown.push(await admin.call('_cleveragents/halt/show', { level: 'plan', plan_id: planId }));
      shown.push((await admin.call('_cleveragents/plan/status', { plan_id: planId })).halted);
    }
    if (level !== 'plan') {
      shown.push(await admin.call('_cleveragents/halt/show', { level, ...of }));
      shown.push(await admin.refused('_cleveragents/plan/use', { action_name: 'tidy', session_id: 's1' }));
    }
    shown.push(await admin.refused('_cleveragents/plan/execute', { plan_id: hosted }));
    shown.push(await admin.call('_cleveragents/guard/authorize', { plan_id: outside, tool_name: 'own.tool' }));
    shown.push((await taskOf(hosted)).status.message);
    for (const each of shown) {
      expect(JSON.stringify(each)).toContain(`leaked ${MASK} today`);
      expect(JSON.stringify(each)).not.toContain(KEY);
    }
    expect(JSON.stringify(await service.services.plans.plan('acme', hosted).log(0, 1000))).not.toContain(KEY);
  });
});

describe('a halted plan as a task', () => {
  it('says so in its metadata and its status, to readers and followers, until the halt is cleared', async () => {
    const planId = await open();
    expect((await taskOf(planId)).status.message).toBeUndefined();
    await admin.call('_cleveragents/halt/set', { level: 'session', session_id: 's1', reason: 'look first' });
    const task = await taskOf(planId);
    expect(task.status).toMatchObject({ state: 'working', message: { role: 'agent', parts: [{ kind: 'text' }] } });
    expect(JSON.stringify(task.status.message)).toContain('Halted at the level session: look first.');
    expect(task.metadata?.[EXTENSION_URI]).toMatchObject({ halted: { level: 'session', reason: 'look first' } });
    const snapshot = await service.services.plans.plan('acme', planId).read();
    if (snapshot === null) throw new Error('it is there');
    const update = { kind: 'status', seq: 2, at: '', snapshot, said: null, event: 'halted' } as const;
    expect(eventsOf(update, () => false)).toMatchObject([
      { kind: 'status', final: false, status: task.status, metadata: { [EXTENSION_URI]: { halted: { level: 'session' } } } },
    ]);
    await admin.call('_cleveragents/halt/clear', { level: 'session', session_id: 's1' });
    const after = await taskOf(planId);
    expect(after.status.message).toBeUndefined();
    expect(after.metadata?.[EXTENSION_URI]).not.toHaveProperty('halted');
  });

  it('that waits for somebody says it beside what it asks, and one that has ended no more', async () => {
    const planId = await use();
    await admin.call('_cleveragents/halt/set', { level: 'plan', plan_id: planId, reason: 'look first' });
    const { status } = await taskOf(planId);
    expect(status.state).toBe('input-required');
    expect(JSON.stringify(status.message)).toMatch(/Halted at the level plan: look first.*Approval /);
    await admin.call('_cleveragents/plan/cancel', { plan_id: planId });
    const ended = await taskOf(planId);
    expect(JSON.stringify(ended)).not.toContain('look first');
  });
});

describe('what tells of a plan', () => {
  it('has no secret of the messages in the history of its task; a file in them is as it was', async () => {
    const bytes = btoa(`token=${PASSWORD}`);
    const parts = [
      { kind: 'text', text: `use ${KEY} please` },
      { kind: 'data', data: { password: PASSWORD, user: 'bob' } },
      { kind: 'url', url: `https://bob:${PASSWORD}@example.com/` },
      { kind: 'raw', raw: bytes, filename: 'a.bin' },
    ];
    const sent = await sendMessage(
      {
        message: {
          messageId: service.services.ids.ulid(),
          role: 'user',
          parts,
          contextId: 's1',
          metadata: { [EXTENSION_URI]: { action: 'tidy' }, own: { api_key: PASSWORD } },
        },
        configuration: { returnImmediately: true },
      } as never,
      { principal: admin.principal, idempotencyKey: null },
      service.services,
    );
    if (!sent.ok || sent.value.kind !== 'plan') throw new Error(JSON.stringify(sent));
    const { snapshot } = sent.value;
    const task = await taskOf(snapshot.plan.id);
    const [said] = snapshot.plan.messages;
    if (said === undefined) throw new Error('the message is kept');
    const streamed = eventsOf({ kind: 'status', seq: 1, at: '', snapshot, said, event: 'message_said' }, () => false);
    const tree = await admin.call('_cleveragents/plan/tree', { plan_id: snapshot.plan.id });
    for (const shown of [task, streamed]) {
      const text = JSON.stringify(shown);
      for (const secret of [KEY, PASSWORD]) expect(text).not.toContain(secret);
      expect(text).toContain(`use ${MASK} please`);
      expect(text).toContain(bytes);
      expect(text).toContain('"user":"bob"');
    }
    expect(JSON.stringify(tree)).not.toContain(KEY);
  });

  it('has none in question, choice, alternatives and rationale of its decisions', async () => {
    const planId = await use();
    const { plans } = service.services;
    const secretive = (text: string) => `${text} ${KEY} there`;
    const port = plans.plan('acme', planId);
    const snapshot = await port.read();
    const [root] = snapshot?.plan.decisions ?? [];
    if (snapshot === null || root === undefined) throw new Error('it has a root');
    const decision = {
      ...root,
      id: 'd1',
      parentId: root.id,
      question: secretive('question'),
      chosen: secretive('choice'),
      alternatives: [secretive('alternative')],
      rationale: secretive('rationale'),
    };
    const read = async () => ({ ...snapshot, plan: { ...snapshot.plan, decisions: [root, decision] } });
    const deciding = makeService({ ...service.services, plans: { ...plans, plan: (org, id) => ({ ...plans.plan(org, id), read }) } });
    const tree = await (await deciding.caller('acme')).call('_cleveragents/plan/tree', { plan_id: planId });
    expect(tree.decisions[1]).toMatchObject({
      question: `question ${MASK} there`,
      chosen: `choice ${MASK} there`,
      alternatives: [`alternative ${MASK} there`],
      rationale: `rationale ${MASK} there`,
    });
  });

  it('has none in the trail as metadata, neither in its guardrails nor in what was brought along', async () => {
    const planId = service.services.ids.ulid();
    await admin.call('_cleveragents/guard/configure', { plan_id: planId, automation_profile: 'auto', session_id: 's1' });
    await admin.call('_cleveragents/guard/load_from_metadata', {
      plan_id: planId,
      metadata: {
        guardrail_audit_trail: {
          entries: [
            {
              timestamp: '2026-11-30T12:00:00.000Z',
              event_type: 'tool_blocked',
              guard_name: 'tool',
              result: 'denied',
              reason: `saw ${KEY}`,
              context: { password: PASSWORD },
            },
          ],
        },
        autonomy_guardrails: { required_confirmations: [`deploy ${KEY}`] },
      } as never,
    });
    const shown = [
      await admin.call('_cleveragents/guard/get_audit_trail_as_metadata', { plan_id: planId }),
      await admin.call('_cleveragents/guard/get_audit_trail', { plan_id: planId }),
    ];
    for (const each of shown) {
      for (const secret of [KEY, PASSWORD]) expect(JSON.stringify(each)).not.toContain(secret);
      expect(JSON.stringify(each)).toContain(`saw ${MASK}`);
    }
    expect(JSON.stringify(shown[0])).toContain(`deploy ${MASK}`);
  });
});
