// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are templates of script steps.
import { ulid } from 'ulid';
import { describe, expect, it } from 'vitest';
import { EXTENSION_URI } from '../../src/a2a/extension.ts';
import type { Message, Task } from '../../src/a2a/model.ts';
import { type Sent, sendMessage } from '../../src/app/send-message.ts';
import { type NumberedEvent, runStandard, runStream, type StandardContext } from '../../src/app/standard.ts';
import type { PlanSnapshot } from '../../src/core/plan/snapshot.ts';
import type { Principal } from '../../src/core/principal.ts';
import type { Refusal } from '../../src/core/refusal.ts';
import type { Result } from '../../src/core/result.ts';
import {
  addAction,
  addKey,
  addProject,
  cancel,
  fileOf,
  isSettled,
  isTerminal,
  newOrg,
  onlyPending,
  pause,
  pendingOf,
  performed,
  planOf,
  rowsOf,
  services,
  startSteps,
  stateOf,
  track,
  until,
} from './plan-support.ts';

type Parts = Partial<Message> & { readonly text?: string };

function messageOf({ text, ...rest }: Parts): Message {
  return { messageId: ulid(), role: 'user', parts: text === undefined ? [] : [{ kind: 'text', text }], ...rest };
}

async function send(principal: Principal, parts: Parts, idempotencyKey: string | null = null): Promise<Result<Sent, Refusal>> {
  const sent = await sendMessage(
    { message: messageOf(parts), configuration: { returnImmediately: true } },
    { principal, idempotencyKey },
    services,
  );
  if (sent.ok && sent.value.kind === 'plan') track(principal, sent.value.snapshot.plan.id);
  return sent;
}

async function sendOk(principal: Principal, parts: Parts, idempotencyKey: string | null = null): Promise<PlanSnapshot> {
  const sent = await send(principal, parts, idempotencyKey);
  if (!sent.ok) throw new Error(JSON.stringify(sent.error));
  if (sent.value.kind !== 'plan') throw new Error('a reply');
  return sent.value.snapshot;
}

const starting = (action: string, rest: object = {}) => ({ metadata: { [EXTENSION_URI]: { action, ...rest } } });

const deciding = (
  approval: { readonly id: string; readonly digest: string },
  decision: 'approve' | 'deny' | 'answer',
  rest: object = {},
): Parts => ({
  parts: [{ kind: 'data', data: { approval_id: approval.id, decision, digest: approval.digest, ...rest } }],
});

const standard = (principal: Principal, rest: Partial<StandardContext> = {}): StandardContext => ({
  principal,
  idempotencyKey: null,
  version: '1.0',
  extensionActivated: true,
  signal: new AbortController().signal,
  ...rest,
});

/** An org with an action that edits a project and one that counts; a plan of each kind can be made to wait. */
async function setUp() {
  const person = await newOrg();
  const project = await addProject(person, { 'a.txt': 'old\n' });
  const edit = await addAction(person, {
    name: 'edit',
    execute: [{ call: { tool: 'write_file', arguments: { path: 'a.txt', content: 'new\n' } } }],
  });
  const count = await addAction(person, {
    name: 'count',
    apply: 'none',
    execute: [{ call: { tool: 'test/counter', arguments: { label: person.org } } }],
  });
  const startEdit = async (rest: object = {}) => {
    const made = await sendOk(person, { text: 'edit it', ...starting(edit, { project, automation_profile: 'supervised' }), ...rest });
    return until(person, made.plan.id, isSettled);
  };
  const startDenied = async (rest: object = {}) => {
    const made = await sendOk(person, {
      text: 'count',
      ...starting(count, { automation_profile: 'auto', guardrails: { tool_denylist: ['test/counter'] } }),
      ...rest,
    });
    return until(person, made.plan.id, isSettled);
  };
  return { person, project, edit, count, startEdit, startDenied };
}

