/** The service as a decision point (guards.md "AutonomyGuardrailService"): plans whose executor is the caller, over the operations. */
import { ulid } from 'ulid';
import { beforeEach, describe, expect, it } from 'vitest';
import type { OperationName, ParamsInputOf } from '../../src/api/operations.ts';
import { GUARDS } from '../../src/core/guards/guards.ts';
import { makeService, START, type TestCaller, type TestService } from './service.ts';

const HOUR_MS = 3600 * 1000;

let service: TestService;
let boss: TestCaller;
let agent: TestCaller;
let viewer: TestCaller;

beforeEach(async () => {
  service = makeService();
  boss = await service.caller('acme');
  agent = await service.caller('acme', { kind: 'agent', roles: ['operator'] });
  viewer = await service.caller('acme', { roles: ['viewer'] });
});

type Configure = Omit<ParamsInputOf<'_cleveragents/guard/configure'>, 'plan_id'>;
type Authorize = Omit<ParamsInputOf<'_cleveragents/guard/authorize'>, 'plan_id'>;

/** A plan under a profile that lets everything proceed; what the test adds is what it is about. */
async function open(guardrails: Configure['guardrails'] = {}, rest: Configure = {}): Promise<string> {
  const planId = ulid();
  await agent.call('_cleveragents/guard/configure', { plan_id: planId, automation_profile: 'auto', guardrails, ...rest });
  return planId;
}

const authorize = (planId: string, params: Authorize = {}) =>
  agent.call('_cleveragents/guard/authorize', { plan_id: planId, tool_name: 'read_file', ...params });
const settle = (decisionId: string, rest: Omit<ParamsInputOf<'_cleveragents/guard/settle'>, 'decision_id'> = { outcome: 'succeeded' }) =>
  agent.call('_cleveragents/guard/settle', { decision_id: decisionId, ...rest });
const status = (planId: string) => viewer.call('_cleveragents/plan/status', { plan_id: planId });
const trail = (planId: string) => viewer.call('_cleveragents/guard/get_audit_trail', { plan_id: planId });
const log = async (planId: string) => (await service.services.plans.plan('acme', planId).log(0, 100_000)) ?? [];
const approvals = async (planId: string) => (await status(planId)).pending;

async function decide(approvalId: string, decision: 'approve' | 'deny', grant?: object): Promise<void> {
  const pending = await boss.call('_cleveragents/approval/list', {});
  const digest = pending.approvals.find((each) => each.approval_id === approvalId)?.digest ?? '';
  await boss.call('_cleveragents/approval/decide', {
    approval_id: approvalId,
    decision,
    digest,
    ...(grant === undefined ? {} : { grant: grant as never }),
  });
}

async function hostedPlan(): Promise<string> {
  const action = { name: `a-${ulid().toLowerCase()}`, description: 'x', actor: 'scripted/steps', apply: 'none', execute: [{ say: 'hi' }] };
  await boss.call('_cleveragents/action/add', { action: action as never });
  return (await boss.call('_cleveragents/plan/use', { action_name: action.name, automation_profile: 'manual' })).plan_id;
}

describe('a plan whose executor is the caller', () => {
  it('is opened under an id that the org does not have, at work from the first moment, and shown as a task', async () => {
    const planId = ulid();
    const opened = await agent.call('_cleveragents/guard/configure', { plan_id: planId, guardrails: { max_steps: 5 }, session_id: 'talk' });
    expect(opened).toMatchObject({
      plan_id: planId,
      opened: true,
      session_id: 'talk',
      revision: 1,
      profile: { name: 'manual', level: 'default' },
    });
    expect(await status(planId)).toMatchObject({
      phase: 'execute',
      state: 'running',
      task_state: 'working',
      external: true,
      action_name: 'external',
    });
    const { plans } = await viewer.call('_cleveragents/plan/list', { session_id: 'talk' });
    expect(plans).toMatchObject([{ plan_id: planId, task_state: 'working', action_name: 'external' }]);
  });

  it('is tightened by configuring it again, and never loosened by an operator', async () => {
    const planId = await open({ tool_budget: 5 });
    const again = { plan_id: planId, guardrails: { tool_budget: 2 } };
    expect(await agent.call('_cleveragents/guard/configure', again)).toMatchObject({
      opened: false,
      revision: 2,
      policy: { max_total_cost: 2 },
    });
    const looser = await agent.refused('_cleveragents/guard/configure', { plan_id: planId, guardrails: { tool_budget: 9 } });
    expect(looser.kind).toBe('invalid_state');
    expect((await agent.refused('_cleveragents/guard/configure', { plan_id: planId, guardrails: { tool_budget: 4 } })).kind).toBe(
      'forbidden',
    );
    expect(await status(planId)).toMatchObject({ budget: { cap_usd: 2 } });
  });

  it('keeps profile and session as they were when it was opened', async () => {
    const planId = await open({}, { session_id: 'one' });
    for (const change of [{ automation_profile: 'full-auto' }, { session_id: 'two' }]) {
      expect((await agent.refused('_cleveragents/guard/configure', { plan_id: planId, ...change })).kind).toBe('invalid_state');
    }
    const same = { plan_id: planId, automation_profile: 'auto', session_id: 'one' };
    expect(await agent.call('_cleveragents/guard/configure', same)).toMatchObject({ opened: false, revision: 1 });
  });

  it('refuses an unknown profile by the valid names, and a closed session, and makes nothing', async () => {
    const planId = ulid();
    const refusal = await agent.refused('_cleveragents/guard/configure', { plan_id: planId, automation_profile: 'balancd' });
    expect(refusal).toMatchObject({ kind: 'invalid', issues: [{ field: 'automation_profile' }] });
    await boss.call('session.create', { session_id: 'over' });
    await boss.call('session.close', { session_id: 'over' });
    expect((await agent.refused('_cleveragents/guard/configure', { plan_id: planId, session_id: 'over' })).kind).toBe('invalid_state');
    expect((await viewer.refused('_cleveragents/plan/status', { plan_id: planId })).kind).toBe('not_found');
    expect((await viewer.call('_cleveragents/plan/list', {})).plans).toEqual([]);
  });

  it('is bound by the floor of the org', async () => {
    await boss.call('_cleveragents/org/policy/set', { policy: { guardrails: { tool_denylist: ['shell_*'] } } });
    const planId = await open();
    const answer = await authorize(planId, { tool_name: 'shell_exec' });
    expect(answer).toMatchObject({ allowed: false, requires_approval: false });
    expect(answer.reason).toContain('denylist');
    expect(answer.approval_id).toBeUndefined();
  });

  it('ends by complete, which takes that everything is settled, and by cancel, which does not', async () => {
    const first = await open();
    const { decision_id: decisionId } = await authorize(first);
    expect(await agent.refused('_cleveragents/guard/complete', { plan_id: first })).toMatchObject({
      kind: 'invalid_state',
      details: { open: [decisionId] },
    });
    await settle(decisionId);
    expect(await agent.call('_cleveragents/guard/complete', { plan_id: first })).toMatchObject({
      state: 'applied',
      task_state: 'completed',
    });
    const second = await open();
    await authorize(second);
    expect(await agent.call('_cleveragents/plan/cancel', { plan_id: second, reason: 'enough' })).toMatchObject({ task_state: 'canceled' });
    for (const planId of [first, second]) {
      const before = (await log(planId)).length;
      expect(await agent.refused('_cleveragents/guard/authorize', { plan_id: planId, tool_name: 'x' })).toMatchObject({
        kind: 'invalid_state',
        details: { plan_id: planId },
      });
      expect((await agent.refused('_cleveragents/guard/check_wall_clock', { plan_id: planId })).kind).toBe('invalid_state');
      expect((await agent.refused('_cleveragents/guard/complete', { plan_id: planId })).kind).toBe('invalid_state');
      expect((await log(planId)).length).toBe(before);
    }
  });

  it('takes no guidance, since nobody here would follow it', async () => {
    const planId = await open();
    expect((await boss.refused('_cleveragents/plan/prompt', { plan_id: planId, guidance: 'hurry' })).kind).toBe('invalid_state');
    expect((await boss.refused('_cleveragents/plan/apply', { plan_id: planId })).kind).toBe('invalid_state');
  });

  it('authorises nothing while it is halted', async () => {
    const planId = await open();
    const port = service.services.plans.plan('acme', planId);
    await port.command({ type: 'halt', by: { kind: 'human', id: 'boss' }, level: 'plan', epoch: null, reason: 'it pays twice' });
    const answer = await authorize(planId);
    expect(answer).toMatchObject({ allowed: false, requires_approval: false });
    expect(answer.reason).toContain('it pays twice');
    expect(await trail(planId)).toMatchObject({ denied_count: 1, entries: [{ event_type: 'state_blocked' }] });
  });
});

