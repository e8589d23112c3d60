import { maskJson, maskText } from '../audit/mask.ts';
import type { JsonObject } from '../json.ts';
import type { AuditEntry } from '../plan/audit.ts';
import { ORG_EVENT_TYPES, type OrgLogRow } from './org-event.ts';

/** The entry of a row that may have been tampered with; null where what is in it is no row that was written here. */
export function readOrgEntryOf(row: OrgLogRow): AuditEntry | null {
  try {
    return ORG_EVENT_TYPES.includes(row.type) ? orgAuditEntryOf(row) : null;
  } catch {
    return null;
  }
}

/**
 * The entry of a row, in the same form as a plan's: who (the actor with its key id), what (the change and the digest of its parameters,
 * with the values before and after), why (the reason). Every row has one. The values were masked when they were recorded; masking again
 * costs little and keeps the promise for rows that an older version wrote.
 */
export function orgAuditEntryOf(row: OrgLogRow): AuditEntry {
  const entry = (guardName: string, allowed: boolean, reason: string | null, context: object): AuditEntry => ({
    seq: row.seq,
    timestamp: row.at,
    eventType: row.type,
    guardName,
    result: allowed ? 'allowed' : 'denied',
    reason: reason === null ? null : maskText(reason),
    actor: row.actor,
    context: maskJson(JSON.parse(JSON.stringify({ ...context, trace_id: row.trace_id })) as JsonObject) as JsonObject,
    hash: row.hash,
  });
  switch (row.type) {
    case 'change_requested':
    case 'configuration_changed':
    case 'policy_changed':
    case 'profile_saved':
    case 'profile_deleted':
    case 'action_added':
    case 'project_created':
    case 'key_created':
    case 'key_revoked':
    case 'budget_caps_changed':
    case 'halt_set':
    case 'halt_cleared':
    case 'plan_retired':
      return entry('configuration', true, null, row.data);
    case 'change_refused':
    case 'change_unresolved': {
      const { reason, ...context } = row.data;
      return entry('configuration', false, reason, context);
    }
    case 'access_refused': {
      const { reason, ...context } = row.data;
      return entry('access', false, reason, context);
    }
    case 'budget_warning':
      return entry('budget_cap', true, null, row.data);
    case 'plan_created':
    case 'plan_head':
      return entry('plan_log', true, null, row.data);
    case 'plan_ended':
      return row.data.verified === false
        ? entry('plan_log', false, 'the log of the plan did not hold when it ended', row.data)
        : entry('plan_log', true, null, row.data);
    case 'trail_problem': {
      const { problem, ...context } = row.data;
      return entry('plan_log', false, problem, context);
    }
  }
}
