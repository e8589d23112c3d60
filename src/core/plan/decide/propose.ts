import { digestOf } from '../../digest.ts';
import { canonicalJson, type JsonObject } from '../../json.ts';
import { effectiveLimit } from '../../guard-policy.ts';
import type { Refusal } from '../../refusal.ts';
import { invalidState } from '../../refusal.ts';
import { err, ok, type Result } from '../../result.ts';
import type { Command } from '../commands.ts';
import { type ActorRef, pendingApprovals, type Decision, type Step } from '../plan.ts';
import type { Proposal, ProposedDecision } from '../proposal.ts';
import type { Work } from '../work.ts';
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
    plan.phase === basis.phase &&
    plan.attempt === basis.attempt &&
    canonicalJson(plan.cursor) === canonicalJson(basis.cursor) &&
    pendingApprovals(plan).length === 0 &&
    plan.step?.kind !== 'calls';
  if (!isCurrent) return err(invalidState('the plan has moved on since the actor was asked', { phase: plan.phase, state: plan.state }));
  const actor: ActorRef = { kind: 'actor', id: command.actorName };
  if (proposal.kind !== 'done' && proposal.kind !== 'fail' && isOutOfTime(work, proposal)) return ok(null);
  take(work, actor, command, proposal);
  return ok(null);
}

function take(work: Work, actor: ActorRef, command: Propose, proposal: Proposal): void {
  const plan = work.plan();
  switch (proposal.kind) {
    case 'calls':
      decideBatch(work, proposal.stepId, proposal.calls, command.facts, stepFor(work, proposal.stepId, 'calls', command.guidanceSeen), proposal.cursor);
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
        artifact: { artifactId, name: name ?? null, description: description ?? null, parts: parts.map((part) => work.store(part as unknown as JsonObject)) },
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
        work.emit('execution_completed', actor, { steps: plan.stepsUsed, to: { phase: 'execute', state: 'complete' } });
      }
      return;
    case 'fail':
      work.emit('plan_failed', actor, {
        reason: proposal.message,
        remediation: plan.policy.unattended ? null : 'Send guidance, execute again, or cancel.',
        to: { phase: plan.phase, state: 'errored', ...(plan.policy.unattended ? { terminal: true as const } : {}) },
      });
  }
}

function proposeDecision(work: Work, actor: ActorRef, command: Propose, proposal: Extract<Proposal, { kind: 'decide' }>): void {
  const plan = work.plan();
  const { decision } = proposal;
  const gate = plan.phase === 'strategize' ? 'edit_code' : 'execute_command';
  const confidence = phaseConfidence(plan, gate, decision.statedConfidence);
  const threshold = plan.policy.thresholds[gate];
  const shown = { type: decision.type, question: decision.question, chosen: decision.chosen, alternatives: [...decision.alternatives], rationale: decision.rationale };
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
  if (outcome === 'proceed') makeDecision(work, actor, decision, proposal.stepId, proposal.cursor, command.guidanceSeen, { confidence, threshold });
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
  return { number: counts ? plan.stepsUsed + 1 : plan.stepsUsed, id, kind, callIds: [], guidanceSeen, startCursor: plan.cursor };
}

/** Time is checked before every step, calls or not; a batch checks again with each call. */
function isOutOfTime(work: Work, proposal: Proposal): boolean {
  if (proposal.kind === 'calls') return false;
  const plan = work.plan();
  const limit = effectiveLimit(plan.policy.maxWallClockSeconds, plan.grants.seconds);
  const worked = workedMs(plan, work.context.now);
  if (limit === null || worked <= limit * 1000) return false;
  const reason = `Wall-clock limit reached: ${Math.floor(worked / 1000)}s/${limit}s. Remediation: increase max_wall_clock_seconds, or request human approval.`;
  if (plan.policy.unattended) {
    failUnattended(work, reason);
    return true;
  }
  openApproval(work, {
    kind: 'limit',
    reason,
    guard: 'wall_clock',
    subject: { details: { worked_seconds: Math.floor(worked / 1000), limit_seconds: limit } },
    binds: { guard: 'wall_clock', step: plan.stepsUsed, worked },
    suggestedGrant: { seconds: Math.max(60, Math.ceil(worked / 1000 - limit) * 2) },
  });
  return true;
}
