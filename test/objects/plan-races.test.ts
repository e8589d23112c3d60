import { describe, expect, it } from 'vitest';
import {
  addAction,
  addProject,
  answer,
  approve,
  callerOf,
  cancel,
  fileOf,
  inTurns,
  isSettled,
  isTerminal,
  newOrg,
  onlyPending,
  pause,
  performed,
  planOf,
  rowsOf,
  services,
  start,
  startSteps,
  stateOf,
  until,
} from './plan-support.ts';

const TERMINAL_EVENTS = new Set(['plan_applied', 'plan_cancelled', 'plan_rejected']);

describe('a cancel', () => {
  it('at any moment around the last step leaves exactly one end, and answers success only for a cancelled plan (200 runs)', async () => {
    const person = await newOrg();
    const counts: Record<string, number> = {};
    const actionName = await addAction(person, {
      name: 'count',
      apply: 'none',
      execute: [{ call: { tool: 'test/counter', arguments: {} } }],
    });
    await inTurns(runs(200), 8, async (run) => {
      const planId = (await start(person, { actionName, automationProfile: 'auto' })).plan.id;
      for (let turn = 0; turn < run % 12; turn += 1) await pause(0);
      const result = await cancel(person, planId);
      const { plan } = await until(person, planId, isTerminal);
      expect(plan.state).toBe(result.ok ? 'cancelled' : 'applied');
      if (!result.ok) expect(result.error).toMatchObject({ kind: 'invalid_state', details: { reason: 'TASK_NOT_CANCELABLE' } });
      const ends = (await planOf(person, planId).log(0, 100))?.filter((row) => TERMINAL_EVENTS.has(row.type)) ?? [];
      expect(ends).toHaveLength(1);
      expect((await cancel(person, planId)).ok).toBe(false);
      counts[plan.state] = (counts[plan.state] ?? 0) + 1;
    });
    // The moments really lie on both sides of the end.
    expect(counts['cancelled']).toBeGreaterThan(5);
    expect(counts['applied']).toBeGreaterThan(5);
  }, 120_000);

  it('around an apply is either before it and writes nothing, or too late and is refused (60 runs)', async () => {
    const person = await newOrg();
    const counts: Record<string, number> = {};
    await inTurns(runs(60), 8, async (run) => {
      const project = await addProject(person, { 'a.txt': 'old\n' });
      const planId = await startSteps(person, [{ call: { tool: 'write_file', arguments: { path: 'a.txt', content: 'new\n' } } }], {
        profile: 'supervised',
        project,
        apply: 'project',
      });
      const approval = onlyPending(await until(person, planId, isSettled));
      const applied = answer(person, planId, approval);
      const cancelled = run % 2 === 0 ? cancel(person, planId) : pause(run % 7).then(() => cancel(person, planId));
      const [apply, stop] = run % 4 === 0 ? await Promise.all([applied, cancelled]) : [await applied, await cancelled];
      const { plan } = await until(person, planId, isTerminal);
      expect(plan.state).toBe(stop.ok ? 'cancelled' : 'applied');
      expect(apply.ok || stop.ok).toBe(true);
      expect(await fileOf(person, project, 'a.txt')).toBe(stop.ok ? 'old\n' : 'new\n');
      counts[plan.state] = (counts[plan.state] ?? 0) + 1;
    });
    expect(counts['applied']).toBeGreaterThan(5);
  }, 120_000);

  it('while a slow tool runs tells it to stop, and its late result is cost only', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [
      { call: { tool: 'test/slow_priced', arguments: { label: person.org, ms: 60_000 } } },
      { call: { tool: 'test/counter', arguments: { label: person.org } } },
    ]);
    await until(person, planId, () => performed(person.org).length === 1);
    const began = Date.now();
    const result = await cancel(person, planId, 'changed my mind');
    expect(result.ok && result.value.plan.state).toBe('cancelled');
    const { plan } = await until(person, planId, (snapshot) => snapshot.plan.ledger.reservations.length === 0);
    expect(Date.now() - began).toBeLessThan(5_000);
    expect(plan).toMatchObject({ state: 'cancelled', cancelReason: 'changed my mind', ledger: { settledMicroUsd: 100_000 } });
    const [settled] = await rowsOf(person, planId, 'call_settled');
    expect(settled?.data).toMatchObject({ late: true, outcome: 'failed', reason: expect.stringContaining('stopped') });
    expect(performed(person.org)).toHaveLength(1);
  });

  it('is not held up by a tool that does not listen, whose result comes later and counts as cost only', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [
      { call: { tool: 'test/deaf', arguments: { label: person.org, ms: 400, cost_usd: 0.3 } }, cost_usd: 0.1 },
    ]);
    await until(person, planId, () => performed(person.org).length === 1);
    expect((await cancel(person, planId)).ok).toBe(true);
    const before = await planOf(person, planId).read();
    const { plan } = await until(person, planId, (snapshot) => snapshot.plan.ledger.reservations.length === 0);
    expect(plan).toMatchObject({ state: 'cancelled', ledger: { settledMicroUsd: 100_000, overrunMicroUsd: 200_000 } });
    expect(plan.statusAt).toBe(before?.plan.statusAt);
    expect((await rowsOf(person, planId, 'call_settled')).map((row) => row.data.late)).toEqual([true]);
  });
});

