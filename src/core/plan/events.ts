import type { ActionDocument } from '../action.ts';
import type { Confidence } from '../confidence.ts';
import type { GuardPolicy, Guardrails } from '../guard-policy.ts';
import type { GuardChange } from '../guard-revision.ts';
import type { AuditEventType, GuardVerdict } from '../guards/guard.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import type { SettleMark } from '../ledger.ts';
import type { OrgPolicy } from '../org-policy.ts';
import type { ThresholdName } from '../profile.ts';
import type { PushChange } from '../push/push-config.ts';
import type { SandboxSettings } from '../sandbox.ts';
import type { Change } from '../workspace/changes.ts';
import type { EventAbout } from './about.ts';
import type { PathChange } from './at-once.ts';
import type { CheckpointBody } from './checkpoint.ts';
import type { ExternalOutcome } from './external/external.ts';
import type {
  ActorRef,
  Approval,
  Call,
  Decision,
  DiffSummary,
  Grant,
  HaltLevel,
  LockedProfile,
  OutcomeStatistics,
  Phase,
  PlanMessage,
  ProjectRef,
  State,
  Step,
  Stored,
} from './plan.ts';
import type { ApprovalTaskState } from './task-state.ts';

/** Where an event moves the plan. `waiting` is never a target: it follows from what is pending. */
export interface Move {
  readonly phase: Phase;
  readonly state: Exclude<State, 'waiting'>;
  readonly terminal?: true;
}

