/**
 * Plays a plan without engine and storage: the decider is asked what is next, the driver does it with scripted outcomes and a clock that
 * moves only by hand. Every commit is kept, so that a test can read the whole log.
 */
import { createHash } from 'node:crypto';
import type { ActionDocument } from '../../../src/core/action.ts';
import { BUILTIN_PROFILES } from '../../../src/core/builtin-profiles.ts';
import { digestOf, type Sha256 } from '../../../src/core/digest.ts';
import { combinePolicies, type Guardrails } from '../../../src/core/guard-policy.ts';
import type { GuardChange, GuardrailChanges } from '../../../src/core/guard-revision.ts';
import type { JsonObject, JsonValue } from '../../../src/core/json.ts';
import type { AuditEntry } from '../../../src/core/plan/audit.ts';
import { auditEntryOf } from '../../../src/core/plan/audit.ts';
import type {
  Answer,
  ApplyOutcome,
  Caller,
  CallFacts,
  Command,
  CreateCommand,
  DiffInput,
  SettleOutcome,
  WriteToSend,
} from '../../../src/core/plan/commands.ts';
import { type Decided, decide } from '../../../src/core/plan/decide.ts';
import type { EventType, LogRow } from '../../../src/core/plan/events.ts';
import { nextTask } from '../../../src/core/plan/next-task.ts';
import { type Approval, type Call, type Plan, type ProjectRef, pendingApprovals } from '../../../src/core/plan/plan.ts';
import type { Proposal, ProposedCall } from '../../../src/core/plan/proposal.ts';
import type { ApprovalTaskState } from '../../../src/core/plan/task-state.ts';
import { type DecideContext, NO_LIMIT_ABOVE } from '../../../src/core/plan/work.ts';
import type { AutomationProfile } from '../../../src/core/profile.ts';
import type { Refusal } from '../../../src/core/refusal.ts';
import type { Result } from '../../../src/core/result.ts';
import type { SandboxSettings } from '../../../src/core/sandbox.ts';
import { makeToolCatalogue, type RiskClass, type ToolCatalogue, type ToolSpec } from '../../../src/core/tool.ts';

export const sha256: Sha256 = (data) => createHash('sha256').update(data).digest('hex');

function tool(name: string, riskClass: RiskClass, rest: Partial<ToolSpec> = {}): ToolSpec {
  return {
    name,
    aliases: [],
    summary: name,
    riskClass,
    parameters: { type: 'object' },
    priceMicroUsd: 0,
    scope: 'workspace',
    idempotent: true,
    ...rest,
  };
}

const made = makeToolCatalogue([
  tool('files.read', 'read'),
  tool('files.write', 'write', { aliases: ['write_file'] }),
  tool('model.ask', 'read', { priceMicroUsd: 100_000 }),
  tool('web.get', 'external_read', { scope: 'external' }),
  tool('queue.take', 'external_read', { scope: 'external', idempotent: false, priceMicroUsd: 200_000 }),
  tool('pay.send', 'external_write', { scope: 'external', idempotent: false, priceMicroUsd: 500_000 }),
  tool('shell.run', 'unsafe'),
]);
if (!made.ok) throw new Error(made.error.message);
export const CATALOGUE: ToolCatalogue = made.value;

const caller = (id: string, kind: 'human' | 'agent', rest: Partial<Caller> = {}): Caller => ({
  actor: { kind, id },
  mayApprove: kind === 'human',
  separateRequester: false,
  requireDigest: false,
  ...rest,
});

/** Who talks to the plans of these tests. `ASKER` starts them. */
export const ASKER = caller('asker', 'human');
export const BOSS = caller('boss', 'human');
export const OPERATOR = caller('operator', 'human', { mayApprove: false });
export const AGENT = caller('agent', 'agent');

export const FACTS: CallFacts = { issues: [], known: 1, newInKnownFolder: 0, unknown: 0, protectedPaths: [], bytes: 10 };

/** Everything proceeds and nothing is required: what a test adds is what it is about. */
export const OPEN: AutomationProfile = profileOf('full-auto', { name: 'open' });

export function profileOf(
  base: string,
  changes: Omit<Partial<AutomationProfile>, 'safety'> & { readonly safety?: Partial<AutomationProfile['safety']> } = {},
): AutomationProfile {
  const profile = BUILTIN_PROFILES.get(base);
  if (profile === undefined) throw new Error(`no profile ${base}`);
  return { ...profile, ...changes, safety: { ...profile.safety, ...changes.safety } };
}

