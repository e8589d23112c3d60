/** Random histories of plans whose executor is outside: what it, people and time can do to them, valid or not. */
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Guardrails } from '../../../src/core/guard-policy.ts';
import { reservedMicroUsd } from '../../../src/core/ledger.ts';
import { genesisHash, verifyChain } from '../../../src/core/plan/chain.ts';
import type { Caller, Command } from '../../../src/core/plan/commands.ts';
import { decide } from '../../../src/core/plan/decide.ts';
import type { LogRow } from '../../../src/core/plan/events.ts';
import { replay } from '../../../src/core/plan/evolve.ts';
import type { AuthorizationAnswer, AuthorizeRequest, CheckRequest } from '../../../src/core/plan/external/commands.ts';
import { AUTHORIZATION_TTL_MS, isHeld, openAuthorizations } from '../../../src/core/plan/external/external.ts';
import { nextTask } from '../../../src/core/plan/next-task.ts';
import { haltOf } from '../../../src/core/plan/plan.ts';
import { NO_LIMIT_ABOVE } from '../../../src/core/plan/work.ts';
import { AGENT, BOSS, CATALOGUE, createCommand, OPERATOR, PLAN_ID, PlanDriver, profileOf, sha256 } from './plan-driver.ts';
import { hold, sameState, Witness } from './plan-invariants.ts';

const numRuns = Math.ceil(Number(process.env['FC_RUNS'] ?? 5000) / 2);

/** So often a command is decided twice, to see that the decision depends on nothing else. */
const TWIN_EVERY = 5;
const GENESIS = genesisHash(sha256, 'acme', PLAN_ID);
const DAY_MS = 86_400_000;

type Op =
  | { readonly op: 'authorize'; readonly request: AuthorizeRequest }
  /** The same as before, mostly of a call that was refused so far. */
  | { readonly op: 'again'; readonly which: number; readonly isHeld: boolean }
  | {
      readonly op: 'settle';
      readonly which: number;
      readonly outcome: 'succeeded' | 'failed' | 'not_dispatched';
      readonly costUsd: number | null;
    }
  | { readonly op: 'check'; readonly request: CheckRequest }
  | {
      readonly op: 'answer';
      readonly by: number;
      readonly which: number;
      readonly decision: 'approve' | 'deny' | 'answer';
      readonly isRight: boolean;
    }
  | { readonly op: 'revise'; readonly guardrails: Guardrails }
  | { readonly op: 'wait'; readonly ms: number }
  | { readonly op: 'say'; readonly text: string }
  | { readonly op: 'loop'; readonly which: number }
  | { readonly op: 'tick' | 'halt' | 'clear' | 'associate' | 'import' | 'complete' | 'cancel' | 'execute' };

const request: fc.Arbitrary<AuthorizeRequest> = fc.record({
  toolName: fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom('own.read', 'own.write', 'files.write', 'write_file', 'model.ask', 'pay.send', 'shell.run') },
    { weight: 1, arbitrary: fc.constantFrom(undefined, null, 7, '', 'rm -rf', 'FILES.WRITE') },
  ),
  arguments: fc.record({ n: fc.nat(2) }),
  isWrite: fc.constantFrom(null, true, false),
  costUsd: fc.constantFrom(null, 0, 0.05, 0.1, 0.1, 0.3, 0.000001),
  step: fc.constantFrom(null, null, null, 1, 2, 3),
  operation: fc.constantFrom(null, null, null, 'deploy'),
  idempotencyKey: fc.constantFrom(null, null, null, 'k1', 'k2', 'k3'),
});

const check: fc.Arbitrary<CheckRequest> = fc.oneof(
  fc.record({ check: fc.constant('step_limit' as const), currentStep: fc.nat(4) }),
  fc.record({ check: fc.constant('tool_budget' as const), costUsd: fc.constantFrom(0, 0.1, 0.25, 5, -1, Number.NaN) }),
  fc.record({ check: fc.constant('budget_hierarchy' as const), costUsd: fc.constantFrom(0, 0.1, 5) }),
  fc.record({ check: fc.constant('wall_clock' as const) }),
  fc.record({ check: fc.constant('actor_tool_calls' as const), currentCalls: fc.nat(4) }),
  fc.record({ check: fc.constant('retries_per_failure' as const), currentRetries: fc.nat(4) }),
  fc.record({ check: fc.constant('confirmation_required' as const), operation: fc.constantFrom('deploy', 'read') }),
);

