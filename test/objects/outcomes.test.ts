// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are templates of script steps.
/**
 * What became of real plans, through real objects and D1: it feeds the confidence of the plans after them, and the calibration report
 * says of it what can be counted by hand in their logs.
 */
import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { ulid } from 'ulid';
import { afterEach, describe, expect, it } from 'vitest';
import type { ParamsInputOf, ResultOf } from '../../src/api/operations.ts';
import { findOperation } from '../../src/api/operations.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import type { LogRow } from '../../src/core/plan/events.ts';
import type { Principal } from '../../src/core/principal.ts';
import type { RiskClass } from '../../src/core/tool.ts';
import { PlanStore } from '../../src/objects/plan/plan-store.ts';
import { FAULTS } from '../worker/test-worker.ts';
import {
  addAction,
  addProject,
  answer,
  approve,
  cancel,
  evict,
  isSettled,
  isTerminal,
  logOf,
  newOrg,
  onlyPending,
  planOf,
  services,
  sha256,
  start,
  startSteps,
  stateOf,
  stubOf,
  until,
} from './plan-support.ts';

type Report = ResultOf<'_cleveragents/profile/calibration'>;

afterEach(() => FAULTS.d1.clear());

async function calibrationOf(principal: Principal, params: ParamsInputOf<'_cleveragents/profile/calibration'> = {}): Promise<Report> {
  const found = findOperation('_cleveragents/profile/calibration');
  if (found === null) throw new Error('there is no such operation');
  const answered = await dispatchOperation(found, params, { principal, idempotencyKey: null }, services);
  if (!answered.ok) throw new Error(answered.error.message);
  return answered.value as unknown as Report;
}

/** All that the plan has written so far is in D1. */
async function flushed(principal: Principal, planId: string): Promise<void> {
  await expect
    .poll(
      async () => {
        const [row, plan] = [await services.planIndex.get(principal.org, planId), await stateOf(principal, planId)];
        return row?.seq === plan.seq ? 'all' : `${row?.seq} of ${plan.seq}`;
      },
      { timeout: 15_000, interval: 5 },
    )
    .toBe('all');
}

async function settled(principal: Principal, planId: string): Promise<readonly LogRow[]> {
  await until(principal, planId, isSettled);
  await flushed(principal, planId);
  return logOf(principal, planId);
}

/** Sends everything to D1 once more, as after a crash before the cursor was moved. */
async function flushAgain(principal: Principal, planId: string, fromSeq = 0): Promise<void> {
  await runInDurableObject(stubOf(principal, planId), (_object, state) => new PlanStore(state.storage.sql).setFlushedSeq(fromSeq));
  // A command that is refused flushes what is owed.
  await cancel(principal, planId);
  const flushedSeq = await runInDurableObject(stubOf(principal, planId), (_object, state) => new PlanStore(state.storage.sql).flushedSeq());
  expect(flushedSeq).toBe((await stateOf(principal, planId)).seq);
}

const decisionsOf = (log: readonly LogRow[]) => log.flatMap((row) => (row.type === 'call_decided' ? [row.data.call] : []));
const gatesOf = (log: readonly LogRow[]) => log.flatMap((row) => (row.type === 'gate_decided' ? [row.data] : []));

const NOTHING = { n: 0, ok: 0, ok_share: null, mean_confidence: null, brier: null };

