/**
 * The plan loop: asks the plan what is next, does it, records how it ended, and reads the plan again. Nothing is held across a wait
 * except what was read before it; every command is decided against the state at its own moment (design sections 4 and 8).
 */
import type { ProjectPort, TreeChange } from '../app/ports.ts';
import { StorageUnavailable } from '../app/ports.ts';
import { encodeBase64 } from '../core/base64.ts';
import type { Sha256 } from '../core/digest.ts';
import { exceedsDepth, type JsonObject } from '../core/json.ts';
import { writesAtOnce } from '../core/plan/at-once.ts';
import type { Command, DiffInput, PlanOutput, SettleOutcome } from '../core/plan/commands.ts';
import { nextTask } from '../core/plan/next-task.ts';
import { type Call, haltOf, type Plan } from '../core/plan/plan.ts';
import type { Refusal } from '../core/refusal.ts';
import type { Result } from '../core/result.ts';
import { applyChanges, type Change, type Changes } from '../core/workspace/changes.ts';
import { decodeText } from '../core/workspace/text.ts';
import { EMPTY_TREE, treeDigest } from '../core/workspace/tree.ts';
import { actorContextOf, resolveStored } from './actor-context.ts';
import type { Actor } from './actors/actor.ts';
import { callFactsOf } from './call-facts.ts';
import { changesOf, type PlanWorkspace, type WorkspaceView } from './plan-workspace.ts';
import { putMissingBlobs } from './put-blobs.ts';
import type { ToolOutcome, WorkspaceReader } from './tools/tool.ts';
import type { Toolbox } from './tools/toolbox.ts';
import { watchReads } from './watch-reads.ts';
import { writeAtOnce } from './write-at-once.ts';

/** One plan as the loop sees it. `execute` decides and commits before it returns; there is no wait inside it. */
export interface PlanHost {
  readonly sha256: Sha256;
  plan(): Plan | null;
  execute(command: Command): Result<null, Refusal>;
  /** The same for what may reserve money that has to be asked for above first; each time decided from the state of its moment. */
  executeWithMoney(command: Command): Promise<Result<null, Refusal>>;
  blob(digest: string): Uint8Array | null;
  nowMs(): number;
  /** Lets what came in meanwhile be dealt with: between two steps a plan can be cancelled, whatever its steps do. */
  breathe(): Promise<void>;
  /** Whether the state follows from the log; asked before what cannot be taken back. */
  isSound(): boolean;
  /** Aborted when the plan is cancelled or halted: a running tool is told to stop. A plan that goes on has a new one. */
  readonly signal: AbortSignal;
  /** For the operator's log; never shown to a caller. */
  report(problem: string, cause: unknown): void;
}

export interface EngineParts {
  readonly toolbox: Toolbox;
  readonly findActor: (name: string) => Actor | null;
  readonly project: ProjectPort | null;
}

/** Why the signal of a halted plan is aborted. */
export const HALTED = new DOMException('the plan is halted', 'AbortError');

/** Longest time that one tool call may take. */
export const CALL_TIMEOUT_MS = 10 * 60_000;

/** How long to leave a store alone that did not answer. */
const UNAVAILABLE_PAUSE_MS = 2_000;

/** A task that fails or is refused this often in a row is given up where it can be; else the plan rests. */
const MAX_REFUSALS_IN_ROW = 5;
const REFUSED_PAUSE_MS = 10_000;

/** So many tasks are done before what came in meanwhile gets its turn, if the tasks themselves wait for nothing. */
const TURNS_PER_BREATH = 16;

/** Largest result of a tool that is kept, as JSON. */
const MAX_RESULT_BYTES = 4 * 1024 * 1024;

/**
 * Runs the plan for at most `budgetMs`. Answers until when to leave it alone although it has something to do (a store does not answer,
 * a task fails again and again), or null: its state alone says when it runs again. Never throws.
 */
