import { describe, expect, it } from 'vitest';
import { findOperation } from '../../src/api/operations.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import { planViewOf } from '../../src/app/plan-view.ts';
import { runStandard } from '../../src/app/standard.ts';
import { remaining, reservedMicroUsd, spentMicroUsd } from '../../src/core/ledger.ts';
import type { Principal } from '../../src/core/principal.ts';
import {
  addProject,
  answer,
  approve,
  cancel,
  fileOf,
  isSettled,
  isTerminal,
  newOrg,
  onlyPending,
  pendingOf,
  performed,
  planOf,
  rowsOf,
  services,
  startSteps,
  stateOf,
  until,
} from './plan-support.ts';

const priced = (label: string, rest: object = {}) => ({ tool: 'test/priced', arguments: { label, ...rest } });

const batch = (label: string, size: number) => ({
  id: 'batch',
  calls: Array.from({ length: size }, (_, index) => priced(label, { padding: `${index}` })),
});

async function money(person: Principal, planId: string) {
  const { ledger, policy } = await stateOf(person, planId);
  return { spent: spentMicroUsd(ledger), reserved: reservedMicroUsd(ledger), left: remaining(ledger, policy.planCapMicroUsd) };
}

describe('a batch of 50 calls of $0.10 in one step, under a cap of $1.00', () => {
  it('performs exactly ten, spends exactly $1.00, keeps what is done, and asks once for the rest', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [{ id: 'before', artifact: { id: 'notes', text: 'made before' } }, batch(person.org, 50)], {
      guardrails: { tool_budget: 1 },
    });
    const waiting = await until(person, planId, (snapshot) => isSettled(snapshot) && performed(person.org).length >= 10);
    const limit = onlyPending(await until(person, planId, (snapshot) => snapshot.plan.ledger.reservations.length === 0));
    expect(limit).toMatchObject({ kind: 'limit', guard: 'budget_cap', suggestedGrant: { cost_usd: 4 } });
    expect(limit.reason).toMatch(/^Budget cap exceeded: \$1\.10 > \$1\.00\. Remediation: /);
    expect(limit.callIds).toHaveLength(40);
    expect(performed(person.org)).toHaveLength(10);
    expect(await money(person, planId)).toEqual({ spent: 1_000_000, reserved: 0, left: 0 });
    expect(waiting.plan.artifacts.map((artifact) => artifact.artifactId)).toEqual(['notes']);
    const decided = await rowsOf(person, planId, 'call_decided');
    expect(decided.filter((row) => row.data.allowed)).toHaveLength(10);
    expect(decided.filter((row) => !row.data.allowed && row.data.guard === 'budget_cap')).toHaveLength(40);
    expect(await rowsOf(person, planId, 'budget_warning')).toHaveLength(1);
  });

  it('goes on by exactly what is granted', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [batch(person.org, 50)], { guardrails: { tool_budget: 1 } });
    const first = onlyPending(await until(person, planId, (snapshot) => isSettled(snapshot) && performed(person.org).length === 10));
    expect(await answer(person, planId, first, { grant: { calls: 5 } })).toMatchObject({ ok: false, error: { kind: 'invalid' } });
    expect((await answer(person, planId, first, { grant: { cost_usd: 0.5 } })).ok).toBe(true);
    const second = onlyPending(await until(person, planId, (snapshot) => isSettled(snapshot) && performed(person.org).length === 15));
    expect(second.callIds).toHaveLength(35);
    expect(second.id).not.toBe(first.id);
    await approve(person, planId, second);
    const done = await until(person, planId, isTerminal);
    expect(done.plan.state).toBe('applied');
    expect(performed(person.org)).toHaveLength(50);
    expect(new Set(performed(person.org).map((each) => each.key)).size).toBe(50);
    expect(await money(person, planId)).toEqual({ spent: 5_000_000, reserved: 0, left: 0 });
  });

  it('ends under ci with the ten not run either, since nobody is there to ask', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [batch(person.org, 50)], { profile: 'ci', guardrails: { tool_budget: 1 } });
    const done = await until(person, planId, isTerminal);
    expect(done.plan.state).toBe('errored');
    expect(done.plan.failure?.last.message).toMatch(/^Budget cap exceeded: /);
    expect(performed(person.org)).toHaveLength(0);
    expect(await money(person, planId)).toMatchObject({ spent: 0, reserved: 0 });
  });
});

