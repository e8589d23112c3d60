import { digestOf } from '../../digest.ts';
import { effectiveLimit, isGrantable, type Limit } from '../../guard-policy.ts';
import { remedy } from '../../guards/limits.ts';
import { canonicalJson, type JsonObject } from '../../json.ts';
import type { Refusal } from '../../refusal.ts';
import { invalidState } from '../../refusal.ts';
import { err, ok, type Result } from '../../result.ts';
import type { Command } from '../commands.ts';
import { type ActorRef, type Decision, type Grant, pendingApprovals, type Step } from '../plan.ts';
import type { Proposal, ProposedDecision } from '../proposal.ts';
import { stepsTaken } from '../steps-taken.ts';
import { SYSTEM, type Work } from '../work.ts';
import { decideBatch, workedMs } from './calls.ts';
import { phaseConfidence } from './confidence-of.ts';
import { passGate } from './gate.ts';
import { failUnattended, openApproval } from './open-approval.ts';

type Propose = Extract<Command, { type: 'propose' }>;

/** Takes an actor's proposal, if the plan still is where the actor was asked. */
export function propose(work: Work, command: Propose): Result<null, Refusal> {
  const plan = work.plan();
  const { basis, proposal } = command;
  const isCurrent =
    plan.state === 'running' &&
    (plan.phase === 'strategize' || plan.phase === 'execute') &&
    plan.phase === basis.phase &&
    plan.attempt === basis.attempt &&
    canonicalJson(plan.cursor) === canonicalJson(basis.cursor) &&
    pendingApprovals(plan).length === 0 &&
    plan.step?.kind !== 'calls';
  if (!isCurrent) return err(invalidState('the plan has moved on since the actor was asked', { phase: plan.phase, state: plan.state }));
  const actor: ActorRef = { kind: 'actor', id: command.actorName };
  if (proposal.kind !== 'done' && proposal.kind !== 'fail' && isOverLimit(work, proposal)) return ok(null);
  take(work, actor, command, proposal);
  return ok(null);
}

function take(work: Work, actor: ActorRef, command: Propose, proposal: Proposal): void {
  const plan = work.plan();
  switch (proposal.kind) {
    case 'calls':
      if (proposal.calls.length === 0) {
        failPlan(work, actor, `step '${proposal.stepId}' has no calls`);
        return;
      }
      decideBatch(
        work,
        proposal.stepId,
        proposal.calls,
        command.facts,
        stepFor(work, proposal.stepId, 'calls', command.guidanceSeen),
        proposal.cursor,
      );
      return;
    case 'decide':
      proposeDecision(work, actor, command, proposal);
      return;
    case 'say':
      work.emit('message_said', actor, {
        message: {
          messageId: `${plan.id}.m${work.nextSeq()}`,
          role: 'agent',
          parts: work.store([{ kind: 'text', text: proposal.text }]),
          at: work.context.now,
        },
        step: stepFor(work, proposal.stepId, 'other', command.guidanceSeen),
        cursor: proposal.cursor,
      });
      return;
    case 'ask':
      if (plan.policy.unattended) {
        failUnattended(work, `The actor asks: ${proposal.question}`);
        return;
      }
      openApproval(work, {
        kind: 'question',
        reason: proposal.question,
        subject: { question: proposal.question, resume: { stepId: proposal.stepId, cursor: proposal.cursor } },
        binds: { question: proposal.question, step: proposal.stepId, attempt: plan.attempt },
        step: stepFor(work, proposal.stepId, 'ask', command.guidanceSeen),
        cursor: proposal.cursor,
      });
      return;
    case 'artifact': {
      const { artifactId, name, description, parts, append, lastChunk } = proposal.artifact;
      work.emit('artifact_produced', actor, {
        artifact: {
          artifactId,
          name: name ?? null,
          description: description ?? null,
          parts: parts.map((part) => work.store(part as unknown as JsonObject)),
        },
        append: append ?? false,
        last_chunk: lastChunk ?? true,
        step: stepFor(work, proposal.stepId, 'other', command.guidanceSeen),
        cursor: proposal.cursor,
      });
      return;
    }
    case 'done':
      if (plan.phase === 'strategize') {
        work.emit('strategy_completed', actor, { decisions: plan.decisions.length, to: { phase: 'strategize', state: 'complete' } });
      } else {
        work.emit('execution_completed', actor, { steps: stepsTaken(plan), to: { phase: 'execute', state: 'complete' } });
      }
      return;
    case 'fail':
      failPlan(work, actor, proposal.message);
  }
}

function failPlan(work: Work, actor: ActorRef, reason: string): void {
  const { phase, policy } = work.plan();
  work.emit('plan_failed', actor, {
    reason,
    remediation: policy.unattended ? null : 'Send guidance, execute again, or cancel.',
    to: { phase, state: 'errored', ...(policy.unattended ? { terminal: true as const } : {}) },
  });
}

