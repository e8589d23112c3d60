/** What is known of a call of an executor outside by its arguments counts as in a plan that is run here: paths, hosts, content from outside. */
import { describe, expect, it } from 'vitest';
import type { CallFacts } from '../../../src/core/plan/commands.ts';
import { decide } from '../../../src/core/plan/decide.ts';
import { replay } from '../../../src/core/plan/evolve.ts';
import type { AuthorizationAnswer, AuthorizeRequest } from '../../../src/core/plan/external/commands.ts';
import { AUTHORIZATION_TTL_MS, type ExternalOutcome, mayBeTainted } from '../../../src/core/plan/external/external.ts';
import { NO_LIMIT_ABOVE } from '../../../src/core/plan/work.ts';
import { AGENT, CATALOGUE, createCommand, PlanDriver, type PlanOptions, profileOf, sha256 } from './plan-driver.ts';

const by = AGENT.actor;
const NOTHING: CallFacts = { issues: [], known: 0, newInKnownFolder: 0, unknown: 0, protectedPaths: [], bytes: 0 };

function open(options: PlanOptions = {}): PlanDriver {
  const driver = new PlanDriver();
  const made = driver.do({ ...createCommand({ profile: 'full-auto', project: null, apply: 'none', ...options }), external: true });
  if (!made.ok) throw new Error(made.error.message);
  return driver;
}

function ask(driver: PlanDriver, toolName: string, facts: Partial<CallFacts> = {}, rest: Partial<AuthorizeRequest> = {}) {
  const request: AuthorizeRequest = {
    ...{ toolName, arguments: {}, isWrite: null, costUsd: 0, step: null, operation: null, idempotencyKey: null },
    ...rest,
  };
  const command = { type: 'authorize', by, request, facts: { ...NOTHING, ...facts } } as const;
  const { answer } = decide(driver.current, command, { now: driver.now, sha256, catalogue: CATALOGUE, money: NO_LIMIT_ABOVE });
  const done = driver.do(command);
  if (!done.ok || answer === undefined) throw new Error(done.ok ? 'no answer' : done.error.message);
  return answer as AuthorizationAnswer;
}

const settle = (driver: PlanDriver, { callId }: AuthorizationAnswer, outcome: ExternalOutcome = 'succeeded') =>
  driver.do({ type: 'settle_external', by, callId, outcome, costUsd: null });

const refusedBy = ({ allowed, guards }: AuthorizationAnswer): string | null =>
  allowed ? null : (guards?.find((verdict) => !verdict.allowed)?.guard ?? 'nobody');

describe('content from outside', () => {
  it('asks before what it brought about goes outside, from the authorisation to read on', () => {
    const driver = open();
    expect(refusedBy(ask(driver, 'pay.send', {}, { arguments: { n: 1 } }))).toBeNull();
    expect(mayBeTainted(driver.plan, CATALOGUE)).toBe(false);
    const read = ask(driver, 'web.get', { hosts: ['news.test'] });
    expect(mayBeTainted(driver.plan, CATALOGUE), 'as whoever does not see the calls knows it').toBe(true);
    const before = ask(driver, 'pay.send', {}, { arguments: { n: 2 } });
    expect(refusedBy(before), 'whoever may read may have read').toBe('taint');
    expect(before).toMatchObject({ requiresApproval: true });
    settle(driver, read);
    expect(driver.plan.tainted).toBe(true);
    expect(driver.rowsOf('call_settled').at(-1)?.data.taint).toBe('news.test');
    expect(refusedBy(ask(driver, 'pay.send', {}, { arguments: { n: 2 } }))).toBe('taint');
    driver.approve();
    expect(ask(driver, 'pay.send', {}, { arguments: { n: 2 } }).allowed, 'a human has looked at exactly this call').toBe(true);
    expect(refusedBy(ask(driver, 'pay.send', {}, { arguments: { n: 3 } }))).toBe('taint');
    expect(replay(driver.rows)).toEqual(driver.plan);
  });

  it.each([
    ['succeeded', 'taint'],
    ['failed', 'taint'],
    ['not_dispatched', null],
  ] as const)('of a call that %s: the next write outside is refused by %s', (outcome, guard) => {
    const driver = open();
    settle(driver, ask(driver, 'web.get'), outcome);
    expect(refusedBy(ask(driver, 'pay.send'))).toBe(guard);
  });

  it('counts where nobody ever said how the call ended', () => {
    const driver = open();
    ask(driver, 'web.get');
    driver.wait(AUTHORIZATION_TTL_MS);
    expect(refusedBy(ask(driver, 'pay.send'))).toBe('taint');
    expect(driver.plan.tainted).toBe(true);
  });

  it('lets pass what goes to the hosts that the profile names, and nothing else', () => {
    const profile = profileOf('full-auto', { name: 'hosts', safety: { tainted_write_hosts: ['*.own.test'] } });
    const driver = open({ profile });
    settle(driver, ask(driver, 'web.get'));
    expect(refusedBy(ask(driver, 'pay.send', { hosts: ['api.own.test'] }, { arguments: { n: 1 } }))).toBeNull();
    expect(refusedBy(ask(driver, 'pay.send', { hosts: ['evil.test'] }, { arguments: { n: 2 } }))).toBe('taint');
    expect(refusedBy(ask(driver, 'pay.send', {}, { arguments: { n: 3 } }))).toBe('taint');
  });

  it('lowers the confidence of what follows, as it does here', () => {
    const scoreAfter = (outcome: ExternalOutcome): number => {
      const driver = open();
      settle(driver, ask(driver, 'web.get'), outcome);
      const { callId } = ask(driver, 'files.read', { known: 1 });
      return driver.plan.calls[callId]?.confidence?.value ?? 0;
    };
    expect(scoreAfter('not_dispatched')).toBeGreaterThan(0.6);
    expect(scoreAfter('succeeded')).toBe(0.6);
  });

  it("that one of the caller's own tools reads is not known: what holds of them is what it says", () => {
    const driver = open();
    settle(driver, ask(driver, 'own.fetch', {}, { isWrite: false }));
    expect(refusedBy(ask(driver, 'pay.send'))).toBeNull();
  });
});

describe('a tool that is registered here', () => {
  it('may not change a protected path without a human', () => {
    const driver = open();
    const facts = { protectedPaths: ['.github/x.yml'], unknown: 1 };
    const answer = ask(driver, 'write_file', facts);
    expect(refusedBy(answer)).toBe('protected_path');
    expect(answer.reason).toContain('.github/x.yml');
    driver.approve();
    expect(ask(driver, 'write_file', facts).allowed).toBe(true);
  });

  it('is refused where its arguments do not say what it would change, and nobody is asked', () => {
    const driver = open();
    const answer = ask(driver, 'write_file', { issues: [{ field: 'path', message: 'is required' }] });
    expect(refusedBy(answer)).toBe('arguments');
    expect(answer).toMatchObject({ requiresApproval: false, reason: 'Invalid arguments: path: is required' });
    expect(driver.pending).toEqual([]);
  });

  it('that reads outside and is said to write is taken for one that writes outside', () => {
    const driver = open({ guardrails: { require_approval_for_writes: true } });
    expect(refusedBy(ask(driver, 'web.get', {}, { isWrite: false }))).toBeNull();
    const answer = ask(driver, 'web.get', {}, { isWrite: true });
    expect(refusedBy(answer)).toBe('taint');
    expect(answer.guards?.filter((each) => !each.allowed).map(({ guard }) => guard)).toEqual(['taint', 'write_approval']);
    expect(driver.plan.calls[answer.callId]?.riskClass).toBe('external_write');
  });
});
