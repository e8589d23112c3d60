/** The source's `GuardrailAuditTrail` of a plan: what guards decided about calls and checks, as a bounded view of the log. */

import { CONFIG_KEYS, type ConfigKey } from '../api/config.ts';
import type { TrailEntry } from '../api/guard-service.ts';
import { maskJson } from '../core/audit/mask.ts';
import type { AuditEventType } from '../core/guards/guard.ts';
import type { JsonObject, JsonValue } from '../core/json.ts';
import { readEntryOf } from '../core/plan/audit.ts';
import type { LogRow } from '../core/plan/events.ts';
import type { PlanSnapshot } from '../core/plan/snapshot.ts';
import type { PlanPort } from './ports.ts';
import type { Services } from './services.ts';

export interface GuardTrail {
  /** The newest, oldest first. */
  readonly entries: readonly TrailEntry[];
  readonly maxEntries: number;
  /** Of all decisions ever, those that have left the view included. */
  readonly allowed: number;
  readonly denied: number;
}

/** Rows of the log that are read at once; one of a call with all its guards has about 5 kB. */
const PAGE = 500;

export async function readGuardTrail(org: string, snapshot: PlanSnapshot, port: PlanPort, services: Services): Promise<GuardTrail> {
  const { imported } = snapshot.plan.external ?? {};
  // What was loaded stays as bounded as it was; the setting of the org bounds every trail.
  const maxEntries = Math.min(await maxEntriesOf(org, services), imported?.maxEntries ?? Number.MAX_SAFE_INTEGER);
  let kept: TrailEntry[] = imported ? await importedEntries(imported.trail, port) : [];
  let allowed = imported?.allowed ?? 0;
  let denied = imported?.denied ?? 0;
  for (let from = 0; ; ) {
    const rows = (await port.log(from, PAGE)) ?? [];
    for (const row of rows) {
      const entry = trailEntryOf(row);
      if (entry === null) continue;
      if (entry.result === 'allowed') allowed += 1;
      else denied += 1;
      kept.push(entry);
    }
    if (kept.length > 2 * maxEntries) kept = kept.slice(-maxEntries);
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return { entries: kept.slice(-maxEntries), maxEntries, allowed, denied };
    from = last.seq;
  }
}

/** Guards decide about calls and checks; everything else that a log holds is in plan/guard/audit. */
function trailEntryOf(row: LogRow): TrailEntry | null {
  if (row.type !== 'call_decided' && row.type !== 'check_recorded') return null;
  const entry = readEntryOf(row);
  if (entry === null) return null;
  // Every guard's verdict on a call is in plan/guard/audit: here it is the one that decided.
  const { guards: _guards, ...context } = entry.context;
  return {
    timestamp: entry.timestamp,
    event_type: entry.eventType as AuditEventType,
    guard_name: entry.guardName,
    result: entry.result,
    reason: entry.reason,
    context: context as JsonObject,
  };
}

async function importedEntries(trail: { readonly inline: JsonValue } | { readonly blob: string }, port: PlanPort): Promise<TrailEntry[]> {
  const entries = 'inline' in trail ? trail.inline : await port.value(trail.blob);
  // Another service may have kept what this one would not.
  return Array.isArray(entries) ? (maskJson(entries) as unknown as TrailEntry[]) : [];
}

async function maxEntriesOf(org: string, { config }: Services): Promise<number> {
  const key = 'guardrails.audit_max_entries' satisfies ConfigKey;
  const value = await config.get(org, 'org', key);
  return typeof value === 'number' ? value : Number(CONFIG_KEYS[key].fallback);
}
