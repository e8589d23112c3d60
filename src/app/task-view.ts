/** The plan as an A2A task: state, status message, artifacts, history, and our metadata (design section 11). */
import { approvalPart, EXTENSION_URI } from '../a2a/extension.ts';
import {
  type Artifact,
  type ArtifactEvent,
  isInterrupted,
  isTerminal,
  type Message,
  type Part,
  type StatusEvent,
  type Task,
  type TaskState,
  type TaskStatus,
} from '../a2a/model.ts';
import { maskJson, maskText } from '../core/audit/mask.ts';
import { effectiveLimit } from '../core/guard-policy.ts';
import type { JsonObject, JsonValue } from '../core/json.ts';
import { remaining, reservedMicroUsd, spentMicroUsd } from '../core/ledger.ts';
import { formatUsd, toUsd } from '../core/money.ts';
import type { Approval, PlanArtifact, PlanMessage } from '../core/plan/plan.ts';
import type { ContentPart } from '../core/plan/proposal.ts';
import { type PlanSnapshot, type PlanUpdate, valueIn } from '../core/plan/snapshot.ts';
import { stepsTaken } from '../core/plan/steps-taken.ts';
import { taskStateOf } from '../core/plan/task-state.ts';
import type { LeftAbove } from './left-above.ts';
import { approvalViewOf, haltedOf, MAX_SHOWN_PATCH, pendingOf, shownArguments, textOf } from './plan-view.ts';

export interface TaskShape {
  /** 0: none; absent: all. */
  readonly historyLength?: number | undefined;
  readonly includeArtifacts: boolean;
  /** Absent: not looked up. */
  readonly above?: LeftAbove;
  /** What a plan that has stopped has done so far (kept-changes.ts). Absent: not looked up. */
  readonly kept?: Artifact | null;
}

export function taskOf(snapshot: PlanSnapshot, { historyLength, includeArtifacts, above, kept }: TaskShape): Task {
  const { plan } = snapshot;
  const history = plan.messages.map((message) => messageOf(snapshot, message));
  return {
    id: plan.id,
    contextId: plan.sessionId,
    status: statusOf(snapshot, null),
    artifacts: includeArtifacts ? [...artifactsOf(snapshot), ...(kept ? [kept] : [])] : undefined,
    history: historyLength === 0 ? undefined : historyLength === undefined ? history : history.slice(-historyLength),
    metadata: metadataOf(snapshot, above),
  };
}

function artifactsOf(snapshot: PlanSnapshot): readonly Artifact[] {
  const made = snapshot.plan.artifacts.map((artifact) => artifactOf(snapshot, artifact));
  return [...made, ...draftsOf(snapshot)];
}

/** A diff that is too long for the status message waits as a draft beside it. */
export function draftsOf(snapshot: PlanSnapshot): readonly Artifact[] {
  return pendingOf(snapshot.plan).flatMap((approval): Artifact[] => {
    if (approval.subject.diff === undefined) return [];
    const text = textOf(valueIn(snapshot, approval.subject.diff.patch));
    if (text === null || text.length <= MAX_SHOWN_PATCH) return [];
    return [
      {
        artifactId: 'changes.diff',
        name: 'changes.diff',
        description: 'Unified diff that waits for its approval',
        parts: [{ kind: 'text', text, mediaType: 'text/x-diff', filename: 'changes.diff' }],
        metadata: { draft: true },
      },
    ];
  });
}

export function taskStateFor(snapshot: PlanSnapshot): TaskState {
  return taskStateOf(snapshot.plan);
}

/** State with what a person needs to know about it; one data part per pending approval. */
export function statusOf(snapshot: PlanSnapshot, said: PlanMessage | null): TaskStatus {
  const { plan } = snapshot;
  const parts = said === null ? statusParts(snapshot) : shownParts(valueIn(snapshot, said.parts));
  return {
    state: taskStateOf(plan),
    timestamp: plan.statusAt,
    message:
      parts.length === 0
        ? undefined
        : {
            messageId: said?.messageId ?? `${plan.id}.s${plan.seq}`,
            role: 'agent',
            parts,
            taskId: plan.id,
            contextId: plan.sessionId,
            extensions: pendingOf(plan).length > 0 ? [EXTENSION_URI] : undefined,
          },
  };
}

