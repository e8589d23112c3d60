/** Checkpoints of real plans: durable, bounded, listed, and in the way of a write that cannot have one. */
import { expect, it } from 'vitest';
import { findOperation, type OperationName, type ParamsInputOf, type ResultOf } from '../../src/api/operations.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import { MAX_CHECKPOINTS } from '../../src/core/plan/checkpoint.ts';
import type { Principal } from '../../src/core/principal.ts';
import {
  addAction,
  addProject,
  answer,
  crash,
  fileOf,
  isSettled,
  isTerminal,
  isWaiting,
  newOrg,
  onlyPending,
  rowsOf,
  services,
  start,
  until,
} from './plan-support.ts';

async function call<N extends OperationName>(person: Principal, name: N, params: ParamsInputOf<N>): Promise<ResultOf<N>> {
  const found = findOperation(name);
  if (found === null) throw new Error(`no operation ${name}`);
  const result = await dispatchOperation(found, JSON.parse(JSON.stringify(params)), { principal: person, idempotencyKey: null }, services);
  if (!result.ok) throw new Error(`${name}: ${JSON.stringify(result.error)}`);
  return result.value as ResultOf<N>;
}

const listed = (person: Principal, planId: string) => call(person, '_cleveragents/plan/checkpoint/list', { plan_id: planId });

const write = (id: string, content: string) => ({ id, call: { tool: 'write_file', arguments: { path: 'a.txt', content } } });

it('names the tree before each write, survives a crash, and the tree can be told by its digest', async () => {
  const person = await newOrg();
  const project = await addProject(person, { 'a.txt': 'old\n' });
  const head = (await services.projects.project(person.org, project).head())?.head;
  const actionName = await addAction(person, {
    name: 'w',
    execute: [
      { id: 'read', call: { tool: 'read_file', arguments: { path: 'a.txt' } } },
      write('one', 'one\n'),
      write('two', 'two\n'),
      { id: 'ask', ask: 'On?' },
      write('back', 'old\n'),
      write('end', 'end\n'),
    ],
  });
  const { plan } = await start(person, { actionName, project, automationProfile: 'auto' });
  const waiting = await until(person, plan.id, isWaiting);
  const before = await listed(person, plan.id);
  expect(before).toMatchObject({ enabled: true, required: true, made: 2, dropped: 0 });
  expect(before.checkpoints.map(({ reason }) => reason)).toEqual(['before write_file (c3)', 'before write_file (c2)']);
  expect(before.checkpoints.at(-1)).toMatchObject({
    checkpoint_id: `${plan.id}.k1`,
    tree: head,
    phase: 'execute',
    counters: { step: 2, calls_in_step: 0, results: 1, spent_usd: 0 },
  });
  await crash(person, plan.id);
  expect(await listed(person, plan.id)).toEqual(before);
  await answer(person, plan.id, onlyPending(waiting), { decision: 'answer', text: 'yes' });
  await until(person, plan.id, isTerminal);
  const { checkpoints } = await listed(person, plan.id);
  // The third write took the file back to what it was, so the fourth began where the first did.
  expect(checkpoints.map(({ tree }) => tree === head)).toEqual([true, false, false, true]);
  const rows = await rowsOf(person, plan.id, 'call_decided');
  expect(checkpoints.map(({ seq }) => seq)).toEqual(
    rows
      .filter(({ data }) => data.checkpoint !== undefined)
      .map(({ seq }) => seq)
      .toReversed(),
  );
  const trail = await call(person, '_cleveragents/plan/guard/audit', { plan_id: plan.id });
  expect(trail.entries.flatMap(({ context }) => context['checkpoint_id'] ?? []).toSorted()).toEqual(
    checkpoints.map(({ checkpoint_id: id }) => id).toSorted(),
  );
});

it('keeps the newest and says how many it let go', async () => {
  const person = await newOrg();
  const project = await addProject(person, { 'a.txt': 'old\n' });
  const steps = Array.from({ length: MAX_CHECKPOINTS + 5 }, (_, n) => write(`s${n}`, `${n}\n`));
  const actionName = await addAction(person, { name: 'many', execute: steps });
  const { plan } = await start(person, { actionName, project, automationProfile: 'full-auto' });
  await until(person, plan.id, isTerminal, 30_000);
  const list = await listed(person, plan.id);
  expect(list).toMatchObject({ required: false, made: MAX_CHECKPOINTS + 5, dropped: 5 });
  expect(list.checkpoints).toHaveLength(MAX_CHECKPOINTS);
  expect(list.checkpoints[0]?.checkpoint_id).toBe(`${plan.id}.k${MAX_CHECKPOINTS + 5}`);
});

it('where they are off and come to be required, the next write is refused, in the trail and with what would help', async () => {
  const person = await newOrg();
  const project = await addProject(person, { 'a.txt': 'old\n' });
  await call(person, '_cleveragents/config/set', { scope: 'project', project, key: 'sandbox.checkpoint.enabled', value: false });
  const actionName = await addAction(person, {
    name: 'w',
    execute: [write('one', 'one\n'), { id: 'ask', ask: 'On?' }, write('two', 'two\n')],
  });
  const { plan } = await start(person, { actionName, project, automationProfile: 'full-auto' });
  const waiting = await until(person, plan.id, isWaiting);
  expect(await listed(person, plan.id)).toMatchObject({ enabled: false, made: 0, checkpoints: [] });
  await call(person, '_cleveragents/org/policy/set', { policy: { safety: { require_checkpoints: true } } });
  await answer(person, plan.id, onlyPending(waiting), { decision: 'answer', text: 'yes' });
  await until(person, plan.id, isSettled);
  const trail = await call(person, '_cleveragents/plan/guard/audit', { plan_id: plan.id });
  const refused = trail.entries.filter(({ event_type: type }) => type === 'checkpoint_blocked');
  expect(refused).toMatchObject([{ guard_name: 'checkpoint', result: 'denied' }]);
  expect(refused[0]?.reason).toContain('Remediation: ');
  expect(await fileOf(person, project, 'a.txt')).toBe('old\n');
});
