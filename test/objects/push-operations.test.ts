/** Webhooks by the standard operations: rules of ids, what is refused and stores nothing, and what is shown. */
import { ulid } from 'ulid';
import { describe, expect, it } from 'vitest';
import { EXTENSION_URI } from '../../src/a2a/extension.ts';
import type { PushConfig, PushConfigInput, PushListPage, Task } from '../../src/a2a/model.ts';
import { type PushRequest, runPush } from '../../src/app/push-configs.ts';
import { runStandard, type StandardContext } from '../../src/app/standard.ts';
import type { Principal } from '../../src/core/principal.ts';
import { MAX_PUSH_CONFIGS } from '../../src/core/push/push-config.ts';
import type { Refusal } from '../../src/core/refusal.ts';
import type { Result } from '../../src/core/result.ts';
import {
  addAction,
  addKey,
  isTerminal,
  isWaiting,
  logOf,
  newOrg,
  onlyPending,
  services,
  startSteps,
  track,
  until,
} from './plan-support.ts';
import { openReceiver, pushesOf, untilArrived } from './push-receiver.ts';

const contextOf = (principal: Principal, version: '1.0' | '0.3' = '1.0'): StandardContext => ({
  principal,
  version,
  idempotencyKey: null,
  extensionActivated: false,
  signal: new AbortController().signal,
});

async function push<T>(principal: Principal, request: PushRequest, version: '1.0' | '0.3' = '1.0'): Promise<T> {
  const answer = await runPush(request, contextOf(principal, version), services);
  if (!answer.ok) throw new Error(JSON.stringify(answer.error));
  return answer.value as T;
}

async function refused(answer: Promise<Result<unknown, Refusal>>): Promise<Refusal> {
  const result = await answer;
  if (result.ok) throw new Error(JSON.stringify(result.value));
  return result.error;
}

async function waitingPlan(principal: Principal): Promise<string> {
  const planId = await startSteps(principal, [{ ask: 'Go on?' }]);
  track(principal, planId);
  await until(principal, planId, isWaiting);
  return planId;
}

const HOOK = 'https://hooks.example.com/a2a';

const create = (taskId: string, config: Partial<PushConfigInput> = {}): PushRequest => ({
  op: 'pushCreate',
  params: { taskId, config: { url: HOOK, ...config } },
});

async function send(principal: Principal, version: '1.0' | '0.3', actionName: string | null, pushConfig: PushConfigInput, taskId?: string) {
  const message = {
    messageId: ulid(),
    role: 'user' as const,
    parts: [{ kind: 'text' as const, text: 'yes' }],
    ...(actionName === null ? {} : { metadata: { [EXTENSION_URI]: { action: actionName, automation_profile: 'auto' } } }),
    ...(taskId === undefined ? {} : { taskId }),
  };
  const params = { message, configuration: { returnImmediately: true, pushConfig } };
  const sent = await runStandard({ op: 'send', params }, contextOf(principal, version), services);
  if (sent.ok) track(principal, (sent.value as { task: Task }).task.id);
  return sent;
}

