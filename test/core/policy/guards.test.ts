import { describe, expect, it } from 'vitest';
import type { GuardPolicy, Limit, PolicyOrigin } from '../../../src/core/guard-policy.ts';
import type { Guard, GuardFacts, GuardRequest, GuardVerdict } from '../../../src/core/guards/guard.ts';
import { AUDIT_EVENT_TYPES, NO_GRANTS } from '../../../src/core/guards/guard.ts';
import { evaluateApplyGuard, evaluateGuards, evaluateWith, GUARDS } from '../../../src/core/guards/guards.ts';
import { factsOf, OPEN_POLICY, requestOf } from './fixtures.ts';

const limit = (value: number, field = 'field', origin: PolicyOrigin = 'profile', ceiling: number | null = null): Limit => ({
  value,
  field,
  origin,
  ceiling,
});
const deny = (...patterns: readonly string[]): Partial<GuardPolicy> => ({
  denylist: patterns.map((pattern) => ({ pattern, origin: 'profile' as const })),
});
const allow = (...entries: readonly string[]): Partial<GuardPolicy> => ({ allowlists: [{ origin: 'profile', entries }] });

function report(policy: Partial<GuardPolicy>, request: GuardRequest = requestOf('read_file'), facts: Partial<GuardFacts> = {}) {
  return evaluateGuards({ ...OPEN_POLICY, ...policy }, request, factsOf(facts));
}
function first(policy: Partial<GuardPolicy>, request?: GuardRequest, facts?: Partial<GuardFacts>): GuardVerdict | null {
  return report(policy, request, facts).first;
}

describe('a call under a policy that restricts nothing', () => {
  it('is allowed, and every guard is reported', () => {
    const { allowed, first: refusal, eventType, guard, verdicts } = report({});
    expect({ allowed, refusal, eventType, guard }).toEqual({ allowed: true, refusal: null, eventType: 'call_allowed', guard: null });
    expect(verdicts.map((verdict) => verdict.guard)).toEqual(GUARDS.map((one) => one.name));
    expect(verdicts.every((verdict) => verdict.allowed && verdict.reason === null)).toBe(true);
  });

  it('is JSON all through, so that the report can be stored', () => {
    const refused = report({ ...deny('read_file'), planCapMicroUsd: limit(0) }, requestOf('read_file', { costMicroUsd: 1 }));
    expect(JSON.parse(JSON.stringify(refused))).toEqual(refused);
  });
});

describe('the list of guards', () => {
  it('stands in the order of the design', () => {
    expect(GUARDS.map((guard) => guard.name)).toEqual([
      'state',
      'wall_clock',
      'step_limit',
      'actor_tool_calls',
      'retry_limit',
      'denylist',
      'tool',
      'allowlist',
      'unsafe_tools',
      'skill_category',
      'sandbox',
      'checkpoint',
      'protected_path',
      'taint',
      'budget_cap',
      'tool_call_limit',
      'write_approval',
      'confirmation',
      'step_approval',
    ]);
  });

  it('uses only event types of the closed list, no pair twice', () => {
    const used = GUARDS.flatMap((guard) => [guard.events.allowed, guard.events.refused]);
    expect(new Set(used).size).toBe(used.length);
    expect(used.every((type) => AUDIT_EVENT_TYPES.includes(type))).toBe(true);
    expect(AUDIT_EVENT_TYPES.slice(0, 12)).toEqual([
      'step_allowed',
      'step_blocked',
      'budget_allowed',
      'budget_blocked',
      'time_allowed',
      'time_blocked',
      'actor_limit_allowed',
      'actor_limit_blocked',
      'retry_allowed',
      'retry_blocked',
      'confirmation_granted',
      'confirmation_required',
    ]);
  });

  it('denies when a guard throws, with nothing that could override it, and still reports the others', () => {
    const broken: Guard = {
      name: 'broken',
      events: { allowed: 'tool_allowed', refused: 'tool_blocked' },
      check: () => {
        throw new Error('secret detail');
      },
    };
    const {
      allowed,
      first: refusal,
      verdicts,
    } = evaluateWith([broken, ...GUARDS], OPEN_POLICY, requestOf('read_file'), factsOf({ approvedGuards: new Map([['broken', 'p.1']]) }));
    expect(allowed).toBe(false);
    expect(refusal).toMatchObject({ guard: 'broken', allowed: false, approval: 'none', requiresApproval: false });
    expect(refusal?.reason).not.toContain('secret');
    expect(verdicts).toHaveLength(GUARDS.length + 1);
  });
});

