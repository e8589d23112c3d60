import type { AuditRow, AuditStore, HeadsQuery, OrgLogHeads, OrgLogPage, OrgLogQuery } from '../../app/ports.ts';
import type { AuditKeys } from '../../core/audit/ed25519.ts';
import { signHead } from '../../core/audit/head.ts';
import { orgAuditEntryOf } from '../../core/org-log/audit.ts';
import {
  type BookContext,
  isRecorded,
  nextDueMs,
  recordDue,
  recordEntries,
  recordRefusals,
  recordReports,
  verifyOrgRows,
} from '../../core/org-log/book.ts';
import type { OrgLogEntry, OrgLogRow } from '../../core/org-log/org-event.ts';
import type { KnownPlan, ListedPlan, PlanReport } from '../../core/org-log/plan-report.ts';
import type { RefusalNote } from '../../core/org-log/refusals.ts';
import { selectRows } from '../../core/org-log/select.ts';
import { type LogPosition, type LogStretch, ORG_LOG_ID } from '../../core/plan/chain.ts';
import { HeadStore } from '../plan/head-store.ts';
import { sha256 } from '../sha256.ts';
import { OrgLogStore, UnreadableOrgLog } from './org-log-store.ts';

export interface OrgLogParts {
  readonly audit: AuditStore;
  readonly auditKeys: AuditKeys;
}

/** What the log needs from the object that it lives in. */
export interface OrgLogHost {
  /** Called when something is to be written to D1 or signed, never in a constructor. */
  parts(): OrgLogParts;
  nowMs(): number;
  transact(write: () => void): void;
  /** Work that nobody waits for. */
  background(work: Promise<void>): void;
  /** After each write: when `wake` is due may have changed. */
  changed(): void;
  report(problem: string, cause: unknown): void;
}

/** Whether it was recorded; `damaged`: the log cannot be continued, since somebody changed its end. */
export type Recorded = 'recorded' | 'damaged';

const FLUSH_RETRY_MS = 5_000;
const FLUSH_BATCH = 200;

/** While only plans report, the head is signed after so many rows; whatever else was recorded is signed at once. */
const SIGN_EVERY = 64;

/** Nobody repeats an entry after that time. */
const REMEMBER_MS = 7 * 24 * 60 * 60_000;

/** Rows that are verified at once: the object answers nothing else meanwhile. */
const STRETCH_ROWS = 1_000;

/** Rows that are looked at for one page. */
const MAX_SCANNED_ROWS = 5_000;

/**
 * The org's own log in its object (design section 3): hash-chained, append-only, everything in D1 as well.
 *
 * Promise: what is acknowledged is committed; the same entry again adds nothing; order and chain hold whatever comes at the same time,
 * since nothing waits between reading the end of the log and writing behind it.
 */
export class OrgLogBook {
  private readonly host: OrgLogHost;
  private readonly store: OrgLogStore;
  private readonly headStore: HeadStore;
  private flushing: Promise<void> | null = null;
  private flushPausedUntilMs = 0;
  private forgottenAtMs = 0;

  constructor(sql: SqlStorage, host: OrgLogHost) {
    this.host = host;
    this.store = new OrgLogStore(sql);
    this.headStore = new HeadStore(sql);
  }

  append(org: string, entries: readonly OrgLogEntry[]): Recorded {
    return this.record(org, (context) => recordEntries(this.store, context, entries));
  }

  refused(org: string, batchId: string, notes: readonly RefusalNote[]): Recorded {
    return this.record(org, (context) => recordRefusals(this.store, context, batchId, notes));
  }

  reported(org: string, reports: readonly PlanReport[]): Recorded {
    return this.record(org, (context) => recordReports(this.store, context, reports));
  }

  /** Null: the org has no log. */
  page(query: OrgLogQuery): OrgLogPage | null {
    if (!this.settle()) return null;
    const { rows, scannedSeq, isEnd } = selectRows(this.store.rows(query.afterSeq, MAX_SCANNED_ROWS), MAX_SCANNED_ROWS, query);
    return { rows, nextAfterSeq: isEnd ? null : scannedSeq };
  }

  plans(afterPlanId: string, limit: number): readonly ListedPlan[] {
    return this.store.plans(afterPlanId, limit).map((plan) => ({ ...plan, isRecorded: this.isRecorded(plan) }));
  }

  plan(planId: string): ListedPlan | null {
    const plan = this.store.exists() ? this.store.plan(planId) : null;
    return plan === null ? null : { ...plan, isRecorded: this.isRecorded(plan) };
  }

  /** Verified as the log of the org that is asked about, so that a log that was moved here does not pass. */
  verify(org: string, from: LogPosition | null): LogStretch | null {
    if (!this.settle()) return null;
    const rows = [...this.store.rows(from?.seq ?? 0, STRETCH_ROWS)];
    const verdict = verifyOrgRows(sha256, org, from, rows, this.store);
    const isWhole = rows.length === STRETCH_ROWS || !this.store.hasMoreThan(rows.at(-1)?.seq ?? from?.seq ?? 0);
    if (verdict.valid && !isWhole) {
      // Behind the last row that can be read there is one that cannot.
      return { valid: false, entries: verdict.entries, head: verdict.head, seq: verdict.entries + 1, problem: 'changed', isEnd: true };
    }
    return { ...verdict, isEnd: !verdict.valid || rows.length < STRETCH_ROWS };
  }