function statusParts(snapshot: PlanSnapshot): readonly Part[] {
  const { plan } = snapshot;
  const pending = pendingOf(plan);
  if (pending.length > 0) {
    const text = [...haltText(snapshot), ...pending.map((approval) => describe(snapshot, approval))].join('\n\n');
    return [{ kind: 'text', text }, ...pending.map((approval) => approvalPart(requestOf(snapshot, approval)))];
  }
  const closed = closing(snapshot);
  const text = [...(closed === null ? [] : [maskText(closed)]), ...haltText(snapshot)].join('\n');
  return text === '' ? [] : [{ kind: 'text', text }];
}

/** A caller that knows nothing of our operations sees why nothing goes on. */
function haltText({ plan }: PlanSnapshot): readonly string[] {
  const { halted } = plan.terminal ? {} : haltedOf(plan);
  if (halted === undefined) return [];
  const { level, reason } = halted;
  return [`Halted at the level ${level}: ${reason}. Nothing is begun until the halt is cleared; the plan then goes on where it stands.`];
}

/** What a plan says of itself where nobody is asked: what its actor said, then how it ended. */
function closing(snapshot: PlanSnapshot): string | null {
  const { plan } = snapshot;
  switch (plan.state) {
    case 'applied':
      return [...saidBy(snapshot), ...howItEnded(snapshot)].join('\n') || `Done. Spent ${formatUsd(spentMicroUsd(plan.ledger))}.`;
    case 'errored':
      return [
        plan.failure?.last.message ?? 'The plan failed.',
        ...whatStays(plan),
        ...(plan.terminal ? [] : ['Send guidance, execute it again, or cancel it.']),
      ].join(' ');
    case 'constrained':
      return plan.failure?.last.message ?? 'The plan met a constraint.';
    case 'cancelled':
      return [plan.cancelReason === null ? 'Cancelled.' : `Cancelled: ${plan.cancelReason}`, ...whatStays(plan)].join(' ');
    case 'rejected':
      return plan.failure?.last.message ?? 'Rejected.';
    default:
      return null;
  }
}

/** What was written at once is in the project, whatever becomes of the plan. */
function whatStays({ written, project }: PlanSnapshot['plan']): readonly string[] {
  if (written === undefined || project === null) return [];
  const files = `${written.files} ${written.files === 1 ? 'file' : 'files'}`;
  return [
    `What it wrote to ${project.name} at once stays there: ${files}; the head was ${written.head.slice(0, 12)} after its last write.`,
  ];
}

/** Texts of the actor that a closing status repeats, so that a client that reads only the status misses nothing. */
const MAX_REPEATED = 20;

function saidBy(snapshot: PlanSnapshot): readonly string[] {
  return snapshot.plan.messages
    .filter((message) => message.role === 'agent')
    .slice(-MAX_REPEATED)
    .flatMap((message) => partsOf(valueIn(snapshot, message.parts)).flatMap((part) => (part.kind === 'text' ? [part.text] : [])));
}

/** Nothing for a plan that had nothing to apply to: its artifacts are its result. */
function howItEnded({ plan }: PlanSnapshot): readonly string[] {
  if (plan.project === null || plan.appliedHead === null) return [];
  const spent = formatUsd(spentMicroUsd(plan.ledger));
  const { name } = plan.project;
  if (plan.written !== undefined)
    return [
      `Written to ${name} at once, ${plan.written.files} file(s); its head was ${plan.written.head.slice(0, 12)} then. Spent ${spent}.`,
    ];
  if (plan.apply?.diff.files.length === 0) return [`Done; nothing in ${name} was changed. Spent ${spent}.`];
  return [`Applied to ${name}; its head is ${plan.appliedHead.slice(0, 12)}. Spent ${spent}.`];
}

