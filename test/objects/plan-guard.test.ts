/** Guards of a running plan and the kill switch on real objects: what happens at the same instant, and what a running tool learns of it. */
import { runInDurableObject } from 'cloudflare:test';
import { describe, expect, it } from 'vitest';
import type { GuardChange } from '../../src/core/guard-revision.ts';
import type { Principal } from '../../src/core/principal.ts';
import {
  addKey,
  alarmOf,
  answer,
  approve,
  auditOf,
  callerOf,
  crash,
  evict,
  inTurns,
  isSettled,
  isTerminal,
  isWaiting,
  logOf,
  newOrg,
  onlyPending,
  pause,
  performed,
  planOf,
  rowsOf,
  startSteps,
  stateOf,
  stubOf,
  until,
} from './plan-support.ts';

const deny = (entry: string): GuardChange => ({ kind: 'add', list: 'denylist', entry });

async function revise(principal: Principal, planId: string, change: GuardChange) {
  const result = await planOf(principal, planId).command({ type: 'revise_guard', by: callerOf(principal), change });
  if (result === null) throw new Error('there is no such plan');
  return result;
}

async function halt(principal: Principal, planId: string, reason = 'stop') {
  const result = await planOf(principal, planId).command({
    type: 'halt',
    by: callerOf(principal).actor,
    level: 'plan',
    epoch: null,
    reason,
  });
  if (result === null) throw new Error('there is no such plan');
  return result;
}

async function clearHalt(principal: Principal, planId: string) {
  const result = await planOf(principal, planId).command({ type: 'clear_halt', by: callerOf(principal), level: 'plan', epoch: null });
  if (result === null) throw new Error('there is no such plan');
  return result;
}

const counter = (label: string, rest: object = {}) => ({ call: { tool: 'test/counter', arguments: { label, ...rest } } });
const runs = (count: number): readonly number[] => Array.from({ length: count }, (_, run) => run);

describe('a revision', () => {
  it('and an approval at the same instant: the approval holds under the policy it was given for, or not at all (40 runs)', async () => {
    const person = await newOrg();
    const counts = { before: 0, after: 0 };
    await inTurns(runs(40), 8, async (run) => {
      const label = `${person.org}.${run}`;
      const planId = await startSteps(person, [{ call: { tool: 'test/external_once', arguments: { label } } }], {
        profile: 'full-auto',
        guardrails: { required_confirmations: ['test/external_once'] },
      });
      const asked = onlyPending(await until(person, planId, isSettled));
      const both = [() => answer(person, planId, asked), () => revise(person, planId, deny('test/external_once'))] as const;
      const [approved] =
        run % 2 === 0 ? await Promise.all([both[0](), both[1]()]) : (await Promise.all([both[1](), both[0]()])).toReversed();
      const rested = await until(person, planId, isSettled);
      const decided = (await rowsOf(person, planId, 'call_decided')).filter((row) => row.data.allowed);
      const withdrawn = (await rowsOf(person, planId, 'guard_revised')).flatMap((row) => row.data.withdrawn);
      if (performed(label).length === 1) {
        // The call was on its way before the policy changed.
        expect(approved?.ok).toBe(true);
        expect(withdrawn).toEqual([]);
        expect(rested.plan.terminal).toBe(true);
        counts.before += 1;
      } else {
        expect(approved?.ok === true ? withdrawn : []).toEqual(approved?.ok === true ? ['c1'] : []);
        expect(onlyPending(rested)).toMatchObject({ kind: 'call', guard: 'denylist' });
        await approve(person, planId, onlyPending(rested));
        await until(person, planId, isTerminal);
        counts.after += 1;
      }
      expect(performed(label)).toHaveLength(1);
      expect(decided.every((row) => row.data.guards.every((verdict) => verdict.allowed))).toBe(true);
      const sent = (await logOf(person, planId)).findLastIndex((row) => row.type === 'call_sent');
      const log = (await logOf(person, planId)).slice(0, sent);
      const authorised = log.findLast((row) => row.type === 'call_decided' && row.data.allowed);
      const inForce = log.findLast((row) => row.type === 'guard_revised');
      if (authorised?.type !== 'call_decided') throw new Error('it was sent without a decision');
      expect(
        inForce === undefined || (inForce.type === 'guard_revised' && inForce.data.policy_digest === authorised.data.policy_digest),
      ).toBe(true);
    });
    expect(counts.after).toBeGreaterThan(5);
  }, 120_000);

  it('by twenty at once leaves twenty revisions, each on top of the one before', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [counter(person.org)], { profile: 'manual' });
    await until(person, planId, isWaiting);
    const made = await Promise.all(runs(20).map((run) => revise(person, planId, deny(`tool_${run}`))));
    expect(made.every((each) => each.ok)).toBe(true);
    const plan = await stateOf(person, planId);
    expect(plan.guards.revision).toBe(21);
    expect(new Set(plan.policy.denylist.map(({ pattern }) => pattern)).size).toBe(20);
    const rows = await rowsOf(person, planId, 'guard_revised');
    for (const [index, row] of rows.slice(1).entries()) expect(row.data.previous_digest).toBe(rows[index]?.data.policy_digest);
  });

  it('survives a crash and an eviction, and is in the trail of the database', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [counter(person.org)], { profile: 'manual' });
    await until(person, planId, isWaiting);
    await revise(person, planId, { kind: 'set', guardrails: { tool_budget: 1.5 } });
    await crash(person, planId);
    expect((await stateOf(person, planId)).policy.planCapMicroUsd).toMatchObject({ value: 1_500_000, origin: 'revision' });
    await evict(person, planId);
    expect((await stateOf(person, planId)).guards).toMatchObject({ revision: 2, own: { tool_budget: 1.5 } });
    const trail = await auditOf(person, planId);
    expect(trail.find((row) => row.eventType === 'guard_revised')).toMatchObject({
      actorId: person.keyId,
      context: { revision: 2, change: { guardrails: { tool_budget: 1.5 } } },
    });
  });

  it('by an agent tightens; its attempt to give back is refused and kept', async () => {
    const person = await newOrg();
    const agent = await addKey(person.org, 'agent');
    const planId = await startSteps(person, [counter(person.org)], { profile: 'manual' });
    await until(person, planId, isWaiting);
    expect((await revise(agent, planId, deny('test/counter'))).ok).toBe(true);
    const back = await revise(agent, planId, { kind: 'remove', list: 'denylist', entry: 'test/counter' });
    expect(back).toMatchObject({ ok: false, error: { kind: 'forbidden' } });
    expect(await rowsOf(person, planId, 'guard_revision_refused')).toHaveLength(1);
  });
});

