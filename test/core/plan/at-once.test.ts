/** Writes that go to the project at once: how they are decided, recorded and accounted for. The engine's part is in test/objects. */
import { describe, expect, it } from 'vitest';
import { MAX_SEEN, type PathChange, withSeen, writesAtOnce } from '../../../src/core/plan/at-once.ts';
import type { SettleOutcome } from '../../../src/core/plan/commands.ts';
import { valuesOfRow } from '../../../src/core/plan/values-of-row.ts';
import { DEFAULT_SANDBOX } from '../../../src/core/sandbox.ts';
import { call, failed, type Move, OPEN, PlanDriver, profileOf, refusalOf, succeeded, takenBy, writeOf } from './plan-driver.ts';

const NONE = { ...DEFAULT_SANDBOX, strategy: 'none' } as const;
const WRITE = call('files.write', { path: 'a.txt' });
const MADE: SettleOutcome & { status: 'succeeded' } = {
  ...(succeeded() as SettleOutcome & { status: 'succeeded' }),
  changes: [['a.txt', { kind: 'write', mode: '100644', blob: 'a'.repeat(64), sizeBytes: 1 }]],
};
const steps = (...calls: readonly ReturnType<typeof call>[]): readonly Move[] => calls.map((each) => ({ calls: [each] }));

/** A plan whose first call is authorised and not begun. */
function atFirstCall(options: Parameters<typeof PlanDriver.make>[0] = {}, ...calls: readonly ReturnType<typeof call>[]): PlanDriver {
  const driver = PlanDriver.make({ sandbox: NONE, ...options }, { execute: steps(...(calls.length === 0 ? [WRITE] : calls)) });
  return driver.run({ ...driver.script, outcome: () => null });
}

const send = (driver: PlanDriver, write = writeOf(MADE, driver.plan)) => driver.do({ type: 'mark_sent', callId: 'c1', attempt: 1, write });

describe('a write at once', () => {
  it.each([
    ['a project and the strategy none', { sandbox: NONE }, true],
    ['the strategy workspace', { sandbox: DEFAULT_SANDBOX }, false],
    ['nothing said of a sandbox', {}, false],
    ['no project', { sandbox: NONE, project: null }, false],
    ['an action that applies nothing', { sandbox: NONE, apply: 'none' }, false],
  ] as const)('with %s: %#', (_what, options, expected) => {
    expect(writesAtOnce(PlanDriver.make(options).plan)).toBe(expected);
  });

  it('is one to the outside that can be reverted; reading stays reading, and an unsafe tool unsafe', () => {
    const { plan } = atFirstCall({}, WRITE);
    expect(plan.calls['c1']).toMatchObject({ riskClass: 'external_write_revertible', scope: 'external', idempotent: true, atOnce: true });
    const read = atFirstCall({}, call('files.read')).plan.calls['c1'];
    expect(read).toMatchObject({ riskClass: 'read', scope: 'workspace' });
    expect(read?.atOnce).toBeUndefined();
    expect(atFirstCall({}, call('shell.run')).plan.calls['c1']).toMatchObject({ riskClass: 'unsafe', atOnce: true });
  });

  it('is refused where a sandbox is required, and no approval helps', () => {
    const profile = profileOf('full-auto', { name: 'boxed', safety: { require_sandbox: true } });
    const driver = atFirstCall({ profile });
    expect(driver.rowsOf('call_decided').at(-1)?.data).toMatchObject({ allowed: false, guard: 'sandbox', event_type: 'sandbox_blocked' });
    expect(driver.pending).toEqual([]);
  });

  it('is refused while the strategy is made', () => {
    const driver = PlanDriver.run({ sandbox: NONE }, { strategize: steps(WRITE) });
    expect(driver.rowsOf('call_decided')[0]?.data).toMatchObject({ allowed: false, guard: 'sandbox' });
    expect(driver.performed).toEqual([]);
  });

  it.each([
    [{ require_approval_for_apply: true }, 'require_approval_for_apply'],
    [{ require_approval_for_writes: true }, 'require_approval_for_writes'],
  ])('asks under %j', (guardrails, named) => {
    const [approval] = atFirstCall({ guardrails }).pending;
    expect(approval).toMatchObject({ kind: 'call', guard: 'write_approval' });
    expect(approval?.reason).toContain(named);
  });

  it('in a workspace is asked about when it is applied, and not before', () => {
    const driver = PlanDriver.run({ guardrails: { require_approval_for_apply: true } }, { execute: steps(WRITE) });
    expect(driver.pending).toMatchObject([{ gate: 'select_tool' }]);
  });

  it('after content from outside asks, and says where it would go', () => {
    const driver = PlanDriver.run(
      { sandbox: NONE },
      { execute: steps(call('web.get'), WRITE), outcome: () => succeeded({ taint: 'web' }) },
    );
    expect(driver.pending).toMatchObject([{ kind: 'call', guard: 'taint' }]);
    expect(driver.pending[0]?.reason).toContain('would be in the project at once');
  });

  it('counts for the gate with the risk of its class', () => {
    const profile = profileOf('full-auto', { name: 'careful', execute_command: 0.75 });
    expect(atFirstCall({ profile }).pending).toMatchObject([
      { gate: 'execute_command', confidence: { value: 0.7, components: { risk: 0.5 } } },
    ]);
    expect(PlanDriver.run({ profile }, { execute: steps(WRITE) }).pending).toEqual([]);
  });
});