describe('the name of the tool', () => {
  it.each([
    [null],
    [undefined],
    [5],
    [[]],
    [{}],
    [''],
    ['  '],
    ['\u200b'],
    ['nobody'],
    ['__proto__'],
    ['constructor'],
    ['toString'],
    ['Read_File'],
    ['read_file '],
    ['read\u200b_file'],
    ['fs..delete'],
    ['fs/delete'],
  ])('is refused when it is %j, with and without lists, and no approval helps', (toolName) => {
    for (const policy of [{}, allow('*'), deny('something_else')]) {
      const refused = report(policy, requestOf(toolName), {
        approvedGuards: new Map([
          ['tool', 'p.1'],
          ['allowlist', 'p.1'],
        ]),
      });
      expect(refused).toMatchObject({ allowed: false, guard: 'tool', eventType: 'tool_blocked', approval: 'none' });
      expect(refused.first?.reason).toMatch(/Remediation: /);
    }
  });

  it('may be the own tool of whoever asks, where the plan is external; then too it must be usable', () => {
    const external = (toolName: unknown, rest = {}) => requestOf(toolName, { unknownTools: 'accept', ...rest });
    expect(report({}, external('my_tool')).allowed).toBe(true);
    expect(report(allow('my_*'), external('my_tool')).allowed).toBe(true);
    expect(first(allow('other'), external('my_tool'))?.guard).toBe('allowlist');
    expect(first({}, external('my tool'))?.guard).toBe('tool');
    expect(first({}, external(5))?.guard).toBe('tool');
    expect(first({ requireApprovalForWrites: true }, external('my_tool'))?.guard).toBe('write_approval');
    expect(report({ requireApprovalForWrites: true }, external('my_tool', { riskClass: 'read' })).allowed).toBe(true);
  });
});

describe('denylist', () => {
  it('says so in the words of the source', () => {
    expect(first(deny('shell_exec'), requestOf('shell_exec'))).toEqual({
      guard: 'denylist',
      eventType: 'denylist_blocked',
      allowed: false,
      reason: "Tool 'shell_exec' is on the denylist. Remediation: remove it from the denylist or request human approval.",
      requiresApproval: true,
      approval: 'call',
    });
  });

  it('names tool and pattern', () => {
    expect(first(deny('shell_*'), requestOf('shell_exec'))?.reason).toBe(
      "Tool 'shell_exec' is on the denylist (pattern 'shell_*'). Remediation: remove it from the denylist or request human approval.",
    );
  });

  it.each([
    ['delete_file', 'rm_file'],
    ['rm_file', 'delete_file'],
    ['rm_*', 'delete_file'],
    ['RM_FILE', 'delete_file'],
  ])('an entry %s denies the call %s of the same tool', (entry, called) => {
    expect(first(deny(entry), requestOf(called))?.guard).toBe('denylist');
  });

  it.each(['FS.Delete', ' fs.delete ', 'fs.delete\u200b', 'fs.d\u0435lete', '\uff46\uff53.\uff44\uff45\uff4c\uff45\uff54\uff45'])(
    'sees %j for the denied fs.delete',
    (called) => {
      expect(first(deny('fs.delete'), requestOf(called))?.guard).toBe('denylist');
    },
  );

  it.each([
    ['shell', 'my_shell'],
    ['shell', 'shell_exec'],
    ['shell_*', 'my_shell_exec'],
    ['*_shell', 'my_shell_exec'],
    ['db.read', 'db.readAll'],
    ['db.read', 'dbxread'],
  ])('stands for whole names: %s does not deny %s', (entry, called) => {
    const asked = requestOf(called, { unknownTools: 'accept' });
    expect(report(deny(entry), asked).allowed).toBe(true);
    expect(report(deny(called), asked).guard, 'the same call is denied by its own name').toBe('denylist');
  });

  it.each([
    ['test/counter', 'test.counter'],
    ['test.counter', 'test/counter'],
    ['fs/delete', 'fs:delete'],
    ['fs/*', 'fs.delete'],
  ])("of a caller's own tools %s denies %s, which is the same tool in another spelling", (entry, called) => {
    expect(report(deny(entry), requestOf(called, { unknownTools: 'accept' })).guard).toBe('denylist');
  });

  it('leaves the spelling to an allowlist, which compares exactly', () => {
    expect(report(allow('test/counter'), requestOf('test.counter', { unknownTools: 'accept' })).guard).toBe('allowlist');
  });

  it('wins over an allowlist that names the tool', () => {
    expect(first({ ...deny('read_file'), ...allow('read_file') })?.guard).toBe('denylist');
  });

  it('leaves no approval where the org denies, even if another source denies too', () => {
    const denylist = [
      { pattern: 'read_file', origin: 'plan' },
      { pattern: 'read_*', origin: 'org' },
    ] as const;
    expect(first({ denylist }, requestOf('read_file'), { approvedGuards: new Map([['denylist', 'p.1']]) })).toMatchObject({
      guard: 'denylist',
      approval: 'none',
    });
  });
});