describe('a hundred plans', () => {
  it('teach the next one: success is (ok + 1) / (n + 2) of the last 50, and the report says what their logs say', {
    timeout: 240_000,
  }, async () => {
    const person = await newOrg();
    const project = await addProject(person, { 'docs/a.md': 'a', 'docs/b.md': 'b' });
    const actionName = await addAction(person, {
      name: 'look',
      arguments: { type: 'object', properties: { path: { type: 'string' } } },
      execute: [{ call: { tool: 'read_file', arguments: { path: '${args.path}' } } }],
      apply: 'none',
    });
    const happened: boolean[] = [];
    /** Written down by hand: class, confidence, and whether it went well. */
    const byHand: { readonly class: RiskClass; readonly confidence: number; readonly ok: boolean }[] = [];
    for (let run = 0; run < 100; run += 1) {
      // Begins badly, is good for long, ends mixed: so that what leaves the window of 50 matters.
      const goesWell = run < 20 ? run % 4 === 0 : run < 70 ? run % 10 !== 3 : run % 2 === 0;
      const path = goesWell ? 'docs/a.md' : run % 3 === 0 ? 'nowhere/x.md' : 'docs/missing.md';
      const made = await start(person, { actionName, project, automationProfile: 'auto', arguments: { path } });
      const log = await settled(person, made.plan.id);

      const last = happened.slice(-50);
      const ok = last.filter(Boolean).length;
      const [call] = decisionsOf(log);
      expect(call?.confidence?.components.success, `run ${run}`).toBe((ok + 1) / (last.length + 2));
      const gates = gatesOf(log);
      expect(gates.map(({ gate }) => gate)).toEqual(['decompose_task', 'create_tool']);
      for (const { confidence } of gates) {
        expect(confidence?.components).toMatchObject({ success: (ok + 1) / (last.length + 2), familiarity: Math.min(1, ok / 3) });
      }
      const { state, statistics } = await stateOf(person, made.plan.id);
      expect(statistics).toEqual({
        plans: { ok, total: last.length },
        calls: last.length === 0 ? {} : { read: { ok, total: last.length } },
      });
      expect(state).toBe(goesWell ? 'applied' : 'errored');
      happened.push(goesWell);
      byHand.push({ class: 'read', confidence: call?.confidence?.value ?? Number.NaN, ok: goesWell });
      for (const { gate, confidence } of gates) {
        byHand.push({ class: gate === 'create_tool' ? 'write' : 'read', confidence: confidence?.value ?? Number.NaN, ok: goesWell });
      }
    }
    expect(happened.filter(Boolean)).toHaveLength(5 + 45 + 15);

    const report = await calibrationOf(person);
    expect(byHand).toHaveLength(300);
    compare(report.overall, byHand);
    for (const score of report.classes)
      compare(
        score,
        byHand.filter((each) => each.class === score.class),
      );
    expect(report.classes.map((score) => [score.class, score.n])).toEqual([
      ...[
        ['read', 200],
        ['write', 100],
        ['external_read', 0],
      ],
      ...[
        ['external_write_revertible', 0],
        ['external_write', 0],
        ['unsafe', 0],
      ],
    ]);
    expect(await calibrationOf(person, { action: actionName, project, actor: 'scripted/steps' })).toEqual(report);
    const elsewhere = await addProject(person, {});
    for (const other of [{ project: elsewhere }, { actor: 'scripted/commands' }]) {
      expect((await calibrationOf(person, other)).overall).toMatchObject(NOTHING);
    }
    await expect(calibrationOf(person, { action: 'other' })).rejects.toThrow('Action not found');
  });

  /** Bands, shares and Brier score, counted in the plainest way. */
  function compare(score: Report['overall'], all: readonly { readonly confidence: number; readonly ok: boolean }[]): void {
    expect([score.n, score.ok]).toEqual([all.length, all.filter(({ ok }) => ok).length]);
    let squares = 0;
    for (const { confidence, ok } of all) squares += ok ? (1 - confidence) * (1 - confidence) : confidence * confidence;
    if (all.length === 0) expect(score).toMatchObject(NOTHING);
    else expect(score.brier).toBeCloseTo(squares / all.length, 6);
    expect(score.bands).toHaveLength(10);
    for (const [index, band] of score.bands.entries()) {
      // Confidences have six decimals, so that millionths tell bands apart exactly.
      const inside = all.filter(({ confidence }) => {
        const millionths = Math.round(confidence * 1e6);
        return millionths >= index * 100_000 && (millionths < (index + 1) * 100_000 || index === 9);
      });
      const went = inside.filter(({ ok }) => ok).length;
      expect([band.n, band.ok]).toEqual([inside.length, went]);
      if (inside.length === 0) expect([band.ok_share, band.mean_confidence]).toEqual([null, null]);
      else expect(band.ok_share).toBeCloseTo(went / inside.length, 6);
    }
  }
});

