/** A checkpoint comes with the row that authorises a write, or the write is not authorised where one is required. */
import { describe, expect, it } from 'vitest';
import { MAX_CHECKPOINTS } from '../../../src/core/plan/checkpoint.ts';
import { replay } from '../../../src/core/plan/evolve.ts';
import { DEFAULT_SANDBOX } from '../../../src/core/sandbox.ts';
import { call, failed, type Move, PlanDriver, profileOf, succeeded, takenBy, writeOf } from './plan-driver.ts';

const OFF = { ...DEFAULT_SANDBOX, checkpointsEnabled: false };
const REQUIRED = profileOf('full-auto', { name: 'careful', safety: { require_checkpoints: true } });
const WRITE = call('files.write', { path: 'a.txt' });
const each = (...calls: readonly ReturnType<typeof call>[]): readonly Move[] => calls.map((one) => ({ calls: [one] }));
const bodies = (driver: PlanDriver) => driver.rowsOf('call_decided').map(({ data }) => data.checkpoint ?? data.checkpoint_id ?? null);

describe('a checkpoint', () => {
  it('is in the row that authorises a write: the files, the place of the actor and the counters before it', () => {
    const driver = PlanDriver.run({}, { strategize: [{ decide: 'how?' }], execute: each(call('model.ask'), WRITE, WRITE) });
    expect(driver.plan.state).toBe('applied');
    const { id, project } = driver.plan;
    const rows = driver.rowsOf('call_decided');
    expect(rows.map(({ data }) => [data.call.tool, data.checkpoint?.id ?? null, data.checkpoint_id ?? null])).toEqual([
      ['model.ask', null, null],
      ['files.write', `${id}.k1`, `${id}.k1`],
      ['files.write', `${id}.k2`, `${id}.k2`],
    ]);
    const [first, second] = driver.plan.checkpoints;
    // Reading changed nothing here, so the model's answer is a change of its own file in this script.
    expect(first).toMatchObject({
      id: `${id}.k1`,
      seq: rows[1]?.seq,
      at: rows[1]?.at,
      phase: 'execute',
      cursor: { inline: 1 },
      decision: `${id}.d2`,
      counters: { attempt: 1, step: 2, callsInStep: 0, callsInInvocation: 1, decisions: 2, results: 1, spentMicroUsd: 100_000 },
      call: 'c2',
      reason: 'before files.write (c2)',
    });
    expect(new Set([project?.base, first?.tree, second?.tree]).size).toBe(3);
    expect(second?.tree).not.toBe(driver.plan.tree);
    expect(replay(driver.rows)).toEqual(driver.plan);
  });

  it('of a plan that has changed nothing yet is the tree that it started from', () => {
    expect(PlanDriver.run({}, { execute: each(WRITE) }).plan.checkpoints[0]?.tree).toBe(PlanDriver.make().plan.project?.base);
    const { plan } = PlanDriver.run({ project: null }, { execute: each(WRITE) });
    expect(plan.checkpoints[0]?.tree).toMatch(/^[0-9a-f]{64}$/);
  });

  it('is one for all writes that are authorised together, and a new one for what is authorised after them', () => {
    const driver = PlanDriver.run(
      { guardrails: { max_tool_calls_per_step: 3 } },
      { execute: [{ calls: [WRITE, WRITE, call('files.read'), WRITE] }] },
    );
    const { id } = driver.plan;
    expect(bodies(driver)).toMatchObject([{ id: `${id}.k1` }, `${id}.k1`, null, null]);
    driver.approve(driver.only, { grant: { calls: 1 } });
    driver.run();
    expect(bodies(driver).at(-1)).toMatchObject({ id: `${id}.k2`, reason: 'before files.write (c4)' });
    expect(driver.plan.state).toBe('applied');
  });

  it('of a repeat is a new one, and says which attempt it is before', () => {
    const driver = PlanDriver.run(
      {},
      { execute: each(WRITE), outcome: ({ attempt }) => (attempt === 1 ? failed({ transient: true }) : succeeded()) },
    );
    expect(driver.plan.checkpoints.map(({ reason }) => reason)).toEqual(['before files.write (c1)', 'before files.write (c1, attempt 2)']);
  });

  it('without a sandbox is the head that the write was made for', () => {
    const driver = PlanDriver.make({ sandbox: { ...DEFAULT_SANDBOX, strategy: 'none' } }, { execute: each(WRITE, WRITE) });
    driver.run({ ...driver.script, outcome: () => null });
    const made = { ...succeeded(), changes: [['a.txt', { kind: 'delete' }]] } as unknown as Parameters<typeof writeOf>[0];
    driver.do({ type: 'mark_sent', callId: 'c1', attempt: 1, write: { ...writeOf(made, driver.plan), head: 'e'.repeat(64) } });
    expect(driver.plan.checkpoints).toMatchObject([{ tree: 'e'.repeat(64), call: 'c1' }]);
    const taken = takenBy(driver.plan, 'c1');
    driver.settle('c1', taken);
    expect(driver.plan.tree).toBe(taken.status === 'written' ? taken.head : '');
  });

  it('is kept among the newest; those that were let go are counted', () => {
    const steps = Array.from({ length: MAX_CHECKPOINTS + 7 }, () => WRITE);
    const { plan } = PlanDriver.run({}, { execute: each(...steps) });
    expect(plan.checkpointsMade).toBe(MAX_CHECKPOINTS + 7);
    expect(plan.checkpoints.map(({ id }) => id)).toEqual(Array.from({ length: MAX_CHECKPOINTS }, (_, n) => `${plan.id}.k${n + 8}`));
  });
});