describe('allowlist', () => {
  it('refuses what is not on it, and allows nothing when empty', () => {
    expect(first(allow('read_file'), requestOf('write_file'))).toMatchObject({
      guard: 'allowlist',
      reason: "Tool 'write_file' is not on the allowlist. Remediation: add it to the allowlist or request human approval.",
      approval: 'call',
      requiresApproval: true,
    });
    expect(first(allow())?.guard).toBe('allowlist');
    expect(report({ allowlists: [] }).allowed).toBe(true);
  });

  it('resolves aliases on both sides, and compares exactly', () => {
    expect(report(allow('rm_file'), requestOf('delete_file')).allowed).toBe(true);
    expect(report(allow('delete_file'), requestOf('rm_file')).allowed).toBe(true);
    expect(report(allow('db.*'), requestOf('db.read')).allowed).toBe(true);
    expect(report(allow('db.read'), requestOf('db.readAll')).allowed).toBe(false);
    expect(report(allow('Read_File')).allowed).toBe(false);
  });

  it('needs the tool on every list', () => {
    const lists = (second: readonly string[], origin: PolicyOrigin) => ({
      allowlists: [
        { origin: 'profile' as const, entries: ['*'] },
        { origin, entries: second },
      ],
    });
    expect(report(lists(['read_file'], 'plan')).allowed).toBe(true);
    expect(first(lists(['write_file'], 'plan'))).toMatchObject({ guard: 'allowlist', approval: 'call' });
    expect(first(lists(['write_file'], 'org'))).toMatchObject({ guard: 'allowlist', approval: 'none' });
  });
});

