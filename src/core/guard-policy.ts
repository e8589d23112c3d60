import * as z from 'zod';
import { exceedsDepth } from './json.ts';
import { addMicroUsd, parseCapUsd } from './money.ts';
import type { SafetyFloor, ThresholdMinima } from './org-policy.ts';
import type { ThresholdName } from './profile.ts';
import { type AutomationProfile, CapUsd, CountLimit, NameList, THRESHOLD_NAMES, ToolAllowlist, ToolDenylist } from './profile.ts';
import type { Refusal } from './refusal.ts';
import { invalidField } from './refusal.ts';
import type { Result } from './result.ts';
import { err, ok } from './result.ts';
import { invalidDocument } from './schema-issues.ts';

/**
 * The policy under which one plan's calls are decided: the strictest combination of everything that applies to it (design section 7,
 * "Which limits bind"). Adding a source can only tighten: deny lists unite, allow lists intersect, limits take their minimum.
 */

/** The flat union of the source's `AutomationGuard` and `AutonomyGuardrails`, without the runtime counters. Absent and null: no limit. */
export const Guardrails = z.strictObject({
  max_tool_calls_per_step: CountLimit.nullable().optional(),
  max_total_cost: CapUsd.nullable().optional(),
  tool_allowlist: ToolAllowlist.nullable().optional(),
  tool_denylist: ToolDenylist.nullable().optional(),
  require_approval_for_writes: z.boolean().optional(),
  require_approval_for_apply: z.boolean().optional(),
  max_steps: CountLimit.nullable().optional(),
  tool_budget: CapUsd.nullable().optional(),
  max_wall_clock_seconds: z
    .number('must be a number of seconds')
    .min(0, 'must not be negative')
    .max(1e9, 'must be at most 1000000000')
    .nullable()
    .optional(),
  actor_limits: z
    .strictObject({
      max_tool_calls_per_invocation: CountLimit.nullable().optional(),
      max_retries_per_failure: CountLimit.nullable().optional(),
    })
    .optional(),
  required_confirmations: NameList.optional(),
});
export type Guardrails = z.infer<typeof Guardrails>;

/** Reads guardrails from outside; `field` is where they stood in the input. */
export function parseGuardrails(value: unknown, field = 'guardrails'): Result<Guardrails, Refusal> {
  if (exceedsDepth(value)) return err(invalidField(field, 'is nested too deeply'));
  const parsed = Guardrails.safeParse(value);
  return parsed.success ? ok(parsed.data) : err(invalidDocument('guardrails', parsed.error, field));
}

/**
 * Where an entry comes from: the org's policy floor, the `guardrails.*` settings of the org and of the project, the locked profile, the
 * action, the call that made the plan, a revision. What the floor says cannot be overridden by an approval; the settings bind every plan
 * and can be, like a profile's own guard; only what a revision added can be dropped.
 */
export const POLICY_ORIGINS = ['org', 'org_config', 'project', 'profile', 'action', 'plan', 'revision'] as const;

export type PolicyOrigin = (typeof POLICY_ORIGINS)[number];

/** A numeric limit: the smallest that any source gives. Its unit is in the name of the member that holds it. */
export interface Limit {
  readonly value: number;
  /** The source's name of the field that bound, for the remediation. */
  readonly field: string;
  readonly origin: PolicyOrigin;
  /** The org's own limit, null for none. Grants raise the limit no further than this. */
  readonly ceiling: number | null;
}

export interface ListEntry {
  readonly pattern: string;
  readonly origin: PolicyOrigin;
}

/** One source's list of what is permitted. Several lists intersect: a name must be on each. */
export interface PermitList {
  readonly origin: PolicyOrigin;
  readonly entries: readonly string[];
}

