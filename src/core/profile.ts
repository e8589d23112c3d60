import * as z from 'zod';
import { HostPattern } from './host.ts';
import { exceedsDepth } from './json.ts';
import { parseCapUsd } from './money.ts';
import { canMatchToolName, findBlankEntry, foldName, MATCHES_NOTHING } from './names.ts';
import type { FieldIssue, Refusal } from './refusal.ts';
import { invalidField } from './refusal.ts';
import type { Result } from './result.ts';
import { err, ok } from './result.ts';
import type { SandboxSettings } from './sandbox.ts';
import { invalidDocument, invalidWith } from './schema-issues.ts';

/**
 * Automation profiles (source: automation-profiles.md): eleven thresholds, safety settings, guards. This file reads documents and
 * resolves which profile is used; what a threshold does is in gates.ts, what a guard does in guards/.
 */

/** The eleven thresholds in the order of the source. The names mislead, so whoever prints one prints its meaning (`THRESHOLDS`) too. */
export const THRESHOLD_NAMES = [
  'decompose_task',
  'create_tool',
  'select_tool',
  'edit_code',
  'execute_command',
  'create_file',
  'delete_content',
  'access_network',
  'install_dependency',
  'modify_config',
  'approve_plan',
] as const;

export type ThresholdName = (typeof THRESHOLD_NAMES)[number];

/** What each threshold really decides, in the words of the source. */
export const THRESHOLDS: Readonly<Record<ThresholdName, string>> = {
  decompose_task: 'Auto-enter Strategize after plan use',
  create_tool: 'Auto-proceed from Strategize to Execute',
  select_tool: 'Auto-proceed from Execute to Apply',
  edit_code: 'Auto-make decisions during Strategize',
  execute_command: 'Auto-make decisions during Execute',
  create_file: 'Auto-attempt to fix validation failures',
  delete_content: 'Auto-revise strategy when Execute hits constraints',
  access_network: 'Auto-revert from Apply (constrained) to Strategize',
  install_dependency: 'Auto-spawn and execute child plans',
  modify_config: 'Auto-retry on transient failures',
  approve_plan: 'Auto-restore from checkpoint on failure',
};

/** Names that custom profiles cannot take. */
export const BUILTIN_PROFILE_NAMES = ['manual', 'review', 'supervised', 'cautious', 'trusted', 'auto', 'ci', 'full-auto'] as const;

export type BuiltinProfileName = (typeof BUILTIN_PROFILE_NAMES)[number];

/** An amount of USD that caps something: a number, zero or more. Zero is a cap, null is none. */
export const CapUsd = z.number('must be a number of USD').superRefine((value, context) => {
  const parsed = parseCapUsd(value);
  if (!parsed.ok) context.addIssue({ code: 'custom', message: parsed.error });
});

/** A limit on a count: a whole number, zero or more. Zero is a limit, null is none. */
export const CountLimit = z.int('must be a whole number').min(0, 'must not be negative');

/** A list of names or patterns. Blank entries are refused, since an entry that names nothing hides a mistake. */
export const NameList = z
  .array(z.string('must be text').max(256, 'must have at most 256 characters'))
  .max(1000)
  .superRefine((entries, context) => {
    const blank = findBlankEntry(entries);
    if (blank !== null) context.addIssue({ code: 'custom', path: [blank], message: 'must not be blank' });
  });

/**
 * A list of names or patterns of tools. One that no tool's name can match is refused as well: whoever wrote it counts on a guard that is
 * not there, or would let nothing through.
 */
const toolList = (compared: 'exactly' | 'denial') =>
  NameList.superRefine((entries, context) => {
    for (const [index, entry] of entries.entries()) {
      if (typeof entry === 'string' && findBlankEntry([entry]) === null && !canMatchToolName(entry, compared))
        context.addIssue({ code: 'custom', path: [index], message: MATCHES_NOTHING });
    }
  });

export const ToolAllowlist = toolList('exactly');
export const ToolDenylist = toolList('denial');

