import { describe, expect, it } from 'vitest';
import type { Guardrails } from '../../../src/core/guard-policy.ts';
import {
  AGENT,
  ASKER,
  BOSS,
  call,
  FACTS,
  OPEN,
  OPERATOR,
  PlanDriver,
  PROJECT,
  profileOf,
  refusalOf,
  type Script,
  succeeded,
} from './plan-driver.ts';

const DENIED: Guardrails = { tool_denylist: ['files.write'] };
const ONE: Script = { execute: [{ calls: [call('files.write', { path: 'a' })] }] };
const DAY_MS = 86_400_000;

const waiting = (guardrails: Guardrails = DENIED, script = ONE): PlanDriver => PlanDriver.run({ guardrails }, script);

describe('a call that a guard wants a human for', () => {
  const rows: readonly {
    readonly name: string;
    readonly options: Parameters<typeof PlanDriver.run>[0];
    readonly script: Script;
    readonly guard: string;
  }[] = [
    { name: 'denylist', options: { guardrails: DENIED }, script: ONE, guard: 'denylist' },
    {
      name: 'denylist, by an alias',
      options: { guardrails: DENIED },
      script: { execute: [{ calls: [call('write_file')] }] },
      guard: 'denylist',
    },
    { name: 'allowlist', options: { guardrails: { tool_allowlist: ['files.read'] } }, script: ONE, guard: 'allowlist' },
    { name: 'empty allowlist', options: { guardrails: { tool_allowlist: [] } }, script: ONE, guard: 'allowlist' },
    { name: 'write approval', options: { guardrails: { require_approval_for_writes: true } }, script: ONE, guard: 'write_approval' },
    { name: 'confirmation', options: { guardrails: { required_confirmations: ['files.write'] } }, script: ONE, guard: 'confirmation' },
    {
      name: 'human approval per step',
      options: { profile: profileOf('full-auto', { name: 'stepwise', safety: { require_human_approval: true } }) },
      script: ONE,
      guard: 'step_approval',
    },
    {
      name: 'protected path',
      options: {},
      script: { execute: [{ calls: [call('files.write', { path: '.env' })], facts: [{ ...FACTS, protectedPaths: ['.env'] }] }] },
      guard: 'protected_path',
    },
  ];

  it.each(rows)('$name: asks with what it is about, runs once when approved', ({ options, script, guard }) => {
    const driver = PlanDriver.run({ ...options, project: PROJECT }, script);
    expect(driver.at).toBe('execute/waiting');
    const approval = driver.only;
    expect(approval).toMatchObject({ kind: 'call', guard, callIds: ['c1'], subject: { call: { tool: 'files.write' } } });
    expect(approval.reason).toMatch(/Remediation: /);
    expect(driver.tools).toEqual([]);
    expect(driver.approve().ok).toBe(true);
    driver.run();
    expect(driver.tools).toEqual(['files.write']);
    expect(driver.at).toBe('apply/applied (end)');
    const decided = driver.rowsOf('call_decided').at(-1)?.data;
    expect(decided).toMatchObject({ allowed: true, consumed_approval: approval.id });
    expect(decided?.guards.find((verdict) => verdict.guard === guard)?.reason).toBe(`approved by ${approval.id}`);
  });

  it.each(rows)('$name: never runs when denied, and is not reported as done', ({ options, script }) => {
    const driver = PlanDriver.run(options, script);
    driver.deny(driver.only, { reason: 'no' });
    driver.run();
    expect(driver.tools).toEqual([]);
    expect(driver.plan.results.at(-1)).toMatchObject({ status: 'refused', reason: 'not executed: denied by boss: no' });
    expect(driver.at).toBe('execute/errored');
  });

  it.each([
    { name: 'an unsafe tool', options: { profile: 'auto' }, tool: 'shell.run', event: 'unsafe_blocked' },
    { name: 'a change outside under a sandbox', options: { profile: 'auto' }, tool: 'pay.send', event: 'sandbox_blocked' },
    { name: 'what the org denies', options: { orgFloor: { tool_denylist: ['files.*'] } }, tool: 'files.write', event: 'denylist_blocked' },
    { name: 'a tool that is not known', options: {}, tool: 'no.such', event: 'tool_blocked' },
    { name: 'a tool under a disguised name', options: {}, tool: 'FILES.WRITE', event: 'tool_blocked' },
  ])('$name is refused without asking anybody', ({ options, tool, event }) => {
    const driver = PlanDriver.run(options, { execute: [{ calls: [call(tool)] }] });
    expect(driver.plan.approvals).toEqual([]);
    expect(driver.tools).toEqual([]);
    expect(driver.trail.filter((entry) => entry.eventType === event)).toHaveLength(1);
    expect(driver.at).toBe('execute/errored');
  });

  it('with arguments that the schema refuses never reaches a human or the tool', () => {
    const facts = [{ ...FACTS, issues: [{ field: 'arguments.path', message: 'is required' }] }];
    const driver = PlanDriver.run({ guardrails: DENIED }, { execute: [{ calls: [call('files.write')], facts }] });
    expect(driver.plan.approvals).toEqual([]);
    expect(driver.rowsOf('call_decided')[0]?.data).toMatchObject({
      guard: 'arguments',
      allowed: false,
      reason: 'Invalid arguments: arguments.path: is required',
    });
    expect(driver.tools).toEqual([]);
  });

  it('needs a human for what goes outside with content that came from outside', () => {
    const driver = PlanDriver.run(
      {},
      { execute: [{ calls: [call('web.get')] }, { calls: [call('pay.send')] }], outcome: () => succeeded({ taint: 'web' }) },
    );
    expect(driver.only).toMatchObject({ kind: 'call', guard: 'taint' });
    expect(driver.tools).toEqual(['web.get']);
  });

  it.each([
    ['pay.example.com', true],
    ['evil.test', false],
    [null, false],
  ])('needs none for a host that the profile names: to %s it goes without: %s', (host, free) => {
    const facts = { ...FACTS, ...(host === null ? {} : { hosts: [host] }) };
    const driver = PlanDriver.run(
      { profile: profileOf('full-auto', { name: 'hosts', safety: { tainted_write_hosts: ['*.example.com'] } }) },
      {
        execute: [{ calls: [call('web.get')] }, { calls: [call('pay.send')], facts: [facts] }],
        outcome: (each) => (each.tool === 'web.get' ? succeeded({ taint: 'web' }) : succeeded()),
      },
    );
    expect(driver.tools).toEqual(free ? ['web.get', 'pay.send'] : ['web.get']);
    expect(driver.pending.map(({ kind, guard }) => [kind, guard])).toEqual(free ? [] : [['call', 'taint']]);
  });
});

