/**
 * The fold: `evolve(plan, row)` never refuses and reads nothing but its arguments, so replaying a log gives the state (design invariant 3).
 * `waiting` is derived here and nowhere else: a live plan waits exactly while something is pending.
 */
import { type Day, dayOfInstant } from '../budget/window.ts';
import { canonicalJson } from '../json.ts';
import { chargeLate, EMPTY_LEDGER, grant, markWarned, type PlanLedger, release, reserve, settle } from '../ledger.ts';
import { parseCostUsd } from '../money.ts';
import { DEFAULT_SANDBOX } from '../sandbox.ts';
import { withSeen, withWrite } from './at-once.ts';
import { withCheckpoint } from './checkpoint.ts';
import type { Charge, EventBodies, LogRow, Move } from './events.ts';
import { checkRecorded, countCall, imported, openedOutside, settledOutside } from './external/evolve.ts';
import {
  type Approval,
  type Call,
  type FinishedStep,
  type HaltWord,
  haltOf,
  PLAN_STATE_VERSION,
  type Plan,
  pendingApprovals,
  type Step,
  type Stored,
} from './plan.ts';

export function evolve(plan: Plan | null, row: LogRow): Plan {
  if (row.type === 'plan_created') return created(row.data, row);
  if (plan === null) throw new Error(`the log begins with ${row.type}`);
  return settleState(plan, finishStep(apply(plan, row)), row);
}

/** Rebuilds the state from a whole log. */
export function replay(rows: Iterable<LogRow>): Plan | null {
  let plan: Plan | null = null;
  for (const row of rows) plan = evolve(plan, row);
  return plan;
}

type Body<T extends keyof EventBodies> = EventBodies[T];

function created(data: Body<'plan_created'>, row: LogRow): Plan {
  return {
    v: PLAN_STATE_VERSION,
    id: data.plan_id,
    org: data.org,
    sessionId: data.session_id,
    action: data.action,
    arguments: data.arguments,
    input: data.input,
    project: data.project,
    profile: data.profile,
    policy: data.policy,
    policyDigest: data.policy_digest,
    guards: { revision: 1, locked: null, own: {} },
    halts: [],
    sandbox: data.sandbox ?? DEFAULT_SANDBOX,
    ...(data.approval_task_state === undefined ? {} : { approvalTaskState: data.approval_task_state }),
    statistics: data.statistics,
    requester: data.requester,
    createDigest: data.create_digest,
    ...(row.trace_id === undefined ? {} : { traceId: row.trace_id }),
    // An executor outside is at work from the first moment, and so is the clock.
    ...(data.external === true
      ? ({ external: openedOutside(data), phase: 'execute', state: 'running' } as const)
      : ({ phase: 'action', state: 'queued' } as const)),
    resumeState: null,
    terminal: false,
    attempt: 1,
    reversions: 0,
    cursor: null,
    step: null,
    stepsUsed: 0,
    callsInStep: 0,
    callsInInvocation: 0,
    nextCall: 1,
    calls: {},
    results: [],
    guidance: [],
    guidanceSeen: 0,
    tainted: false,
    ledger: EMPTY_LEDGER,
    grants: { calls: { step: 0, amount: 0 }, steps: 0, seconds: 0, retries: 0 },
    approvals: [],
    decisions: [data.root],
    messages: data.message === null ? [] : [data.message],
    artifacts: [],
    changes: [],
    tree: data.tree ?? null,
    checkpoints: [],
    checkpointsMade: 0,
    readPaths: [],
    readHosts: [],
    workedMs: 0,
    workingSince: data.external === true ? row.at : null,
    apply: null,
    appliedAt: null,
    appliedHead: null,
    failure: null,
    cancelReason: null,
    createdAt: row.at,
    updatedAt: row.at,
    statusAt: row.at,
    seq: row.seq,
    headHash: row.hash,
  };
}

