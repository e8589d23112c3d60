/** A plan whose executor is outside stays open as long as it is heard of: then its retention ends it, by itself and by name. */
import { describe, expect, it } from 'vitest';
import { replay } from '../../../src/core/plan/evolve.ts';
import type { AuthorizeRequest } from '../../../src/core/plan/external/commands.ts';
import { nextTask } from '../../../src/core/plan/next-task.ts';
import { AGENT, createCommand, PlanDriver, type PlanOptions, refusalOf } from './plan-driver.ts';

const by = AGENT.actor;
const DAY_MS = 86_400_000;

function open(retentionDays: number | null, options: PlanOptions = {}): PlanDriver {
  const driver = new PlanDriver();
  const command = createCommand({ profile: 'full-auto', project: null, apply: 'none', ...options });
  const made = driver.do({ ...command, external: true, ...(retentionDays === null ? {} : { retentionDays }) });
  if (!made.ok) throw new Error(made.error.message);
  return driver;
}

const ask = (driver: PlanDriver, request: Partial<AuthorizeRequest> = {}) =>
  driver.do({
    type: 'authorize',
    by,
    request: {
      ...{ toolName: 'own.tool', arguments: {}, isWrite: false, costUsd: 0.5, step: null, operation: null, idempotencyKey: null },
      ...request,
    },
  });

/** Lets time pass as the alarm does: whatever is due is done when it is due. */
function alarmsUntil(driver: PlanDriver, ms: number): void {
  const endMs = driver.nowMs + ms;
  for (;;) {
    const task = nextTask(driver.plan, driver.nowMs);
    if (task.kind === 'tick') driver.do({ type: 'tick' });
    else if (task.kind === 'sleep' && task.atMs !== null && task.atMs <= endMs) driver.nowMs = task.atMs;
    else break;
  }
  driver.nowMs = endMs;
}

describe('the retention of a plan whose executor is outside', () => {
  it('ends it after so many days without anything, at the end of the day, and says why', () => {
    const driver = open(30);
    alarmsUntil(driver, 30 * DAY_MS - 1);
    expect(driver.at).toBe('execute/running');
    alarmsUntil(driver, DAY_MS);
    expect(driver.at).toBe('execute/cancelled (end)');
    const [row] = driver.rowsOf('retention_ended');
    expect(row).toMatchObject({ at: '2026-04-01T00:00:00.000Z', actor: { kind: 'system' } });
    expect(row?.data.reason).toContain('retention of 30 days');
    expect(driver.plan.cancelReason).toBe(row?.data.reason);
    expect(driver.trail.at(-1)).toMatchObject({ eventType: 'retention_ended', reason: row?.data.reason });
    expect(nextTask(driver.plan, driver.nowMs)).toEqual({ kind: 'sleep', atMs: null });
    expect(replay(driver.rows)).toEqual(driver.plan);
  });

  it('begins again with whatever happens in it', () => {
    const driver = open(2);
    for (let day = 0; day < 10; day += 1) {
      alarmsUntil(driver, DAY_MS);
      expect(ask(driver, { arguments: { day } }).ok).toBe(true);
    }
    expect(driver.at).toBe('execute/running');
    alarmsUntil(driver, 4 * DAY_MS);
    expect(driver.at).toBe('execute/cancelled (end)');
  });

  it('charges in full what was never settled, whenever the alarm comes', () => {
    const driver = open(1);
    ask(driver);
    // The alarm was lost for a year.
    driver.wait(365 * DAY_MS).do({ type: 'tick' });
    expect(driver.at).toBe('execute/cancelled (end)');
    expect(driver.plan.ledger).toMatchObject({ settledMicroUsd: 500_000, reservations: [] });
    expect(driver.rows.slice(-2).map(({ type }) => type)).toEqual(['call_settled', 'retention_ended']);
  });

  it.each([
    ['a call', (driver: PlanDriver) => ask(driver)],
    ['its completion', (driver: PlanDriver) => driver.do({ type: 'complete', by })],
  ])('is over although no alarm has come: %s is refused, and the end is on record', (_case, doIt) => {
    const driver = open(1);
    driver.wait(3 * DAY_MS);
    expect(refusalOf(doIt(driver))).toMatchObject({ kind: 'invalid_state', message: 'the plan is cancelled; open a new one' });
    expect(driver.rows.map(({ type }) => type)).toEqual(['plan_created', 'retention_ended']);
  });

  it('takes the outcome of a call as cost only once it is over', () => {
    const driver = open(1);
    ask(driver);
    driver.wait(3 * DAY_MS);
    const settled = driver.do({ type: 'settle_external', by, callId: 'c1', outcome: 'succeeded', costUsd: 0.75 });
    expect(settled.ok).toBe(true);
    expect(driver.rowsOf('call_settled').at(-1)?.data).toMatchObject({ late: true, charge: { charged_micro_usd: 250_000 } });
    expect(driver.at).toBe('execute/cancelled (end)');
  });

  it('ends a halted plan and one that waits for a human as well, and withdraws what is asked', () => {
    const driver = open(1, { guardrails: { tool_denylist: ['own.*'] } });
    ask(driver);
    expect(driver.at).toBe('execute/waiting');
    driver.halt('breach', { level: 'org', epoch: 1 });
    alarmsUntil(driver, 2 * DAY_MS);
    expect(driver.at).toBe('execute/cancelled (end)');
    expect(driver.pending).toEqual([]);
  });

  it('is none where none was locked into the plan', () => {
    const driver = open(null);
    expect(nextTask(driver.plan, driver.nowMs)).toEqual({ kind: 'sleep', atMs: null });
    alarmsUntil(driver, 5000 * DAY_MS);
    expect(driver.at).toBe('execute/running');
  });
});
