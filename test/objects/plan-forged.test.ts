/** Somebody with access to the storage of a plan puts a state there that its log does not tell. */
import { runInDurableObject } from 'cloudflare:test';
import { ulid } from 'ulid';
import { expect, it } from 'vitest';
import { startPlan } from '../../src/app/start-plan.ts';
import { diffOf, replay } from './forged-support.ts';
import {
  addAction,
  addProject,
  evict,
  fileOf,
  isTerminal,
  isWaiting,
  logOf,
  newOrg,
  planOf,
  services,
  stubOf,
  until,
} from './plan-support.ts';

it('a forged state applies nothing, and verification names it', async () => {
  const person = await newOrg();
  const project = await addProject(person, { 'a.txt': 'old\n' });
  const actionName = await addAction(person, {
    name: `a-${ulid().toLowerCase()}`,
    execute: [{ call: { tool: 'write_file', arguments: { path: 'a.txt', content: 'new\n' } } }],
  });
  const made = await startPlan(
    { actionName, arguments: {}, project, input: '', message: null, idempotency: null, fieldPrefix: '', automationProfile: 'supervised' },
    person,
    services,
  );
  if (!made.ok) throw new Error(made.error.message);
  const planId = made.value.plan.id;
  await until(person, planId, isWaiting);
  const told = replay(await logOf(person, planId));
  const forged = {
    ...told,
    phase: 'apply',
    state: 'running',
    resumeState: null,
    approvals: [],
    apply: { id: 'forged', diff: diffOf(told) },
  };
  await runInDurableObject(stubOf(person, planId), (_object, state) => {
    state.storage.sql.exec('DELETE FROM snapshot');
    state.storage.sql.exec('INSERT INTO snapshot (part, body) VALUES (0, ?)', JSON.stringify(forged));
  });
  await evict(person, planId);
  expect(await planOf(person, planId).verify()).toMatchObject({ valid: false, problem: 'state_differs' });
  await planOf(person, planId).wake();
  await until(person, planId, (snapshot) => isTerminal(snapshot) || snapshot.plan.state === 'errored');
  expect(await fileOf(person, project, 'a.txt')).toBe('old\n');
  expect(await planOf(person, planId).verify()).toMatchObject({ valid: false });
});