/** The combined policy: plain JSON, so that it can be stored, digested and shown. Null limits are no limit, zero is a limit. */
export interface GuardPolicy {
  readonly planCapMicroUsd: Limit | null;
  /** Lifetime spend of all plans of the org under the plan's profile (`safety.max_total_cost`). */
  readonly profileCapMicroUsd: Limit | null;
  readonly maxCallsPerStep: Limit | null;
  readonly maxSteps: Limit | null;
  readonly maxWallClockSeconds: Limit | null;
  readonly maxCallsPerInvocation: Limit | null;
  readonly maxRetries: Limit | null;
  readonly denylist: readonly ListEntry[];
  readonly allowlists: readonly PermitList[];
  /** Empty lists are left out: in the source, no category means all. */
  readonly skillCategories: readonly PermitList[];
  readonly requiredConfirmations: readonly ListEntry[];
  /** Where writes may go once the plan is tainted: what every list names. No list: nowhere, since an empty one leaves none of them. */
  readonly taintedWriteHosts: readonly PermitList[];
  readonly requireApprovalForWrites: boolean;
  readonly requireApprovalForApply: boolean;
  readonly requireHumanApproval: boolean;
  readonly requireSandbox: boolean;
  readonly requireCheckpoints: boolean;
  readonly allowUnsafeTools: boolean;
  readonly unattended: boolean;
  /** The largest of each threshold; 1.0 where no profile is among the sources. */
  readonly thresholds: Readonly<Record<ThresholdName, number>>;
}

export interface PolicySource {
  readonly origin: PolicyOrigin;
  readonly profile?: AutomationProfile;
  readonly guardrails?: Guardrails;
  /** Thresholds below which none may be. */
  readonly thresholdMinima?: ThresholdMinima;
  /** Safety settings that can only tighten; a profile brings its own. */
  readonly safety?: SafetyFloor;
}

/** Combines parsed sources to the strictest policy. With no profile among them: sandbox and checkpoints required, unsafe tools not allowed. */
export function combinePolicies(sources: readonly PolicySource[]): GuardPolicy {
  const profiles = sources.flatMap(({ origin, profile }) => (profile === undefined ? [] : [{ origin, profile }]));
  const rails = sources.flatMap(({ origin, profile, guardrails }) => [
    ...(profile?.guard ? [{ origin, rails: profile.guard as Guardrails }] : []),
    ...(guardrails ? [{ origin, rails: guardrails }] : []),
  ]);
  const hasProfile = profiles.length > 0;
  const safeties = sources.flatMap(({ origin, profile, safety }): { readonly origin: PolicyOrigin; readonly safety: SafetyTerms }[] => [
    ...(profile === undefined ? [] : [{ origin, safety: profile.safety }]),
    ...(safety === undefined ? [] : [{ origin, safety }]),
  ]);

  return {
    planCapMicroUsd: strictest([
      ...rails.map(({ origin, rails: r }) => cap(origin, 'max_total_cost', r.max_total_cost)),
      ...safeties.map(({ origin, safety }) => cap(origin, 'max_cost_per_plan', safety.max_cost_per_plan)),
      ...rails.map(({ origin, rails: r }) => cap(origin, 'tool_budget', r.tool_budget)),
    ]),
    profileCapMicroUsd: strictest(safeties.map(({ origin, safety }) => cap(origin, 'max_total_cost', safety.max_total_cost))),
    maxCallsPerStep: strictest(rails.map(({ origin, rails: r }) => limit(origin, 'max_tool_calls_per_step', r.max_tool_calls_per_step))),
    maxSteps: strictest(rails.map(({ origin, rails: r }) => limit(origin, 'max_steps', r.max_steps))),
    maxWallClockSeconds: strictest(rails.map(({ origin, rails: r }) => limit(origin, 'max_wall_clock_seconds', r.max_wall_clock_seconds))),
    maxCallsPerInvocation: strictest(
      rails.map(({ origin, rails: r }) => limit(origin, 'max_tool_calls_per_invocation', r.actor_limits?.max_tool_calls_per_invocation)),
    ),
    maxRetries: strictest([
      ...safeties.map(({ origin, safety }) => limit(origin, 'max_retries_per_step', safety.max_retries_per_step)),
      ...rails.map(({ origin, rails: r }) => limit(origin, 'max_retries_per_failure', r.actor_limits?.max_retries_per_failure)),
    ]),
    denylist: union(rails.map(({ origin, rails: r }) => ({ origin, entries: r.tool_denylist ?? [] }))),
    allowlists: rails.flatMap(({ origin, rails: r }) => (r.tool_allowlist ? [{ origin, entries: [...r.tool_allowlist] }] : [])),
    skillCategories: safeties.flatMap(({ origin, safety }) =>
      safety.allowed_skill_categories?.length ? [{ origin, entries: [...safety.allowed_skill_categories] }] : [],
    ),
    requiredConfirmations: union(rails.map(({ origin, rails: r }) => ({ origin, entries: r.required_confirmations ?? [] }))),
    taintedWriteHosts: hasProfile
      ? permittedByAll(
          safeties.flatMap(({ origin, safety }) =>
            safety.tainted_write_hosts === undefined ? [] : [{ origin, entries: [...safety.tainted_write_hosts] }],
          ),
        )
      : [],
    requireApprovalForWrites: rails.some(({ rails: r }) => r.require_approval_for_writes === true),
    requireApprovalForApply: rails.some(({ rails: r }) => r.require_approval_for_apply === true),
    requireHumanApproval: safeties.some(({ safety }) => safety.require_human_approval === true),
    requireSandbox: !hasProfile || safeties.some(({ safety }) => safety.require_sandbox === true),
    requireCheckpoints: !hasProfile || safeties.some(({ safety }) => safety.require_checkpoints === true),
    allowUnsafeTools: hasProfile && safeties.every(({ safety }) => safety.allow_unsafe_tools !== false),
    unattended: profiles.some(({ profile }) => profile.unattended === true),
    thresholds: strictestThresholds(hasProfile ? sources.flatMap((source) => [source.profile ?? {}, source.thresholdMinima ?? {}]) : []),
  };
}

