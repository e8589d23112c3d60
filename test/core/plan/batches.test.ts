import { describe, expect, it } from 'vitest';
import { call, FACTS, failed, PlanDriver, profileOf, refusalOf, type Script, succeeded } from './plan-driver.ts';

const ASKS_CALLS = profileOf('full-auto', { name: 'asks-calls', execute_command: 1 });
const three: Script = { execute: [{ calls: [call('files.read', { n: 1 }), call('files.write', { n: 2 }), call('web.get', { n: 3 })] }] };

describe('two calls of one batch that both wait', () => {
  const both = (): PlanDriver =>
    PlanDriver.run(
      { guardrails: { tool_denylist: ['files.write'] } },
      { execute: [{ calls: [call('files.write', { path: 'a' }), call('files.write', { path: 'b' })] }] },
    );

  it('have an approval each; approving the second runs only it', () => {
    const driver = both();
    const [first, second] = driver.pending;
    expect([first?.callIds, second?.callIds]).toEqual([['c1'], ['c2']]);
    driver.approve(second);
    driver.run();
    expect(driver.performed.map(({ id }) => id)).toEqual(['c2']);
    expect(driver.only.id).toBe(first?.id);
    expect(driver.at).toBe('execute/waiting');
    driver.approve(first);
    driver.run();
    expect(driver.performed.map(({ id }) => id)).toEqual(['c2', 'c1']);
    expect(driver.at).toBe('apply/applied (end)');
  });

  it('are not answered by words', () => {
    const driver = both();
    expect(driver.say('approve', { plain: { decision: 'approve', phase: null } }).ok).toBe(true);
    expect(driver.pending).toHaveLength(2);
    expect(driver.tools).toEqual([]);
  });

  it('do not mix: the digest of one does not approve the other', () => {
    const driver = both();
    const [first, second] = driver.pending;
    expect(refusalOf(driver.answer(first?.id ?? '', 'approve', { digest: second?.digest ?? null })).kind).toBe('invalid_state');
    expect(driver.pending).toHaveLength(2);
  });

  it('end their step as refused when one is denied, with the result of the other kept', () => {
    const driver = both();
    const [first, second] = driver.pending;
    driver.deny(first, { reason: 'not a' });
    driver.approve(second);
    driver.run({ execute: driver.script.execute ?? [], outcome: () => succeeded({ result: 'written' }) });
    expect(driver.plan.results).toMatchObject([
      { status: 'refused', values: [{ inline: null }, { inline: 'written' }], reason: 'not executed: denied by boss: not a' },
    ]);
  });
});

