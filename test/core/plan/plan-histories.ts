/**
 * Random histories: what callers, actors, tools and clocks can do to a plan, valid or not. An operation names its target by a number that
 * is taken modulo what is there, so that shrinking a history keeps it meaningful.
 */
import fc from 'fast-check';
import type { Guardrails } from '../../../src/core/guard-policy.ts';
import { GUARD_LISTS, type GuardChange } from '../../../src/core/guard-revision.ts';
import type { OrgPolicy } from '../../../src/core/org-policy.ts';
import type { Answer, ApplyOutcome, Caller, Command, SettleOutcome } from '../../../src/core/plan/commands.ts';
import { nextTask } from '../../../src/core/plan/next-task.ts';
import { type Call, type Grant, type HaltLevel, haltOf } from '../../../src/core/plan/plan.ts';
import { DEFAULT_SANDBOX } from '../../../src/core/sandbox.ts';
import {
  AGENT,
  ASKER,
  BOSS,
  call,
  diffOf,
  FACTS,
  failed,
  type Move,
  OPERATOR,
  type PlanDriver,
  type PlanOptions,
  profileOf,
  proposalOf,
  succeeded,
  takenBy,
  writeOf,
} from './plan-driver.ts';

export interface History {
  readonly options: PlanOptions;
  readonly separateRequester: boolean;
  readonly requireDigest: boolean;
  readonly ops: readonly Op[];
}

type DigestMode = 'right' | 'wrong' | 'none' | 'other';

export type Op =
  /** The plan's next task; where it waits for somebody, an answer that fits what is pending. */
  | {
      readonly op: 'turn';
      readonly move: Move;
      readonly dice: number;
      readonly outcome: SettleOutcome;
      readonly applied: ApplyOutcome;
      readonly answer: AnswerPlan;
    }
  | { readonly op: 'settle'; readonly which: number; readonly attempt: number; readonly outcome: SettleOutcome }
  | { readonly op: 'send'; readonly which: number; readonly attempt: number }
  | { readonly op: 'retry'; readonly which: number }
  | { readonly op: 'answer'; readonly by: number; readonly answer: AnswerPlan }
  | {
      readonly op: 'message';
      readonly by: number;
      readonly text: string;
      readonly answers: readonly AnswerPlan[];
      readonly plain: Extract<Command, { type: 'message' }>['plain'];
    }
  | { readonly op: 'execute'; readonly by: number; readonly digest: DigestMode; readonly head: boolean }
  | { readonly op: 'apply'; readonly by: number; readonly digest: DigestMode; readonly approve: boolean }
  | { readonly op: 'cancel' }
  | { readonly op: 'extend'; readonly by: number; readonly which: number; readonly days: number }
  | { readonly op: 'wait'; readonly ms: number }
  | { readonly op: 'advance'; readonly withDiff: boolean; readonly withHead: boolean }
  | { readonly op: 'finish_apply'; readonly isOwn: boolean; readonly outcome: ApplyOutcome }
  | { readonly op: 'propose'; readonly move: Move; readonly phase: string; readonly attempt: number }
  | { readonly op: 'tick' }
  | { readonly op: 'revise'; readonly by: number; readonly change: GuardChange }
  | { readonly op: 'floor'; readonly floor: OrgPolicy }
  | { readonly op: 'halt'; readonly level: HaltLevel; readonly epoch: number | null }
  | { readonly op: 'clear'; readonly by: number; readonly level: HaltLevel; readonly epoch: number | null };

interface AnswerPlan {
  readonly which: number;
  readonly decision: Answer['decision'];
  readonly digest: DigestMode;
  readonly text: string | null;
  readonly grant: Grant | null;
}