/** What the event itself changes; state, clocks and log position follow in `settleState`. */
function apply(plan: Plan, row: Exclude<LogRow, { type: 'plan_created' }>): Plan {
  switch (row.type) {
    case 'plan_rejected': {
      const failure = { message: row.data.reason, at: row.at };
      return moved({ ...plan, failure: { first: failure, last: failure } }, row.data.to);
    }
    case 'gate_decided':
      return gateDecided(plan, row.data);
    case 'decision_made':
      return inStep({ ...plan, decisions: [...plan.decisions, row.data.decision] }, row.data.step, row.data.cursor);
    case 'call_decided':
      return callDecided(plan, row.data, row);
    case 'call_sent':
      return callSent(plan, row.data);
    case 'call_settled':
      return callSettled(plan, row.data, dayOfInstant(row.at));
    case 'message_said':
      return inStep({ ...plan, messages: [...plan.messages, row.data.message] }, row.data.step, row.data.cursor);
    case 'artifact_produced':
      return artifactProduced(plan, row.data, row.at);
    case 'message_received': {
      const { message, disposition, text } = row.data;
      const guidance = disposition === 'guidance' ? [...plan.guidance, text] : plan.guidance;
      return { ...plan, messages: [...plan.messages, message], guidance };
    }
    case 'strategy_completed':
    case 'execution_completed':
      return moved({ ...plan, step: null }, row.data.to);
    case 'plan_failed': {
      const failure = { message: row.data.reason, at: row.at };
      return moved({ ...plan, failure: { first: plan.failure?.first ?? failure, last: failure } }, row.data.to);
    }
    case 'plan_restarted':
      return restarted(plan, row.data);
    case 'approval_opened':
      return approvalOpened(plan, row.data);
    case 'approval_decided': {
      const { approval_id: id, decision, by, reason, text } = row.data;
      const status = decision === 'approve' ? 'approved' : decision === 'deny' ? 'denied' : 'answered';
      const next = withApproval(plan, id, (approval) => ({ ...approval, status, decided: { by, at: row.at, reason, text } }));
      if (status === 'answered') return answered(next, id, text ?? '');
      return status === 'approved' && row.data.kind === 'call' ? overridden(next, id) : next;
    }
    case 'approval_refused':
      return plan;
    case 'approval_closed': {
      const { approval_id: id, status } = row.data;
      return withApproval(plan, id, (approval) => ({ ...approval, status }));
    }
    case 'approval_extended': {
      const { approval_id: id, expires_at: expiresAt } = row.data;
      return withApproval(plan, id, (approval) => ({ ...approval, expiresAt, reminded: false }));
    }
    case 'approval_reminded':
      return withApproval(plan, row.data.approval_id, (approval) => ({ ...approval, reminded: true }));
    case 'limit_granted':
      return limitGranted(plan, row.data);
    case 'budget_warning':
      return { ...plan, ledger: markWarned(plan.ledger) };
    case 'plan_applied':
      return moved({ ...plan, appliedAt: row.at, appliedHead: row.data.head }, row.data.to);
    case 'apply_constrained': {
      const failure = { message: row.data.reason, at: row.at };
      return moved({ ...plan, apply: null, failure: { first: plan.failure?.first ?? failure, last: failure } }, row.data.to);
    }
    case 'guard_revised':
      return guardRevised(plan, row.data);
    case 'guard_revision_refused':
    case 'push_config_changed':
      return plan;
    case 'halted':
      return withHalt(plan, row.data, row.data.reason, row);
    case 'halt_cleared':
      return withHalt(plan, row.data, null, row);
    case 'plan_cancelled':
    case 'retention_ended':
      return moved({ ...plan, cancelReason: row.data.reason }, row.data.to);
    case 'check_recorded':
      return checkRecorded(plan, row.data, dayOfInstant(row.at));
    case 'session_associated':
      return inSession(plan, row.data.session_id);
    case 'imported':
      return imported(plan, row.data);
  }
}