describe('a message that starts a plan', () => {
  it('by its metadata makes it in the named context, with the message as its first', async () => {
    const { person, startEdit } = await setUp();
    const waiting = await startEdit({ contextId: 'ctx-1', messageId: 'first' });
    expect(waiting.plan.sessionId).toBe('ctx-1');
    expect(waiting.plan.messages.map((each) => each.messageId)).toEqual(['first']);
    expect(onlyPending(waiting).gate).toBe('select_tool');
    expect((await stateOf(person, waiting.plan.id)).input).toEqual({ inline: 'edit it' });
  });

  it('always makes a new one, even where another waits, and cannot name a task', async () => {
    const { startEdit, person, edit, project } = await setUp();
    const first = await startEdit({ contextId: 'ctx' });
    const second = await startEdit({ contextId: 'ctx' });
    expect(second.plan.id).not.toBe(first.plan.id);
    const both = await send(person, { text: 'x', taskId: first.plan.id, ...starting(edit, { project }) });
    expect(both).toMatchObject({ ok: false, error: { kind: 'invalid', issues: [{ field: 'message.taskId' }] } });
  });

  it('without metadata uses the default action of the org, and says what to do where there is none', async () => {
    const { person, count } = await setUp();
    expect(await send(person, { text: 'hello' })).toMatchObject({ ok: false, error: { kind: 'invalid' } });
    await services.config.set(person.org, 'org', 'core.default-action', count);
    await services.config.set(person.org, 'org', 'core.automation-profile', 'auto');
    const made = await sendOk(person, { text: 'hello' });
    await until(person, made.plan.id, isTerminal);
    expect(performed(person.org)).toHaveLength(1);
  });

  it('with an unknown action, bad arguments, an unknown profile or project makes nothing', async () => {
    const { person, edit, project } = await setUp();
    const refused = [
      await send(person, { text: 'x', ...starting('nothing') }),
      await send(person, { text: 'x', ...starting(edit, { arguments: { extra: 1 }, project }) }),
      await send(person, { text: 'x', ...starting(edit, { automation_profile: 'bold', project }) }),
      await send(person, { text: 'x', ...starting(edit, { project: 'none' }) }),
      await send(person, { text: 'x', ...starting(edit, { guardrails: { max_stepz: 1 }, project }) }),
      await send(person, { text: 'x', contextId: 'not a session', ...starting(edit, { project }) }),
      await send(person, { text: 'x', metadata: { [EXTENSION_URI]: { action: edit, projekt: project } } }),
    ];
    expect(refused.map((each) => (each.ok ? 'made' : each.error.kind))).toEqual(refused.map(() => 'invalid'));
    expect(await services.planIndex.list({ org: person.org, pageSize: 10 })).toMatchObject({ ok: true, value: { rows: [] } });
  });
});