describe("the batch's gate", () => {
  it('asks once for the whole batch, bound to all of it, and nothing runs before', () => {
    const driver = PlanDriver.run({ profile: ASKS_CALLS }, three);
    expect(driver.only).toMatchObject({ kind: 'gate', gate: 'execute_command', callIds: ['c1', 'c2', 'c3'] });
    expect(driver.only.subject.calls).toHaveLength(3);
    expect(driver.tools).toEqual([]);
    driver.approve();
    driver.run();
    expect(driver.tools).toEqual(['files.read', 'files.write', 'web.get']);
  });

  it('judges the batch by its lowest confidence', () => {
    const half = profileOf('full-auto', { name: 'half', execute_command: 0.6 });
    const calls = [call('files.read'), call('files.read', {}, { statedConfidence: 0.1 })];
    const driver = PlanDriver.run({ profile: half }, { execute: [{ calls }] });
    expect(driver.only.confidence?.value).toBe(0.1);
    expect(PlanDriver.run({ profile: half }, { execute: [{ calls: calls.slice(0, 1) }] }).at).toBe('apply/applied (end)');
  });

  it('opens after the questions of the guards, for the calls that no human approved one by one', () => {
    const driver = PlanDriver.run({ profile: ASKS_CALLS, guardrails: { tool_denylist: ['files.write'] } }, three);
    expect(driver.pending.map(({ kind, callIds }) => [kind, callIds])).toEqual([['call', ['c2']]]);
    driver.approve();
    expect(driver.pending.map(({ kind, callIds }) => [kind, callIds])).toEqual([['gate', ['c1', 'c3']]]);
    driver.run();
    expect(driver.tools, 'a call that a human approved needs no confidence').toEqual(['files.write']);
    driver.approve();
    driver.run();
    expect(driver.tools).toEqual(['files.write', 'files.read', 'web.get']);
  });

  it('opens as well when what a guard asked was denied', () => {
    const driver = PlanDriver.run({ profile: ASKS_CALLS, guardrails: { tool_denylist: ['files.write'] } }, three);
    driver.deny();
    expect(driver.only).toMatchObject({ kind: 'gate', callIds: ['c1', 'c3'] });
    driver.deny();
    driver.run();
    expect(driver.tools).toEqual([]);
    expect(driver.callStates()).toEqual(['refused', 'refused', 'refused']);
  });

  it('opens though a sibling waits for its retry, and after that is denied', () => {
    const profile = profileOf('full-auto', { name: 'asks-both', execute_command: 1, modify_config: 1 });
    const script: Script = { ...three, outcome: (each) => (each.tool === 'files.write' ? failed({ transient: true }) : succeeded()) };
    const driver = PlanDriver.run({ profile, guardrails: { tool_denylist: ['files.write', 'web.get'] } }, script);
    const [write, get] = driver.pending;
    driver.approve(write);
    driver.run();
    expect(driver.pending.map(({ gate, kind }) => gate ?? kind)).toEqual(['call', 'modify_config']);
    driver.approve(get);
    expect(
      driver.pending.map(({ gate }) => gate),
      'the gate of one retry does not hold up the batch',
    ).toEqual(['modify_config', 'execute_command']);
    driver.deny(driver.pending[0]);
    expect(driver.plan.calls['c2']).toMatchObject({ status: 'failed', error: { message: 'it broke' } });
    driver.run();
    expect(driver.only).toMatchObject({ gate: 'execute_command', callIds: ['c1'] });
    driver.approve();
    driver.run();
    expect(driver.plan.results.at(-1)?.status).toBe('failed');
  });

  it('in Strategize is the gate of decisions', () => {
    const driver = PlanDriver.run(
      { profile: profileOf('full-auto', { name: 'asks', edit_code: 1 }) },
      { strategize: [{ calls: [call('files.read')] }] },
    );
    expect(driver.only).toMatchObject({ gate: 'edit_code', callIds: ['c1'] });
    expect(driver.rowsOf('call_decided')[0]?.data.reason).toContain('of edit_code');
    driver.approve();
    driver.run();
    expect(driver.at).toBe('apply/applied (end)');
  });
});

