import { describe, expect, it } from 'vitest';
import type { Guardrails } from '../../../src/core/guard-policy.ts';
import type { GuardChange, GuardrailChanges } from '../../../src/core/guard-revision.ts';
import { remaining, spentMicroUsd } from '../../../src/core/ledger.ts';
import { NO_FLOOR, type OrgPolicy } from '../../../src/core/org-policy.ts';
import {
  AGENT,
  ASKER,
  BOSS,
  call,
  type Move,
  OPERATOR,
  PlanDriver,
  type PlanOptions,
  profileOf,
  refusalOf,
  type Script,
  succeeded,
} from './plan-driver.ts';

const PAYS: Script = { execute: [{ calls: [call('pay.send')] }] };
const open = (options: PlanOptions = {}, script: Script = {}): PlanDriver => PlanDriver.make({ profile: 'manual', ...options }, script);
const list = (kind: 'add' | 'remove', name: 'denylist' | 'allowlist' | 'required_confirmations', entry: string): GuardChange => ({
  kind,
  list: name,
  entry,
});

/** The org's floor changes under the plan. */
const bind = (driver: PlanDriver, floor: OrgPolicy) => driver.do({ type: 'apply_floor', by: { kind: 'human', id: 'admin' }, floor });

/** Asked about a denied call of `pay.send`. */
const atDenied = (options: PlanOptions = {}): PlanDriver => PlanDriver.run({ guardrails: { tool_denylist: ['pay.*'] }, ...options }, PAYS);

