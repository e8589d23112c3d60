import * as z from 'zod';
import {
  combinePolicies,
  type GuardPolicy,
  Guardrails,
  type Limit,
  type ListEntry,
  type PermitList,
  type PolicySource,
  permittedByAll,
} from './guard-policy.ts';
import { exceedsDepth } from './json.ts';
import { CapUsd, CountLimit, HostList, NameList, THRESHOLD_NAMES, Threshold, type ThresholdName } from './profile.ts';
import type { Refusal } from './refusal.ts';
import { invalidField } from './refusal.ts';
import type { Result } from './result.ts';
import { err, ok } from './result.ts';
import { invalidDocument } from './schema-issues.ts';

/**
 * The org's policy floor (design section 7, "Which limits bind"): what no profile, action, plan or approval can loosen. A floor can only
 * tighten, so its switches have one position; what it leaves out it does not bind.
 */

/** Longest floor, as JSON. It is locked into every plan, whose events are small. */
export const MAX_POLICY_CHARACTERS = 16 * 1024;

const Minimum = Threshold.optional();

/** The smallest value that each threshold may have in any plan; 1.0 makes its gate ask always. */
export const ThresholdMinima = z.strictObject({
  decompose_task: Minimum,
  create_tool: Minimum,
  select_tool: Minimum,
  edit_code: Minimum,
  execute_command: Minimum,
  create_file: Minimum,
  delete_content: Minimum,
  access_network: Minimum,
  install_dependency: Minimum,
  modify_config: Minimum,
  approve_plan: Minimum,
} satisfies Record<ThresholdName, typeof Minimum>);
export type ThresholdMinima = z.infer<typeof ThresholdMinima>;

const required = z.literal(true, 'can only be true: a floor requires or says nothing').optional();

/** The members of the source's `SafetyProfile` that a floor can bind. `max_total_cost` is a cap over the plans of one profile, so it has no place here. */
export const SafetyFloor = z.strictObject({
  require_sandbox: required,
  require_checkpoints: required,
  require_human_approval: required,
  allow_unsafe_tools: z.literal(false, 'can only be false: a floor forbids or says nothing').optional(),
  allowed_skill_categories: NameList.optional(),
  max_cost_per_plan: CapUsd.nullable().optional(),
  max_retries_per_step: CountLimit.optional(),
  /** The only hosts that a profile's own list can open; empty: none. */
  tainted_write_hosts: HostList.optional(),
});
export type SafetyFloor = z.infer<typeof SafetyFloor>;

export const OrgPolicy = z.strictObject({
  guardrails: Guardrails.optional(),
  threshold_minima: ThresholdMinima.optional(),
  safety: SafetyFloor.optional(),
});
export type OrgPolicy = z.infer<typeof OrgPolicy>;

/** The floor of an org that has set none. */
export const NO_FLOOR: OrgPolicy = {};

/** Reads a floor from outside or from storage; `field` is where it stood in the input. */
export function parseOrgPolicy(value: unknown, field = 'policy'): Result<OrgPolicy, Refusal> {
  if (exceedsDepth(value)) return err(invalidField(field, 'is nested too deeply'));
  const parsed = OrgPolicy.safeParse(value);
  if (!parsed.success) return err(invalidDocument('policy', parsed.error, field));
  if (JSON.stringify(parsed.data).length > MAX_POLICY_CHARACTERS) {
    return err({
      kind: 'too_large',
      message: `${field}: must have at most ${MAX_POLICY_CHARACTERS} characters`,
      limitBytes: MAX_POLICY_CHARACTERS,
    });
  }
  return ok(parsed.data);
}

/** The floor as a source of a plan's policy. It goes first, so that a tie names the org. */
export function floorSource(floor: OrgPolicy): PolicySource {
  return {
    origin: 'org',
    ...(floor.guardrails === undefined ? {} : { guardrails: floor.guardrails }),
    ...(floor.threshold_minima === undefined ? {} : { thresholdMinima: floor.threshold_minima }),
    ...(floor.safety === undefined ? {} : { safety: floor.safety }),
  };
}

