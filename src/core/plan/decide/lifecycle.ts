import { maskText } from '../../audit/mask.ts';
import { digestOf } from '../../digest.ts';
import type { ThresholdName } from '../../profile.ts';
import type { Refusal } from '../../refusal.ts';
import { invalidField, invalidState } from '../../refusal.ts';
import { err, ok, type Result } from '../../result.ts';
import { DEFAULT_SANDBOX, type SandboxSettings } from '../../sandbox.ts';
import { EMPTY_TREE, treeDigest } from '../../workspace/tree.ts';
import type { Caller, Command, CreateCommand } from '../commands.ts';
import { type Approval, type Plan, type PlanMessage, pendingApprovals, type Stored } from '../plan.ts';
import { SYSTEM, type Work } from '../work.ts';
import { advance, report } from './advance.ts';
import { answerApproval } from './answer.ts';
import { restart } from './restart.ts';
import { abandonAllUnknown } from './settle.ts';

/** Makes the plan and asks its first gate, so that whoever made it sees at once whether it waits. */
export function createPlan(work: Work, command: CreateCommand): Result<null, Refusal> {
  const { now, sha256 } = work.context;
  const { message } = command;
  const named = command.approvalTaskState === 'input-required' ? undefined : command.approvalTaskState;
  work.emit('plan_created', command.by, {
    plan_id: command.planId,
    org: command.org,
    session_id: command.sessionId,
    action: command.action,
    arguments: work.store(command.arguments),
    input: work.store(command.input),
    project: command.project,
    profile: command.profile,
    policy: command.policy,
    policy_digest: digestOf(sha256, command.policy),
    ...(command.sandbox === undefined ? {} : { sandbox: command.sandbox }),
    ...(named === undefined ? {} : { approval_task_state: named }),
    ...(command.external === true ? {} : { tree: command.project?.base ?? treeDigest(sha256, EMPTY_TREE) }),
    statistics: command.statistics,
    requester: command.by,
    create_digest: createDigest(work, command),
    message: message === null ? null : storedMessage(work, message),
    root: {
      id: `${command.planId}.d1`,
      parentId: null,
      type: 'prompt_definition',
      question: 'What is to be done?',
      chosen: command.input === '' ? command.action.description : maskText(command.input.slice(0, 8000)).slice(0, 2000),
      alternatives: [],
      rationale: `Action ${command.action.name}`,
      confidence: null,
      threshold: null,
      step: 0,
      attempt: 1,
      superseded: false,
      createdAt: now,
    },
    ...(command.external === undefined ? {} : { external: command.external }),
    ...(command.retentionDays === undefined ? {} : { retention_days: command.retentionDays }),
  });
  if (command.rejection !== null) {
    work.emit('plan_rejected', SYSTEM, { reason: command.rejection, to: { phase: 'action', state: 'rejected', terminal: true } });
    return ok(null);
  }
  if (command.external === undefined) advance(work, null, null);
  return ok(null);
}

function storedMessage(work: Work, { metadata, ...message }: NonNullable<CreateCommand['message']>): PlanMessage {
  return {
    ...message,
    parts: work.store(message.parts),
    at: work.context.now,
    ...(metadata === undefined ? {} : { metadata: work.store(metadata) }),
  };
}

const isDefault = ({ strategy, checkpointsEnabled }: SandboxSettings): boolean =>
  strategy === DEFAULT_SANDBOX.strategy && checkpointsEnabled === DEFAULT_SANDBOX.checkpointsEnabled;

/** What makes two creations the same: everything that came in, but not when. */
export function createDigest(work: Work, command: CreateCommand): string {
  return digestOf(work.context.sha256, {
    action: command.action,
    arguments: command.arguments,
    input: command.input,
    session: command.sessionId,
    project: command.project?.name ?? null,
    profile: command.profile.digest,
    policy: command.policy,
    ...(command.sandbox === undefined || isDefault(command.sandbox) ? {} : { sandbox: { ...command.sandbox } }),
  });
}

/**
 * Explicit execute: the caller's approval of decompose_task or create_tool, and only of those. On a failed plan it starts it again;
 * on a plan at work it is acknowledged and nothing runs twice.
 */
export function executePlan(work: Work, command: Extract<Command, { type: 'execute' }>): Result<null, Refusal> {
  const plan = work.plan();
  const ended = refuseTerminal(plan);
  if (ended !== null) return err(ended);
  const pending = pendingApprovals(plan);
  if (pending.length > 0)
    return answerOwnGate(work, command.by, pending, ['decompose_task', 'create_tool'], command.digest, 'plan/execute');
  if (plan.state !== 'errored' && plan.state !== 'constrained') return ok(null);
  return restart(work, 'execute', command.head);
}

/** Explicit apply: the caller's approval of the diff that was shown, and only of that. */
export function applyPlan(work: Work, command: Extract<Command, { type: 'apply' }>): Result<null, Refusal> {
  const plan = work.plan();
  const ended = refuseTerminal(plan);
  if (ended !== null) return err(ended);
  if (plan.policy.requireApprovalForApply && (!command.approve || command.digest === null)) {
    const field = command.approve ? 'digest' : 'approve';
    return err(
      invalidField(field, 'require_approval_for_apply is set: send approve: true and the digest that was shown', { plan_id: plan.id }),
    );
  }
  const pending = pendingApprovals(plan);
  if (pending.length === 0) {
    if (plan.phase === 'apply' && plan.state === 'running') return ok(null);
    return err(invalidState(`there is nothing to apply yet: the plan is in ${plan.phase}/${plan.state}`, at(plan)));
  }
  return answerOwnGate(work, command.by, pending, ['select_tool'], command.digest, 'plan/apply');
}

