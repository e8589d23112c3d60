import { writeAuditPage } from '../../api/audit-file.ts';
import { CSV_HEADER, csvLine } from '../../core/audit/csv.ts';
import { readEntryOf } from '../../core/plan/audit.ts';
import type { LogDamage } from '../../core/plan/chain.ts';
import type { LogRow } from '../../core/plan/events.ts';
import { ok } from '../../core/result.ts';
import type { Handlers } from '../handler.ts';
import type { PlanPort } from '../ports.ts';
import { planPort, unknownPlan } from './plan-handlers.ts';

/** A page ends after the row with which it is this long, whatever its limit. */
const MAX_PAGE_CHARACTERS = 1_000_000;

/** Rows that are read at once: together they stay far below what a message between objects may hold. */
const READ_ROWS = 50;

export const auditHandlers = {
  '_cleveragents/audit/export': async ({ plan_id: planId, format, limit, after_seq: afterSeq = 0 }, call, services) => {
    const { auditKeys: keys, sha256, clock } = services;
    const port = planPort(planId, call, services);
    const rows = await readRows(port, afterSeq, limit);
    if (rows === null) return unknownPlan(planId);
    const lastSeq = rows.at(-1)?.seq ?? afterSeq;
    // Signed after the rows were read: if the plan has moved on meanwhile, what is new belongs to one more page.
    const heads = await port.heads({ sign: true });
    if (heads === null) return unknownPlan(planId);
    const isLast = heads.seq <= lastSeq || rows.length === 0;
    const org = call.principal.org;
    const content =
      format === 'csv'
        ? `${afterSeq === 0 ? CSV_HEADER : ''}${rows
            .flatMap((row) => readEntryOf(row) ?? [])
            .map((entry) => csvLine(planId, entry))
            .join('')}`
        : await writeAuditPage(
            {
              org,
              planId,
              isFirst: afterSeq === 0,
              rows,
              heads: isLast ? heads.signed : null,
              afterSeq,
              at: new Date(clock.nowMs()).toISOString(),
            },
            { sha256, keys },
          );
    return ok({
      plan_id: planId,
      format,
      content,
      rows: rows.length,
      signing: signingOf(services),
      ...logProblemOf(heads.damage),
      ...(isLast ? {} : { next_after_seq: lastSeq }),
    });
  },

  '_cleveragents/audit/head': async ({ plan_id: planId }, call, services) => {
    const heads = await planPort(planId, call, services).heads({ sign: true });
    if (heads === null) return unknownPlan(planId);
    const { seq, hash, signed, damage } = heads;
    const newest = signed.at(-1);
    return ok({
      plan_id: planId,
      seq,
      hash,
      signed_head: newest === undefined ? null : { ...newest },
      signing: signingOf(services),
      ...logProblemOf(damage),
    });
  },
} satisfies Partial<Handlers>;

/** For an answer that shows what can be read of a damaged log. */
export function logProblemOf(damage: LogDamage | null) {
  return damage === null ? {} : { log_problem: { problem: damage.problem, first_bad_seq: damage.seq, detail: damage.detail } };
}

function signingOf({ auditKeys }: Parameters<Handlers['_cleveragents/audit/head']>[2]): 'on' | 'off' {
  return auditKeys.signs ? 'on' : 'off';
}

/** Rows behind a position, until there are enough of them or they are long enough; null: no such plan. */
async function readRows(port: PlanPort, afterSeq: number, limit: number): Promise<readonly LogRow[] | null> {
  const rows: LogRow[] = [];
  let characters = 0;
  while (rows.length < limit && characters < MAX_PAGE_CHARACTERS) {
    const wanted = Math.min(READ_ROWS, limit - rows.length);
    const read = await port.log(rows.at(-1)?.seq ?? afterSeq, wanted);
    if (read === null) return null;
    for (const row of read) {
      if (characters >= MAX_PAGE_CHARACTERS) return rows;
      rows.push(row);
      characters += JSON.stringify(row).length;
    }
    if (read.length < wanted) break;
  }
  return rows;
}
