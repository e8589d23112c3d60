import { describe, expect, it } from 'vitest';
import { GUARDS } from '../../../src/core/guards/guards.ts';
import { auditEntryOf } from '../../../src/core/plan/audit.ts';
import { taskStateOf } from '../../../src/core/plan/task-state.ts';
import { call, FACTS, failed, PlanDriver, type PlanOptions, profileOf, refusalOf, type Script } from './plan-driver.ts';

const ci = (gates: Parameters<typeof profileOf>[1] = {}) => profileOf('ci', { name: 'pipeline', ...gates });
const WORK: Script = { strategize: [{ decide: 'how?' }], execute: [{ calls: [call('files.write')] }] };

describe('an unattended plan', () => {
  it('runs through when nothing asks', () => {
    expect(PlanDriver.run({ profile: 'ci' }, WORK).at).toBe('apply/applied (end)');
  });

  const rows: readonly {
    readonly name: string;
    readonly options: PlanOptions;
    readonly script?: Script;
    readonly reason: string;
    readonly runs?: number;
  }[] = [
    { name: 'the gate of Strategize', options: { profile: ci({ decompose_task: 0.9 }) }, reason: 'decompose_task' },
    { name: 'the gate of a decision', options: { profile: ci({ edit_code: 0.9 }) }, reason: 'edit_code' },
    { name: 'the gate of Execute', options: { profile: ci({ create_tool: 0.9 }) }, reason: 'create_tool' },
    { name: 'the gate of a batch', options: { profile: ci({ execute_command: 0.9 }) }, reason: 'execute_command' },
    { name: 'the gate of Apply', options: { profile: ci({ select_tool: 0.9 }) }, reason: 'select_tool', runs: 1 },
    {
      name: 'a retry',
      options: { profile: ci({ modify_config: 1 }) },
      script: { ...WORK, outcome: () => failed({ transient: true }) },
      reason: 'modify_config',
      runs: 1,
    },
    {
      name: 'the end of retries',
      options: { profile: ci() },
      script: { ...WORK, outcome: () => failed({ transient: true }) },
      reason: 'Retry limit reached: 3/3',
      runs: 4,
    },
    { name: 'a denied tool', options: { profile: 'ci', guardrails: { tool_denylist: ['files.write'] } }, reason: 'denylist' },
    { name: 'a write approval', options: { profile: 'ci', guardrails: { require_approval_for_writes: true } }, reason: 'write operation' },
    {
      name: 'an approval for apply',
      options: { profile: 'ci', guardrails: { require_approval_for_apply: true } },
      reason: 'Apply requires human approval',
      runs: 1,
    },
    {
      name: 'a budget',
      options: { profile: 'ci', guardrails: { tool_budget: 0 } },
      script: { execute: [{ calls: [call('model.ask')] }] },
      reason: 'Budget cap exceeded',
    },
    {
      name: 'a limit of calls',
      options: { profile: 'ci', guardrails: { max_tool_calls_per_step: 0 } },
      reason: 'Tool call limit reached: 0/0',
    },
    { name: 'a limit of steps', options: { profile: 'ci', guardrails: { max_steps: 0 } }, reason: 'Step limit reached: 0/0' },
    { name: 'a limit of time', options: { profile: 'ci', guardrails: { max_wall_clock_seconds: 0 } }, reason: 'Wall-clock limit reached' },
    {
      name: 'a question of the actor',
      options: { profile: 'ci' },
      script: { execute: [{ ask: 'which branch?' }] },
      reason: 'which branch?',
    },
    { name: 'a failure', options: { profile: 'ci' }, script: { execute: [{ fail: 'broken' }] }, reason: 'broken' },
    {
      name: 'a head that moved',
      options: { profile: 'ci' },
      script: { ...WORK, apply: () => ({ status: 'moved', head: 'd'.repeat(64) }) },
      reason: 'the project has moved',
      runs: 1,
    },
    {
      name: 'an apply that failed',
      options: { profile: 'ci' },
      script: { ...WORK, apply: () => ({ status: 'failed', reason: 'the project is away' }) },
      reason: 'the project is away',
      runs: 1,
    },
  ];

  it.each(rows)('fails cleanly at $name: reason, no question, nothing held', ({ options, script = WORK, reason, runs = 0 }) => {
    const driver = PlanDriver.run(options, script);
    expect(driver.plan).toMatchObject({ state: 'errored', terminal: true, approvals: [], ledger: { reservations: [] } });
    expect(taskStateOf(driver.plan)).toBe('failed');
    expect(driver.plan.failure?.last.message).toContain(reason);
    expect(driver.performed).toHaveLength(runs);
    expect(driver.execute().ok).toBe(false);
  });

  it('records each call of a batch that cannot run, allowed ones too', () => {
    const driver = PlanDriver.run(
      { profile: 'ci', guardrails: { tool_denylist: ['files.write'] } },
      { execute: [{ calls: [call('files.read'), call('files.write')], facts: [FACTS, FACTS] }] },
    );
    expect(driver.rowsOf('call_decided').map(({ data }) => [data.allowed, data.guard])).toEqual([
      [false, 'batch'],
      [false, 'denylist'],
    ]);
    expect(driver.callStates()).toEqual(['refused', 'refused']);
    expect(driver.tools).toEqual([]);
  });
});