export async function runPlan(host: PlanHost, parts: EngineParts, workspace: PlanWorkspace, budgetMs: number): Promise<number | null> {
  const startedMs = host.nowMs();
  let refusals = 0;
  let turns = 0;
  for (;;) {
    const plan = host.plan();
    if (plan === null) return null;
    const nowMs = host.nowMs();
    const task = nextTask(plan, nowMs);
    if (task.kind === 'sleep' || nowMs - startedMs >= budgetMs) return null;
    try {
      const done = await perform(host, parts, workspace, plan, task);
      refusals = done ? 0 : refusals + 1;
      // Not by the clock: it stands still on the platform while nothing is read or sent.
      turns += 1;
      if (turns % TURNS_PER_BREATH === 0) await host.breathe();
    } catch (cause) {
      if (cause instanceof StorageUnavailable) return host.nowMs() + UNAVAILABLE_PAUSE_MS;
      host.report(`task ${task.kind} failed`, cause);
      refusals += 1;
    }
    if (refusals >= MAX_REFUSALS_IN_ROW && !giveUp(host, task)) return host.nowMs() + REFUSED_PAUSE_MS;
  }
}

/** What cannot be done becomes a failure that the plan, its actor or a human can deal with. False: nobody can take it back. */
function giveUp(host: PlanHost, task: Task): boolean {
  const plan = host.plan();
  if (plan === null || plan.terminal) return false;
  switch (task.kind) {
    case 'perform': {
      const { id: callId, attempt, tool, scope } = task.call;
      // It may be in the project. Sending it again says so, and does nothing twice.
      if (task.call.atOnce === true && plan.calls[callId]?.status === 'sent') return false;
      const outcome = failedCall(
        'internal',
        `'${tool}' could not be carried out`,
        scope === 'external' && plan.calls[callId]?.status === 'sent',
      );
      return host.execute({ type: 'settle', callId, attempt, outcome }).ok;
    }
    case 'propose':
      return proposeFailure(host, plan, 'the next step could not be prepared');
    case 'apply':
      return (
        plan.apply !== null &&
        host.execute({
          type: 'finish_apply',
          applyId: plan.apply.id,
          outcome: { status: 'failed', reason: 'the changes could not be sent to the project' },
        }).ok
      );
    case 'tick':
    case 'retry':
    case 'advance':
      return false;
  }
}

function proposeFailure(host: PlanHost, plan: Plan, message: string): boolean {
  return host.execute({
    type: 'propose',
    proposal: { kind: 'fail', message },
    actorName: plan.action.actor,
    basis: { attempt: plan.attempt, cursor: plan.cursor, phase: plan.phase },
    guidanceSeen: plan.guidanceSeen,
    facts: [],
  }).ok;
}

type Task = Exclude<ReturnType<typeof nextTask>, { kind: 'sleep' }>;

async function perform(host: PlanHost, parts: EngineParts, workspace: PlanWorkspace, plan: Plan, task: Task): Promise<boolean> {
  switch (task.kind) {
    case 'tick':
      return host.execute({ type: 'tick' }).ok;
    case 'perform':
      return performCall(host, parts, workspace, plan, task.call);
    case 'retry': {
      const args = resolveStored(task.call.arguments, (digest) => host.blob(digest)) as JsonObject;
      const facts = callFactsOf(parts.toolbox, plan, await workspace.currentTree(plan), { tool: task.call.named, arguments: args });
      return reserved(await host.executeWithMoney({ type: 'retry_call', callId: task.call.id, facts })).ok;
    }
    case 'advance':
      return advance(host, parts, workspace, plan);
    case 'propose':
      return propose(host, parts, workspace, plan);
    case 'apply':
      return applyToProject(host, parts, workspace, plan);
  }
}

async function propose(host: PlanHost, parts: EngineParts, workspace: PlanWorkspace, plan: Plan): Promise<boolean> {
  const actor = parts.findActor(plan.action.actor);
  const context = actorContextOf(plan, (digest) => host.blob(digest));
  const proposal =
    actor === null
      ? ({ kind: 'fail', message: `actor '${plan.action.actor}' is not known here` } as const)
      : await actor.propose(context).catch((cause: unknown) => {
          host.report(`actor ${plan.action.actor} threw`, cause);
          return { kind: 'fail', message: `actor '${plan.action.actor}' failed unexpectedly` } as const;
        });
  const view = proposal.kind === 'calls' ? await workspace.view(plan) : null;
  const taken = reserved(
    await host.executeWithMoney({
      type: 'propose',
      proposal,
      actorName: plan.action.actor,
      basis: { attempt: plan.attempt, cursor: plan.cursor, phase: plan.phase },
      guidanceSeen: plan.guidance.length,
      facts:
        proposal.kind === 'calls' && view !== null
          ? proposal.calls.map((call) => ({
              ...callFactsOf(parts.toolbox, plan, view.tree, call),
              ...(view.head === null ? {} : { head: view.head }),
            }))
          : [],
    }),
  );
  if (!taken.ok && taken.error.kind === 'too_large')
    return proposeFailure(host, plan, `the next step is too large: ${taken.error.message}`);
  return taken.ok;
}

