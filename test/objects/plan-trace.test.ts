/** Which request a row of the log belongs to. */
import { ulid } from 'ulid';
import { expect, it } from 'vitest';
import type { Services } from '../../src/app/services.ts';
import { startPlan } from '../../src/app/start-plan.ts';
import { tracedPlans } from '../../src/app/traced-plans.ts';
import {
  addAction,
  auditOf,
  callerOf,
  evict,
  isTerminal,
  isWaiting,
  logOf,
  newOrg,
  onlyPending,
  planOf,
  services,
  startSteps,
  until,
} from './plan-support.ts';

const under = (traceId: string): Services => ({ ...services, plans: tracedPlans(services.plans, traceId) });

it('each row of a plan names the request that it came with, and what the plan does by itself the one that made it', async () => {
  const [made, answered] = ['a'.repeat(32), 'b'.repeat(32)];
  const person = await newOrg();
  const actionName = await addAction(person, {
    name: `a-${ulid().toLowerCase()}`,
    execute: [
      { call: { tool: 'test/counter', arguments: { label: person.org } } },
      { ask: 'Go on?' },
      { call: { tool: 'test/counter', arguments: {} } },
    ],
    apply: 'none',
  });
  const started = await startPlan(
    { actionName, arguments: {}, input: '', message: null, idempotency: null, fieldPrefix: '', automationProfile: 'auto' },
    person,
    under(made),
  );
  if (!started.ok) throw new Error(started.error.message);
  const planId = started.value.plan.id;
  const approval = onlyPending(await until(person, planId, isWaiting));
  await evict(person, planId);
  const answer = { approvalId: approval.id, decision: 'answer', digest: approval.digest, reason: null, text: 'yes', grant: null } as const;
  const result = await under(answered)
    .plans.plan(person.org, planId)
    .command({ type: 'answer', by: callerOf(person), answer });
  expect(result).toMatchObject({ ok: true });
  await until(person, planId, isTerminal);

  const log = await logOf(person, planId);
  const traceOf = (type: string) => [...new Set(log.filter((row) => row.type === type).map((row) => row.trace_id))];
  expect(traceOf('plan_created')).toEqual([made]);
  expect(traceOf('call_decided')).toEqual([made]);
  expect(traceOf('approval_decided')).toEqual([answered]);
  expect(new Set(log.map((row) => row.trace_id))).toEqual(new Set([made, answered]));
  // It is part of what is hashed, of the trail and of the database.
  expect(await planOf(person, planId).verify()).toMatchObject({ valid: true });
  await expect.poll(async () => (await auditOf(person, planId)).at(-1)?.eventType).toBe('plan_applied');
  for (const entry of await auditOf(person, planId)) expect(entry.context).toMatchObject({ trace_id: log[entry.seq - 1]?.trace_id });
});

it('a plan that was made without one has rows without one', async () => {
  const person = await newOrg();
  const planId = await startSteps(person, [{ call: { tool: 'test/counter', arguments: { label: person.org } } }]);
  await until(person, planId, isTerminal);
  for (const row of await logOf(person, planId)) expect(row).not.toHaveProperty('trace_id');
});
