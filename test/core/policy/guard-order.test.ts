import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { GuardPolicy, Limit } from '../../../src/core/guard-policy.ts';
import type { GuardFacts, GuardRequest } from '../../../src/core/guards/guard.ts';
import { evaluateGuards, GUARDS } from '../../../src/core/guards/guards.ts';
import { RISK_CLASSES } from '../../../src/core/tool.ts';
import { factsOf, OPEN_POLICY, requestOf } from './fixtures.ts';

interface Violation {
  readonly policy?: Partial<GuardPolicy>;
  readonly request?: Partial<GuardRequest>;
  readonly facts?: Partial<GuardFacts>;
}

const limit = (value: number): Limit => ({ value, field: 'field', origin: 'profile', ceiling: null });

/** One way to violate each guard, so chosen that any set of them can be violated together. */
const VIOLATIONS: ReadonlyMap<string, Violation> = new Map<string, Violation>([
  ['state', { facts: { running: false } }],
  ['wall_clock', { policy: { maxWallClockSeconds: limit(0) } }],
  ['step_limit', { policy: { maxSteps: limit(0) } }],
  ['actor_tool_calls', { policy: { maxCallsPerInvocation: limit(0) } }],
  ['retry_limit', { policy: { maxRetries: limit(0) }, facts: { retriesOfCall: 1 } }],
  ['denylist', { policy: { denylist: [{ pattern: '*', origin: 'profile' }] } }],
  ['tool', { request: { toolName: 'nobody' } }],
  ['allowlist', { policy: { allowlists: [{ origin: 'profile', entries: [] }] } }],
  ['unsafe_tools', { policy: { allowUnsafeTools: false }, request: { riskClass: 'unsafe' } }],
  ['skill_category', { policy: { skillCategories: [{ origin: 'profile', entries: ['other'] }] } }],
  ['sandbox', { policy: { requireSandbox: true }, request: { changesOutside: true } }],
  ['checkpoint', { policy: { requireCheckpoints: true }, request: { riskClass: 'unsafe' }, facts: { noCheckpoint: 'none can be made' } }],
  ['protected_path', { request: { protectedPaths: ['.env'] } }],
  ['taint', { request: { riskClass: 'unsafe' }, facts: { tainted: true } }],
  ['budget_cap', { policy: { planCapMicroUsd: limit(0) }, request: { costMicroUsd: 1 } }],
  ['tool_call_limit', { policy: { maxCallsPerStep: limit(0) } }],
  ['write_approval', { policy: { requireApprovalForWrites: true }, request: { riskClass: 'unsafe' } }],
  ['confirmation', { policy: { requiredConfirmations: [{ pattern: '*', origin: 'profile' }] } }],
  ['step_approval', { policy: { requireHumanApproval: true } }],
]);

const NAMES = GUARDS.map((guard) => guard.name);

function evaluate(violated: readonly string[]) {
  let policy = OPEN_POLICY;
  let request = requestOf('read_file');
  let facts = factsOf();
  for (const name of violated) {
    const violation = VIOLATIONS.get(name);
    policy = { ...policy, ...violation?.policy };
    request = { ...request, ...violation?.request };
    facts = { ...facts, ...violation?.facts };
  }
  return evaluateGuards(policy, request, facts);
}

it('has a violation for every guard', () => {
  expect([...VIOLATIONS.keys()]).toEqual(NAMES);
});

it.each(NAMES)('%s alone refuses alone', (name) => {
  // An unknown tool has no category and no name for lists, so it may refuse elsewhere too; nothing else does.
  expect(
    evaluate([name])
      .verdicts.filter((verdict) => !verdict.allowed)
      .map((verdict) => verdict.guard),
  ).toEqual([name]);
});

const PAIRS = NAMES.flatMap((first, index) => NAMES.slice(index + 1).map((second) => [first, second] as const));

it.each(PAIRS)('when %s and %s are both violated the first is the reason and both are reported', (first, second) => {
  for (const violated of [
    [first, second],
    [second, first],
  ]) {
    const report = evaluate(violated);
    expect(report).toMatchObject({ allowed: false, guard: first, first: { guard: first } });
    expect(report.verdicts.filter((verdict) => !verdict.allowed).map((verdict) => verdict.guard)).toEqual([first, second]);
    expect(report.verdicts).toHaveLength(GUARDS.length);
  }
});

/** The order of the source document, in words of its own: whoever changes the list of guards does not change this. */
const SOURCE_ORDER = [
  ['denylist', 'allowlist'],
  ['denylist', 'budget_cap'],
  ['denylist', 'tool_call_limit'],
  ['denylist', 'write_approval'],
  ['allowlist', 'budget_cap'],
  ['allowlist', 'tool_call_limit'],
  ['allowlist', 'write_approval'],
  ['budget_cap', 'tool_call_limit'],
  ['budget_cap', 'write_approval'],
  ['tool_call_limit', 'write_approval'],
] as const;

it.each(SOURCE_ORDER)('of %s and %s the first is the reason, as in the source document', (first, second) => {
  expect(evaluate([second, first])).toMatchObject({ allowed: false, guard: first, first: { guard: first } });
});

it('reports exactly the violated guards in order, for any set of them', () => {
  fc.assert(
    fc.property(fc.shuffledSubarray(NAMES), (violated) => {
      const report = evaluate(violated);
      const refused = report.verdicts.filter((verdict) => !verdict.allowed).map((verdict) => verdict.guard);
      expect(refused).toEqual(NAMES.filter((name) => violated.includes(name)));
      expect(report.allowed).toBe(violated.length === 0);
      expect(report.guard).toBe(refused[0] ?? null);
    }),
    { numRuns: 2000 },
  );
});

it('never allows a name that nobody registered, whatever the lists, the class and the approvals say', () => {
  const approvedGuards = new Map(NAMES.map((name) => [name, 'p.1']));
  fc.assert(
    fc.property(
      fc.oneof(fc.string({ unit: 'grapheme' }), fc.anything(), fc.constantFrom('__proto__', 'constructor', 'toString', 'valueOf')),
      fc.array(fc.string()),
      fc.constantFrom(...RISK_CLASSES, null),
      (toolName, entries, riskClass) => {
        fc.pre(typeof toolName !== 'string' || requestOf(toolName).catalogue.find(toolName) === null);
        const policy: GuardPolicy = { ...OPEN_POLICY, allowlists: [{ origin: 'profile', entries: ['*', ...entries] }] };
        const report = evaluateGuards(policy, requestOf(toolName, { riskClass }), factsOf({ approvedGuards }));
        expect(report).toMatchObject({ allowed: false, guard: 'tool', approval: 'none' });
      },
    ),
    { numRuns: 2000 },
  );
});

it('lets deny win over allow, whatever stands on the allowlists', () => {
  const names = fc.constantFrom('read_file', 'write_file', 'delete_file', 'rm_file', 'db.read', 'http_post');
  fc.assert(
    fc.property(names, fc.array(fc.oneof(names, fc.constant('*'))), (name, entries) => {
      const policy: GuardPolicy = {
        ...OPEN_POLICY,
        denylist: [{ pattern: name, origin: 'profile' }],
        allowlists: [{ origin: 'org', entries: ['*', name, ...entries] }],
      };
      expect(evaluateGuards(policy, requestOf(name), factsOf())).toMatchObject({ allowed: false, guard: 'denylist' });
    }),
    { numRuns: 1000 },
  );
});
