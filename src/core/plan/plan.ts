import type { ActionDocument } from '../action.ts';
import type { Confidence } from '../confidence.ts';
import type { Grant } from '../grant.ts';
import type { GuardPolicy, Guardrails } from '../guard-policy.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import type { PlanLedger } from '../ledger.ts';
import type { AutomationProfile, ProfileLevel, ThresholdName } from '../profile.ts';
import type { SandboxSettings } from '../sandbox.ts';
import type { RiskClass } from '../tool.ts';
import type { Change } from '../workspace/changes.ts';
import type { PathChange, SentWrite, WrittenAtOnce } from './at-once.ts';
import type { Checkpoint } from './checkpoint.ts';
import type { ExternalCall, ExternalState } from './external/external.ts';
import type { DecisionType, StepResult } from './proposal.ts';
import type { ApprovalTaskState } from './task-state.ts';

/** Phases in their order (a2a-protocol.md; design section 8). */
export const PHASES = ['action', 'strategize', 'execute', 'apply'] as const;
export type Phase = (typeof PHASES)[number];

export const STATES = ['queued', 'running', 'waiting', 'complete', 'errored', 'constrained', 'applied', 'cancelled', 'rejected'] as const;
export type State = (typeof STATES)[number];

/** Who did something. `system` is the plan itself (timers, gates that passed by confidence), `actor` is the proposer of a step. */
export interface ActorRef {
  readonly kind: 'human' | 'agent' | 'system' | 'actor';
  /** Key id of a caller, name of an actor, `plan` for the plan itself. */
  readonly id: string;
  readonly name?: string;
}

/** A value that is kept in the log as it is, or, above the inline limit, as a blob beside it. */
export type Stored<T extends JsonValue = JsonValue> = { readonly inline: T } | { readonly blob: string; readonly bytes: number };

export interface LockedProfile {
  readonly name: string;
  readonly level: ProfileLevel;
  readonly document: AutomationProfile;
  readonly digest: string;
}

export interface ProjectRef {
  readonly name: string;
  /** Tree digest of the head when the workspace was taken; what a diff and an apply compare with. */
  readonly base: string;
  readonly protectedPaths: readonly string[];
}

/** What outcomes are known when the plan starts; copied into it so that its gates do not depend on anything that moves. */
export interface OutcomeStatistics {
  readonly plans: { readonly ok: number; readonly total: number };
  readonly calls: Readonly<Partial<Record<RiskClass, { readonly ok: number; readonly total: number }>>>;
}

export interface Decision {
  readonly id: string;
  readonly parentId: string | null;
  readonly type: DecisionType;
  readonly question: string;
  readonly chosen: string;
  readonly alternatives: readonly string[];
  readonly rationale: string;
  readonly confidence: Confidence | null;
  readonly threshold: number | null;
  readonly step: number;
  readonly attempt: number;
  readonly superseded: boolean;
  readonly createdAt: string;
}

export type CallStatus =
  /** Refused by a guard or gate; an approval is open. */
  | 'asked'
  /** Guards passed (or were overridden by an approval); waits for the batch's gate. */
  | 'cleared'
  /** Reserved and recorded; may be performed. */
  | 'authorised'
  /** The marker before an external effect is committed; without an outcome the effect may or may not have happened. */
  | 'sent'
  /** Failed for a passing reason; will be decided again at `retryAt`. */
  | 'retrying'
  /** A sent call whose outcome is not known and cannot be found out by repeating; a human is asked. */
  | 'unknown'
  | 'succeeded'
  | 'failed'
  /** A human said no, or no approval can allow it. */
  | 'refused';

export interface Call {
  readonly id: string;
  readonly step: number;
  readonly index: number;
  /** Canonical name; `named` is what the actor wrote. */
  readonly tool: string;
  readonly named: string;
  readonly arguments: Stored<JsonObject>;
  readonly argumentsDigest: string;
  /** Covers tool, arguments and estimate: what an approval of this call is bound to, before policy. */
  readonly digest: string;
  readonly riskClass: RiskClass;
  readonly scope: 'workspace' | 'external';
  readonly idempotent: boolean;
  readonly estimateMicroUsd: number;
  readonly confidence: Confidence | null;
  readonly status: CallStatus;
  readonly attempt: number;
  readonly retryAt: string | null;
  readonly protectedPaths: readonly string[];
  /** The hosts that it would reach; absent: not known. */
  readonly hosts?: readonly string[];
  /** Guards that an approval of exactly this call overrides once granted. */
  readonly approvable: readonly string[];
  /** Guard → approval that a human has given for exactly this call. */
  readonly overridden: Readonly<Record<string, string>>;
  readonly approvalId: string | null;
  /** The confidence gate is behind this call: passed, or a human approved the call or its batch. */
  readonly gatePassed: boolean;
  readonly idempotencyKey: string;
  readonly result: Stored | null;
  readonly error: { readonly code: string; readonly message: string; readonly transient: boolean } | null;
  readonly reason: string | null;
  /** Which guard decided last, where the call is one of a hosted plan; null: none refused. */
  readonly guard?: string | null;
  /** Of a call that an executor outside asked for. */
  readonly external?: ExternalCall;
  /** What it writes goes to the project at once (at-once.ts). */
  readonly atOnce?: true;
  /** Of such a call: the project's head when it was asked for. */
  readonly askedHead?: string;
  /** The checkpoint that was recorded before it. */
  readonly checkpointId?: string;
  /** The write that was sent, until its outcome is known. */
  readonly write?: SentWrite;
}