describe('the trail', () => {
  it('has one entry per decision, with the guard that refused first and all of them beside it', () => {
    const calls = [call('files.read'), call('files.write'), call('no.such'), call('files.read'), call('web.get')];
    const driver = PlanDriver.run({ guardrails: { tool_denylist: ['files.write'] } }, { execute: [{ calls }] });
    const decided = driver.rowsOf('call_decided').map((row) => auditEntryOf(row));
    expect(decided.map((entry) => [entry?.eventType, entry?.guardName, entry?.result])).toEqual([
      ['call_allowed', 'call', 'allowed'],
      ['denylist_blocked', 'denylist', 'denied'],
      ['tool_blocked', 'tool', 'denied'],
      ['call_allowed', 'call', 'allowed'],
      ['call_allowed', 'call', 'allowed'],
    ]);
    for (const entry of decided) expect(entry?.context['guards']).toHaveLength(GUARDS.length + 1);
    expect(decided[1]?.reason).toContain('files.write');
  });

  it('is refused what comes after its end with the tool and the guard with which it ended', () => {
    const driver = PlanDriver.run({ profile: 'ci', guardrails: { tool_denylist: ['files.write'] } }, WORK);
    expect(driver.at).toBe('execute/errored (end)');
    for (const type of ['execute', 'apply'] as const) {
      const refusal = refusalOf(type === 'execute' ? driver.execute() : driver.apply());
      expect(refusal).toMatchObject({
        kind: 'invalid_state',
        details: { plan_id: driver.plan.id, phase: 'execute', state: 'errored', tool: 'files.write', guard: 'denylist' },
      });
    }
  });

  it('tells of every question how it ended, also where nobody answered it or it was taken back', () => {
    const expired = PlanDriver.run({ profile: 'manual' }, WORK);
    const { id } = expired.only;
    expired.wait(8 * 86_400_000).run();
    expect(expired.trail.find(({ eventType }) => eventType === 'approval_expired')).toMatchObject({
      guardName: 'approval',
      result: 'denied',
      reason: expect.any(String),
      context: { approval_id: id },
    });
    // The question about the call is taken back when the policy that it was bound to changes.
    const revoked = PlanDriver.run({ guardrails: { tool_denylist: ['files.write'] } }, WORK);
    const asked = revoked.only.id;
    revoked.revise({ kind: 'add', list: 'denylist', entry: 'another.tool' });
    const closed = revoked.rowsOf('approval_closed').filter(({ data }) => data.approval_id === asked);
    expect(closed).toHaveLength(1);
    expect(revoked.trail.filter(({ eventType }) => eventType === 'approval_revoked')).toMatchObject([
      { guardName: 'approval', result: 'denied', context: { approval_id: asked } },
    ]);
  });

  it('names who made, proposed, approved and cancelled, in the order of the log', () => {
    const driver = PlanDriver.run({ profile: profileOf('full-auto', { name: 'reviews', select_tool: 1 }) }, WORK);
    driver.approve();
    driver.run();
    const actorOf = (type: string) => driver.trail.find((entry) => entry.eventType === type)?.actor;
    expect(actorOf('plan_created')).toMatchObject({ kind: 'human', id: 'asker' });
    expect(actorOf('decision_made')).toMatchObject({ kind: 'actor', id: 'scripted/steps' });
    expect(actorOf('approval_decided')).toMatchObject({ kind: 'human', id: 'boss' });
    expect(actorOf('plan_applied')).toMatchObject({ kind: 'system' });
    for (const { actor, context, eventType } of driver.trail) {
      const isPerson = actor.kind === 'human' || actor.kind === 'agent';
      expect(context['on_behalf_of'], eventType).toEqual(isPerson ? undefined : driver.plan.requester);
    }
    expect(driver.trail.map(({ seq }) => seq)).toEqual(driver.trail.map(({ seq }) => seq).toSorted((a, b) => a - b));
    expect(driver.trail.every((entry) => entry.result === 'allowed' || entry.reason !== null)).toBe(true);
  });
});