const op: fc.Arbitrary<Op> = fc.oneof(
  { weight: 34, arbitrary: fc.record({ op: fc.constant('authorize' as const), request }) },
  {
    weight: 14,
    arbitrary: fc.record({ op: fc.constant('again' as const), which: fc.nat(12), isHeld: fc.constantFrom(true, true, true, false) }),
  },
  {
    weight: 16,
    arbitrary: fc.record({
      op: fc.constant('settle' as const),
      which: fc.nat(12),
      outcome: fc.constantFrom('succeeded' as const, 'succeeded' as const, 'failed' as const, 'not_dispatched' as const),
      costUsd: fc.constantFrom(null, null, 0, 0.05, 0.1, 0.9),
    }),
  },
  { weight: 8, arbitrary: fc.record({ op: fc.constant('check' as const), request: check }) },
  {
    weight: 18,
    arbitrary: fc.record({
      op: fc.constant('answer' as const),
      by: fc.constantFrom(0, 0, 0, 0, 1, 2),
      which: fc.nat(5),
      decision: fc.constantFrom('approve' as const, 'approve' as const, 'approve' as const, 'deny' as const, 'answer' as const),
      isRight: fc.constantFrom(true, true, true, false),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant('revise' as const),
      guardrails: fc.constantFrom<Guardrails>({ tool_budget: 0.5 }, { tool_denylist: ['own.*'] }, { max_steps: 2 }, { tool_budget: 50 }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant('wait' as const),
      ms: fc.constantFrom(1, 30_000, AUTHORIZATION_TTL_MS, 2 * AUTHORIZATION_TTL_MS, 6.5 * DAY_MS, 8 * DAY_MS),
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('say' as const), text: fc.constantFrom('yes', 'go on') }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('loop' as const), which: fc.nat(5) }) },
  { weight: 4, arbitrary: fc.constant({ op: 'tick' as const }) },
  {
    weight: 3,
    arbitrary: fc.constantFrom<Op>(
      { op: 'halt' },
      { op: 'clear' },
      { op: 'clear' },
      { op: 'associate' },
      { op: 'import' },
      { op: 'execute' },
    ),
  },
);

const maybe = <T>(...values: readonly T[]): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.constantFrom(...values) });

const history = fc.record({
  profile: fc.constantFrom(
    'full-auto',
    'full-auto',
    'auto',
    'supervised',
    'manual',
    'ci',
    profileOf('full-auto', { name: 'half', execute_command: 0.5 }),
  ),
  guardrails: fc
    .record({
      tool_budget: maybe(0, 0.3, 1),
      max_tool_calls_per_step: maybe(0, 1, 2),
      max_steps: maybe(1, 2),
      max_wall_clock_seconds: maybe(60, 3600),
      tool_denylist: maybe(['own.write'], ['files.*']),
      tool_allowlist: maybe(['own.*', 'files.*']),
      require_approval_for_writes: maybe(true),
      required_confirmations: maybe(['deploy']),
      actor_limits: maybe({ max_retries_per_failure: 0 }, { max_retries_per_failure: 1, max_tool_calls_per_invocation: 4 }),
    })
    .map((all): Guardrails => Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))),
  orgFloor: fc.constantFrom<Guardrails>({}, {}, { tool_budget: 0.6 }, { tool_denylist: ['pay.*'] }),
  ops: fc
    .tuple(
      fc.array(op, { minLength: 5, maxLength: 70, size: 'max' }),
      fc.constantFrom<Op | null>(null, { op: 'complete' }, { op: 'cancel' }),
      fc.array(op, { maxLength: 8 }),
    )
    .chain(([ops, end, rest]) =>
      fc
        .constantFrom<readonly Op[]>([], [], [], [{ op: 'import' }])
        .map((begin): readonly Op[] => [...begin, ...ops, ...(end === null ? [] : [end, ...rest])]),
    ),
});
type History = typeof history extends fc.Arbitrary<infer T> ? T : never;