describe('authorize', () => {
  it('answers the decision with every guard, and holds the money until it is settled', async () => {
    const planId = await open({ tool_budget: 1 });
    const answer = await authorize(planId, { cost_usd: 0.4, arguments: { path: 'a' } });
    expect(answer).toMatchObject({
      allowed: true,
      reason: null,
      requires_approval: false,
      expires_at: new Date(START + HOUR_MS).toISOString(),
    });
    expect(answer.guards.map((each) => each.guard)).toEqual(
      expect.arrayContaining(['denylist', 'budget_cap', 'tool_call_limit', 'confidence']),
    );
    expect(answer.guards.every((each) => each.result === 'allowed')).toBe(true);
    expect((await status(planId)).budget).toMatchObject({ spent_usd: 0, reserved_usd: 0.4, remaining_usd: 0.6 });
    expect(await settle(answer.decision_id, { outcome: 'succeeded', cost_usd: 0.25 })).toMatchObject({
      charged_usd: 0.25,
      marks: [],
      late: false,
      budget: { spent_usd: 0.25, reserved_usd: 0, remaining_usd: 0.75 },
    });
  });

  it('writes one row for an authorisation, in the name of the caller', async () => {
    const planId = await open();
    const before = (await log(planId)).length;
    await authorize(planId);
    const rows = (await log(planId)).slice(before);
    expect(rows.map((row) => row.type)).toEqual(['call_decided']);
    expect(rows[0]?.actor).toEqual({ kind: 'agent', id: agent.principal.keyId, name: agent.principal.name });
  });

  it.each([
    ['shell_*', 'shell_exec', true],
    ['shell_*', 'my_shell_exec', false],
    ['builtin/*', 'builtin/anything', true],
    ['shell', 'shell_exec', false],
    ['shell', 'shell', true],
    ['a.b', 'a.b', true],
    ['a.b', 'axb', false],
    ['shell_exec', 'SHELL_EXEC', true],
  ])('denylist entry %s against %s: denied %s', async (pattern, tool, denied) => {
    const planId = await open({ tool_denylist: [pattern] });
    const answer = await authorize(planId, { tool_name: tool });
    expect(answer.allowed).toBe(!denied);
    if (!denied) return;
    expect(answer.requires_approval).toBe(true);
    expect(answer.reason).toContain(`'${tool}'`);
    if (pattern !== tool) expect(answer.reason).toContain(`'${pattern}'`);
    expect((await trail(planId)).entries).toMatchObject([{ event_type: 'denylist_blocked', guard_name: 'denylist', result: 'denied' }]);
  });

  it.each([
    [0, 0, 'denies the first'],
    [3, 3, 'allows three'],
    [null, 6, 'allows all'],
  ] as const)('with max_tool_calls_per_step %s: lets %s pass, %s', async (limit, allowed, _shown) => {
    const planId = await open({ max_tool_calls_per_step: limit });
    const answers = [];
    for (let n = 0; n < 6; n += 1) answers.push(await authorize(planId, { step: 1, arguments: { n } }));
    expect(answers.filter((each) => each.allowed).length).toBe(allowed);
    if (limit === null) return;
    expect(answers[allowed]?.reason).toContain(`Tool call limit reached: ${limit}/${limit}`);
    // A new step permits as many again, and going back to the first does not open it once more.
    expect((await authorize(planId, { step: 2 })).allowed).toBe(limit > 0);
    expect((await authorize(planId, { step: 1, arguments: { again: true } })).allowed).toBe(false);
  });

  it('refuses the fourth of five calls at 0.30 under 1.00, and has spent 0.90', async () => {
    const planId = await open({ tool_budget: 1 });
    const answers = [];
    for (let n = 0; n < 5; n += 1) {
      const answer = await authorize(planId, { cost_usd: 0.3, arguments: { n } });
      answers.push(answer);
      if (answer.allowed) await settle(answer.decision_id);
    }
    expect(answers.map((each) => each.allowed)).toEqual([true, true, true, false, false]);
    expect(answers[3]).toMatchObject({ exceeded_level: 'plan', requires_approval: true });
    expect(answers[3]?.reason).toContain('Budget cap exceeded: $1.20 > $1.00');
    expect((await status(planId)).budget.spent_usd).toBe(0.9);
    // One question stands for all calls behind the limit, and it shows each of them.
    const [question, ...others] = await approvals(planId);
    expect(others).toEqual([]);
    expect(question).toMatchObject({ approval_id: answers[4]?.approval_id, suggested_grant: { cost_usd: 0.5 } });
  });

  it('adds ten times 0.10 to exactly 1.00', async () => {
    const planId = await open({ tool_budget: 1 });
    for (let n = 0; n < 10; n += 1) expect((await authorize(planId, { cost_usd: 0.1 })).allowed).toBe(true);
    expect((await authorize(planId, { cost_usd: 0.000001 })).allowed).toBe(false);
    expect((await authorize(planId, { cost_usd: 0, arguments: { free: true } })).allowed).toBe(true);
    expect((await status(planId)).budget).toMatchObject({ reserved_usd: 1, remaining_usd: 0 });
  });

  it('asks for the price of a call where money is limited, and not where it is not', async () => {
    const limited = await open({ tool_budget: 1 });
    const answer = await authorize(limited, { tool_name: 'my_tool' });
    expect(answer).toMatchObject({ allowed: false, requires_approval: false });
    expect(answer.reason).toContain('price');
    expect((await authorize(limited, { tool_name: 'my_tool', cost_usd: 0 })).allowed).toBe(true);
    expect((await authorize(await open(), { tool_name: 'my_tool' })).allowed).toBe(true);
  });

  it('decides 50 calls at once to exactly ten, each of them recorded', async () => {
    const planId = await open({ tool_budget: 1 });
    const answers = await Promise.all(Array.from({ length: 50 }, () => authorize(planId, { cost_usd: 0.1 })));
    expect(answers.filter((each) => each.allowed)).toHaveLength(10);
    const { entries, allowed_count: allowed, denied_count: denied } = await trail(planId);
    expect([entries.length, allowed, denied]).toEqual([50, 10, 40]);
    expect(await approvals(planId)).toHaveLength(1);
    for (const answer of answers.filter((each) => each.allowed)) await settle(answer.decision_id);
    expect((await status(planId)).budget).toMatchObject({ spent_usd: 1, reserved_usd: 0 });
  });

  it('has its decisions in the trail in their order, with guard and reason', async () => {
    const planId = await open({ tool_denylist: ['bad'] });
    for (const tool of ['one', 'bad', 'two', 'bad', 'three']) await authorize(planId, { tool_name: tool, arguments: { tool } });
    const { entries } = await trail(planId);
    expect(entries.map((each) => [each.context['tool'], each.result])).toEqual([
      ['one', 'allowed'],
      ['bad', 'denied'],
      ['two', 'allowed'],
      ['bad', 'denied'],
      ['three', 'allowed'],
    ]);
    expect(entries[1]).toMatchObject({ guard_name: 'denylist', event_type: 'denylist_blocked' });
    expect(entries[1]?.reason).toContain('denylist');
  });

  it.each([undefined, null, 7, '', '  ', [], ['x'], {}, true, 'x'.repeat(300)] as const)(
    'refuses the tool name %j by its field, and records it once',
    async (name) => {
      const planId = await open();
      const before = (await log(planId)).length;
      const params = { plan_id: planId, cost_usd: 0.1, ...(name === undefined ? {} : { tool_name: name }) };
      const refusal = await agent.refused('_cleveragents/guard/authorize', params as never);
      expect(refusal).toMatchObject({
        kind: 'invalid',
        issues: [{ field: 'tool_name' }],
        details: { plan_id: planId, guard: 'tool', tool: typeof name === 'string' ? name.slice(0, 256) : (name ?? null) },
      });
      const { entries } = await trail(planId);
      expect(entries).toMatchObject([{ event_type: 'tool_blocked', guard_name: 'tool', result: 'denied' }]);
      expect((await log(planId)).length).toBe(before + 1);
      expect((await status(planId)).budget).toMatchObject({ spent_usd: 0, reserved_usd: 0 });
    },
  );

  it('denies a name that no tool can have, without asking anybody', async () => {
    const planId = await open();
    for (const name of ['rm -rf', 'shеll', '../x', '<tool>']) {
      expect(await authorize(planId, { tool_name: name })).toMatchObject({ allowed: false, requires_approval: false });
    }
  });

  it('never takes a known tool for less than it is', async () => {
    const planId = await open({ require_approval_for_writes: true });
    const [known] = service.services.catalogue.specs().filter((spec) => spec.riskClass === 'write');
    const writes = [
      { tool_name: known?.name ?? '', is_write: false },
      { tool_name: 'own_tool', is_write: true },
      { tool_name: 'own_tool' },
    ];
    for (const call of writes) expect(await authorize(planId, call)).toMatchObject({ allowed: false, requires_approval: true });
    expect(await authorize(planId, { tool_name: 'own_tool', is_write: false })).toMatchObject({ allowed: true });
  });

  it('counts an executor that tries again after a failure, up to the limit of retries', async () => {
    const planId = await open({ actor_limits: { max_retries_per_failure: 2 } });
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      const answer = await authorize(planId, { tool_name: 'flaky' });
      expect(answer.allowed).toBe(true);
      await settle(answer.decision_id, { outcome: 'failed' });
    }
    const fourth = await authorize(planId, { tool_name: 'flaky' });
    expect(fourth.reason).toContain('Retry limit reached: 2/2');
    expect((await trail(planId)).entries.at(-1)).toMatchObject({ event_type: 'retry_blocked' });
    // What was never tried counts for nothing.
    const other = await authorize(planId, { tool_name: 'other' });
    for (let n = 0; n < 4; n += 1) {
      const again = n === 0 ? other : await authorize(planId, { tool_name: 'other' });
      expect(again.allowed).toBe(true);
      await settle(again.decision_id, { outcome: 'not_dispatched' });
    }
  });
});