describe('the kill switch', () => {
  it('and the start of a tool at the same instant: what is not on its way when it is recorded does not begin (40 runs)', async () => {
    const person = await newOrg();
    const STEPS = 6;
    let stopped = 0;
    await inTurns(runs(40), 2, async (run) => {
      const label = `${person.org}.${run}`;
      const tool = run % 3 === 0 ? 'test/external_once' : 'test/slow';
      const slow = runs(STEPS).map(() => ({ call: { tool, arguments: { label, ms: 25 } } }));
      const planId = await startSteps(person, [counter('none'), ...slow], {
        profile: 'full-auto',
        guardrails: { required_confirmations: ['test/counter'] },
      });
      const asked = onlyPending(await until(person, planId, isWaiting));
      const going = answer(person, planId, asked);
      await pause((run % 10) * 15);
      const done = await halt(person, planId);
      await going;
      if (!done.ok) {
        expect(done.error).toMatchObject({ kind: 'invalid_state', details: { state: 'applied' } });
        return;
      }
      const begun = performed(label).length;
      await pause(40);
      expect(performed(label), 'nothing begins after the answer').toHaveLength(begun);
      const log = await logOf(person, planId);
      const at = log.findIndex((row) => row.type === 'halted');
      expect(log.slice(at).filter((row) => row.type === 'call_sent' || (row.type === 'call_decided' && row.data.allowed))).toEqual([]);
      if (begun < STEPS) stopped += 1;
      expect((await clearHalt(person, planId)).ok).toBe(true);
      const rested = await until(person, planId, isSettled);
      if (tool === 'test/slow') expect(rested.plan.terminal).toBe(true);
      // What may have happened and cannot be repeated is asked about, never done twice.
      else if (!rested.plan.terminal) expect(onlyPending(rested).kind).toBe('unknown_outcome');
    });
    expect(stopped).toBeGreaterThan(10);
  }, 180_000);

  it('tells a running tool to stop; it is repeated when the plan goes on', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [{ call: { tool: 'test/slow', arguments: { label: person.org, ms: 20_000 } } }], {
      profile: 'full-auto',
    });
    await until(person, planId, () => performed(person.org).length === 1);
    const began = Date.now();
    await halt(person, planId, 'too slow');
    await until(person, planId, ({ plan }) => plan.ledger.reservations.length === 0);
    expect(Date.now() - began).toBeLessThan(5_000);
    const [settled] = await rowsOf(person, planId, 'call_settled');
    expect(settled?.data).toMatchObject({ outcome: 'retrying', error: { code: 'halted' } });
    expect(await alarmOf(person, planId), 'a halted plan sleeps').toBeNull();
    await clearHalt(person, planId);
    await until(person, planId, () => performed(person.org).length === 2);
    expect((await halt(person, planId)).ok, 'and it can be stopped again').toBe(true);
    await until(person, planId, ({ plan }) => plan.ledger.reservations.length === 0);
    expect(await rowsOf(person, planId, 'call_settled')).toHaveLength(2);
  });

  it('leaves what cannot be repeated to a human, who may say what became of it while the plan is halted', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [{ call: { tool: 'test/external_once', arguments: { label: person.org, ms: 20_000 } } }], {
      profile: 'full-auto',
    });
    await until(person, planId, () => performed(person.org).length === 1);
    await halt(person, planId);
    const asked = onlyPending(await until(person, planId, isWaiting));
    expect(asked.kind).toBe('unknown_outcome');
    expect((await answer(person, planId, asked, { decision: 'answer', text: 'done' })).ok).toBe(true);
    await pause(50);
    expect((await stateOf(person, planId)).terminal).toBe(false);
    await clearHalt(person, planId);
    await until(person, planId, isTerminal);
    expect(performed(person.org)).toHaveLength(1);
  });

  it('lets a tool that does not listen end, and counts what it did', async () => {
    const person = await newOrg();
    const planId = await startSteps(
      person,
      [{ call: { tool: 'test/deaf', arguments: { label: person.org, ms: 300, cost_usd: 0.3 } }, cost_usd: 0.3 }, counter(person.org)],
      { profile: 'full-auto' },
    );
    await until(person, planId, () => performed(person.org).length === 1);
    await halt(person, planId);
    const { plan } = await until(person, planId, (snapshot) => snapshot.plan.ledger.settledMicroUsd === 300_000);
    expect(plan.state).toBe('running');
    await pause(50);
    expect(performed(person.org)).toHaveLength(1);
    await clearHalt(person, planId);
    await until(person, planId, isTerminal);
    expect(performed(person.org)).toHaveLength(2);
  });

  it('stays set over a crash and an eviction, and whatever wakes the plan', async () => {
    const person = await newOrg();
    const planId = await startSteps(
      person,
      [{ call: { tool: 'test/deaf', arguments: { label: person.org, ms: 400 } } }, counter(person.org)],
      { profile: 'full-auto' },
    );
    await until(person, planId, () => performed(person.org).length === 1);
    await halt(person, planId);
    await crash(person, planId);
    await planOf(person, planId).wake();
    await evict(person, planId);
    await runInDurableObject(stubOf(person, planId), (object) => object.alarm());
    await pause(80);
    expect(performed(person.org)).toHaveLength(1);
    expect((await stateOf(person, planId)).halts).toMatchObject([{ level: 'plan', epoch: 1, reason: 'stop' }]);
    await clearHalt(person, planId);
    await until(person, planId, isTerminal);
  });

  it('takes no yes, and a call that is denied meanwhile does not run when the halt is cleared', async () => {
    const person = await newOrg();
    const planId = await startSteps(
      person,
      [counter(person.org), { call: { tool: 'test/external_write', arguments: { label: person.org } } }],
      { profile: 'full-auto', guardrails: { required_confirmations: ['test/counter'] } },
    );
    const asked = onlyPending(await until(person, planId, isWaiting));
    await halt(person, planId, 'look first');
    expect(await answer(person, planId, asked)).toMatchObject({
      ok: false,
      error: { kind: 'invalid_state', details: { halted: { reason: 'look first' } } },
    });
    await revise(person, planId, deny('test/external_write'));
    await clearHalt(person, planId);
    const again = onlyPending(await until(person, planId, isWaiting));
    expect(again.digest).not.toBe(asked.digest);
    await approve(person, planId, again);
    expect(onlyPending(await until(person, planId, (snapshot) => isWaiting(snapshot) && performed(person.org).length === 1))).toMatchObject(
      { guard: 'denylist' },
    );
  });
});