describe('budget', () => {
  const spend = (spent: number, costMicroUsd: number, cap: Limit | null, rest: Partial<GuardFacts> = {}) =>
    first({ planCapMicroUsd: cap }, requestOf('read_file', { costMicroUsd }), { spentMicroUsd: spent, ...rest });

  it.each(['session', 'org'] as const)('of the %s that is used up has an event type of its own', (level) => {
    const upperRefusal = { kind: 'exceeded', level, capMicroUsd: 1, usedMicroUsd: 1, window: 'total' } as const;
    expect(spend(0, 1, null, { upperRefusal })).toMatchObject({ eventType: `${level}_budget_blocked`, exceededLevel: level });
    expect(spend(0, 1, null, { upperRefusal: { kind: 'unreachable' } })).toMatchObject({ eventType: 'budget_blocked' });
  });

  it('says so in the words of the source, with the field that bound', () => {
    expect(spend(5_000_000, 230_000, limit(5_000_000, 'max_total_cost'))).toEqual({
      guard: 'budget_cap',
      eventType: 'budget_blocked',
      allowed: false,
      reason: 'Budget cap exceeded: $5.23 > $5.00. Remediation: raise max_total_cost, lower cost, or request human approval.',
      requiresApproval: true,
      approval: 'limit',
      limitField: 'max_total_cost',
      limit: 5,
      actual: 5.23,
      exceededLevel: 'plan',
    });
    expect(spend(0, 1_000_001, limit(1_000_000, 'tool_budget'))?.reason).toBe(
      'Budget cap exceeded: $1.000001 > $1.000000. Remediation: raise tool_budget, lower cost, or request human approval.',
    );
  });

  it.each([
    [4_990_000, 0, true],
    [4_990_000, 10_000, true],
    [4_990_000, 20_000, false],
    [5_000_000, 0, true],
    [5_000_000, 1, false],
  ])('with %d spent a call of %d under a cap of 5.00 is allowed: %s', (spent, cost, allowed) => {
    expect(spend(spent, cost, limit(5_000_000)) === null).toBe(allowed);
  });

  it('takes 0 for a cap and null for none', () => {
    expect(spend(0, 10_000, limit(0))?.reason).toMatch(/^Budget cap exceeded: \$0\.01 > \$0\.00\. /);
    expect(spend(0, 0, limit(0))).toBeNull();
    expect(spend(1e12, 1e12, null)).toBeNull();
  });

  it('counts reservations, and overruns, which block free calls too until covered', () => {
    expect(spend(1, 1, limit(3), { reservedMicroUsd: 1 })).toBeNull();
    expect(spend(1, 1, limit(3), { reservedMicroUsd: 2 })).not.toBeNull();
    expect(spend(3, 0, limit(3), { overrunMicroUsd: 1 })).not.toBeNull();
    expect(spend(3, 0, limit(3), { overrunMicroUsd: 1, grants: { ...NO_GRANTS, costMicroUsd: 1 } })).toBeNull();
  });

  it('adds grants, up to the own limit of the org, and then asks nobody', () => {
    const grants = { ...NO_GRANTS, costMicroUsd: 1_000_000 };
    expect(spend(5_000_000, 1_000_000, limit(5_000_000), { grants })).toBeNull();
    expect(spend(5_000_000, 1_000_000, limit(5_000_000, 'max_total_cost', 'profile', 5_500_000), { grants })).toMatchObject({
      approval: 'none',
      limit: 5.5,
    });
    expect(spend(5_000_000, 1_000_000, limit(5_000_000, 'max_total_cost', 'org', 5_000_000))).toMatchObject({
      approval: 'none',
      reason: 'Budget cap exceeded: $6.00 > $5.00. Remediation: raise max_total_cost in the policy of the org, or lower cost.',
    });
  });

  it.each([[null], [-1], [0.5], [Number.NaN], [Number.POSITIVE_INFINITY]])(
    'refuses a price of %s, with and without a cap',
    (costMicroUsd) => {
      for (const cap of [null, limit(5_000_000)])
        expect(spend(0, costMicroUsd as number, cap)).toMatchObject({ guard: 'budget_cap', approval: 'none' });
    },
  );

  it('refuses at the level above that refused, naming it, but the plan first', () => {
    const upperRefusal = { kind: 'exceeded', level: 'session', capMicroUsd: 1_000_000, usedMicroUsd: 900_000, window: 'total' } as const;
    expect(spend(0, 300_000, null, { upperRefusal })).toMatchObject({
      exceededLevel: 'session',
      approval: 'limit',
      reason: 'Budget cap exceeded: $1.20 > $1.00. Remediation: raise the budget of the session, or lower cost.',
    });
    expect(spend(0, 300_000, limit(0), { upperRefusal })).toMatchObject({ exceededLevel: 'plan' });
  });

  it('bounds all plans under the profile: what this one spends, and what the others have, which no approval raises', () => {
    const profileCapMicroUsd = limit(1_000_000, 'max_total_cost');
    const request = requestOf('read_file', { costMicroUsd: 100_000 });
    expect(first({ profileCapMicroUsd }, request, { spentMicroUsd: 900_000 })).toBeNull();
    expect(first({ profileCapMicroUsd }, request, { spentMicroUsd: 900_001 })).toMatchObject({ exceededLevel: 'org', approval: 'limit' });
    const upperRefusal = { kind: 'exceeded', level: 'profile', capMicroUsd: 1_000_000, usedMicroUsd: 950_000, window: 'total' } as const;
    expect(first({ profileCapMicroUsd }, request, { upperRefusal })).toMatchObject({
      limitField: 'max_total_cost',
      exceededLevel: 'org',
      approval: 'limit',
      reason:
        'Budget cap exceeded: $1.05 > $1.00. Remediation: raise safety.max_total_cost of the profile for new plans (this one keeps the limit that is locked in it), or lower cost.',
    });
    const outside = { ...request, unknownTools: 'accept' } as const;
    expect(first({ profileCapMicroUsd }, outside, { spentMicroUsd: 900_001 }), 'it asks again by itself').toMatchObject({
      approval: 'none',
    });
    expect(first({ profileCapMicroUsd }, outside, { upperRefusal })).toMatchObject({ approval: 'none' });
  });

  it('refuses when the budgets above could not be asked, and never says that they are used up', () => {
    const refused = spend(0, 1, null, { upperRefusal: { kind: 'unreachable' } });
    expect(refused).toMatchObject({ allowed: false, approval: 'none' });
    expect(refused?.reason).toBe('The budgets above the plan could not be asked. Remediation: try again.');
    expect(refused).not.toHaveProperty('exceededLevel');
  });
});