describe('a revision of the guards', () => {
  it.each<{
    readonly name: string;
    readonly locked: Guardrails;
    readonly change: GuardrailChanges;
    readonly seen: (driver: PlanDriver) => unknown;
    readonly is: unknown;
  }>([
    {
      name: 'a cap where there was none',
      locked: {},
      change: { max_total_cost: 10 },
      seen: (d) => d.plan.policy.planCapMicroUsd,
      is: { value: 10_000_000, field: 'max_total_cost', origin: 'revision', ceiling: null },
    },
    {
      name: 'a lower cap',
      locked: { tool_budget: 5 },
      change: { tool_budget: 2 },
      seen: (d) => d.plan.policy.planCapMicroUsd?.value,
      is: 2_000_000,
    },
    {
      name: 'a cap of 0',
      locked: { tool_budget: 5 },
      change: { tool_budget: 0 },
      seen: (d) => d.plan.policy.planCapMicroUsd?.value,
      is: 0,
    },
    {
      name: 'the locked cap, which stays named by its origin',
      locked: { tool_budget: 5 },
      change: { max_total_cost: 5 },
      seen: (d) => d.plan.policy.planCapMicroUsd,
      is: { value: 5_000_000, field: 'tool_budget', origin: 'plan', ceiling: null },
    },
    {
      name: 'calls per step',
      locked: { max_tool_calls_per_step: 9 },
      change: { max_tool_calls_per_step: 3 },
      seen: (d) => d.plan.policy.maxCallsPerStep?.value,
      is: 3,
    },
    { name: 'steps', locked: {}, change: { max_steps: 0 }, seen: (d) => d.plan.policy.maxSteps?.value, is: 0 },
    {
      name: 'seconds of work',
      locked: {},
      change: { max_wall_clock_seconds: 1.5 },
      seen: (d) => d.plan.policy.maxWallClockSeconds?.value,
      is: 1.5,
    },
    {
      name: 'calls per invocation',
      locked: {},
      change: { actor_limits: { max_tool_calls_per_invocation: 4 } },
      seen: (d) => d.plan.policy.maxCallsPerInvocation?.value,
      is: 4,
    },
    {
      name: 'retries below the three of the profile',
      locked: {},
      change: { actor_limits: { max_retries_per_failure: 1 } },
      seen: (d) => d.plan.policy.maxRetries,
      is: { value: 1, field: 'max_retries_per_failure', origin: 'revision', ceiling: null },
    },
    {
      name: 'approval for writes',
      locked: {},
      change: { require_approval_for_writes: true },
      seen: (d) => d.plan.policy.requireApprovalForWrites,
      is: true,
    },
    {
      name: 'approval for apply',
      locked: {},
      change: { require_approval_for_apply: true },
      seen: (d) => d.plan.policy.requireApprovalForApply,
      is: true,
    },
    {
      name: 'a denylist',
      locked: { tool_denylist: ['a'] },
      change: { tool_denylist: ['b'] },
      seen: (d) => d.plan.policy.denylist,
      is: [
        { pattern: 'a', origin: 'plan' },
        { pattern: 'b', origin: 'revision' },
      ],
    },
    {
      name: 'an empty allowlist',
      locked: {},
      change: { tool_allowlist: [] },
      seen: (d) => d.plan.policy.allowlists,
      is: [{ origin: 'revision', entries: [] }],
    },
    {
      name: 'confirmations',
      locked: {},
      change: { required_confirmations: ['pay.send'] },
      seen: (d) => d.plan.policy.requiredConfirmations,
      is: [{ pattern: 'pay.send', origin: 'revision' }],
    },
  ])('by any operator tightens: $name', ({ locked, change, seen, is }) => {
    for (const by of [OPERATOR, AGENT]) {
      const driver = open({ guardrails: locked });
      const digest = driver.plan.policyDigest;
      expect(driver.set(change, by).ok).toBe(true);
      expect(seen(driver)).toEqual(is);
      expect(driver.plan.guards.revision).toBe(2);
      const [row] = driver.rowsOf('guard_revised');
      expect(row?.actor).toEqual(by.actor);
      expect(row?.data).toMatchObject({
        revision: 2,
        loosens: false,
        origin: 'revision',
        previous_digest: digest,
        policy_digest: driver.plan.policyDigest,
      });
    }
  });

  it.each<{ readonly name: string; readonly locked: Guardrails; readonly change: GuardrailChanges; readonly says: string }>([
    {
      name: 'a cap',
      locked: { tool_budget: 5 },
      change: { max_total_cost: 10 },
      says: 'max_total_cost: $10.00 is looser than $5.00, which is locked into the plan (tool_budget, from plan)',
    },
    {
      name: 'calls per step',
      locked: { max_tool_calls_per_step: 2 },
      change: { max_tool_calls_per_step: 1_000_000 },
      says: '1000000 is looser than 2',
    },
    { name: 'steps', locked: { max_steps: 0 }, change: { max_steps: 1 }, says: '1 is looser than 0' },
    { name: 'seconds', locked: { max_wall_clock_seconds: 60 }, change: { max_wall_clock_seconds: 61 }, says: '61 is looser than 60' },
    {
      name: 'calls per invocation',
      locked: { actor_limits: { max_tool_calls_per_invocation: 1 } },
      change: { actor_limits: { max_tool_calls_per_invocation: 2 } },
      says: 'actor_limits.max_tool_calls_per_invocation: 2 is looser',
    },
    {
      name: 'retries of the profile',
      locked: {},
      change: { actor_limits: { max_retries_per_failure: 9 } },
      says: 'max_retries_per_step, from profile',
    },
    {
      name: 'approval for writes',
      locked: { require_approval_for_writes: true },
      change: { require_approval_for_writes: false },
      says: 'require_approval_for_writes: false is looser than true',
    },
    {
      name: 'approval for apply',
      locked: { require_approval_for_apply: true },
      change: { require_approval_for_apply: false },
      says: 'require_approval_for_apply',
    },
    {
      name: 'an allowlist',
      locked: { tool_allowlist: ['files.*'] },
      change: { tool_allowlist: ['files.read', 'pay.send'] },
      says: "tool_allowlist: 'pay.send' is not on the allowlist, which is locked into the plan (tool_allowlist, from plan)",
    },
  ])('never loosens what is locked, whoever asks: $name', ({ locked, change, says }) => {
    const driver = open({ guardrails: locked });
    const before = driver.plan;
    const refusal = refusalOf(driver.set(change));
    expect(refusal).toMatchObject({ kind: 'invalid_state', details: { plan_id: before.id } });
    expect(refusal.message).toContain(says);
    expect(driver.plan).toMatchObject({
      policy: before.policy,
      policyDigest: before.policyDigest,
      guards: before.guards,
      approvals: before.approvals,
    });
    expect(driver.trail.at(-1)).toMatchObject({ eventType: 'guard_revision_refused', result: 'denied', reason: refusal.message });
  });

  it('of an org that denies cannot be undone by a plan: deny, thresholds and limits stay the strictest (a plan of its own cannot either)', () => {
    const driver = open({
      orgFloor: { tool_denylist: ['pay.send'], tool_budget: 1 },
      guardrails: { tool_denylist: [], tool_allowlist: ['pay.send'], tool_budget: 1e6 },
    });
    expect(driver.plan.policy).toMatchObject({
      denylist: [{ pattern: 'pay.send', origin: 'org' }],
      planCapMicroUsd: { value: 1_000_000, origin: 'org' },
    });
    const refusal = refusalOf(driver.revise(list('remove', 'denylist', 'pay.send')));
    expect(refusal).toMatchObject({ kind: 'invalid_state', details: { origin: 'org', entry: 'pay.send' } });
    expect(refusal.message).toContain('was put on the denylist by org');
    expect(refusalOf(driver.set({ tool_budget: 2 })).message).toContain('from org');
  });

  it.each(['denylist', 'allowlist'] as const)('adds nothing to the %s that can match no tool', (name) => {
    const driver = open({});
    const refusal = refusalOf(driver.revise(list('add', name, 'rm -rf *'), OPERATOR));
    expect(refusal).toMatchObject({ kind: 'invalid', issues: [{ field: 'tool' }] });
    expect(driver.rowsOf('guard_revised')).toEqual([]);
  });

  it.each([
    { list: 'denylist' as const, locked: { tool_denylist: ['shell.*'] } },
    { list: 'required_confirmations' as const, locked: { required_confirmations: ['shell.*'] } },
  ])('adds to the $list, and removes only what a revision added', ({ list: name, locked }) => {
    const driver = open({ guardrails: locked });
    expect(driver.revise(list('add', name, 'pay.send'), OPERATOR).ok).toBe(true);
    expect(driver.revise(list('add', name, 'PAY.SEND'), OPERATOR).ok).toBe(true);
    expect(driver.rowsOf('guard_revised'), 'the same entry again is no revision').toHaveLength(1);
    expect(refusalOf(driver.revise(list('remove', name, 'shell.*'))).details).toMatchObject({ origin: 'plan', entry: 'shell.*' });
    const absent = refusalOf(driver.revise(list('remove', name, 'web.get')));
    expect(absent.message).toContain("'web.get' is not on the");
    expect(absent.message).toContain('nothing was removed');
    expect(driver.rowsOf('guard_revision_refused'), 'a slip is not kept, an attempt is').toHaveLength(1);

    expect(refusalOf(driver.revise(list('remove', name, 'pay.send'), OPERATOR)).kind).toBe('forbidden');
    expect(driver.revise(list('remove', name, 'pay.send')).ok).toBe(true);
    expect(driver.rowsOf('guard_revised').at(-1)?.data).toMatchObject({ loosens: true, own: {} });
    expect(driver.plan.policyDigest).toBe(driver.rowsOf('plan_created')[0]?.data.policy_digest);
  });

  it('never opens an allowlist by taking its last entry away', () => {
    const driver = PlanDriver.make({ profile: 'auto', guardrails: {} }, { execute: [{ calls: [call('files.read')] }] });
    driver.revise(list('add', 'allowlist', 'files.read'), OPERATOR);
    expect(driver.revise(list('remove', 'allowlist', 'files.read'), OPERATOR).ok).toBe(true);
    expect(driver.plan.policy.allowlists).toEqual([{ origin: 'revision', entries: [] }]);
    driver.run();
    expect(driver.only).toMatchObject({ kind: 'call', guard: 'allowlist' });
    expect(refusalOf(driver.set({ tool_allowlist: null }, OPERATOR)).kind).toBe('forbidden');
    expect(driver.set({ tool_allowlist: null }).ok).toBe(true);
    expect(driver.plan.policy.allowlists).toEqual([]);
  });

  it('keeps to the allowlist that is locked: what it names can be narrowed, not taken off or added to', () => {
    const driver = open({ guardrails: { tool_allowlist: ['files.*', 'web.get'] } });
    expect(refusalOf(driver.revise(list('add', 'allowlist', 'pay.send'))).details).toMatchObject({ origin: 'plan' });
    expect(refusalOf(driver.revise(list('remove', 'allowlist', 'web.get'))).message).toContain('give the plan a narrower allowlist');
    expect(driver.set({ tool_allowlist: ['files.read', 'web.get'] }, OPERATOR).ok).toBe(true);
    expect(refusalOf(driver.revise(list('add', 'allowlist', 'files.write'), OPERATOR)).kind).toBe('forbidden');
    expect(driver.revise(list('remove', 'allowlist', 'web.get'), OPERATOR).ok).toBe(true);
    expect(driver.plan.guards.own).toEqual({ tool_allowlist: ['files.read'] });
    expect(refusalOf(driver.revise(list('remove', 'allowlist', 'web.get'))).message).toContain('web.get');
  });

  it('gives back what the plan tightened, up to what is locked, to somebody who may approve', () => {
    const driver = open({ guardrails: { tool_budget: 5 } });
    driver.set({ tool_budget: 2, max_total_cost: 3 }, AGENT);
    for (const by of [OPERATOR, AGENT, { ...ASKER, separateRequester: true }]) {
      expect(refusalOf(driver.set({ tool_budget: 2.5 }, by)).kind).toBe('forbidden');
    }
    expect(driver.set({ tool_budget: 4 }).ok).toBe(true);
    expect(driver.plan.policy.planCapMicroUsd, 'the other limit still holds').toMatchObject({ value: 3_000_000, field: 'max_total_cost' });
    expect(refusalOf(driver.set({ max_total_cost: 5.000001 })).kind).toBe('invalid_state');
    expect(driver.set({ tool_budget: null, max_total_cost: null }).ok).toBe(true);
    expect(driver.plan.policy.planCapMicroUsd).toMatchObject({ value: 5_000_000, field: 'tool_budget', origin: 'plan' });
    expect(driver.plan.guards).toEqual({ revision: 4, locked: null, own: {} });
  });

  it('that says what holds already changes nothing and is no row', () => {
    const driver = open({ guardrails: { tool_budget: 5, require_approval_for_writes: true } });
    driver.set({ tool_budget: 2 });
    const { length } = driver.rows;
    for (const change of [{ tool_budget: 2 }, { max_steps: null }, { require_approval_for_writes: false as const }]) driver.set(change);
    expect(driver.rows.length).toBe(length + 1);
    expect(driver.rows.at(-1)?.type).toBe('guard_revision_refused');
    expect(driver.plan.guards.revision).toBe(2);
  });

  it('is bounded in size and refused for a plan that has ended', () => {
    const driver = open();
    const many = Array.from({ length: 900 }, (_, index) => `tool_of_the_number_${index}`);
    expect(refusalOf(driver.set({ tool_denylist: many })).kind).toBe('too_large');
    driver.set({ tool_denylist: many.slice(0, 500) });
    expect(refusalOf(driver.set({ required_confirmations: many.slice(0, 500) })).kind).toBe('too_large');
    expect(driver.rowsOf('guard_revised')).toHaveLength(1);
    driver.cancel();
    const ended = refusalOf(driver.set({ max_steps: 1 }));
    expect(ended).toMatchObject({ kind: 'invalid_state', details: { phase: 'action', state: 'cancelled' } });
    expect(bind(driver, { guardrails: { max_steps: 1 } }).ok).toBe(false);
  });
});