function proposeDecision(work: Work, actor: ActorRef, command: Propose, proposal: Extract<Proposal, { kind: 'decide' }>): void {
  const plan = work.plan();
  const { decision } = proposal;
  const gate = plan.phase === 'strategize' ? 'edit_code' : 'execute_command';
  const confidence = phaseConfidence(plan, gate, decision.statedConfidence);
  const threshold = plan.policy.thresholds[gate];
  const shown = {
    type: decision.type,
    question: decision.question,
    chosen: decision.chosen,
    alternatives: [...decision.alternatives],
    rationale: decision.rationale,
  };
  const outcome = passGate(work, {
    gate,
    confidence,
    subject: {
      decision: shown,
      resume: { stepId: proposal.stepId, cursor: proposal.cursor },
    },
    binds: { decision: shown, attempt: plan.attempt },
    subjectDigest: digestOf(work.context.sha256, shown),
  });
  if (outcome === 'proceed')
    makeDecision(work, actor, decision, proposal.stepId, proposal.cursor, command.guidanceSeen, { confidence, threshold });
}

/** Adds a node to the tree: below the root, or below the decision before it within the same phase. */
export function makeDecision(
  work: Work,
  actor: ActorRef,
  decision: Omit<ProposedDecision, 'statedConfidence'>,
  stepId: string,
  cursor: Propose['basis']['cursor'],
  guidanceSeen: number,
  rated: Pick<Decision, 'confidence' | 'threshold'>,
): void {
  const plan = work.plan();
  const parent = plan.decisions.filter((each) => !each.superseded).at(-1);
  work.emit('decision_made', actor, {
    decision: {
      id: `${plan.id}.d${plan.decisions.length + 1}`,
      parentId: parent?.id ?? null,
      type: decision.type,
      question: decision.question,
      chosen: decision.chosen,
      alternatives: decision.alternatives,
      rationale: decision.rationale,
      ...rated,
      step: plan.stepsUsed,
      attempt: plan.attempt,
      superseded: false,
      createdAt: work.context.now,
    },
    step: stepFor(work, stepId, 'other', guidanceSeen),
    cursor,
  });
}

/** Calls and questions in Execute are steps; what an actor says, decides or hands out belongs to the step it is in. */
export function stepFor(work: Work, id: string, kind: Step['kind'], guidanceSeen: number): Step {
  const plan = work.plan();
  const counts = plan.phase === 'execute' && kind !== 'other';
  return { number: counts ? stepsTaken(plan) + 1 : plan.stepsUsed, id, kind, callIds: [], guidanceSeen, startCursor: plan.cursor };
}

/** Time is checked before every step and steps before every question; a batch checks both with each of its calls. */
function isOverLimit(work: Work, proposal: Proposal): boolean {
  if (proposal.kind === 'calls') return false;
  const plan = work.plan();
  const { policy, grants } = plan;
  const worked = workedMs(plan, work.context.now);
  const seconds = effectiveLimit(policy.maxWallClockSeconds, grants.seconds);
  if (policy.maxWallClockSeconds !== null && seconds !== null && worked >= seconds * 1000) {
    const spare = worked / 1000 - seconds;
    askForMore(work, policy.maxWallClockSeconds, grants.seconds, {
      guard: 'wall_clock',
      reached: `Wall-clock limit reached: ${Math.floor(worked / 1000)}s/${seconds}s`,
      details: { worked_seconds: Math.floor(worked / 1000), limit_seconds: seconds },
      suggestedGrant: { seconds: Math.max(60, Math.ceil(spare * 2)) },
    });
    return true;
  }
  const steps = effectiveLimit(policy.maxSteps, grants.steps);
  const isStep = proposal.kind === 'ask' && plan.phase === 'execute';
  const taken = stepsTaken(plan);
  if (isStep && policy.maxSteps !== null && steps !== null && taken >= steps) {
    askForMore(work, policy.maxSteps, grants.steps, {
      guard: 'step_limit',
      reached: `Step limit reached: ${taken}/${steps}`,
      details: { steps: taken, limit: steps },
      suggestedGrant: { steps: taken + 1 - steps },
    });
    return true;
  }
  return false;
}

interface ReachedLimit {
  readonly guard: string;
  readonly reached: string;
  readonly details: JsonObject;
  readonly suggestedGrant: Grant;
}

/** Asks for more of a limit that stands before the next step; the actor is asked again once it is granted. Nothing recovers a plan at the org's own limit. */
function askForMore(work: Work, bound: Limit, granted: number, { guard, reached, details, suggestedGrant }: ReachedLimit): void {
  const reason = `${reached}. Remediation: ${remedy('increase', bound, granted, 'do less')}.`;
  const plan = work.plan();
  if (plan.policy.unattended) {
    failUnattended(work, reason);
  } else if (!isGrantable(bound, granted)) {
    work.emit('plan_failed', SYSTEM, { reason, remediation: null, to: { phase: plan.phase, state: 'errored', terminal: true } });
  } else {
    openApproval(work, {
      kind: 'limit',
      reason,
      guard,
      subject: { details },
      binds: { guard, step: plan.stepsUsed, details },
      suggestedGrant,
    });
  }
}