/** The step the plan is in: what was proposed last and how far it is. Only calls and questions in Execute count as steps. */
export interface Step {
  readonly number: number;
  readonly id: string;
  readonly kind: 'calls' | 'ask' | 'other';
  readonly callIds: readonly string[];
  /** How many texts of guidance in all the actor had seen when it proposed this. */
  readonly guidanceSeen: number;
  /** Where the actor was before this step; a retry of the step goes back there. */
  readonly startCursor: JsonValue;
}

/** How a step ended. One value per call; a step of one call is not a batch. */
export interface FinishedStep {
  readonly stepId: string;
  readonly status: StepResult['status'];
  readonly values: readonly Stored[];
  readonly reason: string | null;
}

export const APPROVAL_KINDS = ['gate', 'call', 'limit', 'question', 'next_step', 'unknown_outcome'] as const;
export type ApprovalKind = (typeof APPROVAL_KINDS)[number];

export type ApprovalStatus = 'pending' | 'approved' | 'denied' | 'answered' | 'expired' | 'revoked';

export type { Grant };

export interface Approval {
  readonly id: string;
  readonly kind: ApprovalKind;
  readonly status: ApprovalStatus;
  /** Binds the approval to its subject, the locked profile and the guard policy in force. */
  readonly digest: string;
  readonly reason: string;
  readonly gate: ThresholdName | null;
  readonly guard: string | null;
  readonly callIds: readonly string[];
  readonly threshold: number | null;
  readonly confidence: Confidence | null;
  readonly estimateMicroUsd: number | null;
  /** What the human is shown: call, calls, diff, question, decision, strategy, choices. */
  readonly subject: ApprovalSubject;
  readonly suggestedGrant: Grant | null;
  readonly openedAt: string;
  /** null: does not expire. */
  readonly expiresAt: string | null;
  readonly reminded: boolean;
  readonly decided: { readonly by: ActorRef; readonly at: string; readonly reason: string | null; readonly text: string | null } | null;
}

export interface DiffSummary {
  readonly digest: string;
  readonly base: string;
  readonly result: string;
  readonly files: readonly { readonly path: string; readonly status: string; readonly additions: number; readonly deletions: number }[];
  readonly additions: number;
  readonly deletions: number;
  /** A content part: text of type text/x-diff. */
  readonly patch: Stored;
}

export interface ApprovalSubject {
  readonly call?: { readonly tool: string; readonly arguments: Stored<JsonObject>; readonly class: RiskClass };
  readonly calls?: readonly {
    readonly call_id: string;
    readonly tool: string;
    readonly arguments: Stored<JsonObject>;
    readonly class: RiskClass;
  }[];
  readonly diff?: DiffSummary;
  readonly question?: string;
  readonly decision?: JsonObject;
  readonly details?: JsonObject;
  readonly choices?: readonly string[];
  /** Where the actor goes on once this is answered; not shown. */
  readonly resume?: { readonly stepId: string; readonly cursor: JsonValue };
}

export interface PlanMessage {
  readonly messageId: string;
  readonly role: 'user' | 'agent';
  readonly parts: Stored;
  readonly at: string;
  readonly metadata?: Stored<JsonObject>;
}

export interface PlanArtifact {
  readonly artifactId: string;
  readonly name: string | null;
  readonly description: string | null;
  readonly parts: readonly Stored[];
  readonly step: number;
  readonly updatedAt: string;
}

export interface Failure {
  readonly message: string;
  readonly at: string;
}

/** What operators, or a later policy floor of the org, have made of the guards since the plan was made. */
export interface GuardRevisions {
  /** 1 as the plan was made; every change counts. */
  readonly revision: number;
  /** All that binds the plan but its own revisions; null while that is the policy in force, and so until the first revision. */
  readonly locked: GuardPolicy | null;
  /** What the plan's own revisions have set; the strictest of it and of what is locked is in force. */
  readonly own: Guardrails;
}

/** The levels at which work can be halted. */
export const HALT_LEVELS = ['plan', 'session', 'org'] as const;
export type HaltLevel = (typeof HALT_LEVELS)[number];

/** The newest word of one level's kill switch. Each setting and each clearing has a higher epoch than the one before. */
export interface HaltWord {
  readonly level: HaltLevel;
  readonly epoch: number;
  /** Why nothing may run; null: cleared. */
  readonly reason: string | null;
  readonly by: ActorRef;
  readonly at: string;
}