describe('under cautious', () => {
  it('the first new file in a known folder is asked about at .69, and after one good outcome the second is not', async () => {
    const person = await newOrg();
    const project = await addProject(person, { 'docs/a.md': 'a' });
    const actionName = await addAction(person, {
      name: 'write',
      arguments: { type: 'object', properties: { name: { type: 'string' } } },
      execute: [{ call: { tool: 'write_file', arguments: { path: 'docs/${args.name}', content: 'new' } } }],
    });
    const use = async (name: string) =>
      (await start(person, { actionName, project, automationProfile: 'cautious', arguments: { name } })).plan.id;

    const first = await use('first.md');
    const asked: (string | null)[] = [];
    for (let snapshot = await until(person, first, isSettled); !isTerminal(snapshot); snapshot = await until(person, first, isSettled)) {
      const approval = onlyPending(snapshot);
      asked.push(`${approval.gate} ${approval.confidence?.value}`);
      await approve(person, first, approval);
    }
    expect(asked).toEqual(['decompose_task 0.635', 'create_tool 0.59', 'execute_command 0.69', 'select_tool 0.5']);
    await flushed(person, first);
    // What the human said, and the call that he let run: four predictions, all of them right.
    expect((await calibrationOf(person)).overall).toMatchObject({ n: 4, ok: 4, mean_confidence: 0.60375 });

    const second = await use('second.md');
    const snapshot = await until(person, second, isSettled);
    expect(onlyPending(snapshot)).toMatchObject({ gate: 'select_tool', confidence: { value: 0.616666 } });
    const [call] = decisionsOf(await logOf(person, second));
    expect(call).toMatchObject({ status: 'authorised', confidence: { value: 0.74, components: { success: 2 / 3, familiarity: 0.5 } } });

    await answer(person, second, onlyPending(snapshot), { decision: 'deny', reason: 'not this one' });
    await cancel(person, second);
    await flushed(person, second);
    // Its gates passed by themselves and its end judges them; its call went well all the same.
    const { classes } = await calibrationOf(person);
    expect(classes.map((score) => [score.class, score.ok, score.n])).toEqual([
      ...[
        ['read', 1, 2],
        ['write', 3, 4],
        ['external_read', 0, 0],
      ],
      ...[
        ['external_write_revertible', 1, 2],
        ['external_write', 0, 0],
        ['unsafe', 0, 0],
      ],
    ]);
    const third = await stateOf(person, await use('third.md'));
    expect(third.statistics).toEqual({ plans: { ok: 1, total: 2 }, calls: { write: { ok: 2, total: 2 } } });
  });

  it('a plan that runs keeps the statistics that it began with', async () => {
    const person = await newOrg();
    const actionName = await addAction(person, {
      name: 'look',
      execute: [{ ask: 'now?' }, { call: { tool: 'test/counter' } }],
      apply: 'none',
    });
    const early = (await start(person, { actionName, automationProfile: 'auto' })).plan.id;
    await until(person, early, isSettled);
    const other = await startSteps(person, [{ call: { tool: 'test/counter' } }]);
    await settled(person, other);
    await answer(person, early, onlyPending(await until(person, early, isSettled)), { decision: 'answer', text: 'yes' });
    const [call] = decisionsOf(await settled(person, early));
    expect(call?.confidence?.components.success).toBe(0.5);
    expect((await stateOf(person, early)).statistics.calls).toEqual({});
    const late = await startSteps(person, [{ call: { tool: 'test/counter' } }]);
    expect((await stateOf(person, late)).statistics.calls).toEqual({ external_read: { ok: 2, total: 2 } });
  });
});

