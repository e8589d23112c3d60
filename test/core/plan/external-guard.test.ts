import { describe, expect, it } from 'vitest';
import { workedMs } from '../../../src/core/plan/decide/calls.ts';
import { decide } from '../../../src/core/plan/decide.ts';
import type { AuthorizationAnswer, CheckAnswer, CheckRequest } from '../../../src/core/plan/external/commands.ts';
import { NO_LIMIT_ABOVE } from '../../../src/core/plan/work.ts';
import { AGENT, CATALOGUE, createCommand, PlanDriver, type PlanOptions, sha256 } from './plan-driver.ts';

function open(options: PlanOptions = {}): PlanDriver {
  const driver = new PlanDriver();
  const made = driver.do({ ...createCommand({ profile: 'full-auto', project: null, apply: 'none', ...options }), external: true });
  if (!made.ok) throw new Error(made.error.message);
  return driver;
}

function ask(driver: PlanDriver, toolName = 'own.tool', idempotencyKey: string | null = null): AuthorizationAnswer {
  const request = { toolName, arguments: {}, isWrite: false, costUsd: 0.5, step: null, operation: null, idempotencyKey };
  const command = { type: 'authorize', by: AGENT.actor, request } as const;
  const { answer } = decide(driver.current, command, { now: driver.now, sha256, catalogue: CATALOGUE, money: NO_LIMIT_ABOVE });
  const done = driver.do(command);
  if (!done.ok || answer === undefined) throw new Error(done.ok ? 'no answer' : done.error.message);
  return answer as AuthorizationAnswer;
}