/** Hosts, each by its name or as `*.` and a name for all below it. */
export const HostList = z.array(HostPattern).max(200);

/** The source's `SafetyProfile`, complete: every member is present, defaults as in the source. The hosts are ours. */
export const SafetyProfile = z.strictObject({
  require_sandbox: z.boolean().default(true),
  require_checkpoints: z.boolean().default(true),
  allow_unsafe_tools: z.boolean().default(false),
  require_human_approval: z.boolean().default(false),
  allowed_skill_categories: NameList.default([]),
  max_cost_per_plan: CapUsd.nullable().default(null),
  max_total_cost: CapUsd.nullable().default(null),
  max_retries_per_step: CountLimit.default(3),
  /** Where a call may write although content from outside has entered the plan's context; everywhere else it asks. */
  tainted_write_hosts: HostList.default([]),
});
export type SafetyProfile = z.infer<typeof SafetyProfile>;

/** The source's `AutomationGuard`, complete. */
export const AutomationGuard = z.strictObject({
  max_tool_calls_per_step: CountLimit.nullable().default(null),
  max_total_cost: CapUsd.nullable().default(null),
  tool_allowlist: ToolAllowlist.nullable().default(null),
  tool_denylist: ToolDenylist.nullable().default(null),
  require_approval_for_writes: z.boolean().default(false),
  require_approval_for_apply: z.boolean().default(false),
});
export type AutomationGuard = z.infer<typeof AutomationGuard>;

/** A confidence threshold: 0.0 proceeds always, 1.0 asks always. */
export const Threshold = z.number('must be a number from 0.0 to 1.0').min(0, 'must be from 0.0 to 1.0').max(1, 'must be from 0.0 to 1.0');

const thresholdShape = {
  decompose_task: Threshold,
  create_tool: Threshold,
  select_tool: Threshold,
  edit_code: Threshold,
  execute_command: Threshold,
  create_file: Threshold,
  delete_content: Threshold,
  access_network: Threshold,
  install_dependency: Threshold,
  modify_config: Threshold,
  approve_plan: Threshold,
} satisfies Record<ThresholdName, z.ZodType<number>>;

const PROFILE_NAME = /^(?:(?:[A-Za-z0-9][A-Za-z0-9._-]*:)?[A-Za-z0-9][A-Za-z0-9._-]*\/)?[A-Za-z0-9][A-Za-z0-9._-]*$/;

/** `name`, `ns/name` or `server:ns/name`. */
export const ProfileName = z
  .string('must be text')
  .max(128, 'must have at most 128 characters')
  .regex(PROFILE_NAME, "must have the form 'name', 'ns/name' or 'server:ns/name'");

/** A complete profile in the source's field form: what is stored, locked into a plan, digested and printed. */
export const AutomationProfile = z.strictObject({
  name: ProfileName,
  description: z.string().max(2000).optional(),
  /** The profile from which missing fields were taken when this one was saved; kept for display, not followed again. */
  extends: ProfileName.optional(),
  ...thresholdShape,
  safety: SafetyProfile,
  guard: AutomationGuard.nullable().default(null),
  /** Nobody answers: every question becomes a clean failure. `ci` has it, and what extends it. */
  unattended: z.boolean().optional(),
});
export type AutomationProfile = z.infer<typeof AutomationProfile>;

const SAFETY_FIELDS = [
  'require_sandbox',
  'require_checkpoints',
  'allow_unsafe_tools',
  'require_human_approval',
  'allowed_skill_categories',
  'max_cost_per_plan',
  'max_total_cost',
  'max_retries_per_step',
  'tainted_write_hosts',
] as const satisfies readonly (keyof SafetyProfile)[];

/** Longest profile, as JSON: it is locked into every plan, whose events are small. */
export const MAX_PROFILE_CHARACTERS = 16 * 1024;

export interface ProfileContext {
  /** Finds the profile that a document extends. */
  readonly lookup: (name: string) => AutomationProfile | null;
  /** Names that can be extended, for the refusal of one that cannot; absent: the built-in ones. */
  readonly names?: readonly string[];
  /** `sandbox.strategy` and `sandbox.checkpoint.enabled` where the profile is saved; absent: the source's two constraints are not checked. */
  readonly sandbox?: SandboxSettings;
}