const CALLERS: readonly Caller[] = [BOSS, OPERATOR, AGENT];

/** The command that an operation means for the plan as it is; null where only the clock moves. */
function commandOf(driver: PlanDriver, each: Op, asked: ReadonlyMap<string, AuthorizeRequest>): Command | null {
  const { plan } = driver;
  const by = AGENT.actor;
  const calls = Object.values(plan.calls);
  switch (each.op) {
    case 'authorize':
      return { type: 'authorize', by, request: each.request };
    case 'again': {
      const given = new Set(plan.approvals.filter((approval) => approval.status === 'approved').map((approval) => approval.id));
      const held = calls.filter(isHeld).sort((a, b) => Number(given.has(b.approvalId ?? '')) - Number(given.has(a.approvalId ?? '')));
      const pool = each.isHeld && held.length > 0 ? held : calls;
      const before = asked.get(
        pool[each.isHeld ? (each.which % 2) % Math.max(1, pool.length) : each.which % Math.max(1, pool.length)]?.id ?? '',
      );
      return before === undefined ? null : { type: 'authorize', by, request: before };
    }
    case 'settle':
      return {
        type: 'settle_external',
        by,
        callId: calls[each.which % Math.max(1, calls.length)]?.id ?? 'c99',
        outcome: each.outcome,
        costUsd: each.costUsd,
      };
    case 'check':
      return { type: 'check', by, request: each.request };
    case 'answer': {
      const pool = each.which < 5 && driver.pending.length > 0 ? driver.pending : plan.approvals;
      const approval = pool[each.which % Math.max(1, pool.length)];
      const digest = each.isRight ? (approval?.digest ?? null) : 'f'.repeat(64);
      const answer = {
        approvalId: approval?.id ?? `${plan.id}.999`,
        decision: each.decision,
        digest,
        reason: null,
        text: null,
        grant: null,
      };
      return { type: 'answer', by: CALLERS[each.by] ?? AGENT, answer };
    }
    case 'revise':
      return { type: 'revise_guard', by: BOSS, change: { kind: 'set', guardrails: each.guardrails } };
    case 'wait':
      driver.wait(each.ms);
      return null;
    case 'say':
      return {
        type: 'message',
        by: BOSS,
        messageId: 'm',
        parts: [],
        metadata: null,
        text: each.text,
        answers: [],
        plain: { decision: 'approve', phase: null },
      };
    case 'loop': {
      const callId = calls[each.which % Math.max(1, calls.length)]?.id ?? 'c1';
      const outcome = { status: 'unknown', reason: 'made up' } as const;
      const ofTheLoop: readonly Command[] = [
        { type: 'mark_sent', callId, attempt: 1 },
        { type: 'settle', callId, attempt: 1, outcome },
        { type: 'advance', diff: null, head: null, outputs: [] },
        {
          type: 'propose',
          proposal: { kind: 'done' },
          actorName: 'x',
          basis: { attempt: 1, cursor: null, phase: 'execute' },
          guidanceSeen: 0,
          facts: [],
        },
        { type: 'finish_apply', applyId: 'x', outcome: { status: 'failed', reason: 'made up' } },
      ];
      return ofTheLoop[each.which % ofTheLoop.length] ?? null;
    }
    case 'tick':
      return { type: 'tick' };
    case 'halt':
      return { type: 'halt', by: OPERATOR.actor, level: 'plan', epoch: null, reason: 'stop' };
    case 'clear':
      return { type: 'clear_halt', by: BOSS, level: 'plan', epoch: null };
    case 'associate':
      return { type: 'associate', by, sessionId: 'other' };
    case 'import':
      return {
        type: 'import_state',
        by,
        state: {
          ...{ stepCount: 2, budgetSpentUsd: 0.4, startTime: null, entries: [], guardrails: { max_steps: 3 } },
          ...{ maxEntries: 5, allowed: 3, denied: 4, evicted: 7 },
        },
      };
    case 'complete':
      return { type: 'complete', by };
    case 'cancel':
      return { type: 'cancel', by: BOSS.actor, reason: 'enough' };
    case 'execute':
      return { type: 'execute', by: BOSS, digest: null, head: null };
  }
}