export interface PlanOptions {
  readonly profile?: string | AutomationProfile;
  readonly guardrails?: Guardrails;
  readonly orgFloor?: Guardrails;
  readonly apply?: 'project' | 'none';
  readonly project?: ProjectRef | null;
  readonly rejection?: string;
  readonly input?: string;
  readonly sandbox?: SandboxSettings;
  readonly approvalTaskState?: ApprovalTaskState;
}

export const PROJECT: ProjectRef = { name: 'site', base: 'b'.repeat(64), protectedPaths: [] };
export const PLAN_ID = '01JPLAN0000000000000000000';
const STARTED_MS = Date.parse('2026-03-01T09:00:00.000Z');

export function createCommand(options: PlanOptions = {}): CreateCommand {
  const {
    profile: given = OPEN,
    guardrails,
    orgFloor,
    apply = 'project',
    project = PROJECT,
    rejection = null,
    input = 'do the work',
  } = options;
  const profile = typeof given === 'string' ? profileOf(given) : given;
  const action: ActionDocument = { name: 'work', description: 'Works', actor: 'scripted/steps', apply };
  return {
    type: 'create',
    planId: PLAN_ID,
    org: 'acme',
    sessionId: 's1',
    action,
    arguments: { target: 'x' },
    input,
    project,
    profile: { name: profile.name, level: 'plan', document: profile, digest: digestOf(sha256, profile) },
    ...(options.sandbox === undefined ? {} : { sandbox: options.sandbox }),
    ...(options.approvalTaskState === undefined ? {} : { approvalTaskState: options.approvalTaskState }),
    policy: combinePolicies([
      ...(orgFloor === undefined ? [] : [{ origin: 'org' as const, guardrails: orgFloor }]),
      { origin: 'profile', profile },
      ...(guardrails === undefined ? [] : [{ origin: 'plan' as const, guardrails }]),
    ]),
    statistics: { plans: { ok: 0, total: 0 }, calls: {} },
    by: ASKER.actor,
    message: null,
    rejection,
  };
}

/** One thing that the scripted actor of a test does; where it stands in the list is its cursor. */
export type Move =
  | { readonly calls: readonly ProposedCall[]; readonly facts?: readonly CallFacts[]; readonly onRefused?: 'fail' | 'continue' }
  | { readonly decide: string; readonly confidence?: number }
  | { readonly say: string }
  | { readonly ask: string }
  | { readonly artifact: string }
  | { readonly fail: string };

export const call = (toolName: string, args: JsonObject = {}, rest: Partial<ProposedCall> = {}): ProposedCall => ({
  tool: toolName,
  arguments: args,
  ...rest,
});

export interface Script {
  readonly strategize?: readonly Move[];
  readonly execute?: readonly Move[];
  /** How a call ends; absent: it succeeds and changes a file named after it. `null`: it stays where it is. */
  readonly outcome?: (call: Call, plan: Plan) => SettleOutcome | null;
  readonly diff?: (plan: Plan) => DiffInput;
  readonly apply?: (plan: Plan) => ApplyOutcome;
  readonly head?: string;
}

export const succeeded = (rest: Partial<Extract<SettleOutcome, { status: 'succeeded' }>> = {}): SettleOutcome => ({
  status: 'succeeded',
  result: { done: true },
  changes: [],
  blobs: new Map(),
  readPaths: [],
  reportedUsd: undefined,
  taint: null,
  ...rest,
});

export const failed = (
  rest: { readonly transient?: boolean; readonly dispatched?: boolean; readonly reportedUsd?: unknown; readonly message?: string } = {},
): SettleOutcome => ({
  status: 'failed',
  error: { code: 'tool_error', message: rest.message ?? 'it broke', transient: rest.transient ?? false },
  dispatched: rest.dispatched ?? true,
  reportedUsd: rest.reportedUsd,
});

export const diffOf = (plan: Plan, text = JSON.stringify(plan.changes)): DiffInput => {
  const base = plan.project?.base ?? '';
  const result = plan.changes.length === 0 ? base : sha256(base + text);
  return {
    digest: sha256(`${base} ${result}`),
    base,
    result,
    files: plan.changes.map(([path]) => ({ path, status: 'modified', additions: 1, deletions: 0 })),
    additions: plan.changes.length,
    deletions: 0,
    patch: text,
  };
};

