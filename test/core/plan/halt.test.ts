import { describe, expect, it } from 'vitest';
import { nextTask } from '../../../src/core/plan/next-task.ts';
import { haltOf } from '../../../src/core/plan/plan.ts';
import { taskStateOf } from '../../../src/core/plan/task-state.ts';
import { AGENT, BOSS, call, FACTS, failed, OPERATOR, PlanDriver, profileOf, refusalOf, type Script, succeeded } from './plan-driver.ts';

const WORK: Script = { execute: [{ calls: [call('files.write')] }, { calls: [call('pay.send')] }] };

/** Stands at an authorised call that has not begun. */
function atCall(script: Script = WORK): PlanDriver {
  const driver = PlanDriver.make({}, script);
  while (driver.callStates().length === 0) driver.turn();
  return driver;
}

describe('a halted plan', () => {
  it('stays where it is, says why, and does nothing by itself, free calls included', () => {
    const driver = atCall();
    const { at } = driver;
    expect(driver.halt('it pays twice').ok).toBe(true);
    expect(haltOf(driver.plan)).toEqual({ level: 'plan', epoch: 1, reason: 'it pays twice', by: OPERATOR.actor, at: driver.now });
    expect(nextTask(driver.plan, driver.nowMs)).toEqual({ kind: 'sleep', atMs: null });
    expect(driver.at).toBe(at);
    expect(driver.run().tools).toEqual([]);
    expect(taskStateOf(driver.plan)).toBe('working');
    expect(driver.trail.at(-1)).toMatchObject({ eventType: 'halted', result: 'denied', reason: 'it pays twice', actor: OPERATOR.actor });
  });

  it('goes on where it stood when the halt is cleared', () => {
    const driver = atCall();
    driver.halt();
    driver.run();
    expect(driver.clearHalt().ok).toBe(true);
    driver.run();
    expect(driver.at).toBe('apply/applied (end)');
    expect(driver.tools).toEqual(['files.write', 'pay.send']);
  });

  it.each(['propose', 'advance', 'mark_sent', 'execute', 'apply', 'retry_call'] as const)('does not take the command %s', (type) => {
    const driver = atCall({ execute: [{ calls: [call('pay.send')] }] });
    driver.halt('wait');
    const { length } = driver.rows;
    const commands = {
      propose: {
        type,
        proposal: { kind: 'done' },
        actorName: 'a',
        basis: { attempt: 1, cursor: driver.plan.cursor, phase: 'execute' },
        guidanceSeen: 0,
        facts: [],
      },
      advance: { type, diff: null, head: null, outputs: [] },
      mark_sent: { type, callId: 'c1', attempt: 1 },
      execute: { type, by: BOSS, digest: null, head: null },
      apply: { type, by: BOSS, digest: null, approve: true },
      retry_call: { type, callId: 'c1', facts: FACTS },
    } as const;
    const refusal = refusalOf(driver.do(commands[type] as Parameters<typeof driver.do>[0]));
    expect(refusal).toMatchObject({
      kind: 'invalid_state',
      details: { halted: { level: 'plan', reason: 'wait', epoch: 1 }, phase: 'execute' },
    });
    expect(refusal.message).toContain('the plan is halted: wait');
    expect(driver.rows).toHaveLength(length);
  });

  it('keeps what is asked; only a no is taken, and the yes comes after the halt', () => {
    const driver = PlanDriver.run(
      { guardrails: { tool_denylist: ['files.write', 'pay.send'] } },
      { execute: [{ calls: [call('files.write'), call('pay.send')], onRefused: 'continue' }] },
    );
    driver.halt();
    const [first, second] = driver.pending;
    if (first === undefined || second === undefined) throw new Error('two are asked');
    expect(refusalOf(driver.approve(first)).kind).toBe('invalid_state');
    const answers = [{ approvalId: first.id, decision: 'approve', digest: first.digest, reason: null, text: null, grant: null }] as const;
    expect(refusalOf(driver.say('', { answers })).kind).toBe('invalid_state');
    const yes = { answers, plain: { decision: 'approve', phase: null } } as const;
    expect(refusalOf(driver.say('yes', yes)).kind).toBe('invalid_state');
    expect(driver.deny(second).ok).toBe(true);
    expect(driver.pending).toEqual([first]);
    driver.clearHalt();
    expect(driver.approve(first).ok).toBe(true);
    driver.run();
    expect(driver.tools).toEqual(['files.write']);
  });

  it('takes no plain yes for a gate', () => {
    const driver = PlanDriver.run({ profile: profileOf('full-auto', { select_tool: 1 }) }, { execute: [{ calls: [call('files.write')] }] });
    driver.halt();
    expect(refusalOf(driver.say('approved', { plain: { decision: 'approve', phase: null } })).details).toHaveProperty('halted');
    expect(refusalOf(driver.apply()).details).toHaveProperty('halted');
    driver.clearHalt();
    driver.say('approved', { plain: { decision: 'approve', phase: null } });
    expect(driver.run().at).toBe('apply/applied (end)');
  });

  it('settles what was sent, and repeats nothing until it goes on', () => {
    const driver = atCall({ execute: [{ calls: [call('web.get'), call('pay.send')] }], outcome: () => succeeded() });
    for (const callId of ['c1', 'c2']) driver.do({ type: 'mark_sent', callId, attempt: 1 });
    driver.halt();
    expect(driver.settle('c2', succeeded({ reportedUsd: 0.2 })).ok).toBe(true);
    expect(driver.plan.ledger.settledMicroUsd).toBe(200_000);
    expect(driver.settle('c1', failed({ transient: true, reportedUsd: 0 })).ok).toBe(true);
    expect(driver.callStates()).toEqual(['retrying', 'succeeded']);
    driver.wait(3_600_000);
    expect(nextTask(driver.plan, driver.nowMs)).toEqual({ kind: 'sleep', atMs: null });
    driver.clearHalt();
    expect(nextTask(driver.plan, driver.nowMs).kind).toBe('retry');
    expect(driver.run().at).toBe('apply/applied (end)');
  });

  it('that ran out of retries meanwhile asks for more when it goes on', () => {
    const driver = atCall({ execute: [{ calls: [call('web.get')] }] });
    driver.set({ actor_limits: { max_retries_per_failure: 0 } });
    expect(driver.callStates(), 'taken back and decided anew').toEqual(['authorised']);
    driver.do({ type: 'mark_sent', callId: 'c1', attempt: 1 });
    driver.halt();
    driver.settle('c1', failed({ transient: true }));
    expect(driver.pending).toEqual([]);
    driver.clearHalt();
    expect(driver.only).toMatchObject({ kind: 'limit', guard: 'retry_limit' });
  });

  it('can be tightened, and goes on under the new guards: what waited is decided under them', () => {
    const driver = atCall({ execute: [{ calls: [call('pay.send'), call('files.read')] }] });
    driver.halt();
    driver.set({ tool_denylist: ['pay.*'] }, AGENT);
    expect(driver.callStates()).toEqual(['asked', 'authorised']);
    expect(driver.plan.ledger.reservations.map(({ id }) => id)).toEqual(['c2.1']);
    expect(driver.pending, 'nothing is decided while it is halted').toEqual([]);
    driver.clearHalt();
    expect(driver.only).toMatchObject({ kind: 'call', guard: 'denylist', callIds: ['c1'] });
  });

  it('reopens the gate of a batch that a change had closed', () => {
    const driver = PlanDriver.run(
      { profile: profileOf('full-auto', { execute_command: 1 }) },
      { execute: [{ calls: [call('files.read'), call('files.write')] }] },
    );
    driver.halt();
    driver.set({ max_steps: 4 });
    expect(driver.pending).toEqual([]);
    driver.clearHalt();
    expect(driver.only).toMatchObject({ kind: 'gate', gate: 'execute_command', callIds: ['c1', 'c2'] });
    driver.approve();
    driver.run();
    expect(driver.tools).toEqual(['files.read', 'files.write']);
  });

  it('reminds and expires as always, and can be cancelled', () => {
    const driver = PlanDriver.run({ profile: 'manual' }, {});
    driver.halt();
    driver.wait(8 * 86_400_000).run();
    expect(driver.only.kind).toBe('next_step');
    expect(driver.cancel('enough').ok).toBe(true);
    expect(driver.at).toBe('action/cancelled (end)');
    expect(refusalOf(driver.halt()).kind).toBe('invalid_state');
    expect(refusalOf(driver.clearHalt()).kind).toBe('invalid_state');
  });

  it('finishes an apply that was sent, and sends none', () => {
    const driver = PlanDriver.make({}, { execute: [{ calls: [call('files.write')] }] });
    while (driver.at !== 'apply/running') driver.turn();
    driver.halt();
    expect(nextTask(driver.plan, driver.nowMs).kind).toBe('sleep');
    const applyId = driver.plan.apply?.id ?? '';
    expect(driver.do({ type: 'finish_apply', applyId, outcome: { status: 'applied', head: 'h', previous: null, files: 1 } }).ok).toBe(true);
    expect(driver.at).toBe('apply/applied (end)');
  });
});