export function cancelPlan(work: Work, command: Extract<Command, { type: 'cancel' }>): Result<null, Refusal> {
  const plan = work.plan();
  if (plan.terminal) {
    return err(invalidState(`the plan is ${plan.state} and cannot be cancelled`, { ...at(plan), reason: 'TASK_NOT_CANCELABLE' }));
  }
  // The commit may already have happened: an answer 'cancelled' could be a lie.
  if (plan.phase === 'apply' && plan.state === 'running') {
    return err(invalidState('the plan is being applied and cannot be cancelled any more', { ...at(plan), reason: 'TASK_NOT_CANCELABLE' }));
  }
  abandonAllUnknown(work);
  work.emit('plan_cancelled', command.by, { reason: command.reason, to: { phase: plan.phase, state: 'cancelled', terminal: true } });
  return ok(null);
}

/** What the project said to the apply that was sent to it. An answer to an apply that is no longer the plan's own changes nothing. */
export function finishApply(work: Work, command: Extract<Command, { type: 'finish_apply' }>): Result<null, Refusal> {
  const plan = work.plan();
  if (plan.terminal || plan.phase !== 'apply' || plan.apply === null || plan.apply.id !== command.applyId) {
    return err(invalidState('this apply is not what the plan is doing', at(plan)));
  }
  const { outcome } = command;
  switch (outcome.status) {
    case 'applied': {
      const made = report(work, plan.apply.diff);
      publishResult(work, made, plan.apply.diff.patch);
      work.emit('plan_applied', SYSTEM, {
        head: outcome.head,
        previous: outcome.previous,
        report: made,
        to: { phase: 'apply', state: 'applied', terminal: true },
      });
      return ok(null);
    }
    case 'moved': {
      const reason = `the project has moved since the plan took its workspace: expected ${plan.apply.diff.base.slice(0, 12)}, found ${outcome.head.slice(0, 12)}; nothing was written`;
      const isFinal = plan.policy.unattended;
      work.emit('apply_constrained', SYSTEM, {
        reason,
        report: { expected: plan.apply.diff.base, head: outcome.head },
        to: isFinal ? { phase: 'apply', state: 'errored', terminal: true } : { phase: 'apply', state: 'constrained' },
      });
      if (!isFinal) advance(work, null, outcome.head);
      return ok(null);
    }
    case 'failed':
      work.emit('plan_failed', SYSTEM, {
        reason: outcome.reason,
        remediation: 'Execute again to ask for the apply once more, or cancel.',
        to: { phase: 'apply', state: 'errored', ...(plan.policy.unattended ? { terminal: true as const } : {}) },
      });
      return ok(null);
  }
}

/** The artifacts of an applied plan (design section 12, "Results"). */
function publishResult(work: Work, made: ReturnType<typeof report>, patch: Stored): void {
  const publish = (artifactId: string, description: string, part: Stored): void =>
    work.emit('artifact_produced', SYSTEM, {
      artifact: { artifactId, name: artifactId, description, parts: [part] },
      append: false,
      last_chunk: true,
      step: null,
    });
  publish('result', 'What was done, what it cost, who approved it', work.store({ kind: 'data', data: made }));
  const description =
    work.plan().writtenAtOnce === undefined ? 'Unified diff that was applied' : 'Unified diff of what was written to the project at once';
  if (made.files.length > 0) publish('changes.diff', description, patch);
}

function answerOwnGate(
  work: Work,
  by: Caller,
  pending: readonly Approval[],
  own: readonly ThresholdName[],
  digest: string | null,
  operation: string,
): Result<null, Refusal> {
  const plan = work.plan();
  const [approval] = pending;
  if (approval === undefined) return ok(null);
  if (pending.length > 1 || approval.kind !== 'gate' || approval.gate === null || !own.includes(approval.gate)) {
    const names = pending.map((each) => ({
      approval_id: each.id,
      kind: each.kind,
      gate: each.gate,
      guard: each.guard,
      reason: each.reason,
    }));
    return err(
      invalidState(
        `${operation} answers only ${own.join(' and ')}; pending is ${pending.map((each) => `${each.gate ?? each.guard ?? each.kind} (${each.id})`).join(', ')}`,
        {
          ...at(plan),
          pending: names,
        },
      ),
    );
  }
  if (digest === null && by.requireDigest) {
    return err(
      invalidField('digest', 'approvals.require_digest is on: send the digest that was shown', {
        approval_id: approval.id,
        digest: approval.digest,
      }),
    );
  }
  return answerApproval(work, by, {
    approvalId: approval.id,
    decision: 'approve',
    digest: digest ?? approval.digest,
    reason: operation,
    text: null,
    grant: null,
  });
}

function refuseTerminal(plan: Plan): Refusal | null {
  if (!plan.terminal) return null;
  return invalidState(`the plan is ${plan.state}; make a new plan in the same session`, { ...at(plan), ...refusedCallOf(plan) });
}

/** The call with whose refusal the plan ended, if it ended with one. */
function refusedCallOf({ state, calls }: Plan) {
  const refused = state === 'errored' ? Object.values(calls).find((call) => call.status === 'refused' && call.guard != null) : undefined;
  return refused === undefined ? {} : { tool: refused.tool, guard: refused.guard ?? null };
}

function at(plan: Plan) {
  return { plan_id: plan.id, phase: plan.phase, state: plan.state };
}
