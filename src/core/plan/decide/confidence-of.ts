import { type Confidence, computeConfidence, type Outcomes } from '../../confidence.ts';
import { applyRiskClass, GATES } from '../../gates.ts';
import type { ThresholdName } from '../../profile.ts';
import { isWriteClass, type RiskClass } from '../../tool.ts';
import type { CallFacts } from '../commands.ts';
import type { Plan } from '../plan.ts';
import type { ProposedCall } from '../proposal.ts';

const NONE: Outcomes = { ok: 0, total: 0 };

/** Confidence of a gate in phase form: outcomes of the action's plans on the project, as they were known when the plan started. */
export function phaseConfidence(plan: Plan, gate: ThresholdName, claimed?: number): Confidence {
  return computeConfidence({
    riskClass: gateRiskClass(gate),
    outcomes: plan.statistics.plans,
    familiarity: { kind: 'phase', completedPlans: plan.statistics.plans.ok },
    touchesProtectedPath: false,
    files: 0,
    bytes: 0,
    matchingInvariants: (plan.action.invariants ?? []).length,
    lastValidationFailed: false,
    answersFailedValidation: GATES[gate].answersFailedValidation,
    tainted: plan.tainted,
    ...(claimed === undefined ? {} : { claimed }),
  });
}

/** The class of a gate in phase form. A decision under execute_command touches nothing by itself. */
export function gateRiskClass(gate: ThresholdName): RiskClass {
  const { risk } = GATES[gate];
  if (risk === 'apply_target') return applyRiskClass({ fastForward: false, outboxEntries: 0 });
  return risk === 'riskiest_call' || risk === 'failed_call' ? 'read' : risk;
}

/** Confidence of one call. Invariants concern what is changed, so a reading call matches none. */
export function callConfidence(
  plan: Pick<Plan, 'statistics' | 'action' | 'tainted'> & { readonly readHosts?: readonly string[] },
  riskClass: RiskClass,
  proposed: ProposedCall,
  facts: CallFacts,
): Confidence {
  const { readHosts = [] } = plan;
  const hosts = facts.hosts ?? [];
  const knownHosts = hosts.filter((host) => readHosts.includes(host)).length;
  return computeConfidence({
    riskClass,
    outcomes: plan.statistics.calls[riskClass] ?? NONE,
    familiarity: {
      kind: 'call',
      known: facts.known + knownHosts,
      newInKnownFolder: facts.newInKnownFolder,
      unknown: facts.unknown + hosts.length - knownHosts,
    },
    touchesProtectedPath: facts.protectedPaths.length > 0,
    files: facts.known + facts.newInKnownFolder + facts.unknown,
    bytes: facts.bytes,
    matchingInvariants: isWriteClass(riskClass) ? (plan.action.invariants ?? []).length : 0,
    lastValidationFailed: false,
    answersFailedValidation: false,
    tainted: plan.tainted,
    ...(proposed.statedConfidence === undefined ? {} : { claimed: proposed.statedConfidence }),
  });
}
