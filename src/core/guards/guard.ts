import type { BudgetRefusal } from '../budget/protocol.ts';
import type { GuardPolicy } from '../guard-policy.ts';
import type { RiskClass, ToolCatalogue } from '../tool.ts';

/**
 * The shapes of a guard: a pure check of one call. Policy, request and facts go in, a verdict comes out; nothing is read from
 * anywhere else. Every guard is one file and one row in guards.ts.
 */

/**
 * The closed list of audit event types: the source's twelve first, then those of the checks for which the source has none,
 * then `call_allowed` for a call that no guard refused, and those of a budget above the plan that is used up.
 */
export const AUDIT_EVENT_TYPES = [
  'step_allowed',
  'step_blocked',
  'budget_allowed',
  'budget_blocked',
  'time_allowed',
  'time_blocked',
  'actor_limit_allowed',
  'actor_limit_blocked',
  'retry_allowed',
  'retry_blocked',
  'confirmation_granted',
  'confirmation_required',
  'state_allowed',
  'state_blocked',
  'tool_allowed',
  'tool_blocked',
  'denylist_allowed',
  'denylist_blocked',
  'allowlist_allowed',
  'allowlist_blocked',
  'unsafe_allowed',
  'unsafe_blocked',
  'skill_category_allowed',
  'skill_category_blocked',
  'sandbox_allowed',
  'sandbox_blocked',
  'checkpoint_allowed',
  'checkpoint_blocked',
  'protected_path_allowed',
  'protected_path_blocked',
  'taint_allowed',
  'taint_blocked',
  'call_limit_allowed',
  'call_limit_blocked',
  'write_approval_granted',
  'write_approval_required',
  'step_approval_granted',
  'step_approval_required',
  'apply_approval_granted',
  'apply_approval_required',
  'gate_allowed',
  'gate_blocked',
  'call_allowed',
  'session_budget_blocked',
  'org_budget_blocked',
] as const;

export type AuditEventType = (typeof AUDIT_EVENT_TYPES)[number];

/** What a human's approval can do about a refusal: let exactly this call pass once, grant more of a limit, or nothing. */
export type ApprovalPower = 'call' | 'limit' | 'none';

export type BudgetLevel = 'plan' | 'session' | 'org';

/** One call, fully resolved: what is decided is what would run. */
export interface GuardRequest {
  /** The name as it was called. Anything but a usable name is refused. */
  readonly toolName: unknown;
  readonly catalogue: ToolCatalogue;
  /** `refuse` for hosted plans; `accept` for external plans, whose tools are the caller's own. */
  readonly unknownTools: 'refuse' | 'accept';
  /** The class of this very call; the tool's own class counts where it is riskier. Null: the tool's own; a caller's own tool then counts as an external write. */
  readonly riskClass: RiskClass | null;
  /** What is reserved if the call is allowed. Null is an unknown price, and refused. */
  readonly costMicroUsd: number | null;
  /** The category of the skill that granted the tool; null when none did (the tool's own category then counts). */
  readonly skillCategory: string | null;
  /** What the call does in the words of `required_confirmations`, when that is not the tool's name. */
  readonly operation: string | null;
  /** Protected paths that the call would change. */
  readonly protectedPaths: readonly string[];
  /** The hosts that the call would reach; null or absent: not known. */
  readonly hosts?: readonly string[] | null;
  /** Whether the call, as it would run now, changes something outside the plan (a write held back until apply does not). */
  readonly changesOutside: boolean;
  /** Whether what it writes is in the project as soon as it runs, so that no apply comes after it. Absent: it is not. */
  readonly appliesAtOnce?: boolean;
}

/** Amounts that humans granted beyond the limits, cumulative. */
export interface Grants {
  readonly costMicroUsd: number;
  readonly calls: number;
  readonly steps: number;
  readonly seconds: number;
  readonly retries: number;
}

export const NO_GRANTS: Grants = { costMicroUsd: 0, calls: 0, steps: 0, seconds: 0, retries: 0 };

/** What stands above the plan in the way of a call: a budget that is used up, or one that could not be asked. */
export type UpperRefusal =
  /** `usedMicroUsd`: settled and reserved there, without the coming call. */
  ({ readonly kind: 'exceeded' } & BudgetRefusal) | { readonly kind: 'unreachable' };

/** The state of the plan at the moment of the decision. */
export interface GuardFacts {
  readonly running: boolean;
  /** Why nothing may run (the kill switch), or null. */
  readonly halted: string | null;
  /** Time in which the plan worked; waiting for a human is not in it. */
  readonly workedMs: number;
  /** The step in which the call is made, from 1. */
  readonly stepNumber: number;
  /** Calls authorised so far in this step, without this one. */
  readonly callsInStep: number;
  /** Calls authorised so far in this actor invocation, without this one. */
  readonly callsInInvocation: number;
  /** 0 for a first attempt, n for the nth retry of the same call. */
  readonly retriesOfCall: number;
  /** Settled so far, each charge up to its reservation. */
  readonly spentMicroUsd: number;
  readonly reservedMicroUsd: number;
  /** Charged beyond reservations so far. */
  readonly overrunMicroUsd: number;
  /** What a budget above the plan (session, org, all plans under the profile) said to this call, or null. */
  readonly upperRefusal: UpperRefusal | null;
  readonly grants: Grants;
  /** Whether arguments of the call derive from content that came from outside. */
  readonly tainted: boolean;
  /** Why no checkpoint could be recorded before the call; null or absent: one can, or it is nothing of ours. */
  readonly noCheckpoint?: string | null;
  /** Guards that an approval of exactly this call, alone or with others of its step, has overridden → the id of that approval. */
  readonly approvedGuards: ReadonlyMap<string, string>;
}

/** What one guard says. `reason` is null unless it refuses or an approval overrode it. */
export interface GuardVerdict {
  readonly guard: string;
  readonly eventType: AuditEventType;
  readonly allowed: boolean;
  readonly reason: string | null;
  readonly requiresApproval: boolean;
  readonly approval: ApprovalPower;
  /** The source's name of the limit that bound, its value with grants, and what stood against it. Units as in the field: USD, seconds, counts. */
  readonly limitField?: string;
  readonly limit?: number;
  readonly actual?: number;
  readonly exceededLevel?: BudgetLevel;
}

/** What a guard answers when it refuses; null lets the call pass. */
export interface Objection {
  readonly reason: string;
  readonly approval: ApprovalPower;
  readonly limitField?: string;
  readonly limit?: number;
  readonly actual?: number;
  readonly exceededLevel?: BudgetLevel;
}

export interface Guard {
  readonly name: string;
  readonly events: { readonly allowed: AuditEventType; readonly refused: AuditEventType };
  readonly check: (policy: GuardPolicy, call: GuardedCall, facts: GuardFacts) => Objection | null;
}

/** The request with its tool looked up once for all guards. */
export interface GuardedCall extends GuardRequest {
  /** The name for messages: as called, or a description of what stood there. */
  readonly shownName: string;
  /** Every name under which lists find the tool: canonical, aliases, as called. Empty when there is no usable name. */
  readonly names: readonly string[];
  /** The same names in the form in which they are compared with denying entries. */
  readonly foldedNames: readonly string[];
  /** The one name on which allowlists decide: canonical, or as called for a caller's own tool. Null when there is none. */
  readonly canonicalName: string | null;
  readonly effectiveClass: RiskClass;
}