const small = fc.nat(7);
const sometimes = <T>(...values: readonly T[]): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.constantFrom(...values) });
const tools = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom('files.read', 'files.write', 'write_file', 'model.ask', 'web.get', 'queue.take', 'pay.send') },
  { weight: 1, arbitrary: fc.constantFrom('shell.run', 'no.such', 'FILES.WRITE') },
);
const proposedCall = fc
  .record({
    tool: tools,
    n: fc.nat(3),
    cost: fc.constantFrom(undefined, undefined, 0.25, 0.000001, -1),
    stated: fc.constantFrom(undefined, undefined, 0.1, 0.75, 80),
  })
  .map(({ tool, n, cost, stated }) =>
    call(
      tool,
      { n },
      { ...(cost === undefined ? {} : { declaredCostUsd: cost }), ...(stated === undefined ? {} : { statedConfidence: stated }) },
    ),
  );
const facts = fc.constantFrom(
  FACTS,
  FACTS,
  FACTS,
  FACTS,
  { ...FACTS, known: 0, unknown: 3 },
  { ...FACTS, protectedPaths: ['.env'] },
  { ...FACTS, issues: [{ field: 'arguments.path', message: 'is required' }] },
);
const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 30,
    arbitrary: fc.record({
      calls: fc.array(proposedCall, { minLength: 1, maxLength: 4 }),
      facts: fc.array(facts, { minLength: 0, maxLength: 4 }),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ calls: [] }) },
  { weight: 4, arbitrary: fc.record({ decide: fc.constantFrom('how?', 'which?') }) },
  { weight: 1, arbitrary: fc.record({ say: fc.constant('hello') }) },
  { weight: 3, arbitrary: fc.record({ ask: fc.constant('where?') }) },
  { weight: 1, arbitrary: fc.record({ artifact: fc.constantFrom('a', 'b') }) },
  { weight: 1, arbitrary: fc.record({ fail: fc.constant('gave up') }) },
);
const outcome: fc.Arbitrary<SettleOutcome> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom(undefined, null, 0, 0.05, 0.1, 3, -1, Number.NaN, 'much').map((reportedUsd) => succeeded({ reportedUsd })),
  },
  { weight: 1, arbitrary: fc.constant(succeeded({ changes: [['a.txt', { kind: 'delete' }]], readPaths: ['b'], taint: 'web' })) },
  { weight: 1, arbitrary: fc.constant(succeeded({ changes: [['a.txt', { kind: 'delete' }]], tree: 'e'.repeat(64) })) },
  {
    weight: 4,
    arbitrary: fc.record({ transient: fc.boolean(), dispatched: fc.boolean(), reportedUsd: fc.constantFrom(undefined, 0.01) }).map(failed),
  },
  { weight: 1, arbitrary: fc.constant({ status: 'unknown', reason: 'the line went dead' } as const) },
);
const applied: fc.Arbitrary<ApplyOutcome> = fc.constantFrom(
  { status: 'applied', head: 'c'.repeat(64), previous: null, files: 1 } as const,
  { status: 'moved', head: 'd'.repeat(64) } as const,
  { status: 'moved', head: 'd'.repeat(64) } as const,
  { status: 'failed', reason: 'the project is away' } as const,
);
const grant: fc.Arbitrary<Grant | null> = fc.constantFrom(
  null,
  null,
  null,
  { cost_usd: 0.5 },
  { calls: 1 },
  { calls: -2 },
  { steps: 1 },
  { retries: 1 },
  { seconds: 60 },
  { cost_usd: Number.NaN },
  {
    calls: 1,
    steps: 1,
  },
);
const digest: fc.Arbitrary<DigestMode> = fc.constantFrom('right', 'right', 'right', 'right', 'wrong', 'none', 'other');
const text = fc.constantFrom('yes', 'no', 'retry', 'cancel', 'done', 'failed', 'guide', 'blue', 'yes, after you rename it', '');
const answerPlan: fc.Arbitrary<AnswerPlan> = fc.record({
  which: small,
  decision: fc.constantFrom('approve', 'approve', 'approve', 'deny', 'answer'),
  digest,
  text: fc.option(text, { freq: 2 }),
  grant,
});
const fittingAnswer: fc.Arbitrary<AnswerPlan> = fc.record({
  which: fc.nat(5),
  decision: fc.constantFrom('approve', 'approve', 'approve', 'deny', 'answer'),
  digest: fc.constant('right' as const),
  text: fc.constantFrom('retry', 'retry', 'done', 'failed', 'blue', 'guide it there', 'cancel'),
  grant: fc.constant(null),
});
const plain = fc.constantFrom(
  null,
  null,
  { decision: 'approve', phase: null } as const,
  { decision: 'deny', phase: null } as const,
  { decision: 'approve', phase: 'apply' } as const,
);