describe('a plain text', () => {
  it.each([
    ['approve', 'applied'],
    ['LGTM!', 'applied'],
    ['Approved — proceed with the apply phase.', 'applied'],
    ['deny', 'asked'],
    ['yes, after you rename it', 'kept'],
    ['approve the other one', 'kept'],
    ['Approved — proceed with the execute phase.', 'kept'],
    ['', 'kept'],
  ])('%j to the one plan of its context that waits at one phase gate: %s', async (text, expected) => {
    const { person, project, startEdit } = await setUp();
    const waiting = await startEdit({ contextId: 'ctx' });
    const gate = onlyPending(waiting);
    const after = await sendOk(person, { text, contextId: 'ctx' });
    expect(after.plan.id).toBe(waiting.plan.id);
    if (expected === 'applied') {
      const done = await until(person, after.plan.id, isTerminal);
      expect(done.plan.state).toBe('applied');
      expect(await fileOf(person, project, 'a.txt')).toBe('new\n');
      return;
    }
    expect(after.plan.state).toBe('waiting');
    expect(await fileOf(person, project, 'a.txt')).toBe('old\n');
    expect(after.plan.messages).toHaveLength(2);
    if (expected === 'kept') expect(onlyPending(after).id).toBe(gate.id);
    else expect(onlyPending(after).kind).toBe('next_step');
    expect((await services.planIndex.list({ org: person.org, pageSize: 10 })).ok).toBe(true);
    const rows = await services.planIndex.list({ org: person.org, pageSize: 10 });
    expect(rows.ok && rows.value.rows).toHaveLength(1);
  });

  it('never decides a tool call, whoever sends it and wherever', async () => {
    const { person, startDenied } = await setUp();
    const waiting = await startDenied({ contextId: 'ctx' });
    const call = onlyPending(waiting);
    for (const target of [{ taskId: waiting.plan.id }, { contextId: 'ctx' }, { contextId: `task_${waiting.plan.id}` }]) {
      const after = await sendOk(person, { text: 'approve', ...target });
      expect(onlyPending(after).id).toBe(call.id);
    }
    expect(performed(person.org)).toHaveLength(0);
    await sendOk(person, deciding(call, 'approve'));
    await until(person, waiting.plan.id, isTerminal);
    expect(performed(person.org)).toHaveLength(1);
  });

  it('of somebody who may not approve decides nothing, and the trail says who tried', async () => {
    const { person, startEdit } = await setUp();
    const waiting = await startEdit({ contextId: 'ctx' });
    const agent = await addKey(person.org, 'agent');
    expect(await send(agent, { text: 'approve', taskId: waiting.plan.id })).toMatchObject({ ok: false, error: { kind: 'forbidden' } });
    expect((await rowsOf(person, waiting.plan.id, 'approval_refused')).map((row) => row.actor.id)).toEqual([agent.keyId]);
    expect((await planOf(person, waiting.plan.id).read())?.plan.state).toBe('waiting');
  });

  it('of the requester decides nothing while two people could approve', async () => {
    const { person, startEdit } = await setUp();
    const other = await addKey(person.org, 'human');
    const waiting = await startEdit({ contextId: 'ctx' });
    expect(await send(person, { text: 'approve', taskId: waiting.plan.id })).toMatchObject({ ok: false, error: { kind: 'forbidden' } });
    await sendOk(other, { text: 'approve', taskId: waiting.plan.id });
    expect((await until(person, waiting.plan.id, isTerminal)).plan.state).toBe('applied');
  });

  it('of a key that was revoked a moment ago decides nothing', async () => {
    const { person, startEdit } = await setUp();
    const waiting = await startEdit({ contextId: 'ctx' });
    const other = await addKey(person.org, 'human');
    await services.keys.revoke(person.org, other.keyId, new Date().toISOString());
    expect(await send(other, { text: 'approve', taskId: waiting.plan.id })).toMatchObject({
      ok: false,
      error: { kind: 'unauthenticated' },
    });
    expect((await planOf(person, waiting.plan.id).read())?.plan.state).toBe('waiting');
  });

  it('where several plans of the context wait is refused with their names, and starts nothing', async () => {
    const { person, startEdit, startDenied } = await setUp();
    const [one, two] = [await startEdit({ contextId: 'ctx' }), await startDenied({ contextId: 'ctx' })];
    const refused = await send(person, { text: 'approve', contextId: 'ctx' });
    expect(refused).toMatchObject({ ok: false, error: { kind: 'invalid', issues: [{ field: 'message.taskId' }] } });
    for (const { plan } of [one, two]) {
      expect(JSON.stringify(refused)).toContain(plan.id);
      expect(JSON.stringify(refused)).toContain(plan.approvals[0]?.id);
      expect((await planOf(person, plan.id).read())?.plan.seq).toBe(plan.seq);
    }
    expect(await services.planIndex.list({ org: person.org, pageSize: 10 })).toMatchObject({ value: { rows: [{}, {}] } });
    // A structured answer says which one by itself.
    await sendOk(person, { contextId: 'ctx', ...deciding(onlyPending(two), 'approve') });
    await until(person, two.plan.id, isTerminal);
    expect((await planOf(person, one.plan.id).read())?.plan.state).toBe('waiting');
  });

  it('answers the one question that is asked, whoever asks and with any words', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [{ id: 'which', ask: 'Which file?' }, { say: 'You said ${steps.which.result}' }]);
    await until(person, planId, isSettled);
    const agent = await addKey(person.org, 'agent');
    await sendOk(agent, { text: 'README.md, please', taskId: planId });
    const done = await until(person, planId, isTerminal);
    expect(JSON.stringify(done.plan.messages)).toContain('You said README.md, please');
  });

  it('is guidance for a plan that asks how to go on, and cancel ends it', async () => {
    const { person, startEdit } = await setUp();
    const waiting = await startEdit({ contextId: 'ctx' });
    const asked = await sendOk(person, { text: 'no', contextId: 'ctx' });
    expect(onlyPending(asked).kind).toBe('next_step');
    const guided = await sendOk(person, { text: 'do it again, nicely', contextId: 'ctx' });
    expect(guided.plan.id).toBe(waiting.plan.id);
    const again = await until(person, waiting.plan.id, (snapshot) => isSettled(snapshot) && onlyPending(snapshot).gate === 'select_tool');
    expect(again.plan.id).toBe(waiting.plan.id);
    expect((await stateOf(person, waiting.plan.id)).guidance).toEqual(['do it again, nicely']);
    await sendOk(person, { text: 'denied', contextId: 'ctx' });
    const ended = await sendOk(person, { text: 'Cancel.', contextId: 'ctx' });
    expect(ended.plan.state).toBe('cancelled');
  });

  it('to a plan at work is guidance for its next step', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [{ call: { tool: 'test/slow', arguments: { label: person.org, ms: 300 } } }, { say: 'done' }]);
    await until(person, planId, () => performed(person.org).length === 1);
    await sendOk(person, { text: 'hurry', taskId: planId });
    await until(person, planId, isTerminal);
    expect((await stateOf(person, planId)).guidance).toEqual(['hurry']);
  });
});

