/**
 * Whether a plan's own log can be acted on. Opening never throws: a log that was damaged opens as damaged, with the first row that is
 * wrong, and nothing of it is repaired. Verifying walks everything that the object keeps: rows, their parts, the values beside them, and
 * the state.
 */
import { canonicalJson, exceedsDepth } from '../../core/json.ts';
import { genesisHash, type LogDamage, type LogProblem, type LogVerdict, verifyChain } from '../../core/plan/chain.ts';
import { isLogRow, type LogRow } from '../../core/plan/events.ts';
import { evolve, replay } from '../../core/plan/evolve.ts';
import type { Plan } from '../../core/plan/plan.ts';
import { valuesOfRow } from '../../core/plan/values-of-row.ts';
import { sha256 } from '../sha256.ts';
import type { HeadStore } from './head-store.ts';
import type { PlanStore } from './plan-store.ts';

/** A row holds values of the greatest depth that is accepted, a few levels down. */
const MAX_ROW_DEPTH = 90;

/** What an object holds: a state, nothing at all (both null), or a log that says something else than what was written. */
export interface OpenedLog {
  readonly plan: Plan | null;
  readonly damage: LogDamage | null;
}

/**
 * The state from the newest snapshot and the rows after it. Those rows are verified as they are folded, and the log has to reach as far as
 * the snapshot, the outbox and the newest signed head say that it did; older rows are for `verifyLog`.
 */
