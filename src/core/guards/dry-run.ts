import { evaluateGate } from '../gates.ts';
import type { GuardPolicy } from '../guard-policy.ts';
import type { FieldIssue } from '../refusal.ts';
import { isWriteClass, type RiskClass, riskierOf, type ToolCatalogue, type ToolSpec } from '../tool.ts';
import type { GuardFacts, GuardVerdict } from './guard.ts';
import { evaluateGuards } from './guards.ts';
import { unfitVerdict } from './unfit-call.ts';

/** Whose guards a question is about (automation-profiles.md "GuardScope"). */
export const GUARD_SCOPES = ['plan', 'subplan'] as const;
export type GuardScope = (typeof GUARD_SCOPES)[number];

/** The source's answer (guards.md "GuardResult"), with what every guard says. */
export interface GuardResult {
  readonly allowed: boolean;
  readonly reason: string | null;
  readonly requiresApproval: boolean;
  readonly guards: readonly GuardVerdict[];
}

export interface DryRun {
  readonly toolName: string;
  readonly catalogue: ToolCatalogue;
  /** `refuse` for plans that are run here, whose tools are those of the catalogue. */
  readonly unknownTools: 'refuse' | 'accept';
  /** Null: nobody said; a tool of which nothing is known then counts as a write outside. */
  readonly isWrite: boolean | null;
  /** Whether writes go to the project at once (no sandbox); otherwise they stay in the plan's workspace. */
  readonly writesAtOnce: boolean;
  /** What the call would cost at most; a tool that is known costs at least its price. Null: a price has to be known, and was not said. */
  readonly costMicroUsd: number | null;
  readonly operation: string | null;
  /** What its arguments say of the call; null: none were given, or they say nothing. */
  readonly about: DryRunCall | null;
  /** The plan is in Strategize. */
  readonly isStrategy: boolean;
  readonly facts: GuardFacts;
  readonly scope: GuardScope;
  /** The verdict of the confidence gate for a call of this class; null: nobody knows how confident a plan would be. */
  readonly gate: ((riskClass: RiskClass) => GuardVerdict) | null;
}

/** What of a call follows from its arguments. */
export interface DryRunCall {
  readonly issues: readonly FieldIssue[];
  readonly protectedPaths: readonly string[];
  readonly hosts?: readonly string[];
}

/** For a question that is about no plan: nothing has happened, and nothing stands above. */
export const NO_PLAN_FACTS: Omit<GuardFacts, 'callsInStep' | 'spentMicroUsd' | 'grants'> = {
  running: true,
  halted: null,
  workedMs: 0,
  stepNumber: 1,
  callsInInvocation: 0,
  retriesOfCall: 0,
  reservedMicroUsd: 0,
  overrunMicroUsd: 0,
  upperRefusal: null,
  tainted: false,
  approvedGuards: new Map(),
};

/**
 * What all guards of a policy would say of one call (`AutomationProfile.check_guard`), in the order in which they decide one. Nothing is
 * reserved and nothing recorded.
 */
export function dryRun(policy: GuardPolicy, question: DryRun): GuardResult {
  const { toolName, catalogue, unknownTools, isWrite, costMicroUsd, operation, about, facts, scope, gate, writesAtOnce } = question;
  const spec = catalogue.find(toolName)?.spec ?? null;
  const saidClass = classOf(spec, isWrite);
  const appliesAtOnce = writesAtOnce && spec?.scope === 'workspace' && isWriteClass(spec.riskClass);
  const riskClass = appliesAtOnce ? riskierOf(saidClass, 'external_write_revertible') : saidClass;
  const report = evaluateGuards(
    policy,
    {
      toolName,
      catalogue,
      unknownTools,
      riskClass,
      costMicroUsd: spec === null ? costMicroUsd : Math.max(spec.priceMicroUsd, costMicroUsd ?? 0),
      skillCategory: null,
      operation,
      protectedPaths: about?.protectedPaths ?? [],
      hosts: about?.hosts ?? null,
      changesOutside: (appliesAtOnce || spec?.scope === 'external') && isWriteClass(riskClass),
      appliesAtOnce,
    },
    facts,
  );
  const unfit = unfitVerdict({ toolName, issues: about?.issues ?? [], appliesAtOnce, isStrategy: question.isStrategy }, report.guard);
  const { first, approval } = unfit === null ? report : { first: unfit, approval: unfit.approval };
  const gated = gate === null ? [] : [gate(riskClass)];
  const guards = [...(unfit === null ? [] : [unfit]), ...report.verdicts, ...gated].map((verdict) => inScope(verdict, scope));
  const decides = guards.find(({ allowed }) => !allowed);
  if (decides === undefined) return { allowed: true, reason: null, requiresApproval: false, guards };
  // Under an unattended profile nobody is asked.
  const requiresApproval = !policy.unattended && (first === null ? decides.requiresApproval : approval !== 'none');
  return { allowed: false, reason: decides.reason ?? 'A guard refused the call.', requiresApproval, guards };
}

/** The verdict of the gate in which the guards of one call end (design section 7). */
export function gateVerdict(policy: GuardPolicy, name: 'edit_code' | 'execute_command', confidence: number): GuardVerdict {
  const threshold = policy.thresholds[name];
  const says = evaluateGate({ threshold, confidence, unattended: policy.unattended });
  const allowed = says === 'proceed';
  return {
    guard: 'confidence',
    eventType: allowed ? 'gate_allowed' : 'gate_blocked',
    allowed,
    reason: allowed ? null : `Confidence ${confidence} against threshold ${threshold} of ${name}. Remediation: request human approval.`,
    requiresApproval: says === 'ask',
    approval: allowed ? 'none' : 'call',
    limitField: name,
    limit: threshold,
    actual: confidence,
  };
}

function classOf(spec: ToolSpec | null, isWrite: boolean | null): RiskClass {
  if (isWrite === null) return spec?.riskClass ?? 'external_write';
  const said: RiskClass = isWrite ? 'write' : 'read';
  if (spec === null) return said;
  return isWrite && spec.riskClass === 'external_read' ? 'external_write' : riskierOf(spec.riskClass, said);
}

/** Whoever reads the refusal of a child plan has to see whose limit it was. */
function inScope(verdict: GuardVerdict, scope: GuardScope): GuardVerdict {
  return scope === 'plan' || verdict.allowed ? verdict : { ...verdict, reason: `Subplan: ${verdict.reason ?? 'a guard refused the call'}` };
}
