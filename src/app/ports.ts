/**
 * What the application needs from the outside, as small interfaces over plain data. Adapters live in storage/ (D1 and object stubs)
 * and objects/; nothing here names a platform. Every lookup takes the org: a foreign id answers like an unknown one.
 */
import type { SignedHead } from '../core/audit/head.ts';
import type { Caps, CapView, ChildView } from '../core/budget/node-state.ts';
import type { Ask, AskAnswer, Close, Freed, Recall, RecallReply } from '../core/budget/protocol.ts';
import type { CapWindow, Day } from '../core/budget/window.ts';
import type { JudgedGroup } from '../core/calibration.ts';
import type { HaltChange } from '../core/halt-word.ts';
import type { JsonObject, JsonValue } from '../core/json.ts';
import type { SpendRow } from '../core/ledger.ts';
import type { OrgEventType, OrgLogEntry, OrgLogRow } from '../core/org-log/org-event.ts';
import type { ListedPlan, PlanReport } from '../core/org-log/plan-report.ts';
import type { RefusalNote } from '../core/org-log/refusals.ts';
import type { LogDamage, LogPosition, LogStretch, LogVerdict } from '../core/plan/chain.ts';
import type { PlanCheckpoints } from '../core/plan/checkpoint.ts';
import type { Command, CreateCommand, Traced } from '../core/plan/commands.ts';
import type { LogRow } from '../core/plan/events.ts';
import type { ExternalAnswers, ExternalCommand } from '../core/plan/external/commands.ts';
import type { Outcome } from '../core/plan/outcomes.ts';
import type { ActorRef, HaltWord, OutcomeStatistics, Plan } from '../core/plan/plan.ts';
import type { PlanSnapshot, PlanUpdate } from '../core/plan/snapshot.ts';
import type { KeyKind, Role } from '../core/principal.ts';
import type { PushTiming } from '../core/push/judge-attempt.ts';
import type { PushOrder, PushStatus, PushWire } from '../core/push/push-config.ts';
import type { PushUrlRules } from '../core/push/push-url.ts';
import type { Refusal } from '../core/refusal.ts';
import type { Result } from '../core/result.ts';

export interface Clock {
  /** Milliseconds since the epoch. */
  nowMs(): number;
}

export interface Ids {
  ulid(): string;
  /** Unguessable text of 256 bits, URL-safe. */
  secret(): string;
}

/* ------------------------------------------------------------------ registry (D1) */

export interface KeyRecord {
  readonly org: string;
  readonly id: string;
  readonly name: string;
  readonly kind: KeyKind;
  readonly roles: readonly Role[];
  /** SHA-256 of the secret part; the secret itself is never stored. */
  readonly secretHash: string;
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly revokedAt: string | null;
}

export interface KeyStore {
  /** By key id alone: the id is unguessable and the org is what we are finding out. */
  find(id: string): Promise<KeyRecord | null>;
  create(record: KeyRecord): Promise<void>;
  list(org: string): Promise<readonly KeyRecord[]>;
  /** False when the org has no such key. Revoking twice keeps the first time. */
  revoke(org: string, id: string, at: string): Promise<boolean>;
  /** Live human keys of the org with the right to approve; decides whether separation of requester applies. */
  countApprovers(org: string, now: string): Promise<number>;
}

