import type { AccessRefusalReason } from '../core/org-log/org-event.ts';
import { refusalNote } from '../core/org-log/refusals.ts';
import type { Principal } from '../core/principal.ts';
import type { Refusal } from '../core/refusal.ts';
import { actorOf } from './caller.ts';
import type { Services } from './services.ts';

/** What a foreign or invented id can be that of. */
const WALLED: ReadonlySet<string> = new Set(['plan', 'task', 'approval']);

/**
 * Tells the org's log that a caller was refused access, where a refusal is one: a right is missing, or what was asked for is not the org's.
 * Nobody waits for it. Other refusals (bad input, wrong state, exhausted budgets) are no refusals of access, and where they matter they
 * stand in the log of the plan; those of a change to the configuration (`ofChange`) are counted with them.
 */
export function noteRefusal(
  refusal: Refusal,
  operation: string,
  principal: Principal,
  services: Services,
  { ofChange }: { readonly ofChange: boolean } = { ofChange: false },
): void {
  const reason = reasonOf(refusal) ?? (ofChange ? changeReasonOf(refusal) : null);
  if (reason === null || principal.org === '') return;
  const subject = refusal.kind === 'not_found' ? refusal.id : null;
  services.orgLog.refused(principal.org, refusalNote(actorOf(principal), reason, operation, subject, nowOf(services)));
}

/** A key that the org knows and that opens nothing: revoked, expired, or given with another secret. */
export function noteDeadKey(
  key: { readonly org: string; readonly id: string; readonly name: string; readonly kind: Principal['kind'] },
  reason: Extract<AccessRefusalReason, 'key_revoked' | 'key_expired' | 'wrong_secret'>,
  operation: string,
  services: Services,
): void {
  const actor = { kind: key.kind, id: key.id, name: key.name };
  services.orgLog.refused(key.org, refusalNote(actor, reason, operation, null, nowOf(services)));
}

function reasonOf(refusal: Refusal): AccessRefusalReason | null {
  switch (refusal.kind) {
    case 'forbidden':
      if (refusal.details?.['needed_role'] !== undefined) return 'role_missing';
      return refusal.details?.['needed_kind'] === undefined ? 'not_permitted' : 'human_only';
    case 'unauthenticated':
      return 'key_revoked';
    case 'not_found':
      if (refusal.entity === 'tenant') return 'foreign_tenant';
      return WALLED.has(refusal.entity) ? 'unknown_plan' : null;
    case 'invalid':
    case 'invalid_state':
    case 'already_exists':
    case 'budget_exceeded':
    case 'plan_error':
    case 'too_large':
    case 'unavailable':
      return null;
  }
}

function changeReasonOf({ kind }: Refusal): AccessRefusalReason | null {
  switch (kind) {
    case 'invalid':
    case 'too_large':
      return 'change_invalid';
    case 'not_found':
      return 'change_target_unknown';
    case 'invalid_state':
    case 'already_exists':
      return 'change_conflicts';
    case 'forbidden':
    case 'unauthenticated':
    case 'budget_exceeded':
    case 'plan_error':
    case 'unavailable':
      return null;
  }
}

const nowOf = ({ clock }: Services): string => new Date(clock.nowMs()).toISOString();