describe('the outbox', () => {
  const steps = [
    { call: { tool: 'test/counter' } },
    { call: { tool: 'test/fail_permanent' }, on_refused: 'continue' },
    { calls: [{ tool: 'test/counter' }, { tool: 'test/counter' }] },
    { call: { tool: 'test/fail_permanent' }, on_refused: 'continue' },
  ];
  const calls = { external_read: { ok: 3, total: 5 } };
  const statisticsOf = ({ org }: Principal, action = '') =>
    services.outcomes.statistics({ org, project: null, actor: 'scripted/steps', action });

  it('brings late what D1 did not take, though the plan has long gone on and its object was away', async () => {
    const person = await newOrg();
    FAULTS.d1.add(person.org);
    const planId = await startSteps(person, steps);
    await until(person, planId, isTerminal);
    expect((await statisticsOf(person)).calls).toEqual({});
    expect((await calibrationOf(person)).overall).toMatchObject(NOTHING);
    await evict(person, planId);
    FAULTS.d1.delete(person.org);
    await flushed(person, planId);
    expect((await statisticsOf(person)).calls).toEqual(calls);
    // Five calls and two gates.
    expect((await calibrationOf(person)).overall).toMatchObject({ n: 7, ok: 5 });
  });

  it('changes nothing when it brings everything again, from the beginning or from the middle', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, steps);
    await settled(person, planId);
    const actionName = (await stateOf(person, planId)).action.name;
    const before = [await statisticsOf(person, actionName), await calibrationOf(person)];
    expect(before[0]).toEqual({ plans: { ok: 1, total: 1 }, calls });
    for (const from of [0, 5, 0]) await flushAgain(person, planId, from);
    await evict(person, planId);
    await flushAgain(person, planId);
    expect([await statisticsOf(person, actionName), await calibrationOf(person)]).toEqual(before);
    const stored = await env.DB.prepare('SELECT count(*) AS n FROM outcomes WHERE org = ?1').bind(person.org).first<number>('n');
    expect(stored).toBe(7);
  });

  it('keeps the last word of a plan that was held up by a moved project and applied after all, though its first word comes again', async () => {
    const person = await newOrg();
    const project = await addProject(person, { 'a.md': 'a' });
    const write = { call: { tool: 'write_file', arguments: { path: 'b.md', content: 'b' } } };
    const planId = await startSteps(person, [write, { ask: 'Go on?' }], { project, apply: 'project' });
    const goOn = async () => {
      const asked = onlyPending(await until(person, planId, isSettled));
      expect((await answer(person, planId, asked, { decision: 'answer', text: 'yes' })).ok).toBe(true);
    };
    const asked = await until(person, planId, isSettled);
    const { action } = asked.plan;
    const plans = async () =>
      (await services.outcomes.statistics({ org: person.org, project, actor: action.actor, action: action.name })).plans;
    const port = services.projects.project(person.org, project);
    await port.putBlobs([{ digest: sha256('c'), bytes: new TextEncoder().encode('c') }]);
    await port.commit({
      ...{ commitId: ulid(), expectedHead: null, mode: 'patch', message: 'meanwhile', by: 'somebody' },
      changes: [{ path: 'c.md', entry: { mode: '100644', blob: sha256('c'), sizeBytes: 1 } }],
    });
    await goOn();
    await until(person, planId, (snapshot) => snapshot.plan.reversions === 1 && isSettled(snapshot));
    await flushed(person, planId);
    expect(await plans()).toEqual({ ok: 0, total: 1 });
    await goOn();
    expect((await until(person, planId, isTerminal)).plan.state).toBe('applied');
    await flushed(person, planId);
    expect(await plans()).toEqual({ ok: 1, total: 1 });
    const report = await calibrationOf(person);
    // Two writes that went well; the gates into Strategize, twice into Execute and Apply, and back, all judged by how the plan stands.
    expect(report.overall).toMatchObject({ n: 8, ok: 8 });
    const failedAt = (await logOf(person, planId)).find(({ type }) => type === 'apply_constrained')?.seq ?? 0;
    for (const from of [0, failedAt - 1]) await flushAgain(person, planId, from);
    expect(await plans()).toEqual({ ok: 1, total: 1 });
    expect(await calibrationOf(person)).toEqual(report);
  });
});

describe('the outcomes of another org', () => {
  it('never count, whatever they share by name', async () => {
    const [person, stranger] = [await newOrg(), await newOrg()];
    const document = { name: 'shared', execute: [{ call: { tool: 'test/counter' } }], apply: 'none' };
    const use = async (principal: Principal, sessionId: string) => {
      const { plan } = await start(principal, { actionName: 'shared', automationProfile: 'auto', sessionId });
      await settled(principal, plan.id);
      return stateOf(principal, plan.id);
    };
    for (const principal of [person, stranger]) await addAction(principal, document);
    for (let run = 0; run < 5; run += 1) await use(stranger, `s-${ulid()}`);
    const first = await use(person, 's-1');
    expect(first.statistics).toEqual({ plans: { ok: 0, total: 0 }, calls: {} });
    expect((await calibrationOf(person, { action: 'shared' })).overall).toMatchObject({ n: 3, ok: 3 });
    expect((await calibrationOf(stranger, { action: 'shared' })).overall).toMatchObject({ n: 15, ok: 15 });
    expect((await use(person, 's-2')).statistics).toEqual({ plans: { ok: 1, total: 1 }, calls: { external_read: { ok: 1, total: 1 } } });
    expect((await planOf(person, first.id).read())?.plan.statistics).toEqual(first.statistics);
  });

  it('an org without any gets a report of zeros', async () => {
    const report = await calibrationOf(await newOrg());
    expect(report.overall).toMatchObject(NOTHING);
    expect(report.classes.map(({ n, brier }) => [n, brier])).toEqual(Array.from({ length: 6 }, () => [0, null]));
    expect(report.overall.bands.every((band) => band.n === 0 && band.ok_share === null && band.mean_confidence === null)).toBe(true);
  });
});
