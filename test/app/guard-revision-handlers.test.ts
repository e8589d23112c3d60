import { beforeEach, describe, expect, it } from 'vitest';
import { makeService, type TestCaller, type TestService } from './service.ts';

let service: TestService;
let admin: TestCaller;
let operator: TestCaller;
let agent: TestCaller;
let planId: string;

beforeEach(async () => {
  service = makeService();
  admin = await service.caller('acme');
  operator = await service.caller('acme', { roles: ['operator'] });
  agent = await service.caller('acme', { roles: ['operator'], kind: 'agent' });
  // With one approver in the org the person who starts a plan may also approve in it.
  await admin.call('_cleveragents/action/add', {
    action: {
      name: 'tidy',
      description: 'Tidies',
      actor: 'scripted/steps',
      apply: 'none',
      automation_profile: 'manual',
      execute: [{ say: 'Hello' }],
    },
  });
  const plan = await admin.call('_cleveragents/plan/use', {
    action_name: 'tidy',
    guardrails: { tool_denylist: ['shell_exec'], max_steps: 9 },
  });
  planId = plan.plan_id;
});

const show = (caller: TestCaller = admin) => caller.call('_cleveragents/plan/guard/show', { plan_id: planId });
const status = () => admin.call('_cleveragents/plan/status', { plan_id: planId });
const onTool = (tool: string) => ({ plan_id: planId, tool });