export interface EventBodies {
  plan_created: {
    readonly plan_id: string;
    readonly org: string;
    readonly session_id: string;
    readonly action: ActionDocument;
    readonly arguments: Stored<JsonObject>;
    readonly input: Stored<string>;
    readonly project: ProjectRef | null;
    readonly profile: LockedProfile;
    readonly policy: GuardPolicy;
    readonly policy_digest: string;
    /** Absent: a workspace, and checkpoints. */
    readonly sandbox?: SandboxSettings;
    /** Absent: `input-required`. */
    readonly approval_task_state?: ApprovalTaskState;
    /** Digest of the files that the plan starts from; absent: not known, or nothing of ours. */
    readonly tree?: string;
    readonly statistics: OutcomeStatistics;
    readonly requester: ActorRef;
    readonly create_digest: string;
    readonly message: PlanMessage | null;
    /** The tree's one root, of type `prompt_definition`. */
    readonly root: Decision;
    /** The executor is the caller. */
    readonly external?: true;
    readonly retention_days?: number;
  };
  plan_rejected: { readonly reason: string; readonly to: Move };
  /** A gate was asked: it let the plan through, or wants a human, or (unattended) fails the plan. */
  gate_decided: {
    readonly gate: ThresholdName;
    readonly outcome: 'proceed' | 'ask' | 'fail';
    readonly via: 'threshold' | 'approval' | 'empty_diff';
    readonly approval_id?: string;
    readonly threshold: number;
    readonly confidence: Confidence | null;
    readonly reason: string;
    readonly subject_digest: string | null;
    readonly policy_digest: string;
    readonly call_ids?: readonly string[];
    readonly diff?: DiffSummary;
    readonly apply_id?: string;
    /** A fresh workspace over this project, when the plan goes back because the head has moved. */
    readonly rebase?: ProjectRef;
    readonly to?: Move;
  };
  decision_made: { readonly decision: Decision; readonly step: Step; readonly cursor: JsonValue };
  /** One tool call went through all guards. `call` is what it is afterwards: authorised, or asked, cleared, refused. */
  call_decided: {
    readonly call: Call;
    readonly allowed: boolean;
    readonly event_type: string;
    readonly guard: string | null;
    readonly reason: string | null;
    readonly guards: readonly GuardVerdict[];
    /** The policy under which it was decided. */
    readonly policy_digest: string;
    readonly reserved_micro_usd: number;
    readonly consumed_approval?: string;
    /** Recorded with an authorised write; calls of one batch that are authorised together share one, the first brings it. */
    readonly checkpoint?: CheckpointBody;
    readonly checkpoint_id?: string;
    /** With the first call of a step: what the actor proposed. */
    readonly step?: Step;
    readonly cursor?: JsonValue;
  };
  /** `write`: all of what is sent to the project at once. Another one for the same attempt: the head had moved, and nothing was done before. */
  call_sent: {
    readonly call_id: string;
    readonly attempt: number;
    readonly write?: {
      readonly commit_id: string;
      readonly head: string;
      readonly changes: readonly PathChange[];
      readonly before: readonly PathChange[];
      readonly result: Stored;
      readonly reported: JsonValue;
      readonly taint: string | null;
    };
  };
  call_settled: {
    readonly call_id: string;
    readonly attempt: number;
    readonly outcome: 'succeeded' | 'failed' | 'retrying' | 'unknown' | 'refused';
    readonly result: Stored | null;
    readonly error: Call['error'];
    readonly reason: string | null;
    readonly retry_at: string | null;
    readonly charge: Charge | null;
    readonly changes: readonly (readonly [string, Change])[];
    readonly read_paths: readonly string[];
    /** Where the plan writes at once: files that it read, or tried to, as they are in the project; after a conflict, as they were known. */
    readonly seen?: readonly PathChange[];
    readonly taint: string | null;
    /** Digest of the plan's files with `changes`. */
    readonly tree?: string;
    /** The project holds `changes` already: they were written at once. */
    readonly written?: {
      readonly commit_id: string;
      readonly head: string;
      readonly previous: string;
      readonly before: readonly PathChange[];
    };
    /** The plan was no longer live, or the authorisation had expired: only the cost counts. */
    readonly late?: true;
    /** What an executor outside said of it. */
    readonly told?: { readonly outcome: ExternalOutcome; readonly cost_usd: number | null };
    /** An executor outside never said how it ended. */
    readonly expired?: true;
  };
  message_said: { readonly message: PlanMessage; readonly step: Step; readonly cursor: JsonValue };
  artifact_produced: {
    readonly artifact: {
      readonly artifactId: string;
      readonly name: string | null;
      readonly description: string | null;
      readonly parts: readonly Stored[];
    };
    readonly append: boolean;
    readonly last_chunk: boolean;
    readonly step: Step | null;
    readonly cursor?: JsonValue;
  };
  message_received: { readonly message: PlanMessage; readonly disposition: 'guidance' | 'answer' | 'kept'; readonly text: string };
  strategy_completed: { readonly decisions: number; readonly to: Move };
  execution_completed: { readonly steps: number; readonly to: Move };
  plan_failed: { readonly reason: string; readonly remediation: string | null; readonly to: Move };
  plan_restarted: {
    readonly reason: string;
    readonly cursor: JsonValue;
    readonly fresh_attempt: boolean;
    readonly rebase?: ProjectRef;
    readonly to: Move;
  };
  approval_opened: { readonly approval: Approval; readonly step?: Step; readonly cursor?: JsonValue };
  approval_decided: {
    readonly approval_id: string;
    readonly kind: Approval['kind'];
    readonly decision: 'approve' | 'deny' | 'answer';
    readonly by: ActorRef;
    readonly digest: string;
    readonly reason: string | null;
    readonly text: string | null;
    readonly grant: Grant | null;
  };
  approval_refused: {
    readonly approval_id: string;
    readonly decision: string;
    readonly reason: string;
    /** As it came; absent: none was given. */
    readonly offered_digest?: string;
  };
  approval_closed: { readonly approval_id: string; readonly status: 'expired' | 'revoked'; readonly reason: string };
  approval_extended: { readonly approval_id: string; readonly expires_at: string };
  approval_reminded: { readonly approval_id: string };
  limit_granted: { readonly approval_id: string; readonly grant: Grant; readonly event: 'cap_raised' | 'limit_raised' };
  budget_warning: { readonly level: 'plan'; readonly cap_micro_usd: number; readonly spent_micro_usd: number };
  plan_applied: { readonly head: string | null; readonly previous: string | null; readonly report: JsonObject; readonly to: Move };
  apply_constrained: { readonly reason: string; readonly report: JsonObject; readonly to: Move };
  plan_cancelled: { readonly reason: string | null; readonly to: Move };
  /** An executor outside was not heard of for so long that its plan ended by itself. */
  retention_ended: { readonly reason: string; readonly to: Move };
  /** An executor outside asked about numbers that it keeps itself; or asked for a call in a form that is none. */
  check_recorded: {
    readonly check: string;
    readonly event_type: AuditEventType;
    readonly guard: string;
    readonly allowed: boolean;
    readonly reason: string | null;
    readonly context: JsonObject;
    readonly steps_used?: number;
    readonly charged_micro_usd?: number;
  };
  session_associated: { readonly session_id: string; readonly previous: string };
  /** State of another service's plan. Spent money counts up to the cap as settled, beyond it as overrun. */
  imported: {
    readonly step_count: number;
    readonly worked_ms: number;
    readonly start_time: string | null;
    readonly settled_micro_usd: number;
    readonly overrun_micro_usd: number;
    readonly trail: Stored;
    readonly entries: number;
    readonly allowed: number;
    readonly denied: number;
    /** How many entries its trail showed at most, where it said so. */
    readonly max_entries?: number;
    /** Present where limits came with it that tighten those of the plan. */
    readonly guards?: {
      readonly own: Guardrails;
      readonly locked: GuardPolicy;
      readonly policy: GuardPolicy;
      readonly policy_digest: string;
    };
  };
  /** The guards were changed: by an operator of the plan, or by the org's policy floor. */
  guard_revised: {
    readonly revision: number;
    readonly origin: 'revision' | 'org';
    readonly change: GuardChange | { readonly kind: 'floor'; readonly floor: OrgPolicy };
    /** More is possible than before; whoever did it had the right to approve. */
    readonly loosens: boolean;
    /** What the plan's own revisions have set, after this one. */
    readonly own: Guardrails;
    /** Present where it is not the policy in force. */
    readonly locked?: GuardPolicy;
    /** What is in force from now on, and what was before. */
    readonly policy: GuardPolicy;
    readonly policy_digest: string;
    readonly previous_digest: string;
    /** What is left of what humans granted, where a limit was set anew. */
    readonly grants?: {
      readonly cost_micro_usd: number;
      readonly calls: number;
      readonly steps: number;
      readonly seconds: number;
      readonly retries: number;
    };
    /** Calls that were authorised and not sent yet: they give their money back and are decided again. */
    readonly withdrawn: readonly string[];
  };
  guard_revision_refused: { readonly change: GuardChange; readonly reason: string };
  /** `session_id`: whose word it is at the level `session`, always that of the session that the plan is in. */
  halted: { readonly level: HaltLevel; readonly epoch: number; readonly reason: string; readonly session_id?: string };
  halt_cleared: { readonly level: HaltLevel; readonly epoch: number; readonly session_id?: string };
  /** Who is told of the plan has changed; the webhooks themselves, with their secrets, are kept beside the log. */
  push_config_changed: PushChange;
}

