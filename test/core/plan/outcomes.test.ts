import { describe, expect, it } from 'vitest';
import { reservedMicroUsd, spentMicroUsd } from '../../../src/core/ledger.ts';
import { nextTask } from '../../../src/core/plan/next-task.ts';
import { call, failed, PlanDriver, refusalOf, type Script, succeeded } from './plan-driver.ts';

const TAKE: Script = { execute: [{ calls: [call('queue.take')] }], outcome: () => ({ status: 'unknown', reason: 'the line went dead' }) };
const DAY_MS = 86_400_000;

describe('a call of which nobody knows whether it happened', () => {
  const lost = (script = TAKE, options = {}): PlanDriver => PlanDriver.run(options, script);

  it('is asked about, with its money still held', () => {
    const driver = lost();
    expect(driver.only).toMatchObject({ kind: 'unknown_outcome', callIds: ['c1'], subject: { choices: ['done', 'failed', 'retry'] } });
    expect(reservedMicroUsd(driver.plan.ledger)).toBe(200_000);
    expect(driver.callStates()).toEqual(['unknown']);
  });

  it.each([
    { say: 'done', step: 'succeeded', at: 'apply/applied (end)', runs: 1, spent: 200_000 },
    { say: 'Failed.', step: 'failed', at: 'execute/errored', runs: 1, spent: 200_000 },
    { say: 'retry', step: 'succeeded', at: 'apply/applied (end)', runs: 2, spent: 400_000 },
  ])('ends as $step when a human says $say', ({ say, step, at, runs, spent }) => {
    const driver = lost();
    expect(driver.answer(driver.only.id, 'answer', { text: say }).ok).toBe(true);
    driver.run({ execute: TAKE.execute ?? [], outcome: () => succeeded() });
    expect(driver.plan.results.at(-1)?.status).toBe(step);
    expect(driver.at).toBe(at);
    expect(driver.performed).toHaveLength(runs);
    expect(spentMicroUsd(driver.plan.ledger)).toBe(spent);
    expect(driver.plan.ledger.reservations).toEqual([]);
  });

  it('takes one of the three choices and nothing that could be misread', () => {
    const driver = lost();
    expect(refusalOf(driver.approve()).kind).toBe('invalid');
    expect(refusalOf(driver.answer(driver.only.id, 'answer', { text: 'maybe' })).message).toContain('done, failed, retry');
    driver.say('done');
    expect(driver.callStates()).toEqual(['unknown']);
    driver.deny();
    expect(driver.callStates()).toEqual(['failed']);
  });

  it('is settled by its outcome when that comes after all; the question is closed', () => {
    const driver = lost();
    const approval = driver.only;
    expect(driver.settle('c1', succeeded({ reportedUsd: 0.15 })).ok).toBe(true);
    expect(driver.plan.approvals.find(({ id }) => id === approval.id)?.status).toBe('revoked');
    expect(driver.at).toBe('execute/running');
    expect(spentMicroUsd(driver.plan.ledger)).toBe(150_000);
    expect(refusalOf(driver.answer(approval.id, 'answer', { text: 'retry' })).kind).toBe('invalid_state');
  });

  it('is asked about again when the question expired, whatever the next step', () => {
    for (const text of ['retry', 'carry on without it']) {
      const driver = lost();
      driver.wait(7 * DAY_MS).run();
      driver.answer(driver.only.id, 'answer', { text });
      expect(driver.only.kind).toBe('unknown_outcome');
    }
  });

  it('is charged in full when the plan is cancelled before anybody knows', () => {
    const driver = lost();
    driver.cancel();
    expect(driver.plan.ledger).toMatchObject({ settledMicroUsd: 200_000, reservations: [] });
    expect(driver.rowsOf('call_settled').at(-1)?.data).toMatchObject({ outcome: 'failed', charge: { marks: ['estimated'] } });
  });

  it('fails an unattended plan, charged in full', () => {
    const driver = lost(TAKE, { profile: 'ci' });
    expect(driver.at).toBe('execute/errored (end)');
    expect(driver.plan.ledger).toMatchObject({ settledMicroUsd: 200_000, reservations: [] });
  });
});

