/** A task whose approvals are awaited elsewhere is `auth-required` on both wires, in lists, in streams and in the index (`approvals.task_state`). */
import { createExecutionContext } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { ulid } from 'ulid';
import { expect, it } from 'vitest';
import { findOperation, type OperationName, type ParamsInputOf, type ResultOf } from '../../src/api/operations.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import { formatApiKey } from '../../src/core/api-key.ts';
import type { JsonObject } from '../../src/core/json.ts';
import type { Principal } from '../../src/core/principal.ts';
import worker from '../worker/test-worker.ts';
import {
  answer,
  approve,
  cancel,
  evict,
  isTerminal,
  isWaiting,
  newOrg,
  now,
  onlyPending,
  services,
  sha256,
  startSteps,
  until,
} from './plan-support.ts';

async function call<N extends OperationName>(person: Principal, name: N, params: ParamsInputOf<N>): Promise<ResultOf<N>> {
  const found = findOperation(name);
  if (found === null) throw new Error(`no operation ${name}`);
  const result = await dispatchOperation(found, JSON.parse(JSON.stringify(params)), { principal: person, idempotencyKey: null }, services);
  if (!result.ok) throw new Error(`${name}: ${JSON.stringify(result.error)}`);
  return result.value as ResultOf<N>;
}

async function keyOf(person: Principal): Promise<string> {
  const [id, secret] = [ulid(), `${ulid()}${ulid()}`];
  await services.keys.create({
    org: person.org,
    id,
    name: 'p',
    kind: 'human',
    roles: [...person.roles],
    secretHash: sha256(secret),
    createdAt: now(),
    expiresAt: null,
    revokedAt: null,
  });
  return formatApiKey({ id, secret });
}

async function http(key: string, version: '1.0' | '0.3', method: string, params: JsonObject): Promise<Response> {
  const request = new Request('http://edge.test/a2a', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'a2a-version': version, authorization: `Bearer ${key}` },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  if (worker.fetch === undefined) throw new Error('the Worker answers no requests');
  return (await worker.fetch(request as never, env as never, createExecutionContext())) as unknown as Response;
}

const resultOf = async (response: Response): Promise<JsonObject> => ((await response.json()) as { result: JsonObject }).result;

const WIRES = [
  ['1.0', 'GetTask', 'SubscribeToTask', 'TASK_STATE_AUTH_REQUIRED', 'TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_COMPLETED'],
  ['0.3', 'tasks/get', 'tasks/resubscribe', 'auth-required', 'input-required', 'completed'],
] as const;

const HUMAN_ONLY = { profile: 'manual' } as const;

it.each(WIRES)('is told so on the wire %s, and a question is input-required', async (version, get, _subscribe, auth, input) => {
  const person = await newOrg();
  const key = await keyOf(person);
  await call(person, '_cleveragents/config/set', { key: 'approvals.task_state', value: 'auth-required' });
  const planId = await startSteps(person, [{ ask: 'Where?' }], HUMAN_ONLY);
  const status = async () => ((await resultOf(await http(key, version, get, { id: planId })))['status'] as JsonObject)['state'];
  const view = async () => (await call(person, '_cleveragents/plan/status', { plan_id: planId })).task_state;
  const indexed = async () => (await services.planIndex.get(person.org, planId))?.taskState;
  for (const _gate of ['decompose_task', 'create_tool']) {
    const waiting = await until(person, planId, (each) => isWaiting(each) && onlyPending(each).gate === _gate);
    expect([await status(), await view()]).toEqual([auth, 'auth-required']);
    await expect.poll(indexed).toBe('auth-required');
    await approve(person, planId, onlyPending(waiting));
  }
  const question = await until(person, planId, (each) => isWaiting(each) && onlyPending(each).kind === 'question');
  expect([await status(), await view()]).toEqual([input, 'input-required']);
  await expect.poll(indexed).toBe('input-required');
  await answer(person, planId, onlyPending(question), { decision: 'answer', text: 'there' });
  await until(person, planId, isTerminal);
});

it('is found by that state in lists, and by no other', async () => {
  const person = await newOrg();
  const key = await keyOf(person);
  const plain = await startSteps(person, [{ say: 'x' }], HUMAN_ONLY);
  await call(person, '_cleveragents/config/set', { key: 'approvals.task_state', value: 'auth-required' });
  const planId = await startSteps(person, [{ say: 'x' }], HUMAN_ONLY);
  await until(person, planId, isWaiting);
  const listed = async (status: string) =>
    ((await resultOf(await http(key, '1.0', 'ListTasks', { status })))['tasks'] as unknown as readonly { id: string }[]).map(
      ({ id }) => id,
    );
  await expect.poll(() => listed('TASK_STATE_AUTH_REQUIRED')).toEqual([planId]);
  expect(await listed('TASK_STATE_INPUT_REQUIRED')).toEqual([plain]);
  // The one that waited before the setting keeps its name, after the setting is gone the other one does.
  await call(person, '_cleveragents/config/set', { key: 'approvals.task_state', value: null });
  await evict(person, planId);
  expect(await listed('TASK_STATE_AUTH_REQUIRED')).toEqual([planId]);
  expect((await call(person, '_cleveragents/plan/status', { plan_id: planId })).task_state).toBe('auth-required');
  await cancel(person, planId);
  await cancel(person, plain);
});

it.each(WIRES)(
  'keeps a stream of the wire %s open, which then brings the end',
  async (version, _get, subscribe, auth, _input, completed) => {
    const person = await newOrg();
    const key = await keyOf(person);
    await call(person, '_cleveragents/config/set', { key: 'approvals.task_state', value: 'auth-required' });
    const planId = await startSteps(person, [{ say: 'hello' }], HUMAN_ONLY);
    await until(person, planId, isWaiting);
    const stream = await http(key, version, subscribe, { id: planId });
    const text = stream.text();
    for (const gate of ['decompose_task', 'create_tool']) {
      const waiting = await until(person, planId, (each) => isWaiting(each) && onlyPending(each).gate === gate);
      await approve(person, planId, onlyPending(waiting));
    }
    await until(person, planId, isTerminal);
    const told = [...(await text).matchAll(/"state":"([A-Za-z_-]+)"/g)].map(([, state]) => state).filter((state) => state !== 'waiting');
    expect(told).toContain(auth);
    expect(told.lastIndexOf(completed)).toBeGreaterThan(told.lastIndexOf(auth));
  },
);

it('takes the answer of a message into its context, and starts no second plan', async () => {
  const person = await newOrg();
  const key = await keyOf(person);
  await call(person, '_cleveragents/config/set', { key: 'approvals.task_state', value: 'auth-required' });
  const planId = await startSteps(person, [{ say: 'hello' }], HUMAN_ONLY);
  const { plan } = await until(person, planId, isWaiting);
  const message = { messageId: ulid(), role: 'ROLE_USER', contextId: plan.sessionId, parts: [{ text: 'approved' }] };
  const sent = await resultOf(await http(key, '1.0', 'SendMessage', { message }));
  expect((sent['task'] as JsonObject)['id']).toBe(planId);
  expect((await until(person, planId, (each) => isWaiting(each) && onlyPending(each).gate === 'create_tool')).plan.id).toBe(planId);
  await cancel(person, planId);
});