describe('an approval', () => {
  it('lets exactly this call pass, once, when it is asked for again', async () => {
    const planId = await open({ tool_denylist: ['deploy'] });
    const call = { tool_name: 'deploy', arguments: { to: 'prod' }, cost_usd: 0.2 };
    const refused = await authorize(planId, call);
    expect(refused).toMatchObject({ allowed: false, requires_approval: true });
    expect((await status(planId)).task_state).toBe('input-required');
    // Asking again changes nothing but the trail: one question, one decision.
    expect(await authorize(planId, call)).toMatchObject({
      allowed: false,
      decision_id: refused.decision_id,
      approval_id: refused.approval_id,
    });
    await decide(refused.approval_id ?? '', 'approve');
    // Nothing was reserved by the approval itself: nobody has begun.
    expect((await status(planId)).budget.reserved_usd).toBe(0);

    expect((await authorize(planId, { ...call, arguments: { to: 'test' } })).allowed).toBe(false);
    expect((await authorize(planId, { ...call, cost_usd: 0.3 })).allowed).toBe(false);
    expect((await authorize(planId, { ...call, step: 2 })).allowed).toBe(false);
    expect((await authorize(planId, { ...call, operation: 'other' })).allowed).toBe(false);
    const allowed = await authorize(planId, call);
    expect(allowed).toMatchObject({ allowed: true, decision_id: refused.decision_id });
    const decided = (await log(planId)).findLast((row) => row.type === 'call_decided');
    expect(decided?.data).toMatchObject({ consumed_approval: refused.approval_id, reserved_micro_usd: 200_000 });

    const third = await authorize(planId, call);
    expect(third).toMatchObject({ allowed: false, requires_approval: true });
    expect(third.decision_id).not.toBe(refused.decision_id);
  });

  it('that is denied ends the call; asking again is a new one', async () => {
    const planId = await open({ tool_denylist: ['deploy'] });
    const refused = await authorize(planId, { tool_name: 'deploy', idempotency_key: 'k' });
    await decide(refused.approval_id ?? '', 'deny');
    const same = await authorize(planId, { tool_name: 'deploy', idempotency_key: 'k' });
    expect(same).toMatchObject({ allowed: false, requires_approval: false, decision_id: refused.decision_id });
    expect(same.reason).toContain('denied by');
    const again = await authorize(planId, { tool_name: 'deploy' });
    expect(again).toMatchObject({ allowed: false, requires_approval: true });
    expect(again.decision_id).not.toBe(refused.decision_id);
  });

  it('that is not used before its question would have expired is void', async () => {
    const planId = await open({ tool_denylist: ['deploy'] });
    const refused = await authorize(planId, { tool_name: 'deploy' });
    await decide(refused.approval_id ?? '', 'approve');
    service.clock.ms += 8 * 24 * HOUR_MS;
    const late = await authorize(planId, { tool_name: 'deploy' });
    expect(late).toMatchObject({ allowed: false, requires_approval: true });
    expect(late.approval_id).not.toBe(refused.approval_id);
  });

  it('is gone with the guards that it was given under', async () => {
    const planId = await open({ tool_denylist: ['deploy'] });
    const refused = await authorize(planId, { tool_name: 'deploy' });
    await decide(refused.approval_id ?? '', 'approve');
    await agent.call('_cleveragents/guard/configure', { plan_id: planId, guardrails: { max_steps: 9 } });
    expect(await authorize(planId, { tool_name: 'deploy' })).toMatchObject({ allowed: false, requires_approval: true });
  });

  it('of a limit grants a stated amount, and every call behind it may be asked for again', async () => {
    const planId = await open({ tool_budget: 1 });
    await settle((await authorize(planId, { cost_usd: 1 })).decision_id);
    await authorize(planId, { cost_usd: 0.2, arguments: { n: 1 } });
    const { approval_id: both = '' } = await authorize(planId, { cost_usd: 0.2, arguments: { n: 2 } });
    await decide(both, 'approve', { cost_usd: 0.2 });
    expect(await authorize(planId, { cost_usd: 0.2, arguments: { n: 2 } })).toMatchObject({ allowed: true });
    expect(await authorize(planId, { cost_usd: 0.2, arguments: { n: 1 } })).toMatchObject({ allowed: false, requires_approval: true });
  });

  it('of a limit shows every call behind it: one that comes later makes a new question, and the one before it is no answer any more', async () => {
    const planId = await open({ tool_budget: 1 });
    await settle((await authorize(planId, { cost_usd: 1 })).decision_id);
    const call = (n: number) => ({ cost_usd: 0.2, arguments: { n }, idempotency_key: `k${n}` });
    const first = await authorize(planId, call(1));
    const [shown] = await approvals(planId);
    const second = await authorize(planId, call(2));
    expect(second.approval_id).not.toBe(first.approval_id);
    const stale = { approval_id: first.approval_id ?? '', decision: 'approve' as const, digest: shown?.digest ?? '' };
    expect((await boss.refused('_cleveragents/approval/decide', stale)).kind).toBe('invalid_state');
    const [asked, ...others] = await approvals(planId);
    expect(others).toEqual([]);
    expect(asked?.calls?.map((each) => each.arguments)).toEqual([{ n: 1 }, { n: 2 }]);
    expect(asked).toMatchObject({ estimate_usd: 0.4, suggested_grant: { cost_usd: 0.4 } });
    // Whoever asked first is told of the question that stands.
    expect(await authorize(planId, call(1))).toMatchObject({ decision_id: first.decision_id, approval_id: second.approval_id });
    expect((await approvals(planId))[0]?.approval_id).toBe(second.approval_id);
    await decide(second.approval_id ?? '', 'approve');
    for (const n of [1, 2]) expect(await authorize(planId, call(n))).toMatchObject({ allowed: true });
  });

  it('of a limit that is denied ends every call that it shows', async () => {
    const planId = await open({ tool_budget: 1 });
    await settle((await authorize(planId, { cost_usd: 1 })).decision_id);
    const call = (n: number) => ({ cost_usd: 0.2, arguments: { n }, idempotency_key: `k${n}` });
    await authorize(planId, call(1));
    await decide((await authorize(planId, call(2))).approval_id ?? '', 'deny');
    for (const n of [1, 2]) expect((await authorize(planId, call(n))).reason).toContain('denied by');
  });

  it('of a limit shows fifty calls at most; the others are asked about after its answer', async () => {
    const planId = await open({ tool_budget: 0 });
    const answers = [];
    for (let n = 0; n < 53; n += 1) answers.push(await authorize(planId, { cost_usd: 0.1, arguments: { n } }));
    const [asked, ...others] = await approvals(planId);
    expect(others).toEqual([]);
    expect(asked?.calls).toHaveLength(50);
    expect(asked?.approval_id).toBe(answers[49]?.approval_id);
    expect(answers[52]).toMatchObject({ allowed: false, requires_approval: true });
    expect(answers[52]?.approval_id).toBeUndefined();
    await decide(asked?.approval_id ?? '', 'deny');
    expect((await authorize(planId, { cost_usd: 0.1, arguments: { n: 52 } })).approval_id).toBeDefined();
  });

  it('for more calls is for the step of the call that asked', async () => {
    const planId = await open({ max_tool_calls_per_step: 1 });
    await authorize(planId, { step: 1 });
    await authorize(planId, { step: 2 });
    const refused = await authorize(planId, { step: 1, arguments: { more: 1 } });
    await decide(refused.approval_id ?? '', 'approve', { calls: 1 });
    expect((await authorize(planId, { step: 2, arguments: { more: 1 } })).allowed).toBe(false);
    expect((await authorize(planId, { step: 1, arguments: { more: 1 } })).allowed).toBe(true);
  });

  it('is asked by the gate of each call under a profile that wants a human, several at a time', async () => {
    const planId = await open({}, { automation_profile: 'manual' });
    const first = await authorize(planId, { arguments: { n: 1 } });
    const second = await authorize(planId, { arguments: { n: 2 } });
    expect(first.approval_id).not.toBe(second.approval_id);
    expect(await approvals(planId)).toMatchObject([
      { kind: 'gate', gate: 'execute_command' },
      { kind: 'gate', gate: 'execute_command' },
    ]);
    await decide(second.approval_id ?? '', 'approve');
    expect((await authorize(planId, { arguments: { n: 1 } })).allowed).toBe(false);
    expect((await authorize(planId, { arguments: { n: 2 } })).allowed).toBe(true);
    await decide(first.approval_id ?? '', 'approve');
    expect((await authorize(planId, { arguments: { n: 1 } })).allowed).toBe(true);
    expect((await status(planId)).task_state).toBe('working');
  });

  it('is withdrawn when the call passes without it', async () => {
    const planId = await open({ tool_budget: 1 });
    const holder = await authorize(planId, { cost_usd: 1 });
    const behind = await authorize(planId, { cost_usd: 0.5, arguments: { n: 1 } });
    expect(behind.requires_approval).toBe(true);
    await settle(holder.decision_id, { outcome: 'not_dispatched' });
    expect(await authorize(planId, { cost_usd: 0.5, arguments: { n: 1 } })).toMatchObject({
      allowed: true,
      decision_id: behind.decision_id,
    });
    expect(await approvals(planId)).toEqual([]);
  });

  it('is never asked where nobody answers: the plan ends with the reason', async () => {
    const planId = await open({ tool_denylist: ['deploy'] }, { automation_profile: 'ci' });
    expect(await authorize(planId, { tool_name: 'deploy' })).toMatchObject({ allowed: false, requires_approval: false });
    expect(await status(planId)).toMatchObject({ state: 'errored', task_state: 'failed' });
  });

  it('cannot be given by an agent', async () => {
    const planId = await open({ tool_denylist: ['deploy'] });
    const { approval_id: id = '' } = await authorize(planId, { tool_name: 'deploy' });
    const [approval] = await approvals(planId);
    const refusal = await agent.refused('_cleveragents/approval/decide', {
      approval_id: id,
      decision: 'approve',
      digest: approval?.digest ?? '',
    });
    expect(refusal.kind).toBe('forbidden');
    expect((await authorize(planId, { tool_name: 'deploy' })).allowed).toBe(false);
  });

  it('floods nobody: beyond a hundred open questions no more are asked', async () => {
    const planId = await open({ tool_denylist: ['deploy'] });
    for (let n = 0; n < 103; n += 1) await authorize(planId, { tool_name: 'deploy', arguments: { n } });
    expect(await approvals(planId)).toHaveLength(100);
  });
});

