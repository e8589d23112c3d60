import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import type { HandlerCall } from '../../src/app/handler.ts';
import { approvalHandlers } from '../../src/app/handlers/approval-handlers.ts';
import { guardHandlers } from '../../src/app/handlers/guard-handlers.ts';
import { planHandlers } from '../../src/app/handlers/plan-handlers.ts';
import type { PlanPort } from '../../src/app/ports.ts';
import { runStandard, runStream } from '../../src/app/standard.ts';
import type { Principal } from '../../src/core/principal.ts';
import { callerOf, isSettled, newOrg, onlyPending, planOf, services, startSteps, stubOf, until } from './plan-support.ts';

const UNKNOWN = '01JAAAAAAAAAAAAAAAAAAAAAAA';

/** Every method of the port, as a caller reaches it. */
const METHODS: Record<Exclude<keyof PlanPort, 'create'>, (port: PlanPort, person: Principal) => Promise<unknown>> = {
  read: (port) => port.read(),
  log: (port) => port.log(0, 10),
  diff: (port) => port.diff(),
  checkpoints: (port) => port.checkpoints(),
  verify: (port) => port.verify(),
  heads: (port) => port.heads({ sign: true }),
  wake: (port) => port.wake(),
  setPush: (port, person) => port.setPush({ wire: '1.0', target: { url: 'https://hooks.example.com/' }, by: callerOf(person).actor }),
  pushes: (port) => port.pushes(),
  deletePush: (port, person) => port.deletePush(UNKNOWN, callerOf(person).actor),
  retryPush: (port, person) => port.retryPush(UNKNOWN, null, callerOf(person).actor),
  retire: (port, person) => port.retire({ by: callerOf(person).actor, reason: 'x', at: new Date().toISOString(), profile: null }),
  value: (port) => port.value('0'.repeat(64)),
  external: (port, person) => port.external({ type: 'complete', by: callerOf(person).actor }),
  follow: (port) => port.follow({ afterSeq: null, signal: new AbortController().signal, maxMs: 1000 }),
  command: async (port, person) => {
    const by = callerOf(person);
    const answer = { approvalId: `${UNKNOWN}.1`, decision: 'approve', digest: null, reason: null, text: null, grant: null } as const;
    const results = [
      await port.command({ type: 'execute', by, digest: null, head: null }),
      await port.command({ type: 'apply', by, digest: null, approve: true }),
      await port.command({ type: 'cancel', by: by.actor, reason: null }),
      await port.command({ type: 'answer', by, answer }),
      await port.command({ type: 'extend', by, approvalId: answer.approvalId, expiresAt: '2030-01-01T00:00:00Z' }),
      await port.command({ type: 'message', by, messageId: 'm', parts: [], metadata: null, text: '', answers: [], plain: null }),
    ];
    return results.every((each) => each === null) ? null : results;
  },
};

const tablesOf = (person: Principal, planId: string) =>
  runInDurableObject(stubOf(person, planId), async (_object, state) => ({
    tables: state.storage.sql.exec('SELECT name FROM sqlite_master').toArray(),
    alarm: await state.storage.getAlarm(),
  }));

const call = (principal: Principal): HandlerCall => ({ principal, idempotencyKey: null, changing: async () => {} });