const entry = fc.constantFrom('files.write', 'pay.*', 'model.ask', 'PAY.SEND', 'nothing');
const change: fc.Arbitrary<GuardChange> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom('add' as const, 'remove' as const),
      list: fc.constantFrom(...GUARD_LISTS),
      entry,
    }),
  },
  {
    weight: 5,
    arbitrary: fc
      .record({
        tool_budget: sometimes(0, 0.2, 0.5, 1.5, 1e6, null),
        max_total_cost: sometimes(0.1, 3, null),
        max_tool_calls_per_step: sometimes(0, 1, 5, null),
        max_steps: sometimes(0, 2, 1e6, null),
        max_wall_clock_seconds: sometimes(1, 60, 1e6, null),
        actor_limits: sometimes(
          { max_retries_per_failure: 0 },
          { max_retries_per_failure: null },
          { max_tool_calls_per_invocation: 2 },
          null,
        ),
        tool_denylist: sometimes(['web.*'], [], null),
        tool_allowlist: sometimes([], ['files.*', 'pay.send'], null),
        required_confirmations: sometimes(['pay.send'], null),
        require_approval_for_writes: sometimes(true, false),
        require_approval_for_apply: sometimes(true, false),
      })
      .map((all) => ({
        kind: 'set' as const,
        guardrails: Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)),
      })),
  },
);
const floor: fc.Arbitrary<OrgPolicy> = fc.constantFrom<OrgPolicy>(
  {},
  { threshold_minima: { execute_command: 0.9, modify_config: 1 } },
  { guardrails: { tool_budget: 0.6 } },
  { guardrails: { tool_denylist: ['queue.*'] }, safety: { require_sandbox: true } },
  { safety: { max_retries_per_step: 1, require_human_approval: true } },
);
const level = fc.constantFrom<HaltLevel>('plan', 'plan', 'session', 'org');
const epoch = fc.constantFrom(null, null, 0, 1, 1, 2, 3);

const op: fc.Arbitrary<Op> = fc.oneof(
  {
    weight: 60,
    arbitrary: fc.record({ op: fc.constant('turn' as const), move, dice: fc.nat(11), outcome, applied, answer: fittingAnswer }),
  },
  {
    weight: 10,
    arbitrary: fc.record({ op: fc.constant('answer' as const), by: fc.constantFrom(0, 0, 0, 0, 1, 2, 3), answer: answerPlan }),
  },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('settle' as const), which: small, attempt: fc.constantFrom(0, 0, 1, -1), outcome }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('send' as const), which: small, attempt: fc.constantFrom(0, 0, 1) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('retry' as const), which: small }) },
  {
    weight: 4,
    arbitrary: fc.record({ op: fc.constant('message' as const), by: small, text, answers: fc.array(answerPlan, { maxLength: 2 }), plain }),
  },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('execute' as const), by: small, digest, head: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('apply' as const), by: small, digest, approve: fc.boolean() }) },
  // Cancelling is tried at the end of some histories; in the middle it would only make them short.

  {
    weight: 1,
    arbitrary: fc.record({ op: fc.constant('extend' as const), by: small, which: small, days: fc.constantFrom(-1, 1, 10, Number.NaN) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      op: fc.constant('wait' as const),
      ms: fc.constantFrom(1, 600, 2_000, 61_000, 3_600_000, 6.5 * 86_400_000, 8 * 86_400_000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('advance' as const), withDiff: fc.boolean(), withHead: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('finish_apply' as const),
      isOwn: fc.boolean(),
      outcome: applied,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('propose' as const),
      move,
      phase: fc.constantFrom('strategize', 'execute', 'apply', 'action'),
      attempt: fc.constantFrom(0, 1),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ op: 'tick' as const }) },
  { weight: 4, arbitrary: fc.record({ op: fc.constant('revise' as const), by: small, change }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('floor' as const), floor }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('halt' as const), level, epoch }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('clear' as const), by: small, level, epoch }) },
);