function settleState(before: Plan, after: Plan, row: LogRow): Plan {
  const aim: Plan['state'] = after.state === 'waiting' ? (after.resumeState ?? 'running') : after.state;
  const waits = !after.terminal && pendingApprovals(after).length > 0;
  const state = waits ? 'waiting' : aim;
  const isNews = state !== before.state || after.phase !== before.phase || pendingIds(before) !== pendingIds(after);
  const wasWorking = before.workingSince;
  const works = after.external === undefined ? state === 'running' && !after.terminal : worksOutside(after);
  return {
    ...after,
    state,
    resumeState: waits ? aim : null,
    workedMs: wasWorking !== null && !works ? after.workedMs + elapsedMs(wasWorking, row.at) : after.workedMs,
    workingSince: works ? (wasWorking ?? row.at) : null,
    updatedAt: row.at,
    statusAt: isNews ? row.at : after.statusAt,
    seq: row.seq,
    headHash: row.hash,
  };
}

/**
 * Other calls are authorised while a question is open, so an executor outside would stop its own clock by asking for one that is forbidden.
 * It cannot work only where everything is refused: while the plan is halted, and once its time is up until somebody grants more.
 */
function worksOutside(plan: Plan): boolean {
  return !plan.terminal && haltOf(plan) === null && !pendingApprovals(plan).some(({ guard }) => guard === 'wall_clock');
}

function pendingIds(plan: Plan): string {
  return pendingApprovals(plan)
    .map((approval) => approval.id)
    .join();
}

function moved(plan: Plan, to: Move): Plan {
  const next = { ...plan, phase: to.phase, state: to.state, terminal: to.terminal === true };
  if (!next.terminal) return next;
  // Nothing can be answered any more. What was not sent yet holds no money; what is on the way outside is settled late, as cost only.
  const unsent = Object.values(plan.calls).filter((call) => call.status === 'authorised');
  return {
    ...next,
    approvals: plan.approvals.map((each) => (each.status === 'pending' ? { ...each, status: 'revoked' as const } : each)),
    ledger: unsent.reduce((ledger, call) => valueOr(release(ledger, reservationId(call)), ledger), plan.ledger),
  };
}

function inStep(plan: Plan, step: Step, cursor: Plan['cursor']): Plan {
  const isNew = plan.step === null || plan.step.number !== step.number;
  return {
    ...plan,
    step,
    cursor,
    stepsUsed: Math.max(plan.stepsUsed, step.number),
    callsInStep: isNew ? 0 : plan.callsInStep,
    calls: isNew ? {} : plan.calls,
    guidanceSeen: Math.max(plan.guidanceSeen, step.guidanceSeen),
  };
}

function withCall(plan: Plan, id: string, change: (call: Call) => Call): Plan {
  const call = plan.calls[id];
  return call === undefined ? plan : { ...plan, calls: { ...plan.calls, [id]: change(call) } };
}

function withApproval(plan: Plan, id: string, change: (approval: Approval) => Approval): Plan {
  return { ...plan, approvals: plan.approvals.map((approval) => (approval.id === id ? change(approval) : approval)) };
}

function gateDecided(plan: Plan, data: Body<'gate_decided'>): Plan {
  let next = plan;
  if (data.outcome === 'proceed' && data.call_ids !== undefined) {
    const passed = Object.fromEntries(
      data.call_ids.flatMap((id) => (plan.calls[id] ? [[id, { ...plan.calls[id], gatePassed: true }]] : [])),
    );
    next = { ...next, calls: { ...next.calls, ...passed } };
  }
  if (data.apply_id !== undefined && data.diff !== undefined) next = { ...next, apply: { id: data.apply_id, diff: data.diff } };
  if (data.rebase !== undefined) next = rebased({ ...next, reversions: next.reversions + 1, attempt: next.attempt + 1 }, data.rebase);
  return data.to === undefined ? next : moved(enterPhase(next, data.to), data.to);
}

