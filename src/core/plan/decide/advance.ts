import { digestOf } from '../../digest.ts';
import { applyRiskClass } from '../../gates.ts';
import { evaluateApplyGuard } from '../../guards/guards.ts';
import type { DiffInput, PlanOutput } from '../commands.ts';
import type { DiffSummary } from '../plan.ts';
import { pendingApprovals } from '../plan.ts';
import { stepsTaken } from '../steps-taken.ts';
import { SYSTEM, type Work } from '../work.ts';
import { phaseConfidence } from './confidence-of.ts';
import { passGate } from './gate.ts';

/** How often a plan goes back from a moved head by itself; after that a human is asked, whatever the confidence. */
export const MAX_REVERSIONS = 3;

/** Opens the phase gate that is due. Nothing happens while something is pending or the plan is at work. */
export function advance(work: Work, diff: DiffInput | null, head: string | null, outputs: readonly PlanOutput[] = []): void {
  const plan = work.plan();
  if (plan.terminal || pendingApprovals(plan).length > 0) return;
  const { sha256 } = work.context;
  switch (`${plan.phase}/${plan.state}`) {
    case 'action/queued': {
      const binds = { action: plan.action.name, arguments: plan.createDigest, project: plan.project?.name ?? null };
      const { arguments: args } = plan;
      // What is too long to be shown inside an approval is named by its digest.
      const shown = 'inline' in args ? { arguments: args.inline } : { arguments_digest: args.blob, arguments_bytes: args.bytes };
      passGate(work, {
        gate: 'decompose_task',
        confidence: phaseConfidence(plan, 'decompose_task'),
        subject: { details: { action: plan.action.name, ...shown, project: plan.project?.name ?? null, profile: plan.profile.name } },
        binds,
        subjectDigest: digestOf(sha256, binds),
        to: { phase: 'strategize', state: 'running' },
      });
      return;
    }
    case 'strategize/complete': {
      const strategy = plan.decisions
        .filter((each) => !each.superseded)
        .map(({ id, type, question, chosen }) => ({ decision_id: id, type, question, chosen }));
      passGate(work, {
        gate: 'create_tool',
        confidence: phaseConfidence(plan, 'create_tool'),
        subject: { details: { strategy } },
        binds: { strategy, attempt: plan.attempt },
        subjectDigest: digestOf(sha256, strategy),
        to: { phase: 'execute', state: 'running' },
      });
      return;
    }
    case 'execute/complete': {
      if (plan.action.apply === 'none' || plan.project === null) {
        for (const { path, part } of outputs) {
          work.emit('artifact_produced', SYSTEM, {
            artifact: { artifactId: path, name: path, description: null, parts: [work.store(part)] },
            append: false,
            last_chunk: true,
            step: null,
          });
        }
        work.emit('plan_applied', SYSTEM, {
          head: null,
          previous: null,
          report: report(work, null),
          to: { phase: 'apply', state: 'applied', terminal: true },
        });
        return;
      }
      if (diff !== null) {
        const { patch, ...rest } = diff;
        enterApply(work, { ...rest, patch: work.store({ kind: 'text', mediaType: 'text/x-diff', filename: 'changes.diff', text: patch }) });
      }
      return;
    }
    case 'apply/constrained': {
      if (head === null || plan.project === null) return;
      const subject = { reason: plan.failure?.last.message ?? 'The project has moved.', head, reversions: plan.reversions };
      passGate(work, {
        gate: 'access_network',
        confidence: phaseConfidence(plan, 'access_network'),
        subject: { details: subject },
        binds: subject,
        subjectDigest: digestOf(sha256, subject),
        to: { phase: 'strategize', state: 'running' },
        onProceed: { rebase: { ...plan.project, base: head } },
        ...(plan.reversions < MAX_REVERSIONS
          ? {}
          : {
              alwaysAsk: {
                guard: 'reversion_limit',
                reason: `The plan has gone back ${plan.reversions} times because the project moved. Remediation: decide whether it tries again.`,
              },
            }),
      });
      return;
    }
    default:
  }
}

/** Asks whether the changes may be applied; no changes need nobody's word. */
export function enterApply(work: Work, diff: DiffSummary): void {
  const plan = work.plan();
  const applyId = `${plan.id}.${plan.attempt}.${diff.digest.slice(0, 16)}`;
  const to = { phase: 'apply', state: 'running' } as const;
  if (diff.base === diff.result) {
    work.emit('gate_decided', SYSTEM, {
      gate: 'select_tool',
      outcome: 'proceed',
      via: 'empty_diff',
      threshold: plan.policy.thresholds.select_tool,
      confidence: null,
      reason:
        plan.writtenAtOnce === undefined
          ? 'The plan changed nothing, so there is nothing to approve.'
          : 'Every change was written to the project at once, each by its own decision, so there is nothing left to apply.',
      subject_digest: diff.digest,
      policy_digest: plan.policyDigest,
      diff,
      apply_id: applyId,
      to,
    });
    return;
  }
  const guard = evaluateApplyGuard(plan.policy, null);
  passGate(work, {
    gate: 'select_tool',
    confidence: phaseConfidence(plan, 'select_tool'),
    subject: { diff, details: { risk: applyRiskClass({ fastForward: false, outboxEntries: 0 }) } },
    binds: { diff: diff.digest, base: diff.base, result: diff.result },
    subjectDigest: diff.digest,
    to,
    onProceed: { diff, apply_id: applyId },
    ...(guard.allowed ? {} : { alwaysAsk: { guard: guard.guard, reason: guard.reason ?? 'Apply needs approval.' } }),
  });
}

/** What an ended plan says of itself: the artifact `result` is made of it. */
export function report(work: Work, diff: DiffSummary | null) {
  const plan = work.plan();
  return {
    action: plan.action.name,
    project: plan.project?.name ?? null,
    steps: stepsTaken(plan),
    decisions: plan.decisions.length,
    spent_micro_usd: plan.ledger.settledMicroUsd + plan.ledger.overrunMicroUsd,
    approvals: plan.approvals
      .filter((each) => each.decided !== null)
      .map(({ id, kind, status, gate, guard, decided }) => ({ id, kind, status, gate, guard, by: decided?.by.id ?? null })),
    files: diff === null ? [] : diff.files.map(({ path, status, additions, deletions }) => ({ path, status, additions, deletions })),
    ...(plan.writtenAtOnce === undefined ? {} : { written_at_once: { writes: plan.writtenAtOnce.writes, head: plan.writtenAtOnce.head } }),
    audit_head: plan.headHash,
  };
}