const limit = <T>(...values: readonly T[]): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.constantFrom(...values) });
const guardrails: fc.Arbitrary<Guardrails> = fc
  .record({
    tool_budget: limit(0, 0.3, 1, 2),
    max_tool_calls_per_step: limit(0, 1, 2),
    max_steps: limit(0, 1, 3),
    max_wall_clock_seconds: limit(0, 1, 60, 60, 3600),
    tool_denylist: limit(['files.write'], ['web.*'], ['model.ask', 'pay.send']),
    tool_allowlist: limit(['files.*', 'model.ask', 'web.get']),
    require_approval_for_writes: limit(true),
    require_approval_for_apply: limit(true),
    required_confirmations: limit(['files.read']),
    actor_limits: limit({ max_retries_per_failure: 0 }, { max_retries_per_failure: 1, max_tool_calls_per_invocation: 3 }),
  })
  .map((all) => Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)));

const profile = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('full-auto', 'full-auto', 'auto', 'trusted', 'supervised', 'review', 'cautious', 'manual') },
  { weight: 1, arbitrary: fc.constant('ci') },
  {
    weight: 6,
    arbitrary: fc.constantFrom(
      profileOf('full-auto', { name: 'asks-retries', modify_config: 1 }),
      profileOf('full-auto', { name: 'asks-calls', execute_command: 1, edit_code: 1 }),
      profileOf('full-auto', { name: 'half', execute_command: 0.6, modify_config: 0.6 }),
      profileOf('full-auto', { name: 'ci-with-gates', unattended: true, execute_command: 0.6 }),
      profileOf('full-auto', { name: 'stepwise', safety: { require_human_approval: true } }),
    ),
  },
);

const MADE = { kind: 'write', mode: '100644', blob: 'a'.repeat(64), sizeBytes: 1 } as const;

export const history: fc.Arbitrary<History> = fc.record({
  options: fc.record({
    profile,
    guardrails,
    orgFloor: fc.constantFrom({}, {}, {}, {}, { tool_budget: 0.4 }, { max_wall_clock_seconds: 90 }, { tool_denylist: ['pay.*'] }),
    apply: fc.constantFrom('project' as const, 'project' as const, 'none' as const),
    sandbox: fc.constantFrom(
      DEFAULT_SANDBOX,
      DEFAULT_SANDBOX,
      DEFAULT_SANDBOX,
      { ...DEFAULT_SANDBOX, strategy: 'none' as const },
      { ...DEFAULT_SANDBOX, checkpointsEnabled: false },
    ),
  }),
  separateRequester: fc.boolean(),
  requireDigest: fc.boolean(),
  ops: fc
    .tuple(fc.array(op, { minLength: 5, maxLength: 80, size: 'max' }), fc.constantFrom(false, true), fc.array(op, { maxLength: 6 }))
    .map(([ops, cancels, rest]): readonly Op[] => (cancels ? [...ops, { op: 'cancel' }, ...rest] : ops)),
});