/** A named document of the org: actions now, profiles and more later. `body` has been validated by its owner in core. */
export interface NamedDocument {
  readonly org: string;
  readonly name: string;
  readonly version: number;
  readonly body: JsonObject;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface ActionStore {
  get(org: string, name: string): Promise<NamedDocument | null>;
  list(org: string): Promise<readonly NamedDocument[]>;
  /** Creates; answers false when the name is taken, or a custom profile that it needs is not there at that moment. */
  add(document: NamedDocument, needs?: NeededProfile): Promise<boolean>;
  /** Actions that the org marks public, for the public card; asked for the deployment's own org only. */
  listPublic(org: string): Promise<readonly NamedDocument[]>;
}

/** One version of a custom profile. Versions are only ever added; a deletion is one too, so a name that comes back goes on counting. */
export interface ProfileVersion {
  readonly org: string;
  readonly name: string;
  /** From 1, without gaps. */
  readonly version: number;
  /** The complete profile; null: the name was deleted with this version. */
  readonly document: JsonObject | null;
  /** Thresholds that nobody gave. */
  readonly defaulted: readonly string[];
  /** When the name was added, or added again. */
  readonly createdAt: string;
  readonly savedAt: string;
  /** Key id. */
  readonly savedBy: string;
}

export interface ProfileStore {
  /** The newest version, a deletion included; null when the org never had the name. */
  latest(org: string, name: string): Promise<ProfileVersion | null>;
  /** The newest version of every profile that is not deleted, by name. */
  list(org: string): Promise<readonly ProfileVersion[]>;
  /** Every version of a name, the oldest first. */
  versions(org: string, name: string): Promise<readonly ProfileVersion[]>;
  /**
   * Adds a version; false, and nothing is stored, when there is one with this number, or a custom profile that it needs is not there at that
   * moment. A deletion also where something names the profile.
   */
  save(version: ProfileVersion, needs?: NeededProfile): Promise<boolean>;
  /** What names a profile, and would name nothing if it were deleted. */
  namedBy(org: string, name: string): Promise<ProfileUse>;
}

/** A custom profile that has to be there in the moment in which something that names it is stored. */
export interface NeededProfile {
  readonly profile: string;
}

export interface ProfileUse {
  /** Names of actions. */
  readonly actions: readonly string[];
  /** Scopes whose `core.automation-profile` it is, as in `ConfigStore`. */
  readonly scopes: readonly string[];
  /** Names of profiles that extend it, as they are now. */
  readonly profiles: readonly string[];
}

/** One version of the org's policy floor. */
export interface OrgPolicyVersion {
  readonly org: string;
  readonly version: number;
  readonly policy: JsonObject;
  readonly savedAt: string;
  /** Key id. */
  readonly savedBy: string;
}

export interface OrgPolicyStore {
  /** The floor in force; null when the org never set one. */
  latest(org: string): Promise<OrgPolicyVersion | null>;
  /** Adds a version; false, and nothing is stored, when there is one with this number. */
  save(version: OrgPolicyVersion): Promise<boolean>;
}

export interface ProjectRecord {
  readonly org: string;
  readonly name: string;
  readonly settings: JsonObject;
  readonly createdAt: string;
}

export interface ProjectStore {
  get(org: string, name: string): Promise<ProjectRecord | null>;
  list(org: string): Promise<readonly ProjectRecord[]>;
  add(record: ProjectRecord): Promise<boolean>;
}

export interface SessionRecord {
  readonly org: string;
  readonly id: string;
  readonly actorName: string | null;
  readonly status: 'open' | 'closed';
  readonly createdAt: string;
  readonly closedAt: string | null;
  readonly createdBy: string;
}

export interface SessionStore {
  get(org: string, id: string): Promise<SessionRecord | null>;
  list(org: string): Promise<readonly SessionRecord[]>;
  /** Creates unless it exists; answers the stored record either way. */
  ensure(record: SessionRecord): Promise<SessionRecord>;
  close(org: string, id: string, at: string): Promise<boolean>;
}

export interface ConfigStore {
  /** `scope` is `org` or `project:<name>`. */
  get(org: string, scope: string, key: string): Promise<JsonValue | null>;
  /** False, and nothing is stored, where a custom profile that it needs is not there at that moment. */
  set(org: string, scope: string, key: string, value: JsonValue, needs?: NeededProfile): Promise<boolean>;
  list(org: string, scope: string): Promise<ReadonlyMap<string, JsonValue>>;
}

/** One row per plan for queries across plans; the object is the truth, this follows it by at most one write. */
export interface PlanIndexRow {
  readonly org: string;
  readonly planId: string;
  readonly sessionId: string;
  readonly actionName: string;
  readonly project: string | null;
  readonly profile: string;
  readonly phase: string;
  readonly state: string;
  /** Version-neutral A2A state, kept so that lists filter without opening objects. */
  readonly taskState: string;
  readonly createdBy: string;
  readonly createdAt: string;
  readonly updatedAt: string;
  /** When the A2A status last changed; the order of lists. */
  readonly statusAt: string;
  /** Log position that this row reflects; 0 = made, not committed yet, hidden from lists. */
  readonly seq: number;
  /** When the object should be awake next; null = nothing to do. The sweeper wakes what is overdue. */
  readonly wakeAt: string | null;
  readonly pendingApprovals: number;
}

export interface PlanListQuery {
  readonly org: string;
  readonly sessionId?: string;
  readonly actionName?: string;
  readonly project?: string;
  readonly phase?: string;
  readonly state?: string;
  readonly taskState?: string;
  readonly statusAtOrAfter?: string;
  readonly withPendingApprovals?: boolean;
  /** Opaque cursor from the page before. */
  readonly pageToken?: string;
  readonly pageSize: number;
}

export interface PlanListPage {
  readonly rows: readonly PlanIndexRow[];
  readonly nextPageToken: string;
  readonly totalSize: number;
}

/** What a plan tells of its spending; all of it, each time. */
export interface PlanSpend {
  /** Name of the profile under which it was spent. */
  readonly profile: string;
  readonly rows: readonly SpendRow[];
}

/** What a plan that was closed without its ledger is said to have spent: by the day of the reservation, of no tool. */
export interface ClosedSpend {
  readonly days: readonly { readonly day: Day; readonly chargedMicroUsd: number }[];
}

/** The plans of an org, of one of its sessions, or under a profile. */
export interface SpendingQuery {
  readonly org: string;
  readonly of: BudgetRef;
  /** The day whose windows are wanted. */
  readonly day: Day;
  /** At most so many tools, and so many plans. */
  readonly limit: number;
}

/** Spending by tool and by plan over all days, the biggest first, as the plans told it last. */
export interface Spending {
  /** Sums over all plans, also those that are not listed. */
  readonly spentMicroUsd: number;
  readonly reservedMicroUsd: number;
  /** Spent, and held, on the days of the window that holds `day`. */
  readonly spentIn: Readonly<Record<CapWindow, number>>;
  readonly reservedIn: Readonly<Record<CapWindow, number>>;
  readonly tools: readonly Omit<SpendRow, 'day'>[];
  readonly toolCount: number;
  readonly plans: readonly (Omit<SpendRow, 'day' | 'tool'> & {
    readonly planId: string;
    readonly sessionId: string;
    /** When the plan last changed before it told this. */
    readonly at: string;
  })[];
  readonly planCount: number;
  /** What is held in each session of an org, in each plan of a session or a profile; nothing of those that hold nothing. */
  readonly reservedByChild: ReadonlyMap<string, number>;
}

export interface PlanIndex {
  /** Before the plan's first commit; false when the id exists in the org. */
  reserve(row: PlanIndexRow): Promise<boolean>;
  /**
   * Idempotent and order-free: a row with a lower seq than the stored one changes nothing, and false is answered. With `spend`, what the
   * plan had spent at that row takes the place of what was told before, in the same transaction.
   */
  upsert(row: PlanIndexRow, spend?: PlanSpend): Promise<boolean>;
  /**
   * The plan was closed and tells nothing any more: it holds nothing, and what was charged beyond what it had told is spent by no tool.
   * Again, it changes nothing.
   */
  closeSpending(row: PlanIndexRow, spend: ClosedSpend): Promise<void>;
  /** What plans have told of their spending. */
  spending(of: SpendingQuery): Promise<Spending>;
  get(org: string, planId: string): Promise<PlanIndexRow | null>;
  /** Newest status first, then id. A token that is not ours is refused. */
  list(query: PlanListQuery): Promise<Result<PlanListPage, Refusal>>;
  /** Plans of a session that wait, newest first (at most `limit`). */
  listWaiting(org: string, sessionId: string, limit: number): Promise<readonly PlanIndexRow[]>;
  listOverdue(before: string, limit: number): Promise<readonly PlanIndexRow[]>;
  /**
   * Ids of the org's plans, or of one session's, that have not ended, in the order of their ids after `afterPlanId`; those that are made
   * but have not committed anything are among them. A walk misses no plan that is there from its first page to its last.
   */
  listLive(of: {
    readonly org: string;
    readonly sessionId: string | null;
    readonly afterPlanId: string;
    readonly limit: number;
  }): Promise<readonly string[]>;
}

export interface AuditRow {
  readonly org: string;
  readonly planId: string;
  readonly seq: number;
  readonly at: string;
  readonly eventType: string;
  readonly guardName: string;
  readonly result: 'allowed' | 'denied';
  readonly reason: string | null;
  readonly actorKind: string;
  readonly actorId: string;
  readonly context: JsonObject;
  readonly hash: string;
}

export interface AuditStore {
  /** Idempotent by (plan, seq). */
  append(rows: readonly AuditRow[]): Promise<void>;
  list(org: string, planId: string, afterSeq: number, limit: number): Promise<readonly AuditRow[]>;
}

/** An outcome with what it is an outcome of. */
export type OutcomeRow = Outcome & {
  readonly org: string;
  readonly planId: string;
  /** Name of the actor that proposed. */
  readonly actor: string;
  readonly action: string;
  readonly project: string | null;
};

export interface OutcomeStore {
  /** Idempotent by (org, plan, seq) and order-free: the first row of a decision stays, of a plan the one with the highest seq. */
  record(rows: readonly OutcomeRow[]): Promise<void>;
  /** How the last 50 calls of project and actor went, for each class that has any, and the last 50 plans of the action on the project. */
  statistics(of: {
    readonly org: string;
    readonly project: string | null;
    readonly actor: string;
    readonly action: string;
  }): Promise<OutcomeStatistics>;
  /** What became of the newest decisions (at most `limit`) that had a confidence, those left to a plan by how the plan stands; in groups. */
  judged(
    of: { readonly org: string; readonly action?: string; readonly project?: string; readonly actor?: string },
    limit: number,
  ): Promise<readonly JudgedGroup[]>;
}

export interface IdempotencyClaim {
  readonly org: string;
  readonly keyId: string;
  readonly idempotencyKey: string;
  readonly bodyDigest: string;
  readonly planId: string;
  readonly createdAt: string;
}

export interface IdempotencyStore {
  /** Stores the claim unless one exists that is younger than 7 days; answers the one that holds. */
  claim(claim: IdempotencyClaim): Promise<IdempotencyClaim>;
  purge(before: string): Promise<number>;
}

/* ------------------------------------------------------------------ projects (objects) */

export interface TreeChange {
  readonly path: string;
  /** null = delete. */
  readonly entry: { readonly mode: '100644' | '100755' | '120000'; readonly blob: string; readonly sizeBytes: number } | null;
}

export interface ProjectHead {
  /** Tree digest; the empty tree has one too. */
  readonly head: string;
  readonly files: number;
  readonly totalBytes: number;
  readonly commits: number;
  readonly updatedAt: string;
}

export interface CommitRequest {
  /** Same id again answers the first outcome: a commit is done once. */
  readonly commitId: string;
  /** Compare-and-set: null accepts any head (first import). */
  readonly expectedHead: string | null;
  /** `replace`: the changes are the whole tree; `patch`: applied to the expected head. */
  readonly mode: 'replace' | 'patch';
  readonly changes: readonly TreeChange[];
  readonly message: string;
  readonly by: string;
}

export interface CommittedOutcome {
  readonly status: 'committed';
  readonly head: string;
  readonly previous: string;
  readonly files: number;
}

export type CommitOutcome =
  | CommittedOutcome
  /** Nothing was written; `head` is what the project holds now. */
  | { readonly status: 'moved'; readonly head: string };

export interface SearchHit {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

/** One project's object: blobs, trees, head, history. Values cross by copy; batches are at most 8 MiB. */
export interface ProjectPort {
  /** Creates the project's storage with an empty tree; a no-op when it exists. */
  create(): Promise<ProjectHead>;
  /** null = no such project: probing stores nothing. */
  head(): Promise<ProjectHead | null>;
  missingBlobs(digests: readonly string[]): Promise<readonly string[]>;
  /** Digests are recomputed; a mismatch refuses the whole batch. */
  putBlobs(blobs: readonly { readonly digest: string; readonly bytes: Uint8Array }[]): Promise<Result<null, Refusal>>;
  /** Absent digests are simply missing from the answer. */
  getBlobs(digests: readonly string[]): Promise<ReadonlyMap<string, Uint8Array>>;
  /** The manifest text of a tree (core/workspace), or null when the project does not hold that tree. */
  manifest(tree: string): Promise<string | null>;
  commit(request: CommitRequest): Promise<Result<CommitOutcome, Refusal>>;
  /** What was committed under an id; null: nothing was. */
  committed(commitId: string): Promise<CommittedOutcome | null>;
  search(
    tree: string,
    query: string,
    options: { readonly limit: number; readonly skipPaths: readonly string[]; readonly ignoreCase?: boolean; readonly pathGlob?: string },
  ): Promise<{
    readonly hits: readonly SearchHit[];
    readonly truncated: boolean;
  }>;
  history(limit: number): Promise<readonly { readonly head: string; readonly message: string; readonly by: string; readonly at: string }[]>;
}

export interface Projects {
  project(org: string, name: string): ProjectPort;
}

/* ------------------------------------------------------------------ plans (objects) */

/** What callers may ask of a plan; the rest of the commands belong to its engine. */
export type OutsideCommand = Extract<
  Command,
  {
    readonly type:
      | 'execute'
      | 'apply'
      | 'cancel'
      | 'answer'
      | 'extend'
      | 'message'
      | 'revise_guard'
      | 'apply_floor'
      | 'halt'
      | 'clear_halt'
      | 'retry_budget';
  }
>;

export interface PlanDiff {
  readonly digest: string;
  readonly base: string;
  readonly result: string;
  readonly files: readonly {
    readonly path: string;
    readonly from_path?: string;
    readonly status: 'added' | 'modified' | 'deleted' | 'renamed' | 'mode_changed';
    readonly binary: boolean;
    readonly additions: number;
    readonly deletions: number;
    readonly mode_before?: string;
    readonly mode_after?: string;
  }[];
  readonly additions: number;
  readonly deletions: number;
  readonly patch: string;
}

/** What a feed delivers: first the plan as it is, then what happens, in the order of the log. */
export type PlanFeedItem =
  | { readonly kind: 'snapshot'; readonly snapshot: PlanSnapshot }
  | { readonly kind: 'update'; readonly update: PlanUpdate };

/** Who closes a plan whose log is damaged, and why. */
export interface RetireOrder {
  readonly org: string;
  readonly planId: string;
  readonly by: ActorRef;
  readonly reason: string;
  readonly at: string;
  /** The profile that is locked in it, as the index has it, since its own log is not to be trusted; null: not known. */
  readonly profile: string | null;
}

export interface PlanRetirement extends Omit<RetireOrder, 'profile'> {
  readonly problem: LogDamage['problem'];
  readonly firstBadSeq: number;
  /** The last row up to which the chain holds. */
  readonly lastGood: { readonly seq: number; readonly hash: string };
  /** What its sessions are told that it has spent. */
  readonly chargedMicroUsd: number;
  /** The same by day. Absent in what was written before this was kept. */
  readonly spend?: ClosedSpend;
}

export interface HeadsQuery {
  /** Whether the end of the log is signed first, if it is not yet. */
  readonly sign: boolean;
  /** Signed heads behind this row, the first 500 of them; absent: the newest ten. */
  readonly after?: number;
}

/** Where a plan's log ends, and what has been signed of it. */
export interface PlanHeads {
  readonly seq: number;
  readonly hash: string;
  /** Those that were asked for, oldest first; none where the deployment does not sign. */
  readonly signed: readonly SignedHead[];
  /** Why the plan acts on its log no more; then `seq` and `hash` are those of the last row that can be read. */
  readonly damage: LogDamage | null;
}

/**
 * One plan's object. An id that the org does not have answers null everywhere and stores nothing. One whose log is damaged answers
 * `verify`, `log` and `heads`; everything else of it is refused or throws `LogDamaged`.
 */
export interface PlanPort {
  /** Creates once: the same command again answers the plan that is there. The index row must exist before. */
  create(command: CreateCommand & Traced): Promise<Result<PlanSnapshot, Refusal>>;
  command(command: OutsideCommand & Traced): Promise<Result<PlanSnapshot, Refusal> | null>;
  /** What an executor outside asks of its plan: decided and committed before it is answered. Null: no such plan. */
  external<C extends ExternalCommand>(command: C & Traced): Promise<Result<ExternalAnswers[C['type']], Refusal> | null>;
  /** A value that the log keeps beside itself, by its digest. */
  value(digest: string): Promise<JsonValue | null>;
  read(): Promise<PlanSnapshot | null>;
  log(afterSeq: number, limit: number): Promise<readonly LogRow[] | null>;
  diff(): Promise<PlanDiff | null>;
  /** The newest checkpoints, oldest first, and how many were ever made. */
  checkpoints(): Promise<PlanCheckpoints | null>;
  verify(): Promise<LogVerdict | null>;
  heads(options: HeadsQuery): Promise<PlanHeads | null>;
  /** Closes a plan whose log is damaged, once; null: there is no such plan, or its log is whole. */
  retire(order: Omit<RetireOrder, 'org' | 'planId'>): Promise<PlanRetirement | null>;
  /** Registers a webhook, or replaces the one of its id; durable when it answers. */
  setPush(order: PushOrder & Traced): Promise<Result<PushStatus, Refusal> | null>;
  /** By id. */
  pushes(): Promise<readonly PushStatus[] | null>;
  /** False: there was none. */
  deletePush(id: string, by: ActorRef): Promise<Result<boolean, Refusal> | null>;
  /** Sends again what was given up, all of it or one, and goes on where a webhook was stopped. */
  retryPush(id: string, sequence: number | null, by: ActorRef): Promise<Result<PushStatus, Refusal> | null>;
  /** Makes an overdue plan look at its deadlines. */
  wake(): Promise<void>;
  /**
   * Follows the plan until it ends, the signal aborts, or `maxMs` pass. `afterSeq` null starts with a snapshot; a number delivers the
   * updates after it. Reconnects by itself; an item is delivered once.
   */
  follow(options: {
    readonly afterSeq: number | null;
    readonly signal: AbortSignal;
    readonly maxMs: number;
  }): Promise<AsyncIterable<PlanFeedItem> | null>;
}

export interface Plans {
  plan(org: string, planId: string): PlanPort;
}

/* ------------------------------------------------------------------ notifications */

/**
 * What a webhook of a wire version is told of one update: nothing, or one or more bodies, each made when it is sent. The same update gives
 * the same bodies. `task` is the whole plan after it.
 */
export type PushRenderer = (
  wire: PushWire,
  what: { readonly before: Plan | null; readonly update: PlanUpdate; readonly task: () => PlanSnapshot },
) => readonly (() => string)[];

/** What a plan's object delivers notifications with. */
export interface PushParts {
  readonly render: PushRenderer;
  readonly rules: PushUrlRules;
  readonly timing: PushTiming;
  readonly userAgent: string;
  fetch(url: string, init: RequestInit): Promise<Response>;
  /** From 0 to below 1. */
  random(): number;
}

/* ------------------------------------------------------------------ budgets (objects) */

/** A budget node of an org: the org itself, a session, or what the org spends under a profile. */
export type BudgetRef =
  | { readonly kind: 'org' }
  | { readonly kind: 'session'; readonly id: string }
  | { readonly kind: 'profile'; readonly name: string };

/** That a window was reported as nearly used up, once under its cap. */
export interface BudgetWarning {
  readonly window: CapWindow;
  /** `total`, `2026-11` or `2026-11-03`. */
  readonly windowKey: string;
  readonly capMicroUsd: number;
  /** Spent and leased at that moment. */
  readonly usedMicroUsd: number;
  readonly at: string;
}

export interface BudgetNodeView {
  readonly day: Day;
  /** One per window, each for the instance that holds the day. */
  readonly caps: readonly CapView[];
  /** The biggest, biggest first; over all days. */
  readonly children: readonly ChildView[];
  /** All of them, also those that are not listed. */
  readonly childCount: number;
  readonly warnings: readonly BudgetWarning[];
}

/** Caps to be changed: a number sets, null removes, what is absent stays. */
export type BudgetCapsChange = Partial<Caps>;

export interface BudgetCapsOptions {
  /** Whether the caller may raise or remove a cap. */
  readonly mayLoosen: boolean;
  /** The caps are these already and those below are only told again. Refused if another call has changed them meanwhile. */
  readonly again?: true;
}

export interface BudgetCapsAnswer {
  /** Whether more may be spent than before. */
  readonly loosened: boolean;
  readonly caps: Caps;
  /** Children that may go on under the old cap until their next contact, since they were not reached. */
  readonly unreached: readonly string[];
}

/** One budget node. A node that was never told anything has no caps and nothing spent; asking it stores nothing. */
export interface BudgetNodePort {
  /** Answers when the money is there, or is not; `child` is a plan under a session or a profile, and a session under the org. */
  ask(child: string, ask: Ask): Promise<AskAnswer>;
  /** Acknowledged by its answer. */
  freed(child: string, freed: Freed): Promise<void>;
  /** Acknowledged by its answer. */
  close(child: string, close: Close): Promise<void>;
  /** Answers when what is unused above a lowered cap was recalled from everybody who could be reached. Refused: nothing was changed. */
  setCaps(change: BudgetCapsChange, options: BudgetCapsOptions): Promise<Result<BudgetCapsAnswer, 'would_loosen' | 'would_change'>>;
  /** For the windows that hold the day; null: today, in UTC. */
  show(day: Day | null): Promise<BudgetNodeView>;
}

export interface Budgets {
  node(org: string, ref: BudgetRef): BudgetNodePort;
}

/** Who holds money of a node: a plan as the child of its session or of its profile, a session as the child of its org. */
export type BudgetHolder =
  | { readonly kind: 'plan'; readonly id: string; readonly from: BudgetRef }
  | { readonly kind: 'session'; readonly id: string };

/** How nodes reach those below them. */
export interface BudgetHolders {
  /** Null: there is no such holder. */
  recall(org: string, holder: BudgetHolder, recall: Recall): Promise<RecallReply | null>;
}

/* ------------------------------------------------------------------ orders from above (objects of sessions and orgs) */

/** The node whose kill switch it is. */
export type HaltRef = { readonly kind: 'org' } | { readonly kind: 'session'; readonly id: string };

/** The kill switches of sessions and orgs. Asking one that was never set makes nothing. */
export interface Halts {
  /** The newest word of a node; null: its switch was never set. */
  show(org: string, of: HaltRef): Promise<HaltWord | null>;
  /** The word that holds after it, durable; from then on the node sees to it that every live plan hears of it. Null: nothing was set to clear. */
  change(org: string, of: HaltRef, change: HaltChange): Promise<HaltWord | null>;
  /** Every live plan has acknowledged the word of this epoch. */
  told(org: string, of: HaltRef, epoch: number): Promise<void>;
  /** The words of a session and of its org: what a plan of it reads when it wakes. */
  current(org: string, sessionId: string): Promise<readonly HaltWord[]>;
}

/** The policy floor of an org as its node tells it. */
export interface FloorWord {
  readonly version: number;
  readonly policy: JsonObject;
  /** Who set it. */
  readonly by: ActorRef;
}

/** Tells the policy floor to the live plans of an org; its versions are kept by `OrgPolicyStore`. */
export interface Floors {
  /** The floor that plans read when they wake; null: none was set since there are plans. */
  current(org: string): Promise<FloorWord | null>;
  /** Before a version is saved: from then on the node looks for it by itself. */
  announce(org: string, version: number): Promise<void>;
  /** A version that was saved; an older one changes nothing. */
  put(org: string, floor: FloorWord): Promise<void>;
  /** Every live plan has acknowledged it. */
  told(org: string, version: number): Promise<void>;
}

/* ------------------------------------------------------------------ the org's own log (object) */

export interface OrgLogQuery {
  readonly afterSeq: number;
  readonly limit: number;
  readonly types?: readonly OrgEventType[];
  readonly planId?: string;
  /** ISO time; rows of that moment are among them. */
  readonly since?: string;
}

export interface OrgLogPage {
  readonly rows: readonly OrgLogRow[];
  /** Where the next page goes on; null on the last one. */
  readonly nextAfterSeq: number | null;
}

export interface OrgLogHeads extends Omit<PlanHeads, 'damage'> {
  /** Up to which row the entries in D1 are known to be. */
  readonly flushedSeq: number;
}

/** The log of an org: its configuration, keys and refusals, and where the logs of its plans stood. An org without one answers null. */
export interface OrgLog {
  /** Durable when it answers. The same id again adds nothing. */
  append(org: string, entry: OrgLogEntry): Promise<void>;
  /** Counted, and sent without anybody waiting; throws nothing. */
  refused(org: string, note: RefusalNote): void;
  /** Durable when it answers; what was reported before adds nothing. */
  report(org: string, reports: readonly PlanReport[]): Promise<void>;
  page(org: string, query: OrgLogQuery): Promise<OrgLogPage | null>;
  /** The next rows behind a position, as many as are verified at once; absent: from the beginning. */
  verify(org: string, from?: LogPosition | null): Promise<LogStretch | null>;
  heads(org: string, options: HeadsQuery): Promise<OrgLogHeads | null>;
  plan(org: string, planId: string): Promise<ListedPlan | null>;
  /** What it knows of plans, in the order of their ids. */
  plans(org: string, afterPlanId: string, limit: number): Promise<readonly ListedPlan[]>;
}

/* ------------------------------------------------------------------ failure of a port */

/** What was asked of a plan whose log is damaged. The edges answer it as the refusal that it carries: repeating the call changes nothing. */
export class LogDamaged extends Error {
  override readonly name = 'LogDamaged';
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

/**
 * The store behind a port did not answer, or answered that it cannot now. Nothing is known about whether a write took place, so every
 * port's writes are safe to repeat. The edges answer it as a retryable 503; everything else that is thrown is a bug.
 */
export class StorageUnavailable extends Error {
  override readonly name = 'StorageUnavailable';

  /** `operation` names the port's method (`plans.upsert`) for the log; the cause is never shown to a caller. */
  constructor(operation: string, cause: unknown) {
    super(`storage unavailable: ${operation}`, { cause });
  }
}