/** Lists of which every one has to permit; one that permits nothing leaves nothing of the others. */
export function permittedByAll(lists: readonly PermitList[]): readonly PermitList[] {
  return lists.every(({ entries }) => entries.length > 0) ? lists : [];
}

/** The limit after a human granted `granted` more: never past the org's own limit. Null stays no limit. */
export function effectiveLimit(bound: Limit | null, granted: number): number | null {
  if (bound === null) return null;
  const raised = addMicroUsd(bound.value, granted);
  return bound.ceiling === null ? raised : Math.min(raised, bound.ceiling);
}

/** Whether a human's grant could raise the limit at all, or the org's own limit holds it. */
export function isGrantable(bound: Limit, granted: number): boolean {
  return bound.ceiling === null || addMicroUsd(bound.value, granted) < bound.ceiling;
}

/** What a profile's safety settings and a floor's have in common; a floor leaves out what it does not bind. */
type SafetyTerms = { readonly [K in keyof AutomationProfile['safety']]?: AutomationProfile['safety'][K] | undefined };

interface Candidate {
  readonly value: number;
  readonly field: string;
  readonly origin: PolicyOrigin;
}

function limit(origin: PolicyOrigin, field: string, value: number | null | undefined): Candidate | null {
  return value === null || value === undefined ? null : { value, field, origin };
}

function cap(origin: PolicyOrigin, field: string, usd: number | null | undefined): Candidate | null {
  if (usd === null || usd === undefined) return null;
  const parsed = parseCapUsd(usd);
  // Sources are parsed documents, so this cannot fail; if one ever is not, nothing may be spent.
  return { value: parsed.ok ? parsed.value : 0, field, origin };
}

/** The smallest candidate; on a tie the org's, which nothing overrides, else the first, so that the field named does not depend on chance. */
function strictest(candidates: readonly (Candidate | null)[]): Limit | null {
  let bound: Candidate | null = null;
  let ceiling: number | null = null;
  for (const candidate of candidates) {
    if (candidate === null) continue;
    const isTie = bound !== null && candidate.value === bound.value;
    if (bound === null || candidate.value < bound.value || (isTie && candidate.origin === 'org' && bound.origin !== 'org'))
      bound = candidate;
    if (candidate.origin === 'org') ceiling = ceiling === null ? candidate.value : Math.min(ceiling, candidate.value);
  }
  return bound === null ? null : { ...bound, ceiling };
}

function union(lists: readonly PermitList[]): readonly ListEntry[] {
  const seen = new Set<string>();
  const entries: ListEntry[] = [];
  for (const { origin, entries: patterns } of lists) {
    for (const pattern of patterns) {
      const key = JSON.stringify([origin, pattern]);
      if (seen.has(key)) continue;
      seen.add(key);
      entries.push({ pattern, origin });
    }
  }
  return entries;
}

function strictestThresholds(terms: readonly ThresholdMinima[]): Readonly<Record<ThresholdName, number>> {
  const largest = (name: ThresholdName): number => (terms.length === 0 ? 1 : Math.max(0, ...terms.map((each) => each[name] ?? 0)));
  return Object.fromEntries(THRESHOLD_NAMES.map((name) => [name, largest(name)])) as Record<ThresholdName, number>;
}
