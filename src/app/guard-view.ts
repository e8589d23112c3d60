/** The guards of a plan as the operations show them (api/guard.ts), in the source's field names. Amounts in USD. */
import type { PlanGuardView } from '../api/guard.ts';
import { effectiveLimit, type GuardPolicy, type Limit, type PermitList } from '../core/guard-policy.ts';
import { matchesHost } from '../core/host.ts';
import type { JsonObject, JsonValue } from '../core/json.ts';
import { toUsd } from '../core/money.ts';
import { matchesPattern } from '../core/names.ts';
import { lockedPolicyOf } from '../core/plan/plan.ts';
import type { PublicPlan } from '../core/plan/snapshot.ts';
import { type AutomationProfile, THRESHOLD_NAMES, THRESHOLDS } from '../core/profile.ts';

export function guardViewOf(plan: PublicPlan): PlanGuardView {
  const numbers = numbersOf(plan);
  return {
    plan_id: plan.id,
    revision: plan.guards.revision,
    digest: plan.policyDigest,
    limits: limitsOf(plan, numbers),
    policy: policyView(plan.policy, numbers),
    revised: JSON.parse(JSON.stringify(plan.guards.own)) as JsonObject,
  };
}

/** What binds a plan, in the form of a profile, and what that makes of each threshold of the profile that it got. */
export function effectiveOf(profile: AutomationProfile, policy: GuardPolicy, granted: Granted = NOTHING_GRANTED) {
  return {
    thresholds: THRESHOLD_NAMES.map((name) => {
      const [value, effective] = [profile[name], policy.thresholds[name]];
      return { name, value, effective, tightened: effective > value, meaning: THRESHOLDS[name] };
    }),
    effective: policyView(policy, numbersOf({ policy, ...granted })),
  };
}

/** What people have granted beyond the limits so far. */
type Granted = Pick<PublicPlan, 'grants' | 'stepsUsed'> & { readonly ledger: Pick<PublicPlan['ledger'], 'grantedMicroUsd'> };

const NOTHING_GRANTED: Granted = {
  ledger: { grantedMicroUsd: 0 },
  grants: { calls: { step: 0, amount: 0 }, steps: 0, seconds: 0, retries: 0 },
  stepsUsed: 0,
};

interface ShownNumber {
  readonly limit: Limit;
  /** What holds: the limit with what humans granted beyond it. */
  readonly value: number;
  readonly granted: number;
}

type NumberName =
  | 'max_total_cost'
  | 'max_tool_calls_per_step'
  | 'max_steps'
  | 'max_wall_clock_seconds'
  | 'max_tool_calls_per_invocation'
  | 'max_retries_per_failure';

type Numbers = ReadonlyMap<NumberName, ShownNumber>;

function numbersOf({ policy, ledger, grants, stepsUsed }: Granted & { readonly policy: GuardPolicy }): Numbers {
  const calls = grants.calls.step === stepsUsed ? grants.calls.amount : 0;
  const all: readonly (readonly [NumberName, Limit | null, number])[] = [
    ['max_total_cost', policy.planCapMicroUsd, ledger.grantedMicroUsd],
    ['max_tool_calls_per_step', policy.maxCallsPerStep, calls],
    ['max_steps', policy.maxSteps, grants.steps],
    ['max_wall_clock_seconds', policy.maxWallClockSeconds, grants.seconds],
    ['max_tool_calls_per_invocation', policy.maxCallsPerInvocation, calls],
    ['max_retries_per_failure', policy.maxRetries, grants.retries],
  ];
  return new Map(
    all.flatMap(([name, limit, granted]): [NumberName, ShownNumber][] => {
      const value = effectiveLimit(limit, granted);
      if (limit === null || value === null) return [];
      const shown = name === 'max_total_cost' ? toUsd : (number: number) => number;
      return [[name, { limit, value: shown(value), granted: shown(value - limit.value) }]];
    }),
  );
}