const written = (path: string): SettleOutcome =>
  succeeded({ changes: [[path, { kind: 'write', mode: '100644', blob: sha256(path), sizeBytes: 1 }]] });

/** The engine knows the files with what a call changed, and says their digest. */
const withTree = (outcome: SettleOutcome): SettleOutcome =>
  outcome.status !== 'succeeded' || outcome.changes.length === 0 || outcome.tree !== undefined
    ? outcome
    : { ...outcome, tree: sha256(JSON.stringify(outcome.changes)) };

/** What a tool wants written, for the head that the plan saw last. */
export function writeOf(outcome: Extract<SettleOutcome, { status: 'succeeded' }>, plan: Plan): WriteToSend {
  const { changes, blobs, result, reportedUsd, taint } = outcome;
  const before = changes.map(([path]) => [path, { kind: 'delete' }] as const);
  return { head: plan.writtenAtOnce?.head ?? plan.project?.base ?? '', changes, before, blobs, result, reportedUsd, taint };
}

/** The project has taken the write that was sent. */
export function takenBy(plan: Plan, callId: string): SettleOutcome {
  const write = plan.calls[callId]?.write;
  if (write === undefined) throw new Error(`nothing was sent by ${callId}`);
  const { head: previous, changes, before } = write;
  return { status: 'written', previous, head: sha256(`${previous} ${JSON.stringify(changes)}`), changes, before };
}

export class PlanDriver {
  current: Plan | null = null;
  /** What the last command answered beside its result. */
  answered: Decided['answer'];
  nowMs = STARTED_MS;
  readonly rows: LogRow[] = [];
  readonly performed: { readonly id: string; readonly tool: string; readonly attempt: number; readonly arguments: Call['arguments'] }[] =
    [];
  /** How long each performed call takes. */
  callMs = 0;
  script: Script = {};

  static make(options: PlanOptions = {}, script: Script = {}): PlanDriver {
    const driver = new PlanDriver();
    driver.script = script;
    const created = driver.do(createCommand(options));
    if (!created.ok) throw new Error(created.error.message);
    return driver;
  }

  /** Made and played until nothing is left to do. */
  static run(options: PlanOptions, script: Script): PlanDriver {
    const driver = PlanDriver.make(options, script);
    driver.run();
    return driver;
  }

  get plan(): Plan {
    if (this.current === null) throw new Error('no plan');
    return this.current;
  }

  get now(): string {
    return new Date(this.nowMs).toISOString();
  }

  /** `phase/state`, as the table of transitions writes it. */
  get at(): string {
    return `${this.plan.phase}/${this.plan.state}${this.plan.terminal ? ' (end)' : ''}`;
  }

  get pending(): readonly Approval[] {
    return pendingApprovals(this.plan);
  }

  get only(): Approval {
    const [first, ...others] = this.pending;
    if (first === undefined || others.length > 0) throw new Error(`${this.pending.length} approvals are pending`);
    return first;
  }

  get tools(): readonly string[] {
    return this.performed.map(({ tool: name }) => name);
  }

  rowsOf<T extends EventType>(type: T): Extract<LogRow, { type: T }>[] {
    return this.rows.filter((row): row is Extract<LogRow, { type: T }> => row.type === type);
  }

  get trail(): readonly AuditEntry[] {
    return this.rows.flatMap((row) => auditEntryOf(row) ?? []);
  }

  callStates(): readonly string[] {
    return Object.values(this.plan.calls).map((each) => each.status);
  }

  do(command: Command, rest: Pick<DecideContext, 'keyed'> = {}): Result<null, Refusal> {
    const decided = decide(this.current, command, { now: this.now, sha256, catalogue: CATALOGUE, money: NO_LIMIT_ABOVE, ...rest });
    this.rows.push(...decided.rows);
    this.current = decided.plan;
    this.answered = decided.answer;
    return decided.result;
  }

  wait(ms: number): this {
    this.nowMs += ms;
    return this;
  }

  answer(approvalId: string, decision: Answer['decision'], rest: Partial<Answer> & { readonly by?: Caller } = {}): Result<null, Refusal> {
    const { by = BOSS, ...answer } = rest;
    const digest = this.plan.approvals.find((each) => each.id === approvalId)?.digest ?? null;
    return this.do({ type: 'answer', by, answer: { approvalId, decision, digest, reason: null, text: null, grant: null, ...answer } });
  }

