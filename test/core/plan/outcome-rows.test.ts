/** Which rows of a log are outcomes: of calls, of gates, of the plan. */
import { describe, expect, it } from 'vitest';
import { type CallDecision, type Outcome, outcomeOf } from '../../../src/core/plan/outcomes.ts';
import { AGENT, call, createCommand, failed, OPEN, PlanDriver, profileOf, type Script, succeeded } from './plan-driver.ts';

/** The outcomes of everything that happened, each row judged with the last state of the plan, as a late flush does it. */
function outcomesOf(driver: PlanDriver): readonly Outcome[] {
  const decisionOf = (callId: string, beforeSeq: number): CallDecision | null =>
    driver.rowsOf('call_decided').findLast((row) => row.seq < beforeSeq && row.data.call.id === callId) ?? null;
  return driver.rows.flatMap((row) => outcomeOf(driver.plan, row, decisionOf) ?? []);
}

const of = (driver: PlanDriver, kind: Outcome['kind']) => outcomesOf(driver).filter((each) => each.kind === kind);
const said = (driver: PlanDriver, kind: Outcome['kind']) => of(driver, kind).map(({ outcome }) => outcome);

const READ: Script = { execute: [{ calls: [call('files.read')] }] };

describe('calls', () => {
  it('that succeed or fail are outcomes, with the confidence, gate and threshold of their decision', () => {
    const driver = PlanDriver.run(
      { profile: profileOf('trusted') },
      {
        execute: [{ calls: [call('files.read'), call('files.write', {}, { statedConfidence: 0.5 })], onRefused: 'continue' }],
        outcome: ({ tool }) => (tool === 'files.read' ? succeeded() : failed()),
      },
    );
    const by = { kind: 'call', gate: 'execute_command', threshold: 0.3 };
    expect(of(driver, 'call')).toMatchObject([
      { ...by, riskClass: 'read', confidence: 0.835, outcome: 'ok' },
      { ...by, riskClass: 'write', confidence: 0.5, outcome: 'failed' },
    ]);
  });

  it('in Strategize belong to the gate of its decisions', () => {
    const driver = PlanDriver.run({ profile: OPEN }, { strategize: [{ calls: [call('files.read')] }] });
    expect(of(driver, 'call')).toMatchObject([{ gate: 'edit_code', threshold: 0, outcome: 'ok' }]);
  });

  it('count once, at their end: a retry is none', () => {
    const driver = PlanDriver.run({}, { ...READ, outcome: ({ attempt }) => (attempt < 3 ? failed({ transient: true }) : succeeded()) });
    expect(driver.performed).toHaveLength(3);
    expect(said(driver, 'call')).toEqual(['ok']);
    const broken = PlanDriver.run({}, { ...READ, outcome: () => failed({ transient: true }) });
    expect(said(broken, 'call')).toEqual([]);
    broken.deny();
    expect(said(broken, 'call')).toEqual(['failed']);
  });

  it('count as failed when an unattended plan may not repeat them', () => {
    const driver = PlanDriver.run({ profile: profileOf('ci') }, { ...READ, outcome: () => failed({ transient: true }) });
    expect(driver.at).toBe('execute/errored (end)');
    expect(said(driver, 'call')).toEqual(['failed']);
    expect(said(driver, 'plan')).toEqual(['failed']);
  });

  it.each([
    ['succeeded', 'ok'],
    ['failed', 'failed'],
    ['not_dispatched', null],
    [null, null],
  ] as const)('of an executor outside that says %s of one are %s', (told, outcome) => {
    const driver = new PlanDriver();
    driver.do({ ...createCommand({ profile: 'auto', project: null, apply: 'none' }), external: true });
    const by = AGENT.actor;
    const request = { toolName: 'own.tool', arguments: {}, isWrite: false, costUsd: 1, step: null, operation: null, idempotencyKey: null };
    driver.do({ type: 'authorize', by, request });
    if (told === null) driver.wait(2 * 3600 * 1000).do({ type: 'tick' });
    else driver.do({ type: 'settle_external', by, callId: 'c1', outcome: told, costUsd: null });
    expect(driver.rowsOf('call_settled')).toHaveLength(1);
    expect(said(driver, 'call')).toEqual(outcome === null ? [] : [outcome]);
    // What is told after the authorisation has expired is cost only.
    if (told === null) driver.do({ type: 'settle_external', by, callId: 'c1', outcome: 'failed', costUsd: null });
    expect(said(driver, 'call')).toEqual(outcome === null ? [] : [outcome]);
  });

  it('that never ran say nothing: denied by a guard, denied by a human', () => {
    const refused = PlanDriver.run({ profile: 'auto' }, { execute: [{ calls: [call('shell.run')] }] });
    expect(refused.callStates()).toEqual(['refused']);
    expect(said(refused, 'call')).toEqual([]);
    const denied = PlanDriver.run({ guardrails: { require_approval_for_writes: true } }, { execute: [{ calls: [call('files.write')] }] });
    denied.deny();
    expect(denied.callStates()).toEqual(['refused']);
    expect(said(denied, 'call')).toEqual([]);
  });

  it('of which nobody knows count when somebody says what became of them', () => {
    const lost: Script = {
      execute: [{ calls: [call('queue.take')] }],
      outcome: () => ({ status: 'unknown', reason: 'the line went dead' }),
    };
    const marked = PlanDriver.run({}, lost);
    expect(said(marked, 'call')).toEqual([]);
    marked.answer(marked.only.id, 'answer', { text: 'done' });
    expect(said(marked, 'call')).toEqual(['ok']);
    const given = PlanDriver.run({}, lost);
    given.cancel();
    expect(said(given, 'call')).toEqual(['failed']);
  });

  it('that end after their plan are cost only', () => {
    const driver = PlanDriver.run({}, { execute: [{ calls: [call('web.get')] }], outcome: () => null });
    driver.cancel();
    expect(driver.settle('c1', succeeded()).ok).toBe(true);
    expect(driver.rowsOf('call_settled')).toMatchObject([{ data: { outcome: 'succeeded', late: true } }]);
    expect(said(driver, 'call')).toEqual([]);
  });
});