describe('the kill switch', () => {
  it('may be set by any operator, an agent too, and cleared by a human who may approve', () => {
    const driver = atCall();
    expect(driver.halt('stop', { by: AGENT.actor }).ok).toBe(true);
    for (const by of [OPERATOR, AGENT]) expect(refusalOf(driver.clearHalt({ by })).kind).toBe('forbidden');
    expect(haltOf(driver.plan)?.reason).toBe('stop');
    expect(driver.clearHalt().ok).toBe(true);
    expect(driver.trail.at(-1)).toMatchObject({ eventType: 'halt_cleared', actor: BOSS.actor });
  });

  it('set twice keeps its first reason, cleared twice is cleared, and each turn has its epoch', () => {
    const driver = atCall();
    expect(driver.clearHalt().ok).toBe(true);
    driver.halt('first');
    driver.halt('second');
    expect(haltOf(driver.plan)).toMatchObject({ reason: 'first', epoch: 1 });
    driver.clearHalt();
    driver.clearHalt();
    driver.halt('third');
    expect(driver.rows.slice(-3).map(({ type, data }) => [type, (data as { epoch: number }).epoch])).toEqual([
      ['halted', 1],
      ['halt_cleared', 2],
      ['halted', 3],
    ]);
  });

  it('of a node above is ordered by its epoch: what comes late or twice changes nothing', () => {
    const driver = atCall();
    const org = { level: 'org' as const };
    driver.halt('breach', { ...org, epoch: 7 });
    const { length } = driver.rows;
    expect(driver.halt('breach', { ...org, epoch: 7 }).ok).toBe(true);
    expect(driver.clearHalt({ ...org, epoch: 6 }).ok).toBe(true);
    expect(driver.clearHalt({ ...org, epoch: 7 }).ok).toBe(true);
    expect(driver.rows).toHaveLength(length);
    expect(haltOf(driver.plan)).toMatchObject({ level: 'org', epoch: 7 });
    driver.clearHalt({ ...org, epoch: 8 });
    expect(driver.halt('old news', { ...org, epoch: 7 }).ok).toBe(true);
    expect(haltOf(driver.plan)).toBeNull();
  });

  it('that is cleared before it was ever heard of as set is remembered, so that the setting comes too late', () => {
    const driver = atCall();
    driver.clearHalt({ level: 'session', epoch: 2 });
    driver.halt('late', { level: 'session', epoch: 1 });
    expect(haltOf(driver.plan)).toBeNull();
    driver.halt('now', { level: 'session', epoch: 3 });
    expect(haltOf(driver.plan)?.reason).toBe('now');
  });

  it('of every level has to be cleared before the plan goes on; the highest is named', () => {
    const driver = atCall();
    driver.halt('mine');
    driver.halt('theirs', { level: 'session', epoch: 1 });
    driver.halt('ours', { level: 'org', epoch: 1 });
    expect(haltOf(driver.plan)?.level).toBe('org');
    driver.clearHalt({ level: 'org', epoch: 2 });
    driver.clearHalt();
    expect(refusalOf(driver.execute()).message).toContain('the session is halted: theirs');
    driver.clearHalt({ level: 'session', epoch: 2 });
    driver.run();
    expect(driver.at).toBe('apply/applied (end)');
  });

  it('needs a reason, and above an ended plan there is nothing to do', () => {
    const driver = atCall();
    expect(refusalOf(driver.halt('  ')).kind).toBe('invalid');
    driver.cancel();
    const { length } = driver.rows;
    expect(driver.halt('breach', { level: 'org', epoch: 1 }).ok).toBe(true);
    expect(driver.clearHalt({ level: 'org', epoch: 2 }).ok).toBe(true);
    expect(driver.rows).toHaveLength(length);
  });
});