describe('a structured answer', () => {
  it('decides alone; where the text beside it says something else nothing is decided', async () => {
    const { person, startDenied } = await setUp();
    const waiting = await startDenied();
    const call = onlyPending(waiting);
    const data = { kind: 'data', data: { approval_id: call.id, decision: 'approve', digest: call.digest } } as const;
    const contradiction = await send(person, { parts: [{ kind: 'text', text: 'no' }, data], taskId: waiting.plan.id });
    expect(contradiction).toMatchObject({ ok: false, error: { kind: 'invalid' } });
    expect(performed(person.org)).toHaveLength(0);
    await sendOk(person, { parts: [{ kind: 'text', text: 'Yes.' }, data] });
    await until(person, waiting.plan.id, isTerminal);
    expect(performed(person.org)).toHaveLength(1);
  });

  it('with a wrong digest, to another context or about an unknown approval changes nothing', async () => {
    const { person, startDenied } = await setUp();
    const waiting = await startDenied({ contextId: 'ctx' });
    const call = onlyPending(waiting);
    const before = (await planOf(person, waiting.plan.id).read())?.plan.approvals;
    const refused = [
      await send(person, deciding({ ...call, digest: '0'.repeat(64) }, 'approve')),
      await send(person, { contextId: 'other', ...deciding(call, 'approve') }),
      await send(person, deciding({ ...call, id: `${waiting.plan.id}.77` }, 'approve')),
      await send(person, deciding({ ...call, id: '01JAAAAAAAAAAAAAAAAAAAAAAA.3' }, 'approve')),
      await send(person, deciding({ ...call, id: 'nonsense' }, 'approve')),
    ];
    expect(refused.every((each) => !each.ok)).toBe(true);
    expect((await planOf(person, waiting.plan.id).read())?.plan.approvals).toEqual(before);
    expect(performed(person.org)).toHaveLength(0);
  });

  it('that comes again after the step ran is answered with the task as it is, without a second run', async () => {
    const { person, startDenied } = await setUp();
    const waiting = await startDenied();
    const call = onlyPending(waiting);
    await sendOk(person, deciding(call, 'approve'));
    await Promise.all(Array.from({ length: 5 }, () => sendOk(person, deciding(call, 'approve'))));
    const ended = await until(person, waiting.plan.id, isTerminal);
    expect(performed(person.org)).toHaveLength(1);
    expect((await sendOk(person, deciding(call, 'approve'))).plan).toEqual(ended.plan);
    expect(await send(person, deciding(call, 'deny'))).toMatchObject({ ok: false, error: { kind: 'invalid_state' } });
    const other = await addKey(person.org, 'human');
    expect(await send(other, deciding(call, 'approve'))).toMatchObject({ ok: false, error: { kind: 'invalid_state' } });
    expect(performed(person.org)).toHaveLength(1);
  });

  it('for both of two waiting calls at once runs both; with one wrong digest neither', async () => {
    const person = await newOrg();
    const calls = [1, 2].map((padding) => ({ tool: 'test/counter', arguments: { label: person.org, padding: `${padding}` } }));
    const planId = await startSteps(person, [{ calls }], { guardrails: { tool_denylist: ['test/counter'] } });
    const [first, second] = pendingOf(await until(person, planId, isSettled));
    if (first === undefined || second === undefined) throw new Error('two approvals should be pending');
    const data = (approval: typeof first, digest: string) =>
      ({ kind: 'data', data: { approval_id: approval.id, decision: 'approve', digest } }) as const;
    expect(await send(person, { parts: [data(first, first.digest), data(second, first.digest)] })).toMatchObject({ ok: false });
    await pause(50);
    expect(performed(person.org)).toHaveLength(0);
    expect(pendingOf(await until(person, planId, isSettled))).toHaveLength(2);
    await sendOk(person, { text: 'approve', taskId: planId });
    expect(performed(person.org)).toHaveLength(0);
    await sendOk(person, { parts: [data(second, second.digest)] });
    await until(person, planId, () => performed(person.org).length === 1);
    expect(performed(person.org)[0]?.args['padding']).toBe('2');
    await sendOk(person, { parts: [data(first, first.digest)] });
    await until(person, planId, isTerminal);
    expect(performed(person.org)).toHaveLength(2);
  });
});