describe('gates', () => {
  it('that confidence passed are left to the plan, with the class of the gate', () => {
    const driver = PlanDriver.run({ profile: profileOf('trusted') }, { ...READ, strategize: [{ decide: 'how?' }] });
    expect(of(driver, 'gate')).toMatchObject([
      { gate: 'decompose_task', riskClass: 'read', threshold: 0.3, confidence: 0.635, outcome: null },
      { gate: 'edit_code', riskClass: 'read', threshold: 0.3, confidence: 0.635, outcome: null },
      { gate: 'create_tool', riskClass: 'write', threshold: 0.3, confidence: 0.59, outcome: null },
      { gate: 'select_tool', riskClass: 'external_write_revertible', threshold: 0.3, confidence: 0.5, outcome: null },
    ]);
    expect(said(driver, 'plan')).toEqual(['ok']);
  });

  it('that a human answered are judged by the answer', () => {
    const driver = PlanDriver.run({ profile: 'manual' }, READ);
    driver.approve();
    driver.run();
    driver.deny();
    expect(of(driver, 'gate')).toMatchObject([
      { gate: 'decompose_task', riskClass: 'read', threshold: 1, confidence: 0.635, outcome: 'ok' },
      { gate: 'create_tool', riskClass: 'write', threshold: 1, confidence: 0.59, outcome: 'failed' },
    ]);
  });

  it('about calls are judged by the calls when a human lets them run, and by his no when he does not', () => {
    const batch: Script = { execute: [{ calls: [call('files.read'), call('pay.send')], onRefused: 'continue' }] };
    const careful = profileOf('full-auto', { execute_command: 1 });
    const approved = PlanDriver.run({ profile: careful }, batch);
    approved.approve();
    approved.run();
    const about = (driver: PlanDriver) => outcomesOf(driver).filter((each) => each.kind !== 'plan' && each.gate === 'execute_command');
    expect(about(approved)).toMatchObject([
      { kind: 'call', riskClass: 'read', outcome: 'ok' },
      { kind: 'call', riskClass: 'external_write', outcome: 'ok' },
    ]);
    const denied = PlanDriver.run({ profile: careful }, batch);
    denied.deny();
    expect(about(denied)).toMatchObject([{ kind: 'gate', riskClass: 'external_write', outcome: 'failed' }]);
  });

  it('that nobody answered, or that stopped an unattended plan, say nothing', () => {
    const expired = PlanDriver.run({ profile: 'manual' }, READ);
    expired.wait(8 * 86_400_000).run();
    expect(expired.rowsOf('approval_closed')).toHaveLength(1);
    expect(outcomesOf(expired)).toEqual([]);
    const stopped = PlanDriver.run({ profile: profileOf('ci', { decompose_task: 0.9 }) }, READ);
    expect(stopped.at).toBe('action/errored (end)');
    expect(outcomesOf(stopped)).toEqual([]);
  });
});

describe('plans', () => {
  it('are ok when applied, with a project and without', () => {
    expect(said(PlanDriver.run({}, READ), 'plan')).toEqual(['ok']);
    expect(said(PlanDriver.run({ apply: 'none' }, READ), 'plan')).toEqual(['ok']);
  });

  it('are failed when they fail, and ok after all when they go on and are applied', () => {
    let works = false;
    const driver = PlanDriver.run({}, { ...READ, outcome: () => (works ? succeeded() : failed()) });
    expect(driver.at).toBe('execute/errored');
    expect(said(driver, 'plan')).toEqual(['failed']);
    works = true;
    driver.execute();
    driver.run();
    expect(driver.at).toBe('apply/applied (end)');
    expect(said(driver, 'plan')).toEqual(['failed', 'ok']);
  });

  it('are failed while the project has moved under them', () => {
    const driver = PlanDriver.run(
      { profile: profileOf('full-auto', { access_network: 1 }) },
      { execute: [{ calls: [call('files.write')] }], apply: () => ({ status: 'moved', head: 'c'.repeat(64) }), head: 'c'.repeat(64) },
    );
    expect(driver.at).toBe('apply/waiting');
    expect(said(driver, 'plan')).toEqual(['failed']);
  });

  it.each([
    ['action', 'manual', {}, []],
    ['strategize', OPEN, { strategize: [{ ask: 'what?' }] }, []],
    ['execute', OPEN, { execute: [{ ask: 'what?' }] }, ['failed']],
    ['execute', 'supervised', { execute: [{ calls: [call('files.write')] }] }, ['failed']],
  ] as const)('that are cancelled in %s under %o', (phase, profile, script, outcome) => {
    const driver = PlanDriver.run({ profile }, script);
    expect(driver.plan.phase).toBe(phase);
    expect(driver.cancel().ok).toBe(true);
    expect(said(driver, 'plan')).toEqual(outcome);
  });

  it('before Execute fail by what their actor says, not by what policy forbids', () => {
    expect(said(PlanDriver.run({}, { strategize: [{ fail: 'no idea' }] }), 'plan')).toEqual(['failed']);
    const stopped = PlanDriver.run({ profile: profileOf('ci', { edit_code: 0.9 }) }, { strategize: [{ decide: 'how?' }] });
    expect(stopped.at).toBe('strategize/errored (end)');
    expect(said(stopped, 'plan')).toEqual([]);
    expect(outcomesOf(PlanDriver.make({ rejection: 'the org is halted' }))).toEqual([]);
  });
});
