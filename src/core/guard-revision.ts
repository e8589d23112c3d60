import {
  combinePolicies,
  effectiveLimit,
  type GuardPolicy,
  type Guardrails,
  type Limit,
  type ListEntry,
  type PermitList,
  type PolicyOrigin,
} from './guard-policy.ts';
import type { Grants } from './guards/guard.ts';
import { canonicalJson } from './json.ts';
import { formatUsdPair } from './money.ts';
import { canMatchToolName, foldName, MATCHES_NOTHING, matchesPattern } from './names.ts';
import { tighter } from './org-policy.ts';
import type { Refusal } from './refusal.ts';
import { invalidField, invalidState } from './refusal.ts';
import { err, ok, type Result } from './result.ts';

/**
 * Guard revisions of a plan (design section 7, "What an approval can do"): what operators set on top of everything that is locked into it.
 *
 * Promise: the policy in force is never looser than the locked one. A change that would loosen what is locked is refused and names the
 * origin; what the plan itself has tightened can be given back, up to what is locked.
 */

/** The lists of a policy that take single entries. */
export const GUARD_LISTS = ['denylist', 'allowlist', 'required_confirmations'] as const;

export type GuardList = (typeof GUARD_LISTS)[number];

/** What a `set` gives: null takes back what the plan's own revisions have set of this member. */
export type GuardrailChanges = { readonly [K in keyof Guardrails]?: Guardrails[K] | null };

export type GuardChange =
  | { readonly kind: 'set'; readonly guardrails: GuardrailChanges }
  | { readonly kind: 'add' | 'remove'; readonly list: GuardList; readonly entry: string };

/** Longest set of a plan's own revisions, as JSON: it is kept in every event and snapshot. */
export const MAX_REVISION_CHARACTERS = 16 * 1024;

/** The guards of a plan, taken apart into what cannot be changed in it and what can. */
export interface GuardsInForce {
  readonly locked: GuardPolicy;
  readonly own: Guardrails;
  readonly policy: GuardPolicy;
  /** What humans have granted beyond the limits in force. */
  readonly grants: Grants;
}

export interface RevisedGuards {
  readonly own: Guardrails;
  readonly policy: GuardPolicy;
  readonly grants: Grants;
  /** More is possible than before: takes the right to approve. */
  readonly loosens: boolean;
  /** False: everything is already as it was asked for. */
  readonly changed: boolean;
}

/**
 * The policy in force: what is locked, and what comes to it (the plan's own revisions, unless another origin is said), each to the strictest.
 * Where both say the same, the locked one is named.
 */
export function withRevision(locked: GuardPolicy, own: Guardrails, origin: PolicyOrigin = 'revision'): GuardPolicy {
  const added = combinePolicies([{ origin, guardrails: own }]);
  return {
    ...locked,
    planCapMicroUsd: tighter(locked.planCapMicroUsd, added.planCapMicroUsd),
    maxCallsPerStep: tighter(locked.maxCallsPerStep, added.maxCallsPerStep),
    maxSteps: tighter(locked.maxSteps, added.maxSteps),
    maxWallClockSeconds: tighter(locked.maxWallClockSeconds, added.maxWallClockSeconds),
    maxCallsPerInvocation: tighter(locked.maxCallsPerInvocation, added.maxCallsPerInvocation),
    maxRetries: tighter(locked.maxRetries, added.maxRetries),
    denylist: [...locked.denylist, ...added.denylist],
    allowlists: [...locked.allowlists, ...added.allowlists],
    requiredConfirmations: [...locked.requiredConfirmations, ...added.requiredConfirmations],
    requireApprovalForWrites: locked.requireApprovalForWrites || added.requireApprovalForWrites,
    requireApprovalForApply: locked.requireApprovalForApply || added.requireApprovalForApply,
  };
}

