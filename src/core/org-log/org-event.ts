import type { JsonObject, JsonValue } from '../json.ts';
import type { Chained } from '../plan/chain.ts';
import type { ActorRef } from '../plan/plan.ts';

/**
 * What the org's own log records (design sections 3 and 12): its configuration and keys, who was refused, and where the log of every plan
 * stood. A closed, published list.
 *
 * A change to the configuration is two rows: `change_requested` before it is made, when everything that could refuse it was looked at, and,
 * after it, the change by its own name, or `change_refused` where something came in between. So there is no change without a row; a request
 * without an outcome becomes `change_unresolved` in time. What was refused before is counted (`access_refused`).
 */
export interface OrgEventBodies {
  change_requested: {
    readonly change_id: string;
    readonly change: ChangeType;
    readonly operation: string;
    /** What is changed, by the members that name it. */
    readonly subject: JsonObject;
    /** Of the parameters as they came. */
    readonly params_digest: string;
    /** As it was shown before; null: there was nothing, or nothing shows it. Secrets are masked, in `after` too. */
    readonly before: JsonValue;
  };
  configuration_changed: ChangeMade;
  policy_changed: ChangeMade;
  profile_saved: ChangeMade;
  profile_deleted: ChangeMade;
  action_added: ChangeMade;
  project_created: ChangeMade;
  key_created: ChangeMade;
  key_revoked: ChangeMade;
  budget_caps_changed: ChangeMade;
  halt_set: ChangeMade;
  halt_cleared: ChangeMade;
  /** A plan whose log is damaged was closed. */
  plan_retired: ChangeMade;
  /** Nothing was changed. */
  change_refused: ChangeEnded;
  /** Nobody told how it ended: it may have been made or not. */
  change_unresolved: ChangeEnded;
  /** A caller with a key of this org was refused access or a change. Refusals of one key for one reason are counted by the minute (refusals.ts). */
  access_refused: {
    readonly reason: AccessRefusalReason;
    readonly count: number;
    /** What was called, and which ids were asked for; of many the first. */
    readonly operations: readonly string[];
    readonly subjects: readonly string[];
    readonly first_at: string;
    readonly last_at: string;
    /** Of the requests, where they were more than the one that the row names; of many the first. */
    readonly trace_ids?: readonly string[];
  };
  /** Used up to nine tenths of a cap above plans. */
  budget_warning: {
    readonly level: 'org' | 'session' | 'profile';
    /** The session, the profile, or the org itself. */
    readonly id: string;
    readonly window: string;
    readonly window_key: string;
    readonly cap_micro_usd: number;
    readonly used_micro_usd: number;
  };
  plan_created: PlanPosition;
  plan_head: PlanPosition;
  plan_ended: PlanPosition & {
    /** Whether its whole log held when it ended; absent: it was too long to be looked at then. */
    readonly verified?: boolean;
  };
  /** What a plan said of its log does not go together with what it had said before. */
  trail_problem: PlanPosition & {
    readonly problem: 'made_again' | 'shorter' | 'rewritten';
    readonly known_seq: number;
    readonly known_hash: string;
  };
}

export interface ChangeMade {
  readonly change_id: string;
  readonly operation: string;
  readonly subject: JsonObject;
  readonly before: JsonValue;
  readonly after: JsonValue;
}

export interface ChangeEnded {
  readonly change_id: string;
  readonly change: ChangeType;
  readonly operation: string;
  readonly subject: JsonObject;
  readonly reason: string;
}

/** A plan's log had a row of this number and hash. */
export interface PlanPosition {
  readonly plan_id: string;
  readonly seq: number;
  readonly hash: string;
}

export const CHANGE_TYPES = [
  'configuration_changed',
  'policy_changed',
  'profile_saved',
  'profile_deleted',
  'action_added',
  'project_created',
  'key_created',
  'key_revoked',
  'budget_caps_changed',
  'halt_set',
  'halt_cleared',
  'plan_retired',
] as const;
export type ChangeType = (typeof CHANGE_TYPES)[number];

export const ACCESS_REFUSAL_REASONS = [
  /** The key has none of the roles that the call needs. */
  'role_missing',
  /** A key of kind agent asked for what only people may do. */
  'human_only',
  /** The state says that this caller may not. */
  'not_permitted',
  /** A plan, task or approval that the org does not have: invented, or of another org. */
  'unknown_plan',
  /** A tenant was named that is not the org of the key, or none at all. */
  'foreign_tenant',
  /** Revoked, or (where a decision asked for the key again) not valid any more. */
  'key_revoked',
  'key_expired',
  /** The id is that of a key, the secret is not. */
  'wrong_secret',
  /** A change to the configuration that was not made: as it was asked for it is none, */
  'change_invalid',
  /** what it is about does not exist, */
  'change_target_unknown',
  /** or it does not go together with what is there. */
  'change_conflicts',
] as const;
export type AccessRefusalReason = (typeof ACCESS_REFUSAL_REASONS)[number];

export type OrgEventType = keyof OrgEventBodies;

export const ORG_EVENT_TYPES = [
  'change_requested',
  ...CHANGE_TYPES,
  'change_refused',
  'change_unresolved',
  'access_refused',
  'budget_warning',
  'plan_created',
  'plan_head',
  'plan_ended',
  'trail_problem',
] as const satisfies readonly OrgEventType[];

/** What happened and who did it; the log gives it time and place. */
export type OrgFact = {
  readonly [T in OrgEventType]: {
    readonly type: T;
    readonly actor: ActorRef;
    readonly data: OrgEventBodies[T];
    /** Of the request that it came with; what came with none has none. */
    readonly trace_id?: string;
  };
}[OrgEventType];

export type OrgEvent = OrgFact & { readonly at: string };

/** One row of the org's log, in the same chain as a plan's rows. */
export type OrgLogRow = Chained<OrgEvent>;

/** A fact on its way to the log. The same id again adds nothing, so whoever is not sure that it arrived sends it again. */
export interface OrgLogEntry {
  readonly id: string;
  readonly fact: OrgFact;
}