describe('what humans granted', () => {
  /** Cap $0.10, of which a human granted $0.10 more; spent $0.20. */
  const granted = (): PlanDriver => {
    const driver = PlanDriver.run(
      { guardrails: { tool_budget: 0.1 } },
      { execute: [0, 1, 2].map((n): Move => ({ calls: [call('model.ask', { n })] })) },
    );
    driver.approve();
    return driver.run();
  };

  it('counts in what is set: whoever says "at most $0.15" means it', () => {
    const driver = granted();
    expect(remaining(driver.plan.ledger, driver.plan.policy.planCapMicroUsd)).toBe(0);
    expect(driver.set({ tool_budget: 0.15 }, OPERATOR).ok).toBe(true);
    expect(driver.plan.ledger.grantedMicroUsd).toBe(50_000);
    expect(driver.rowsOf('guard_revised')[0]?.data).toMatchObject({ loosens: false, grants: { cost_micro_usd: 50_000 } });
    expect(driver.only.reason).toContain('$0.30 > $0.15');
  });

  it('is gone below what is locked, and does not come back when the limit is given back', () => {
    const driver = granted();
    driver.set({ max_total_cost: 0.05 }, OPERATOR);
    expect(driver.plan.ledger.grantedMicroUsd).toBe(0);
    expect(driver.set({ max_total_cost: null }).ok).toBe(true);
    expect(driver.plan.policy.planCapMicroUsd?.value).toBe(100_000);
    expect(driver.plan.ledger.grantedMicroUsd).toBe(0);
  });

  it('does not let a revision go beyond it', () => {
    expect(refusalOf(granted().set({ tool_budget: 0.21 })).message).toContain('$0.21 is looser than $0.20');
  });

  it('of steps and retries is withdrawn in the same way', () => {
    const driver = PlanDriver.run(
      { guardrails: { max_steps: 1 } },
      { execute: [0, 1, 2].map((n): Move => ({ calls: [call('files.read', { n })] })) },
    );
    driver.approve(driver.only, { grant: { steps: 5 } });
    expect(driver.plan.grants.steps).toBe(5);
    driver.set({ max_steps: 2 }, OPERATOR);
    expect(driver.plan.grants.steps).toBe(1);
    driver.run();
    expect(driver.tools).toHaveLength(2);
    expect(driver.only).toMatchObject({ kind: 'limit', guard: 'step_limit', reason: expect.stringContaining('2/2') });
  });
});