/** Judges one change. Refused: it would loosen what is locked, or takes away what is not there. Whether the caller may loosen is for the caller to judge. */
export function reviseGuards(guards: GuardsInForce, change: GuardChange): Result<RevisedGuards, Refusal> {
  const edit = change.kind === 'set' ? ok(change.guardrails) : editList(guards, change);
  if (!edit.ok) return edit;
  const given = edit.value;
  const locked = lockedIssue(guards, given);
  if (locked !== null) return err(locked);
  const own = merge(guards.own, given);
  const length = JSON.stringify(own).length;
  if (length > MAX_REVISION_CHARACTERS) {
    const message = `the revisions of a plan have at most ${MAX_REVISION_CHARACTERS} characters; these would have ${length}`;
    return err({ kind: 'too_large', message, limitBytes: MAX_REVISION_CHARACTERS });
  }
  const policy = withRevision(guards.locked, own);
  const limits = reviseLimits(guards, given, own, policy);
  if (!limits.ok) return limits;
  const { grants } = limits.value;
  return ok({
    own,
    policy,
    grants,
    loosens: limits.value.loosens || loosensLists(guards.own, own) || loosensFlags(guards.policy, policy),
    changed: canonicalJson([own, policy, grants]) !== canonicalJson([guards.own, guards.policy, guards.grants]),
  });
}

/* ---------------------------------------------------------------- limits */

interface LimitKind {
  readonly fields: readonly (readonly [name: string, of: (guardrails: GuardrailChanges) => number | null | undefined])[];
  readonly bound: (policy: GuardPolicy) => Limit | null;
  readonly grant: keyof Grants;
  readonly shown: (wanted: number, most: number) => readonly [string, string];
}

const plain = (wanted: number, most: number) => [String(wanted), String(most)] as const;

const LIMITS: readonly LimitKind[] = [
  {
    fields: [
      ['max_total_cost', (each) => each.max_total_cost],
      ['tool_budget', (each) => each.tool_budget],
    ],
    bound: (policy) => policy.planCapMicroUsd,
    grant: 'costMicroUsd',
    shown: formatUsdPair,
  },
  {
    fields: [['max_tool_calls_per_step', (each) => each.max_tool_calls_per_step]],
    bound: (policy) => policy.maxCallsPerStep,
    grant: 'calls',
    shown: plain,
  },
  { fields: [['max_steps', (each) => each.max_steps]], bound: (policy) => policy.maxSteps, grant: 'steps', shown: plain },
  {
    fields: [['max_wall_clock_seconds', (each) => each.max_wall_clock_seconds]],
    bound: (policy) => policy.maxWallClockSeconds,
    grant: 'seconds',
    shown: plain,
  },
  {
    fields: [['actor_limits.max_tool_calls_per_invocation', (each) => ofActor(each, 'max_tool_calls_per_invocation')]],
    bound: (policy) => policy.maxCallsPerInvocation,
    grant: 'calls',
    shown: plain,
  },
  {
    fields: [['actor_limits.max_retries_per_failure', (each) => ofActor(each, 'max_retries_per_failure')]],
    bound: (policy) => policy.maxRetries,
    grant: 'retries',
    shown: plain,
  },
];

function ofActor(
  guardrails: GuardrailChanges,
  field: 'max_tool_calls_per_invocation' | 'max_retries_per_failure',
): number | null | undefined {
  return guardrails.actor_limits === null ? null : guardrails.actor_limits?.[field];
}

/**
 * A limit that is set is what holds from now on, with what humans had granted beyond it counted in: whoever says "at most 4" means 4. A
 * limit that is taken back leaves what is locked, or what was in force if humans had granted more.
 */