describe('an idempotency key', () => {
  it('answers the same decision, and reserves once', async () => {
    const planId = await open({ tool_budget: 1 });
    const call = { cost_usd: 0.4, arguments: { n: 1 }, idempotency_key: 'k' };
    const answers = await Promise.all([authorize(planId, call), authorize(planId, call), authorize(planId, call)]);
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    expect((await status(planId)).budget.reserved_usd).toBe(0.4);
  });

  it.each(['succeeded', 'failed', 'not_dispatched'] as const)(
    'of a decision that is settled (%s) is no permission any more, and holds nothing',
    async (outcome) => {
      const planId = await open({ tool_budget: 1 });
      const call = { cost_usd: 0.9, arguments: { n: 1 }, idempotency_key: 'k' };
      const { decision_id } = await authorize(planId, call);
      await agent.call('_cleveragents/guard/settle', { decision_id, outcome });
      const again = await authorize(planId, call);
      expect(again).toMatchObject({
        allowed: false,
        requires_approval: false,
        decision_id,
        reason: expect.stringContaining(`settled: ${outcome}`),
      });
      expect((await status(planId)).budget.reserved_usd).toBe(0);
      expect(await authorize(planId, { ...call, idempotency_key: 'k2' })).toMatchObject({ allowed: outcome === 'not_dispatched' });
    },
  );

  it('of an open decision follows the lists as they are now, and keeps its money until it ends', async () => {
    const planId = await open({ tool_budget: 1 });
    const call = { cost_usd: 0.9, tool_name: 'own.mail', idempotency_key: 'k' };
    const { decision_id } = await authorize(planId, call);
    await agent.call('_cleveragents/plan/guard/denylist/add', { plan_id: planId, tool: 'own.mail' });
    expect(await authorize(planId, call)).toMatchObject({ allowed: false, decision_id, reason: expect.stringContaining('denylist') });
    expect((await status(planId)).budget.reserved_usd).toBe(0.9);
    expect((await trail(planId)).entries.at(-1)).toMatchObject({ result: 'denied', guard_name: 'denylist' });
    await agent.call('_cleveragents/guard/settle', { decision_id, outcome: 'succeeded' });
    expect((await status(planId)).budget).toMatchObject({ reserved_usd: 0, spent_usd: 0.9 });
  });

  it('conflicts with another call', async () => {
    const planId = await open();
    await authorize(planId, { idempotency_key: 'k' });
    for (const other of [
      { tool_name: 'other' },
      { arguments: { n: 1 } },
      { cost_usd: 1 },
      { step: 3 },
      { is_write: true },
      { operation: 'x' },
    ]) {
      const params = { plan_id: planId, tool_name: 'read_file', idempotency_key: 'k', ...other };
      expect((await agent.refused('_cleveragents/guard/authorize', params)).kind).toBe('already_exists');
    }
  });

  it('of a call that waits for a human answers the question, and afterwards the decision', async () => {
    const planId = await open({ tool_denylist: ['deploy'] });
    const call = { tool_name: 'deploy', idempotency_key: 'k' };
    const refused = await authorize(planId, call);
    expect(await authorize(planId, call)).toEqual(refused);
    expect((await trail(planId)).entries).toHaveLength(1);
    await decide(refused.approval_id ?? '', 'approve');
    expect(await authorize(planId, call)).toMatchObject({ allowed: true, decision_id: refused.decision_id });
  });
});

describe('settle', () => {
  it.each([
    [{ outcome: 'succeeded', cost_usd: 0.1 }, 0.1, []],
    [{ outcome: 'succeeded' }, 0.4, ['estimated']],
    [{ outcome: 'succeeded', cost_usd: 0 }, 0, []],
    [{ outcome: 'failed', cost_usd: 0.2 }, 0.2, []],
    [{ outcome: 'failed' }, 0.4, ['estimated']],
    [{ outcome: 'succeeded', cost_usd: 2 }, 2, ['overrun']],
    [{ outcome: 'not_dispatched' }, 0, []],
    [{ outcome: 'not_dispatched', cost_usd: 0 }, 0, []],
  ] as const)('%j charges %d', async (outcome, charged, marks) => {
    const planId = await open({ tool_budget: 1 });
    const { decision_id: id } = await authorize(planId, { cost_usd: 0.4 });
    const answer = await settle(id, outcome);
    expect(answer).toMatchObject({ charged_usd: charged, marks, late: false, budget: { spent_usd: charged, reserved_usd: 0 } });
    // The same again is the same answer, anything else is refused; neither writes.
    const before = (await log(planId)).length;
    expect(await settle(id, outcome)).toEqual(answer);
    expect((await agent.refused('_cleveragents/guard/settle', { decision_id: id, outcome: 'succeeded', cost_usd: 0.77 })).kind).toBe(
      'invalid_state',
    );
    expect((await log(planId)).length).toBe(before);
  });

  it('refuses a cost of what was never dispatched, a call that was not allowed, and a decision that is not there', async () => {
    const planId = await open({ tool_denylist: ['deploy'] });
    const { decision_id: id } = await authorize(planId, { cost_usd: 0.4 });
    expect(await agent.refused('_cleveragents/guard/settle', { decision_id: id, outcome: 'not_dispatched', cost_usd: 0.1 })).toMatchObject({
      kind: 'invalid',
      issues: [{ field: 'cost_usd' }],
    });
    const denied = await authorize(planId, { tool_name: 'deploy' });
    expect((await agent.refused('_cleveragents/guard/settle', { decision_id: denied.decision_id, outcome: 'succeeded' })).kind).toBe(
      'invalid_state',
    );
    expect((await agent.refused('_cleveragents/guard/settle', { decision_id: `${planId}.c99`, outcome: 'succeeded' })).kind).toBe(
      'not_found',
    );
  });

  it('that never comes is charged in full after an hour, visibly; what comes later is recorded as late', async () => {
    const planId = await open({ tool_budget: 1 });
    const ids = [];
    for (let n = 0; n < 3; n += 1) ids.push((await authorize(planId, { cost_usd: 0.1, arguments: { n } })).decision_id);
    service.clock.ms += HOUR_MS;
    // Whatever comes first finds them expired, whether or not an alarm was there before it.
    const [cheaper = '', dearer = '', silent = ''] = ids;
    expect(await settle(cheaper, { outcome: 'succeeded', cost_usd: 0.02 })).toMatchObject({ charged_usd: 0.1, late: true });
    await agent.call('_cleveragents/guard/check_wall_clock', { plan_id: planId });
    expect((await status(planId)).budget).toMatchObject({ spent_usd: 0.3, reserved_usd: 0 });
    expect(await settle(dearer, { outcome: 'succeeded', cost_usd: 0.5 })).toMatchObject({
      charged_usd: 0.5,
      late: true,
      marks: ['overrun'],
    });
    expect((await status(planId)).budget).toMatchObject({ spent_usd: 0.7, overrun_usd: 0.4 });
    const audit = await viewer.call('_cleveragents/plan/guard/audit', { plan_id: planId, limit: 100 });
    expect(audit.entries.filter((each) => each.event_type === 'authorisation_expired')).toHaveLength(3);
    expect(audit.entries.filter((each) => each.context['late'] === true)).toHaveLength(2);
    expect(await settle(silent, { outcome: 'not_dispatched' })).toMatchObject({ charged_usd: 0.1, late: true });
    expect((await status(planId)).budget.spent_usd).toBe(0.7);
  });

  it('after the end of the plan is cost and nothing else', async () => {
    const planId = await open({ tool_budget: 1 });
    const { decision_id: id } = await authorize(planId, { cost_usd: 0.4 });
    await agent.call('_cleveragents/plan/cancel', { plan_id: planId });
    expect((await status(planId)).budget).toMatchObject({ spent_usd: 0, reserved_usd: 0.4 });
    expect(await settle(id, { outcome: 'succeeded', cost_usd: 0.3 })).toMatchObject({ charged_usd: 0.3, late: true });
    expect(await status(planId)).toMatchObject({ task_state: 'canceled', budget: { spent_usd: 0.3, reserved_usd: 0 } });
  });

  it('warns once, at 90 % of the cap', async () => {
    const planId = await open({ tool_budget: 1 });
    for (const cost of [0.89, 0.02, 0.05]) await settle((await authorize(planId, { cost_usd: cost })).decision_id);
    const rows = await log(planId);
    const warnings = rows.filter((row) => row.type === 'budget_warning');
    expect(warnings).toHaveLength(1);
    expect(rows.filter((row) => row.type === 'call_settled' && row.seq < (warnings[0]?.seq ?? 0))).toHaveLength(2);
  });
});