export interface ParsedProfile {
  readonly profile: AutomationProfile;
  /** Thresholds that neither the document nor what it extends gave: 1.0, to be shown as default. */
  readonly defaulted: readonly ThresholdName[];
}

/**
 * Reads a custom profile document (parsed YAML or JSON). Accepts `guard` or `guards`, safety fields nested or at top level; refuses
 * contradictions, unknown fields by name, blank list entries, reserved names, and a plan cap above the total cap.
 */
export function parseProfile(document: unknown, context: ProfileContext): Result<ParsedProfile, Refusal> {
  if (exceedsDepth(document)) return err(invalidField('profile', 'is nested too deeply'));
  if (!isRecord(document)) return err(invalidField('profile', 'must be an object'));
  const { fields, safety, guard, issues } = normalise(document);
  if (issues.length > 0) return err(invalidWith('profile', issues));

  const base = findBase(fields.get('extends'), context);
  if (!base.ok) return base;
  const inherited = base.value;
  const defaulted = THRESHOLD_NAMES.filter((threshold) => !fields.has(threshold) && inherited === null);
  const merged: Record<string, unknown> = Object.create(null);
  for (const threshold of THRESHOLD_NAMES) merged[threshold] = inherited?.[threshold] ?? 1;
  if (inherited?.unattended !== undefined) merged['unattended'] = inherited.unattended;
  for (const [key, value] of fields) merged[key] = value;
  if (merged['unattended'] === false && inherited?.unattended !== true) delete merged['unattended'];
  merged['safety'] = safety instanceof Map ? overlay(inherited?.safety, safety) : safety;
  merged['guard'] =
    guard instanceof Map ? overlay(inherited?.guard ?? undefined, guard) : guard === undefined ? (inherited?.guard ?? null) : guard;

  const parsed = AutomationProfile.safeParse({ ...merged });
  if (!parsed.success) return err(invalidDocument('profile', parsed.error));
  const wrong = findContradictions(parsed.data, inherited, context);
  if (wrong.length > 0) return err(invalidWith('profile', wrong));
  if (JSON.stringify(parsed.data).length > MAX_PROFILE_CHARACTERS) {
    return err({
      kind: 'too_large',
      message: `profile: must have at most ${MAX_PROFILE_CHARACTERS} characters`,
      limitBytes: MAX_PROFILE_CHARACTERS,
    });
  }
  return ok({ profile: parsed.data, defaulted });
}

export const PROFILE_LEVELS = ['plan', 'action', 'project', 'global', 'environment', 'default'] as const;

export type ProfileLevel = (typeof PROFILE_LEVELS)[number];

/** The names set at each level; null or absent is not set. An empty environment variable is not set either, as in a shell. */
export type ProfileChoice = { readonly [level in Exclude<ProfileLevel, 'default'>]?: string | null };

/** Which profile a plan gets, and which level said so: the first level that is set wins, `manual` when none is. Unknown names are for the caller to refuse. */
export function resolveProfile(choice: ProfileChoice): { readonly name: string; readonly level: ProfileLevel } {
  for (const level of PROFILE_LEVELS) {
    if (level === 'default') continue;
    const name = choice[level];
    if (name === undefined || name === null || (level === 'environment' && name.trim() === '')) continue;
    return { name, level };
  }
  return { name: 'manual', level: 'default' };
}

/** Whether a name is one of the eight. */
export function isBuiltinProfileName(name: string): name is BuiltinProfileName {
  return BUILTIN_PROFILE_NAMES.some((builtin) => builtin === name);
}

/** Whether a name is one of the eight, or could be taken for one (`Manual`). */
export function isReservedProfileName(name: string): boolean {
  return BUILTIN_PROFILE_NAMES.some((builtin) => builtin === foldName(name));
}

