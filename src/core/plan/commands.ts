import type { ActionDocument } from '../action.ts';
import type { GuardPolicy } from '../guard-policy.ts';
import type { GuardChange } from '../guard-revision.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import type { OrgPolicy } from '../org-policy.ts';
import type { PushChange } from '../push/push-config.ts';
import type { FieldIssue } from '../refusal.ts';
import type { SandboxSettings } from '../sandbox.ts';
import type { Change } from '../workspace/changes.ts';
import type { CommittedWrite, PathChange, SentWrite } from './at-once.ts';
import type { ExternalCommand } from './external/commands.ts';
import type { ActorRef, DiffSummary, Grant, HaltLevel, LockedProfile, OutcomeStatistics, PlanMessage, ProjectRef } from './plan.ts';
import type { Proposal } from './proposal.ts';
import type { ApprovalTaskState } from './task-state.ts';

/** A caller with what they may do here, looked up before the command; separation from the requester is judged with the plan's state. */
export interface Caller {
  readonly actor: ActorRef;
  /** Right to answer approvals: a human key with the role. */
  readonly mayApprove: boolean;
  /** `approvals.separate_requester`: whoever started the plan may not approve in it. */
  readonly separateRequester: boolean;
  /** `approvals.require_digest`: explicit execute and apply must carry the digest that was shown. */
  readonly requireDigest: boolean;
}

/** What the engine found out about a proposed call before it is decided. */
export interface CallFacts {
  /** What is wrong with the arguments against the tool's schema; a call with issues is refused and never reaches the tool. */
  readonly issues: readonly FieldIssue[];
  readonly known: number;
  readonly newInKnownFolder: number;
  readonly unknown: number;
  readonly protectedPaths: readonly string[];
  /** The hosts that the call would reach; absent: not known. */
  readonly hosts?: readonly string[];
  readonly bytes: number;
  /** The project's head that it was asked for; absent: the plan has files of its own. */
  readonly head?: string;
}

/** Of a call of which nothing is known: no paths, no sizes, and its schema is somebody else's business. */
export const NO_FACTS: CallFacts = { issues: [], known: 0, newInKnownFolder: 0, unknown: 0, protectedPaths: [], bytes: 0 };

export interface CreateCommand {
  readonly type: 'create';
  readonly planId: string;
  readonly org: string;
  readonly sessionId: string;
  readonly action: ActionDocument;
  readonly arguments: JsonObject;
  readonly input: string;
  readonly project: ProjectRef | null;
  readonly profile: LockedProfile;
  readonly policy: GuardPolicy;
  /** Absent: a workspace, and checkpoints. */
  readonly sandbox?: SandboxSettings;
  /** What the task is called while it waits for approvals only; absent: `input-required`. */
  readonly approvalTaskState?: ApprovalTaskState;
  readonly statistics: OutcomeStatistics;
  readonly by: ActorRef;
  readonly message: (Omit<PlanMessage, 'parts' | 'at' | 'metadata'> & { readonly parts: JsonValue; readonly metadata?: JsonObject }) | null;
  /** Policy, kill switch or an exhausted budget above: the plan is made in `rejected` with this reason. */
  readonly rejection: string | null;
  /** The executor is the caller: the plan is made at work, and nobody here is asked for a proposal. */
  readonly external?: true;
  /** Of an external plan: days without anything happening after which it ends by itself. */
  readonly retentionDays?: number;
}

/** The structured answer of design section 11, already parsed. */
export interface Answer {
  readonly approvalId: string;
  readonly decision: 'approve' | 'deny' | 'answer';
  readonly digest: string | null;
  readonly reason: string | null;
  readonly text: string | null;
  readonly grant: Grant | null;
}

export type SettleOutcome =
  | {
      readonly status: 'succeeded';
      readonly result: JsonValue;
      /** Path, and the change with its blob already digested by the engine. */
      readonly changes: readonly (readonly [string, Change])[];
      /** Digest of the plan's files with the changes; absent: not known. */
      readonly tree?: string;
      readonly blobs: ReadonlyMap<string, Uint8Array>;
      readonly readPaths: readonly string[];
      readonly reportedUsd: unknown;
      readonly taint: string | null;
      readonly seen?: readonly PathChange[];
    }
  /** The project holds the write that was sent; what the call answers was kept with it. */
  | ({ readonly status: 'written' } & CommittedWrite)
  | {
      readonly status: 'failed';
      readonly error: { readonly code: string; readonly message: string; readonly transient: boolean };
      readonly dispatched: boolean;
      readonly reportedUsd: unknown;
      readonly seen?: readonly PathChange[];
    }
  | { readonly status: 'unknown'; readonly reason: string };

