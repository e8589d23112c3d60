import type { OrgLog } from '../../app/ports.ts';
import type { AuditKeys } from '../../core/audit/ed25519.ts';
import { type SignedHead, signHead } from '../../core/audit/head.ts';
import type { Sha256 } from '../../core/digest.ts';
import {
  type BookContext,
  type OpenChange,
  type OrgLogTables,
  recordDue,
  recordEntries,
  recordRefusals,
  recordReports,
  verifyOrgRows,
} from '../../core/org-log/book.ts';
import type { OrgLogRow } from '../../core/org-log/org-event.ts';
import type { KnownPlan } from '../../core/org-log/plan-report.ts';
import type { RefusalNote } from '../../core/org-log/refusals.ts';
import { selectRows } from '../../core/org-log/select.ts';
import { ORG_LOG_ID } from '../../core/plan/chain.ts';

export interface MemoryOrgLogParts {
  readonly sha256: Sha256;
  readonly nowMs: () => number;
  /** Absent: nothing is signed. */
  readonly auditKeys?: AuditKeys;
}

/** The orgs' logs in memory. Nothing writes them to D1, and they are signed when somebody asks for it. */
export function makeMemoryOrgLog({ sha256, nowMs, auditKeys }: MemoryOrgLogParts): OrgLog {
  const books = new Map<string, MemoryTables>();
  let batches = 0;
  const record = (org: string, write: (tables: OrgLogTables, context: BookContext) => void): void => {
    const tables = books.get(org) ?? new MemoryTables();
    books.set(org, tables);
    write(tables, { sha256, org, now: new Date(nowMs()).toISOString() });
  };
  const read = (org: string): MemoryTables | null => {
    if (books.has(org)) record(org, recordDue);
    return books.get(org) ?? null;
  };
  return {
    append: async (org, entry) => record(org, (tables, context) => recordEntries(tables, context, [entry])),
    refused(org, note) {
      batches += 1;
      record(org, (tables, context) => recordRefusals(tables, context, `batch ${batches}`, [note]));
    },
    report: async (org, reports) => record(org, (tables, context) => recordReports(tables, context, reports)),
    async page(org, query) {
      const tables = read(org);
      if (tables === null) return null;
      const rows = tables.rows.filter(({ seq }) => seq > query.afterSeq);
      const selected = selectRows(rows, rows.length + 1, query);
      return { rows: selected.rows, nextAfterSeq: selected.isEnd ? null : selected.scannedSeq };
    },
    async verify(org, from = null) {
      const tables = read(org);
      if (tables === null) return null;
      const rows = tables.rows.filter(({ seq }) => seq > (from?.seq ?? 0));
      return { ...verifyOrgRows(sha256, org, from, rows, tables), isEnd: true };
    },
    async heads(org, { sign, after }) {
      const tables = read(org);
      if (tables === null) return null;
      const { seq, hash } = tables.last() ?? { seq: 0, hash: '' };
      if (sign && auditKeys !== undefined && seq > 0 && tables.signed.at(-1)?.seq !== seq) {
        const claim = { v: 1, org, plan_id: ORG_LOG_ID, seq, hash, at: new Date(nowMs()).toISOString() } as const;
        const head = await signHead(auditKeys, claim);
        if (head !== null) tables.signed.push(head);
      }
      return { seq, hash, signed: tables.signed.filter((head) => head.seq > (after ?? 0)), flushedSeq: 0 };
    },
    plan: async (org, planId) => {
      const known = books.get(org)?.plan(planId) ?? null;
      return known === null ? null : { ...known, isRecorded: true };
    },
    plans: async (org, afterPlanId, limit) =>
      [...(books.get(org)?.known.values() ?? [])]
        .filter((plan) => plan.plan_id > afterPlanId)
        .sort((a, b) => (a.plan_id < b.plan_id ? -1 : 1))
        .slice(0, limit)
        .map((plan) => ({ ...plan, isRecorded: true })),
  };
}

class MemoryTables implements OrgLogTables {
  readonly rows: OrgLogRow[] = [];
  readonly signed: SignedHead[] = [];
  readonly known = new Map<string, KnownPlan>();
  private readonly seen = new Set<string>();
  private readonly counted = new Map<string, RefusalNote | null>();
  private readonly changes = new Map<string, OpenChange>();

  last(): OrgLogRow | null {
    return this.rows.at(-1) ?? null;
  }

  append(row: OrgLogRow): void {
    // As it would be read back.
    this.rows.push(JSON.parse(JSON.stringify(row)) as OrgLogRow);
  }

  firstSeen(id: string): boolean {
    const isFirst = !this.seen.has(id);
    this.seen.add(id);
    return isFirst;
  }

  plan(planId: string): KnownPlan | null {
    return this.known.get(planId) ?? null;
  }

  putPlan(plan: KnownPlan): void {
    this.known.set(plan.plan_id, plan);
  }

  refusals(): ReadonlyMap<string, RefusalNote | null> {
    return new Map(this.counted);
  }

  putRefusal(bucket: string, note: RefusalNote | null): void {
    this.counted.set(bucket, note);
  }

  dropRefusal(bucket: string): void {
    this.counted.delete(bucket);
  }

  openChanges(): readonly OpenChange[] {
    return [...this.changes.values()];
  }

  putChange(changeId: string, change: OpenChange): void {
    this.changes.set(changeId, change);
  }

  dropChange(changeId: string): void {
    this.changes.delete(changeId);
  }
}
