import type { Limit } from '../guard-policy.ts';
import { isGrantable } from '../guard-policy.ts';
import type { ApprovalPower, Objection } from './guard.ts';

/** The objection of a count or time that reached its limit, in the source's words: `<what> reached: 10/10. Remediation: …`. */
export function limitReached(what: string, bound: Limit, granted: number, amounts: { actual: number; limit: number; unit?: string; reduce: string }): Objection {
  const { actual, limit, unit = '', reduce } = amounts;
  return {
    reason: `${what} reached: ${actual}${unit}/${limit}${unit}. Remediation: increase ${raisedWhere(bound, granted)}, ${reduce}${orAsk(bound, granted)}.`,
    approval: limitApproval(bound, granted),
    limitField: bound.field,
    limit,
    actual,
  };
}

/** A human can grant more of a limit, unless the org's own limit is what holds. */
export function limitApproval(bound: Limit, granted: number): ApprovalPower {
  return isGrantable(bound, granted) ? 'limit' : 'none';
}

/** The field to raise, and where when a plan cannot. */
export function raisedWhere(bound: Limit, granted: number): string {
  return isGrantable(bound, granted) ? bound.field : `${bound.field} in the policy of the org`;
}

export function orAsk(bound: Limit, granted: number): string {
  return isGrantable(bound, granted) ? ', or request human approval' : '';
}