  /** Whether the log has the row that is said to have told of the plan; what was recorded before that was kept has none to look at. */
  private isRecorded(known: KnownPlan): boolean {
    if (known.rowSeq === null) return true;
    const [row] = this.store.rows(known.rowSeq - 1, 1);
    return isRecorded(known, row?.seq === known.rowSeq ? row : null);
  }

  async heads({ sign, after }: HeadsQuery): Promise<OrgLogHeads | null> {
    if (!this.settle()) return null;
    const last = this.lastReadable();
    if (sign && last !== null) await this.signRow(last);
    return { seq: last?.seq ?? 0, hash: last?.hash ?? '', signed: this.headStore.list(after), flushedSeq: this.store.flushedSeq() };
  }

  /** When `wake` is due; null: nothing waits for time. */
  wakeAtMs(): number | null {
    if (!this.store.exists()) return null;
    const isBehind = this.store.hasMoreThan(this.store.flushedSeq());
    const flushAt = isBehind ? Math.max(this.flushPausedUntilMs, this.host.nowMs() + FLUSH_RETRY_MS) : null;
    const due = [nextDueMs(this.store), flushAt].filter((at) => at !== null);
    return due.length === 0 ? null : Math.min(...due);
  }

  async wake(): Promise<void> {
    if (this.settle()) await this.flush();
  }

  /* ---------------------------------------------------------------- inside */

  private record(org: string, write: (context: BookContext) => void): Recorded {
    try {
      this.host.transact(() => {
        this.store.create(org);
        write(this.context(org));
      });
    } catch (cause) {
      if (!(cause instanceof UnreadableOrgLog)) throw cause;
      this.host.report('the log of the org is damaged', cause);
      return 'damaged';
    }
    this.afterWrite();
    return 'recorded';
  }

  /** Writes what became due by time. False: there is no log. */
  private settle(): boolean {
    const org = this.store.org();
    if (org === null) return false;
    const due = nextDueMs(this.store);
    if (due !== null && due <= this.host.nowMs()) this.record(org, (context) => recordDue(this.store, context));
    return true;
  }

  private context(org: string): BookContext {
    return { sha256, org, now: new Date(this.host.nowMs()).toISOString() };
  }

  private afterWrite(): void {
    const now = this.host.nowMs();
    if (now - this.forgottenAtMs > REMEMBER_MS / 7) {
      this.forgottenAtMs = now;
      this.store.forgetSeen(new Date(now - REMEMBER_MS).toISOString());
    }
    this.host.changed();
    if (now >= this.flushPausedUntilMs) this.host.background(this.flush());
  }

  /** Brings the entries in D1 up to the log and signs its end. Failures are retried by the alarm. */
  private flush(): Promise<void> {
    this.flushing ??= this.flushAll().finally(() => {
      this.flushing = null;
      this.host.changed();
    });
    return this.flushing;
  }

  private async flushAll(): Promise<void> {
    try {
      for (;;) {
        const org = this.store.org();
        const from = this.store.flushedSeq();
        const rows = org === null ? [] : [...this.store.rows(from, FLUSH_BATCH)];
        const last = rows.at(-1);
        if (org === null || last === undefined) return;
        // The cursor goes by what the rows say of themselves: one in another's place would lead it round and round.
        const misplaced = rows.findIndex((row, at) => row.seq !== from + 1 + at);
        if (misplaced >= 0) throw new Error(`another row stands where row ${from + 1 + misplaced} of the log of the org belongs`);
        await this.host.parts().audit.append(rows.map((row) => auditRowOf(org, row)));
        // Before the cursor moves: after a crash in between the batch comes again, and with it the signature.
        const isDue = rows.some((row) => row.type !== 'plan_head') || last.seq - this.headStore.newestSeq() >= SIGN_EVERY;
        if (isDue) await this.signRow(last);
        this.store.setFlushedSeq(last.seq);
      }
    } catch (cause) {
      this.flushPausedUntilMs = this.host.nowMs() + FLUSH_RETRY_MS;
      this.host.report('the log of the org could not be flushed; it is retried', cause);
    }
  }

  private async signRow({ seq, hash }: { readonly seq: number; readonly hash: string }): Promise<void> {
    const org = this.store.org();
    if (org === null || this.headStore.newestSeq() >= seq) return;
    try {
      const at = new Date(this.host.nowMs()).toISOString();
      const head = await signHead(this.host.parts().auditKeys, { v: 1, org, plan_id: ORG_LOG_ID, seq, hash, at });
      if (head !== null) this.headStore.add(head);
    } catch (cause) {
      this.host.report('the head of the log of the org could not be signed', cause);
    }
  }

  private lastReadable(): OrgLogRow | null {
    try {
      return this.store.last();
    } catch (cause) {
      if (!(cause instanceof UnreadableOrgLog)) throw cause;
      let last: OrgLogRow | null = null;
      for (const row of this.store.rows(0, Number.MAX_SAFE_INTEGER)) last = row;
      return last;
    }
  }
}

function auditRowOf(org: string, row: OrgLogRow): AuditRow {
  const { seq, timestamp: at, eventType, guardName, result, reason, actor, context, hash } = orgAuditEntryOf(row);
  return {
    org,
    planId: ORG_LOG_ID,
    seq,
    at,
    eventType,
    guardName,
    result,
    reason,
    actorKind: actor.kind,
    actorId: actor.id,
    context,
    hash,
  };
}