describe('the checks of the source', () => {
  const check = <N extends OperationName>(name: N, params: ParamsInputOf<N>) => agent.call(name, params);

  it('of a plan without guardrails allow', async () => {
    const plan_id = await open();
    expect(await check('_cleveragents/guard/check_step_limit', { plan_id, current_step: 10_000 })).toEqual({ allowed: true });
    expect(await check('_cleveragents/guard/check_tool_budget', { plan_id, tool_cost: 10_000 })).toEqual({ allowed: true });
    expect(await check('_cleveragents/guard/check_wall_clock', { plan_id })).toEqual({ allowed: true });
    expect(await check('_cleveragents/guard/check_actor_tool_calls', { plan_id, current_calls: 10_000 })).toEqual({ allowed: true });
    expect(await check('_cleveragents/guard/check_confirmation_required', { plan_id, operation: 'deploy' })).toEqual({ required: false });
    expect(await check('_cleveragents/guard/check_budget_hierarchy', { plan_id, tool_cost: 10_000 })).toEqual({
      allowed: true,
      reason: null,
      exceeded_level: null,
    });
  });

  it('of retries are bound by what the locked profile says, as everything is', async () => {
    const plan_id = await open();
    expect(await check('_cleveragents/guard/check_retries_per_failure', { plan_id, current_retries: 2 })).toEqual({ allowed: true });
    expect(await check('_cleveragents/guard/check_retries_per_failure', { plan_id, current_retries: 3 })).toEqual({ allowed: false });
    expect((await trail(plan_id)).entries.at(-1)?.reason).toContain('max_retries_per_step');
  });

  it('record each answer under the name of its kind', async () => {
    const plan_id = await open({
      max_steps: 2,
      tool_budget: 1,
      max_wall_clock_seconds: 60,
      actor_limits: { max_tool_calls_per_invocation: 3, max_retries_per_failure: 2 },
      required_confirmations: ['deploy*'],
    });
    const asked = [
      await check('_cleveragents/guard/check_step_limit', { plan_id, current_step: 2 }),
      await check('_cleveragents/guard/check_step_limit', { plan_id, current_step: 3 }),
      await check('_cleveragents/guard/check_tool_budget', { plan_id, tool_cost: 1 }),
      await check('_cleveragents/guard/check_tool_budget', { plan_id, tool_cost: 0.01 }),
      await check('_cleveragents/guard/check_wall_clock', { plan_id }),
      await check('_cleveragents/guard/check_actor_tool_calls', { plan_id, current_calls: 2 }),
      await check('_cleveragents/guard/check_actor_tool_calls', { plan_id, current_calls: 3 }),
      await check('_cleveragents/guard/check_retries_per_failure', { plan_id, current_retries: 1 }),
      await check('_cleveragents/guard/check_retries_per_failure', { plan_id, current_retries: 2 }),
    ];
    expect(asked.map((each) => each.allowed)).toEqual([true, false, true, false, true, true, false, true, false]);
    expect(await check('_cleveragents/guard/check_confirmation_required', { plan_id, operation: 'Deploy_production' })).toEqual({
      required: true,
    });
    expect(await check('_cleveragents/guard/check_confirmation_required', { plan_id, operation: 'read' })).toEqual({ required: false });
    service.clock.ms += 60_000;
    expect(await check('_cleveragents/guard/check_wall_clock', { plan_id })).toEqual({ allowed: false });
    const { entries } = await trail(plan_id);
    expect(entries.map((each) => each.event_type)).toEqual([
      'step_allowed',
      'step_blocked',
      'budget_allowed',
      'budget_blocked',
      'time_allowed',
      'actor_limit_allowed',
      'actor_limit_blocked',
      'retry_allowed',
      'retry_blocked',
      'confirmation_required',
      'confirmation_granted',
      'time_blocked',
    ]);
    expect(entries.map((each) => each.reason !== null)).toEqual(entries.map((each) => each.result === 'denied'));
    expect(entries[3]?.context).toMatchObject({ tool_cost: 0.01, exceeded_level: 'plan' });
    expect(await status(plan_id)).toMatchObject({ steps: { used: 2 }, budget: { spent_usd: 1 } });
  });

  it.each([
    [
      'cap 5.00',
      5,
      [
        [4.99, true],
        [0.01, true],
        [0.01, false],
      ],
    ],
    [
      'cap 0',
      0,
      [
        [0, true],
        [0.01, false],
      ],
    ],
    ['no cap', null, [[1000, true]]],
    ['ten times 0.10 under 1.00', 1, [...Array.from({ length: 10 }, () => [0.1, true] as const), [0.1, false]]],
    [
      'larger than the rest',
      1,
      [
        [0.6, true],
        [0.6, false],
        [0.4, true],
      ],
    ],
  ] as const)('check_tool_budget, %s', async (_name, cap, costs) => {
    const plan_id = await open({ tool_budget: cap });
    let spent = 0;
    for (const [cost, isAllowed] of costs) {
      expect(await check('_cleveragents/guard/check_tool_budget', { plan_id, tool_cost: cost })).toEqual({ allowed: isAllowed });
      if (isAllowed) spent = Math.round((spent + cost) * 1e6) / 1e6;
      expect((await status(plan_id)).budget.spent_usd).toBe(spent);
    }
  });

  it('check_tool_budget lets exactly ten of 50 at once pass', async () => {
    const plan_id = await open({ tool_budget: 1 });
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => check('_cleveragents/guard/check_tool_budget', { plan_id, tool_cost: 0.1 })),
    );
    expect(answers.filter((each) => each.allowed)).toHaveLength(10);
    expect(await trail(plan_id)).toMatchObject({ allowed_count: 10, denied_count: 40 });
    expect((await status(plan_id)).budget.spent_usd).toBe(1);
  });

  it('check_budget_hierarchy says which level, spends nothing, and writes the amounts so that they differ', async () => {
    const plan_id = await open({ tool_budget: 5 });
    const answer = await check('_cleveragents/guard/check_budget_hierarchy', { plan_id, tool_cost: 5.01 });
    expect(answer).toMatchObject({ allowed: false, exceeded_level: 'plan' });
    expect(answer.reason).toContain('$5.01 > $5.00');
    expect((await status(plan_id)).budget.spent_usd).toBe(0);
  });

  it('count authorised money as spent', async () => {
    const plan_id = await open({ tool_budget: 1 });
    await authorize(plan_id, { cost_usd: 0.8 });
    expect(await check('_cleveragents/guard/check_tool_budget', { plan_id, tool_cost: 0.3 })).toEqual({ allowed: false });
    expect(await check('_cleveragents/guard/check_tool_budget', { plan_id, tool_cost: 0.2 })).toEqual({ allowed: true });
  });

  it('count the time in which a human is asked about one call, since the others are allowed meanwhile', async () => {
    const plan_id = await open({ max_wall_clock_seconds: 60, tool_denylist: ['deploy'] });
    service.clock.ms += 10_000;
    expect(await authorize(plan_id, { tool_name: 'deploy', cost_usd: 0 })).toMatchObject({ allowed: false, requires_approval: true });
    service.clock.ms += 49_000;
    expect(await authorize(plan_id, { cost_usd: 0 })).toMatchObject({ allowed: true });
    expect(await check('_cleveragents/guard/check_wall_clock', { plan_id })).toEqual({ allowed: true });
    service.clock.ms += 1_000;
    expect(await check('_cleveragents/guard/check_wall_clock', { plan_id })).toEqual({ allowed: false });
    expect(await authorize(plan_id, { cost_usd: 0 })).toMatchObject({ allowed: false });
  });

  it('do not count the time in which a human is asked for more time', async () => {
    const plan_id = await open({ max_wall_clock_seconds: 60 });
    service.clock.ms += 60_000;
    const { approval_id: id = '' } = await authorize(plan_id, { cost_usd: 0 });
    service.clock.ms += 24 * HOUR_MS;
    await decide(id, 'approve', { seconds: 10 });
    service.clock.ms += 9_000;
    expect(await authorize(plan_id, { cost_usd: 0 })).toMatchObject({ allowed: true });
    service.clock.ms += 1_000;
    expect(await authorize(plan_id, { cost_usd: 0 })).toMatchObject({ allowed: false });
  });
});