/** A budget that could not be asked says nothing of the step: it is tried again after a pause, like any store that does not answer. */
function reserved(result: Result<null, Refusal>): Result<null, Refusal> {
  if (!result.ok && result.error.kind === 'unavailable') throw new StorageUnavailable('budgets', new Error(result.error.message));
  return result;
}

async function advance(host: PlanHost, parts: EngineParts, workspace: PlanWorkspace, plan: Plan): Promise<boolean> {
  const isDone = plan.phase === 'execute';
  const diff = isDone && plan.project !== null && plan.action.apply !== 'none' ? appliedBy(plan, (await workspace.diff(plan)).input) : null;
  const outputs = isDone && plan.project === null ? filesOf(plan, host) : [];
  const head = plan.phase === 'apply' ? ((await parts.project?.head())?.head ?? null) : null;
  return host.execute({ type: 'advance', diff, head, outputs }).ok;
}

/** What was written at once is in the project: between that and what is to be applied there is no difference. */
function appliedBy(plan: Plan, diff: DiffInput): DiffInput {
  return writesAtOnce(plan) ? { ...diff, base: diff.result } : diff;
}

/** Without a project the files of the workspace are what the plan made. */
function filesOf(plan: Plan, host: PlanHost): readonly PlanOutput[] {
  return [...changesOf(plan)].flatMap(([path, change]): PlanOutput[] => {
    if (change.kind === 'delete') return [];
    const bytes = host.blob(change.blob);
    if (bytes === null) return [];
    const text = decodeText(bytes);
    return [
      { path, part: text === null ? { kind: 'raw', base64: encodeBase64(bytes), filename: path } : { kind: 'text', text, filename: path } },
    ];
  });
}

/**
 * Performs one authorised call. What leaves the workspace is marked as sent first; a call found `sent` was interrupted by a crash and is
 * repeated only if its tool promises that a repeat with the same key does nothing twice.
 */
async function performCall(host: PlanHost, parts: EngineParts, workspace: PlanWorkspace, plan: Plan, call: Call): Promise<boolean> {
  const { id: callId, attempt } = call;
  const settle = (outcome: SettleOutcome): boolean => {
    const settled = host.execute({ type: 'settle', callId, attempt, outcome });
    if (settled.ok || settled.error.kind !== 'too_large') return settled.ok;
    // What it did is done and paid for; only what it answered cannot be kept.
    const reportedUsd = 'reportedUsd' in outcome ? outcome.reportedUsd : undefined;
    const failure = failedCall('too_large', settled.error.message, call.scope === 'external');
    return host.execute({ type: 'settle', callId, attempt, outcome: { ...failure, reportedUsd } }).ok;
  };
  if (call.atOnce === true && parts.project !== null) {
    const prepare = async (view: WorkspaceView): Promise<SettleOutcome> => {
      const outcome = await callTool(host, parts, view.reader, call);
      return outcome.status === 'succeeded'
        ? readSuccess(host, host.plan() ?? plan, call, outcome, (changes) => applyChanges(view.tree, changes))
        : outcome;
    };
    return writeAtOnce({ host, project: parts.project, workspace, call, prepare });
  }
  if (call.status === 'sent' && !call.idempotent) {
    return settle({ status: 'unknown', reason: `'${call.tool}' was sent and the outcome was lost; it may or may not have happened.` });
  }
  // All that may fail without the tool comes before the mark: a marked call is one that may have happened.
  const view = await workspace.view(plan);
  const watched = view.head === null ? null : watchReads(view);
  if (call.scope === 'external' && call.status === 'authorised') {
    if (!host.execute({ type: 'mark_sent', callId, attempt }).ok) return false;
  }
  // Nothing is awaited from here to the tool's first step: what has not begun when a plan ends or is halted does not begin.
  if (mayNotBegin(host) && call.scope === 'workspace') return false;
  const outcome = await callTool(host, parts, watched?.reader ?? view.reader, call);
  const after = host.plan() ?? plan;
  const seen = watched === null ? {} : { seen: watched.seen() };
  if (outcome.status !== 'succeeded') return settle(outcome.status === 'failed' ? { ...outcome, ...seen } : outcome);
  const base = outcome.writes === undefined ? EMPTY_TREE : await workspace.baseTree(after);
  const settled = readSuccess(host, after, call, outcome, (changes) => applyChanges(base, new Map([...after.changes, ...changes])));
  return settle({ ...settled, ...seen });
}

