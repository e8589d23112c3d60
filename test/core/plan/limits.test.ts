import { describe, expect, it } from 'vitest';
import { remaining, spentMicroUsd } from '../../../src/core/ledger.ts';
import { workedMs } from '../../../src/core/plan/decide/calls.ts';
import { stepsTaken } from '../../../src/core/plan/steps-taken.ts';
import { call, failed, OPERATOR, PlanDriver, profileOf, refusalOf, type Script, succeeded } from './plan-driver.ts';

const DAY_MS = 86_400_000;
const asks = (count: number) => Array.from({ length: count }, (_, n) => call('model.ask', { n }));
const eachItsStep = (count: number): Script => ({ execute: asks(count).map((one) => ({ calls: [one] })) });
const left = (driver: PlanDriver): number | null => remaining(driver.plan.ledger, driver.plan.policy.planCapMicroUsd);

describe('the budget of a plan', () => {
  it.each([
    { name: 'in one batch', script: { execute: [{ calls: asks(50) }] } },
    { name: 'one after the other', script: eachItsStep(50) },
  ])('of $1.00 admits exactly ten of fifty calls at $0.10, $name', ({ script }) => {
    const driver = PlanDriver.run({ guardrails: { tool_budget: 1 } }, script);
    expect(driver.rowsOf('call_decided').filter(({ data }) => data.allowed)).toHaveLength(10);
    expect(driver.tools).toHaveLength(10);
    expect(spentMicroUsd(driver.plan.ledger)).toBe(1_000_000);
    expect(left(driver)).toBe(0);
    expect(driver.only).toMatchObject({ kind: 'limit', guard: 'budget_cap' });
    expect(driver.only.reason).toContain('Budget cap exceeded: $1.10 > $1.00.');
  });

  it('of 0.80 admits 0.1 and 0.7, and a charge of $0.0000004 counts', () => {
    const calls = [
      call('files.read', {}, { declaredCostUsd: 0.1 }),
      call('files.read', {}, { declaredCostUsd: 0.7 }),
      call('files.read', {}, { declaredCostUsd: 0.0000004 }),
    ];
    const driver = PlanDriver.run({ guardrails: { tool_budget: 0.8 } }, { execute: [{ calls }] });
    expect(driver.tools).toHaveLength(2);
    expect(left(driver)).toBe(0);
  });

  it('of 0 refuses what costs anything and runs what is free', () => {
    const driver = PlanDriver.run({ guardrails: { tool_budget: 0 } }, { execute: [{ calls: [call('files.read'), call('model.ask')] }] });
    expect(driver.tools).toEqual(['files.read']);
    expect(driver.only.guard).toBe('budget_cap');
  });

  it('runs free calls when it is spent to the last cent', () => {
    const driver = PlanDriver.run(
      { guardrails: { tool_budget: 0.1 } },
      { execute: [{ calls: [call('model.ask')] }, { calls: [call('files.read')] }] },
    );
    expect(driver.tools).toEqual(['model.ask', 'files.read']);
  });

  it('is not lowered by a declared cost below the price', () => {
    const driver = PlanDriver.run(
      {},
      { execute: [{ calls: [call('model.ask', {}, { declaredCostUsd: -5 }), call('model.ask', {}, { declaredCostUsd: 0.05 })] }] },
    );
    expect(driver.rowsOf('call_decided').map(({ data }) => data.reserved_micro_usd)).toEqual([100_000, 150_000]);
  });

  it.each([
    { name: 'nothing', reportedUsd: undefined, charged: 100_000, marks: ['estimated'] },
    { name: 'zero', reportedUsd: 0, charged: 0, marks: [] },
    { name: 'less', reportedUsd: 0.04, charged: 40_000, marks: [] },
    { name: 'more', reportedUsd: 0.25, charged: 250_000, marks: ['overrun'] },
    { name: 'a negative number', reportedUsd: -1, charged: 100_000, marks: ['cost_error'] },
    { name: 'NaN', reportedUsd: Number.NaN, charged: 100_000, marks: ['cost_error'] },
    { name: 'text', reportedUsd: '0.01', charged: 100_000, marks: ['cost_error'] },
  ])('charges by what the tool reports: $name', ({ reportedUsd, charged, marks }) => {
    const driver = PlanDriver.run({}, { execute: [{ calls: [call('model.ask')] }], outcome: () => succeeded({ reportedUsd }) });
    expect(driver.rowsOf('call_settled')[0]?.data.charge).toMatchObject({ charged_micro_usd: charged, marks });
    expect(spentMicroUsd(driver.plan.ledger)).toBe(charged);
    expect(driver.plan.ledger.reservations).toEqual([]);
  });

  it('sees an overrun at the next reservation', () => {
    const driver = PlanDriver.run(
      { guardrails: { tool_budget: 1 } },
      { ...eachItsStep(3), outcome: () => succeeded({ reportedUsd: 0.95 }) },
    );
    expect(driver.tools).toHaveLength(1);
    expect(driver.only.reason).toContain('$1.05 > $1.00');
  });

  it('is whole again after calls that failed before they were dispatched', () => {
    const script: Script = {
      execute: [{ calls: asks(10), onRefused: 'continue' }, { calls: asks(10) }],
      outcome: (each) => (each.step === 1 ? failed({ dispatched: false }) : succeeded()),
    };
    const driver = PlanDriver.run({ guardrails: { tool_budget: 1 } }, script);
    expect(driver.tools).toHaveLength(20);
    expect(spentMicroUsd(driver.plan.ledger)).toBe(1_000_000);
  });

  it('warns once, at 90 %', () => {
    const costs = [0.89, 0.02, 0.05];
    const script: Script = {
      execute: costs.map(() => ({ calls: [call('files.read')] })),
      outcome: (each) => succeeded({ reportedUsd: costs[each.step - 1] }),
    };
    const driver = PlanDriver.run({ guardrails: { tool_budget: 1 } }, script);
    const types = driver.rows.filter(({ type }) => type === 'call_settled' || type === 'budget_warning').map(({ type }) => type);
    expect(types.slice(0, 3)).toEqual(['call_settled', 'call_settled', 'budget_warning']);
    expect(driver.rowsOf('budget_warning')).toHaveLength(1);
  });

  it('is the sum of the charges in the trail', () => {
    const driver = PlanDriver.run({}, { ...eachItsStep(4), outcome: (each) => succeeded({ reportedUsd: each.step / 10 }) });
    const charges = driver.rowsOf('call_settled').map(({ data }) => data.charge?.charged_micro_usd ?? 0);
    expect(spentMicroUsd(driver.plan.ledger)).toBe(charges.reduce((a, b) => a + b, 0));
  });
});