describe('50 concurrent commands that each want to reserve $0.10, under a cap of $1.00', () => {
  it('admit exactly ten, whatever the order', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [batch(person.org, 50)], { guardrails: { tool_budget: 1, tool_denylist: ['test/priced'] } });
    const waiting = await until(person, planId, isSettled);
    const asked = pendingOf(waiting);
    expect(asked.map((each) => each.guard)).toEqual(Array.from({ length: 50 }, () => 'denylist'));
    const answers = await Promise.all([...asked].sort(() => Math.random() - 0.5).map((approval) => answer(person, planId, approval)));
    expect(answers.every((each) => each.ok)).toBe(true);
    const after = await until(
      person,
      planId,
      (snapshot) => performed(person.org).length >= 10 && snapshot.plan.ledger.reservations.length === 0,
    );
    expect(performed(person.org)).toHaveLength(10);
    expect(await money(person, planId)).toEqual({ spent: 1_000_000, reserved: 0, left: 0 });
    expect(new Set(pendingOf(after).map((each) => each.kind))).toEqual(new Set(['limit']));
    expect(pendingOf(after).flatMap((each) => each.callIds)).toHaveLength(40);
    const consumed = (await rowsOf(person, planId, 'call_decided'))
      .filter((row) => row.data.allowed)
      .map((row) => row.data.consumed_approval);
    expect(new Set(consumed).size).toBe(10);
  });
});

describe('what a tool says it cost', () => {
  async function run(label: string, person: Principal, reports: readonly unknown[], tool_budget = 1) {
    const steps = reports.map((cost_usd, index) => ({ id: `s${index}`, call: priced(label, { cost_usd, padding: `${index}` }) }));
    return startSteps(person, steps, { guardrails: { tool_budget } });
  }

  it('is charged at the estimate and marked, if it is no usable amount', async () => {
    const person = await newOrg();
    const reports = ['abc', -1, 'number:NaN', 'number:Infinity', 'number:-Infinity', null, {}, [1], true, ''];
    const planId = await run(person.org, person, reports, 10);
    const done = await until(person, planId, isTerminal);
    expect(done.plan.state).toBe('applied');
    const settled = await rowsOf(person, planId, 'call_settled');
    expect(settled.map((row) => row.data.charge?.marks)).toEqual(
      reports.map((report) => (report === null ? ['estimated'] : ['cost_error'])),
    );
    expect(settled.every((row) => row.data.charge?.charged_micro_usd === 100_000)).toBe(true);
    expect(await money(person, planId)).toMatchObject({ spent: 1_000_000, reserved: 0 });
  });

  it('is charged as it is: nothing for 0, less than reserved, a fraction of a micro-dollar rounded up', async () => {
    const person = await newOrg();
    const planId = await run(person.org, person, [0, 0.04, 0.0000004]);
    await until(person, planId, isTerminal);
    const settled = await rowsOf(person, planId, 'call_settled');
    expect(settled.map((row) => [row.data.charge?.charged_micro_usd, row.data.charge?.marks])).toEqual([
      [0, []],
      [40_000, []],
      [1, []],
    ]);
  });

  it('above its reservation is recorded as overrun and blocks what comes next until it is covered', async () => {
    const person = await newOrg();
    const steps = [
      { id: 'dear', call: priced(person.org, { cost_usd: 1.25 }) },
      { id: 'free', call: { tool: 'test/counter', arguments: { label: person.org } } },
    ];
    const planId = await startSteps(person, steps, { guardrails: { tool_budget: 1 } });
    const limit = onlyPending(await until(person, planId, isSettled));
    expect(limit).toMatchObject({ kind: 'limit', guard: 'budget_cap', suggestedGrant: { cost_usd: 0.25 } });
    expect(limit.reason).toContain('$1.25 > $1.00');
    expect((await stateOf(person, planId)).ledger).toMatchObject({ settledMicroUsd: 100_000, overrunMicroUsd: 1_150_000 });
    expect(performed(person.org)).toHaveLength(1);
    await approve(person, planId, limit);
    await until(person, planId, isTerminal);
    expect(performed(person.org)).toHaveLength(2);
  });
});