/**
 * Version of the state's shape. To be raised with every change of what the fold makes: a stored state of another version is left aside and
 * made anew from the log.
 */
export const PLAN_STATE_VERSION = 2;

/** The state of a plan: the fold of its log and nothing else. JSON all through, since it is stored as a snapshot. */
export interface Plan {
  readonly v: typeof PLAN_STATE_VERSION;
  readonly id: string;
  readonly org: string;
  readonly sessionId: string;
  readonly action: ActionDocument;
  readonly arguments: Stored<JsonObject>;
  readonly input: Stored<string>;
  readonly project: ProjectRef | null;
  readonly profile: LockedProfile;
  readonly policy: GuardPolicy;
  readonly policyDigest: string;
  readonly guards: GuardRevisions;
  /** One entry per level that has ever been halted; that of the level `session` is of the session that the plan is in. */
  readonly halts: readonly HaltWord[];
  /** What was heard of sessions that the plan has left: nothing of it holds, and none of it is older than what comes late when it is back. */
  readonly leftHalts?: readonly { readonly sessionId: string; readonly word: HaltWord }[];
  /** Locked when the plan was made. */
  readonly sandbox: SandboxSettings;
  /** As it was set when the plan was made; absent: `input-required`. */
  readonly approvalTaskState?: ApprovalTaskState;
  readonly statistics: OutcomeStatistics;
  readonly requester: ActorRef;
  readonly createDigest: string;
  /** Of the request that made the plan. */
  readonly traceId?: string;

  readonly phase: Phase;
  readonly state: State;
  /** Where the plan goes on after what it waits for. */
  readonly resumeState: State | null;
  readonly terminal: boolean;
  readonly attempt: number;
  readonly reversions: number;

  readonly cursor: JsonValue;
  readonly step: Step | null;
  readonly stepsUsed: number;
  /** Authorised calls of the current step, retries included. */
  readonly callsInStep: number;
  readonly callsInInvocation: number;
  readonly nextCall: number;
  /** Calls of the current step; earlier ones live on in `results` and in the log. */
  readonly calls: Readonly<Record<string, Call>>;
  readonly results: readonly FinishedStep[];
  /** All guidance, oldest first; the actor has seen the first `guidanceSeen`. */
  readonly guidance: readonly string[];
  readonly guidanceSeen: number;
  readonly tainted: boolean;

  readonly ledger: PlanLedger;
  readonly grants: {
    readonly calls: { readonly step: number; readonly amount: number };
    readonly steps: number;
    readonly seconds: number;
    readonly retries: number;
  };

  readonly approvals: readonly Approval[];
  readonly decisions: readonly Decision[];
  readonly messages: readonly PlanMessage[];
  readonly artifacts: readonly PlanArtifact[];
  readonly changes: readonly (readonly [string, Change])[];
  /** Digest of the plan's files as it knows them; null: not known. */
  readonly tree: string | null;
  /** The newest ones, oldest first. */
  readonly checkpoints: readonly Checkpoint[];
  /** All that were ever made. */
  readonly checkpointsMade: number;
  /** Present once something went to the project at once; `changes` are then what is written there. */
  readonly writtenAtOnce?: WrittenAtOnce;
  /** Files of the project as the plan last read or wrote them, where it writes at once; what it writes next is compared with that. */
  readonly seen?: readonly PathChange[];
  readonly readPaths: readonly string[];
  /** Hosts outside from which the plan has read. */
  readonly readHosts: readonly string[];

  readonly workedMs: number;
  readonly workingSince: string | null;

  readonly apply: { readonly id: string; readonly diff: DiffSummary } | null;
  readonly appliedAt: string | null;
  readonly appliedHead: string | null;
  readonly failure: { readonly first: Failure; readonly last: Failure } | null;
  readonly cancelReason: string | null;

  /** Present: the executor is the caller, and nobody here proposes or performs. */
  readonly external?: ExternalState;

  readonly createdAt: string;
  readonly updatedAt: string;
  readonly statusAt: string;
  readonly seq: number;
  readonly headHash: string;
}

export function pendingApprovals(plan: Pick<Plan, 'approvals'>): readonly Approval[] {
  return plan.approvals.filter((approval) => approval.status === 'pending');
}

export function findApproval(plan: Plan, id: string): Approval | null {
  return plan.approvals.find((approval) => approval.id === id) ?? null;
}

/** Why the plan authorises nothing now: the highest level whose kill switch is set, or null. */
export function haltOf(plan: Pick<Plan, 'halts'>): HaltWord | null {
  const set = plan.halts.filter(({ reason }) => reason !== null);
  return set.reduce<HaltWord | null>(
    (top, each) => (top === null || HALT_LEVELS.indexOf(each.level) > HALT_LEVELS.indexOf(top.level) ? each : top),
    null,
  );
}

/** The policy that revisions of the plan cannot loosen. */
export function lockedPolicyOf(plan: Pick<Plan, 'policy' | 'guards'>): GuardPolicy {
  return plan.guards.locked ?? plan.policy;
}
