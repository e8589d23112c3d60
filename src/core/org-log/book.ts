/**
 * How the org's log grows: pure over its tables, so that the object and the adapter in memory keep one book. The caller runs each function
 * in one transaction.
 */
import type { Sha256 } from '../digest.ts';
import { chainRow, genesisHash, type LogPosition, type LogVerdict, ORG_LOG_ID, verifyChain } from '../plan/chain.ts';
import type { OrgEventBodies, OrgFact, OrgLogEntry, OrgLogRow } from './org-event.ts';
import { factOfReport, type KnownPlan, knownAfter, type PlanReport } from './plan-report.ts';
import { isRefusalDue, mergeRefusals, type RefusalNote, refusalBucket, refusalFact } from './refusals.ts';

/** A change that was announced and of whose end nothing was heard yet. */
export interface OpenChange {
  readonly row: OrgFact & { readonly type: 'change_requested' };
  readonly at: string;
}

/** What the log is kept in. Everything but the rows follows from them, or is on its way to become one. */
export interface OrgLogTables {
  /** Null: the log has no row. */
  last(): OrgLogRow | null;
  append(row: OrgLogRow): void;
  /** Whether an entry of this id was recorded; remembers it. */
  firstSeen(id: string, at: string): boolean;
  plan(planId: string): KnownPlan | null;
  putPlan(plan: KnownPlan): void;
  /** Counted refusals by bucket: null = the first one is a row, and there was no other. */
  refusals(): ReadonlyMap<string, RefusalNote | null>;
  putRefusal(bucket: string, note: RefusalNote | null): void;
  dropRefusal(bucket: string): void;
  openChanges(): readonly OpenChange[];
  putChange(changeId: string, change: OpenChange): void;
  dropChange(changeId: string): void;
}

export interface BookContext {
  readonly sha256: Sha256;
  readonly org: string;
  /** ISO time of the transaction. */
  readonly now: string;
}

/** After this nobody will tell any more how a change ended. */
export const CHANGE_PATIENCE_MS = 5 * 60_000;

/** Records entries in their order; one whose id is known adds nothing. */
export function recordEntries(tables: OrgLogTables, context: BookContext, entries: readonly OrgLogEntry[]): void {
  recordDue(tables, context);
  for (const { id, fact } of entries) if (tables.firstSeen(id, context.now)) write(tables, context, fact);
}

/** Records refusals that were counted elsewhere and sent together under one id. */
export function recordRefusals(tables: OrgLogTables, context: BookContext, batchId: string, notes: readonly RefusalNote[]): void {
  recordDue(tables, context);
  if (!tables.firstSeen(batchId, context.now)) return;
  for (const note of notes) {
    const bucket = refusalBucket(note);
    const counted = tables.refusals().get(bucket);
    if (counted !== undefined) tables.putRefusal(bucket, mergeRefusals(counted, note));
    else {
      write(tables, context, refusalFact(note));
      tables.putRefusal(bucket, null);
    }
  }
}

/** Records where the logs of plans stand. Repeated reports add nothing; contradicting ones are recorded once each. */
export function recordReports(tables: OrgLogTables, context: BookContext, reports: readonly PlanReport[]): void {
  recordDue(tables, context);
  for (const report of reports) {
    const fact = factOfReport(tables.plan(report.plan_id), report);
    if (fact === null) continue;
    const isProblem = fact.type === 'trail_problem';
    if (!isProblem || tables.firstSeen(`${report.plan_id}.${fact.data.problem}.${report.hash}`, context.now)) write(tables, context, fact);
  }
}

/** What became due by time alone: the counts of minutes that are over, and changes of which nothing was heard. */
export function recordDue(tables: OrgLogTables, context: BookContext): void {
  for (const [bucket, note] of tables.refusals()) {
    if (bucketMinute(bucket) >= context.now.slice(0, 16)) continue;
    if (note !== null && isRefusalDue(note, context.now)) write(tables, context, refusalFact(note));
    tables.dropRefusal(bucket);
  }
  const before = new Date(Date.parse(context.now) - CHANGE_PATIENCE_MS).toISOString();
  for (const { row, at } of tables.openChanges()) {
    if (at > before) continue;
    const { change_id, change, operation, subject } = row.data;
    const reason = 'nobody told how it ended: look at what is in force';
    const trace = row.trace_id === undefined ? {} : { trace_id: row.trace_id };
    write(tables, context, {
      type: 'change_unresolved',
      actor: row.actor,
      data: { change_id, change, operation, subject, reason },
      ...trace,
    });
  }
}

