/**
 * Answers to approvals. An approval is checked, consumed and acted upon in one decision; an answer that may not be given leaves one
 * refused entry in the log and changes nothing else (design sections 7 and 11).
 */

import { parseCapUsd } from '../../money.ts';
import type { Refusal } from '../../refusal.ts';
import { invalidField, invalidState, notFound } from '../../refusal.ts';
import { err, ok, type Result } from '../../result.ts';
import type { Answer, Caller } from '../commands.ts';
import { reservationId } from '../evolve.ts';
import { type Approval, type Call, findApproval, type Grant, type Plan, pendingApprovals } from '../plan.ts';
import { SYSTEM, type Work } from '../work.ts';
import { advance } from './advance.ts';
import { openGateIfDue, redecide } from './calls.ts';
import { askNextStep } from './open-approval.ts';
import { makeDecision } from './propose.ts';
import { lastKnownHead, restart } from './restart.ts';
import { abandonAllUnknown, chargeFor, openRetryGate, openUnknown, settleCall, UNKNOWN_CHOICES } from './settle.ts';

export function answerApproval(work: Work, by: Caller, answer: Answer): Result<null, Refusal> {
  const plan = work.plan();
  const approval = findApproval(plan, answer.approvalId);
  if (approval === null) {
    // Nobody was ever asked under this id: somebody guesses, or has it from elsewhere.
    if (!plan.terminal) {
      const reason = 'there is no such approval in this plan';
      work.emit('approval_refused', by.actor, { approval_id: answer.approvalId, decision: answer.decision, reason, ...offered(answer) });
    }
    return err(notFound('approval', answer.approvalId));
  }
  const objection = objectionTo(work, plan, by, approval, answer);
  if (objection !== null) {
    if (!plan.terminal) {
      work.emit('approval_refused', by.actor, {
        approval_id: approval.id,
        decision: answer.decision,
        reason: objection.message,
        ...offered(answer),
      });
    }
    return err(objection);
  }
  const grant = answer.decision === 'approve' && approval.kind === 'limit' ? (answer.grant ?? approval.suggestedGrant) : null;
  work.emit('approval_decided', by.actor, {
    approval_id: approval.id,
    kind: approval.kind,
    decision: answer.decision,
    by: by.actor,
    digest: approval.digest,
    reason: answer.reason,
    text: answer.text,
    grant,
  });
  follow(work, by, approval, answer, grant);
  return ok(null);
}

const offered = ({ digest }: Answer) => (digest === null ? {} : { offered_digest: digest });

/** Why this caller cannot give this answer now, or null. */
function objectionTo(work: Work, plan: Plan, by: Caller, approval: Approval, answer: Answer): Refusal | null {
  const context = { approval_id: approval.id, plan_id: plan.id, phase: plan.phase, state: plan.state };
  const isQuestion = approval.kind === 'question';
  if (!isQuestion && !by.mayApprove) {
    const message =
      by.actor.kind === 'agent'
        ? 'keys of kind agent never approve anything; a human key with the role approver has to answer this'
        : 'this key does not have the role approver';
    return { kind: 'forbidden', message, details: context };
  }
  if (!isQuestion && by.separateRequester && by.actor.id === plan.requester.id) {
    return {
      kind: 'forbidden',
      message: 'whoever started the plan may not approve in it (approvals.separate_requester is on)',
      details: context,
    };
  }
  if (plan.terminal) {
    return invalidState(
      `the plan is ${plan.state}; nothing can be approved in it any more. Start a new task in the same context.`,
      context,
    );
  }
  if (approval.status !== 'pending')
    return invalidState(`the approval is already ${approval.status}`, { ...context, status: approval.status });
  if (approval.expiresAt !== null && work.context.now >= approval.expiresAt) return invalidState('the approval has expired', context);
  if (answer.decision === 'answer') {
    if (!isQuestion && approval.kind !== 'next_step' && approval.kind !== 'unknown_outcome') {
      return invalidField('decision', `an approval of kind ${approval.kind} takes approve or deny`, context);
    }
    if (answer.text === null || answer.text.trim() === '') return invalidField('text', 'an answer needs a text', context);
    if (approval.kind === 'unknown_outcome' && !UNKNOWN_CHOICES.some((choice) => choice === wordOf(answer.text))) {
      return invalidField('text', `must be one of ${UNKNOWN_CHOICES.join(', ')}`, context);
    }
    if (approval.kind === 'next_step' && wordOf(answer.text) === 'guide')
      return invalidField('text', 'to guide the plan, send the guidance itself', context);
  }
  if (approval.kind === 'unknown_outcome' && answer.decision === 'approve') {
    return invalidField('decision', `takes answer with one of ${UNKNOWN_CHOICES.join(', ')}, or deny for failed`, context);
  }
  if (isQuestion && answer.decision === 'approve')
    return invalidField('decision', 'a question takes answer (with a text) or deny', context);
  if (answer.digest !== null && answer.digest !== approval.digest) {
    return invalidState('the digest does not match what is pending; look at it again and send the digest that is shown', {
      ...context,
      digest: approval.digest,
    });
  }
  if (answer.decision === 'approve' && answer.digest === null)
    return invalidField('digest', 'an approval has to carry the digest that was shown', context);
  return answer.grant === null ? null : grantIssue(approval, answer.grant, context);
}