describe('the guards of a running plan', () => {
  it('are set, shown with their origin, and given back', async () => {
    const set = await operator.call('_cleveragents/plan/guard/set', {
      plan_id: planId,
      guardrails: { tool_budget: 10, actor_limits: { max_retries_per_failure: 1 } },
    });
    expect(set).toMatchObject({
      revision: 2,
      policy: { max_total_cost: 10, max_steps: 9 },
      revised: { tool_budget: 10, actor_limits: { max_retries_per_failure: 1 } },
    });
    expect(set.limits).toEqual(
      expect.arrayContaining([
        { name: 'max_total_cost', value: 10, origin: 'revision (tool_budget)' },
        { name: 'max_steps', value: 9, origin: 'plan (max_steps)' },
        { name: 'max_retries_per_failure', value: 1, origin: 'revision (max_retries_per_failure)' },
        { name: 'tool_denylist', value: 'shell_exec', origin: 'plan' },
      ]),
    );
    expect(await show()).toEqual(set);
    expect((await status()).budget).toMatchObject({ cap_usd: 10, cap_source: 'tool_budget' });

    expect((await agent.refused('_cleveragents/plan/guard/set', { plan_id: planId, drop: ['tool_budget'] })).kind).toBe('forbidden');
    const dropped = await admin.call('_cleveragents/plan/guard/set', {
      plan_id: planId,
      drop: ['tool_budget', 'actor_limits.max_retries_per_failure'],
    });
    expect(dropped).toMatchObject({ revision: 3, policy: { max_total_cost: null }, revised: {} });
  });

  it('take 0 for a limit and null for none', async () => {
    const zero = await operator.call('_cleveragents/plan/guard/set', {
      plan_id: planId,
      guardrails: { max_tool_calls_per_step: 0, max_total_cost: 0 },
    });
    expect(zero.policy).toMatchObject({ max_tool_calls_per_step: 0, max_total_cost: 0 });
    const none = await admin.call('_cleveragents/plan/guard/set', {
      plan_id: planId,
      guardrails: { max_tool_calls_per_step: null, max_total_cost: null },
    });
    expect(none.policy).toMatchObject({ max_tool_calls_per_step: null, max_total_cost: null });
  });

  it('ask what waits anew: the plan shows another digest', async () => {
    const [before] = (await status()).pending;
    await operator.call('_cleveragents/plan/guard/denylist/add', onTool('write_file'));
    const [after] = (await status()).pending;
    expect(after?.gate).toBe(before?.gate);
    expect(after?.digest).not.toBe(before?.digest);
    const late = await admin.refused('_cleveragents/approval/decide', {
      approval_id: before?.approval_id ?? '',
      decision: 'approve',
      digest: before?.digest ?? '',
    });
    expect(late).toMatchObject({ kind: 'invalid_state', details: { status: 'revoked' } });
  });

  it('deny a tool, and let go only of what was added', async () => {
    expect((await agent.call('_cleveragents/plan/guard/denylist/add', onTool('write_file'))).policy['tool_denylist']).toEqual([
      'shell_exec',
      'write_file',
    ]);
    expect(await admin.refused('_cleveragents/plan/guard/denylist/remove', onTool('shell_exec'))).toMatchObject({
      kind: 'invalid_state',
      details: { origin: 'plan' },
    });
    const absent = await admin.refused('_cleveragents/plan/guard/denylist/remove', onTool('no_such_tool'));
    expect(absent.message).toBe("'no_such_tool' is not on the denylist of this plan; nothing was removed");
    expect((await admin.call('_cleveragents/plan/guard/denylist/remove', onTool('write_file'))).policy['tool_denylist']).toEqual([
      'shell_exec',
    ]);
  });

  it('keep an allowlist that ran empty closed', async () => {
    expect((await operator.call('_cleveragents/plan/guard/allowlist/add', onTool('read_file'))).policy['tool_allowlist']).toEqual([
      'read_file',
    ]);
    expect((await operator.call('_cleveragents/plan/guard/allowlist/remove', onTool('read_file'))).policy['tool_allowlist']).toEqual([]);
    expect(
      (await admin.call('_cleveragents/plan/guard/set', { plan_id: planId, drop: ['tool_allowlist'] })).policy['tool_allowlist'],
    ).toBeNull();
  });

  it('have tools confirmed', async () => {
    expect(
      (await operator.call('_cleveragents/plan/guard/confirmation/add', onTool('delete_file'))).policy['required_confirmations'],
    ).toEqual(['delete_file']);
    expect(
      (await admin.call('_cleveragents/plan/guard/confirmation/remove', onTool('delete_file'))).policy['required_confirmations'],
    ).toEqual([]);
  });

  it.each<{ readonly params: object; readonly field: string }>([
    { params: {}, field: 'guardrails' },
    { params: { guardrails: {} }, field: 'guardrails' },
    { params: { guardrails: { max_steps: -1 } }, field: 'guardrails.max_steps' },
    { params: { guardrails: { max_steps: 1.5 } }, field: 'guardrails.max_steps' },
    { params: { guardrails: { tool_budget: '5' } }, field: 'guardrails.tool_budget' },
    { params: { guardrails: { tool_budget: -0.01 } }, field: 'guardrails.tool_budget' },
    { params: { guardrails: { tool_denylist: ['a', '  '] } }, field: 'guardrails.tool_denylist.1' },
    { params: { guardrails: { max_cost: 1 } }, field: 'guardrails.max_cost' },
    { params: { guardrails: { max_steps: 1 }, drop: ['max_steps'] }, field: 'drop' },
    { params: { drop: ['thresholds'] }, field: 'drop.0' },
  ])('refuse $params by the field $field, and nothing changes', async ({ params, field }) => {
    const before = await status();
    const refusal = await admin.refused('_cleveragents/plan/guard/set', { plan_id: planId, ...params } as never);
    expect(refusal).toMatchObject({ kind: 'invalid', issues: [{ field }] });
    expect(await status()).toEqual(before);
  });

  it('refuse an entry that names nothing', async () => {
    expect(await admin.refused('_cleveragents/plan/guard/denylist/add', onTool('   '))).toMatchObject({
      kind: 'invalid',
      issues: [{ field: 'tool' }],
    });
  });

  it('are out of reach for somebody who only looks, and for nobody else to loosen than a human approver', async () => {
    const viewer = await service.caller('acme', { roles: ['viewer'] });
    expect((await viewer.refused('_cleveragents/plan/guard/set', { plan_id: planId, guardrails: { max_steps: 1 } })).kind).toBe(
      'forbidden',
    );
    await operator.call('_cleveragents/plan/guard/set', { plan_id: planId, guardrails: { max_steps: 1 } });
    const approvingAgent = await service.caller('acme', { roles: ['operator', 'approver'], kind: 'agent' });
    expect((await approvingAgent.refused('_cleveragents/plan/guard/set', { plan_id: planId, drop: ['max_steps'] })).kind).toBe('forbidden');
  });
});

