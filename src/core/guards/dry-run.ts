import type { GuardPolicy } from '../guard-policy.ts';
import type { RiskClass, ToolCatalogue } from '../tool.ts';
import { allowlistGuard } from './allowlist.ts';
import { budgetGuard } from './budget.ts';
import { callLimitGuard } from './call-limit.ts';
import { denylistGuard } from './denylist.ts';
import type { Grants, Guard } from './guard.ts';
import { evaluateWith } from './guards.ts';
import { toolGuard } from './tool.ts';
import { writeApprovalGuard } from './write-approval.ts';

/** Whose guards a question is about (automation-profiles.md "GuardScope"). */
export const GUARD_SCOPES = ['plan', 'subplan'] as const;
export type GuardScope = (typeof GUARD_SCOPES)[number];

/** The source's answer (guards.md "GuardResult"). */
export interface GuardResult {
  readonly allowed: boolean;
  readonly reason: string | null;
  readonly requiresApproval: boolean;
}

export interface DryRun {
  readonly toolName: string;
  readonly catalogue: ToolCatalogue;
  readonly isWrite: boolean;
  readonly spentMicroUsd: number;
  readonly callsSoFar: number;
  readonly grants: Grants;
  readonly scope: GuardScope;
}

/** The checks of the source's `AutomationGuard`, in its order. */
const SOURCE_GUARDS: readonly Guard[] = [denylistGuard, toolGuard, allowlistGuard, budgetGuard, callLimitGuard, writeApprovalGuard];

/** What the guards of a policy would say of one call (`AutomationProfile.check_guard`). Nothing is reserved and nothing recorded. */
export function dryRun(
  policy: GuardPolicy,
  { toolName, catalogue, isWrite, spentMicroUsd, callsSoFar, grants, scope }: DryRun,
): GuardResult {
  const known = catalogue.find(toolName)?.spec.riskClass;
  const said: RiskClass = isWrite ? 'write' : 'read';
  const { first } = evaluateWith(
    SOURCE_GUARDS,
    policy,
    {
      toolName,
      catalogue,
      unknownTools: 'accept',
      riskClass: known === undefined || isWrite ? said : null,
      costMicroUsd: 0,
      skillCategory: null,
      operation: null,
      protectedPaths: [],
      changesOutside: false,
    },
    {
      running: true,
      halted: null,
      workedMs: 0,
      stepNumber: 1,
      callsInStep: callsSoFar,
      callsInInvocation: 0,
      retriesOfCall: 0,
      spentMicroUsd,
      reservedMicroUsd: 0,
      overrunMicroUsd: 0,
      upperRefusal: null,
      grants,
      tainted: false,
      approvedGuards: new Map(),
    },
  );
  if (first === null) return { allowed: true, reason: null, requiresApproval: false };
  return { allowed: false, reason: inScope(first.reason ?? 'A guard refused the call.', scope), requiresApproval: first.requiresApproval };
}

/** Whoever reads the refusal of a child plan has to see whose limit it was. */
function inScope(reason: string, scope: GuardScope): string {
  return scope === 'plan' ? reason : `Subplan: ${reason}`;
}
