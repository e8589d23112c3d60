import { and, asc, eq, gt } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/d1';
import type { AuditRow, AuditStore } from '../../app/ports.ts';
import { d1Call } from './d1-call.ts';
import { auditEntries } from './schema.ts';

/** D1 takes values of up to 2 MB; in UTF-16 units, so that even text outside ASCII stays below. */
const MAX_BATCH_UNITS = 600_000;

/** One statement whatever the number of rows: D1 binds at most 100 parameters. Rows that are there already stay as they are. */
const APPEND = `
  INSERT OR IGNORE INTO audit_entries
    (org, plan_id, seq, at, event_type, guard_name, result, reason, actor_kind, actor_id, context, hash)
  SELECT value ->> '$.org', value ->> '$.planId', value ->> '$.seq', value ->> '$.at', value ->> '$.eventType', value ->> '$.guardName',
    value ->> '$.result', value ->> '$.reason', value ->> '$.actorKind', value ->> '$.actorId', value -> '$.context', value ->> '$.hash'
  FROM json_each(?1)`;

export function makeAuditStore(db: D1Database): AuditStore {
  const orm = drizzle(db);
  return {
    async append(rows) {
      const batches = inBatches(rows);
      if (batches.length === 0) return;
      // D1 runs a batch as one transaction: either all rows are there afterwards or none is new.
      await d1Call('audit.append', () => db.batch(batches.map((batch) => db.prepare(APPEND).bind(batch))));
    },

    list(org, planId, afterSeq, limit) {
      return d1Call('audit.list', () =>
        orm
          .select()
          .from(auditEntries)
          .where(and(eq(auditEntries.org, org), eq(auditEntries.planId, planId), gt(auditEntries.seq, afterSeq)))
          .orderBy(asc(auditEntries.seq))
          .limit(limit)
          .all(),
      );
    },
  };
}

/** The rows as JSON arrays that each fit one parameter. */
function inBatches(rows: readonly AuditRow[]): readonly string[] {
  const batches: string[] = [];
  let texts: string[] = [];
  let units = 0;
  for (const row of rows) {
    const text = JSON.stringify(row);
    if (texts.length > 0 && units + text.length > MAX_BATCH_UNITS) {
      batches.push(`[${texts.join(',')}]`);
      texts = [];
      units = 0;
    }
    texts.push(text);
    units += text.length;
  }
  if (texts.length > 0) batches.push(`[${texts.join(',')}]`);
  return batches;
}