describe('a limit in the middle of a batch', () => {
  const asks = Array.from({ length: 5 }, (_, n) => call('model.ask', { n }));

  it('runs what fits, records every refusal, and asks once for the rest', () => {
    const driver = PlanDriver.run({ guardrails: { tool_budget: 0.3 } }, { execute: [{ calls: asks }] });
    expect(driver.tools).toHaveLength(3);
    expect(driver.rowsOf('call_decided').map(({ data }) => data.event_type)).toEqual([
      'call_allowed',
      'call_allowed',
      'call_allowed',
      'budget_blocked',
      'budget_blocked',
    ]);
    expect(driver.only).toMatchObject({
      kind: 'limit',
      guard: 'budget_cap',
      callIds: ['c4', 'c5'],
      suggestedGrant: { cost_usd: 0.2 },
      estimateMicroUsd: 200_000,
    });
    expect(driver.only.reason).toContain('Budget cap exceeded: $0.40 > $0.30.');
    expect(driver.plan.ledger).toMatchObject({ settledMicroUsd: 300_000, reservations: [] });
  });

  it('goes on with the suggested grant, which is recorded', () => {
    const driver = PlanDriver.run({ guardrails: { tool_budget: 0.3 } }, { execute: [{ calls: asks }] });
    driver.approve();
    driver.run();
    expect(driver.tools).toHaveLength(5);
    expect(driver.rowsOf('limit_granted')[0]?.data).toMatchObject({ event: 'cap_raised', grant: { cost_usd: 0.2 } });
    expect(driver.plan.ledger.settledMicroUsd).toBe(500_000);
    expect(driver.at).toBe('apply/applied (end)');
  });

  it('goes on as far as a smaller grant reaches, and asks again', () => {
    const driver = PlanDriver.run({ guardrails: { tool_budget: 0.3 } }, { execute: [{ calls: asks }] });
    driver.approve(driver.only, { grant: { cost_usd: 0.15 } });
    driver.run();
    expect(driver.tools).toHaveLength(4);
    expect(driver.only).toMatchObject({ callIds: ['c5'], suggestedGrant: { cost_usd: 0.05 } });
  });

  it('keeps the finished work when the rest is denied', () => {
    const driver = PlanDriver.run({ guardrails: { tool_budget: 0.3 } }, { execute: [{ calls: asks, onRefused: 'continue' }] });
    driver.deny(driver.only, { reason: 'enough' });
    driver.run();
    expect(driver.tools).toHaveLength(3);
    expect(driver.plan.changes).toHaveLength(3);
    expect(driver.callStates()).toEqual(['succeeded', 'succeeded', 'succeeded', 'refused', 'refused']);
    expect(driver.at).toBe('apply/applied (end)');
  });

  it('with a gate behind it suggests a grant that covers what waits for the gate too', () => {
    const driver = PlanDriver.run({ profile: ASKS_CALLS, guardrails: { tool_budget: 0.3 } }, { execute: [{ calls: asks }] });
    expect(driver.only).toMatchObject({ kind: 'limit', suggestedGrant: { cost_usd: 0.2 } });
    driver.approve();
    driver.approve();
    driver.run();
    expect(driver.tools).toHaveLength(5);
    expect(
      driver.plan.approvals.map(({ kind }) => kind),
      'no second question about money',
    ).toEqual(['limit', 'gate']);
  });

  it.each([
    { grant: { cost_usd: -1 } },
    { grant: { cost_usd: Number.NaN } },
    { grant: { cost_usd: 0 } },
    { grant: { calls: 5 } },
    { grant: { cost_usd: 1, calls: 1 } },
    { grant: {} },
  ])('takes exactly what it stands for: $grant is refused', ({ grant }) => {
    const driver = PlanDriver.run({ guardrails: { tool_budget: 0.3 } }, { execute: [{ calls: asks }] });
    expect(refusalOf(driver.approve(driver.only, { grant })).kind).toBe('invalid');
    expect(driver.at).toBe('execute/waiting');
    expect(driver.plan.ledger.grantedMicroUsd).toBe(0);
  });

  it('of the org is not for one plan to raise', () => {
    const driver = PlanDriver.run({ orgFloor: { tool_budget: 0.3 } }, { execute: [{ calls: asks }] });
    expect(driver.plan.approvals).toEqual([]);
    expect(driver.tools).toHaveLength(3);
    expect(driver.at).toBe('execute/errored');
  });
});

it('a batch without calls is a mistake of the actor, and said so', () => {
  const driver = PlanDriver.run({}, { execute: [{ calls: [] }] });
  expect(driver.at).toBe('execute/errored');
  expect(driver.plan.failure?.last.message).toContain('has no calls');
});

it('a batch in which one call is refused for good runs the others', () => {
  const driver = PlanDriver.run(
    {},
    { execute: [{ calls: [call('files.read'), call('no.such'), call('web.get')], facts: [FACTS, FACTS, FACTS] }] },
  );
  expect(driver.tools).toEqual(['files.read', 'web.get']);
  expect(driver.plan.results.at(-1)).toMatchObject({ status: 'refused' });
});