interface Normalised {
  readonly fields: ReadonlyMap<string, unknown>;
  /** A map of given members; anything else is a value of the wrong type, left for the schema to refuse. */
  readonly safety: unknown;
  readonly guard: unknown;
  readonly issues: readonly FieldIssue[];
}

/** Brings the accepted spellings into one, and reports where they contradict each other. */
function normalise(document: Record<string, unknown>): Normalised {
  const fields = new Map(Object.entries(document).filter(([, value]) => value !== undefined));
  const issues: FieldIssue[] = [];

  let safety: unknown = fields.get('safety') ?? {};
  if (isRecord(safety)) {
    const members = new Map(Object.entries(safety));
    for (const field of SAFETY_FIELDS) {
      if (!fields.has(field)) continue;
      const atTop = fields.get(field);
      if (members.has(field) && !isSame(members.get(field), atTop)) {
        issues.push({ field, message: `contradicts safety.${field}; give it once` });
      }
      members.set(field, atTop);
    }
    safety = members;
  }
  for (const field of SAFETY_FIELDS) fields.delete(field);

  const spellings = ['guard', 'guards'].filter((key) => fields.has(key));
  if (spellings.length === 2 && !isSame(fields.get('guard'), fields.get('guards'))) {
    issues.push({ field: 'guards', message: 'contradicts guard; give one of them' });
  }
  const spelling = spellings[0];
  const given = spelling === undefined ? undefined : fields.get(spelling);
  for (const key of ['safety', 'guard', 'guards']) fields.delete(key);
  return { fields, safety, guard: isRecord(given) ? new Map(Object.entries(given)) : given, issues };
}

function findBase(name: unknown, context: ProfileContext): Result<AutomationProfile | null, Refusal> {
  if (name === undefined) return ok(null);
  const base = typeof name === 'string' ? context.lookup(name) : null;
  if (base !== null) return ok(base);
  const names = (context.names ?? BUILTIN_PROFILE_NAMES).join(', ');
  return err(invalidField('extends', `no profile is named ${JSON.stringify(name)}; valid names: ${names}`));
}

function findContradictions(profile: AutomationProfile, base: AutomationProfile | null, context: ProfileContext): readonly FieldIssue[] {
  const issues: FieldIssue[] = [];
  if ((profile.unattended ?? false) !== (base?.unattended ?? false)) {
    issues.push({ field: 'unattended', message: "comes with 'extends: ci', or a profile that extends it, and cannot be set or dropped" });
  }
  if (isReservedProfileName(profile.name)) {
    issues.push({ field: 'name', message: `'${profile.name}' is reserved for a built-in profile; choose another name` });
  }
  const { max_cost_per_plan: perPlan, max_total_cost: total, require_sandbox: sandbox, require_checkpoints: checkpoints } = profile.safety;
  if (perPlan !== null && total !== null && perPlan > total) {
    issues.push({ field: 'safety.max_cost_per_plan', message: 'must not be larger than safety.max_total_cost' });
  }
  if (!sandbox && context.sandbox !== undefined && context.sandbox.strategy !== 'none') {
    issues.push({ field: 'safety.require_sandbox', message: "can only be false where sandbox.strategy is 'none'" });
  }
  if (!checkpoints && context.sandbox?.checkpointsEnabled === true) {
    issues.push({ field: 'safety.require_checkpoints', message: 'can only be false where sandbox.checkpoint.enabled is false' });
  }
  return issues;
}

function overlay(base: object | undefined, given: ReadonlyMap<string, unknown>): unknown {
  return Object.fromEntries([...Object.entries(base ?? {}), ...given]);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Equality of two parsed documents, whatever the order of their members. */
function isSame(first: unknown, second: unknown): boolean {
  if (Array.isArray(first))
    return Array.isArray(second) && first.length === second.length && first.every((item, index) => isSame(item, second[index]));
  if (!isRecord(first) || !isRecord(second)) return Object.is(first, second);
  const keys = Object.keys(first);
  return keys.length === Object.keys(second).length && keys.every((key) => Object.hasOwn(second, key) && isSame(first[key], second[key]));
}