describe('limits and leaks', () => {
  it('a budget of 0 lets what is free run and refuses what costs anything', async () => {
    const person = await newOrg();
    const planId = await startSteps(
      person,
      [{ call: { tool: 'test/counter', arguments: { label: person.org } } }, { call: priced(person.org) }],
      { guardrails: { tool_budget: 0 } },
    );
    const limit = onlyPending(await until(person, planId, isSettled));
    expect(limit.reason).toContain('$0.10 > $0.00');
    // The status says it as a word and as numbers, with nothing divided by nothing.
    const shown = await planOf(person, planId).read();
    if (shown === null) throw new Error('there is no such plan');
    expect(planViewOf(shown, Date.now()).budget).toMatchObject({ cap_usd: 0, spent_usd: 0, remaining_usd: 0, exhausted: true });
    expect(performed(person.org).map((each) => each.tool)).toEqual(['test/counter']);
  });

  it('steps that fail before they are dispatched leave no reservation behind', async () => {
    const person = await newOrg();
    const steps = Array.from({ length: 30 }, (_, index) => ({
      id: `f${index}`,
      on_refused: 'continue',
      call: { tool: 'test/fail_permanent', arguments: {} },
      cost_usd: 0.1,
    }));
    const planId = await startSteps(person, steps, { guardrails: { tool_budget: 0.1 } });
    expect((await until(person, planId, isTerminal)).plan.state).toBe('applied');
    expect(await money(person, planId)).toEqual({ spent: 0, reserved: 0, left: 100_000 });
  });

  it('a cancel releases what was reserved for calls that were not sent, and the trail adds up to what is shown as spent', async () => {
    const person = await newOrg();
    const calls = Array.from({ length: 4 }, (_, index) => ({
      tool: 'test/slow_priced',
      arguments: { label: person.org, ms: 150, padding: `${index}` },
    }));
    const planId = await startSteps(person, [{ calls }], { guardrails: { tool_budget: 1 } });
    await until(person, planId, () => performed(person.org).length === 2);
    expect((await cancel(person, planId)).ok).toBe(true);
    await until(person, planId, (snapshot) => snapshot.plan.ledger.reservations.length === 0);
    expect(performed(person.org)).toHaveLength(2);
    const settled = await rowsOf(person, planId, 'call_settled');
    const charged = settled.reduce((sum, row) => sum + (row.data.charge?.charged_micro_usd ?? 0), 0);
    expect(await money(person, planId)).toMatchObject({ spent: charged, reserved: 0 });
    expect(charged).toBe(200_000);
  });

  it.each([
    ['max_tool_calls_per_step', { max_tool_calls_per_step: 3 }, 'Tool call limit reached: 3/3', { calls: 3 }],
    ['max_steps', { max_steps: 1 }, 'Step limit reached', { steps: 1 }],
  ])('%s stops what is beyond it, keeps what is done, and a grant resumes it', async (_name, guardrails, reason, grant) => {
    const person = await newOrg();
    const calls = Array.from({ length: 6 }, (_, index) => ({
      tool: 'test/counter',
      arguments: { label: person.org, padding: `${index}` },
    }));
    const steps = 'max_steps' in guardrails ? [{ calls: calls.slice(0, 3) }, { calls: calls.slice(3) }] : [{ calls }];
    const planId = await startSteps(person, steps, { guardrails });
    const limit = onlyPending(await until(person, planId, (snapshot) => isSettled(snapshot) && performed(person.org).length === 3));
    expect(limit.kind).toBe('limit');
    expect(limit.reason).toContain(reason);
    expect(limit.suggestedGrant).toEqual(grant);
    expect(limit.callIds).toHaveLength(3);
    await approve(person, planId, limit);
    await until(person, planId, isTerminal);
    expect(performed(person.org)).toHaveLength(6);
  });
});