describe('the kill switch of a plan', () => {
  const target = () => ({ level: 'plan' as const, plan_id: planId });

  it('is set by anybody who operates, shown with its reason, and cleared by an approver', async () => {
    expect(await admin.call('_cleveragents/halt/show', target())).toEqual({ level: 'plan', plan_id: planId, halted: false, halts: [] });
    const set = await agent.call('_cleveragents/halt/set', { ...target(), reason: 'it pays twice' });
    expect(set).toMatchObject({
      halted: true,
      halts: [{ level: 'plan', reason: 'it pays twice', epoch: 1, halted_by: agent.principal.keyId }],
    });
    expect((await status()).halted).toMatchObject({ level: 'plan', reason: 'it pays twice', by: agent.principal.keyId });
    expect(await admin.refused('_cleveragents/plan/execute', { plan_id: planId })).toMatchObject({
      kind: 'invalid_state',
      details: { halted: { reason: 'it pays twice' } },
    });
    expect(await agent.call('_cleveragents/halt/set', { ...target(), reason: 'again' }), 'twice is once').toEqual(set);

    expect((await operator.refused('_cleveragents/halt/clear', target())).kind).toBe('forbidden');
    expect(await admin.call('_cleveragents/halt/clear', target())).toMatchObject({ halted: false, halts: [] });
    expect((await status()).halted).toBeUndefined();
    expect((await admin.call('_cleveragents/plan/execute', { plan_id: planId })).phase).toBe('strategize');
  });

  it('needs a level, the id that goes with it and no other, and a reason', async () => {
    const wrong: readonly (readonly [object, string])[] = [
      [{ level: 'project', plan_id: planId }, 'level'],
      [{ plan_id: planId }, 'level'],
      [{ level: 'plan' }, 'plan_id'],
      [{ level: 'plan', plan_id: 'x' }, 'plan_id'],
      [{ level: 'plan', plan_id: planId, session_id: 's' }, 'session_id'],
      [{ level: 'session' }, 'session_id'],
      [{ level: 'session', session_id: 's', plan_id: planId }, 'plan_id'],
      [{ level: 'session', session_id: 'a b' }, 'session_id'],
      [{ level: 'org', plan_id: planId }, 'plan_id'],
      [{ level: 'org', session_id: 's' }, 'session_id'],
    ];
    for (const [params, field] of wrong) {
      for (const name of ['_cleveragents/halt/set', '_cleveragents/halt/clear', '_cleveragents/halt/show'] as const) {
        const given = name === '_cleveragents/halt/set' ? { ...params, reason: 'x' } : params;
        expect(await admin.refused(name, given as never), JSON.stringify(given)).toMatchObject({ kind: 'invalid', issues: [{ field }] });
      }
    }
    expect(await admin.call('_cleveragents/halt/show', target())).toMatchObject({ halted: false });
    expect(await admin.refused('_cleveragents/halt/set', { ...target(), reason: ' ' })).toMatchObject({
      kind: 'invalid',
      issues: [{ field: 'reason' }],
    });
  });

  it('of a plan that has ended is refused', async () => {
    await admin.call('_cleveragents/plan/cancel', { plan_id: planId });
    expect((await admin.refused('_cleveragents/halt/set', { ...target(), reason: 'x' })).kind).toBe('invalid_state');
    expect((await admin.refused('_cleveragents/plan/guard/denylist/add', onTool('x'))).kind).toBe('invalid_state');
  });
});
