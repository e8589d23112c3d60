import { describe, expect, it } from 'vitest';
import { decide } from '../../../src/core/plan/decide.ts';
import type { AuthorizationAnswer, AuthorizeRequest } from '../../../src/core/plan/external/commands.ts';
import {
  AUTHORIZATION_TTL_MS,
  COUNTED_STEPS,
  MAX_OPEN_AUTHORIZATIONS,
  REMEMBERED_DECISIONS,
} from '../../../src/core/plan/external/external.ts';
import { type KeyedDecision, keyedIn } from '../../../src/core/plan/external/keys.ts';
import { nextTask } from '../../../src/core/plan/next-task.ts';
import { NO_LIMIT_ABOVE } from '../../../src/core/plan/work.ts';
import { AGENT, CATALOGUE, createCommand, PlanDriver, type PlanOptions, refusalOf, sha256 } from './plan-driver.ts';

const by = AGENT.actor;
const CONTEXT = { sha256, catalogue: CATALOGUE, money: NO_LIMIT_ABOVE };

function open(options: PlanOptions = {}): PlanDriver {
  const driver = new PlanDriver();
  const made = driver.do({ ...createCommand({ profile: 'full-auto', project: null, apply: 'none', ...options }), external: true });
  if (!made.ok) throw new Error(made.error.message);
  return driver;
}

/** Asks and answers what was decided. */
function ask(driver: PlanDriver, request: Partial<AuthorizeRequest> = {}, given?: KeyedDecision): AuthorizationAnswer {
  const command = {
    type: 'authorize',
    by,
    request: {
      toolName: 'own.tool',
      arguments: {},
      isWrite: false,
      costUsd: null,
      step: null,
      operation: null,
      idempotencyKey: null,
      ...request,
    },
  } as const;
  const { idempotencyKey: key } = command.request;
  const keyed = given ?? (key === null ? undefined : keyedIn(driver.rows, key, driver.nowMs));
  const { answer } = decide(driver.current, command, { ...CONTEXT, now: driver.now, ...(keyed === undefined ? {} : { keyed }) });
  const done = driver.do(command, keyed === undefined ? {} : { keyed });
  if (!done.ok || answer === undefined) throw new Error(done.ok ? 'no answer' : done.error.message);
  return answer as AuthorizationAnswer;
}

const settle = (driver: PlanDriver, callId: string) =>
  driver.do({ type: 'settle_external', by, callId, outcome: 'succeeded', costUsd: null });