describe('a message to a task that has ended', () => {
  it.each(['applied', 'cancelled', 'errored'])(
    '(%s) is refused by send and stream, appended nowhere, and says what to do',
    async (state) => {
      const person = await newOrg();
      const steps =
        state === 'errored'
          ? [{ call: { tool: 'test/fail_permanent', arguments: {} } }]
          : state === 'cancelled'
            ? [{ ask: 'Go on?' }]
            : [{ say: 'done' }];
      const planId = await startSteps(person, steps, { profile: state === 'errored' ? 'ci' : 'auto' });
      await until(person, planId, isSettled);
      if (state === 'cancelled') await cancel(person, planId);
      const before = await until(person, planId, isTerminal);
      expect(before.plan.state).toBe(state);
      const params = { message: messageOf({ text: 'approve', taskId: planId }), configuration: { returnImmediately: true } };
      const refusals = [
        await runStandard({ op: 'send', params }, standard(person), services),
        await runStream({ op: 'stream', params }, standard(person), services, null),
      ];
      for (const refused of refusals) {
        expect(refused).toMatchObject({ ok: false, error: { kind: 'invalid_state', details: { reason: 'UNSUPPORTED_OPERATION' } } });
        expect(!refused.ok && refused.error.message).toContain('start a new task in the same context');
      }
      expect(await planOf(person, planId).read()).toEqual(before);
    },
  );
});