/** A phase begins: the actor starts from nothing, and so does its invocation count. */
function enterPhase(plan: Plan, to: Move): Plan {
  const begins = to.state === 'running' && (to.phase === 'strategize' || to.phase === 'execute');
  const again = to.phase === 'strategize' ? supersede(plan) : plan;
  return begins
    ? { ...again, cursor: null, step: null, calls: {}, callsInInvocation: 0, results: to.phase === 'strategize' ? [] : plan.results }
    : plan;
}

function rebased(plan: Plan, project: NonNullable<Plan['project']>): Plan {
  return { ...plan, project, changes: [], tree: project.base, readPaths: [], readHosts: [], apply: null };
}

/** Strategize begins again: what was decided before stays in the tree, superseded; the root stands. */
function supersede(plan: Plan): Plan {
  return { ...plan, decisions: plan.decisions.map((each) => (each.parentId === null ? each : { ...each, superseded: true })) };
}

function callDecided(plan: Plan, data: Body<'call_decided'>, { seq, at }: Pick<LogRow, 'seq' | 'at'>): Plan {
  let next = data.step !== undefined ? inStep(plan, data.step, data.cursor ?? plan.cursor) : countCall(plan, data.call);
  const started = startedOutside(data, seq);
  const call = data.checkpoint_id === undefined ? started : { ...started, checkpointId: data.checkpoint_id };
  next = {
    ...next,
    calls: { ...next.calls, [call.id]: call },
    nextCall: Math.max(next.nextCall, callNumber(call.id) + 1),
  };
  if (data.checkpoint !== undefined) next = withCheckpoint(next, { ...data.checkpoint, seq, at });
  if (data.call.status !== 'authorised') return next;
  return {
    ...next,
    callsInStep: next.callsInStep + 1,
    callsInInvocation: next.callsInInvocation + 1,
    ledger: valueOr(
      reserve(next.ledger, null, {
        id: reservationId(call),
        amountMicroUsd: data.reserved_micro_usd,
        day: dayOfInstant(at),
        tool: call.tool,
      }),
      next.ledger,
    ),
  };
}

/** Whoever got an authorisation outside may act on it at once: from here on it is as if it had been sent. */
function startedOutside({ call, guard }: Body<'call_decided'>, seq: number): Call {
  if (call.external === undefined) return { ...call, guard };
  return { ...call, status: call.status === 'authorised' ? 'sent' : call.status, external: { ...call.external, decidedSeq: seq, guard } };
}

/** Each attempt of a call holds its own reservation. */
export function reservationId(call: Pick<Call, 'id' | 'attempt'>): string {
  return `${call.id}.${call.attempt}`;
}

function callNumber(id: string): number {
  return Number(id.slice(1));
}

function callSent(plan: Plan, { call_id: id, write }: Body<'call_sent'>): Plan {
  // The write is made for this head: so it was before it.
  const checkpoints =
    write === undefined
      ? plan.checkpoints
      : plan.checkpoints.map((each) =>
          each.call === id && each.id === plan.calls[id]?.checkpointId ? { ...each, tree: write.head } : each,
        );
  return withCall({ ...plan, checkpoints }, id, (call) => {
    if (write === undefined) return { ...call, status: 'sent' };
    const { commit_id: commitId, head, changes, before, result, reported: reportedUsd, taint } = write;
    return { ...call, status: 'sent', write: { commitId, head, changes, before, result, reportedUsd, taint } };
  });
}

/** What the project holds is there, also where the plan had ended before it was known. */
function withChanges(plan: Plan, { changes, written, tree }: Body<'call_settled'>): Plan {
  if (changes.length === 0) return plan;
  const next = { ...plan, changes: [...new Map([...plan.changes, ...changes])], tree: written?.head ?? tree ?? null };
  return written === undefined
    ? next
    : { ...next, writtenAtOnce: withWrite(plan.writtenAtOnce, written), seen: withSeen(plan.seen, changes) };
}