function grantIssue(approval: Approval, grant: Grant, context: { readonly approval_id: string }): Refusal | null {
  if (approval.kind !== 'limit') return invalidField('grant', 'only an approval of kind limit takes a grant', context);
  const expected = Object.keys(approval.suggestedGrant ?? {});
  if (expected.length === 0)
    return invalidField('grant', 'the budget that was reached is raised at its own level; this approval only tries again', context);
  const given = Object.entries(grant);
  const [name, amount] = given[0] ?? [];
  if (given.length !== 1 || name !== expected[0])
    return invalidField('grant', `this limit takes exactly { ${expected[0] ?? 'nothing'} }`, context);
  if (typeof amount !== 'number' || !Number.isFinite(amount) || amount <= 0)
    return invalidField(`grant.${name}`, 'must be more than 0', context);
  if (name === 'cost_usd') {
    const parsed = parseCapUsd(amount);
    return parsed.ok ? null : invalidField('grant.cost_usd', parsed.error, context);
  }
  if (amount > MAX_GRANT) return invalidField(`grant.${name}`, `must be at most ${MAX_GRANT}`, context);
  return name === 'seconds' || Number.isInteger(amount) ? null : invalidField(`grant.${name}`, 'must be a whole number', context);
}

/** Larger grants than any count or time needs; below it sums stay exact. */
const MAX_GRANT = 1e9;

/** A choice as people write it: case, spaces at the ends and final punctuation aside. */
function wordOf(text: string | null): string {
  return (text ?? '')
    .trim()
    .replace(/[\s.!]+$/, '')
    .toLowerCase();
}

/** What an accepted answer does. */
function follow(work: Work, by: Caller, approval: Approval, answer: Answer, grant: Grant | null): void {
  const approved = answer.decision === 'approve';
  switch (approval.kind) {
    case 'gate':
      followGate(work, approval, answer, approved);
      return;
    case 'call':
      if (approved) redecideHeld(work, approval.callIds);
      else refuseCalls(work, approval, answer);
      openGateIfDue(work);
      return;
    case 'limit':
      if (approved && grant === null) {
        // A budget above the plan: looked at again, and refused again unless it was raised where it belongs.
        redecideHeld(work, approval.callIds);
      } else if (approved && grant !== null) {
        work.emit('limit_granted', by.actor, {
          approval_id: approval.id,
          grant,
          event: grant.cost_usd === undefined ? 'limit_raised' : 'cap_raised',
        });
        redecideHeld(work, approval.callIds);
      } else if (approval.callIds.length > 0) refuseCalls(work, approval, answer);
      else askNextStep(work, `The limit was not raised: ${approval.reason}`);
      openGateIfDue(work);
      return;
    case 'question':
      if (answer.decision === 'deny') askNextStep(work, 'The question was not answered.');
      return;
    case 'next_step':
      nextStep(work, approved ? 'retry' : answer.decision === 'deny' ? 'cancel' : (answer.text ?? ''), by, answer.reason);
      openGateIfDue(work);
      return;
    case 'unknown_outcome':
      unknownOutcome(work, approval, answer.decision === 'deny' ? 'failed' : wordOf(answer.text), by);
  }
}