/** When `recordDue` has something to do, in milliseconds; null: nothing waits for time. */
export function nextDueMs(tables: OrgLogTables): number | null {
  const minutes = [...tables.refusals().keys()].map((bucket) => Date.parse(`${bucketMinute(bucket)}:00.000Z`) + 60_000);
  const changes = tables.openChanges().map(({ at }) => Date.parse(at) + CHANGE_PATIENCE_MS);
  const due = [...minutes, ...changes];
  return due.length === 0 ? null : Math.min(...due);
}

/**
 * The rows behind a position (null: from the beginning): their chain, and that what is known of each plan is not less than they say. That
 * it is not more is for `isRecorded`, plan by plan, so that no part of a verification grows with the log.
 */
export function verifyOrgRows(
  sha256: Sha256,
  org: string,
  from: LogPosition | null,
  rows: readonly OrgLogRow[],
  plans: Pick<OrgLogTables, 'plan'>,
): LogVerdict {
  const genesis = genesisHash(sha256, org, ORG_LOG_ID);
  const at = from ?? { seq: 0, head: genesis };
  const verdict = verifyChain(sha256, genesis, rows, at);
  const entries = at.seq + verdict.entries;
  if (!verdict.valid) return { ...verdict, entries };
  const untold = rows.find((row) => !isKnown(plans, row));
  const { head } = verdict;
  return untold === undefined ? { valid: true, entries, head } : { valid: false, entries, head, seq: untold.seq, problem: 'state_differs' };
}

/** Whether what is known of a plan is what the row says, or what a later one said. */
function isKnown(plans: Pick<OrgLogTables, 'plan'>, row: OrgLogRow): boolean {
  if (row.type !== 'plan_created' && row.type !== 'plan_head' && row.type !== 'plan_ended') return true;
  const known = plans.plan(row.data.plan_id);
  if (known === null || known.seq < row.data.seq) return false;
  if (known.seq === row.data.seq && known.hash !== row.data.hash) return false;
  if (row.type === 'plan_created' && known.createdHash !== row.data.hash) return false;
  return row.type !== 'plan_ended' || known.ended;
}

/** Whether the row that is said to have told what is known of a plan says so. */
export function isRecorded(known: KnownPlan, row: OrgLogRow | null): boolean {
  if (row === null || (row.type !== 'plan_created' && row.type !== 'plan_head' && row.type !== 'plan_ended')) return false;
  const { plan_id, seq, hash } = row.data;
  return plan_id === known.plan_id && seq === known.seq && hash === known.hash && (known.ended || row.type !== 'plan_ended');
}

function write(tables: OrgLogTables, { sha256, org, now }: BookContext, fact: OrgFact): void {
  const last = tables.last();
  // Times never run back, whatever the clock does.
  const at = last === null || last.at < now ? now : last.at;
  const prev = last?.hash ?? genesisHash(sha256, org, ORG_LOG_ID);
  const row = chainRow(sha256, prev, (last?.seq ?? 0) + 1, { ...fact, at });
  tables.append(row);
  switch (fact.type) {
    case 'change_requested':
      tables.putChange(fact.data.change_id, { row: fact, at });
      break;
    case 'plan_created':
    case 'plan_head':
    case 'plan_ended': {
      const known = knownAfter(tables.plan(fact.data.plan_id), row);
      if (known !== null) tables.putPlan(known);
      break;
    }
    default:
      if ('change_id' in fact.data) tables.dropChange(changeIdOf(fact.data));
  }
}

function changeIdOf(data: OrgEventBodies[keyof OrgEventBodies]): string {
  return String(Reflect.get(data, 'change_id'));
}

/** The minute is the last part of a bucket's key. */
function bucketMinute(bucket: string): string {
  const parts = JSON.parse(bucket) as readonly string[];
  return parts[2] ?? '';
}