/** Every operation that names a plan, as whoever calls it gets its answer. */
function operations(planId: string, approvalId: string): Record<string, (principal: Principal) => Promise<unknown>> {
  const plan_id = planId;
  const standard = (principal: Principal) =>
    ({ ...call(principal), version: '1.0', extensionActivated: true, signal: new AbortController().signal }) as const;
  const message = (rest: object) => ({ messageId: 'm1', role: 'user', parts: [{ kind: 'text', text: 'approve' }], ...rest }) as const;
  const configuration = { returnImmediately: true } as const;
  return {
    status: (principal) => planHandlers['_cleveragents/plan/status']({ plan_id }, call(principal), services),
    execute: (principal) => planHandlers['_cleveragents/plan/execute']({ plan_id }, call(principal), services),
    apply: (principal) => planHandlers['_cleveragents/plan/apply']({ plan_id, approve: true }, call(principal), services),
    cancel: (principal) => planHandlers['_cleveragents/plan/cancel']({ plan_id }, call(principal), services),
    prompt: (principal) => planHandlers['_cleveragents/plan/prompt']({ plan_id, guidance: 'hurry' }, call(principal), services),
    diff: (principal) => planHandlers['_cleveragents/plan/diff']({ plan_id }, call(principal), services),
    artifacts: (principal) => planHandlers['_cleveragents/plan/artifacts']({ plan_id }, call(principal), services),
    tree: (principal) => planHandlers['_cleveragents/plan/tree']({ plan_id }, call(principal), services),
    profile: (principal) => planHandlers['_cleveragents/plan/profile/show']({ plan_id }, call(principal), services),
    guard: (principal) => guardHandlers['_cleveragents/plan/guard/show']({ plan_id }, call(principal), services),
    audit: (principal) => guardHandlers['_cleveragents/plan/guard/audit']({ plan_id, limit: 100 }, call(principal), services),
    verify: (principal) => guardHandlers['_cleveragents/plan/guard/audit/verify']({ plan_id }, call(principal), services),
    approvals: (principal) => approvalHandlers['_cleveragents/approval/list']({ plan_id, page_size: 50 }, call(principal), services),
    decide: (principal) =>
      approvalHandlers['_cleveragents/approval/decide']({ approval_id: approvalId, decision: 'deny' }, call(principal), services),
    get: (principal) => runStandard({ op: 'get', params: { id: planId } }, standard(principal), services),
    cancelTask: (principal) => runStandard({ op: 'cancel', params: { id: planId } }, standard(principal), services),
    send: (principal) =>
      runStandard({ op: 'send', params: { message: message({ taskId: planId }), configuration } }, standard(principal), services),
    sendToContext: (principal) =>
      runStandard(
        { op: 'send', params: { message: message({ contextId: `task_${planId}` }), configuration } },
        standard(principal),
        services,
      ),
    subscribe: (principal) => runStream({ op: 'subscribe', params: { id: planId } }, standard(principal), services, null),
    stream: (principal) =>
      runStream({ op: 'stream', params: { message: message({ taskId: planId }), configuration } }, standard(principal), services, null),
  };
}

describe('an id that the org does not have', () => {
  it.each(Object.keys(METHODS) as (keyof typeof METHODS)[])('answers nothing to %s, and its object stores nothing', async (method) => {
    const person = await newOrg();
    expect((await METHODS[method](planOf(person, UNKNOWN), person)) ?? null).toBeNull();
    expect(await tablesOf(person, UNKNOWN)).toEqual({ tables: [], alarm: null });
    // A probe by alarm or by socket makes nothing either.
    await runInDurableObject(stubOf(person, UNKNOWN), (object) => object.alarm());
    expect((await env.PLANS.getByName(stubOf(person, UNKNOWN).name ?? '').fetch('https://plan/feed')).status).toBe(404);
    expect(await tablesOf(person, UNKNOWN)).toEqual({ tables: [], alarm: null });
  });

  it('answers the same whether it is nobody’s or another org’s, in every operation, and the plan is not touched', async () => {
    const owner = await newOrg();
    const stranger = await newOrg();
    const planId = await startSteps(owner, [{ call: { tool: 'test/counter', arguments: { label: owner.org } } }], { profile: 'manual' });
    const approval = onlyPending(await until(owner, planId, isSettled));
    const before = await planOf(owner, planId).read();
    const foreign = operations(planId, approval.id);
    const unknown = operations(UNKNOWN, approval.id.replace(planId, UNKNOWN));
    for (const [name, ask] of Object.entries(foreign)) {
      const theirs = JSON.stringify(await ask(stranger));
      const nobodys = JSON.stringify(await unknown[name]?.(stranger));
      expect(theirs.replaceAll(planId, UNKNOWN), name).toBe(nobodys);
      expect(theirs, name).toContain('"ok":false');
      expect(theirs, name).toContain('not_found');
    }
    expect(await planOf(owner, planId).read()).toEqual(before);
    expect(await tablesOf(stranger, planId)).toEqual({ tables: [], alarm: null });
    expect((await services.planIndex.list({ org: stranger.org, pageSize: 10 })).ok).toBe(true);
    expect(await services.planIndex.get(stranger.org, planId)).toBeNull();
    expect(await services.audit.list(stranger.org, planId, 0, 10)).toEqual([]);
  });
});