describe('an approval', () => {
  it('is for one call: the same tool with the same arguments is asked for again', () => {
    const driver = waiting(DENIED, {
      execute: [{ calls: [call('files.write', { path: 'a' })] }, { calls: [call('files.write', { path: 'a' })] }],
    });
    const first = driver.only;
    driver.approve();
    driver.run();
    expect(driver.tools).toEqual(['files.write']);
    const second = driver.only;
    expect(second.callIds).toEqual(['c2']);
    expect(second.digest).not.toBe(first.digest);
    expect(refusalOf(driver.approve(first)).details).toMatchObject({ status: 'approved' });
    expect(refusalOf(driver.answer(second.id, 'approve', { digest: first.digest })).kind).toBe('invalid_state');
    expect(driver.tools).toEqual(['files.write']);
  });

  it('has a digest that covers arguments, tool, estimate, profile and policy', () => {
    const digestOf = (options: Parameters<typeof PlanDriver.run>[0], toolName = 'files.write', path = 'a', cost = 0) =>
      PlanDriver.run(options, { execute: [{ calls: [call(toolName, { path }, { declaredCostUsd: cost })] }] }).only.digest;
    const base = { guardrails: { tool_denylist: ['files.*'] } };
    const digests = [
      digestOf(base),
      digestOf(base, 'files.read'),
      digestOf(base, 'files.write', 'b'),
      digestOf(base, 'files.write', 'a', 0.01),
      digestOf({ ...base, profile: { ...OPEN, description: 'another' } }),
      digestOf({ guardrails: { ...base.guardrails, max_steps: 5 } }),
    ];
    expect(new Set(digests).size).toBe(digests.length);
    expect(digestOf(base)).toBe(digests[0]);
  });

  it('does not depend on the order of the members of the arguments', () => {
    const digestOf = (args: { readonly [key: string]: string }) =>
      PlanDriver.run({ guardrails: DENIED }, { execute: [{ calls: [call('files.write', args)] }] }).only.digest;
    expect(digestOf({ a: '1', b: '2' })).toBe(digestOf({ b: '2', a: '1' }));
  });

  const refusals: readonly {
    readonly name: string;
    readonly kind: string;
    readonly give: (driver: PlanDriver) => ReturnType<PlanDriver['do']>;
  }[] = [
    { name: 'with another digest', kind: 'invalid_state', give: (driver) => driver.approve(driver.only, { digest: '0'.repeat(64) }) },
    { name: 'without a digest', kind: 'invalid', give: (driver) => driver.approve(driver.only, { digest: null }) },
    { name: 'by a key of kind agent', kind: 'forbidden', give: (driver) => driver.approve(driver.only, { by: AGENT }) },
    { name: 'by an operator', kind: 'forbidden', give: (driver) => driver.approve(driver.only, { by: OPERATOR }) },
    {
      name: 'by the requester, where they are separate',
      kind: 'forbidden',
      give: (driver) => driver.approve(driver.only, { by: { ...ASKER, separateRequester: true } }),
    },
    {
      name: 'after its expiry, even before the clock was noticed',
      kind: 'invalid_state',
      give: (driver) => driver.wait(7 * DAY_MS).approve(driver.only),
    },
    {
      name: 'with a grant, where nothing is granted',
      kind: 'invalid',
      give: (driver) => driver.approve(driver.only, { grant: { calls: 1 } }),
    },
    { name: 'as an answer', kind: 'invalid', give: (driver) => driver.answer(driver.only.id, 'answer', { text: 'yes' }) },
  ];

  it.each(refusals)('is refused $name; the refusal is recorded and the call waits on', ({ kind, give }) => {
    const driver = waiting();
    const before = driver.rows.length;
    expect(refusalOf(give(driver)).kind).toBe(kind);
    expect(driver.rows.slice(before).map((row) => row.type)).toEqual(['approval_refused']);
    expect(driver.at).toBe('execute/waiting');
    expect(driver.callStates()).toEqual(['asked']);
  });

  it('says in the trail by itself what it was about, what was offered and under what it was decided', () => {
    const driver = waiting();
    const [call] = Object.values(driver.plan.calls);
    if (call === undefined) throw new Error('no call');
    const of = (eventType: string) => driver.trail.filter((entry) => entry.eventType === eventType);
    const { only } = driver;
    const under = { profile_digest: driver.plan.profile.digest, policy_digest: driver.plan.policyDigest };
    const about = { step: call.step, tool: call.tool, arguments_digest: call.argumentsDigest };
    const offered = 'f'.repeat(64);
    refusalOf(driver.approve(only, { digest: offered }));
    expect(of('approval_refused')).toMatchObject([
      { reason: expect.any(String), context: { ...under, ...about, kind: only.kind, digest: only.digest, offered_digest: offered } },
    ]);
    const denials = driver.trail.filter((entry) => entry.context['call_id'] === call.id && entry.result === 'denied');
    expect(denials.length).toBeGreaterThan(0);
    for (const entry of denials) {
      expect(entry.context).toMatchObject({ ...under, ...about, threshold: expect.any(Number), confidence: expect.anything() });
    }
    expect(driver.approve(only).ok).toBe(true);
    expect(of('approval_decided')).toMatchObject([{ context: { ...under, ...about, kind: only.kind, digest: only.digest } }]);
    driver.run();
    const settled = of('effect_settled').filter(({ context }) => context['call_id'] === call.id);
    expect(settled).toMatchObject([{ context: { ...under, ...about } }]);
  });

  it('by the requester is accepted where they are not separate', () => {
    const driver = waiting();
    expect(driver.approve(driver.only, { by: ASKER }).ok).toBe(true);
  });

  it('that does not exist is not found, and is one refused entry', () => {
    const driver = waiting();
    const before = driver.rows.length;
    expect(refusalOf(driver.answer(`${driver.plan.id}.999`, 'approve')).kind).toBe('not_found');
    expect(driver.rows).toHaveLength(before + 1);
    expect(driver.rows.at(-1)).toMatchObject({ type: 'approval_refused', actor: BOSS.actor });
  });

  it('given twice runs the call once', () => {
    const driver = waiting();
    const approval = driver.only;
    driver.approve(approval);
    expect(refusalOf(driver.approve(approval)).kind).toBe('invalid_state');
    driver.run();
    expect(refusalOf(driver.approve(approval)).kind).toBe('invalid_state');
    expect(driver.tools).toEqual(['files.write']);
  });

  it('that came too late for a denied call does not revive it', () => {
    const driver = waiting();
    const approval = driver.only;
    driver.deny(approval);
    expect(refusalOf(driver.approve(approval)).details).toMatchObject({ status: 'denied' });
    driver.run();
    expect(driver.tools).toEqual([]);
  });

  it('goes through the guards again: money that was spent meanwhile is missed', () => {
    const driver = waiting(
      { tool_denylist: ['queue.*'], tool_budget: 0.3 },
      { execute: [{ calls: [call('queue.take'), call('model.ask'), call('model.ask')] }] },
    );
    expect(driver.tools).toEqual(['model.ask', 'model.ask']);
    driver.approve();
    expect(driver.only).toMatchObject({ kind: 'limit', guard: 'budget_cap' });
    expect(driver.tools).not.toContain('queue.take');
  });

  it('records who decided, from the key and not from what the answer says', () => {
    const driver = waiting();
    driver.answer(driver.only.id, 'approve', { reason: 'approved by the president' });
    expect(driver.rowsOf('approval_decided')[0]).toMatchObject({
      actor: BOSS.actor,
      data: { by: BOSS.actor, reason: 'approved by the president' },
    });
  });
});