describe('what is open when the guards change (H07)', () => {
  it('a: a tool that is denied meanwhile is asked about anew; the old question cannot be answered any more', () => {
    const driver = PlanDriver.run({ guardrails: { require_approval_for_writes: true } }, PAYS);
    const old = driver.only;
    expect(driver.revise(list('add', 'denylist', 'pay.send'), OPERATOR).ok).toBe(true);
    const fresh = driver.only;
    expect(fresh).toMatchObject({ kind: 'call', guard: 'denylist', callIds: old.callIds });
    expect(fresh.digest).not.toBe(old.digest);
    expect(refusalOf(driver.approve(old)).details).toMatchObject({ status: 'revoked' });
    expect(refusalOf(driver.approve(fresh, { digest: old.digest })).message).toContain('digest');
    expect(driver.tools).toEqual([]);
    driver.approve(fresh);
    driver.run();
    expect(driver.tools).toEqual(['pay.send']);
    const asked = driver.trail.filter(
      (entry) =>
        entry.eventType === 'denylist_blocked' || entry.eventType === 'write_approval_required' || entry.eventType === 'call_allowed',
    );
    const [first, second, ran] = asked.map((entry) => entry.context['policy_digest']);
    expect(first).not.toBe(second);
    expect(ran).toBe(second);
  });

  it('a: what the org denies meanwhile is refused for good', () => {
    const driver = atDenied();
    bind(driver, { guardrails: { tool_denylist: ['pay.send'] } });
    expect(driver.pending).toEqual([]);
    expect(driver.run().at).toBe('execute/errored');
    expect(driver.tools).toEqual([]);
    expect(driver.rowsOf('guard_revised')[0]?.data).toMatchObject({ origin: 'org', change: { kind: 'floor' } });
  });

  it('b: a budget that is lowered meanwhile is met when the call is approved', () => {
    const driver = atDenied();
    driver.set({ tool_budget: 0.3 }, OPERATOR);
    driver.approve();
    expect(driver.only).toMatchObject({ kind: 'limit', guard: 'budget_cap', reason: expect.stringContaining('$0.50 > $0.30') });
    expect(driver.tools).toEqual([]);
    driver.approve();
    driver.run();
    expect(driver.tools).toEqual(['pay.send']);
  });

  it('d: a threshold that the org raises meanwhile needs this one approval and no other', () => {
    const profile = profileOf('full-auto', { name: 'half', execute_command: 0.7 });
    const driver = PlanDriver.run({ profile }, PAYS);
    const old = driver.only;
    bind(driver, { threshold_minima: { execute_command: 0.9 } });
    expect(driver.only).toMatchObject({ kind: 'gate', gate: 'execute_command', threshold: 0.9, callIds: old.callIds });
    expect(driver.approve(old).ok).toBe(false);
    driver.approve();
    driver.run();
    expect(driver.tools).toEqual(['pay.send']);
  });

  it.each([
    { name: 'decompose_task', options: { profile: 'manual' }, script: {} },
    { name: 'create_tool', options: { profile: profileOf('full-auto', { create_tool: 1 }) }, script: {} },
    {
      name: 'select_tool',
      options: { profile: profileOf('full-auto', { select_tool: 1 }) },
      script: { execute: [{ calls: [call('files.write')] }] },
    },
    { name: 'edit_code', options: { profile: profileOf('full-auto', { edit_code: 1 }) }, script: { strategize: [{ decide: 'how?' }] } },
    {
      name: 'access_network',
      options: { profile: profileOf('full-auto', { access_network: 1 }) },
      script: { execute: [{ calls: [call('files.write')] }], apply: () => ({ status: 'moved', head: 'd'.repeat(64) }) },
    },
    {
      name: 'modify_config',
      options: { profile: profileOf('full-auto', { modify_config: 1 }) },
      script: {
        execute: [{ calls: [call('web.get')] }],
        outcome: () => ({ status: 'failed', error: { code: 'busy', message: 'busy', transient: true }, dispatched: true, reportedUsd: 0 }),
      },
    },
  ] as const)(
    'the gate $name is asked again under the new digest, with the same subject, and passes once it is approved',
    ({ name, options, script }) => {
      const driver = PlanDriver.run(options as PlanOptions, script as Script);
      const old = driver.only;
      const at = driver.at;
      driver.set({ max_steps: 7 }, OPERATOR);
      expect(driver.only).toMatchObject({ gate: name, subject: old.subject, callIds: old.callIds, reason: old.reason });
      expect(driver.only.digest).not.toBe(old.digest);
      expect(driver.at).toBe(at);
      expect(driver.approve().ok).toBe(true);
      expect(driver.at).not.toBe(at);
    },
  );

  it('a gate of apply that only a revision had asked for lets the plan go on when it is given back', () => {
    const driver = PlanDriver.make({}, { execute: [{ calls: [call('files.write')] }] });
    driver.set({ require_approval_for_apply: true }, OPERATOR);
    driver.run();
    expect(driver.only).toMatchObject({ gate: 'select_tool', guard: 'apply_approval' });
    driver.set({ require_approval_for_apply: false });
    expect(driver.run().at).toBe('apply/applied (end)');
  });

  it('questions, and what nobody knows the outcome of, stay as they are', () => {
    const driver = PlanDriver.run({}, { execute: [{ ask: 'which?' }] });
    const asked = driver.only;
    driver.set({ max_steps: 9 });
    expect(driver.only).toEqual(asked);
    expect(driver.answer(asked.id, 'answer', { text: 'blue' }).ok).toBe(true);

    const lost = PlanDriver.run({}, { ...PAYS, outcome: () => ({ status: 'unknown', reason: 'the line went dead' }) });
    const unknown = lost.only;
    lost.revise(list('add', 'denylist', 'pay.send'));
    expect(lost.only).toEqual(unknown);
    lost.answer(unknown.id, 'answer', { text: 'retry' });
    expect(lost.only, 'a repeat is decided under the guards of now').toMatchObject({ kind: 'call', guard: 'denylist' });
  });

  it('an approval that was given and not used yet falls with the policy', () => {
    const driver = PlanDriver.run({ guardrails: { tool_denylist: ['pay.*'], tool_budget: 0.1 } }, PAYS);
    driver.approve();
    expect(driver.only, 'the call is approved, its money is not').toMatchObject({ kind: 'limit' });
    driver.set({ max_steps: 9 });
    expect(driver.only).toMatchObject({ kind: 'call', guard: 'denylist' });
    driver.approve();
    driver.approve();
    driver.run();
    expect(driver.tools).toEqual(['pay.send']);
  });

  it('a call that was authorised and not sent gives its money back and is decided again; one that was sent settles', () => {
    const driver = PlanDriver.make({}, { execute: [{ calls: [call('pay.send'), call('queue.take')] }] });
    while (driver.callStates().length === 0) driver.turn();
    expect(driver.callStates()).toEqual(['authorised', 'authorised']);
    driver.do({ type: 'mark_sent', callId: 'c1', attempt: 1 });
    driver.set({ tool_denylist: ['pay.*', 'queue.*'] }, OPERATOR);
    expect(driver.rowsOf('guard_revised')[0]?.data.withdrawn).toEqual(['c2']);
    expect(driver.callStates()).toEqual(['sent', 'asked']);
    expect(driver.plan.ledger.reservations).toMatchObject([{ id: 'c1.1', amountMicroUsd: 500_000 }]);
    expect(driver.plan.callsInStep).toBe(1);
    expect(driver.do({ type: 'mark_sent', callId: 'c2', attempt: 1 }).ok).toBe(false);
    expect(driver.settle('c1', succeeded()).ok).toBe(true);
    driver.approve();
    driver.run();
    expect(spentMicroUsd(driver.plan.ledger)).toBe(700_000);
  });

  it('a cap below what is spent blocks even free calls, keeps what is done, and goes on after a raise', () => {
    const driver = PlanDriver.make({}, { execute: [{ calls: [call('model.ask')] }, { calls: [call('files.write')] }] });
    while (driver.tools.length === 0) driver.turn();
    const { changes } = driver.plan;
    driver.set({ tool_budget: 0.04 }, OPERATOR);
    driver.run();
    expect(driver.plan.changes).toEqual(changes);
    expect(driver.only).toMatchObject({ kind: 'limit', guard: 'budget_cap', suggestedGrant: { cost_usd: 0.06 } });
    expect(driver.only.reason).toContain('$0.10 > $0.04');
    driver.approve();
    expect(driver.run().at).toBe('apply/applied (end)');
  });

  it('an unattended plan under a tighter cap ends cleanly with the reason', () => {
    const driver = PlanDriver.make({ profile: 'ci' }, { execute: [{ calls: [call('model.ask')] }] });
    driver.set({ max_total_cost: 0.01 });
    expect(driver.run().at).toBe('execute/errored (end)');
    expect(driver.plan.failure?.last.message).toContain('$0.10 > $0.01');
    expect(driver.plan.approvals).toEqual([]);
  });

  it('warns when the lower cap is nearly used', () => {
    const driver = PlanDriver.make({}, { execute: [{ calls: [call('model.ask')] }, { ask: 'on?' }] });
    driver.run();
    driver.set({ tool_budget: 0.11 });
    expect(driver.rowsOf('budget_warning')).toHaveLength(1);
  });
});