/** Money that left the plan's budget with an event. `source` says where the figure came from. */
export interface Charge {
  readonly id: string;
  readonly reserved_micro_usd: number;
  readonly reported: JsonValue;
  readonly charged_micro_usd: number;
  readonly marks: readonly SettleMark[];
}

export type EventType = keyof EventBodies;

/** The closed list of event types, version 1 of the log (design section 12). */
export const EVENT_TYPES = [
  'plan_created',
  'plan_rejected',
  'gate_decided',
  'decision_made',
  'call_decided',
  'call_sent',
  'call_settled',
  'message_said',
  'artifact_produced',
  'message_received',
  'strategy_completed',
  'execution_completed',
  'plan_failed',
  'plan_restarted',
  'approval_opened',
  'approval_decided',
  'approval_refused',
  'approval_closed',
  'approval_extended',
  'approval_reminded',
  'limit_granted',
  'budget_warning',
  'plan_applied',
  'apply_constrained',
  'plan_cancelled',
  'retention_ended',
  'check_recorded',
  'session_associated',
  'imported',
  'guard_revised',
  'guard_revision_refused',
  'halted',
  'halt_cleared',
  'push_config_changed',
] as const satisfies readonly EventType[];

/** Does not compile while the list lacks a type: a row of a type that is not in it is a row that nobody here wrote. */
const COMPLETE_TYPES: [Exclude<EventType, (typeof EVENT_TYPES)[number]>] extends [never] ? readonly EventType[] : never = EVENT_TYPES;
const KNOWN_TYPES: ReadonlySet<string> = new Set(COMPLETE_TYPES);

/** Whether a stored row is of a known type and has the members of a row. What is in `data` is vouched for by the chain. */
export function isLogRow(row: {
  readonly type?: unknown;
  readonly data?: unknown;
  readonly actor?: unknown;
  readonly at?: unknown;
}): boolean {
  const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value);
  return (
    typeof row.type === 'string' && KNOWN_TYPES.has(row.type) && isObject(row.data) && isObject(row.actor) && typeof row.at === 'string'
  );
}

/** One thing that happened, before it has a place in the chain. */
export type PlanEvent = {
  readonly [T in EventType]: {
    readonly type: T;
    readonly at: string;
    readonly actor: ActorRef;
    readonly data: EventBodies[T];
    /** Of the request that it came with, else of the one that made the plan. */
    readonly trace_id?: string;
    /** Of what no person and no agent did by itself: who asked for the plan. */
    readonly on_behalf_of?: ActorRef;
    /** Of a decision: what it was about and under what it was taken. */
    readonly about?: EventAbout;
  };
}[EventType];

/** One row of the log: an event with its place in the chain (design section 12). */
export type LogRow = PlanEvent & { readonly v: 1; readonly seq: number; readonly prev: string; readonly hash: string };