describe('the record of a write', () => {
  it('holds all that is sent, and is settled by what the project then has', () => {
    const driver = atFirstCall();
    expect(send(driver).ok).toBe(true);
    const { write } = driver.plan.calls['c1'] ?? {};
    expect(write).toMatchObject({ commitId: `${driver.plan.id}.c1`, head: driver.plan.project?.base, changes: MADE.changes });
    const taken = takenBy(driver.plan, 'c1');
    expect(driver.settle('c1', taken).ok).toBe(true);
    expect(driver.plan.calls['c1']).toMatchObject({ status: 'succeeded', result: { inline: { done: true } } });
    expect(driver.plan.calls['c1']?.write).toBeUndefined();
    expect(driver.plan).toMatchObject({
      changes: MADE.changes,
      writtenAtOnce: { writes: 1, head: taken.status === 'written' ? taken.head : '', before: [['a.txt', { kind: 'delete' }]] },
    });
    const sent = driver.rowsOf('call_sent')[0];
    expect(sent === undefined ? [] : valuesOfRow(sent)).toEqual(['a'.repeat(64)]);
  });

  it('may be made anew for another head while nothing is done, under the same key', () => {
    const driver = atFirstCall();
    send(driver);
    expect(send(driver, { ...writeOf(MADE, driver.plan), head: 'e'.repeat(64) }).ok).toBe(true);
    expect(driver.plan.calls['c1']?.write).toMatchObject({ commitId: `${driver.plan.id}.c1`, head: 'e'.repeat(64) });
    expect(driver.rowsOf('call_sent')).toHaveLength(2);
  });

  it('is needed: nothing is sent or said to be written without one', () => {
    const driver = atFirstCall();
    expect(refusalOf(driver.do({ type: 'mark_sent', callId: 'c1', attempt: 1 })).kind).toBe('invalid_state');
    expect(refusalOf(driver.settle('c1', MADE)).kind).toBe('invalid_state');
    expect(refusalOf(driver.settle('c1', { status: 'written', head: 'x', previous: 'y', changes: [], before: [] })).kind).toBe(
      'invalid_state',
    );
    expect(driver.plan.calls['c1']?.status).toBe('authorised');
  });

  it('is not made for a call that stays in the workspace', () => {
    const driver = PlanDriver.make({}, { execute: steps(WRITE) });
    driver.run({ ...driver.script, outcome: () => null });
    expect(refusalOf(send(driver)).kind).toBe('invalid_state');
  });

  it('gives its money back when the project did not take it', () => {
    const driver = atFirstCall({}, call('files.write', { path: 'a.txt' }, { declaredCostUsd: 0.5 }));
    send(driver);
    expect(driver.plan.ledger.reservations).toHaveLength(1);
    driver.settle('c1', failed({ dispatched: false, message: 'conflict' }));
    expect(driver.plan.ledger).toMatchObject({ reservations: [], settledMicroUsd: 0 });
    expect(driver.plan.calls['c1']).toMatchObject({ status: 'failed' });
  });

  it('is not repeated once the plan is halted or has ended, and what it did is told all the same', () => {
    const halted = atFirstCall();
    halted.halt();
    expect(refusalOf(send(halted)).message).toContain('halted');
    const driver = atFirstCall();
    send(driver);
    const taken = takenBy(driver.plan, 'c1');
    driver.cancel('enough');
    expect(refusalOf(send(driver)).kind).toBe('invalid_state');
    expect(driver.settle('c1', taken).ok).toBe(true);
    expect(driver.plan).toMatchObject({ state: 'cancelled', terminal: true, writtenAtOnce: { writes: 1 }, changes: MADE.changes });
    expect(driver.rowsOf('call_settled').at(-1)?.data).toMatchObject({ late: true, outcome: 'succeeded' });
    expect(driver.settle('c1', taken).ok).toBe(false);
  });

  it('a path keeps what was there before the plan first wrote to it', () => {
    const driver = PlanDriver.run({ sandbox: NONE, profile: OPEN }, { execute: steps(WRITE, WRITE), outcome: () => MADE, diff: emptyDiff });
    expect(driver.plan).toMatchObject({ state: 'applied', writtenAtOnce: { writes: 2, before: [['a.txt', { kind: 'delete' }]] } });
    const gate = driver.rowsOf('gate_decided').find(({ data }) => data.gate === 'select_tool');
    expect(gate?.data).toMatchObject({ via: 'empty_diff', outcome: 'proceed' });
    expect(gate?.data.reason).toContain('written to the project at once');
    const result = driver.plan.artifacts.find(({ artifactId }) => artifactId === 'result')?.parts[0];
    expect(result).toMatchObject({ inline: { data: { written_at_once: { writes: 2 }, files: [{ path: 'a.txt' }] } } });
    expect(driver.plan.artifacts.map(({ artifactId }) => artifactId)).toEqual(['result', 'changes.diff']);
  });
});