/** For people: what is asked, why, and how to answer. */
function describe(snapshot: PlanSnapshot, approval: Approval): string {
  const lines = [maskText(approval.reason)];
  const { subject } = approval;
  if (subject.call !== undefined)
    lines.push(`Call: ${subject.call.tool} ${shorten(JSON.stringify(shownArguments(snapshot, subject.call.arguments)))}`);
  for (const call of subject.calls ?? [])
    lines.push(`Call: ${call.tool} ${shorten(JSON.stringify(shownArguments(snapshot, call.arguments)))}`);
  if (subject.diff !== undefined) {
    lines.push(`Changes: ${subject.diff.files.length} file(s), +${subject.diff.additions} -${subject.diff.deletions}`);
    const patch = textOf(valueIn(snapshot, subject.diff.patch));
    if (patch !== null) lines.push(patch.length <= MAX_SHOWN_PATCH ? patch : 'The diff is in the artifact changes.diff.');
  }
  if (subject.decision !== undefined)
    lines.push(maskText(`Decision: ${String(subject.decision['question'])} → ${String(subject.decision['chosen'])}`));
  if (subject.question !== undefined && subject.question !== approval.reason) lines.push(maskText(subject.question));
  if (approval.estimateMicroUsd !== null && approval.estimateMicroUsd > 0)
    lines.push(`Estimated cost: ${formatUsd(approval.estimateMicroUsd)}`);
  lines.push(`Approval ${approval.id}${approval.expiresAt === null ? '' : `, expires ${approval.expiresAt}`}.`);
  return lines.join('\n');
}

function shorten(text: string): string {
  return text.length > 500 ? `${text.slice(0, 500)}…` : text;
}

function requestOf(snapshot: PlanSnapshot, approval: Approval): Parameters<typeof approvalPart>[0] {
  const view = approvalViewOf(snapshot, approval);
  const extra: Record<string, JsonValue> = { reason: view.reason };
  if (view.gate !== undefined) extra['gate'] = view.gate;
  if (view.calls !== undefined) extra['calls'] = view.calls as unknown as JsonValue;
  if (view.choices !== undefined) extra['choices'] = view.choices;
  if (view.suggested_grant !== undefined) extra['suggested_grant'] = view.suggested_grant;
  if (view.decision !== undefined) extra['decision'] = view.decision;
  if (view.details !== undefined) extra['details'] = view.details;
  if (view.components !== undefined) extra['components'] = view.components;
  return {
    approval_id: view.approval_id,
    kind: view.kind,
    digest: view.digest,
    call: view.call as JsonObject | undefined,
    diff:
      view.diff === undefined
        ? undefined
        : ((view.diff.patch === undefined ? { ...view.diff, artifact_id: 'changes.diff' } : view.diff) as unknown as JsonValue),
    question: view.question,
    estimate: view.estimate_usd === undefined ? undefined : { cost_usd: view.estimate_usd },
    guard: view.guard,
    threshold: view.threshold,
    confidence: view.confidence ?? undefined,
    expires_at: view.expires_at ?? undefined,
    ...extra,
  };
}

/** What a calling agent can see of the plan without our operations. */
export function metadataOf(snapshot: PlanSnapshot, above: LeftAbove = {}): JsonObject {
  const { plan } = snapshot;
  const left = remaining(plan.ledger, plan.policy.planCapMicroUsd);
  return {
    [EXTENSION_URI]: {
      phase: plan.phase,
      state: plan.state,
      action: plan.action.name,
      profile: { name: plan.profile.name, digest: plan.profile.digest },
      spent_usd: toUsd(spentMicroUsd(plan.ledger)),
      reserved_usd: toUsd(reservedMicroUsd(plan.ledger)),
      ...remainingMember({ ...(left === null ? {} : { plan: left }), ...above }),
      steps_used: stepsTaken(plan),
      ...limitMember(effectiveLimit(plan.policy.maxSteps, plan.grants.steps)),
      ...(plan.step === null ? {} : { current_step: plan.step.id }),
      ...(plan.project === null ? {} : { project: plan.project.name }),
      ...(plan.appliedHead === null ? {} : { applied_head: plan.appliedHead }),
      ...(plan.written === undefined
        ? {}
        : { written_at_once: { writes: plan.written.writes, files: plan.written.files, head: plan.written.head } }),
      ...haltedMember(snapshot),
      audit_head: plan.headHash,
      audit_seq: plan.seq,
    },
  };
}

function haltedMember({ plan }: PlanSnapshot): JsonObject {
  const { halted } = plan.terminal ? {} : haltedOf(plan);
  return halted === undefined ? {} : { halted: { level: halted.level, reason: halted.reason } };
}

function remainingMember(left: LeftAbove & { readonly plan?: number }): JsonObject {
  const levels = Object.entries(left).map(([level, microUsd]) => [level, toUsd(microUsd)]);
  return levels.length === 0 ? {} : { remaining_usd: Object.fromEntries(levels) };
}

function limitMember(limit: number | null): JsonObject {
  return limit === null ? {} : { steps_limit: limit };
}