function reviseLimits(
  { locked, policy: before, own: ownBefore, grants: given }: GuardsInForce,
  change: GuardrailChanges,
  own: Guardrails,
  policy: GuardPolicy,
): Result<Pick<RevisedGuards, 'grants' | 'loosens'>, Refusal> {
  let grants = given;
  let loosens = false;
  const ownPolicy = combinePolicies([{ origin: 'revision', guardrails: own }]);
  for (const { fields, bound, grant, shown } of LIMITS) {
    const isTouched = fields.some(([, of]) => {
      const value = of(change);
      return value !== undefined && (value !== null || of(ownBefore) !== undefined);
    });
    if (!isTouched) continue;
    const inForce = effectiveLimit(bound(before), given[grant]);
    const lockedLimit = bound(locked);
    const most = lockedLimit === null ? null : Math.max(lockedLimit.value, inForce ?? lockedLimit.value);
    for (const [field, of] of fields) {
      const value = of(change);
      if (typeof value !== 'number' || lockedLimit === null || most === null) continue;
      const wanted = bound(combinePolicies([{ origin: 'revision', guardrails: single(field, value) }]))?.value ?? 0;
      if (wanted <= most) continue;
      const [asked, held] = shown(wanted, most);
      return err(lockedRefusal(field, `${asked} is looser than ${held}`, lockedLimit.origin, lockedLimit.field));
    }
    const wanted = bound(ownPolicy)?.value ?? most;
    const excess = wanted === null ? grants[grant] : lockedLimit === null ? 0 : Math.max(0, wanted - lockedLimit.value);
    grants = { ...grants, [grant]: Math.min(grants[grant], excess) };
    const after = effectiveLimit(bound(policy), grants[grant]);
    loosens ||= inForce !== null && (after === null || after > inForce);
  }
  return ok({ grants, loosens });
}

function single(field: string, value: number): Guardrails {
  const [group, member] = field.split('.');
  return (member === undefined ? { [field]: value } : { [group ?? '']: { [member]: value } }) as Guardrails;
}

/* ---------------------------------------------------------------- switches and lists */

const FLAGS = [
  ['require_approval_for_writes', (policy: GuardPolicy) => policy.requireApprovalForWrites],
  ['require_approval_for_apply', (policy: GuardPolicy) => policy.requireApprovalForApply],
] as const;

function loosensFlags(before: GuardPolicy, after: GuardPolicy): boolean {
  return FLAGS.some(([, of]) => of(before) && !of(after));
}

function loosensLists(before: Guardrails, after: Guardrails): boolean {
  const lost = (from: readonly string[], to: readonly string[]): boolean => {
    const kept = new Set(to.map(foldName));
    return from.some((entry) => !kept.has(foldName(entry)));
  };
  const allowedBefore = before.tool_allowlist;
  const allowedAfter = after.tool_allowlist;
  const opens = allowedBefore ? !allowedAfter || allowedAfter.some((entry) => !allowedBefore.includes(entry)) : false;
  return (
    opens ||
    lost(before.tool_denylist ?? [], after.tool_denylist ?? []) ||
    lost(before.required_confirmations ?? [], after.required_confirmations ?? [])
  );
}

/** What of a change is against something locked, apart from the limits. */
function lockedIssue({ locked, own }: GuardsInForce, given: GuardrailChanges): Refusal | null {
  for (const [field, of] of FLAGS) {
    if (given[field] === false && of(locked)) return lockedRefusal(field, 'false is looser than true', null, field);
  }
  for (const entry of given.tool_allowlist ?? []) {
    if (own.tool_allowlist?.includes(entry)) continue;
    const narrower = locked.allowlists.find(({ entries }) => !entries.some((each) => each === entry || matchesPattern(each, entry)));
    if (narrower !== undefined)
      return lockedRefusal('tool_allowlist', `'${entry}' is not on the allowlist`, narrower.origin, 'tool_allowlist');
  }
  return null;
}

function lockedRefusal(field: string, why: string, origin: string | null, lockedField: string): Refusal {
  const from = origin === null ? 'which is locked into the plan' : `which is locked into the plan (${lockedField}, from ${origin})`;
  return invalidState(`${field}: ${why}, ${from}; a revision can only tighten`, { field, ...(origin === null ? {} : { origin }) });
}