describe('A webhook is registered', () => {
  it('under the id of the task where none is given, and the same id again takes its place', async () => {
    const person = await newOrg();
    const taskId = await waitingPlan(person);
    expect(await push<PushConfig>(person, create(taskId))).toEqual({ id: taskId, taskId, url: HOOK });
    await push(person, create(taskId, { url: `${HOOK}/2` }));
    const { configs } = await push<PushListPage>(person, { op: 'pushList', params: { taskId } });
    expect(configs).toEqual([{ id: taskId, taskId, url: `${HOOK}/2` }]);
  });

  it.each(['1.0', '0.3'] as const)('and is shown without its token and its credentials (%s)', async (version) => {
    const person = await newOrg();
    const taskId = await waitingPlan(person);
    const secrets = { token: 'tok-secret', authentication: { schemes: ['Bearer'], credentials: 'cred-secret' } };
    const created = await push<PushConfig>(person, create(taskId, { id: 'mine', ...secrets }), version);
    const got = await push<PushConfig>(person, { op: 'pushGet', params: { taskId, configId: 'mine' } }, version);
    const listed = await push<PushListPage>(person, { op: 'pushList', params: { taskId } }, version);
    expect(created).toEqual({ id: 'mine', taskId, url: HOOK, authentication: { schemes: ['Bearer'] } });
    expect([got, ...listed.configs]).toEqual([created, created]);
  });

  it('ten times for a task and no more; one that is there can still be replaced', async () => {
    const person = await newOrg();
    const taskId = await waitingPlan(person);
    for (let index = 0; index < MAX_PUSH_CONFIGS; index += 1) await push(person, create(taskId, { id: `c${index}` }));
    const more = await refused(runPush(create(taskId, { id: 'more' }), contextOf(person), services));
    expect(more).toMatchObject({ kind: 'invalid', details: { limit: MAX_PUSH_CONFIGS } });
    const inline = await refused(send(person, '1.0', null, { id: 'more', url: HOOK }, taskId));
    expect(inline).toMatchObject({ kind: 'invalid', issues: [{ field: 'configuration.taskPushNotificationConfig.id' }] });
    await push(person, create(taskId, { id: 'c4', url: `${HOOK}/new` }));
    expect((await logOf(person, taskId)).filter(({ type }) => type === 'message_received')).toEqual([]);
  });

  it('and listed in pages', async () => {
    const person = await newOrg();
    const taskId = await waitingPlan(person);
    for (const id of ['b', 'd', 'a', 'e', 'c']) await push(person, create(taskId, { id }));
    const ids: string[] = [];
    for (let pageToken: string | undefined; ; ) {
      const page: PushListPage = await push(person, {
        op: 'pushList',
        params: { taskId, pageSize: 2, ...(pageToken ? { pageToken } : {}) },
      });
      ids.push(...page.configs.map(({ id }) => id));
      if (page.nextPageToken === '') break;
      pageToken = page.nextPageToken;
    }
    expect(ids).toEqual(['a', 'b', 'c', 'd', 'e']);
    const bad = await refused(runPush({ op: 'pushList', params: { taskId, pageToken: '~' } }, contextOf(person), services));
    expect(bad).toMatchObject({ kind: 'invalid', issues: [{ field: 'pageToken' }] });
  });
});

describe('A webhook is found and deleted', () => {
  it('by its id; an unknown one is unknown, and deleting it is done already', async () => {
    const person = await newOrg();
    const taskId = await waitingPlan(person);
    await push(person, create(taskId, { id: 'mine' }));
    const unknown = await refused(runPush({ op: 'pushGet', params: { taskId, configId: 'other' } }, contextOf(person), services));
    expect(unknown).toMatchObject({ kind: 'not_found', entity: 'push_config' });
    expect(await push(person, { op: 'pushDelete', params: { taskId, configId: 'other' } })).toBeUndefined();
    expect(await push(person, { op: 'pushDelete', params: { taskId, configId: 'mine' } })).toBeUndefined();
    expect(await push(person, { op: 'pushDelete', params: { taskId, configId: 'mine' } })).toBeUndefined();
    expect(await pushesOf(person, taskId)).toEqual([]);
  });

  it('in 0.3 without an id, or as the default: the one that was registered so, else the first', async () => {
    const person = await newOrg();
    const taskId = await waitingPlan(person);
    await push(person, create(taskId, { id: 'a' }), '0.3');
    for (const configId of [undefined, 'default'])
      expect((await push<PushConfig>(person, { op: 'pushGet', params: { taskId, configId } }, '0.3')).id).toBe('a');
    await push(person, create(taskId), '0.3');
    for (const configId of [undefined, 'default'])
      expect((await push<PushConfig>(person, { op: 'pushGet', params: { taskId, configId } }, '0.3')).id).toBe(taskId);
    const asId = await refused(runPush({ op: 'pushGet', params: { taskId, configId: 'default' } }, contextOf(person), services));
    expect(asId.kind).toBe('not_found');
  });

  it('by nobody else: a task of another org is unknown to every operation, whatever is wrong beside it', async () => {
    const [owner, stranger] = [await newOrg(), await newOrg()];
    const taskId = await waitingPlan(owner);
    await push(owner, create(taskId, { id: 'mine' }));
    const requests: readonly PushRequest[] = [
      create(taskId),
      create(taskId, { url: 'http://127.0.0.1/' }),
      { op: 'pushGet', params: { taskId, configId: 'mine' } },
      { op: 'pushList', params: { taskId } },
      { op: 'pushDelete', params: { taskId, configId: 'mine' } },
    ];
    for (const request of requests)
      expect(await refused(runPush(request, contextOf(stranger), services))).toMatchObject({ kind: 'not_found', entity: 'task' });
    for (const request of [create('no-id'), { op: 'pushList', params: { taskId: ulid() } } satisfies PushRequest])
      expect(await refused(runPush(request, contextOf(owner), services))).toMatchObject({ kind: 'not_found', entity: 'task' });
    expect(await pushesOf(owner, taskId)).toHaveLength(1);
  });
});