describe('time and approvals', () => {
  it('expire after seven days with a reminder a day before, and the plan asks how to go on', () => {
    const driver = waiting();
    driver.wait(6 * DAY_MS - 1).run();
    expect(driver.rowsOf('approval_reminded')).toHaveLength(0);
    driver.wait(1).run();
    expect(driver.rowsOf('approval_reminded')).toHaveLength(1);
    driver.wait(DAY_MS - 1).run();
    expect(driver.rowsOf('approval_reminded')).toHaveLength(1);
    expect(driver.only.kind).toBe('call');
    driver.wait(1).run();
    expect(driver.plan.approvals[0]?.status).toBe('expired');
    expect(driver.only).toMatchObject({ kind: 'next_step', expiresAt: null });
    expect(driver.at).toBe('execute/waiting');
  });

  it('ask for exactly the call again when the next step is to retry', () => {
    const driver = waiting(DENIED, { execute: [{ calls: [call('files.read'), call('files.write')] }] });
    driver.wait(7 * DAY_MS).run();
    driver.approve();
    expect(driver.only).toMatchObject({ kind: 'call', callIds: ['c2'] });
    driver.approve();
    driver.run();
    expect(driver.tools, 'what ran before is not repeated').toEqual(['files.read', 'files.write']);
  });

  it('leave no call behind when one of two expires', () => {
    const driver = waiting({ tool_denylist: ['files.*'] }, { execute: [{ calls: [call('files.read'), call('files.write')] }] });
    const [first, second] = driver.pending;
    if (first === undefined || second === undefined) throw new Error('two are pending');
    driver.do({ type: 'extend', by: BOSS, approvalId: second.id, expiresAt: new Date(driver.nowMs + 20 * DAY_MS).toISOString() });
    driver.wait(7 * DAY_MS).run();
    expect(driver.pending.map(({ kind }) => kind)).toEqual(['call', 'next_step']);
    driver.approve(second);
    driver.run();
    expect(driver.tools).toEqual(['files.write']);
    expect(driver.at).toBe('execute/waiting');
    driver.answer(driver.only.id, 'answer', { text: 'leave the other out' });
    driver.run();
    expect(driver.plan.results.at(-1)).toMatchObject({ status: 'refused' });
    expect(driver.tools).toEqual(['files.write']);
  });

  it('ask a question again that nobody answered, and its step counts once', () => {
    const driver = PlanDriver.run({ guardrails: { max_steps: 1 } }, { execute: [{ ask: 'where?' }] });
    driver.wait(7 * DAY_MS).run();
    expect(driver.only.kind).toBe('next_step');
    driver.approve();
    driver.run();
    expect(driver.only).toMatchObject({ kind: 'question', reason: 'where?' });
    driver.answer(driver.only.id, 'answer', { text: 'here' });
    driver.run();
    expect(driver.plan.results).toMatchObject([{ stepId: 'e1', status: 'succeeded', values: [{ inline: 'here' }] }]);
    expect(driver.plan.stepsUsed).toBe(1);
  });

  it('can be extended by who may approve, and only forward', () => {
    const driver = waiting();
    const extend = (by: typeof BOSS, ms: number) =>
      driver.do({ type: 'extend', by, approvalId: driver.only.id, expiresAt: new Date(driver.nowMs + ms).toISOString() });
    expect(refusalOf(extend(AGENT, DAY_MS)).kind).toBe('forbidden');
    expect(refusalOf(extend(BOSS, 0)).kind).toBe('invalid');
    expect(refusalOf(driver.do({ type: 'extend', by: BOSS, approvalId: driver.only.id, expiresAt: 'soon' })).kind).toBe('invalid');
    expect(extend(BOSS, 30 * DAY_MS).ok).toBe(true);
    driver.wait(20 * DAY_MS).run();
    expect(driver.approve().ok).toBe(true);
  });

  it('an instant with an offset counts as the moment that it is', () => {
    const driver = waiting();
    const inTwoHours = new Date(driver.nowMs + 2 * 3_600_000).toISOString().replace('Z', '+03:00');
    expect(refusalOf(driver.do({ type: 'extend', by: BOSS, approvalId: driver.only.id, expiresAt: inTwoHours })).kind, 'an hour ago').toBe(
      'invalid',
    );
  });
});