describe('limits', () => {
  it('says a reached call limit in the words of the source', () => {
    expect(first({ maxCallsPerStep: limit(10, 'max_tool_calls_per_step') }, requestOf('read_file'), { callsInStep: 10 })).toEqual({
      guard: 'tool_call_limit',
      eventType: 'call_limit_blocked',
      allowed: false,
      reason:
        'Tool call limit reached: 10/10. Remediation: increase max_tool_calls_per_step, reduce tool usage, or request human approval.',
      requiresApproval: true,
      approval: 'limit',
      limitField: 'max_tool_calls_per_step',
      limit: 10,
      actual: 10,
    });
  });

  const rows: readonly (readonly [
    string,
    keyof GuardPolicy,
    (n: number) => Partial<GuardFacts>,
    keyof typeof NO_GRANTS,
    number,
    number,
    RegExp,
  ])[] = [
    ['tool_call_limit', 'maxCallsPerStep', (n) => ({ callsInStep: n }), 'calls', 2, 3, /^Tool call limit reached: 3\/3\. /],
    [
      'actor_tool_calls',
      'maxCallsPerInvocation',
      (n) => ({ callsInInvocation: n }),
      'calls',
      2,
      3,
      /^Actor tool call limit reached: 3\/3\. /,
    ],
    ['step_limit', 'maxSteps', (n) => ({ stepNumber: n }), 'steps', 3, 4, /^Step limit reached: 3\/3\. /],
    ['retry_limit', 'maxRetries', (n) => ({ retriesOfCall: n }), 'retries', 3, 4, /^Retry limit reached: 3\/3\. /],
    ['wall_clock', 'maxWallClockSeconds', (n) => ({ workedMs: n * 1000 }), 'seconds', 2, 3, /^Wall-clock limit reached: 3s\/3s\. /],
  ];
  it.each(rows)(
    '%s of 3 allows up to its last and refuses the next; a grant of one admits one more',
    (guard, member, facts, grantName, last, next, text) => {
      const policy = { [member]: limit(3) };
      const grants = { ...NO_GRANTS, [grantName]: 1 };
      expect(first(policy, undefined, facts(last))).toBeNull();
      expect(first(policy, undefined, facts(next))).toMatchObject({ guard, approval: 'limit', requiresApproval: true, limit: 3 });
      expect(first(policy, undefined, facts(next))?.reason).toMatch(text);
      expect(first(policy, undefined, { ...facts(next), grants })).toBeNull();
      expect(first(policy, undefined, { ...facts(next + 1), grants })).toMatchObject({ guard, limit: 4 });
      expect(first({ [member]: limit(3, 'field', 'org', 3) }, undefined, { ...facts(next), grants })).toMatchObject({
        guard,
        approval: 'none',
      });
      // An approval of the call is not a grant.
      expect(first(policy, undefined, { ...facts(next), approvedGuards: new Map([[guard, 'p.1']]) })).toMatchObject({ guard });
    },
  );

  it.each(rows)('%s takes 0 for a limit and null for none', (guard, member, facts, _grant, last, next) => {
    expect(first({ [member]: limit(0) }, undefined, facts(next - last))).toMatchObject({ guard });
    expect(first({ [member]: null }, undefined, facts(1_000_000))).toBeNull();
  });

  it('makes no first call under a call limit of 0, no first step under 0 steps, nothing under 0 seconds, but one attempt under 0 retries', () => {
    expect(first({ maxCallsPerStep: limit(0) })?.guard).toBe('tool_call_limit');
    expect(first({ maxCallsPerInvocation: limit(0) })?.guard).toBe('actor_tool_calls');
    expect(first({ maxSteps: limit(0) })?.guard).toBe('step_limit');
    expect(first({ maxWallClockSeconds: limit(0) })?.guard).toBe('wall_clock');
    expect(first({ maxRetries: limit(0) })).toBeNull();
  });

  it('makes three attempts under two retries', () => {
    const attempts = [0, 1, 2, 3, 4].filter((retriesOfCall) => first({ maxRetries: limit(2) }, undefined, { retriesOfCall }) === null);
    expect(attempts).toHaveLength(3);
  });

  it('refuses after 61 s of work under 60 s, not after 10 s', () => {
    expect(first({ maxWallClockSeconds: limit(60) }, undefined, { workedMs: 10_000 })).toBeNull();
    expect(first({ maxWallClockSeconds: limit(60) }, undefined, { workedMs: 61_000 })?.reason).toMatch(/61s\/60s/);
  });
});