/** The change of one entry, as the whole list that comes of it. */
function editList(
  { locked, own }: GuardsInForce,
  { kind, list, entry }: Extract<GuardChange, { kind: 'add' | 'remove' }>,
): Result<GuardrailChanges, Refusal> {
  if (kind === 'add' && list !== 'required_confirmations' && !canMatchToolName(entry, list === 'denylist' ? 'denial' : 'exactly')) {
    return err(invalidField('tool', MATCHES_NOTHING, { value: entry }));
  }
  switch (list) {
    case 'denylist':
      return editEntries('tool_denylist', 'denylist', locked.denylist, own.tool_denylist ?? [], kind, entry);
    case 'required_confirmations':
      return editEntries(
        'required_confirmations',
        'list of required confirmations',
        locked.requiredConfirmations,
        own.required_confirmations ?? [],
        kind,
        entry,
      );
    case 'allowlist':
      return kind === 'add'
        ? ok({ tool_allowlist: withEntry(own.tool_allowlist ?? [], entry) })
        : narrowAllowlist(locked.allowlists, own.tool_allowlist ?? null, entry);
  }
}

function withEntry(entries: readonly string[], entry: string): string[] {
  return entries.includes(entry) ? [...entries] : [...entries, entry];
}

/** Entries that deny or ask are compared folded, like the names they are for. */
function editEntries(
  field: 'tool_denylist' | 'required_confirmations',
  shown: string,
  locked: readonly ListEntry[],
  own: readonly string[],
  kind: 'add' | 'remove',
  entry: string,
): Result<GuardrailChanges, Refusal> {
  const isSame = (other: string): boolean => foldName(other) === foldName(entry);
  const lockedEntry = locked.find(({ pattern }) => isSame(pattern));
  const isOwn = own.some(isSame);
  if (kind === 'add') return ok(isOwn || lockedEntry !== undefined ? {} : { [field]: [...own, entry] });
  if (isOwn) return ok({ [field]: own.filter((other) => !isSame(other)) });
  if (lockedEntry !== undefined) {
    const { origin, pattern } = lockedEntry;
    return err(
      invalidState(
        `'${pattern}' was put on the ${shown} by ${origin} and is locked into the plan; only what a revision added can be removed`,
        { entry, origin },
      ),
    );
  }
  return err(absent(entry, shown));
}

/** What is left may be an empty list, which allows nothing: a list that ran empty never opens. */
function narrowAllowlist(locked: readonly PermitList[], own: readonly string[] | null, entry: string): Result<GuardrailChanges, Refusal> {
  if (own?.includes(entry)) return ok({ tool_allowlist: own.filter((other) => other !== entry) });
  const holder = locked.find(({ entries }) => entries.includes(entry));
  if (holder === undefined) return err(absent(entry, 'allowlist'));
  const { origin } = holder;
  return err(
    invalidState(
      `'${entry}' was put on the allowlist by ${origin} and is locked into the plan; give the plan a narrower allowlist, or deny the tool`,
      {
        entry,
        origin,
      },
    ),
  );
}

function absent(entry: string, shown: string): Refusal {
  return invalidState(`'${entry}' is not on the ${shown} of this plan; nothing was removed`, { entry, reason: 'NOT_ON_THE_LIST' });
}

/** The plan's own guardrails after a change. Members without effect are left out, so that equal revisions are equal documents. */
function merge(own: Guardrails, given: GuardrailChanges): Guardrails {
  const { actor_limits: actorBefore = {}, ...before } = own;
  const { actor_limits: actorGiven, ...rest } = given;
  const actor = actorGiven === null ? {} : { ...actorBefore, ...actorGiven };
  const flat = present({ ...before, ...rest });
  const nested = present(actor);
  return { ...flat, ...(Object.keys(nested).length === 0 ? {} : { actor_limits: nested }) } as Guardrails;
}

function present(members: object): object {
  return Object.fromEntries(Object.entries(members).filter(([name, value]) => !isWithout(name, value)));
}

function isWithout(name: string, value: unknown): boolean {
  if (value === undefined || value === null || value === false) return true;
  return Array.isArray(value) && value.length === 0 && name !== 'tool_allowlist';
}