/** Plays a history and checks after every command. */
function play(given: History): PlanDriver {
  const driver = new PlanDriver();
  const witness = new Witness();
  let commands = 0;
  /** Key → the decisions that were answered under it. */
  const keyed = new Map<string, Set<string>>();
  const asked = new Map<string, AuthorizeRequest>();
  const run = (command: Command): void => {
    const before = driver.rows.length;
    commands += 1;
    const context = { now: driver.now, sha256, catalogue: CATALOGUE, money: NO_LIMIT_ABOVE };
    const twin = commands % TWIN_EVERY === 0 ? decide(driver.current, command, context) : null;
    const result = driver.do(command);
    const written = driver.rows.slice(before);
    if (twin !== null && !isDeepStrictEqual([twin.rows, twin.result, twin.answer], [written, result, driver.answered])) {
      expect.fail(`${command.type} is decided in two ways`);
    }
    witness.see(written, driver.plan, driver.nowMs);
    for (const each of openAuthorizations(driver.plan)) hold(each.external?.expiresAt !== null, 'an open authorisation has an end');
    const task = nextTask(driver.plan, driver.nowMs);
    hold(task.kind === 'sleep' || task.kind === 'tick', 'nobody here is asked for anything');
    if (command.type === 'authorize' && driver.answered !== undefined)
      answered(command.request, driver.answered as AuthorizationAnswer, written);
  };
  const answered = (given: AuthorizeRequest, answer: AuthorizationAnswer, written: readonly LogRow[]): void => {
    asked.set(answer.callId, given);
    const { idempotencyKey: key } = given;
    const decided = written.filter((row) => row.type === 'call_decided');
    hold(decided.length <= 1, 'one decision at most');
    const isStopped = written.some((row) => row.type === 'check_recorded' && row.data.check === 'authorize');
    hold((decided.length === 0 && !isStopped) === (answer.guards === null), 'an answer without guards is one to an earlier request');
    // Whatever is allowed is open: its money is held.
    hold(!answer.allowed || openAuthorizations(driver.plan).some(({ id }) => id === answer.callId), 'allowed and not held');
    hold(!answer.allowed || haltOf(driver.plan) === null, 'a halted plan allows nothing');
    if (decided[0]?.type === 'call_decided') hold(decided[0].data.allowed === answer.allowed, 'answered other than decided');
    hold(answer.allowed || answer.reason !== null, 'a refusal has a reason');
    const question = driver.plan.approvals.find(({ id }) => id === answer.approvalId);
    if (answer.approvalId !== null) expect(question?.callIds, 'a question is about what it shows').toContain(answer.callId);
    for (const { id, kind, callIds, subject } of driver.pending) {
      const shown = subject.calls?.map((each) => each.call_id);
      hold(kind !== 'limit' || isDeepStrictEqual(shown, callIds), `${id} shows every call`);
    }
    if (key === null) return;
    const ids = keyed.get(key) ?? new Set();
    ids.add(answer.callId);
    keyed.set(key, ids);
    hold(ids.size === 1, `${key} stands for ${[...ids].join(' and ')}`);
  };
  run({ ...createCommand({ ...given, project: null, apply: 'none' }), external: true });
  for (const each of given.ops) {
    const command = commandOf(driver, each, asked);
    if (command !== null) run(command);
  }
  // Whatever was left open ends by itself.
  driver.wait(2 * AUTHORIZATION_TTL_MS);
  run({ type: 'tick' });
  expect(reservedMicroUsd(driver.plan.ledger), 'a hold leaks').toBe(0);
  return driver;
}

describe('any history of a plan whose executor is outside', () => {
  it(
    'stays within its cap, asks nobody here, ends every hold, and is rebuilt from its log alone',
    () => {
      fc.assert(
        fc.property(history, (given) => {
          const { rows, plan } = play(given);
          const stored = JSON.parse(JSON.stringify(rows)) as LogRow[];
          sameState(replay(stored), plan);
          expect(verifyChain(sha256, GENESIS, stored)).toEqual({ valid: true, entries: rows.length, head: plan.headHash });
        }),
        { numRuns, verbose: 0 },
      );
    },
    Math.max(240_000, numRuns * 400),
  );
});