describe('what no approval overrides', () => {
  const all = new Map(GUARDS.map((guard) => [guard.name, 'p.1']));
  it.each([
    ['a kill switch', {}, requestOf('read_file'), { halted: 'stopped by admin' }, 'state'],
    ['a plan that does not run', {}, requestOf('read_file'), { running: false }, 'state'],
    ['an unsafe tool', { allowUnsafeTools: false }, requestOf('shell_exec'), {}, 'unsafe_tools'],
    ['a call declared unsafe', { allowUnsafeTools: false }, requestOf('read_file', { riskClass: 'unsafe' }), {}, 'unsafe_tools'],
    ['an unsafe tool declared harmless', { allowUnsafeTools: false }, requestOf('shell_exec', { riskClass: 'read' }), {}, 'unsafe_tools'],
    ['a skill category', { skillCategories: [{ origin: 'profile', entries: ['files'] }] }, requestOf('http_post'), {}, 'skill_category'],
    ['no skill category', { skillCategories: [{ origin: 'profile', entries: ['files'] }] }, requestOf('read_file'), {}, 'skill_category'],
    ['the sandbox', { requireSandbox: true }, requestOf('http_post', { changesOutside: true }), {}, 'sandbox'],
  ] as const)('%s', (_what, policy, request, facts, guard) => {
    expect(report(policy, request, { ...facts, approvedGuards: all })).toMatchObject({
      allowed: false,
      guard,
      approval: 'none',
      first: { requiresApproval: false },
    });
  });

  it('leaves a call that is in every permitted category alone', () => {
    const skillCategories = [
      { origin: 'profile', entries: ['net*'] },
      { origin: 'org', entries: ['network', 'files'] },
    ] as const;
    expect(report({ skillCategories }, requestOf('http_post')).allowed).toBe(true);
    expect(report({ skillCategories }, requestOf('http_post', { skillCategory: 'files' })).allowed).toBe(false);
  });

  it('says the halt reason', () => {
    expect(first({}, undefined, { halted: 'stopped by admin' })?.reason).toMatch(/^Halted: stopped by admin\. /);
  });
});