/** As the engine says it: what was written is in the project, so there is no difference to apply. */
const emptyDiff: NonNullable<PlanDriver['script']['diff']> = (plan) => {
  const head = plan.writtenAtOnce?.head ?? '';
  const files = plan.changes.map(([path]) => ({ path, status: 'added', additions: 1, deletions: 0 }));
  return { digest: 'd'.repeat(64), base: head, result: head, files, additions: 1, deletions: 0, patch: '+' };
};

describe('what a plan last knew of files', () => {
  const at = (path: string, blob: string): PathChange => [path, { kind: 'write', mode: '100644', blob, sizeBytes: 1 }];

  it('is the newest word of each, and the oldest go when there are too many', () => {
    expect(withSeen([at('a', '1'), at('b', '1')], [at('a', '2'), ['c', { kind: 'delete' }]])).toEqual([
      at('b', '1'),
      at('a', '2'),
      ['c', { kind: 'delete' }],
    ]);
    const many = Array.from({ length: MAX_SEEN }, (_, n) => at(`f${n}`, '1'));
    const kept = withSeen(many, [at('new', '1')]);
    expect(kept).toHaveLength(MAX_SEEN);
    expect([kept[0], kept.at(-1)]).toEqual([at('f1', '1'), at('new', '1')]);
  });

  it('is in the rows that say how calls ended, so that it follows from the log: what was read, and what was written after it', () => {
    const seen = [at('a.txt', 'b'.repeat(64))];
    const driver = atFirstCall({}, call('files.read'), WRITE);
    driver.do({ type: 'settle', callId: 'c1', attempt: 1, outcome: { ...(succeeded() as typeof MADE), seen } });
    expect(driver.plan.seen).toEqual(seen);
    driver.run({ ...driver.script, outcome: () => null });
    driver.do({ type: 'mark_sent', callId: 'c2', attempt: 1, write: writeOf(MADE, driver.plan) });
    driver.do({ type: 'settle', callId: 'c2', attempt: 1, outcome: takenBy(driver.plan, 'c2') });
    expect(driver.plan.seen).toEqual(MADE.changes);
  });
});