describe('a retry of the first message', () => {
  it('with the same key and body, ten times at once, makes one plan and runs it once', async () => {
    const { person, count } = await setUp();
    const parts = { messageId: 'same', text: 'count', ...starting(count, { automation_profile: 'auto' }) };
    const sent = await Promise.all(Array.from({ length: 10 }, () => sendOk(person, parts, 'key-1')));
    expect(new Set(sent.map((each) => each.plan.id)).size).toBe(1);
    expect(new Set(sent.map((each) => each.plan.sessionId)).size).toBe(1);
    await until(person, sent[0]?.plan.id ?? '', isTerminal);
    expect((await sendOk(person, { ...parts, messageId: 'another' }, 'key-1')).plan.id).toBe(sent[0]?.plan.id);
    expect(performed(person.org)).toHaveLength(1);
    const rows = await services.planIndex.list({ org: person.org, pageSize: 10 });
    expect(rows.ok && rows.value.rows).toHaveLength(1);
    expect(await services.sessions.list(person.org)).toHaveLength(1);
  });

  it('with the same key and another body is a conflict and runs nothing', async () => {
    const { person, count } = await setUp();
    const made = await sendOk(person, { text: 'count', ...starting(count, { automation_profile: 'auto' }) }, 'key-2');
    const other = await send(person, { text: 'count twice', ...starting(count, { automation_profile: 'auto' }) }, 'key-2');
    expect(other).toMatchObject({
      ok: false,
      error: { kind: 'already_exists', details: { idempotency_key: 'key-2', plan_id: made.plan.id } },
    });
    await until(person, made.plan.id, isTerminal);
    expect(performed(person.org)).toHaveLength(1);
  });

  it('with the same key from another caller is another plan', async () => {
    const { person, count } = await setUp();
    const agent = await addKey(person.org, 'agent');
    const parts = { text: 'count', ...starting(count, { automation_profile: 'auto', idempotency_key: 'key-3' }) };
    const [mine, theirs] = [await sendOk(person, parts), await sendOk(agent, parts)];
    expect(theirs.plan.id).not.toBe(mine.plan.id);
    await Promise.all([mine, theirs].map(({ plan }) => until(person, plan.id, isTerminal)));
    expect(performed(person.org)).toHaveLength(2);
  });

  it('finds the plan after the object was not made the first time', async () => {
    const { person, count } = await setUp();
    const parts = { text: 'count', ...starting(count, { automation_profile: 'auto' }) };
    const gone = {
      ...services,
      plans: {
        plan: (org: string, id: string) => ({
          ...services.plans.plan(org, id),
          create: () => Promise.reject(new Error('the process died')),
        }),
      },
    };
    await expect(
      sendMessage(
        { message: messageOf(parts), configuration: { returnImmediately: true } },
        { principal: person, idempotencyKey: 'key-4' },
        gone,
      ),
    ).rejects.toThrow('the process died');
    const made = await sendOk(person, parts, 'key-4');
    await until(person, made.plan.id, isTerminal);
    expect(performed(person.org)).toHaveLength(1);
  });
});

describe('a send', () => {
  const run = async (person: Principal, parts: Parts, returnImmediately: boolean): Promise<Task> => {
    const result = await runStandard(
      { op: 'send', params: { message: messageOf(parts), configuration: { returnImmediately } } },
      standard(person),
      services,
    );
    if (!result.ok || !('kind' in result.value) || result.value.kind !== 'task') throw new Error(JSON.stringify(result));
    track(person, result.value.task.id);
    return result.value.task;
  };

  it('that blocks answers when the plan asks a human, with what is asked', async () => {
    const { person, edit, project } = await setUp();
    const task = await run(person, { text: 'edit', ...starting(edit, { project, automation_profile: 'supervised' }) }, false);
    expect(task.status.state).toBe('input-required');
    const data = task.status.message?.parts.find((part) => part.kind === 'data');
    expect(data).toMatchObject({
      data: { kind: 'gate', approval_id: expect.stringContaining(task.id), digest: expect.any(String), diff: expect.any(Object) },
    });
  });

  it('that blocks answers when the plan has ended, and after an approval with its end', async () => {
    const { person, count, edit, project } = await setUp();
    const task = await run(person, { text: 'count', ...starting(count, { automation_profile: 'auto' }) }, false);
    expect(task.status.state).toBe('completed');
    const waiting = await run(person, { text: 'edit', ...starting(edit, { project, automation_profile: 'supervised' }) }, false);
    const ended = await run(person, { text: 'approve', taskId: waiting.id }, false);
    expect(ended.status.state).toBe('completed');
    expect(ended.artifacts?.map((artifact) => artifact.artifactId)).toEqual(['result', 'changes.diff']);
  });

  it('that does not block answers at once, while a long step runs', async () => {
    const person = await newOrg();
    const slow = await addAction(person, {
      name: 'slow',
      apply: 'none',
      execute: [{ call: { tool: 'test/slow', arguments: { label: person.org, ms: 2000 } } }],
    });
    const began = Date.now();
    const task = await run(person, { text: 'go', ...starting(slow, { automation_profile: 'auto' }) }, true);
    expect(Date.now() - began).toBeLessThan(1_000);
    expect(['submitted', 'working']).toContain(task.status.state);
  });

  it('to task_<plan id> means that plan, and one that does not exist answers so', async () => {
    const { person, startEdit } = await setUp();
    const waiting = await startEdit();
    const task = await run(person, { text: 'Approved — proceed with the apply phase.', contextId: `task_${waiting.plan.id}` }, false);
    expect(task).toMatchObject({ id: waiting.plan.id, status: { state: 'completed' } });
    expect(await send(person, { text: 'approve', contextId: 'task_01JAAAAAAAAAAAAAAAAAAAAAAA' })).toMatchObject({
      ok: false,
      error: { kind: 'not_found' },
    });
    expect(await send(person, { text: 'approve', contextId: 'ctx', taskId: waiting.plan.id })).toMatchObject({
      ok: false,
      error: { kind: 'invalid' },
    });
  });
});