/** The combined policy: what a profile that said all of this at once would hold. */
function policyView(policy: GuardPolicy, numbers: Numbers): JsonObject {
  const number = (name: NumberName): JsonValue => numbers.get(name)?.value ?? null;
  return {
    max_total_cost: number('max_total_cost'),
    max_tool_calls_per_step: number('max_tool_calls_per_step'),
    max_steps: number('max_steps'),
    max_wall_clock_seconds: number('max_wall_clock_seconds'),
    actor_limits: {
      max_tool_calls_per_invocation: number('max_tool_calls_per_invocation'),
      max_retries_per_failure: number('max_retries_per_failure'),
    },
    tool_denylist: distinct(policy.denylist.map((entry) => entry.pattern)),
    tool_allowlist: policy.allowlists.length === 0 ? null : coveredByAll(policy.allowlists, coversName),
    required_confirmations: distinct(policy.requiredConfirmations.map((entry) => entry.pattern)),
    require_approval_for_writes: policy.requireApprovalForWrites,
    require_approval_for_apply: policy.requireApprovalForApply,
    safety: {
      require_sandbox: policy.requireSandbox,
      require_checkpoints: policy.requireCheckpoints,
      allow_unsafe_tools: policy.allowUnsafeTools,
      require_human_approval: policy.requireHumanApproval,
      allowed_skill_categories: coveredByAll(policy.skillCategories, (each, entry) => each === entry),
      tainted_write_hosts: coveredByAll(policy.taintedWriteHosts, coversHost),
    },
    thresholds: { ...policy.thresholds },
  };
}

/** Entries of any of the lists that every other one covers as well. */
function coveredByAll(lists: readonly PermitList[], covers: (pattern: string, entry: string) => boolean): readonly string[] {
  const isCovered = (entry: string): boolean => lists.every(({ entries }) => entries.some((each) => covers(each, entry)));
  return distinct(lists.flatMap(({ entries }) => entries).filter(isCovered));
}

const coversName = (pattern: string, entry: string): boolean => pattern === entry || matchesPattern(pattern, entry);

/** A pattern covers another one if it names all that the other does. */
const coversHost = (pattern: string, entry: string): boolean => pattern === entry || matchesHost(pattern, entry.replace('*.', 'x.'));

const distinct = (entries: readonly string[]): readonly string[] => [...new Set(entries)];

/** Each limit with where it comes from. */
function limitsOf(plan: PublicPlan, numbers: Numbers) {
  const { policy } = plan;
  const locked = lockedPolicyOf(plan);
  const flag = (name: string, value: boolean, isLocked = value) =>
    value ? [{ name, value: true, origin: isLocked ? 'combined' : 'revision' }] : [];
  return [
    ...[...numbers].map(([name, { limit, value, granted }]) => ({
      name,
      value,
      origin: `${limit.origin} (${limit.field})${granted === 0 ? '' : `, ${granted} of it granted`}`,
    })),
    ...policy.denylist.map((entry) => ({ name: 'tool_denylist', value: entry.pattern, origin: entry.origin })),
    ...policy.allowlists.map((list) => ({ name: 'tool_allowlist', value: [...list.entries], origin: list.origin })),
    ...policy.taintedWriteHosts.map((list) => ({ name: 'tainted_write_hosts', value: [...list.entries], origin: list.origin })),
    ...policy.requiredConfirmations.map((entry) => ({ name: 'required_confirmations', value: entry.pattern, origin: entry.origin })),
    ...flag('require_approval_for_writes', policy.requireApprovalForWrites, locked.requireApprovalForWrites),
    ...flag('require_approval_for_apply', policy.requireApprovalForApply, locked.requireApprovalForApply),
    ...flag('require_human_approval', policy.requireHumanApproval),
    ...flag('require_sandbox', policy.requireSandbox),
    ...flag('require_checkpoints', policy.requireCheckpoints),
    ...flag('allow_unsafe_tools', policy.allowUnsafeTools),
  ];
}