describe('the approval of a step', () => {
  const STEPWISE = { profile: profileOf('full-auto', { name: 'stepwise', safety: { require_human_approval: true } }), project: PROJECT };
  const three = [call('files.read', { path: 'a' }), call('files.write', { path: 'b' }), call('model.ask', { n: 1 })];

  it('is one question for its calls, and each of them consumes it', () => {
    const driver = PlanDriver.run(STEPWISE, { execute: [{ calls: three }] });
    expect(driver.only).toMatchObject({ kind: 'call', guard: 'step_approval', callIds: ['c1', 'c2', 'c3'], estimateMicroUsd: 100_000 });
    expect(driver.only.reason).toMatch(/^Step 1 requires human approval/);
    expect(driver.only.subject.calls?.map(({ tool }) => tool)).toEqual(['files.read', 'files.write', 'model.ask']);
    const { id } = driver.only;
    expect(driver.approve().ok).toBe(true);
    driver.run();
    expect(driver.tools).toEqual(['files.read', 'files.write', 'model.ask']);
    const allowed = driver.rowsOf('call_decided').filter(({ data }) => data.allowed);
    expect(allowed.map(({ data }) => data.consumed_approval)).toEqual([id, id, id]);
    expect(refusalOf(driver.answer(id, 'approve', { digest: 'f'.repeat(64) })).kind, 'once').toBe('invalid_state');
  });

  it('is asked for in every step', () => {
    const driver = PlanDriver.run(STEPWISE, { execute: [{ calls: three }, { calls: three.slice(0, 2) }] });
    driver.approve();
    driver.run();
    expect(driver.tools).toHaveLength(3);
    expect(driver.only).toMatchObject({ guard: 'step_approval', callIds: ['c4', 'c5'] });
    expect(driver.only.reason).toMatch(/^Step 2 requires human approval/);
  });

  it('covers the calls that it has shown and no call that comes to the step later', () => {
    const driver = PlanDriver.run({ ...STEPWISE, guardrails: { tool_budget: 0 } }, { execute: [{ calls: three }] });
    const [step, limit] = driver.pending;
    expect(step).toMatchObject({ kind: 'call', guard: 'step_approval', callIds: ['c1', 'c2'] });
    expect(limit).toMatchObject({ kind: 'limit', guard: 'budget_cap', callIds: ['c3'] });
    driver.approve(step);
    driver.approve(limit);
    driver.run();
    expect(driver.tools).toEqual(['files.read', 'files.write']);
    expect(driver.only).toMatchObject({ kind: 'call', guard: 'step_approval', callIds: ['c3'] });
    driver.approve();
    driver.run();
    expect(driver.tools).toEqual(['files.read', 'files.write', 'model.ask']);
  });

  it('that is denied runs none of its calls', () => {
    const driver = PlanDriver.run(STEPWISE, { execute: [{ calls: three, onRefused: 'continue' }] });
    driver.deny();
    driver.run();
    expect(driver.tools).toEqual([]);
    expect(driver.plan.results.at(-1)).toMatchObject({ status: 'refused' });
  });

  it('leaves a call with a question of its own to that question', () => {
    const driver = PlanDriver.run({ ...STEPWISE, guardrails: { require_approval_for_writes: true } }, { execute: [{ calls: three }] });
    expect(driver.pending.map(({ guard, callIds }) => [guard, callIds])).toEqual([
      ['step_approval', ['c1', 'c3']],
      ['write_approval', ['c2']],
    ]);
    for (const each of driver.pending) driver.approve(each);
    driver.run();
    expect(driver.tools).toHaveLength(3);
  });
});