describe('a floor that comes after the plan', () => {
  it('binds what is locked, keeps what the plan tightened, and twice is once', () => {
    const driver = open({ guardrails: { tool_budget: 5 } });
    driver.set({ tool_budget: 4, max_steps: 3 });
    const floor: OrgPolicy = { guardrails: { tool_budget: 4.5 }, threshold_minima: { edit_code: 1 } };
    expect(bind(driver, floor).ok).toBe(true);
    const { length } = driver.rows;
    expect(bind(driver, floor).ok).toBe(true);
    expect(driver.rows).toHaveLength(length);
    expect(driver.plan.policy).toMatchObject({
      planCapMicroUsd: { value: 4_000_000, origin: 'revision', ceiling: 4_500_000 },
      maxSteps: { value: 3 },
    });
    expect(driver.plan.guards.revision).toBe(3);
    expect(refusalOf(driver.set({ tool_budget: 4.6 }, BOSS)).message).toContain('from org');
    expect(driver.set({ tool_budget: 4.5 }).ok).toBe(true);
  });

  it('that is taken away loosens nothing in a plan that runs', () => {
    const driver = open({ orgFloor: { max_steps: 2 } });
    const { length } = driver.rows;
    expect(bind(driver, NO_FLOOR).ok).toBe(true);
    expect(driver.rows).toHaveLength(length);
    expect(driver.plan.policy.maxSteps?.value).toBe(2);
  });
});