describe('calls that are approved one by one beyond a limit', () => {
  const writes = (count: number, cost = 0) =>
    Array.from({ length: count }, (_, n) => call('files.write', { path: `f${n}` }, { declaredCostUsd: cost }));
  const limits = (driver: PlanDriver) => driver.pending.filter(({ kind }) => kind === 'limit');
  const approveCalls = (driver: PlanDriver): void => {
    for (const approval of driver.pending) if (approval.kind === 'call') expect(driver.approve(approval).ok).toBe(true);
    driver.run();
  };

  it.each([
    ['the calls of a step', { max_tool_calls_per_step: 2 }, 0, 'tool_call_limit', { calls: 3 }],
    ['the budget', { max_total_cost: 0.2 }, 0.1, 'budget_cap', { cost_usd: 0.3 }],
  ] as const)('join the one question about %s, which shows all of them and lets all of them run', (_case, limit, cost, guard, grant) => {
    const driver = PlanDriver.run(
      { guardrails: { require_approval_for_writes: true, ...limit } },
      { execute: [{ calls: writes(5, cost) }] },
    );
    expect(driver.pending.map(({ kind }) => kind)).toEqual(['call', 'call', 'call', 'call', 'call']);
    approveCalls(driver);
    expect(driver.tools).toHaveLength(2);
    expect(driver.only).toMatchObject({ kind: 'limit', guard, callIds: ['c3', 'c4', 'c5'], suggestedGrant: grant });
    expect(driver.only.subject.calls?.map(({ call_id: id }) => id)).toEqual(['c3', 'c4', 'c5']);
    expect(driver.only.estimateMicroUsd).toBe(cost * 3_000_000);
    // Every call that was refused there is on record by itself.
    const refused = driver.rowsOf('call_decided').filter(({ data }) => data.guard === guard);
    expect(refused.map(({ data }) => data.call.id)).toEqual(['c3', 'c4', 'c5']);
    driver.approve();
    driver.run();
    expect(driver.tools).toHaveLength(5);
    expect(driver.pending.filter(({ kind }) => kind !== 'gate')).toEqual([]);
  });

  it('leave no earlier question open: what was shown without them cannot be answered any more', () => {
    const driver = PlanDriver.run(
      { guardrails: { require_approval_for_writes: true, max_tool_calls_per_step: 1 } },
      { execute: [{ calls: writes(3) }] },
    );
    const [first, second, third] = driver.pending;
    if (first === undefined || second === undefined || third === undefined) throw new Error('three calls are asked about');
    driver.approve(first);
    driver.approve(second);
    const [alone] = limits(driver);
    expect(alone?.callIds).toEqual(['c2']);
    driver.approve(third);
    const [both] = limits(driver);
    expect(limits(driver)).toHaveLength(1);
    expect(both?.callIds).toEqual(['c2', 'c3']);
    expect(both?.digest).not.toBe(alone?.digest);
    if (alone === undefined || both === undefined) throw new Error('a limit is asked about');
    expect(refusalOf(driver.approve(alone)).details).toMatchObject({ status: 'revoked' });
    expect(driver.callStates().filter((state) => state === 'asked')).toHaveLength(2);
    driver.deny(both);
    driver.run();
    expect(driver.tools).toHaveLength(1);
  });

  it('stay a question of their own behind another limit, and run at once where they fit', () => {
    const calls = [
      call('files.write', { path: 'dear' }, { declaredCostUsd: 0.5 }),
      call('files.write', { path: 'cheap' }, { declaredCostUsd: 0.1 }),
      call('files.write', { path: 'more' }, { declaredCostUsd: 0.1 }),
    ];
    const driver = PlanDriver.run(
      { guardrails: { require_approval_for_writes: true, max_total_cost: 0.2, max_tool_calls_per_step: 1 } },
      { execute: [{ calls }] },
    );
    approveCalls(driver);
    expect(driver.performed.map(({ id }) => id)).toEqual(['c2']);
    expect(driver.pending.map(({ guard, callIds }) => [guard, ...callIds])).toEqual([
      ['budget_cap', 'c1'],
      ['tool_call_limit', 'c3'],
    ]);
  });
});