function followGate(work: Work, approval: Approval, answer: Answer, approved: boolean): void {
  const plan = work.plan();
  const gate = approval.gate;
  if (gate === null) return;
  if (approved) {
    const base = {
      gate,
      outcome: 'proceed',
      via: 'approval',
      approval_id: approval.id,
      threshold: approval.threshold ?? plan.policy.thresholds[gate],
      confidence: approval.confidence,
      reason: `approved by ${plan.approvals.find((each) => each.id === approval.id)?.decided?.by.id ?? 'a human'}`,
      subject_digest: approval.digest,
      policy_digest: plan.policyDigest,
    } as const;
    switch (gate) {
      case 'decompose_task':
        work.emit('gate_decided', SYSTEM, { ...base, to: { phase: 'strategize', state: 'running' } });
        return;
      case 'create_tool':
        work.emit('gate_decided', SYSTEM, { ...base, to: { phase: 'execute', state: 'running' } });
        return;
      case 'select_tool': {
        const { diff } = approval.subject;
        if (diff === undefined) return;
        work.emit('gate_decided', SYSTEM, {
          ...base,
          diff,
          apply_id: `${plan.id}.${plan.attempt}.${diff.digest.slice(0, 16)}`,
          to: { phase: 'apply', state: 'running' },
        });
        return;
      }
      case 'access_network': {
        const head = approval.subject.details?.['head'];
        if (plan.project === null || typeof head !== 'string') return;
        work.emit('gate_decided', SYSTEM, {
          ...base,
          rebase: { ...plan.project, base: head },
          to: { phase: 'strategize', state: 'running' },
        });
        return;
      }
      case 'modify_config':
        work.emit('gate_decided', SYSTEM, base);
        redecide(
          work,
          approval.callIds.filter((id) => work.plan().calls[id]?.status === 'retrying'),
        );
        return;
      default:
        if (approval.callIds.length > 0) {
          const held = approval.callIds.filter((id) => plan.calls[id]?.status === 'cleared');
          work.emit('gate_decided', SYSTEM, { ...base, call_ids: held });
          redecide(work, held);
        } else {
          work.emit('gate_decided', SYSTEM, base);
          acceptDecision(work, approval);
        }
        return;
    }
  }
  // A reason says why not; only a text says what to do instead.
  const guidance = (answer.text ?? '').trim();
  if (gate === 'modify_config' || approval.callIds.length > 0) {
    refuseCalls(work, approval, answer);
    openGateIfDue(work);
    return;
  }
  if (gate === 'access_network') return;
  if (guidance === '' || gate === 'decompose_task') {
    askNextStep(work, `${gate} was denied${answer.reason === null ? '' : `: ${answer.reason}`}.`);
    return;
  }
  guide(work, guidance);
}

/** Sends the plan back with guidance: to the actor of the phase that was about to be left. */
function guide(work: Work, text: string): void {
  const plan = work.plan();
  work.emit('message_received', SYSTEM, {
    message: {
      messageId: `${plan.id}.m${work.nextSeq()}`,
      role: 'user',
      parts: work.store([{ kind: 'text', text }]),
      at: work.context.now,
    },
    disposition: 'guidance',
    text,
  });
  restart(work, 'guidance after a refusal', null);
}

/** The decision that a human has let pass is made, and the actor goes on behind it. */
export function acceptDecision(work: Work, approval: Approval): void {
  const { decision, resume } = approval.subject;
  if (decision === undefined || resume === undefined) return;
  const proposed = decision as unknown as Parameters<typeof makeDecision>[2];
  makeDecision(work, SYSTEM, proposed, resume.stepId, resume.cursor, 0, { confidence: approval.confidence, threshold: approval.threshold });
}

/** Calls that a human has just let pass run at once; those that still wait for their batch's gate stay cleared. */
function redecideHeld(work: Work, callIds: readonly string[]): void {
  redecide(
    work,
    callIds.filter((id) => work.plan().calls[id]?.status === 'asked'),
  );
}

function refuseCalls(work: Work, approval: Approval, answer: Answer): void {
  const why = answer.reason ?? answer.text;
  const by = work.plan().approvals.find((each) => each.id === approval.id)?.decided?.by.id ?? 'a human';
  for (const id of approval.callIds) refuseCall(work, id, `denied by ${by}${why === null ? '' : `: ${why}`}`);
}