function mayNotBegin(host: PlanHost): boolean {
  const plan = host.plan();
  return plan === null || plan.terminal || haltOf(plan) !== null;
}

type Failed = Extract<SettleOutcome, { status: 'failed' }>;
type Unknown = Extract<SettleOutcome, { status: 'unknown' }>;
type Succeeded = Extract<ToolOutcome, { status: 'succeeded' }> & { readonly readPaths: readonly string[] };

async function callTool(host: PlanHost, parts: EngineParts, workspace: WorkspaceReader, call: Call): Promise<Failed | Unknown | Succeeded> {
  const tool = parts.toolbox.find(call.tool);
  if (tool === null) return failedCall('unknown_tool', `tool '${call.tool}' is not available any more`, false);
  const args = resolveStored(call.arguments, (digest) => host.blob(digest)) as JsonObject;
  const stop = new AbortController();
  // A timer of our own, since it has to go with the call: one that is left behind would keep the plan's object awake while it waits.
  const timer = setTimeout(() => stop.abort(new DOMException('the call took too long', 'TimeoutError')), CALL_TIMEOUT_MS);
  const { signal } = host;
  const abort = (): void => stop.abort(signal.reason);
  signal.addEventListener('abort', abort);
  if (signal.aborted) abort();
  try {
    const outcome = await tool.perform(args, {
      workspace,
      signal: stop.signal,
      idempotencyKey: call.idempotencyKey,
      sha256: host.sha256,
    });
    if (outcome.status === 'failed') {
      return { status: 'failed', error: outcome.error, dispatched: outcome.dispatched, reportedUsd: outcome.costUsd };
    }
    return { ...outcome, readPaths: call.riskClass === 'read' ? (tool.paths?.(args) ?? []) : [] };
  } catch (cause) {
    // Nothing but reading its files can be repeated without a thought; a call outside is settled like any other that broke off.
    if (cause instanceof StorageUnavailable && !leavesByTool(call)) throw cause;
    if (signal.reason === HALTED) return stoppedByHalt(call);
    if (stop.signal.aborted) return failedCall('aborted', `'${call.tool}' was stopped before it ended`, leavesByTool(call));
    host.report(`tool ${call.tool} threw`, cause);
    return failedCall('tool_error', `'${call.tool}' failed unexpectedly`, leavesByTool(call));
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}

/** Whether the tool itself reaches outside. What goes to the project at once is sent after the tool has said what it is. */
function leavesByTool({ scope, atOnce }: Call): boolean {
  return scope === 'external' && atOnce !== true;
}

/** Broken off by the kill switch: what can be repeated is repeated when the plan goes on, of anything else a human says what became of it. */
function stoppedByHalt(call: Call): Failed | Unknown {
  const reason = `'${call.tool}' was stopped by the kill switch before it ended`;
  if (call.scope === 'external' && !call.idempotent) return { status: 'unknown', reason: `${reason}; it may or may not have happened.` };
  const failure = failedCall('halted', reason, leavesByTool(call));
  return { ...failure, error: { ...failure.error, transient: true } };
}

function failedCall(code: string, message: string, dispatched: boolean): Failed {
  return { status: 'failed', error: { code, message, transient: false }, dispatched, reportedUsd: undefined };
}

/** Turns what a tool wants written into changes, and refuses what would not make a tree. */
function readSuccess(
  host: PlanHost,
  plan: Plan,
  call: Call,
  outcome: Succeeded,
  apply: (changes: Changes) => ReturnType<typeof applyChanges>,
): Extract<SettleOutcome, { status: 'succeeded' | 'failed' }> {
  const failed = (code: string, message: string): Failed => ({
    ...failedCall(code, message, leavesByTool(call)),
    reportedUsd: outcome.costUsd,
  });
  const unkept = resultIssue(outcome.result);
  if (unkept !== null) return failed(unkept.code, unkept.message);
  const blobs = new Map<string, Uint8Array>();
  const changes: [string, Change][] = [];
  for (const write of outcome.writes ?? []) {
    if (write.kind === 'remove') {
      changes.push([write.path, { kind: 'delete' }]);
      continue;
    }
    const blob = host.sha256(write.bytes);
    blobs.set(blob, write.bytes);
    changes.push([write.path, { kind: 'write', mode: write.mode, blob, sizeBytes: write.bytes.byteLength }]);
  }
  // Decided as something else than a write to the project, so it is none.
  if (changes.length > 0 && call.atOnce !== true && writesAtOnce(plan))
    return failed(
      'not_a_write',
      `'${call.tool}' is no tool that writes files, and this plan has no workspace of its own; its files are not kept`,
    );
  const merged = changes.length === 0 ? null : apply(new Map(changes));
  if (merged?.ok === false) return failed('invalid_tree', merged.error.message);
  return {
    status: 'succeeded',
    result: outcome.result,
    changes,
    ...(merged === null || call.atOnce === true ? {} : { tree: treeDigest(host.sha256, merged.value) }),
    blobs,
    readPaths: outcome.readPaths,
    reportedUsd: outcome.costUsd,
    taint: outcome.taint ?? null,
  };
}

/** Why a tool's answer cannot be kept. It comes from outside, so it is measured before anything walks through it. */
function resultIssue(result: unknown): { readonly code: string; readonly message: string } | null {
  if (exceedsDepth(result)) return { code: 'result_too_deep', message: 'the result is nested too deep to be kept' };
  const text = JSON.stringify(result);
  if (text === undefined) return { code: 'invalid_result', message: 'the result is no JSON' };
  const bytes = new TextEncoder().encode(text).byteLength;
  return bytes <= MAX_RESULT_BYTES
    ? null
    : { code: 'too_large', message: `the result has ${bytes} bytes; at most ${MAX_RESULT_BYTES} are kept` };
}

/** Sends the changes to the project and commits them against the head that was shown. The same apply again answers the first outcome. */
async function applyToProject(host: PlanHost, parts: EngineParts, workspace: PlanWorkspace, plan: Plan): Promise<boolean> {
  const { apply } = plan;
  if (apply === null) return false;
  const applyId = apply.id;
  if (!host.isSound()) {
    return host.execute({
      type: 'finish_apply',
      applyId,
      outcome: { status: 'failed', reason: 'the state of the plan does not follow from its log; nothing was applied' },
    }).ok;
  }
  if (apply.diff.base === apply.diff.result) {
    return host.execute({
      type: 'finish_apply',
      applyId,
      outcome: { status: 'applied', head: apply.diff.base, previous: apply.diff.base, files: 0 },
    }).ok;
  }
  if (parts.project === null) {
    return host.execute({ type: 'finish_apply', applyId, outcome: { status: 'failed', reason: 'the plan has no project to apply to' } }).ok;
  }
  const { changes } = await workspace.diff(plan);
  const entries = [...changes].map(
    ([path, change]): TreeChange => ({
      path,
      entry: change.kind === 'delete' ? null : { mode: change.mode, blob: change.blob, sizeBytes: change.sizeBytes },
    }),
  );
  const digests = entries.flatMap(({ entry }) => (entry === null ? [] : [entry.blob]));
  const put = await putMissingBlobs(parts.project, digests, (digest) => host.blob(digest));
  if (!put.ok) return host.execute({ type: 'finish_apply', applyId, outcome: { status: 'failed', reason: put.error.message } }).ok;
  // The plan may have been cancelled or halted while blobs travelled; from the commit on there is no way back.
  if (host.plan()?.apply?.id !== applyId || mayNotBegin(host)) return false;
  const committed = await parts.project.commit({
    commitId: applyId,
    expectedHead: apply.diff.base,
    mode: 'patch',
    changes: entries,
    message: `${plan.action.name} (plan ${plan.id})`,
    by: plan.id,
  });
  if (!committed.ok)
    return host.execute({ type: 'finish_apply', applyId, outcome: { status: 'failed', reason: committed.error.message } }).ok;
  const { value } = committed;
  return host.execute({
    type: 'finish_apply',
    applyId,
    outcome:
      value.status === 'moved'
        ? { status: 'moved', head: value.head }
        : { status: 'applied', head: value.head, previous: value.previous, files: value.files },
  }).ok;
}