export function openLog(store: PlanStore, heads: HeadStore): OpenedLog {
  if (!store.exists()) return { plan: null, damage: null };
  const damaged = (seq: number, problem: LogDamage['problem'], detail: string): OpenedLog => ({
    plan: null,
    damage: { seq, problem, detail },
  });
  try {
    const found = store.damage();
    if (found !== null) return { plan: null, damage: found };
    const read = store.snapshotPlan();
    if (read.kind === 'unreadable') return damaged(1, 'state_differs', 'the snapshot of the state cannot be read');
    let plan = read.plan;
    if (plan !== null) {
      const at = plan;
      const row = readRow(store, at.seq);
      if (row === null && store.lastSeq() < at.seq)
        return damaged(store.lastSeq() + 1, 'truncated', `the state goes up to row ${at.seq} and the log ends with row ${store.lastSeq()}`);
      if (row?.hash !== at.headHash) return damaged(at.seq, 'changed', `row ${at.seq} is not the one that the state was made of`);
    }
    const org = plan?.org;
    let next = (plan?.seq ?? 0) + 1;
    for (const stored of store.bodies(next - 1, Number.MAX_SAFE_INTEGER)) {
      if (stored.seq !== next) return damaged(stored.seq, 'gap', `row ${stored.seq} stands where row ${next} belongs`);
      const row = parseRow(stored.body);
      if (row === null) return damaged(next, 'changed', `row ${next} cannot be read`);
      const before = plan;
      const head = before?.headHash ?? firstHead(row);
      const verdict = verifyChain(sha256, head, [row], { seq: next - 1, head });
      if (!verdict.valid) return damaged(verdict.seq, verdict.problem, `row ${next} is not the one that was written`);
      if (!isLogRow(row)) return damaged(next, 'changed', `row ${next} is of no known type`);
      plan = folded(before, row);
      if (plan === null) return damaged(next, 'changed', `row ${next} does not follow from the rows before it`);
      if (org !== undefined && plan.org !== org) return damaged(next, 'changed', `row ${next} is of another plan`);
      next += 1;
    }
    const last = next - 1;
    const known = Math.max(store.flushedSeq(), heads.newestSeq());
    if (last < known) return damaged(last + 1, 'truncated', `the log went up to row ${known} and ends with row ${last}`);
    const signed = heads.list().at(-1);
    if (signed !== undefined && readRow(store, signed.seq)?.hash !== signed.hash)
      return damaged(signed.seq, 'rewritten', `row ${signed.seq} is not the one that was signed`);
    return { plan, damage: null };
  } catch (cause) {
    return damaged(1, 'changed', `the storage of the log cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
}

/** Rows up to the first one that is no row any more, or with which they are so long together. */
export function* readableRows(
  store: PlanStore,
  afterSeq: number,
  limit: number,
  maxCharacters = Number.MAX_SAFE_INTEGER,
): Generator<LogRow> {
  let characters = 0;
  for (const { body } of store.bodies(afterSeq, limit)) {
    const row = parseRow(body);
    if (row === null) return;
    yield row;
    characters += body.length;
    if (characters >= maxCharacters) return;
  }
}

/** The last row that can be read; what stands behind it is not known. */
export function lastReadable(store: PlanStore): { readonly seq: number; readonly hash: string } {
  let last = { seq: 0, hash: '' };
  for (const { seq, hash } of readableRows(store, 0, Number.MAX_SAFE_INTEGER)) last = { seq, hash };
  return last;
}

/** Rows that are verified at once. */
const PART_ROWS = 250;

/**
 * Verifies the whole log of one plan, named from outside so that a log that was moved here from another plan does not pass: its chain, the
 * values that its rows refer to, and that the state which the object acts on (and the snapshot that the next start would begin with) is
 * what they say. A part of the rows at a time; in between the plan may go on, and the state is looked at when the last row was read.
 */
export function* verifyLog(
  store: PlanStore,
  of: { readonly org: string; readonly planId: string },
  acted: () => { readonly plan: Plan | null; readonly damage: LogDamage | null },
): Generator<void, LogVerdict> {
  const genesis = genesisHash(sha256, of.org, of.planId);
  const fold = new FoldCheck(store);
  let at = { seq: 0, head: genesis };
  for (;;) {
    const rows = [...readableRows(store, at.seq, PART_ROWS)];
    const verdict = verifyChain(sha256, genesis, rows, at);
    const entries = at.seq + verdict.entries;
    if (!verdict.valid) return { ...verdict, entries };
    for (const row of rows) fold.take(row);
    at = { seq: entries, head: verdict.head };
    if (rows.length < PART_ROWS) break;
    yield;
  }
  const { seq: entries, head } = at;
  const wrong = (seq: number, problem: LogProblem): LogVerdict => ({ valid: false, entries, head, seq, problem });
  if (store.lastSeq() > entries) return wrong(entries + 1, 'changed');
  const { plan, damage } = acted();
  if (damage !== null) return wrong(damage.seq, damage.problem);
  const found = fold.stateProblem(plan) ?? fold.valueProblem;
  return found === null ? { valid: true, entries, head } : wrong(found.seq, found.problem);
}

interface Found {
  readonly seq: number;
  readonly problem: LogProblem;
}

/** Folds the log again, row by row, and looks at the values that each row refers to. */
class FoldCheck {
  /** The first value that is gone, or is not the one that its name says. */
  valueProblem: Found | null = null;
  private readonly store: PlanStore;
  private told: Plan | null = null;
  private foldProblem: Found | null = null;
  private readonly kept: ReturnType<PlanStore['snapshotPlan']>;
  private isSnapshotTold = false;
  private readonly seen = new Set<string>();

  constructor(store: PlanStore) {
    this.store = store;
    this.kept = store.snapshotPlan();
  }

  take(row: LogRow): void {
    this.valueProblem ??= this.valueProblemOf(row);
    if (this.foldProblem !== null) return;
    this.told = isLogRow(row) ? folded(this.told, row) : null;
    if (this.told === null) this.foldProblem = { seq: row.seq, problem: 'changed' };
    if (this.kept.kind === 'read' && row.seq === this.kept.plan?.seq) this.isSnapshotTold = isSame(this.told, this.kept.plan);
  }

  /** After the last row: whether the state is what was told. */
  stateProblem(state: Plan | null): Found | null {
    if (this.foldProblem !== null) return this.foldProblem;
    if (!isSame(this.told, state)) return { seq: state?.seq ?? 1, problem: 'state_differs' };
    if (this.kept.kind === 'read' && (this.kept.plan === null || this.isSnapshotTold)) return null;
    return { seq: (this.kept.kind === 'read' ? this.kept.plan?.seq : undefined) ?? state?.seq ?? 1, problem: 'state_differs' };
  }

  private valueProblemOf(row: LogRow): Found | null {
    const digests = valuesIn(row);
    if (digests === null) return { seq: row.seq, problem: 'changed' };
    for (const digest of digests) {
      if (this.seen.has(digest)) continue;
      this.seen.add(digest);
      const bytes = this.store.blob(digest);
      if (bytes === null) return { seq: row.seq, problem: 'value_missing' };
      if (sha256(bytes) !== digest) return { seq: row.seq, problem: 'value_changed' };
    }
    return null;
  }
}

/** Null: a row that somebody else made, with members that no row of its type has. */
function valuesIn(row: LogRow): readonly string[] | null {
  try {
    return isLogRow(row) ? valuesOfRow(row) : null;
  } catch {
    return null;
  }
}

function isSame(told: Plan | null, other: Plan | null): boolean {
  return told !== null && other !== null && canonicalJson(told) === canonicalJson(other);
}

/** Whether the log is whole and the state is what it says: a snapshot that somebody put there instead is no state to act on. */
export function isSound(store: PlanStore, state: Plan | null): boolean {
  const rows = (): Iterable<LogRow> => readableRows(store, 0, Number.MAX_SAFE_INTEGER);
  if (state === null || !verifyChain(sha256, genesisHash(sha256, state.org, state.id), rows()).valid) return false;
  try {
    return isSame(replay(rows()), state);
  } catch {
    return false;
  }
}

function readRow(store: PlanStore, seq: number): LogRow | null {
  const [stored] = store.bodies(seq - 1, 1);
  return stored?.seq === seq ? parseRow(stored.body) : null;
}

/** Null: what is stored is no row of a log at all. Whether it is the row that was written is for the chain to say. */
function parseRow(body: string): LogRow | null {
  try {
    const row: unknown = JSON.parse(body);
    // Measured before anything walks through it: somebody else wrote it.
    const isRow = typeof row === 'object' && row !== null && !Array.isArray(row) && !exceedsDepth(row, MAX_ROW_DEPTH);
    return isRow && typeof Reflect.get(row, 'hash') === 'string' && Number.isSafeInteger(Reflect.get(row, 'seq')) ? (row as LogRow) : null;
  } catch {
    return null;
  }
}

/** Where the chain begins, by what the first row says of itself. */
function firstHead(row: LogRow): string {
  const data: unknown = row.data;
  const text = (name: string): string => (typeof data === 'object' && data !== null ? String(Reflect.get(data, name)) : '');
  return genesisHash(sha256, text('org'), text('plan_id'));
}

/** The fold is total over what the decider writes; what was written by somebody else may be anything. */
function folded(plan: Plan | null, row: LogRow): Plan | null {
  try {
    return evolve(plan, row);
  } catch {
    return null;
  }
}