/**
 * A policy that is in force, under a floor that came later: the strictest of both, so nothing is loosened, and applying the same floor
 * again changes nothing. Equal to having combined with the floor from the start. A floor that was loosened reaches new plans only.
 */
export function applyFloor(policy: GuardPolicy, floor: OrgPolicy): GuardPolicy {
  const added = combinePolicies([floorSource(floor)]);
  const { safety = {}, threshold_minima: minima = {} } = floor;
  const threshold = (name: ThresholdName): number => Math.max(policy.thresholds[name], minima[name] ?? 0);
  return {
    planCapMicroUsd: tighter(added.planCapMicroUsd, policy.planCapMicroUsd),
    profileCapMicroUsd: policy.profileCapMicroUsd,
    maxCallsPerStep: tighter(added.maxCallsPerStep, policy.maxCallsPerStep),
    maxSteps: tighter(added.maxSteps, policy.maxSteps),
    maxWallClockSeconds: tighter(added.maxWallClockSeconds, policy.maxWallClockSeconds),
    maxCallsPerInvocation: tighter(added.maxCallsPerInvocation, policy.maxCallsPerInvocation),
    maxRetries: tighter(added.maxRetries, policy.maxRetries),
    denylist: uniteEntries(added.denylist, policy.denylist),
    allowlists: uniteLists(added.allowlists, policy.allowlists),
    skillCategories: uniteLists(added.skillCategories, policy.skillCategories),
    requiredConfirmations: uniteEntries(added.requiredConfirmations, policy.requiredConfirmations),
    taintedWriteHosts: tightenHosts(policy.taintedWriteHosts, safety.tainted_write_hosts),
    requireApprovalForWrites: added.requireApprovalForWrites || policy.requireApprovalForWrites,
    requireApprovalForApply: added.requireApprovalForApply || policy.requireApprovalForApply,
    requireHumanApproval: added.requireHumanApproval || policy.requireHumanApproval,
    requireSandbox: safety.require_sandbox === true || policy.requireSandbox,
    requireCheckpoints: safety.require_checkpoints === true || policy.requireCheckpoints,
    allowUnsafeTools: safety.allow_unsafe_tools !== false && policy.allowUnsafeTools,
    unattended: policy.unattended,
    thresholds: Object.fromEntries(THRESHOLD_NAMES.map((name) => [name, threshold(name)])) as Record<ThresholdName, number>,
  };
}

/** The smaller of two limits under the smaller of their ceilings; on a tie the first. */
export function tighter(first: Limit | null, second: Limit | null): Limit | null {
  if (first === null || second === null) return first ?? second;
  const ceilings = [first.ceiling, second.ceiling].filter((ceiling) => ceiling !== null);
  return { ...(second.value < first.value ? second : first), ceiling: ceilings.length === 0 ? null : Math.min(...ceilings) };
}

function uniteEntries(first: readonly ListEntry[], second: readonly ListEntry[]): readonly ListEntry[] {
  const has = (entry: ListEntry): boolean => first.some((other) => other.origin === entry.origin && other.pattern === entry.pattern);
  return [...first, ...second.filter((entry) => !has(entry))];
}

function uniteLists(first: readonly PermitList[], second: readonly PermitList[]): readonly PermitList[] {
  const keys = new Set(first.map(keyOf));
  return [...first, ...second.filter((list) => !keys.has(keyOf(list)))];
}

/** Where nothing is permitted a floor permits nothing either: it names what others may open. */
function tightenHosts(lists: readonly PermitList[], floor: readonly string[] | undefined): readonly PermitList[] {
  return lists.length === 0 || floor === undefined ? lists : permittedByAll(uniteLists([{ origin: 'org', entries: [...floor] }], lists));
}

const keyOf = ({ origin, entries }: PermitList): string => JSON.stringify([origin, ...entries]);
