/**
 * Guards of a running plan (design section 7): a change is put in force, and everything that was asked under the policy before it is asked
 * again, in one decision. What had been authorised and was not sent yet is taken back and decided under the policy that now holds.
 */
import { digestOf } from '../../digest.ts';
import { effectiveLimit, type GuardPolicy } from '../../guard-policy.ts';
import { MAX_REVISION_CHARACTERS, type RevisedGuards, reviseGuards, withRevision } from '../../guard-revision.ts';
import type { Grants } from '../../guards/guard.ts';
import { canonicalJson } from '../../json.ts';
import { applyFloor } from '../../org-policy.ts';
import type { Refusal } from '../../refusal.ts';
import { invalidState } from '../../refusal.ts';
import { err, ok, type Result } from '../../result.ts';
import type { Caller, Command } from '../commands.ts';
import type { EventBodies } from '../events.ts';
import { type ActorRef, type Approval, type Call, lockedPolicyOf, type Plan, pendingApprovals } from '../plan.ts';
import { SYSTEM, type Work } from '../work.ts';
import { advance, enterApply } from './advance.ts';
import { acceptDecision } from './answer.ts';
import { openGateIfDue, redecide, warnOnce } from './calls.ts';
import { passGate } from './gate.ts';
import { openRetryGate } from './settle.ts';

/** An operator tightens the guards, or gives back what the plan itself had tightened, which takes the right to approve. */
export function reviseGuard(work: Work, { by, change }: Extract<Command, { type: 'revise_guard' }>): Result<null, Refusal> {
  const plan = work.plan();
  if (plan.terminal) return err(ended(plan));
  const length = JSON.stringify(change).length;
  if (length > 2 * MAX_REVISION_CHARACTERS) {
    return err({
      kind: 'too_large',
      message: `the change has ${length} characters; a revision has at most ${MAX_REVISION_CHARACTERS}`,
      limitBytes: MAX_REVISION_CHARACTERS,
    });
  }
  const guards = { locked: lockedPolicyOf(plan), own: plan.guards.own, policy: plan.policy, grants: grantsOf(plan) };
  const judged = reviseGuards(guards, change);
  const objection = judged.ok ? (judged.value.loosens ? loosenIssue(plan, by) : null) : judged.error;
  if (objection !== null) {
    // An attempt at what is locked, or without the right, is kept; a slip of the pen is not.
    const isAttempt =
      objection.kind === 'forbidden' || (objection.kind === 'invalid_state' && objection.details?.['reason'] !== 'NOT_ON_THE_LIST');
    if (isAttempt) work.emit('guard_revision_refused', by.actor, { change, reason: objection.message });
    return err({ ...objection, details: { ...objection.details, plan_id: plan.id } });
  }
  if (judged.ok && judged.value.changed) {
    putInForce(work, by.actor, { ...judged.value, origin: 'revision', change, locked: guards.locked });
  }
  return ok(null);
}

/** A policy floor of the org that came after the plan. It only tightens; a floor that binds already changes nothing. */
export function bindFloor(work: Work, { by, floor }: Extract<Command, { type: 'apply_floor' }>): Result<null, Refusal> {
  const plan = work.plan();
  if (plan.terminal) return err(ended(plan));
  const before = lockedPolicyOf(plan);
  const locked = applyFloor(before, floor);
  if (canonicalJson(locked) === canonicalJson(before)) return ok(null);
  const { own } = plan.guards;
  putInForce(work, by, {
    origin: 'org',
    change: { kind: 'floor', floor },
    loosens: false,
    own,
    locked,
    policy: withRevision(locked, own),
    grants: grantsOf(plan),
  });
  return ok(null);
}

/** Whoever gives more room decides what a human otherwise approves, so the rules of approvals hold. */
function loosenIssue(plan: Plan, by: Caller): Refusal | null {
  if (!by.mayApprove) {
    return {
      kind: 'forbidden',
      message: 'any operator can tighten the guards; giving back what was tightened needs a human with the role approver',
    };
  }
  if (by.separateRequester && by.actor.id === plan.requester.id) {
    return { kind: 'forbidden', message: 'whoever started the plan may not loosen its guards (approvals.separate_requester is on)' };
  }
  return null;
}

type InForce = Omit<RevisedGuards, 'changed'> & Pick<EventBodies['guard_revised'], 'origin' | 'change'> & { readonly locked: GuardPolicy };