function callSettled(plan: Plan, data: Body<'call_settled'>, day: Day): Plan {
  const { charge } = data;
  let next = plan;
  if (charge !== null) {
    next = { ...next, ledger: charged(next.ledger, charge, day, plan.calls[data.call_id]?.tool ?? null) };
  } else if (data.outcome !== 'unknown') {
    next = { ...next, ledger: valueOr(release(next.ledger, `${data.call_id}.${data.attempt}`), next.ledger) };
  }
  if (data.late === true) {
    // Closed, so that the same result cannot be counted twice; nothing else of it counts.
    return withCall(withChanges(next, data), data.call_id, (call) =>
      call.attempt === data.attempt ? settledOutside({ ...withoutWrite(call), status: data.outcome }, data) : call,
    );
  }
  const withFiles = withChanges(next, data);
  return withCall(
    {
      ...withFiles,
      readPaths: data.read_paths.length === 0 ? next.readPaths : [...new Set([...next.readPaths, ...data.read_paths])],
      readHosts: hostsAfter(next, data),
      tainted: next.tainted || data.taint !== null,
      ...(data.seen === undefined ? {} : { seen: withSeen(withFiles.seen, data.seen) }),
    },
    data.call_id,
    (call) =>
      settledOutside(
        {
          ...withoutWrite(call),
          status: data.outcome,
          result: data.result,
          error: data.error,
          reason: data.reason,
          retryAt: data.retry_at,
          // An approval is consumed once; what lets a repeat pass is something else.
          approvalId: data.outcome === 'retrying' ? null : call.approvalId,
        },
        data,
      ),
  );
}

/** Its outcome is known: what was sent is done, or will not be. */
function withoutWrite({ write: _sent, ...call }: Call): Call {
  return call;
}

/** A host that was read from once is familiar; one that was only written to is not. */
function hostsAfter(plan: Plan, { call_id: id, outcome }: Body<'call_settled'>): readonly string[] {
  const call = plan.calls[id];
  const hosts = outcome === 'succeeded' && call?.riskClass === 'external_read' ? (call.hosts ?? []) : [];
  return hosts.length === 0 ? plan.readHosts : [...new Set([...plan.readHosts, ...hosts])];
}

function artifactProduced(plan: Plan, data: Body<'artifact_produced'>, at: string): Plan {
  const { artifact, append } = data;
  const known = plan.artifacts.find((each) => each.artifactId === artifact.artifactId);
  const made = {
    artifactId: artifact.artifactId,
    name: artifact.name ?? (append ? (known?.name ?? null) : null),
    description: artifact.description ?? (append ? (known?.description ?? null) : null),
    parts: append && known ? [...known.parts, ...artifact.parts] : artifact.parts,
    step: data.step?.number ?? plan.stepsUsed,
    updatedAt: at,
  };
  const artifacts = known ? plan.artifacts.map((each) => (each === known ? made : each)) : [...plan.artifacts, made];
  const next = { ...plan, artifacts };
  return data.step === null ? next : inStep(next, data.step, data.cursor ?? plan.cursor);
}

/** Back to the start of the open step: the same step once more, which is neither a new step nor a new strategy. Anything else begins a phase again. */
function restarted(plan: Plan, data: Body<'plan_restarted'>): Plan {
  const repeated = repeatedStep(plan, data);
  const isNewStrategy = data.to.phase === 'strategize' && repeated === null;
  const next = {
    ...plan,
    cursor: data.cursor,
    step: null,
    stepsUsed: repeated !== null && plan.phase === 'execute' ? repeated.number - 1 : plan.stepsUsed,
    results: isNewStrategy ? [] : plan.results,
    calls: {},
    callsInInvocation: 0,
    attempt: data.fresh_attempt ? plan.attempt + 1 : plan.attempt,
    approvals: plan.approvals.map((each) => (each.status === 'pending' ? { ...each, status: 'revoked' as const } : each)),
  };
  const again = isNewStrategy ? supersede(next) : next;
  return moved(data.rebase === undefined ? again : rebased(again, data.rebase), data.to);
}