/** The command that an operation means for the plan as it is now; null where only the clock moves, or there is nothing to aim at. */
export function commandOf(driver: PlanDriver, { separateRequester, requireDigest }: History, each: Op): Command | null {
  const { plan } = driver;
  const callers: readonly Caller[] = [BOSS, ASKER, OPERATOR, AGENT].map((caller) => ({ ...caller, separateRequester, requireDigest }));
  const callerAt = (index: number): Caller => callers[index % callers.length] ?? AGENT;
  const calls = Object.values(plan.calls);
  const callAt = (index: number) => calls[index % Math.max(1, calls.length)];
  const digestAs = (mode: DigestMode, right: string | undefined): string | null =>
    mode === 'none'
      ? null
      : mode === 'wrong'
        ? 'f'.repeat(64)
        : mode === 'other'
          ? (plan.approvals.find(({ digest: other }) => other !== right)?.digest ?? 'e'.repeat(64))
          : (right ?? null);
  const answerOf = ({ which, decision, digest: mode, text: words, grant: given }: AnswerPlan): Answer => {
    // Mostly one that is pending, at times one that is closed or was never there.
    const pool = which < 6 && driver.pending.length > 0 ? driver.pending : plan.approvals;
    const approval = pool[which % Math.max(1, pool.length)];
    return {
      approvalId: approval?.id ?? `${plan.id}.999`,
      decision,
      digest: digestAs(mode, approval?.digest),
      reason: null,
      text: words,
      grant: given,
    };
  };
  switch (each.op) {
    case 'wait':
      driver.wait(each.ms);
      return null;
    case 'turn':
      return turnOf(each);
    case 'settle': {
      const target = callAt(each.which);
      return { type: 'settle', callId: target?.id ?? 'c99', attempt: (target?.attempt ?? 1) + each.attempt, outcome: each.outcome };
    }
    case 'send': {
      const target = callAt(each.which);
      return { type: 'mark_sent', callId: target?.id ?? 'c99', attempt: (target?.attempt ?? 1) + each.attempt };
    }
    case 'retry':
      return { type: 'retry_call', callId: callAt(each.which)?.id ?? 'c99', facts: FACTS };
    case 'answer':
      return { type: 'answer', by: callerAt(each.by), answer: answerOf(each.answer) };
    case 'message':
      return {
        type: 'message',
        by: callerAt(each.by),
        messageId: 'm',
        parts: [{ kind: 'text', text: each.text }],
        metadata: null,
        text: each.text,
        answers: each.answers.map(answerOf),
        plain: each.plain,
      };
    case 'execute':
      return {
        type: 'execute',
        by: callerAt(each.by),
        digest: digestAs(each.digest, driver.pending[0]?.digest),
        head: each.head ? 'd'.repeat(64) : null,
      };
    case 'apply':
      return { type: 'apply', by: callerAt(each.by), digest: digestAs(each.digest, driver.pending[0]?.digest), approve: each.approve };
    case 'cancel':
      return { type: 'cancel', by: BOSS.actor, reason: 'enough' };
    case 'extend': {
      const approval = plan.approvals[each.which % Math.max(1, plan.approvals.length)];
      const atMs = driver.nowMs + each.days * 86_400_000;
      return {
        type: 'extend',
        by: callerAt(each.by),
        approvalId: approval?.id ?? 'x',
        expiresAt: Number.isFinite(atMs) ? new Date(atMs).toISOString() : 'soon',
      };
    }
    case 'advance':
      return { type: 'advance', diff: each.withDiff ? diffOf(plan) : null, head: each.withHead ? 'd'.repeat(64) : null, outputs: [] };
    case 'finish_apply':
      return { type: 'finish_apply', applyId: each.isOwn ? (plan.apply?.id ?? 'x') : 'x', outcome: each.outcome };
    case 'propose':
      return proposeOf(each.phase, plan.attempt + each.attempt, each.move, false);
    case 'tick':
      return { type: 'tick' };
    case 'revise':
      return { type: 'revise_guard', by: callerAt(each.by), change: each.change };
    case 'floor':
      return { type: 'apply_floor', by: ASKER.actor, floor: each.floor };
    case 'halt':
      return { type: 'halt', by: AGENT.actor, level: each.level, epoch: each.epoch, reason: 'stop' };
    case 'clear':
      return { type: 'clear_halt', by: callerAt(each.by), level: each.level, epoch: each.epoch };
  }

  function turnOf(turn: Extract<Op, { op: 'turn' }>): Command | null {
    const task = nextTask(plan, driver.nowMs);
    const halt = haltOf(plan);
    switch (task.kind) {
      case 'sleep':
        if (plan.terminal) return null;
        if (halt !== null && turn.dice < 6) return { type: 'clear_halt', by: BOSS, level: halt.level, epoch: null };
        if (driver.pending.length === 0) return { type: 'execute', by: BOSS, digest: null, head: 'd'.repeat(64) };
        return { type: 'answer', by: BOSS, answer: fitting(answerOf(turn.answer)) };
      case 'tick':
        return { type: 'tick' };
      case 'retry':
        return { type: 'retry_call', callId: task.call.id, facts: FACTS };
      case 'advance':
        return { type: 'advance', diff: plan.phase === 'execute' ? diffOf(plan) : null, head: null, outputs: [] };
      case 'propose':
        return proposeOf(plan.phase, plan.attempt, turn.move, plan.phase === 'strategize' ? turn.dice < 6 : turn.dice < 1);
      case 'apply':
        return { type: 'finish_apply', applyId: plan.apply?.id ?? '', outcome: turn.applied };
      case 'perform': {
        const { id: callId, attempt, scope, status } = task.call;
        if (task.call.atOnce === true) return atOnceOf(turn, task.call);
        return scope === 'external' && status === 'authorised'
          ? { type: 'mark_sent', callId, attempt }
          : { type: 'settle', callId, attempt, outcome: turn.outcome };
      }
    }
  }

  /** A write at once is recorded, at times made anew for another head, and taken by the project or not. */
  function atOnceOf({ outcome: ended, dice }: Extract<Op, { op: 'turn' }>, { id: callId, attempt, status }: Call): Command {
    const settle = (as: SettleOutcome): Command => ({ type: 'settle', callId, attempt, outcome: as });
    if (ended.status !== 'succeeded') return settle(ended);
    const changes = ended.changes.length > 0 ? ended.changes : ([['made.txt', MADE]] as const);
    const isDue = status === 'authorised' || (dice < 2 && !plan.terminal);
    if (isDue && dice < 10) return { type: 'mark_sent', callId, attempt, write: writeOf({ ...ended, changes }, plan) };
    return settle(status === 'sent' ? takenBy(plan, callId) : { ...ended, changes: [] });
  }

  /** Questions are answered, everything else is decided. */
  function fitting(answer: Answer): Answer {
    const kind = plan.approvals.find((approval) => approval.id === answer.approvalId)?.kind;
    if (kind === 'question' && answer.decision === 'approve') return { ...answer, decision: 'answer' };
    if (kind === 'unknown_outcome' && answer.decision === 'approve') return { ...answer, decision: 'answer', text: 'retry' };
    return kind !== 'next_step' && kind !== 'question' && kind !== 'unknown_outcome' && answer.decision === 'answer'
      ? { ...answer, decision: 'approve' }
      : answer;
  }

  function proposeOf(phase: string, attempt: number, next: Move, isDone: boolean): Command {
    return {
      type: 'propose',
      proposal: isDone ? { kind: 'done' } : proposalOf(next, `${phase[0]}${String(plan.seq)}`, plan.seq),
      actorName: 'scripted/steps',
      basis: { attempt, cursor: plan.cursor, phase },
      guidanceSeen: plan.guidance.length,
      facts: 'calls' in next ? (next.facts ?? []) : [],
    };
  }
}