describe('evaluate', () => {
  const evaluate = (params: ParamsInputOf<'_cleveragents/guard/evaluate'>) => viewer.call('_cleveragents/guard/evaluate', params);

  it('answers for a profile as the source does', async () => {
    await boss.call('_cleveragents/profile/add', {
      profile: {
        name: 'strict',
        extends: 'auto',
        guard: { max_tool_calls_per_step: 10, max_total_cost: 5, tool_denylist: ['shell_exec'], require_approval_for_writes: true },
      } as never,
    });
    const of = (tool: string, context: object) => evaluate({ automation_profile: 'strict', tool_name: tool, context });
    expect(await of('shell_exec', { is_write: true, cost_so_far: 2.5, calls_so_far: 5, scope: 'plan' })).toMatchObject({
      allowed: false,
      reason: "Tool 'shell_exec' is on the denylist. Remediation: remove it from the denylist or request human approval.",
      requires_approval: true,
    });
    expect(await of('read', { cost_so_far: 5 })).toMatchObject({ allowed: true, reason: null, requires_approval: false });
    expect((await of('read', { cost_so_far: 5, cost_usd: 0.01 })).reason).toContain('$5.01 > $5.00');
    expect((await of('read', { cost_so_far: 5.23 })).reason).toContain(
      'Budget cap exceeded: $5.23 > $5.00. Remediation: raise max_total_cost',
    );
    expect((await of('read', { calls_so_far: 10 })).reason).toContain('Tool call limit reached: 10/10');
    expect(await of('read', { calls_so_far: 9 })).toMatchObject({ allowed: true });
    expect(await of('read', { is_write: true })).toMatchObject({ allowed: false, requires_approval: true });
  });

  it.each([
    [{ max_tool_calls_per_step: 0 }, { calls_so_far: 0 }, false],
    [{ max_total_cost: 0 }, { cost_so_far: 0.01 }, false],
    [{ max_total_cost: 0 }, { cost_so_far: 0 }, true],
    [{ max_tool_calls_per_step: null, max_total_cost: null }, { cost_so_far: 99, calls_so_far: 99 }, true],
    [{ max_total_cost: 5 }, { cost_so_far: 4.99 }, true],
    [{ max_total_cost: 5 }, { cost_so_far: 5.01 }, false],
    [{ tool_allowlist: [] }, {}, false],
    [{ tool_allowlist: ['x'] }, {}, true],
  ] as const)('under %j with %j: allowed %s', async (guardrails, context, isAllowed) => {
    const plan_id = await open(guardrails as never);
    expect(await evaluate({ plan_id, tool_name: 'x', context })).toMatchObject({ allowed: isAllowed });
  });

  it('speaks of a subplan where it is about one, and knows no third scope', async () => {
    const plan_id = await open({ tool_denylist: ['x'], max_total_cost: 1 });
    for (const context of [{}, { cost_so_far: 2 }]) {
      for (const tool of context.cost_so_far === undefined ? ['x'] : ['y']) {
        const ofPlan = await evaluate({ plan_id, tool_name: tool, context: { ...context, scope: 'plan' } });
        const ofSubplan = await evaluate({ plan_id, tool_name: tool, context: { ...context, scope: 'subplan' } });
        expect(ofPlan.reason).not.toMatch(/subplan/i);
        expect(ofSubplan.reason).toMatch(/subplan/i);
        expect(ofSubplan).toMatchObject({ allowed: false, requires_approval: ofPlan.requires_approval });
      }
    }
    const refusal = await viewer.refused('_cleveragents/guard/evaluate', {
      plan_id,
      tool_name: 'x',
      context: { scope: 'session' as never },
    });
    expect(refusal).toMatchObject({ kind: 'invalid', issues: [{ field: 'context.scope' }] });
  });

  it('starts from what the plan has spent, for plans that are run here as well, and writes nothing', async () => {
    const plan_id = await open({ tool_budget: 1, max_tool_calls_per_step: 1 });
    await authorize(plan_id, { cost_usd: 1 });
    const hosted = await hostedPlan();
    const before = [(await log(plan_id)).length, (await log(hosted)).length];
    expect(await evaluate({ plan_id, tool_name: 'x' })).toMatchObject({ allowed: false });
    expect(await evaluate({ plan_id, tool_name: 'x', context: { calls_so_far: 0, cost_usd: 0 } })).toMatchObject({ allowed: true });
    expect((await evaluate({ plan_id: hosted, tool_name: 'x' })).guards).toEqual(
      expect.arrayContaining([expect.objectContaining({ guard: 'tool', result: 'denied' })]),
    );
    expect([(await log(plan_id)).length, (await log(hosted)).length]).toEqual(before);
  });

  it.each([
    ['nothing', {}, {}, null],
    ['a halt', {}, {}, 'state'],
    ['the time', { max_wall_clock_seconds: 0 }, {}, 'wall_clock'],
    ['steps', { max_steps: 0 }, {}, 'step_limit'],
    ['calls of the actor', { actor_limits: { max_tool_calls_per_invocation: 0 } }, {}, 'actor_tool_calls'],
    ['the denylist', { tool_denylist: ['own.*'] }, {}, 'denylist'],
    ['a name that is none', {}, { tool_name: 'rm -rf' }, 'tool'],
    ['the allowlist', { tool_allowlist: ['a'] }, {}, 'allowlist'],
    ['the budget', { tool_budget: 0.1 }, { cost_usd: 0.2 }, 'budget_cap'],
    ['a price that nobody knows', { tool_budget: 5 }, { cost_usd: undefined }, 'budget_cap'],
    ['such a price where nothing is limited', {}, { cost_usd: undefined }, null],
    ['calls in the step', { max_tool_calls_per_step: 0 }, {}, 'tool_call_limit'],
    ['writes', { require_approval_for_writes: true }, { is_write: true }, 'write_approval'],
    ['a confirmation', { required_confirmations: ['deploy'] }, { operation: 'deploy' }, 'confirmation'],
    ['a write of which nobody says that it is one', { require_approval_for_writes: true }, { is_write: undefined }, 'write_approval'],
    ['a tool that nothing is said of', {}, { is_write: undefined }, null],
    ['a refusal under a profile that nobody attends', { tool_denylist: ['own.*'] }, { profile: 'ci' }, 'denylist'],
    ['the gate', {}, {}, 'confidence'],
  ] as const)('says of %s what authorize says, with all guards, and writes nothing', async (_name, guardrails, request, guard) => {
    const { profile = guard === 'confidence' ? 'manual' : undefined, ...asked } = { ...request } as { profile?: string };
    const plan_id = await open(guardrails as never, profile === undefined ? {} : { automation_profile: profile });
    if (guard === 'state') await boss.call('_cleveragents/halt/set', { level: 'org', reason: 'stop' });
    const { tool_name = 'own.tool', ...rest } = asked as { tool_name?: string; is_write?: boolean; cost_usd?: number };
    const { cost_usd, is_write, ...said } = { is_write: false, cost_usd: 0, ...rest };
    const context = { ...said, ...(is_write === undefined ? {} : { is_write }), ...(cost_usd === undefined ? {} : { cost_usd }) };
    const before = (await log(plan_id)).length;
    const dry = await evaluate({ plan_id, tool_name, context });
    expect((await log(plan_id)).length).toBe(before);
    const { allowed, reason, requires_approval, guards } = await authorize(plan_id, { tool_name, ...context });
    expect(dry).toEqual({ allowed, reason, requires_approval, guards });
    expect(dry.guards.find((each) => each.result === 'denied')?.guard ?? null).toBe(guard);
  });

  it('takes a known tool for no less than it is', async () => {
    const strict = await open({ require_approval_for_writes: true });
    expect(await evaluate({ plan_id: strict, tool_name: 'write_file', context: { is_write: false } })).toMatchObject({
      allowed: false,
      reason: expect.stringContaining('performs a write operation'),
    });
  });

  it('of a profile asks every guard and no gate, since nobody knows how confident a plan would be', async () => {
    const { allowed, guards } = await evaluate({ automation_profile: 'manual', tool_name: 'own.tool' });
    expect(allowed).toBe(true);
    expect(guards.map(({ guard }) => guard)).toEqual(GUARDS.map(({ name }) => name));
  });

  it('wants either a plan or a profile', async () => {
    const both = { plan_id: ulid(), automation_profile: 'auto', tool_name: 'x' };
    for (const params of [{ tool_name: 'x' }, both])
      expect((await viewer.refused('_cleveragents/guard/evaluate', params)).kind).toBe('invalid');
    expect((await viewer.refused('_cleveragents/guard/evaluate', { automation_profile: 'balancd', tool_name: 'x' })).kind).toBe('invalid');
  });
});

describe('sessions', () => {
  it('a plan that has spent nothing moves, one that has spent stays', async () => {
    const plan_id = await open();
    const move = { plan_id, session_id: 'other' };
    expect(await agent.call('_cleveragents/guard/associate_plan_with_session', move)).toEqual(move);
    expect(await status(plan_id)).toMatchObject({ session_id: 'other' });
    const rows = (await log(plan_id)).length;
    expect(await agent.call('_cleveragents/guard/associate_plan_with_session', move)).toEqual(move);
    expect((await log(plan_id)).length).toBe(rows);
    await agent.call('_cleveragents/guard/check_tool_budget', { plan_id, tool_cost: 0.1 });
    const refusal = await agent.refused('_cleveragents/guard/associate_plan_with_session', { plan_id, session_id: 'third' });
    expect(refusal).toMatchObject({ kind: 'invalid_state', details: { session_id: 'other' } });
  });
});