describe('commands at once', () => {
  it('20 approvals of one approval consume it once', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [{ call: { tool: 'test/counter', arguments: { label: person.org } } }], {
      guardrails: { tool_denylist: ['test/counter'] },
    });
    const approval = onlyPending(await until(person, planId, isSettled));
    const answers = await Promise.all(Array.from({ length: 20 }, () => answer(person, planId, approval)));
    expect(answers.filter((each) => each.ok)).toHaveLength(1);
    await until(person, planId, isTerminal);
    expect(performed(person.org)).toHaveLength(1);
    expect((await rowsOf(person, planId, 'call_decided')).filter((row) => row.data.consumed_approval !== undefined)).toHaveLength(1);
  });

  it('an approval and a cancel at once give one of the two, never both (40 runs)', async () => {
    const person = await newOrg();
    await inTurns(runs(40), 8, async (run) => {
      const label = `${person.org}.${run}`;
      const planId = await startSteps(person, [{ call: { tool: 'test/external_once', arguments: { label } } }], {
        profile: 'full-auto',
        guardrails: { tool_denylist: ['test/external_once'] },
      });
      const approval = onlyPending(await until(person, planId, isSettled));
      const both = [() => answer(person, planId, approval), () => cancel(person, planId)];
      const [first, second] = await Promise.all((run % 2 === 0 ? both : both.reverse()).map((each) => each()));
      expect([first?.ok, second?.ok]).toContain(true);
      const { plan } = await until(person, planId, isTerminal);
      const cancelled = await rowsOf(person, planId, 'plan_cancelled');
      expect(cancelled).toHaveLength(plan.state === 'cancelled' ? 1 : 0);
      await until(person, planId, (snapshot) => snapshot.plan.ledger.reservations.length === 0);
      expect(performed(label).length).toBe((await rowsOf(person, planId, 'call_sent')).length);
    });
  }, 60_000);

  it('execute called twice, or twenty times, in parallel performs no step twice', async () => {
    const person = await newOrg();
    const steps = Array.from({ length: 5 }, (_, index) => ({
      call: { tool: 'test/slow', arguments: { label: person.org, ms: 10, padding: `${index}` } },
    }));
    const planId = await startSteps(person, steps, { profile: 'manual', guardrails: {} });
    const execute = () => planOf(person, planId).command({ type: 'execute', by: callerOf(person), digest: null, head: null });
    await until(person, planId, isSettled);
    const first = await Promise.all(Array.from({ length: 20 }, execute));
    expect(first.some((each) => each?.ok)).toBe(true);
    for (;;) {
      const snapshot = await until(person, planId, isSettled);
      if (snapshot.plan.terminal) break;
      const [approval] = snapshot.plan.approvals.filter((each) => each.status === 'pending');
      if (approval !== undefined) await Promise.all([answer(person, planId, approval), answer(person, planId, approval), execute()]);
    }
    expect(performed(person.org)).toHaveLength(5);
    expect(await execute()).toMatchObject({ ok: false, error: { kind: 'invalid_state', details: { phase: 'apply', state: 'applied' } } });
  });

  it('a failed step that is executed again runs once more, however often it is asked for', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [
      { call: { tool: 'test/counter', arguments: { label: person.org } } },
      { call: { tool: 'test/fail_permanent', arguments: { label: person.org } } },
    ]);
    await until(person, planId, ({ plan }) => plan.state === 'errored');
    const execute = () => planOf(person, planId).command({ type: 'execute', by: callerOf(person), digest: null, head: null });
    await Promise.all([execute(), execute()]);
    await until(person, planId, ({ plan }) => plan.state === 'errored' && plan.attempt >= 2);
    expect(performed(person.org).map((each) => each.tool)).toEqual(['test/counter', 'test/fail_permanent', 'test/fail_permanent']);
  });

  it('two plans that apply to one project: one is applied, the other writes nothing and starts again on the new head', async () => {
    const person = await newOrg();
    const project = await addProject(person, { 'a.txt': 'old\n' });
    const write = (content: string) => [{ call: { tool: 'write_file', arguments: { path: 'a.txt', content } } }];
    const plans = await Promise.all(
      ['one\n', 'two\n'].map((content) => startSteps(person, write(content), { profile: 'supervised', project, apply: 'project' })),
    );
    const approvals = await Promise.all(plans.map(async (planId) => onlyPending(await until(person, planId, isSettled))));
    await Promise.all(plans.map((planId, index) => approve(person, planId, approvals[index] ?? never())));
    const ends = await Promise.all(
      plans.map((planId, index) =>
        until(
          person,
          planId,
          (snapshot) =>
            isTerminal(snapshot) || snapshot.plan.approvals.some((each) => each.status === 'pending' && each.id !== approvals[index]?.id),
        ),
      ),
    );
    expect(ends.filter((end) => end.plan.state === 'applied')).toHaveLength(1);
    const winner = ends.findIndex((end) => end.plan.state === 'applied');
    const loser = plans[1 - winner] ?? never();
    expect(await fileOf(person, project, 'a.txt')).toBe(winner === 0 ? 'one\n' : 'two\n');
    expect(await services.projects.project(person.org, project).history(10)).toHaveLength(2);
    const [constrained] = await rowsOf(person, loser, 'apply_constrained');
    expect(constrained?.data.reason).toContain('nothing was written');
    expect(constrained?.data.report['head']).toBe(ends[winner]?.plan.appliedHead);
    expect((await stateOf(person, loser)).project?.base).toBe(ends[winner]?.plan.appliedHead);
  });

  it('commands of every kind while a tool is in flight start nothing twice', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [
      { call: { tool: 'test/slow', arguments: { label: person.org, ms: 300 } } },
      { call: { tool: 'test/counter', arguments: { label: person.org } } },
    ]);
    await until(person, planId, () => performed(person.org).length === 1);
    const port = planOf(person, planId);
    const message = {
      type: 'message',
      by: callerOf(person),
      messageId: 'm',
      parts: [{ kind: 'text', text: 'hurry' }],
      metadata: null,
      text: 'hurry',
      answers: [],
      plain: null,
    } as const;
    await Promise.all([
      port.command({ type: 'execute', by: callerOf(person), digest: null, head: null }),
      port.command({ type: 'execute', by: callerOf(person), digest: null, head: null }),
      port.command(message),
      port.wake(),
      port.wake(),
      port.read(),
    ]);
    await until(person, planId, isTerminal);
    expect(performed(person.org).map((each) => each.tool)).toEqual(['test/slow', 'test/counter']);
  });
});

const runs = (count: number): readonly number[] => Array.from({ length: count }, (_, run) => run);

function never(): never {
  throw new Error('there is no such plan');
}