describe('A webhook is refused', () => {
  const TARGETS = [
    'http://hooks.example.com/',
    'https://127.0.0.1/',
    'https://localhost/',
    'https://10.1.2.3/',
    'https://169.254.169.254/',
    'https://[::1]/',
    'https://[fd00::1]/',
    'https://100.64.0.1/',
    'file:///etc/passwd',
    'https://user:pw@hooks.example.com/',
  ];

  it('where it leads to what is not public, by itself and with a message, and nothing is stored or begun', async () => {
    const person = await newOrg();
    const taskId = await waitingPlan(person);
    const action = await addAction(person, { name: `a-${ulid().toLowerCase()}`, execute: [{ say: 'hello' }], apply: 'none' });
    const before = (await logOf(person, taskId)).length;
    for (const url of TARGETS) {
      expect(await refused(runPush(create(taskId, { url }), contextOf(person), services)), url).toMatchObject({
        kind: 'invalid',
        issues: [{ field: 'url' }],
      });
      expect(await refused(send(person, '0.3', action, { url })), url).toMatchObject({
        issues: [{ field: 'configuration.pushNotificationConfig.url' }],
      });
      expect(await refused(send(person, '1.0', null, { url }, taskId)), url).toMatchObject({
        issues: [{ field: 'configuration.taskPushNotificationConfig.url' }],
      });
    }
    expect(await pushesOf(person, taskId)).toEqual([]);
    expect(await logOf(person, taskId)).toHaveLength(before);
    const page = await services.planIndex.list({ org: person.org, pageSize: 10 });
    expect(page.ok && page.value.rows.map((row) => row.planId)).toEqual([taskId]);
  });

  it('where its id or its secrets cannot be sent', async () => {
    const person = await newOrg();
    const taskId = await waitingPlan(person);
    const cases: readonly (readonly [Partial<PushConfigInput>, string])[] = [
      [{ id: 'with space' }, 'id'],
      [{ id: 'x'.repeat(129) }, 'id'],
      [{ token: 'x'.repeat(8193) }, 'token'],
      [{ authentication: { schemes: ['Bearer'], credentials: 'x'.repeat(8193) } }, 'authentication.credentials'],
      [{ authentication: { schemes: ['Bearer'] } }, 'authentication.credentials'],
    ];
    for (const [config, field] of cases)
      expect(await refused(runPush(create(taskId, config), contextOf(person), services))).toMatchObject({ issues: [{ field }] });
    expect(await pushesOf(person, taskId)).toEqual([]);
  });

  it('to somebody who may only approve', async () => {
    const person = await newOrg();
    const taskId = await waitingPlan(person);
    const approver: Principal = { ...(await addKey(person.org, 'human')), roles: ['viewer', 'approver'] };
    expect(await refused(send(approver, '1.0', null, { url: HOOK }, taskId))).toMatchObject({ kind: 'forbidden' });
  });
});

describe('A webhook that comes with a message', () => {
  it.each(['1.0', '0.3'] as const)('is told everything from the beginning of the task that the message made (%s)', async (version) => {
    const person = await newOrg();
    const receiver = openReceiver();
    const action = await addAction(person, { name: `a-${ulid().toLowerCase()}`, execute: [{ say: 'hello' }], apply: 'none' });
    const authentication = { schemes: ['Bearer'], credentials: 'k1' };
    const sent = await send(person, version, action, { url: receiver.url, authentication });
    if (!sent.ok) throw new Error(JSON.stringify(sent.error));
    const taskId = (sent.value as { task: Task }).task.id;
    await until(person, taskId, isTerminal);
    await untilArrived(receiver, (arrived) => arrived.at(-1)?.text.toLowerCase().includes('completed') === true);
    const [first] = receiver.arrived;
    expect(first?.sequence).toBe(1);
    expect(first?.headers.get('authorization')).toBe('Bearer k1');
    const task = version === '1.0' ? first?.body.task : first?.body;
    expect([task.id, task.status.state.toLowerCase()]).toEqual([taskId, expect.stringMatching(/submitted$/)]);
  });

  it('to a task that is there is told what the message brings about', async () => {
    const person = await newOrg();
    const receiver = openReceiver();
    const taskId = await waitingPlan(person);
    onlyPending(await until(person, taskId, isWaiting));
    const sent = await send(person, '1.0', null, { url: receiver.url }, taskId);
    expect(sent.ok).toBe(true);
    await untilArrived(receiver, (arrived) => arrived.at(-1)?.body.statusUpdate?.status.state === 'TASK_STATE_COMPLETED');
    expect(receiver.arrived[0]?.body.statusUpdate.status.state).toBe('TASK_STATE_WORKING');
  });
});