/** A call that a human does not let run. One that ran before and failed stays failed: it is only not repeated. */
function refuseCall(work: Work, id: string, why: string): void {
  const call = work.plan().calls[id];
  if (call === undefined || !isHeld(call)) return;
  const ranBefore = call.status === 'retrying' || (call.attempt > 1 && call.external === undefined);
  work.emit('call_settled', SYSTEM, {
    call_id: id,
    attempt: call.attempt,
    outcome: ranBefore ? 'failed' : 'refused',
    result: null,
    error: ranBefore ? call.error : null,
    reason: ranBefore ? `${call.error?.message ?? 'the outcome is not known'}; not repeated: ${why}` : `not executed: ${why}`,
    retry_at: null,
    charge: null,
    changes: [],
    read_paths: [],
    taint: null,
  });
}

function isHeld(call: Call): boolean {
  return call.status === 'asked' || call.status === 'cleared' || call.status === 'retrying';
}

function nextStep(work: Work, choice: string, by: Caller, reason: string | null): void {
  const word = wordOf(choice);
  if (word === 'cancel') {
    abandonAllUnknown(work);
    work.emit('plan_cancelled', by.actor, {
      reason: reason ?? 'cancelled when asked for the next step',
      to: { phase: work.plan().phase, state: 'cancelled', terminal: true },
    });
    return;
  }
  if (word === 'retry') {
    askAgain(work);
    return;
  }
  // Guidance goes to the actor, and the actor is asked when its step has ended: what nobody allowed does not run.
  for (const call of unasked(work.plan())) {
    if (call.status === 'unknown') openUnknown(work, call.id, UNKNOWN_STILL);
    else refuseCall(work, call.id, `guidance instead by ${by.actor.id}`);
  }
  guide(work, choice);
}

const UNKNOWN_STILL = 'What became of the call is still not known.';

/** Asks again whatever was closed without an answer. Phase gates and the actor's next proposal come by themselves. */
function askAgain(work: Work): void {
  const plan = work.plan();
  if (plan.phase === 'apply' && (plan.resumeState ?? plan.state) === 'constrained') {
    advance(work, null, lastKnownHead(plan));
    return;
  }
  if (plan.step?.kind === 'ask') {
    restart(work, 'retry', null);
    return;
  }
  const calls = unasked(plan);
  for (const call of calls) {
    if (call.status === 'unknown') openUnknown(work, call.id, UNKNOWN_STILL);
    if (call.status === 'retrying')
      openRetryGate(work, call.id, `May the call be repeated? It failed: ${call.error?.message ?? 'for a passing reason'}`);
  }
  redecide(
    work,
    calls.filter((call) => call.status === 'asked').map((call) => call.id),
  );
}

/** Calls that wait for a human of whom nothing is asked any more: their approval expired. */
function unasked(plan: Plan): readonly Call[] {
  const asked = new Set(pendingApprovals(plan).flatMap((approval) => approval.callIds));
  return Object.values(plan.calls).filter(
    (call) => (isHeld(call) || call.status === 'unknown') && call.retryAt === null && !asked.has(call.id),
  );
}

function unknownOutcome(work: Work, approval: Approval, choice: string, by: Caller): void {
  const id = approval.callIds[0];
  const call = id === undefined ? undefined : work.plan().calls[id];
  if (call === undefined) return;
  if (choice === 'retry') {
    // What was sent may have cost money: the old attempt is charged before a new one is reserved.
    work.emit('call_settled', SYSTEM, {
      call_id: call.id,
      attempt: call.attempt,
      outcome: 'retrying',
      result: null,
      error: null,
      reason: `to be repeated, by ${by.actor.id}`,
      retry_at: null,
      charge: chargeFor(work, reservationId(call), { status: 'unknown', reason: '' }),
      changes: [],
      read_paths: [],
      taint: null,
    });
    redecide(work, [call.id]);
    return;
  }
  const done = choice === 'done';
  settleCall(
    work,
    call.id,
    call.attempt,
    done
      ? {
          status: 'succeeded',
          result: { outcome: 'marked done', by: by.actor.id },
          changes: [],
          blobs: new Map(),
          readPaths: [],
          reportedUsd: null,
          taint: null,
        }
      : {
          status: 'failed',
          error: { code: 'marked_failed', message: `marked failed by ${by.actor.id}`, transient: false },
          dispatched: true,
          reportedUsd: null,
        },
  );
}