describe('what an approval of exactly this call overrides, once it is there', () => {
  it.each([
    ['denylist', deny('read_file'), requestOf('read_file'), {}],
    ['allowlist', allow(), requestOf('read_file'), {}],
    ['protected_path', {}, requestOf('write_file', { protectedPaths: ['.env'] }), {}],
    ['taint', {}, requestOf('http_post'), { tainted: true }],
    ['write_approval', { requireApprovalForWrites: true }, requestOf('write_file'), {}],
    [
      'confirmation',
      { requiredConfirmations: [{ pattern: 'deploy_*', origin: 'plan' }] },
      requestOf('http_post', { operation: 'deploy_to_production' }),
      {},
    ],
    ['step_approval', { requireHumanApproval: true }, requestOf('read_file'), {}],
  ] as const)('%s', (guard, policy, request, facts) => {
    expect(report(policy, request, facts)).toMatchObject({
      allowed: false,
      guard,
      approval: 'call',
      approvableGuards: [guard],
      first: { requiresApproval: true },
    });
    const approved = report(policy, request, { ...facts, approvedGuards: new Map([[guard, 'p.7']]) });
    expect(approved.allowed).toBe(true);
    expect(approved.verdicts.find((verdict) => verdict.guard === guard)).toMatchObject({ allowed: true, reason: 'approved by p.7' });
    expect(report(policy, request, { ...facts, approvedGuards: new Map([['other', 'p.7']]) }).allowed).toBe(false);
  });

  it('lists every guard that one approval would have to override', () => {
    expect(report({ ...deny('write_file'), requireApprovalForWrites: true }, requestOf('write_file'))).toMatchObject({
      approval: 'call',
      approvableGuards: ['denylist', 'write_approval'],
    });
  });

  it('asks nobody when another guard is final', () => {
    expect(report({ ...deny('shell_exec'), allowUnsafeTools: false }, requestOf('shell_exec'))).toMatchObject({
      guard: 'denylist',
      approval: 'none',
    });
  });
});

