import type { GuardPolicy, Limit } from '../guard-policy.ts';
import { effectiveLimit } from '../guard-policy.ts';
import { addMicroUsd, formatUsdPair, MAX_AMOUNT_MICRO_USD, toUsd } from '../money.ts';
import type { Guard, GuardFacts, Objection, UpperRefusal } from './guard.ts';
import { limitApproval, remedy } from './limits.ts';

/**
 * Refused iff spent + reserved + coming cost > cap; equal is allowed. One rule covers three cases: free calls pass when the cap is
 * used up to the last cent; nothing passes, not even a free call, while an overrun or a lowered cap leaves the plan above its cap;
 * and a cap of 0 admits only free calls. Levels in order: plan, profile, then what a session or org node answered.
 */
export const budgetGuard: Guard = {
  name: 'budget_cap',
  events: { allowed: 'budget_allowed', refused: 'budget_blocked' },
  check: (policy, { costMicroUsd, shownName, unknownTools }, facts) => {
    if (costMicroUsd === null || !Number.isSafeInteger(costMicroUsd) || costMicroUsd < 0 || costMicroUsd > MAX_AMOUNT_MICRO_USD) {
      return { reason: `The price of tool '${shownName}' is not known. Remediation: set a price for it.`, approval: 'none' };
    }
    const totalMicroUsd = addMicroUsd(facts.spentMicroUsd, facts.overrunMicroUsd, facts.reservedMicroUsd, costMicroUsd);
    const own = checkPlan(policy, totalMicroUsd, facts);
    if (own !== null) return own;
    const above =
      checkProfile(policy, totalMicroUsd) ?? (facts.upperRefusal === null ? null : refusedAbove(policy, facts.upperRefusal, costMicroUsd));
    // An executor outside waits by asking again: there is no question that somebody here could answer for it.
    return above !== null && unknownTools === 'accept' ? { ...above, approval: 'none' } : above;
  },
};

function checkPlan({ planCapMicroUsd: bound }: GuardPolicy, totalMicroUsd: number, { grants }: GuardFacts): Objection | null {
  const granted = grants.costMicroUsd;
  const capMicroUsd = effectiveLimit(bound, granted);
  if (bound === null || capMicroUsd === null || totalMicroUsd <= capMicroUsd) return null;
  return exceeded(totalMicroUsd, capMicroUsd, remedy('raise', bound, granted, 'lower cost'), {
    approval: limitApproval(bound, granted),
    limitField: bound.field,
    exceededLevel: 'plan',
  });
}

/**
 * `safety.max_total_cost` bounds all plans of the org under the profile, so no approval in one plan raises it: the plan waits, and an
 * approval only tries again. What the others have spent is known where the money for all of them comes from; what this plan alone spends
 * beyond it is known here.
 */
function checkProfile({ profileCapMicroUsd: bound }: GuardPolicy, totalMicroUsd: number): Objection | null {
  return bound === null || totalMicroUsd <= bound.value ? null : exceededProfile(bound, totalMicroUsd);
}

function exceededProfile(bound: Pick<Limit, 'field' | 'value'>, allMicroUsd: number): Objection {
  return exceeded(
    allMicroUsd,
    bound.value,
    `raise safety.${bound.field} of the profile for new plans (this one keeps the limit that is locked in it), or lower cost`,
    {
      approval: 'limit',
      limitField: bound.field,
      exceededLevel: 'org',
    },
  );
}

/** A budget above is raised at its own level, after which the call is decided again; a human cannot grant it here. */
function refusedAbove({ profileCapMicroUsd }: GuardPolicy, refusal: UpperRefusal, costMicroUsd: number): Objection {
  if (refusal.kind === 'unreachable') {
    return { reason: 'The budgets above the plan could not be asked. Remediation: try again.', approval: 'none' };
  }
  const { level, capMicroUsd, usedMicroUsd, window } = refusal;
  const allMicroUsd = addMicroUsd(usedMicroUsd, costMicroUsd);
  if (level === 'profile')
    return exceededProfile({ field: profileCapMicroUsd?.field ?? 'max_total_cost', value: capMicroUsd }, allMicroUsd);
  const name = window === 'total' ? `budget of the ${level}` : `${window} budget of the ${level}`;
  return exceeded(allMicroUsd, capMicroUsd, `raise the ${name}, or lower cost`, {
    approval: 'limit',
    limitField: `${level}_budget`,
    exceededLevel: level,
  });
}

function exceeded(
  actualMicroUsd: number,
  capMicroUsd: number,
  remediation: string,
  rest: Pick<Objection, 'approval' | 'limitField' | 'exceededLevel'>,
): Objection {
  const [actual, cap] = formatUsdPair(actualMicroUsd, capMicroUsd);
  return {
    reason: `Budget cap exceeded: ${actual} > ${cap}. Remediation: ${remediation}.`,
    ...rest,
    limit: toUsd(capMicroUsd),
    actual: toUsd(actualMicroUsd),
  };
}
