/** The trail that is shown has a bound; what leaves it stays in the log, in D1 and in the export, and is verified like the rest. */
import { env } from 'cloudflare:workers';
import { ulid } from 'ulid';
import { expect, it } from 'vitest';
import type { ResultOf } from '../../src/api/operations.ts';
import { auditOf, newOrg, planOf, services } from './plan-support.ts';
import { endedPlan, tamperedPlan } from './tamper-support.ts';

const BOUND = 300;
const CHECKS = 800;

it('beyond the bound the oldest entries leave the view first, and none of them leaves the database or what is verified', async () => {
  const person = await newOrg();
  const planId = ulid();
  const plan = tamperedPlan(person, planId);
  await services.config.set(person.org, 'org', 'guardrails.audit_max_entries', BOUND);
  expect(await plan.call('_cleveragents/guard/configure')).toMatchObject({ ok: true });
  const port = planOf(person, planId);
  const by = { kind: 'agent', id: 'a' } as const;
  for (let n = 1; n <= CHECKS; n += 1) await port.external({ type: 'check', by, request: { check: 'step_limit', currentStep: n } });
  await expect.poll(async () => (await plan.verify()).trail, { timeout: 30_000 }).toBe('complete');

  const view = await plan.call('_cleveragents/plan/guard/audit', { limit: 1000 });
  if (!view.ok) throw new Error(view.error.message);
  const { entries, evicted_count, allowed_count, denied_count } = view.value as unknown as ResultOf<'_cleveragents/plan/guard/audit'>;
  const stored = await auditOf(person, planId);
  expect(entries).toHaveLength(BOUND);
  expect(allowed_count + denied_count).toBe(stored.length);
  expect(stored.length).toBeGreaterThanOrEqual(CHECKS);
  expect(evicted_count).toBe(stored.length - BOUND);
  // Oldest first out, and in the database each of them.
  expect(entries.map((entry) => entry.seq)).toEqual(stored.slice(-BOUND).map((entry) => entry.seq));
  expect(await plan.verify()).toMatchObject({ valid: true, entries: stored.at(-1)?.seq });
  await plan.call('_cleveragents/audit/head');
  // One that has left the view is held against the log like any other.
  const evicted = stored[10]?.seq ?? 0;
  expect(entries.some((entry) => entry.seq === evicted)).toBe(false);
  await env.DB.prepare("UPDATE audit_entries SET reason = 'other' WHERE plan_id = ?1 AND seq = ?2").bind(planId, evicted).run();
  expect(await plan.verify()).toMatchObject({ valid: false, findings: [{ seq: evicted, problem: 'trail_changed' }] });
}, 120_000);

it('expanded, a decision about a call is one entry per guard with the types of the source', async () => {
  const plan = await endedPlan([{ call: { tool: 'test/counter', arguments: {} } }]);
  const answer = await plan.call('_cleveragents/plan/guard/audit', { expand: true, limit: 1000 });
  if (!answer.ok) throw new Error(answer.error.message);
  const { entries } = answer.value as unknown as ResultOf<'_cleveragents/plan/guard/audit'>;
  const types = entries.map((entry) => entry.event_type);
  for (const type of ['step_allowed', 'budget_allowed', 'time_allowed', 'actor_limit_allowed', 'retry_allowed', 'denylist_allowed'])
    expect(types).toContain(type);
  expect(types).not.toContain('call_allowed');
  const guards = entries.filter((entry) => entry.context['call_id'] !== undefined && entry.context['tool'] === 'test/counter');
  expect(new Set(guards.map((entry) => entry.guard_name)).size).toBe(guards.length);
  for (const entry of guards)
    expect(entry.context).toMatchObject({ arguments_digest: expect.any(String), policy_digest: expect.any(String) });
});