describe('the state of a plan whose executor is outside', () => {
  it('remembers a bounded number of decisions, and stays exact beyond it', () => {
    const driver = open({ guardrails: { tool_budget: 100 } });
    const kept = ask(driver, { costUsd: 1, arguments: { kept: true } });
    for (let n = 0; n < REMEMBERED_DECISIONS + 100; n += 1) settle(driver, ask(driver, { costUsd: 0.01, arguments: { n } }).callId);
    expect(Object.keys(driver.plan.calls).length).toBeLessThanOrEqual(REMEMBERED_DECISIONS + 1);
    expect(driver.plan.ledger.settledMicroUsd).toBe((REMEMBERED_DECISIONS + 100) * 10_000);
    expect(refusalOf(settle(driver, 'c2'))).toMatchObject({ kind: 'invalid_state' });
    // What is open is never forgotten.
    expect(settle(driver, kept.callId).ok).toBe(true);
  }, 120_000);

  it('knows for seven days what a key stands for, however many decisions came after it', () => {
    const driver = open({ guardrails: { tool_denylist: ['bad.tool'] } });
    const day = 86_400_000;
    const settled = ask(driver, { idempotencyKey: 'settled' });
    settle(driver, settled.callId);
    const expired = ask(driver, { idempotencyKey: 'expired', arguments: { n: -1 } });
    const denied = ask(driver, { toolName: 'bad.tool', idempotencyKey: 'denied' });
    driver.deny();
    driver.wait(AUTHORIZATION_TTL_MS);
    for (let n = 0; n < REMEMBERED_DECISIONS + 10; n += 1) settle(driver, ask(driver, { arguments: { n } }).callId);
    for (const { callId } of [settled, expired, denied]) expect(driver.plan.calls[callId], 'the state has forgotten it').toBeUndefined();
    const before = driver.rows.length;
    const again = (ms: number) => {
      driver.wait(ms);
      return [
        ask(driver, { idempotencyKey: 'settled' }),
        ask(driver, { idempotencyKey: 'expired', arguments: { n: -1 } }),
        ask(driver, { toolName: 'bad.tool', idempotencyKey: 'denied' }),
      ];
    };
    expect(again(6.9 * day)).toMatchObject([
      { callId: settled.callId, allowed: false, requiresApproval: false, reason: expect.stringContaining('settled: succeeded') },
      { callId: expired.callId, allowed: false, requiresApproval: false, reason: expect.stringContaining('expired') },
      { callId: denied.callId, allowed: false, requiresApproval: false, reason: expect.stringContaining('denied by') },
    ]);
    expect(() => ask(driver, { idempotencyKey: 'settled', costUsd: 1 })).toThrow('used with another request');
    expect(driver.rows).toHaveLength(before);
    expect(again(0.2 * day)[0], 'after that it is any key').toMatchObject({ allowed: true });
  }, 120_000);

  it('takes no key that it could forget too early, and says what to do', () => {
    const driver = open();
    const until = driver.nowMs + 86_400_000;
    const full = { decided: null, settled: null, isFullUntilMs: until };
    expect(() => ask(driver, { idempotencyKey: 'k' }, full)).toThrow(
      new RegExp(`takes no other before ${new Date(until).toISOString()}: ask without a key`),
    );
    expect(driver.rows).toHaveLength(1);
    expect(ask(driver, {}, full).allowed).toBe(true);
  });

  it('refuses more when nobody settles, and goes on when they have expired', () => {
    const driver = open();
    for (let n = 0; n < MAX_OPEN_AUTHORIZATIONS; n += 1) ask(driver, { arguments: { n } });
    expect(() => ask(driver, { arguments: { more: true } })).toThrow('settle some of them first');
    driver.wait(AUTHORIZATION_TTL_MS);
    expect(nextTask(driver.plan, driver.nowMs)).toEqual({ kind: 'tick' });
    expect(ask(driver, { arguments: { more: true } }).allowed).toBe(true);
  }, 120_000);

  it('counts the calls of its newest steps; one that is further back is over, so that none begins anew', () => {
    const driver = open({ guardrails: { max_tool_calls_per_step: 1 } });
    for (let step = 1; step <= COUNTED_STEPS + 5; step += 1) expect(ask(driver, { step }).allowed).toBe(true);
    for (const step of [6, COUNTED_STEPS, COUNTED_STEPS + 5]) expect(ask(driver, { step, arguments: { again: true } }).allowed).toBe(false);
    for (const step of [1, 5]) expect(() => ask(driver, { step })).toThrow('is over');
    expect(Object.keys(driver.plan.external?.callsByStep ?? {})).toHaveLength(COUNTED_STEPS);
  });

  it('keeps nothing that only a loop here could move', () => {
    const driver = open({ profile: 'manual' });
    expect(driver.at).toBe('execute/running');
    expect(nextTask(driver.plan, driver.nowMs)).toEqual({ kind: 'sleep', atMs: null });
    expect(driver.plan.approvals).toEqual([]);
    const { approvalId } = ask(driver);
    expect(driver.at).toBe('execute/waiting');
    driver.approve();
    expect(driver.at).toBe('execute/running');
    expect(driver.plan.approvals.find((each) => each.id === approvalId)?.status).toBe('approved');
    expect(nextTask(driver.plan, driver.nowMs)).toEqual({ kind: 'sleep', atMs: null });
  });

  it('closes a question that nobody answers and asks nobody how to go on; the executor asks anew', () => {
    const driver = open({ profile: 'manual' });
    const first = ask(driver);
    driver.wait(8 * 86_400_000);
    driver.do({ type: 'tick' });
    expect(driver.pending).toEqual([]);
    expect(driver.at).toBe('execute/running');
    const second = ask(driver);
    expect(second).toMatchObject({ callId: first.callId, allowed: false, requiresApproval: true });
    expect(second.approvalId).not.toBe(first.approvalId);
  });
});