function repeatedStep({ step, phase }: Plan, { cursor, to }: Body<'plan_restarted'>): Step | null {
  if (step === null || phase !== to.phase) return null;
  const counts = step.kind === 'ask' || step.callIds.length > 0;
  return counts && canonicalJson(step.startCursor) === canonicalJson(cursor) ? step : null;
}

function approvalOpened(plan: Plan, data: Body<'approval_opened'>): Plan {
  const { approval } = data;
  let next = data.step === undefined ? plan : inStep(plan, data.step, data.cursor ?? plan.cursor);
  for (const id of approval.callIds) next = withCall(next, id, (call) => ({ ...call, approvalId: approval.id }));
  return { ...next, approvals: [...next.approvals, approval] };
}

function limitGranted(plan: Plan, data: Body<'limit_granted'>): Plan {
  const { grant: given } = data;
  const grants = plan.grants;
  if (given.cost_usd !== undefined) {
    const amount = parseCostUsd(given.cost_usd);
    return amount.ok ? { ...plan, ledger: valueOr(grant(plan.ledger, amount.value), plan.ledger) } : plan;
  }
  if (given.calls !== undefined) {
    const step = stepOfGrant(plan, data.approval_id);
    const before = grants.calls.step === step ? grants.calls.amount : 0;
    return { ...plan, grants: { ...grants, calls: { step, amount: before + given.calls } } };
  }
  if (given.steps !== undefined) return { ...plan, grants: { ...grants, steps: grants.steps + given.steps } };
  if (given.seconds !== undefined) return { ...plan, grants: { ...grants, seconds: grants.seconds + given.seconds } };
  if (given.retries !== undefined) return { ...plan, grants: { ...grants, retries: grants.retries + given.retries } };
  return plan;
}

/**
 * What was decided under the policy before holds no longer for calls that have not begun. Approvals given under it let nothing more pass,
 * not even a repeat of what has begun.
 */
function guardRevised(plan: Plan, data: Body<'guard_revised'>): Plan {
  const withdrawn = data.withdrawn.flatMap((id) => plan.calls[id] ?? []);
  const calls = Object.values(plan.calls).map((call): Call => {
    if (FINAL_CALLS.has(call.status)) return call;
    const unbound = { ...call, gatePassed: false, overridden: {} };
    if (data.withdrawn.includes(call.id)) return { ...unbound, status: 'asked', approvalId: null };
    const isHeld = call.status === 'asked' || call.status === 'cleared' || call.status === 'retrying';
    return isHeld ? { ...unbound, approvalId: null } : unbound;
  });
  const { grants } = data;
  return {
    ...plan,
    policy: data.policy,
    policyDigest: data.policy_digest,
    guards: { revision: data.revision, locked: data.locked ?? null, own: data.own },
    calls: Object.fromEntries(calls.map((call) => [call.id, call])),
    callsInStep: Math.max(0, plan.callsInStep - withdrawn.length),
    callsInInvocation: Math.max(0, plan.callsInInvocation - withdrawn.length),
    ledger: {
      ...withdrawn.reduce((ledger, call) => valueOr(release(ledger, reservationId(call)), ledger), plan.ledger),
      ...(grants === undefined ? {} : { grantedMicroUsd: grants.cost_micro_usd }),
    },
    grants:
      grants === undefined
        ? plan.grants
        : { calls: { step: plan.stepsUsed, amount: grants.calls }, steps: grants.steps, seconds: grants.seconds, retries: grants.retries },
  };
}

function withHalt(
  plan: Plan,
  { level, epoch }: Pick<HaltWord, 'level' | 'epoch'>,
  reason: string | null,
  { actor: by, at }: Pick<LogRow, 'actor' | 'at'>,
): Plan {
  return { ...plan, halts: [...plan.halts.filter((each) => each.level !== level), { level, epoch, reason, by, at }] };
}