describe('a result that comes after the end', () => {
  const open = (script: Script): PlanDriver => PlanDriver.run({}, { ...script, outcome: () => null });

  it('of a call that was sent counts as cost only, once', () => {
    const driver = open(TAKE);
    driver.cancel();
    expect(reservedMicroUsd(driver.plan.ledger), 'held until the outcome is known').toBe(200_000);
    const late = succeeded({ reportedUsd: 0.12, changes: [['x', { kind: 'delete' }]] });
    expect(driver.settle('c1', late).ok).toBe(true);
    expect(driver.plan).toMatchObject({ state: 'cancelled', changes: [], ledger: { settledMicroUsd: 120_000, reservations: [] } });
    expect(driver.rows.at(-1)).toMatchObject({ type: 'call_settled', data: { late: true } });
    expect(driver.settle('c1', late).ok).toBe(false);
    expect(spentMicroUsd(driver.plan.ledger)).toBe(120_000);
  });

  it('costs nothing when it was never dispatched', () => {
    const driver = open(TAKE);
    driver.cancel();
    driver.settle('c1', failed({ dispatched: false }));
    expect(driver.plan.ledger).toMatchObject({ settledMicroUsd: 0, overrunMicroUsd: 0, reservations: [] });
  });

  it('that never comes is charged in full when the plan is looked at again', () => {
    const driver = open(TAKE);
    driver.cancel();
    expect(nextTask(driver.plan, driver.nowMs)).toEqual({ kind: 'tick' });
    driver.run();
    expect(driver.plan.ledger).toMatchObject({ settledMicroUsd: 200_000, reservations: [] });
    expect(nextTask(driver.plan, driver.nowMs)).toEqual({ kind: 'sleep', atMs: null });
    expect(driver.at).toBe('execute/cancelled (end)');
  });

  it('of a call that was not sent yet: its money is free at the end, and paid if it ran all the same', () => {
    const driver = open({ execute: [{ calls: [call('model.ask')] }] });
    expect(reservedMicroUsd(driver.plan.ledger)).toBe(100_000);
    driver.cancel();
    expect(reservedMicroUsd(driver.plan.ledger)).toBe(0);
    expect(driver.settle('c1', succeeded({ reportedUsd: 0.07 })).ok).toBe(true);
    expect(spentMicroUsd(driver.plan.ledger)).toBe(70_000);
    expect(driver.settle('c1', succeeded({ reportedUsd: 0.07 })).ok).toBe(false);
  });

  it('cannot be sent any more', () => {
    const driver = open({ execute: [{ calls: [call('model.ask')] }] });
    driver.cancel();
    expect(driver.do({ type: 'mark_sent', callId: 'c1', attempt: 1 }).ok).toBe(false);
  });
});

describe('settling', () => {
  it('is for the attempt that is open, once', () => {
    const driver = PlanDriver.run({}, { execute: [{ calls: [call('model.ask')] }], outcome: () => null });
    expect(driver.settle('c1', succeeded(), 2).ok).toBe(false);
    expect(driver.settle('c9', succeeded()).ok).toBe(false);
    expect(driver.settle('c1', succeeded()).ok).toBe(true);
    expect(driver.settle('c1', succeeded()).ok).toBe(false);
    expect(spentMicroUsd(driver.plan.ledger)).toBe(100_000);
  });

  it('of a refused call is not possible', () => {
    const driver = PlanDriver.run({ guardrails: { tool_denylist: ['model.ask'] } }, { execute: [{ calls: [call('model.ask')] }] });
    expect(driver.settle('c1', succeeded()).ok).toBe(false);
    expect(driver.do({ type: 'mark_sent', callId: 'c1', attempt: 1 }).ok).toBe(false);
    driver.deny();
    expect(driver.settle('c1', succeeded()).ok).toBe(false);
  });

  it('marks as sent once', () => {
    const driver = PlanDriver.run({}, { ...TAKE, outcome: () => null });
    expect(driver.callStates()).toEqual(['sent']);
    expect(driver.do({ type: 'mark_sent', callId: 'c1', attempt: 1 }).ok).toBe(false);
    expect(nextTask(driver.plan, driver.nowMs)).toMatchObject({ kind: 'perform', call: { id: 'c1', status: 'sent' } });
  });
});

describe('a proposal', () => {
  it('that was asked for before the plan moved on is refused', () => {
    const driver = PlanDriver.make({}, {});
    const basis = { attempt: driver.plan.attempt, cursor: driver.plan.cursor, phase: driver.plan.phase };
    const propose = (rest: object) =>
      driver.do({ type: 'propose', proposal: { kind: 'done' }, actorName: 'a', basis: { ...basis, ...rest }, guidanceSeen: 0, facts: [] });
    for (const rest of [{ attempt: 2 }, { cursor: 1 }, { phase: 'execute' }]) expect(propose(rest).ok).toBe(false);
    expect(propose({}).ok).toBe(true);
    expect(propose({}).ok, 'the same again').toBe(false);
  });

  it('is not taken while calls of the last one are open', () => {
    const driver = PlanDriver.run({}, { execute: [{ calls: [call('files.write')] }], outcome: () => null });
    const { attempt, cursor, phase } = driver.plan;
    const propose = () =>
      driver.do({
        type: 'propose',
        proposal: { kind: 'done' },
        actorName: 'a',
        basis: { attempt, cursor, phase },
        guidanceSeen: 0,
        facts: [],
      });
    expect(propose().ok).toBe(false);
    driver.settle('c1', succeeded());
    expect(propose().ok).toBe(true);
  });

  it('is not taken while the plan is applied', () => {
    const driver = PlanDriver.make({}, { execute: [{ calls: [call('files.write')] }] });
    while (driver.at !== 'apply/running' && driver.turn()) {}
    const { attempt, cursor, phase } = driver.plan;
    expect(
      driver.do({
        type: 'propose',
        proposal: { kind: 'done' },
        actorName: 'a',
        basis: { attempt, cursor, phase },
        guidanceSeen: 0,
        facts: [],
      }).ok,
    ).toBe(false);
    expect(driver.at).toBe('apply/running');
  });
});