/** A write at once before it is recorded: with its answer and its contents as they are. */
export type WriteToSend = Omit<SentWrite, 'commitId' | 'result' | 'reportedUsd'> & {
  readonly result: JsonValue;
  readonly reportedUsd: unknown;
  readonly blobs: ReadonlyMap<string, Uint8Array>;
};

export type ApplyOutcome =
  | { readonly status: 'applied'; readonly head: string | null; readonly previous: string | null; readonly files: number }
  | { readonly status: 'moved'; readonly head: string }
  | { readonly status: 'failed'; readonly reason: string };

/** The diff as the engine computed it, before its patch is stored. */
export type DiffInput = Omit<DiffSummary, 'patch'> & { readonly patch: string };

/** A file of a plan without a project: it becomes an artifact when the plan is done. */
export interface PlanOutput {
  readonly path: string;
  readonly part: JsonObject;
}

/** Which request a command came with; a command of the plan's own loop came with none. */
export interface Traced {
  /** Trace id of W3C Trace Context: 32 lower-case hexadecimal digits. */
  readonly traceId?: string;
}

/** Everything that can be asked of a plan. Commands of the engine carry what they were based on and are refused when that has passed. */
export type Command =
  | CreateCommand
  | ExternalCommand
  /** Opens the gate that is due, if any. `diff` is needed at execute/complete; `head` for a plan that goes back to a moved head. */
  | { readonly type: 'advance'; readonly diff: DiffInput | null; readonly head: string | null; readonly outputs: readonly PlanOutput[] }
  | {
      readonly type: 'propose';
      readonly proposal: Proposal;
      readonly actorName: string;
      /** Log position at which the actor was asked. */
      readonly basis: { readonly attempt: number; readonly cursor: JsonValue; readonly phase: string };
      readonly guidanceSeen: number;
      readonly facts: readonly CallFacts[];
    }
  | { readonly type: 'retry_call'; readonly callId: string; readonly facts: CallFacts }
  /** `write`: what goes to the project at once; again for a head that has moved, while nothing was done yet. */
  | { readonly type: 'mark_sent'; readonly callId: string; readonly attempt: number; readonly write?: WriteToSend }
  | { readonly type: 'settle'; readonly callId: string; readonly attempt: number; readonly outcome: SettleOutcome }
  | { readonly type: 'finish_apply'; readonly applyId: string; readonly outcome: ApplyOutcome }
  | { readonly type: 'tick' }
  | { readonly type: 'execute'; readonly by: Caller; readonly digest: string | null; readonly head: string | null }
  | { readonly type: 'apply'; readonly by: Caller; readonly digest: string | null; readonly approve: boolean }
  | { readonly type: 'cancel'; readonly by: ActorRef; readonly reason: string | null }
  | { readonly type: 'answer'; readonly by: Caller; readonly answer: Answer }
  /** An operator changes the guards of the running plan. */
  | { readonly type: 'revise_guard'; readonly by: Caller; readonly change: GuardChange }
  /** The org's policy floor has changed; binding it on a plan that it already binds changes nothing. */
  | { readonly type: 'apply_floor'; readonly by: ActorRef; readonly floor: OrgPolicy }
  /**
   * The kill switch. `epoch` comes from the node whose switch it is and orders what arrives: an older or equal one changes nothing. Null:
   * the plan's own switch, which counts for itself.
   */
  | {
      readonly type: 'halt';
      readonly by: ActorRef;
      readonly level: HaltLevel;
      readonly epoch: number | null;
      readonly reason: string;
      /** Whose word it is at the level `session`; one of another session than the plan is in does not count. Absent: of that one. */
      readonly sessionId?: string;
    }
  /** A budget above the plan was raised: calls that wait for it are decided again. */
  | { readonly type: 'retry_budget' }
  | {
      readonly type: 'clear_halt';
      readonly by: Caller;
      readonly level: HaltLevel;
      readonly epoch: number | null;
      /** As for `halt`. */
      readonly sessionId?: string;
    }
  /** Who is told of the plan has changed. Committed with the change itself. */
  | { readonly type: 'record_push'; readonly by: ActorRef; readonly change: PushChange }
  | { readonly type: 'extend'; readonly by: Caller; readonly approvalId: string; readonly expiresAt: string }
  | {
      readonly type: 'message';
      readonly by: Caller;
      readonly messageId: string;
      readonly parts: JsonValue;
      readonly metadata: JsonObject | null;
      readonly text: string;
      readonly answers: readonly Answer[];
      /** What the whole text says if it is one of the closed list of plain decisions. */
      readonly plain: { readonly decision: 'approve' | 'deny'; readonly phase: string | null } | null;
    };