describe('writes, taint, confirmations', () => {
  it.each([
    ['read_file', true],
    ['write_file', false],
    ['http_post', false],
    ['shell_exec', false],
  ])('under write approval %s passes: %s', (name, allowed) => {
    expect(report({ requireApprovalForWrites: true }, requestOf(name)).allowed).toBe(allowed);
  });

  it('takes the riskier of the class of the tool and that of the call', () => {
    expect(first({ requireApprovalForWrites: true }, requestOf('read_file', { riskClass: 'external_write' }))?.guard).toBe(
      'write_approval',
    );
    expect(first({ requireApprovalForWrites: true }, requestOf('write_file', { riskClass: 'read' }))?.guard).toBe('write_approval');
  });

  it('lets tainted arguments work inside the plan only', () => {
    expect(first({}, requestOf('write_file'), { tainted: true })).toBeNull();
    expect(first({}, requestOf('http_post'), { tainted: true })?.guard).toBe('taint');
  });

  describe('of a tainted plan to hosts that the profile names', () => {
    const of = (...entries: readonly string[]) => ({ origin: 'profile', entries }) as const;
    const floor = (...entries: readonly string[]) => ({ origin: 'org', entries }) as const;
    it.each([
      ['a host by its name', ['api.example.com'], [of('api.example.com')], true],
      ['another host', ['api.example.com.evil.test'], [of('api.example.com')], false],
      ['a host whose name ends alike', ['notexample.com'], [of('*.example.com')], false],
      ['a host below', ['a.b.example.com'], [of('*.example.com')], true],
      ['the domain itself, of which only those below are named', ['example.com'], [of('*.example.com')], false],
      ['two hosts of which one is named', ['api.example.com', 'evil.test'], [of('api.example.com')], false],
      ['two hosts that are both named', ['api.example.com', 'b.test'], [of('api.example.com', 'b.test')], true],
      ['a host that the org names as well', ['a.example.com'], [floor('*.example.com'), of('a.example.com')], true],
      ['a host that the org does not name', ['b.test'], [floor('*.example.com'), of('b.test')], false],
      ['a host that only the org names', ['b.example.com'], [floor('*.example.com'), of('a.example.com')], false],
      ['no host at all', [], [of('api.example.com')], false],
      ['a host that is not known', null, [of('api.example.com')], false],
      ['a host where none is named', ['api.example.com'], [], false],
      ['what is no host', ['api.example.com/../evil.test'], [of('api.example.com')], false],
      ['a host in capitals', ['API.EXAMPLE.COM'], [of('api.example.com')], false],
      ['a host with a port', ['api.example.com:8443'], [of('api.example.com')], false],
    ])('%s (%j under %j) passes: %s', (_case, hosts, taintedWriteHosts, allowed) => {
      const request = requestOf('http_post', { hosts });
      expect(first({ taintedWriteHosts }, request, { tainted: true })?.guard ?? null).toBe(allowed ? null : 'taint');
      expect(first({ taintedWriteHosts: [] }, request, { tainted: false })).toBeNull();
    });

    it('never speaks for an unsafe tool, and takes the one approval of exactly this call', () => {
      const policy = { taintedWriteHosts: [of('api.example.com')] };
      const unsafe = requestOf('http_post', { hosts: ['api.example.com'], riskClass: 'unsafe' });
      expect(first(policy, unsafe, { tainted: true })).toMatchObject({ guard: 'taint', approval: 'call' });
      expect(first(policy, unsafe, { tainted: true, approvedGuards: new Map([['taint', 'p.7']]) })).toBeNull();
    });

    it('says where the call would go', () => {
      const to = (...hosts: readonly string[]) => first({}, requestOf('http_post', { hosts }), { tainted: true })?.reason;
      expect(to('evil.test')).toContain('and would go to evil.test. Remediation:');
      expect(to('a.test', 'b.test', 'c.test', 'd.test', 'e.test', 'f.test')).toContain('e.test and 1 more');
      expect(to('')).toContain('would go to a host that is not known');
    });
  });

  it('confirms under every name of a tool', () => {
    const requiredConfirmations = [{ pattern: 'rm_file', origin: 'plan' }] as const;
    expect(first({ requiredConfirmations }, requestOf('delete_file'))).toMatchObject({
      guard: 'confirmation',
      eventType: 'confirmation_required',
    });
    expect(first({ requiredConfirmations }, requestOf('read_file'))).toBeNull();
  });

  it('asks for the step under require_human_approval, until an approval covers the call', () => {
    expect(first({ requireHumanApproval: true }, undefined, { stepNumber: 4 })?.reason).toMatch(/^Step 4 requires human approval/);
    expect(first({ requireHumanApproval: true }, undefined, { approvedGuards: new Map([['step_approval', 'p.7']]) })).toBeNull();
  });

  it('names at most five protected paths', () => {
    expect(first({}, requestOf('write_file', { protectedPaths: ['a', 'b', 'c', 'd', 'e', 'f', 'g'] }))?.reason).toContain(
      'a, b, c, d, e and 2 more.',
    );
  });
});

describe('the apply approval guard', () => {
  it('asks only under require_approval_for_apply, and reports the approval', () => {
    expect(evaluateApplyGuard(OPEN_POLICY, null)).toMatchObject({ allowed: true, eventType: 'apply_approval_granted', reason: null });
    const strict = { ...OPEN_POLICY, requireApprovalForApply: true };
    expect(evaluateApplyGuard(strict, null)).toMatchObject({
      allowed: false,
      eventType: 'apply_approval_required',
      approval: 'call',
      requiresApproval: true,
    });
    expect(evaluateApplyGuard(strict, 'p.3')).toMatchObject({ allowed: true, reason: 'approved by p.3' });
  });
});