describe('a plan whose executor is outside', () => {
  it('is authorised nothing while it is halted, and again when it is not', () => {
    const driver = open();
    expect(ask(driver).allowed).toBe(true);
    driver.halt('breach', { level: 'org', epoch: 1 });
    expect(ask(driver, 'other.tool')).toMatchObject({ allowed: false, reason: expect.stringContaining('Halted: breach') });
    driver.clearHalt({ level: 'org', epoch: 2 });
    expect(ask(driver, 'third.tool').allowed).toBe(true);
  });

  it('has a clock that no question stops, since other calls are authorised meanwhile', () => {
    const driver = open({ guardrails: { max_wall_clock_seconds: 60, tool_denylist: ['forbidden.tool'] } });
    expect(ask(driver, 'forbidden.tool')).toMatchObject({ allowed: false, requiresApproval: true });
    expect(driver.plan.state).toBe('waiting');
    driver.wait(59_000);
    expect(ask(driver).allowed).toBe(true);
    driver.wait(2_000);
    expect(ask(driver, 'other.tool')).toMatchObject({
      allowed: false,
      reason: expect.stringContaining('Wall-clock limit reached: 61s/60s.'),
    });
    // Everything is refused from here on, so that what is granted is still there when a person comes to it.
    driver.wait(24 * 3600_000);
    expect(workedMs(driver.plan, driver.now)).toBe(61_000);
  });

  it('has a clock that stands while it is halted', () => {
    const driver = open();
    driver.wait(5_000);
    driver.halt('breach', { level: 'org', epoch: 1 });
    driver.wait(3600_000);
    driver.clearHalt({ level: 'org', epoch: 2 });
    driver.wait(5_000);
    expect(workedMs(driver.plan, driver.now)).toBe(10_000);
  });

  it('believes no charge above a million dollars: the estimate is charged, marked, and what was told is kept', () => {
    const driver = open();
    for (let times = 0; times < 12; times += 1) {
      const { callId } = ask(driver, `tool.n${times}`);
      if (callId === null) throw new Error('no call');
      expect(driver.do({ type: 'settle_external', by: AGENT.actor, callId, outcome: 'succeeded', costUsd: 1e9 }).ok).toBe(true);
    }
    expect(driver.plan.ledger).toMatchObject({ settledMicroUsd: 6_000_000, overrunMicroUsd: 0 });
    const last = driver.trail.filter(({ eventType }) => eventType === 'effect_settled').at(-1);
    expect(last?.context).toMatchObject({
      told: { cost_usd: 1e9 },
      charge: { reported: 1e9, charged_micro_usd: 500_000, marks: ['cost_error'] },
    });
  });

  it('keeps no money and no step of a check while it is halted; what only asks about a limit is answered as ever', () => {
    const driver = open({ guardrails: { tool_budget: 1, max_steps: 5 } });
    const check = (request: CheckRequest): CheckAnswer => {
      const command = { type: 'check', by: AGENT.actor, request } as const;
      const { answer } = decide(driver.current, command, { now: driver.now, sha256, catalogue: CATALOGUE, money: NO_LIMIT_ABOVE });
      expect(driver.do(command).ok).toBe(true);
      return answer as CheckAnswer;
    };
    const recording: readonly CheckRequest[] = [
      { check: 'tool_budget', costUsd: 0.5 },
      { check: 'step_limit', currentStep: 2 },
    ];
    const asking: readonly CheckRequest[] = [
      { check: 'budget_hierarchy', costUsd: 0.5 },
      { check: 'wall_clock' },
      { check: 'actor_tool_calls', currentCalls: 1 },
      { check: 'retries_per_failure', currentRetries: 0 },
    ];
    driver.halt('breach', { level: 'org', epoch: 1 });
    const { ledger, stepsUsed } = driver.plan;
    for (const request of recording) {
      expect(check(request)).toMatchObject({ allowed: false, reason: expect.stringContaining('Halted: breach') });
      expect(driver.trail.at(-1)).toMatchObject({ eventType: 'state_blocked', guardName: 'state', result: 'denied' });
    }
    for (const request of asking) expect(check(request), request.check).toMatchObject({ allowed: true });
    expect([driver.plan.ledger, driver.plan.stepsUsed]).toEqual([ledger, stepsUsed]);
    driver.clearHalt({ level: 'org', epoch: 2 });
    for (const request of recording) expect(check(request).allowed).toBe(true);
    expect([driver.plan.ledger.settledMicroUsd, driver.plan.stepsUsed]).toEqual([500_000, 2]);
    // The limit itself answers under its own name.
    expect(check({ check: 'tool_budget', costUsd: 0.6 })).toMatchObject({ allowed: false, exceededLevel: 'plan' });
    expect(driver.trail.at(-1)?.guardName).not.toBe('state');
  });

  it('is not told again that it may during a halt, and keeps what it was authorised for the time after it', () => {
    const driver = open();
    const allowed = ask(driver, 'own.tool', 'k1');
    expect(allowed).toMatchObject({ allowed: true, callId: 'c1' });
    const { reservations } = driver.plan.ledger;
    driver.halt('breach', { level: 'org', epoch: 1 });
    for (let time = 0; time < 2; time += 1) {
      expect(ask(driver, 'own.tool', 'k1')).toMatchObject({
        callId: 'c1',
        allowed: false,
        requiresApproval: false,
        reason: expect.stringContaining('Halted: breach'),
        guards: expect.arrayContaining([expect.objectContaining({ guard: 'state', allowed: false })]),
      });
    }
    expect(driver.rowsOf('check_recorded').map(({ data }) => data)).toMatchObject([
      { check: 'authorize', guard: 'state', event_type: 'state_blocked', allowed: false, context: { decision_id: `${driver.plan.id}.c1` } },
      { guard: 'state' },
    ]);
    expect(driver.plan.ledger.reservations).toEqual(reservations);
    driver.clearHalt({ level: 'org', epoch: 2 });
    expect(ask(driver, 'own.tool', 'k1')).toMatchObject({ callId: 'c1', allowed: true, expiresAt: allowed.expiresAt });
    expect(driver.rowsOf('call_decided')).toHaveLength(1);
    expect(driver.do({ type: 'settle_external', by: AGENT.actor, callId: 'c1', outcome: 'succeeded', costUsd: 0.5 }).ok).toBe(true);
    // What has been settled does not become allowed by a halt either.
    driver.halt('again', { level: 'org', epoch: 3 });
    expect(ask(driver, 'own.tool', 'k1').allowed).toBe(false);
  });

  it('has its approvals revoked with the policy they were asked under, and keeps what it was authorised: it may be doing it', () => {
    const driver = open({ guardrails: { tool_denylist: ['own.*'] } });
    const running = ask(driver, 'other.tool');
    expect(ask(driver).allowed).toBe(false);
    const asked = driver.only;
    driver.set({ tool_budget: 3 });
    expect(driver.pending).toEqual([]);
    expect(driver.rowsOf('guard_revised')[0]?.data.withdrawn).toEqual([]);
    expect(driver.plan.ledger.reservations).toHaveLength(1);
    expect(driver.approve(asked).ok).toBe(false);
    expect(ask(driver).allowed, 'it asks again under the guards of now').toBe(false);
    driver.approve();
    expect(ask(driver).allowed).toBe(true);
    expect(driver.do({ type: 'settle_external', by: AGENT.actor, callId: running.callId, outcome: 'succeeded', costUsd: 0.5 }).ok).toBe(
      true,
    );
  });

  it('does not use an approval that was given under another policy', () => {
    const driver = open({ guardrails: { tool_denylist: ['own.*'] } });
    ask(driver);
    driver.approve();
    driver.set({ max_steps: 5 });
    expect(ask(driver).allowed).toBe(false);
    expect(driver.only).toMatchObject({ kind: 'call', guard: 'denylist' });
  });
});
