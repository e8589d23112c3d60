import type { Limit } from '../guard-policy.ts';
import { isGrantable } from '../guard-policy.ts';
import type { ApprovalPower, Objection } from './guard.ts';

/** The objection of a count or time that reached its limit, in the source's words: `<what> reached: 10/10. Remediation: …`. */
export function limitReached(
  what: string,
  bound: Limit,
  granted: number,
  amounts: { actual: number; limit: number; unit?: string; reduce: string },
): Objection {
  const { actual, limit, unit = '', reduce } = amounts;
  return {
    reason: `${what} reached: ${actual}${unit}/${limit}${unit}. Remediation: ${remedy('increase', bound, granted, reduce)}.`,
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

/** What to do about a limit: the field to raise, a way to need less, and a human where a human can grant more. */
export function remedy(verb: 'increase' | 'raise', bound: Limit, granted: number, needLess: string): string {
  return isGrantable(bound, granted)
    ? `${verb} ${bound.field}, ${needLess}, or request human approval`
    : `${verb} ${bound.field} in the policy of the org, or ${needLess}`;
}