describe('a stream', () => {
  const collect = async (events: AsyncIterable<NumberedEvent>): Promise<NumberedEvent[]> => {
    const all: NumberedEvent[] = [];
    for await (const event of events) all.push(event);
    return all;
  };

  it('of a plan whose second step needs an approval carries the question, ends there, and says the same as get', async () => {
    const person = await newOrg();
    const action = await addAction(person, {
      name: 'two',
      apply: 'none',
      execute: [{ say: 'first' }, { id: 'second', call: { tool: 'test/priced', arguments: { label: person.org } } }],
    });
    const message = messageOf({
      text: 'go',
      ...starting(action, { automation_profile: 'auto', guardrails: { tool_denylist: ['test/priced'] } }),
    });
    const streamed = await runStream(
      { op: 'stream', params: { message, configuration: { returnImmediately: false } } },
      standard(person),
      services,
      null,
    );
    if (!streamed.ok) throw new Error(JSON.stringify(streamed.error));
    const events = await collect(streamed.value);
    const [first] = events;
    if (first?.event.kind !== 'task') throw new Error('the first event is the task');
    const { id } = first.event.task;
    track(person, id);
    const last = events.at(-1)?.event;
    if (last?.kind !== 'status') throw new Error('the last event is a status');
    expect(last).toMatchObject({ final: true, status: { state: 'input-required' } });
    const shown = JSON.stringify(last.status.message);
    for (const part of ['test/priced', person.org, '"cost_usd":0.1', `${id}.`]) expect(shown).toContain(part);
    const got = await runStandard({ op: 'get', params: { id } }, standard(person), services);
    expect(got.ok && 'status' in got.value && got.value.status.state).toBe('input-required');
    const numbers = events.map((each) => each.id ?? 0);
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
    expect(events.filter((each) => each.event.kind === 'task')).toHaveLength(1);
  });

  it('that is taken up again begins with the whole task, or behind the last event that was seen', async () => {
    const person = await newOrg();
    const steps = [{ ask: 'Go?' }, ...Array.from({ length: 3 }, (_, index) => ({ say: `line ${index}` }))];
    const planId = await startSteps(person, steps);
    const waiting = await until(person, planId, isSettled);
    const fresh = await runStream({ op: 'subscribe', params: { id: planId } }, standard(person), services, null);
    const behind = await runStream({ op: 'subscribe', params: { id: planId } }, standard(person), services, waiting.plan.seq);
    if (!fresh.ok || !behind.ok) throw new Error('refused');
    const both = Promise.all([collect(fresh.value), collect(behind.value)]);
    await pause(50);
    await sendOk(person, { text: 'yes', taskId: planId });
    const [whole, rest] = await both;
    expect(whole[0]?.event).toMatchObject({ kind: 'task', task: { id: planId, status: { state: 'input-required' } } });
    expect(whole.slice(1)).toEqual(rest);
    expect(rest.every((each) => (each.id ?? 0) > waiting.plan.seq)).toBe(true);
    expect(rest.at(-1)?.event).toMatchObject({ kind: 'status', final: true, status: { state: 'completed' } });
    const over = await runStream({ op: 'subscribe', params: { id: planId } }, standard(person), services, null);
    expect(over).toMatchObject({ ok: false, error: { kind: 'invalid_state' } });
  });
});