describe('a plan of five files that stops before the fourth', () => {
  const five = Array.from({ length: 5 }, (_, n) => ({
    call: { tool: 'write_file', arguments: { path: `f${n + 1}.txt`, content: `${n}\n` } },
  }));

  /** The artifacts of the plan as its operation and as the task have them: id, whether it is a draft, the paths in its diff. */
  async function artifactsOf(person: Principal, planId: string) {
    const call = { principal: person, idempotencyKey: null };
    const operation = findOperation('_cleveragents/plan/artifacts');
    if (operation === null) throw new Error('there is no such operation');
    const listed = await dispatchOperation(operation, { plan_id: planId }, call, services);
    const task = await runStandard(
      { op: 'get', params: { id: planId, historyLength: 0 } },
      { ...call, version: '1.0', extensionActivated: false, signal: new AbortController().signal },
      services,
    );
    if (!listed.ok || !task.ok) throw new Error(JSON.stringify([listed, task]));
    const pathsIn = (parts: readonly { readonly text?: string }[]) =>
      [...(parts[0]?.text ?? '').matchAll(/^\+\+\+ b\/(\S+)/gm)].map(([, path]) => path);
    const own = listed.value as { artifacts: readonly { artifact_id: string; draft: boolean; parts: readonly { text?: string }[] }[] };
    const standard = task.value as {
      artifacts?: readonly { artifactId: string; metadata?: object; parts: readonly { text?: string }[] }[];
    };
    return {
      listed: own.artifacts.map(({ artifact_id: id, draft, parts }) => [id, draft, pathsIn(parts)]),
      task: standard.artifacts?.map(({ artifactId, metadata, parts }) => [artifactId, metadata, pathsIn(parts)]),
    };
  }

  it.each([
    ['supervised by nobody, waits', 'auto', 'waiting'],
    ['under ci, has failed', 'ci', 'errored'],
  ])('%s, and what it has done is an artifact that is not applied', async (_how, profile, state) => {
    const person = await newOrg();
    const project = await addProject(person, { 'a.txt': 'a\n' });
    const planId = await startSteps(person, five, { profile, project, apply: 'project', guardrails: { max_steps: 3 } });
    expect((await until(person, planId, isSettled)).plan.state).toBe(state);
    const done = ['f1.txt', 'f2.txt', 'f3.txt'];
    expect(await artifactsOf(person, planId)).toEqual({
      listed: [['changes.diff', true, done]],
      task: [['changes.diff', { draft: true }, done]],
    });
    expect(await fileOf(person, project, 'f1.txt')).toBeNull();
  });

  it('has them once more as the result when a human grants the rest, and no draft beside it', async () => {
    const person = await newOrg();
    const project = await addProject(person, { 'a.txt': 'a\n' });
    const planId = await startSteps(person, five, { project, apply: 'project', guardrails: { max_steps: 3 } });
    for (let n = 0; n < 2; n += 1) {
      const limit = onlyPending(await until(person, planId, isSettled));
      await approve(person, planId, limit);
      await until(person, planId, (snapshot) => isTerminal(snapshot) || (isSettled(snapshot) && onlyPending(snapshot).id !== limit.id));
    }
    const { listed } = await artifactsOf(person, planId);
    expect(listed.filter(([id]) => id === 'changes.diff')).toEqual([
      ['changes.diff', false, ['f1.txt', 'f2.txt', 'f3.txt', 'f4.txt', 'f5.txt']],
    ]);
  });

  it('has none where it has changed nothing', async () => {
    const person = await newOrg();
    const project = await addProject(person, { 'a.txt': 'a\n' });
    const planId = await startSteps(person, five, { project, apply: 'project', guardrails: { max_steps: 0 } });
    await until(person, planId, isSettled);
    expect(await artifactsOf(person, planId)).toEqual({ listed: [], task: [] });
  });
});
