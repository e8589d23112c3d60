import type { GuardPolicy } from '../guard-policy.ts';
import { foldForDenial, isToolName } from '../names.ts';
import { riskierOf } from '../tool.ts';
import { actorCallsGuard } from './actor-calls.ts';
import { allowlistGuard } from './allowlist.ts';
import { applyApprovalGuard } from './apply-approval.ts';
import { budgetGuard } from './budget.ts';
import { callLimitGuard } from './call-limit.ts';
import { checkpointGuard } from './checkpoint.ts';
import { confirmationGuard } from './confirmation.ts';
import { denylistGuard } from './denylist.ts';
import type { ApprovalPower, AuditEventType, Guard, GuardedCall, GuardFacts, GuardRequest, GuardVerdict, Objection } from './guard.ts';
import { protectedPathGuard } from './protected-path.ts';
import { retryLimitGuard } from './retry-limit.ts';
import { sandboxGuard } from './sandbox.ts';
import { skillCategoryGuard } from './skill-category.ts';
import { stateGuard } from './state.ts';
import { stepApprovalGuard } from './step-approval.ts';
import { stepLimitGuard } from './step-limit.ts';
import { taintGuard } from './taint.ts';
import { toolGuard } from './tool.ts';
import { unsafeToolsGuard } from './unsafe-tools.ts';
import { wallClockGuard } from './wall-clock.ts';
import { writeApprovalGuard } from './write-approval.ts';

/** Every guard of a call, in the order in which the first refusal decides (design section 7). The confidence gate comes after them. */
export const GUARDS: readonly Guard[] = [
  stateGuard,
  wallClockGuard,
  stepLimitGuard,
  actorCallsGuard,
  retryLimitGuard,
  denylistGuard,
  toolGuard,
  allowlistGuard,
  unsafeToolsGuard,
  skillCategoryGuard,
  sandboxGuard,
  checkpointGuard,
  protectedPathGuard,
  taintGuard,
  budgetGuard,
  callLimitGuard,
  writeApprovalGuard,
  confirmationGuard,
  stepApprovalGuard,
];

/** What all guards said about one call. */
export interface GuardReport {
  readonly allowed: boolean;
  /** The verdict that decides: the first refusal, null when no guard refused. */
  readonly first: GuardVerdict | null;
  /** The event type of the one audit entry for this decision: that of the first refusal, or `call_allowed`. */
  readonly eventType: AuditEventType;
  /** The guard named by that entry; null when none refused. */
  readonly guard: string | null;
  /** What an approval could do for this call: nothing if any refusing guard is final, else what the first refusal takes. */
  readonly approval: ApprovalPower;
  /** The guards that an approval of exactly this call would override. */
  readonly approvableGuards: readonly string[];
  /** One verdict per guard, in order. */
  readonly verdicts: readonly GuardVerdict[];
}

/** Decides one call: every guard is evaluated and reported, the first refusal decides, a guard that throws denies. */
export function evaluateGuards(policy: GuardPolicy, request: GuardRequest, facts: GuardFacts): GuardReport {
  return evaluateWith(GUARDS, policy, request, facts);
}

/** `evaluateGuards` with another list of guards: for the apply transition, and to show that a broken guard denies. */
export function evaluateWith(guards: readonly Guard[], policy: GuardPolicy, request: GuardRequest, facts: GuardFacts): GuardReport {
  const call = resolveCall(request);
  return report(guards.map((guard) => judge(guard, policy, call, facts)));
}

/** The apply approval guard of the source, for the transition Execute → Apply. `approvalId` names a human's approval of exactly this apply. */
export function evaluateApplyGuard(policy: GuardPolicy, approvalId: string | null): GuardVerdict {
  const { name, events } = applyApprovalGuard;
  const objection = applyApprovalGuard.check(policy);
  if (objection === null) return passed(name, events.allowed, null);
  if (approvalId !== null) return passed(name, events.allowed, `approved by ${approvalId}`);
  return refused(name, refusedAs(events.refused, objection), objection);
}

function judge(guard: Guard, policy: GuardPolicy, call: GuardedCall, facts: GuardFacts): GuardVerdict {
  const { name, events } = guard;
  let objection: Objection | null;
  try {
    objection = guard.check(policy, call, facts);
  } catch {
    const reason = `Guard '${name}' could not be evaluated, so the call is refused. Remediation: report this as a defect.`;
    return refused(name, events.refused, { reason, approval: 'none' });
  }
  if (objection === null) return passed(name, events.allowed, null);
  const approvalId = objection.approval === 'call' ? facts.approvedGuards.get(name) : undefined;
  return approvalId === undefined
    ? refused(name, refusedAs(events.refused, objection), objection)
    : passed(name, events.allowed, `approved by ${approvalId}`);
}

function report(verdicts: readonly GuardVerdict[]): GuardReport {
  const refusals = verdicts.filter((verdict) => !verdict.allowed);
  const first = refusals[0] ?? null;
  return {
    allowed: first === null,
    first,
    eventType: first?.eventType ?? 'call_allowed',
    guard: first?.guard ?? null,
    approval: first === null || refusals.some((verdict) => verdict.approval === 'none') ? 'none' : first.approval,
    approvableGuards: refusals.filter((verdict) => verdict.approval === 'call').map((verdict) => verdict.guard),
    verdicts,
  };
}

function passed(guard: string, eventType: AuditEventType, reason: string | null): GuardVerdict {
  return { guard, eventType, allowed: true, reason, requiresApproval: false, approval: 'none' };
}

/** A budget above the plan has an event type of its own; the source's is that of the plan's cap. */
function refusedAs(own: AuditEventType, { exceededLevel: level }: Objection): AuditEventType {
  return level === 'session' || level === 'org' ? `${level}_budget_blocked` : own;
}

function refused(guard: string, eventType: AuditEventType, { reason, approval, ...rest }: Objection): GuardVerdict {
  return { guard, eventType, allowed: false, reason, requiresApproval: approval !== 'none', approval, ...rest };
}

function resolveCall(request: GuardRequest): GuardedCall {
  const { toolName, catalogue } = request;
  const spec = typeof toolName === 'string' ? (catalogue.find(toolName)?.spec ?? null) : null;
  const own = request.unknownTools === 'accept' && isToolName(toolName) ? toolName : null;
  const names =
    typeof toolName === 'string' ? new Set(spec === null ? [toolName] : [spec.name, ...spec.aliases, toolName]) : new Set<string>();
  // A tool of which nothing is known is taken for one that writes, never for a harmless one.
  const ownClass = spec?.riskClass ?? (request.riskClass === null ? 'external_write' : request.riskClass);
  return {
    ...request,
    shownName: typeof toolName === 'string' ? toolName : describe(toolName),
    names: [...names],
    foldedNames: [...names].map(foldForDenial),
    canonicalName: spec?.name ?? own,
    effectiveClass: request.riskClass === null ? ownClass : riskierOf(ownClass, request.riskClass),
    skillCategory: request.skillCategory ?? spec?.skillCategory ?? null,
  };
}

function describe(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'an array' : `a value of type ${typeof value}`;
}
