import { CONFIG_KEYS, type ConfigKey } from '../../api/config.ts';
import { type AuditEntry, entriesOfGuards, readEntryOf } from '../../core/plan/audit.ts';
import { ok } from '../../core/result.ts';
import { guardViewOf } from '../guard-view.ts';
import type { CallContext, Handlers } from '../handler.ts';
import type { Services } from '../services.ts';
import { entryView, verdictView } from '../trail-view.ts';
import { verifyTrail } from '../verify-trail.ts';
import { logProblemOf } from './audit-handlers.ts';
import { planPort, readPlan, unknownPlan } from './plan-handlers.ts';

/** Rows that are read at once while a trail is put together. */
const LOG_PAGE = 2000;

export const guardHandlers = {
  '_cleveragents/plan/guard/show': async (params, call, services) => {
    const read = await readPlan(params.plan_id, call, services);
    if (!read.ok) return read;
    return ok(guardViewOf(read.value.plan));
  },

  '_cleveragents/plan/guard/audit': async (params, call, services) => {
    const port = planPort(params.plan_id, call, services);
    const maxEntries = await maxEntriesOf(call, services);
    const heads = await port.heads({ sign: false });
    if (heads === null) return unknownPlan(params.plan_id);
    let allowed = 0;
    let denied = 0;
    let kept: AuditEntry[] = [];
    for (let from = 0; ; ) {
      const rows = await port.log(from, LOG_PAGE);
      if (rows === null) return unknownPlan(params.plan_id);
      for (const row of rows) {
        const entry = readEntryOf(row);
        if (entry === null) continue;
        if (entry.result === 'allowed') allowed += 1;
        else denied += 1;
        kept.push(entry);
      }
      if (kept.length > 2 * maxEntries) kept = kept.slice(-maxEntries);
      const last = rows.at(-1);
      if (last === undefined || rows.length < LOG_PAGE) break;
      from = last.seq;
    }
    kept = kept.slice(-maxEntries);
    const behind = kept.filter((entry) => entry.seq > (params.after_seq ?? 0));
    const entries = behind.slice(0, params.limit);
    const truncated = entries.length < behind.length;
    const last = entries.at(-1);
    return ok({
      plan_id: params.plan_id,
      allowed_count: allowed,
      denied_count: denied,
      evicted_count: allowed + denied - kept.length,
      entries: (params.expand === true ? entries.flatMap(entriesOfGuards) : entries).map(entryView),
      truncated,
      ...logProblemOf(heads.damage),
      ...(truncated && last !== undefined ? { next_after_seq: last.seq } : {}),
    });
  },

  '_cleveragents/plan/guard/audit/verify': async (params, call, services) => {
    const verdict = await verifyTrail(call.principal.org, params.plan_id, services);
    if (verdict === null) return unknownPlan(params.plan_id);
    return ok({ plan_id: params.plan_id, ...verdictView(verdict) });
  },
} satisfies Partial<Handlers>;

/** The oldest entries leave this view first; the log, D1 and an export keep all of them. */
async function maxEntriesOf({ principal }: CallContext, { config }: Services): Promise<number> {
  const key = 'guardrails.audit_max_entries' satisfies ConfigKey;
  const value = await config.get(principal.org, 'org', key);
  return typeof value === 'number' ? value : Number(CONFIG_KEYS[key].fallback);
}