  approve(approval: Approval = this.only, rest: Partial<Answer> & { readonly by?: Caller } = {}): Result<null, Refusal> {
    return this.answer(approval.id, 'approve', rest);
  }

  deny(approval: Approval = this.only, rest: Partial<Answer> & { readonly by?: Caller } = {}): Result<null, Refusal> {
    return this.answer(approval.id, 'deny', rest);
  }

  say(text: string, rest: Partial<Extract<Command, { type: 'message' }>> = {}): Result<null, Refusal> {
    return this.do({
      type: 'message',
      by: BOSS,
      messageId: `m${this.rows.length}`,
      parts: [{ kind: 'text', text }],
      metadata: null,
      text,
      answers: [],
      plain: null,
      ...rest,
    });
  }

  execute(rest: Partial<Extract<Command, { type: 'execute' }>> = {}): Result<null, Refusal> {
    return this.do({ type: 'execute', by: BOSS, digest: null, head: null, ...rest });
  }

  apply(rest: Partial<Extract<Command, { type: 'apply' }>> = {}): Result<null, Refusal> {
    return this.do({ type: 'apply', by: BOSS, digest: null, approve: false, ...rest });
  }

  cancel(reason: string | null = null): Result<null, Refusal> {
    return this.do({ type: 'cancel', by: BOSS.actor, reason });
  }

  revise(change: GuardChange, by: Caller = BOSS): Result<null, Refusal> {
    return this.do({ type: 'revise_guard', by, change });
  }

  set(guardrails: GuardrailChanges, by: Caller = BOSS): Result<null, Refusal> {
    return this.revise({ kind: 'set', guardrails }, by);
  }

  halt(reason = 'it pays twice', rest: Partial<Extract<Command, { type: 'halt' }>> = {}): Result<null, Refusal> {
    return this.do({ type: 'halt', by: OPERATOR.actor, level: 'plan', epoch: null, reason, ...rest });
  }

  clearHalt(rest: Partial<Extract<Command, { type: 'clear_halt' }>> = {}): Result<null, Refusal> {
    return this.do({ type: 'clear_halt', by: BOSS, level: 'plan', epoch: null, ...rest });
  }

  settle(callId: string, outcome: SettleOutcome, attempt = 1): Result<null, Refusal> {
    return this.do({ type: 'settle', callId, attempt, outcome });
  }

  /** Does what is next until the plan sleeps. Waits for retries by moving the clock, for nothing else. */
  run(script: Script = this.script): this {
    this.script = script;
    for (let turns = 0; turns < 1000; turns += 1) {
      const task = nextTask(this.plan, this.nowMs);
      if (task.kind === 'sleep') {
        const dueMs = Object.values(this.plan.calls).flatMap((each) =>
          each.retryAt === null || this.plan.terminal ? [] : [Date.parse(each.retryAt)],
        );
        if (dueMs.length === 0 || Math.min(...dueMs) <= this.nowMs) return this;
        this.nowMs = Math.min(...dueMs);
        continue;
      }
      if (!this.turn(task)) return this;
    }
    throw new Error(`the plan never sleeps: ${this.at}`);
  }

  /** One turn of the engine; false when a scripted call is to stay open. */
  turn(task = nextTask(this.plan, this.nowMs)): boolean {
    const { plan, script } = this;
    switch (task.kind) {
      case 'sleep':
        return false;
      case 'tick':
        this.must({ type: 'tick' });
        return true;
      case 'perform':
        return this.perform(task.call);
      case 'retry':
        this.must({ type: 'retry_call', callId: task.call.id, facts: FACTS });
        return true;
      case 'advance':
        this.must({
          type: 'advance',
          diff: plan.phase === 'execute' && plan.project !== null ? (script.diff ?? diffOf)(plan) : null,
          head: script.head ?? null,
          outputs: [],
        });
        return true;
      case 'propose':
        this.must(this.proposal());
        return true;
      case 'apply': {
        if (plan.apply === null) throw new Error('nothing to apply');
        const outcome =
          script.apply?.(plan) ??
          ({
            status: 'applied',
            head: plan.apply.diff.result,
            previous: plan.apply.diff.base,
            files: plan.apply.diff.files.length,
          } as const);
        this.must({ type: 'finish_apply', applyId: plan.apply.id, outcome });
        return true;
      }
    }
  }