/** The switch of the session that is left stays behind, and that of the new one holds, as far as it was heard before. */
function inSession(plan: Plan, sessionId: string): Plan {
  const left = plan.halts.find(({ level }) => level === 'session');
  const known = plan.leftHalts?.find((each) => each.sessionId === sessionId)?.word;
  const next = { ...plan, sessionId };
  if (left === undefined && known === undefined) return next;
  return {
    ...next,
    halts: [...plan.halts.filter((each) => each !== left), ...(known === undefined ? [] : [known])],
    leftHalts: [
      ...(plan.leftHalts ?? []).filter((each) => each.sessionId !== sessionId),
      ...(left === undefined ? [] : [{ sessionId: plan.sessionId, word: left }]),
    ],
  };
}

/** A plan here is in one step; an executor outside may be in several, and more calls are granted for that of the call that asked. */
function stepOfGrant(plan: Plan, approvalId: string): number {
  if (plan.external === undefined) return plan.stepsUsed;
  const [id] = plan.approvals.find((each) => each.id === approvalId)?.callIds ?? [];
  return (id === undefined ? undefined : plan.calls[id]?.step) ?? plan.stepsUsed;
}

function charged(ledger: PlanLedger, charge: Charge, day: Day, tool: string | null): PlanLedger {
  const settled = settle(ledger, charge.id, charge.reported);
  return settled.ok ? settled.value.ledger : chargeLate(ledger, charge.charged_micro_usd, day, tool);
}

/** The answer to an actor's question becomes the result of its step. */
function answered(plan: Plan, approvalId: string, text: string): Plan {
  const approval = plan.approvals.find((each) => each.id === approvalId);
  if (approval?.kind !== 'question' || approval.subject.resume === undefined) return plan;
  const { stepId } = approval.subject.resume;
  const step = plan.step?.kind === 'ask' && plan.step.id === stepId ? { ...plan.step, kind: 'other' as const } : plan.step;
  return withResult({ ...plan, step }, { stepId, status: 'succeeded', values: [{ inline: text }], reason: null });
}

/** A human let exactly these calls pass: the guards that had refused, and the batch's gate. */
function overridden(plan: Plan, approvalId: string): Plan {
  const ids = plan.approvals.find((each) => each.id === approvalId)?.callIds ?? [];
  return ids.reduce(
    (next, id) =>
      withCall(next, id, (call) => ({
        ...call,
        gatePassed: true,
        overridden: { ...call.overridden, ...Object.fromEntries(call.approvable.map((guard) => [guard, approvalId])) },
      })),
    plan,
  );
}

function withResult(plan: Plan, finished: FinishedStep): Plan {
  return { ...plan, results: [...plan.results.filter((each) => each.stepId !== finished.stepId), finished] };
}

const FINAL_CALLS: ReadonlySet<Call['status']> = new Set(['succeeded', 'failed', 'refused']);

/** A step of calls ends with its last call; its result is derived, so that no row of the log can contradict it. */
function finishStep(plan: Plan): Plan {
  const { step } = plan;
  if (step?.kind !== 'calls') return plan;
  const calls = step.callIds.flatMap((id) => plan.calls[id] ?? []);
  if (calls.length < step.callIds.length || !calls.every((call) => FINAL_CALLS.has(call.status))) return plan;
  const worst = calls.find((call) => call.status === 'refused') ?? calls.find((call) => call.status === 'failed');
  return withResult(
    { ...plan, step: { ...step, kind: 'other' } },
    {
      stepId: step.id,
      status: worst === undefined ? 'succeeded' : worst.status === 'refused' ? 'refused' : 'failed',
      values: calls.map((call): Stored => call.result ?? { inline: null }),
      reason: worst === undefined ? null : (worst.reason ?? worst.error?.message ?? null),
    },
  );
}

/** The fold is total: what the decider has checked cannot fail here, and if a log says otherwise nothing is invented. */
function valueOr<T>(result: { readonly ok: true; readonly value: T } | { readonly ok: false }, fallback: T): T {
  return result.ok ? result.value : fallback;
}

/** Time between two ISO instants, never negative: a clock that steps back costs nothing. */
export function elapsedMs(from: string, to: string): number {
  return Math.max(0, Date.parse(to) - Date.parse(from));
}