describe('metadata', () => {
  it('carries trail and counters from one plan to another', async () => {
    const from = await open({ max_steps: 5, tool_budget: 2, required_confirmations: ['deploy'] });
    await agent.call('_cleveragents/guard/check_step_limit', { plan_id: from, current_step: 3 });
    await agent.call('_cleveragents/guard/check_tool_budget', { plan_id: from, tool_cost: 0.5 });
    await agent.call('_cleveragents/guard/check_tool_budget', { plan_id: from, tool_cost: 9 });
    const { metadata } = await viewer.call('_cleveragents/guard/get_audit_trail_as_metadata', { plan_id: from });
    expect(metadata.autonomy_guardrails).toMatchObject({
      max_steps: 5,
      tool_budget: 2,
      step_count: 3,
      budget_spent: 0.5,
      required_confirmations: ['deploy'],
    });
    const to = await open();
    expect(await agent.call('_cleveragents/guard/load_from_metadata', { plan_id: to, metadata: metadata as never })).toMatchObject({
      entries: 3,
      step_count: 3,
      budget_spent: 0.5,
    });
    expect((await log(to)).map((row) => row.type)).toEqual(['plan_created', 'imported']);
    const again = await viewer.call('_cleveragents/guard/get_audit_trail_as_metadata', { plan_id: to });
    expect(again.metadata.guardrail_audit_trail).toEqual(metadata.guardrail_audit_trail);
    expect(again.metadata.autonomy_guardrails).toEqual(metadata.autonomy_guardrails);
    // Its limits hold from now on, and what was spent counts.
    expect(await agent.call('_cleveragents/guard/check_tool_budget', { plan_id: to, tool_cost: 1.6 })).toEqual({ allowed: false });
    expect(await agent.call('_cleveragents/guard/check_step_limit', { plan_id: to, current_step: 6 })).toEqual({ allowed: false });
    expect(await trail(to)).toMatchObject({ allowed_count: 2, denied_count: 3 });
  });

  it('never loosens: the strictest of both holds, and what was spent beyond the cap blocks', async () => {
    const plan_id = await open({ tool_budget: 1, max_steps: 3 });
    const guardrails = { tool_budget: 5, max_steps: 2, budget_spent: 4, step_count: 9 };
    await agent.call('_cleveragents/guard/load_from_metadata', { plan_id, metadata: { autonomy_guardrails: guardrails } });
    expect(await status(plan_id)).toMatchObject({
      budget: { cap_usd: 1, spent_usd: 4, overrun_usd: 3, remaining_usd: 0 },
      steps: { used: 9, limit: 2 },
    });
    expect(await agent.call('_cleveragents/guard/check_tool_budget', { plan_id, tool_cost: 0 })).toEqual({ allowed: false });
  });

  it('counts the time since the start that it names', async () => {
    const plan_id = await open({ max_wall_clock_seconds: 60 });
    const start_time = new Date(START - 59_000).toISOString();
    await agent.call('_cleveragents/guard/load_from_metadata', { plan_id, metadata: { autonomy_guardrails: { start_time } } });
    expect(await agent.call('_cleveragents/guard/check_wall_clock', { plan_id })).toEqual({ allowed: true });
    service.clock.ms += 1_000;
    expect(await agent.call('_cleveragents/guard/check_wall_clock', { plan_id })).toEqual({ allowed: false });
  });

  it('is loaded only into a plan in which nothing has happened', async () => {
    const plan_id = await open();
    const metadata = { autonomy_guardrails: { step_count: 1 } };
    await agent.call('_cleveragents/guard/load_from_metadata', { plan_id, metadata });
    expect((await agent.refused('_cleveragents/guard/load_from_metadata', { plan_id, metadata })).kind).toBe('invalid_state');
    expect((await log(plan_id)).length).toBe(2);
  });

  const entry = {
    timestamp: '2026-01-01T00:00:00+00:00',
    event_type: 'step_allowed',
    guard_name: 'step_limit',
    result: 'allowed',
    reason: null,
    context: {},
  };
  const denied = { ...entry, event_type: 'step_blocked', result: 'denied', reason: 'no' };
  const spent = { ...entry, event_type: 'budget_allowed', guard_name: 'budget_cap', context: { check: 'tool_budget', tool_cost: 0.5 } };

  it('keeps the counters of a trail that has lost its oldest entries, and its bound', async () => {
    const plan_id = await open();
    const metadata = {
      guardrail_audit_trail: { entries: [entry, denied], max_entries: 2, allowed_count: 70, denied_count: 30, evicted_count: 98 },
    };
    await agent.call('_cleveragents/guard/load_from_metadata', { plan_id, metadata: metadata as never });
    const loaded = { max_entries: 2, allowed_count: 70, denied_count: 30, evicted_count: 98 };
    expect(await trail(plan_id)).toMatchObject({ ...loaded, entries: [entry, denied] });
    const { metadata: again } = await viewer.call('_cleveragents/guard/get_audit_trail_as_metadata', { plan_id });
    const { evicted_count: _derived, ...kept } = metadata.guardrail_audit_trail;
    expect(again.guardrail_audit_trail).toEqual(kept);
    expect(again.autonomy_guardrails['start_time'], 'none came, so there is none').toBeNull();
    // It goes on from there, and stays as bounded as it was.
    await agent.call('_cleveragents/guard/check_step_limit', { plan_id, current_step: 1 });
    const later = await trail(plan_id);
    expect(later).toMatchObject({ ...loaded, allowed_count: 71, evicted_count: 99 });
    expect(later.entries.map(({ result }) => result)).toEqual(['denied', 'allowed']);
    const audit = await viewer.call('_cleveragents/plan/guard/audit', { plan_id });
    expect(audit.entries.find((each) => each.event_type === 'imported')?.context).toMatchObject({ allowed: 70, denied: 30, evicted: 98 });
  });

  it('takes an entry that says no reason and no context for one that has none', async () => {
    const plan_id = await open();
    const { reason: _reason, context: _context, ...bare } = entry;
    await agent.call('_cleveragents/guard/load_from_metadata', {
      plan_id,
      metadata: { guardrail_audit_trail: { entries: [bare] } } as never,
    });
    expect((await trail(plan_id)).entries).toEqual([entry]);
  });

  it('without counters has those that its entries show: none of them goes down', async () => {
    const plan_id = await open();
    const entries = [{ ...entry, context: { current_step: 4 } }, spent, denied];
    const answer = await agent.call('_cleveragents/guard/load_from_metadata', {
      plan_id,
      metadata: { guardrail_audit_trail: { entries: entries as never } },
    });
    expect(answer).toMatchObject({ entries: 3, step_count: 4, budget_spent: 0.5 });
    expect(await trail(plan_id)).toMatchObject({ allowed_count: 2, denied_count: 1, evicted_count: 0 });
    expect(await status(plan_id)).toMatchObject({ steps: { used: 4 }, budget: { spent_usd: 0.5 } });
  });

  it('of a plan with every kind of entry goes into a fresh one and comes out the same, twice over', async () => {
    await boss.call('_cleveragents/config/set', { key: 'guardrails.audit_max_entries', value: 12 });
    const from = await open({ tool_budget: 2, max_steps: 9, required_confirmations: ['deploy'], tool_denylist: ['bad'] });
    for (let n = 1; n <= 4; n += 1) {
      const { decision_id } = await authorize(from, { step: n, cost_usd: 0.1, arguments: { n } });
      await settle(decision_id, { outcome: 'succeeded', cost_usd: n === 4 ? 3 : 0.05 });
    }
    await authorize(from, { tool_name: 'bad', cost_usd: 0 });
    await authorize(from, { cost_usd: 1, arguments: { late: true } });
    await agent.refused('_cleveragents/guard/authorize', { plan_id: from, tool_name: '' });
    for (const [name, params] of Object.entries(CHECKS)) await agent.call(name as never, { plan_id: from, ...params } as never);
    const first = (await viewer.call('_cleveragents/guard/get_audit_trail_as_metadata', { plan_id: from })).metadata;
    expect(first.guardrail_audit_trail).toMatchObject({ max_entries: 12, entries: { length: 12 } });
    for (let times = 0; times < 2; times += 1) {
      const to = await open();
      await agent.call('_cleveragents/guard/load_from_metadata', { plan_id: to, metadata: first as never });
      expect((await viewer.call('_cleveragents/guard/get_audit_trail_as_metadata', { plan_id: to })).metadata).toEqual(first);
      const { plan_id: _of, ...view } = await trail(to);
      expect(view).toEqual({ ...(await trail(from)), plan_id: undefined });
    }
  });

  it.each([
    ['metadata', {}],
    ['metadata.guardrail_audit_trails', { guardrail_audit_trails: { entries: [] }, autonomy_guardrails: {} }],
    ['metadata.guardrail_audit_trail.entries', { guardrail_audit_trail: { entries: 'none' } }],
    [
      'metadata.guardrail_audit_trail.entries.1.event_type',
      { guardrail_audit_trail: { entries: [entry, { ...entry, event_type: 'made_up' }] } },
    ],
    ['metadata.guardrail_audit_trail.entries.0.result', { guardrail_audit_trail: { entries: [{ ...entry, result: 'maybe' }] } }],
    ['metadata.guardrail_audit_trail.entries.0.timestamp', { guardrail_audit_trail: { entries: [{ ...entry, timestamp: 'yesterday' }] } }],
    ['metadata.guardrail_audit_trail.entries.0.note', { guardrail_audit_trail: { entries: [{ ...entry, note: 1 }] } }],
    ['metadata.guardrail_audit_trail.entries', { guardrail_audit_trail: { entries: Array.from({ length: 10_001 }, () => entry) } }],
    ['metadata.autonomy_guardrails.budget_spent', { autonomy_guardrails: { budget_spent: -1 } }],
    ['metadata.autonomy_guardrails.budget_spent', { autonomy_guardrails: { budget_spent: '1' } }],
    ['metadata.autonomy_guardrails.step_count', { autonomy_guardrails: { step_count: 1.5 } }],
    ['metadata.autonomy_guardrails.start_time', { autonomy_guardrails: { start_time: '2999-01-01T00:00:00Z' } }],
    ['metadata.autonomy_guardrails.max_steps', { guardrail_audit_trail: { entries: [entry] }, autonomy_guardrails: { max_steps: -1 } }],
    ['metadata.autonomy_guardrails.nonsense', { autonomy_guardrails: { nonsense: 1 } }],
    // What contradicts itself.
    ['metadata.guardrail_audit_trail.entries', { guardrail_audit_trail: { entries: [entry, entry], max_entries: 1 } }],
    ['metadata.guardrail_audit_trail.max_entries', { guardrail_audit_trail: { entries: [], max_entries: 0 } }],
    ['metadata.guardrail_audit_trail.allowed_count', { guardrail_audit_trail: { entries: [entry, entry], allowed_count: 1 } }],
    ['metadata.guardrail_audit_trail.denied_count', { guardrail_audit_trail: { entries: [entry, denied], denied_count: 0 } }],
    ['metadata.guardrail_audit_trail.allowed_count', { guardrail_audit_trail: { entries: [], allowed_count: 1e13 } }],
    [
      'metadata.guardrail_audit_trail.evicted_count',
      { guardrail_audit_trail: { entries: [entry], allowed_count: 5, denied_count: 2, evicted_count: 5 } },
    ],
    ['metadata.guardrail_audit_trail.entries.1.result', { guardrail_audit_trail: { entries: [entry, { ...entry, result: 'denied' }] } }],
    ['metadata.guardrail_audit_trail.entries.0.result', { guardrail_audit_trail: { entries: [{ ...denied, result: 'allowed' }] } }],
    [
      'metadata.guardrail_audit_trail.entries.0.timestamp',
      { guardrail_audit_trail: { entries: [{ ...entry, timestamp: '2999-01-01T00:00:00Z' }] } },
    ],
    ['metadata.guardrail_audit_trail.entries.0.context', { guardrail_audit_trail: { entries: [{ ...entry, context: [] }] } }],
    ['metadata.guardrail_audit_trail.entries.0', { guardrail_audit_trail: { entries: ['step_allowed'] } }],
    [
      'metadata.autonomy_guardrails.step_count',
      { guardrail_audit_trail: { entries: [{ ...entry, context: { current_step: 7 } }] }, autonomy_guardrails: { step_count: 6 } },
    ],
    [
      'metadata.autonomy_guardrails.step_count',
      {
        guardrail_audit_trail: { entries: [{ ...entry, event_type: 'call_allowed', context: { step: 3 } }] },
        autonomy_guardrails: { step_count: 2 },
      },
    ],
    [
      'metadata.autonomy_guardrails.budget_spent',
      { guardrail_audit_trail: { entries: [spent] }, autonomy_guardrails: { budget_spent: 0.4 } },
    ],
  ] as const)('that is wrong at %s is refused by that name, and nothing of it counts', async (field, metadata) => {
    const plan_id = await open();
    const refusal = await agent.refused('_cleveragents/guard/load_from_metadata', { plan_id, metadata: metadata as never });
    expect(refusal).toMatchObject({ kind: 'invalid', issues: [{ field }] });
    expect((await log(plan_id)).map((row) => row.type)).toEqual(['plan_created']);
  });
});

