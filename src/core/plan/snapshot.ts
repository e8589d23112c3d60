/** What leaves a plan: its state with the stored values that a reader needs, and the updates that followers get. */
import type { JsonValue } from '../json.ts';
import type { WrittenAtOnce } from './at-once.ts';
import type { LogRow } from './events.ts';
import type { Plan, PlanArtifact, PlanMessage, Stored } from './plan.ts';
import { pendingApprovals } from './plan.ts';

/** The state without what only the engine needs, and the values of its blobs by digest. */
export interface PlanSnapshot {
  readonly plan: PublicPlan;
  readonly values: Readonly<Record<string, JsonValue>>;
}

export type PublicPlan = Omit<
  Plan,
  'cursor' | 'calls' | 'results' | 'changes' | 'readPaths' | 'readHosts' | 'guidance' | 'input' | 'writtenAtOnce' | 'checkpoints'
> & {
  /** What is in the project already, where writes go there at once. */
  readonly written?: WrittenSummary;
};

export interface WrittenSummary {
  readonly writes: number;
  /** The project's head after the newest of them. */
  readonly head: string;
  readonly files: number;
  /** The first of the files. */
  readonly paths: readonly string[];
}

const MAX_SHOWN_PATHS = 50;

export type PlanUpdate =
  /** State, phase, what is pending, or something the plan said. `snapshot` has no history and no artifacts. */
  | {
      readonly kind: 'status';
      readonly seq: number;
      readonly at: string;
      readonly snapshot: PlanSnapshot;
      readonly said: PlanMessage | null;
      readonly event: LogRow['type'];
    }
  | {
      readonly kind: 'artifact';
      readonly seq: number;
      readonly at: string;
      readonly artifact: PlanArtifact;
      readonly append: boolean;
      readonly lastChunk: boolean;
      readonly snapshot: PlanSnapshot;
      readonly event: LogRow['type'];
    };

/** Takes a state apart for readers. `load` reads a blob of the plan; `light` leaves out history, artifacts and what is closed. */
export function snapshotOf(plan: Plan, load: (digest: string) => JsonValue, options: { readonly light?: boolean } = {}): PlanSnapshot {
  const {
    cursor: _cursor,
    calls: _calls,
    results: _results,
    changes: _changes,
    readPaths: _read,
    readHosts: _hosts,
    guidance: _guidance,
    input: _input,
    checkpoints: _checkpoints,
    writtenAtOnce,
    ...kept
  } = plan;
  const rest: PublicPlan = writtenAtOnce === undefined ? kept : { ...kept, written: summaryOf(writtenAtOnce) };
  const shown =
    options.light === true
      ? {
          ...rest,
          messages: plan.terminal ? plan.messages.filter((message) => message.role === 'agent') : [],
          artifacts: [],
          decisions: [],
          approvals: pendingApprovals(plan),
        }
      : rest;
  const stored: Stored[] = [
    ...shown.messages.flatMap(({ parts, metadata }) => (metadata === undefined ? [parts] : [parts, metadata])),
    ...shown.artifacts.flatMap((artifact) => artifact.parts),
    ...shown.approvals.flatMap(storedOf),
  ];
  return { plan: shown, values: valuesOf(stored, load) };
}

function summaryOf({ writes, head, before }: WrittenAtOnce): WrittenSummary {
  return { writes, head, files: before.length, paths: before.slice(0, MAX_SHOWN_PATHS).map(([path]) => path) };
}

export function valuesOf(stored: readonly Stored[], load: (digest: string) => JsonValue): Readonly<Record<string, JsonValue>> {
  const values: Record<string, JsonValue> = {};
  for (const each of stored) if ('blob' in each) values[each.blob] = load(each.blob);
  return values;
}

function storedOf({ subject }: Plan['approvals'][number]): Stored[] {
  return [
    ...(subject.call === undefined ? [] : [subject.call.arguments]),
    ...(subject.calls ?? []).map((call) => call.arguments),
    ...(subject.diff === undefined ? [] : [subject.diff.patch]),
  ];
}

/** The value of a stored member of a snapshot. */
export function valueIn(snapshot: PlanSnapshot, stored: Stored): JsonValue {
  return 'inline' in stored ? stored.inline : (snapshot.values[stored.blob] ?? null);
}

/** What followers of a plan learn from one row, if anything. */
export function updateOf(before: Plan | null, row: LogRow, after: Plan, load: (digest: string) => JsonValue): PlanUpdate | null {
  if (row.type === 'artifact_produced') {
    const artifact = { ...row.data.artifact, parts: row.data.artifact.parts, step: after.stepsUsed, updatedAt: row.at };
    const light = snapshotOf(after, load, { light: true });
    return {
      kind: 'artifact',
      seq: row.seq,
      at: row.at,
      artifact,
      append: row.data.append,
      lastChunk: row.data.last_chunk,
      snapshot: { ...light, values: { ...light.values, ...valuesOf(artifact.parts, load) } },
      event: row.type,
    };
  }
  const said = row.type === 'message_said' ? row.data.message : null;
  const isNews =
    before === null ||
    said !== null ||
    after.statusAt !== before.statusAt ||
    after.state !== before.state ||
    after.phase !== before.phase ||
    after.halts !== before.halts;
  if (!isNews) return null;
  const light = snapshotOf(after, load, { light: true });
  return {
    kind: 'status',
    seq: row.seq,
    at: row.at,
    snapshot: said === null ? light : { ...light, values: { ...light.values, ...valuesOf([said.parts], load) } },
    said,
    event: row.type,
  };
}
