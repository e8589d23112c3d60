import { runDurableObjectAlarm } from 'cloudflare:test';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { APPROVAL_TTL_MS, REMINDER_MS } from '../../src/core/plan/decide/open-approval.ts';
import type { Principal } from '../../src/core/principal.ts';
import {
  alarmOf,
  answer,
  callerOf,
  evict,
  expectSound,
  isSettled,
  isTerminal,
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

const DAY_MS = 24 * 3600 * 1000;

/** Objects share the clock of the test, which is moved; timers stay real. */
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now(), shouldAdvanceTime: false });
});
afterEach(() => {
  vi.useRealTimers();
});

function later(ms: number): void {
  vi.setSystemTime(Date.now() + ms);
}

async function ring(person: Principal, planId: string): Promise<void> {
  await runDurableObjectAlarm(stubOf(person, planId));
}

describe('time and a plan that waits', () => {
  it('reminds once a day before the approval expires, then closes it and asks how to go on; retry asks the same again', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [{ call: { tool: 'test/counter', arguments: { label: person.org } } }], {
      guardrails: { tool_denylist: ['test/counter'] },
    });
    const first = onlyPending(await waitingFor(person, planId));
    const opened = Date.parse(first.openedAt);
    await expect.poll(() => alarmOf(person, planId)).toBe(opened + APPROVAL_TTL_MS - REMINDER_MS);
    vi.setSystemTime(opened + APPROVAL_TTL_MS - REMINDER_MS);
    await evict(person, planId);
    await ring(person, planId);
    expect(await rowsOf(person, planId, 'approval_reminded')).toHaveLength(1);
    expect(await alarmOf(person, planId)).toBe(opened + APPROVAL_TTL_MS);
    later(DAY_MS / 2);
    await ring(person, planId);
    expect(await rowsOf(person, planId, 'approval_reminded')).toHaveLength(1);
    vi.setSystemTime(opened + APPROVAL_TTL_MS);
    await ring(person, planId);
    const expired = await waitingFor(person, planId);
    expect(expired.plan.approvals.find((each) => each.id === first.id)?.status).toBe('expired');
    const next = onlyPending(expired);
    expect(next.kind).toBe('next_step');
    expect(await alarmOf(person, planId)).toBeNull();
    expect(await answer(person, planId, first)).toMatchObject({ ok: false, error: { kind: 'invalid_state' } });
    expect((await answer(person, planId, next, { decision: 'answer', text: 'retry' })).ok).toBe(true);
    const second = onlyPending(await waitingFor(person, planId));
    expect(second).toMatchObject({ kind: 'call', guard: 'denylist' });
    expect(second.id).not.toBe(first.id);
    expect(performed(person.org)).toHaveLength(0);
    await expectSound(person, planId);
  });

  it('an answer that comes after the expiry, before the alarm, is refused', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [{ say: 'x' }], { profile: 'manual' });
    const gate = onlyPending(await waitingFor(person, planId));
    later(APPROVAL_TTL_MS + 1);
    expect(await answer(person, planId, gate)).toMatchObject({ ok: false, error: { kind: 'invalid_state' } });
    expect((await planOf(person, planId).command({ type: 'execute', by: callerOf(person), digest: gate.digest, head: null }))?.ok).toBe(
      false,
    );
    await ring(person, planId);
    expect(onlyPending(await waitingFor(person, planId)).kind).toBe('next_step');
  });

  it('an extension moves the alarm with the expiry', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [{ say: 'x' }], { profile: 'manual' });
    const gate = onlyPending(await waitingFor(person, planId));
    const expiresAt = new Date(Date.parse(gate.openedAt) + 30 * DAY_MS).toISOString();
    const extended = await planOf(person, planId).command({ type: 'extend', by: callerOf(person), approvalId: gate.id, expiresAt });
    expect(extended?.ok && onlyPending(extended.value).expiresAt).toBe(expiresAt);
    expect(await alarmOf(person, planId)).toBe(Date.parse(expiresAt) - REMINDER_MS);
  });

  it('the wall clock counts while the plan works and stands still while a human thinks, over several waits', async () => {
    const person = await newOrg();
    const steps = [
      { call: { tool: 'test/deaf', arguments: { label: person.org, ms: 700 } } },
      { ask: 'First?' },
      { call: { tool: 'test/deaf', arguments: { label: person.org, ms: 700 } } },
      { ask: 'Second?' },
      { call: { tool: 'test/deaf', arguments: { label: person.org, ms: 700 } } },
      { call: { tool: 'test/counter', arguments: { label: person.org } } },
    ];
    const planId = await startSteps(person, steps, { guardrails: { max_wall_clock_seconds: 60 } });
    const work = async (count: number, seconds: number) => {
      // The platform's alarms go by the real clock.
      const ringing = ring(person, planId);
      await until(person, planId, () => performed(person.org).length === count);
      later(seconds * 1000);
      await ringing;
      // An alarm works for ten seconds at most; the next one goes on.
      await ring(person, planId);
    };
    await work(1, 10);
    await waitingFor(person, planId);
    expect((await stateOf(person, planId)).workedMs).toBe(10_000);
    later(DAY_MS);
    await answer(person, planId, onlyPending(await waitingFor(person, planId)), { decision: 'answer', text: 'yes' });
    await work(2, 45);
    const second = onlyPending(await waitingFor(person, planId));
    expect((await stateOf(person, planId)).workedMs).toBe(55_000);
    later(3 * DAY_MS);
    await evict(person, planId);
    await answer(person, planId, second, { decision: 'answer', text: 'yes' });
    await work(3, 7);
    const limit = onlyPending(await waitingFor(person, planId));
    expect(limit).toMatchObject({ kind: 'limit', guard: 'wall_clock', suggestedGrant: { seconds: 60 } });
    expect(limit.reason).toContain('Wall-clock limit reached: 62s/60s');
    await answer(person, planId, limit);
    await ring(person, planId);
    await until(person, planId, isTerminal);
    expect(performed(person.org)).toHaveLength(4);
  });

  it('a clock that steps back moves nothing backwards', async () => {
    const person = await newOrg();
    const planId = await startSteps(person, [{ ask: 'Go?' }, { say: 'x' }]);
    const question = onlyPending(await waitingFor(person, planId));
    later(-3_600_000);
    await answer(person, planId, question, { decision: 'answer', text: 'yes' });
    later(3_700_000);
    await pause(20);
    await ring(person, planId);
    const done = await until(person, planId, isTerminal);
    expect(done.plan.workedMs).toBeGreaterThanOrEqual(0);
    const times = (await logOf(person, planId)).map((row) => row.at);
    expect(times).toEqual([...times].sort());
  });
});

const waitingFor = (person: Principal, planId: string) => until(person, planId, isSettled);
