/**
 * Messages from outside. A structured answer decides alone; plain text decides only in the one case that cannot be misread
 * (design section 11); everything else is guidance for a plan at work, and kept without effect by a plan that waits.
 */
import type { Refusal } from '../../refusal.ts';
import { invalidState } from '../../refusal.ts';
import { err, ok, type Result } from '../../result.ts';
import type { Answer, Command } from '../commands.ts';
import { type Approval, findApproval, pendingApprovals } from '../plan.ts';
import type { Work } from '../work.ts';
import { answerApproval } from './answer.ts';
import { restart } from './restart.ts';

type MessageCommand = Extract<Command, { type: 'message' }>;

export function takeMessage(work: Work, command: MessageCommand): Result<null, Refusal> {
  const plan = work.plan();
  if (plan.terminal) {
    // An approval that is sent again because its answer was lost is no new message, and the plan may well have ended by it.
    const { answers, by } = command;
    if (answers.length > 0 && answers.every((answer) => isRepeat(findApproval(plan, answer.approvalId), answer, by.actor.id)))
      return ok(null);
    return err(
      invalidState(`the task is ${plan.state} and takes no more messages; start a new task in the same context`, {
        plan_id: plan.id,
        phase: plan.phase,
        state: plan.state,
        reason: 'UNSUPPORTED_OPERATION',
      }),
    );
  }
  const crowded = refuseCrowded(work, command);
  if (crowded !== null) return err(crowded);
  if (command.answers.length > 0) return structured(work, command);
  const pending = pendingApprovals(plan);
  if (pending.length > 0) return plain(work, command, pending);
  receive(work, command, 'guidance');
  if (plan.state === 'errored' || plan.state === 'constrained') return restart(work, 'guidance', null);
  return ok(null);
}

function structured(work: Work, command: MessageCommand): Result<null, Refusal> {
  const contradiction = contradictionIn(work, command);
  if (contradiction !== null) {
    const ids = command.answers.map((answer) => answer.approvalId).join(', ');
    work.emit('approval_refused', command.by.actor, {
      approval_id: ids,
      decision: command.answers[0]?.decision ?? 'several',
      reason: contradiction.message,
    });
    return err(contradiction);
  }
  const news = command.answers.filter((answer) => !isRepeat(findApproval(work.plan(), answer.approvalId), answer, command.by.actor.id));
  if (news.length === 0) return ok(null);
  for (const answer of news) {
    const answered = answerApproval(work, command.by, answer);
    if (!answered.ok) return answered;
  }
  if (!work.plan().terminal) receive(work, command, 'answer');
  return ok(null);
}

/** Where the text beside the data says something else, nothing is approved, and nothing else is decided either. */
function contradictionIn(work: Work, { plain: said, answers }: MessageCommand): Refusal | null {
  if (said === null) return null;
  const isSame = answers.every((answer) => {
    if (answer.decision === 'answer') return true;
    const approval = findApproval(work.plan(), answer.approvalId);
    const isPhase = said.phase === null || approval === null || said.phase === phaseBehind(approval, work.plan().phase);
    return answer.decision === said.decision && isPhase;
  });
  if (isSame) return null;
  const issue = `the text says ${said.decision}${said.phase === null ? '' : ` the ${said.phase} phase`}, the data says something else`;
  return {
    kind: 'invalid',
    message: `${issue}; nothing was decided`,
    issues: [{ field: 'message.parts', message: issue }],
    details: { plan_id: work.plan().id },
  };
}

/** The same answer again, by the same caller, after it was acted upon: a retry of the client, answered with the task as it is. */
function isRepeat(approval: Approval | null, { decision, digest, text, grant }: Answer, callerId: string): boolean {
  if (approval === null || approval.decided?.by.id !== callerId) return false;
  const given = decision === 'approve' ? 'approved' : decision === 'deny' ? 'denied' : 'answered';
  return (
    approval.status === given &&
    (digest === null || digest === approval.digest) &&
    approval.decided.text === text &&
    (decision !== 'approve' || grant === null)
  );
}

function plain(work: Work, command: MessageCommand, pending: readonly Approval[]): Result<null, Refusal> {
  const [only] = pending;
  const answer = pending.length === 1 && only !== undefined ? readPlain(work, command, only) : null;
  if (answer === null) {
    receive(work, command, 'kept');
    return ok(null);
  }
  const answered = answerApproval(work, command.by, answer);
  if (answered.ok && !work.plan().terminal) receive(work, command, 'answer');
  return answered;
}

function readPlain(work: Work, command: MessageCommand, approval: Approval): Answer | null {
  const base = { approvalId: approval.id, digest: approval.digest, reason: null, grant: null } as const;
  if (approval.kind === 'question' || approval.kind === 'next_step') {
    return command.text.trim() === '' ? null : { ...base, decision: 'answer', text: command.text };
  }
  const isPhaseGate = approval.kind === 'gate' && approval.callIds.length === 0;
  // Words carry no digest: where one is required of everybody they decide nothing.
  if (!isPhaseGate || command.plain === null || command.by.requireDigest) return null;
  const { decision, phase } = command.plain;
  if (phase !== null && phase !== phaseBehind(approval, work.plan().phase)) return null;
  return { ...base, decision, text: null };
}

/** The phase that a gate leads to: what "proceed with the … phase" has to name. */
function phaseBehind(approval: Approval, current: string): string {
  switch (approval.gate) {
    case 'decompose_task':
    case 'access_network':
      return 'strategize';
    case 'create_tool':
      return 'execute';
    case 'select_tool':
      return 'apply';
    default:
      return current;
  }
}

function receive(work: Work, command: MessageCommand, disposition: 'guidance' | 'answer' | 'kept'): void {
  work.emit('message_received', command.by.actor, {
    message: {
      messageId: command.messageId,
      role: 'user',
      parts: work.store(command.parts),
      at: work.context.now,
      ...(command.metadata === null ? {} : { metadata: work.store(command.metadata) }),
    },
    disposition,
    text: disposition === 'guidance' ? command.text.slice(0, 20_000) : '',
  });
}

/** Messages that one plan keeps, and how much of them, in bytes of their parts: a plan has to stay small enough to be read. */
const MAX_MESSAGES = 1000;
const MAX_MESSAGE_BYTES = 8 * 1024 * 1024;

/** Answers to what is pending get through all the same, so that a plan that was flooded can still be decided. */
function refuseCrowded(work: Work, command: MessageCommand): Refusal | null {
  if (command.answers.length > 0 || command.plain !== null) return null;
  const { messages, phase, state, id } = work.plan();
  const incoming = work.store(command.parts);
  const bytes = [...messages.map((message) => message.parts), incoming].reduce(
    (sum, parts) => sum + ('blob' in parts ? parts.bytes : 0),
    0,
  );
  if (messages.length < MAX_MESSAGES && bytes <= MAX_MESSAGE_BYTES) return null;
  const message = `this task keeps at most ${MAX_MESSAGES} messages of ${MAX_MESSAGE_BYTES} bytes together; start a new task in the same context`;
  return invalidState(message, { plan_id: id, phase, state });
}