describe('calls per step', () => {
  it('of three admit three; the next step admits three again', () => {
    const reads = Array.from({ length: 3 }, () => call('files.read'));
    const driver = PlanDriver.run(
      { guardrails: { max_tool_calls_per_step: 3 } },
      { execute: [{ calls: [...reads, call('web.get')], onRefused: 'continue' }, { calls: reads }] },
    );
    expect(driver.only.reason).toContain('Tool call limit reached: 3/3.');
    driver.deny();
    driver.run();
    expect(driver.tools).toHaveLength(6);
  });

  it('count from nothing in each step, also for a call that a human has let through', () => {
    const reads = Array.from({ length: 3 }, () => call('files.read'));
    const driver = PlanDriver.run(
      { guardrails: { max_tool_calls_per_step: 3, tool_denylist: ['web.get'] } },
      { execute: [{ calls: reads }, { calls: [call('web.get')] }] },
    );
    expect(driver.only).toMatchObject({ kind: 'call', guard: 'denylist' });
    driver.approve();
    driver.run();
    expect(driver.tools).toEqual(['files.read', 'files.read', 'files.read', 'web.get']);
    expect(driver.plan.callsInStep).toBe(1);
  });

  it('of zero admit none', () => {
    const driver = PlanDriver.run({ guardrails: { max_tool_calls_per_step: 0 } }, eachItsStep(1));
    expect(driver.tools).toEqual([]);
    expect(driver.only).toMatchObject({ guard: 'tool_call_limit', suggestedGrant: { calls: 1 } });
  });

  it('are raised by a grant for the step it was given in', () => {
    const driver = PlanDriver.run({ guardrails: { max_tool_calls_per_step: 1 } }, { execute: [{ calls: asks(3) }, { calls: asks(2) }] });
    driver.approve();
    driver.run();
    expect(driver.tools).toHaveLength(4);
    expect(driver.only).toMatchObject({ guard: 'tool_call_limit', callIds: ['c5'] });
  });

  it('count every attempt of a call', () => {
    const script: Script = { execute: [{ calls: asks(1) }], outcome: () => failed({ transient: true }) };
    const driver = PlanDriver.run({ guardrails: { max_tool_calls_per_step: 2 } }, script);
    expect(driver.performed.map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect(driver.only.guard).toBe('tool_call_limit');
    expect(driver.plan.ledger.settledMicroUsd).toBe(200_000);
  });

  it('of an invocation go on behind the step, and the suggested grant is enough', () => {
    const driver = PlanDriver.run({ guardrails: { actor_limits: { max_tool_calls_per_invocation: 2 } } }, eachItsStep(4));
    expect(driver.only).toMatchObject({ guard: 'actor_tool_calls', suggestedGrant: { calls: 1 } });
    driver.approve();
    driver.run();
    expect(driver.only).toMatchObject({ guard: 'actor_tool_calls', suggestedGrant: { calls: 2 } });
    driver.approve();
    driver.run();
    expect(driver.at).toBe('apply/applied (end)');
  });
});

describe('steps', () => {
  it('of three admit three of five; the plan waits with the work of the three kept', () => {
    const driver = PlanDriver.run({ guardrails: { max_steps: 3 } }, eachItsStep(5));
    expect(driver.tools).toHaveLength(3);
    expect(driver.only).toMatchObject({ guard: 'step_limit', suggestedGrant: { steps: 1 } });
    expect(driver.only.reason).toContain('Step limit reached: 3/3.');
    expect(driver.plan.changes).toHaveLength(3);
    driver.approve(driver.only, { grant: { steps: 2 } });
    driver.run();
    expect(driver.at).toBe('apply/applied (end)');
  });

  it('are questions too, and neither what is said nor what is decided', () => {
    const script: Script = {
      execute: [{ say: 'a' }, { decide: 'b' }, { artifact: 'c' }, { calls: [call('files.read')] }, { ask: 'where?' }],
    };
    const driver = PlanDriver.run({ guardrails: { max_steps: 1 } }, script);
    expect(driver.tools).toEqual(['files.read']);
    expect(driver.only).toMatchObject({ kind: 'limit', guard: 'step_limit' });
    driver.approve();
    driver.run();
    expect(driver.only.kind).toBe('question');
  });
});

describe('the wall clock', () => {
  it('does not run while a human thinks', () => {
    const profile = profileOf('full-auto', { name: 'asks', execute_command: 1 });
    const driver = PlanDriver.make({ profile, guardrails: { max_wall_clock_seconds: 60 } }, eachItsStep(2));
    driver.callMs = 10_000;
    driver.run();
    driver.wait(DAY_MS);
    driver.approve();
    driver.run();
    driver.wait(DAY_MS);
    expect(workedMs(driver.plan, driver.now)).toBe(10_000);
    driver.approve();
    driver.run();
    expect(driver.at).toBe('apply/applied (end)');
    expect(driver.plan.workedMs).toBe(20_000);
  });

  it('stops work that lasts longer, names the limit, and goes on with a grant', () => {
    const driver = PlanDriver.make({ guardrails: { max_wall_clock_seconds: 60 } }, eachItsStep(3));
    driver.callMs = 61_000;
    driver.run();
    expect(driver.tools).toHaveLength(1);
    expect(driver.only).toMatchObject({ guard: 'wall_clock', suggestedGrant: { seconds: 60 } });
    expect(driver.only.reason).toContain('Wall-clock limit reached: 61s/60s.');
    driver.callMs = 0;
    driver.approve();
    driver.run();
    expect(driver.at).toBe('apply/applied (end)');
  });

  it('stops before a step without calls as well, and nothing of the step is done', () => {
    const driver = PlanDriver.make(
      { guardrails: { max_wall_clock_seconds: 60 } },
      { execute: [{ calls: [call('files.read')] }, { say: 'too late' }] },
    );
    driver.callMs = 60_000;
    driver.run();
    expect(driver.only).toMatchObject({ kind: 'limit', guard: 'wall_clock', callIds: [] });
    expect(driver.plan.messages).toEqual([]);
    driver.approve();
    driver.run();
    expect(driver.plan.messages).toHaveLength(1);
  });

  it('asks how to go on when no more time is given', () => {
    const driver = PlanDriver.make({ guardrails: { max_wall_clock_seconds: 0 } }, { execute: [{ say: 'hello' }] });
    driver.run();
    driver.deny();
    expect(driver.only.kind).toBe('next_step');
  });

  it('of the org ends the plan: nobody in the plan can give it more time', () => {
    const driver = PlanDriver.run({ orgFloor: { max_wall_clock_seconds: 0 } }, { execute: [{ say: 'hello' }] });
    expect(driver.at).toBe('execute/errored (end)');
    expect(driver.plan.failure?.last.message).toContain('in the policy of the org');
  });
});

describe('retries', () => {
  const broken: Script = { execute: [{ calls: [call('model.ask')], onRefused: 'continue' }], outcome: () => failed({ transient: true }) };
  const retries = (count: number) => ({ guardrails: { actor_limits: { max_retries_per_failure: count } } });

  it.each([0, 1, 2, 3])('of %i are one more attempt, each charged; then the limit is asked about', (count) => {
    const driver = PlanDriver.run(retries(count), broken);
    expect(driver.performed.map(({ attempt }) => attempt)).toEqual(Array.from({ length: count + 1 }, (_, index) => index + 1));
    expect(driver.plan.ledger.settledMicroUsd).toBe(100_000 * (count + 1));
    expect(driver.trail.filter(({ eventType }) => eventType === 'retry_blocked')).toHaveLength(1);
    expect(driver.only).toMatchObject({ kind: 'limit', guard: 'retry_limit', suggestedGrant: { retries: 1 } });
    expect(driver.only.reason).toContain(`Retry limit reached: ${count}/${count}.`);
  });

  it('that are granted are made; that are not leave the failure as it was', () => {
    const granted = PlanDriver.run(retries(0), broken);
    granted.approve();
    granted.run();
    expect(granted.performed).toHaveLength(2);
    const denied = PlanDriver.run(retries(0), broken);
    denied.deny(denied.only, { reason: 'enough' });
    denied.run();
    expect(denied.performed).toHaveLength(1);
    expect(denied.plan.results).toMatchObject([{ status: 'failed', reason: 'it broke; not repeated: denied by boss: enough' }]);
  });

  it('are at most those of the profile, whatever else allows more', () => {
    expect(PlanDriver.run(retries(9), broken).performed).toHaveLength(4);
  });

  it('wait longer each time', () => {
    const driver = PlanDriver.make(retries(3), { ...broken });
    const startedMs = driver.nowMs;
    driver.run();
    expect(driver.nowMs - startedMs).toBe(500 + 1000 + 2000);
  });

  it.each([
    { name: 'a failure that is not passing', tool: 'model.ask', outcome: failed({ transient: false }), attempts: 1 },
    {
      name: 'an external call that may have happened',
      tool: 'queue.take',
      outcome: failed({ transient: true, dispatched: true }),
      attempts: 1,
    },
    {
      name: 'an external call that was not dispatched',
      tool: 'queue.take',
      outcome: failed({ transient: true, dispatched: false }),
      attempts: 4,
    },
    { name: 'an external call that may be repeated', tool: 'web.get', outcome: failed({ transient: true, dispatched: true }), attempts: 4 },
  ])('$name is tried $attempts time(s)', ({ tool, outcome, attempts }) => {
    expect(PlanDriver.run({}, { execute: [{ calls: [call(tool)] }], outcome: () => outcome }).performed).toHaveLength(attempts);
  });

  it('keep the idempotency key of the call, and consume its approval once', () => {
    const script: Script = {
      execute: [{ calls: [call('web.get')] }],
      outcome: (each) => (each.attempt < 3 ? failed({ transient: true }) : succeeded()),
    };
    const driver = PlanDriver.run({ guardrails: { tool_denylist: ['web.get'] } }, script);
    driver.approve();
    driver.run();
    const decided = driver.rowsOf('call_decided').filter(({ data }) => data.allowed);
    expect(new Set(decided.map(({ data }) => data.call.idempotencyKey)).size).toBe(1);
    expect(decided.flatMap(({ data }) => data.consumed_approval ?? [])).toHaveLength(1);
    expect(driver.at).toBe('apply/applied (end)');
  });

  it('of one call go on while a sibling waits for its approval', () => {
    const script: Script = {
      execute: [{ calls: [call('model.ask'), call('files.write')] }],
      outcome: (each) => (each.attempt < 3 ? failed({ transient: true }) : succeeded()),
    };
    const driver = PlanDriver.run({ guardrails: { tool_denylist: ['files.write'] } }, script);
    expect(driver.performed.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
    expect(driver.only).toMatchObject({ kind: 'call', callIds: ['c2'] });
    driver.approve();
    driver.run();
    expect(driver.at).toBe('apply/applied (end)');
  });

  it('are not made before their time', () => {
    const driver = PlanDriver.make(retries(1), broken);
    while (driver.callStates()[0] !== 'retrying') driver.turn();
    expect(
      driver.do({
        type: 'retry_call',
        callId: 'c1',
        facts: { issues: [], known: 0, newInKnownFolder: 0, unknown: 0, protectedPaths: [], bytes: 0 },
      }).ok,
    ).toBe(false);
  });
});

describe('the budget of all plans under a profile', () => {
  const capped = (base: string, max_total_cost: number) => profileOf(base, { name: 'capped', safety: { max_total_cost } });

  it('is waited at with the finished work kept, takes no grant, and an approval tries again', () => {
    const driver = PlanDriver.run({ profile: capped('full-auto', 0.15) }, eachItsStep(3));
    expect(driver.at).toBe('execute/waiting');
    expect(driver.tools).toHaveLength(1);
    expect(driver.only).toMatchObject({ kind: 'limit', guard: 'budget_cap', suggestedGrant: null, callIds: ['c2'] });
    expect(driver.only.reason).toContain('raise safety.max_total_cost of the profile for new plans (this one keeps the limit');
    const before = driver.only;
    expect(refusalOf(driver.approve(before, { grant: { cost_usd: 1 } })).kind).toBe('invalid');
    expect(driver.approve(before).ok).toBe(true);
    driver.run();
    expect(driver.tools, 'nothing more').toHaveLength(1);
    expect(driver.only).toMatchObject({ kind: 'limit', suggestedGrant: null, callIds: ['c2'] });
    expect(driver.only.id).not.toBe(before.id);
    driver.deny();
    driver.run();
    expect(driver.tools).toHaveLength(1);
  });

  it('ends an unattended plan, where nobody is there to ask', () => {
    const driver = PlanDriver.run({ profile: { ...capped('ci', 0.15), unattended: true } }, eachItsStep(3));
    expect(driver.at).toBe('execute/errored (end)');
    expect(driver.tools).toHaveLength(1);
  });
});

describe('the steps that count', () => {
  const limited = (script: Script) => PlanDriver.run({ guardrails: { max_steps: 2 } }, script);
  const step = (n: number) => ({ calls: [call('files.read', { n })], onRefused: 'continue' as const });

  it('leave out the step that the limit refused, also when its grant is denied and the actor goes on', () => {
    const driver = limited({ execute: [step(1), step(2), step(3), step(4)] });
    expect(driver.only).toMatchObject({ kind: 'limit', guard: 'step_limit', suggestedGrant: { steps: 1 } });
    expect(driver.only.reason).toContain('Step limit reached: 2/2.');
    expect(stepsTaken(driver.plan)).toBe(2);
    driver.deny();
    driver.run();
    expect(driver.only.reason, 'the next one is the third again').toContain('Step limit reached: 2/2.');
    expect(driver.only.suggestedGrant).toEqual({ steps: 1 });
    expect(stepsTaken(driver.plan)).toBe(2);
    driver.approve();
    driver.run();
    expect(driver.tools).toHaveLength(3);
    expect(stepsTaken(driver.plan)).toBe(3);
    expect(driver.rowsOf('execution_completed')[0]?.data.steps).toBe(3);
  });

  it('count a step in which something ran, whatever a later limit says', () => {
    const driver = limited({ execute: [step(1), step(2), { calls: [call('files.write')] }] });
    driver.set({ max_steps: 1 }, OPERATOR);
    expect(stepsTaken(driver.plan)).toBe(2);
  });

  it('count none where no step is allowed', () => {
    const driver = PlanDriver.run({ guardrails: { max_steps: 0 } }, { execute: [step(1)] });
    expect(driver.only.guard).toBe('step_limit');
    expect(stepsTaken(driver.plan)).toBe(0);
  });

  it('count the questions of an actor, and not the one for which there is no step left', () => {
    const driver = PlanDriver.run({ guardrails: { max_steps: 1 } }, { execute: [{ ask: 'where?' }, { ask: 'when?' }] });
    expect(stepsTaken(driver.plan)).toBe(1);
    driver.answer(driver.only.id, 'answer', { text: 'here' });
    driver.run();
    expect(driver.only).toMatchObject({ kind: 'limit', guard: 'step_limit' });
    expect(stepsTaken(driver.plan)).toBe(1);
  });
});