function putInForce(work: Work, by: ActorRef, { origin, change, loosens, own, locked, policy, grants }: InForce): void {
  const plan = work.plan();
  const digest = digestOf(work.context.sha256, policy);
  const hasNewGrants = canonicalJson(grants) !== canonicalJson(grantsOf(plan));
  // Where the same holds as before, as when a limit is given that another one undercuts, nothing has to be asked again.
  const isOther = digest !== plan.policyDigest || hasNewGrants;
  // What an executor outside was allowed to do it may be doing; and it asks again by itself for what it was not.
  const isHosted = plan.external === undefined;
  const withdrawn = isOther && isHosted ? Object.values(plan.calls).filter(isTakenBack) : [];
  work.emit('guard_revised', by, {
    revision: plan.guards.revision + 1,
    origin,
    change,
    loosens,
    own,
    ...(canonicalJson(locked) === canonicalJson(policy) ? {} : { locked }),
    policy,
    policy_digest: digest,
    previous_digest: plan.policyDigest,
    ...(hasNewGrants
      ? {
          grants: {
            cost_micro_usd: grants.costMicroUsd,
            calls: grants.calls,
            steps: grants.steps,
            seconds: grants.seconds,
            retries: grants.retries,
          },
        }
      : {}),
    withdrawn: withdrawn.map((call) => call.id),
  });
  if (!isOther) return;
  warnOnce(work);
  askAnew(work, withdrawn);
}

/** Authorised, and certainly not begun: what leaves the workspace is marked before it is sent. */
function isTakenBack(call: Call): boolean {
  return call.status === 'authorised' && call.scope === 'external';
}

/** Questions that carry the policy in their digest. The others are about something that the policy does not change. */
function isBound({ kind }: Approval): boolean {
  return kind === 'gate' || kind === 'call' || kind === 'limit';
}

function askAnew(work: Work, withdrawn: readonly Call[]): void {
  const bound = pendingApprovals(work.plan()).filter(isBound);
  for (const { id } of bound) {
    work.emit('approval_closed', SYSTEM, {
      approval_id: id,
      status: 'revoked',
      reason: 'the guards of the plan were changed; what is asked now is asked under the new ones',
    });
  }
  const asked = new Set([
    ...withdrawn.map((call) => call.id),
    ...bound.filter((each) => each.gate !== 'modify_config').flatMap((each) => each.callIds),
  ]);
  if (work.plan().external !== undefined) return;
  if (asked.size > 0) {
    const isAskedNoMore = pendingApprovals(work.plan()).some((each) => each.kind === 'next_step');
    const calls = stepCalls(work.plan()).filter((call) => asked.has(call.id) || (call.status === 'cleared' && !isAskedNoMore));
    redecide(
      work,
      calls.map((call) => call.id),
    );
  }
  for (const approval of bound) if (!work.plan().terminal) reopen(work, approval);
  openGateIfDue(work);
}

function stepCalls({ step, calls }: Plan): readonly Call[] {
  return (step?.callIds ?? []).flatMap((id) => calls[id] ?? []);
}

/** The gates that are about no batch. A limit that stood before the next step is met again when the actor is asked for it. */
function reopen(work: Work, approval: Approval): void {
  const plan = work.plan();
  const { gate, subject } = approval;
  switch (gate) {
    case 'decompose_task':
    case 'create_tool':
      advance(work, null, null);
      return;
    case 'select_tool':
      if (subject.diff !== undefined && plan.phase === 'execute') enterApply(work, subject.diff);
      return;
    case 'access_network': {
      const head = subject.details?.['head'];
      advance(work, null, typeof head === 'string' ? head : null);
      return;
    }
    case 'modify_config':
      for (const id of approval.callIds) reopenRetry(work, id, approval.reason);
      return;
    case 'edit_code':
    case 'execute_command': {
      if (subject.decision === undefined) return;
      const outcome = passGate(work, {
        gate,
        confidence: approval.confidence,
        subject,
        binds: { decision: subject.decision, attempt: plan.attempt },
        subjectDigest: digestOf(work.context.sha256, subject.decision),
      });
      if (outcome === 'proceed') acceptDecision(work, approval);
      return;
    }
    default:
  }
}

/** Whether a failed call may be repeated: the limit of retries may be the smaller one now. */
function reopenRetry(work: Work, callId: string, reason: string): void {
  const { calls, policy, grants } = work.plan();
  const call = calls[callId];
  if (call?.status !== 'retrying') return;
  const limit = effectiveLimit(policy.maxRetries, grants.retries);
  if (limit === null || call.attempt - 1 < limit) openRetryGate(work, callId, reason);
  else redecide(work, [callId]);
}

/** What humans have granted beyond the limits, as the guards of the current step count it. */
function grantsOf({ ledger, grants, stepsUsed }: Plan): Grants {
  return {
    costMicroUsd: ledger.grantedMicroUsd,
    calls: grants.calls.step === stepsUsed ? grants.calls.amount : 0,
    steps: grants.steps,
    seconds: grants.seconds,
    retries: grants.retries,
  };
}

function ended(plan: Plan): Refusal {
  return invalidState(`the plan is ${plan.state}; its guards cannot be changed any more`, {
    plan_id: plan.id,
    phase: plan.phase,
    state: plan.state,
  });
}