describe('a trail that grows', () => {
  it('shows the newest so many and counts all', async () => {
    await boss.call('_cleveragents/config/set', { key: 'guardrails.audit_max_entries', value: 20 });
    const plan_id = await open();
    for (let n = 1; n <= 25; n += 1) await agent.call('_cleveragents/guard/check_step_limit', { plan_id, current_step: n });
    const all = await trail(plan_id);
    expect(all.entries).toHaveLength(20);
    expect(all.entries[0]?.context).toMatchObject({ current_step: 6 });
    expect(all).toMatchObject({ max_entries: 20, allowed_count: 25, denied_count: 0, evicted_count: 5 });
    const newest = await viewer.call('_cleveragents/guard/get_audit_trail', { plan_id, last: 2 });
    expect(newest.entries.map((each) => each.context['current_step'])).toEqual([24, 25]);
  });

  it('is cut to the bound in both views, also where it is less than twice as long', async () => {
    await boss.call('_cleveragents/config/set', { key: 'guardrails.audit_max_entries', value: 20 });
    const plan_id = await open();
    for (let n = 1; n <= 30; n += 1) await agent.call('_cleveragents/guard/check_step_limit', { plan_id, current_step: n });
    const newest = Array.from({ length: 20 }, (_, n) => n + 11);
    expect((await trail(plan_id)).entries.map((each) => each.context['current_step'])).toEqual(newest);
    const view = await viewer.call('_cleveragents/plan/guard/audit', { plan_id });
    expect(view.entries.map((each) => each.context['current_step'])).toEqual(newest);
    expect(view.evicted_count).toBe(view.allowed_count + view.denied_count - 20);
  });

  it('of 10,005 checks has 10,000 entries, the first of them the sixth', async () => {
    const plan_id = await open();
    const port = service.services.plans.plan('acme', plan_id);
    const by = { kind: 'agent', id: 'a' } as const;
    // Straight at the plan: the way through the operations is the same and is tested above.
    for (let n = 1; n <= 10_005; n += 1) await port.external({ type: 'check', by, request: { check: 'step_limit', currentStep: n } });
    const all = await trail(plan_id);
    expect(all.entries).toHaveLength(10_000);
    expect(all.entries[0]?.context).toMatchObject({ current_step: 6 });
    expect(all).toMatchObject({ max_entries: 10_000, allowed_count: 10_005, evicted_count: 5 });
  }, 120_000);
});

const CHECKS = {
  '_cleveragents/guard/check_step_limit': { current_step: 5 },
  '_cleveragents/guard/check_tool_budget': { tool_cost: 0.1 },
  '_cleveragents/guard/check_wall_clock': {},
  '_cleveragents/guard/check_actor_tool_calls': { current_calls: 1 },
  '_cleveragents/guard/check_retries_per_failure': { current_retries: 1 },
  '_cleveragents/guard/check_confirmation_required': { operation: 'deploy' },
  '_cleveragents/guard/check_budget_hierarchy': { tool_cost: 0.1 },
} as const;

/* ---------------------------------------------------------------- bad input and rights, for every operation */

const RECORDING = {
  '_cleveragents/guard/authorize': { tool_name: 'x' },
  '_cleveragents/guard/check_step_limit': { current_step: 1 },
  '_cleveragents/guard/check_tool_budget': { tool_cost: 0.1 },
  '_cleveragents/guard/check_wall_clock': {},
  '_cleveragents/guard/check_actor_tool_calls': { current_calls: 1 },
  '_cleveragents/guard/check_retries_per_failure': { current_retries: 1 },
  '_cleveragents/guard/check_confirmation_required': { operation: 'x' },
  '_cleveragents/guard/check_budget_hierarchy': { tool_cost: 0.1 },
  '_cleveragents/guard/associate_plan_with_session': { session_id: 's' },
  '_cleveragents/guard/load_from_metadata': { metadata: { autonomy_guardrails: {} } },
  '_cleveragents/guard/complete': {},
  '_cleveragents/guard/configure': {},
} as const satisfies Partial<Record<OperationName, object>>;

describe.each(Object.entries(RECORDING) as [OperationName, object][])('%s', (name, params) => {
  it('is for plans whose executor is outside: one that is run here is refused and stays as it is', async () => {
    const hosted = await hostedPlan();
    const before = (await log(hosted)).length;
    const refusal = await agent.refused(name, { plan_id: hosted, ...params } as never);
    expect(refusal).toMatchObject({ kind: 'invalid_state', details: { plan_id: hosted } });
    expect((await log(hosted)).length).toBe(before);
  });

  it('needs an operator', async () => {
    const planId = await open();
    const refusal = await viewer.refused(name, { plan_id: planId, ...params } as never);
    expect(refusal).toMatchObject({ kind: 'forbidden' });
    expect((await log(planId)).length).toBe(1);
  });

  it('does not know a plan that is not there, and makes none', async () => {
    if (name === '_cleveragents/guard/configure') return;
    const planId = ulid();
    expect(await agent.refused(name, { plan_id: planId, ...params } as never)).toMatchObject({ kind: 'not_found', entity: 'plan' });
    expect((await viewer.call('_cleveragents/plan/list', {})).plans).toEqual([]);
  });
});

const MONEY = [-0.01, '0.1', {}, [], true, null, 1e10];
const BAD: readonly (readonly [OperationName, object, string])[] = [
  ...MONEY.map((cost) => ['_cleveragents/guard/check_tool_budget', { tool_cost: cost }, 'tool_cost'] as const),
  ...MONEY.map((cost) => ['_cleveragents/guard/check_budget_hierarchy', { tool_cost: cost }, 'tool_cost'] as const),
  ...MONEY.map((cost) => ['_cleveragents/guard/authorize', { tool_name: 'x', cost_usd: cost }, 'cost_usd'] as const),
  ['_cleveragents/guard/authorize', { tool_name: 'x', arguments: [] }, 'arguments'],
  ['_cleveragents/guard/authorize', { tool_name: 'x', is_write: 'yes' }, 'is_write'],
  ['_cleveragents/guard/authorize', { tool_name: 'x', step: 0 }, 'step'],
  ['_cleveragents/guard/authorize', { tool_name: 'x', step: 1.5 }, 'step'],
  ['_cleveragents/guard/authorize', { tool_name: 'x', operation: '' }, 'operation'],
  ['_cleveragents/guard/authorize', { tool_name: 'x', idempotency_key: '' }, 'idempotency_key'],
  ['_cleveragents/guard/authorize', { tool_name: 'x', nonsense: 1 }, 'nonsense'],
  ['_cleveragents/guard/check_step_limit', { current_step: -1 }, 'current_step'],
  ['_cleveragents/guard/check_step_limit', { current_step: '1' }, 'current_step'],
  ['_cleveragents/guard/check_step_limit', {}, 'current_step'],
  ['_cleveragents/guard/check_actor_tool_calls', { current_calls: -1 }, 'current_calls'],
  ['_cleveragents/guard/check_retries_per_failure', { current_retries: 0.5 }, 'current_retries'],
  ['_cleveragents/guard/check_confirmation_required', { operation: '' }, 'operation'],
  ['_cleveragents/guard/check_confirmation_required', { operation: ' \t' }, 'operation'],
  ['_cleveragents/guard/associate_plan_with_session', { session_id: 'task_x' }, 'session_id'],
  ['_cleveragents/guard/get_audit_trail', { last: 0 }, 'last'],
  ['_cleveragents/guard/configure', { guardrails: { max_steps: -1 } }, 'guardrails.max_steps'],
  ['_cleveragents/guard/configure', { guardrails: { tool_denylist: [''] } }, 'guardrails.tool_denylist.0'],
  ['_cleveragents/guard/configure', { guardrails: { tool_budget: '5' } }, 'guardrails.tool_budget'],
];

describe('bad input', () => {
  it.each(BAD)('%s %j is refused at %s, and nothing changes', async (name, params, field) => {
    const planId = await open({ tool_budget: 1 });
    const refusal = await agent.refused(name, { plan_id: planId, ...params } as never);
    expect(refusal).toMatchObject({ kind: 'invalid' });
    expect(refusal.kind === 'invalid' && refusal.issues.map((issue) => issue.field)).toContain(field);
    expect((await log(planId)).length).toBe(1);
    expect((await status(planId)).budget).toMatchObject({ spent_usd: 0, reserved_usd: 0 });
  });

  it.each(['', 'x', 'task_1', '01HXRCF1', '81HXRCF1ABCDE12345678901AB', 'x'.repeat(200)])('plan id %j is none', async (planId) => {
    expect(await agent.refused('_cleveragents/guard/configure', { plan_id: planId })).toMatchObject({
      kind: 'invalid',
      issues: [{ field: 'plan_id' }],
    });
  });

  it.each(['', 'c1', `${ulid()}`, `${ulid()}.1`, `${ulid()}.c0`, `${ulid()}.d1`])('decision id %j is none', async (id) => {
    const refusal = await agent.refused('_cleveragents/guard/settle', { decision_id: id, outcome: 'succeeded' });
    expect(refusal).toMatchObject({ kind: 'invalid', issues: [{ field: 'decision_id' }] });
  });

  it.each(MONEY)('settling with a cost of %j is refused and the reservation stays', async (cost) => {
    const planId = await open({ tool_budget: 1 });
    const { decision_id: id } = await authorize(planId, { cost_usd: 0.4 });
    const refusal = await agent.refused('_cleveragents/guard/settle', { decision_id: id, outcome: 'succeeded', cost_usd: cost as never });
    expect(refusal).toMatchObject({ kind: 'invalid', issues: [{ field: 'cost_usd' }] });
    expect((await status(planId)).budget).toMatchObject({ spent_usd: 0, reserved_usd: 0.4 });
  });

  it('keeps the decisions of each org to itself', async () => {
    const planId = await open();
    const { decision_id: id } = await authorize(planId, { cost_usd: 0.4 });
    const stranger = await service.caller('others');
    expect((await stranger.refused('_cleveragents/guard/settle', { decision_id: id, outcome: 'succeeded' })).kind).toBe('not_found');
    await stranger.call('_cleveragents/guard/configure', { plan_id: planId });
    expect((await stranger.refused('_cleveragents/guard/settle', { decision_id: id, outcome: 'succeeded' })).kind).toBe('not_found');
    expect((await status(planId)).budget.reserved_usd).toBe(0.4);
  });
});