function messageOf(snapshot: PlanSnapshot, message: PlanMessage): Message {
  return {
    messageId: message.messageId,
    role: message.role,
    parts: shownParts(valueIn(snapshot, message.parts)),
    taskId: snapshot.plan.id,
    contextId: snapshot.plan.sessionId,
    metadata: message.metadata === undefined ? undefined : (maskJson(valueIn(snapshot, message.metadata)) as JsonObject),
  };
}

export function artifactOf(snapshot: PlanSnapshot, artifact: PlanArtifact): Artifact {
  const isDraft = snapshot.plan.action.apply === 'project' && snapshot.plan.state !== 'applied' && snapshot.plan.project !== null;
  return {
    artifactId: artifact.artifactId,
    name: artifact.name ?? undefined,
    description: artifact.description ?? undefined,
    parts: artifact.parts.flatMap((part) => partsOf([valueIn(snapshot, part)])),
    metadata: isDraft ? { draft: true } : undefined,
  };
}

/** The parts of a message without the secrets in their texts, data and addresses. Bytes are a file and stay what they are. */
function shownParts(value: JsonValue): readonly Part[] {
  return partsOf(value).map(shownPart);
}

function shownPart(part: Part): Part {
  const shown = part.metadata === undefined ? part : { ...part, metadata: maskJson(part.metadata) as JsonObject };
  switch (shown.kind) {
    case 'text':
      return { ...shown, text: maskText(shown.text) };
    case 'url':
      return { ...shown, url: maskText(shown.url) };
    case 'data':
      return { ...shown, data: maskJson(shown.data) };
    case 'raw':
      return shown;
  }
}

/** Stored parts are those of core (`ContentPart`); they differ from A2A's only in the name of the bytes. */
export function partsOf(value: JsonValue): readonly Part[] {
  const parts = (Array.isArray(value) ? value : []) as unknown as readonly ContentPart[];
  return parts.map((part): Part => {
    if (part.kind !== 'raw') return part as Part;
    const { base64, ...rest } = part;
    return { ...rest, raw: base64 } as Part;
  });
}

/** A2A parts as they are stored in the plan. */
export function contentOf(parts: readonly Part[]): JsonValue {
  return parts.map(contentOfPart);
}

function contentOfPart(part: Part): JsonObject {
  const { kind, mediaType, filename, metadata } = part;
  const common = {
    ...(mediaType === undefined ? {} : { mediaType }),
    ...(filename === undefined ? {} : { filename }),
    ...(metadata === undefined ? {} : { metadata }),
  };
  switch (kind) {
    case 'text':
      return { kind, text: part.text, ...common };
    case 'raw':
      return { kind, base64: part.raw, ...common };
    case 'url':
      return { kind, url: part.url, ...common };
    case 'data':
      return { kind, data: part.data, ...common };
  }
}

/** The events of one update. `closes` says after which states a stream ends. */
export function eventsOf(
  update: PlanUpdate,
  closes: (state: TaskState) => boolean,
  above: LeftAbove = {},
): readonly (StatusEvent | ArtifactEvent)[] {
  const { snapshot } = update;
  const ids = { taskId: snapshot.plan.id, contextId: snapshot.plan.sessionId };
  if (update.kind === 'artifact') {
    return [
      {
        kind: 'artifact',
        ...ids,
        artifact: artifactOf(snapshot, update.artifact),
        append: update.append,
        lastChunk: update.lastChunk,
        metadata: metadataOf(snapshot, above),
      },
    ];
  }
  const drafts = draftsOf(snapshot).map(
    (artifact): ArtifactEvent => ({ kind: 'artifact', ...ids, artifact, append: false, lastChunk: true }),
  );
  return [...drafts, statusEventOf(snapshot, update.said, closes, above)];
}

export function statusEventOf(
  snapshot: PlanSnapshot,
  said: PlanMessage | null,
  closes: (state: TaskState) => boolean,
  above: LeftAbove = {},
): StatusEvent {
  const status = statusOf(snapshot, said);
  return {
    kind: 'status',
    taskId: snapshot.plan.id,
    contextId: snapshot.plan.sessionId,
    status,
    final: closes(status.state),
    metadata: metadataOf(snapshot, above),
  };
}

/** A blocking send answers at these. */
export const isSettled = (state: TaskState): boolean => isTerminal(state) || isInterrupted(state);