  private must(command: Command): void {
    const done = this.do(command);
    if (!done.ok) throw new Error(`${command.type} was refused: ${done.error.message}`);
  }

  private perform(open: Call): boolean {
    if (open.atOnce === true) return this.performAtOnce(open);
    if (open.scope === 'external' && open.status === 'authorised') this.must({ type: 'mark_sent', callId: open.id, attempt: open.attempt });
    const outcome = this.script.outcome === undefined ? written(`${open.id}.txt`) : this.script.outcome(open, this.plan);
    this.performed.push({ id: open.id, tool: open.tool, attempt: open.attempt, arguments: open.arguments });
    this.nowMs += this.callMs;
    if (outcome === null) return false;
    this.must({ type: 'settle', callId: open.id, attempt: open.attempt, outcome: withTree(outcome) });
    return true;
  }

  /** The tool says what it writes, that is recorded and sent, and the project has it. */
  private performAtOnce(open: Call): boolean {
    const outcome = this.script.outcome === undefined ? written(`${open.id}.txt`) : this.script.outcome(open, this.plan);
    if (outcome === null) return false;
    const isWrite = outcome.status === 'succeeded' && outcome.changes.length > 0;
    if (open.status === 'authorised' && isWrite) {
      this.must({ type: 'mark_sent', callId: open.id, attempt: open.attempt, write: writeOf(outcome, this.plan) });
    }
    this.performed.push({ id: open.id, tool: open.tool, attempt: open.attempt, arguments: open.arguments });
    this.nowMs += this.callMs;
    this.must({ type: 'settle', callId: open.id, attempt: open.attempt, outcome: isWrite ? takenBy(this.plan, open.id) : outcome });
    return true;
  }

  /** What the scripted actor proposes now: the next move, a failure if its last one did not go well, or that it is done. */
  private proposal(): Command {
    const { plan } = this;
    const moves = (plan.phase === 'strategize' ? this.script.strategize : this.script.execute) ?? [];
    const index = typeof plan.cursor === 'number' ? plan.cursor : 0;
    const previous = moves[index - 1];
    const last = plan.step === null ? undefined : plan.results.find((each) => each.stepId === plan.step?.id);
    const mayGoOn = previous !== undefined && 'calls' in previous && previous.onRefused === 'continue';
    const move = moves[index];
    const proposal: Proposal =
      last !== undefined && last.status !== 'succeeded' && !mayGoOn
        ? { kind: 'fail', message: `step '${last.stepId}' ${last.status}: ${last.reason ?? ''}` }
        : move === undefined
          ? { kind: 'done' }
          : proposalOf(move, `${plan.phase[0]}${index + 1}`, index + 1);
    return {
      type: 'propose',
      proposal,
      actorName: 'scripted/steps',
      basis: { attempt: plan.attempt, cursor: plan.cursor, phase: plan.phase },
      guidanceSeen: plan.guidance.length,
      facts: move !== undefined && 'calls' in move ? (move.facts ?? move.calls.map(() => FACTS)) : [],
    };
  }
}

export function proposalOf(move: Move, stepId: string, cursor: JsonValue): Proposal {
  if ('calls' in move) return { kind: 'calls', stepId, calls: move.calls, onRefused: move.onRefused ?? 'fail', cursor };
  if ('say' in move) return { kind: 'say', stepId, text: move.say, cursor };
  if ('ask' in move) return { kind: 'ask', stepId, question: move.ask, cursor };
  if ('fail' in move) return { kind: 'fail', message: move.fail };
  if ('artifact' in move)
    return { kind: 'artifact', stepId, artifact: { artifactId: move.artifact, parts: [{ kind: 'text', text: move.artifact }] }, cursor };
  const decision = {
    type: 'strategy_choice',
    question: move.decide,
    chosen: 'this',
    alternatives: ['that'],
    rationale: 'because',
  } as const;
  return {
    kind: 'decide',
    stepId,
    cursor,
    decision: move.confidence === undefined ? decision : { ...decision, statedConfidence: move.confidence },
  };
}

/** The refusal of a result that has to be one. */
export function refusalOf(result: Result<null, Refusal>): Refusal {
  if (result.ok) throw new Error('was accepted');
  return result.error;
}