describe('a write that needs a checkpoint', () => {
  it('and cannot have one, since they are off, is refused for good and nothing runs', () => {
    const driver = PlanDriver.run({ sandbox: OFF, profile: REQUIRED }, { execute: each(call('files.read'), WRITE) });
    const refused = driver.rowsOf('call_decided').at(-1)?.data;
    expect(refused).toMatchObject({ allowed: false, guard: 'checkpoint', event_type: 'checkpoint_blocked', call: { status: 'refused' } });
    expect(refused?.reason).toMatch(/checkpoints are off in this plan .*Remediation: /);
    expect(driver.pending.filter(({ kind }) => kind === 'call')).toEqual([]);
    expect(driver.performed.map(({ tool }) => tool)).toEqual(['files.read']);
  });

  it('and cannot have one, since the files are not known, is refused', () => {
    const driver = PlanDriver.make({ profile: REQUIRED }, { execute: each(WRITE, WRITE) });
    driver.run({ ...driver.script, outcome: () => null });
    driver.settle('c1', succeeded({ changes: [['a.txt', { kind: 'delete' }]] }));
    driver.run();
    expect(driver.rowsOf('call_decided').at(-1)?.data).toMatchObject({ allowed: false, guard: 'checkpoint' });
  });

  it('is refused as soon as the floor of the org comes to require one', () => {
    const driver = PlanDriver.make({ sandbox: OFF }, { execute: each(WRITE, WRITE) });
    driver.run({ ...driver.script, outcome: () => null });
    driver.do({ type: 'apply_floor', by: { kind: 'human', id: 'admin' }, floor: { safety: { require_checkpoints: true } } });
    driver.settle('c1', succeeded());
    driver.run({ ...driver.script, outcome: () => succeeded() });
    expect(driver.rowsOf('call_decided').map(({ data }) => [data.allowed, data.guard])).toEqual([
      [true, null],
      [false, 'checkpoint'],
    ]);
  });

  it('and does not require one runs without, where they are off', () => {
    const { plan, rows } = PlanDriver.run({ sandbox: OFF }, { execute: each(WRITE) });
    expect(plan).toMatchObject({ state: 'applied', checkpoints: [], checkpointsMade: 0 });
    expect(JSON.stringify(rows)).not.toContain('checkpoint_id');
  });
});
