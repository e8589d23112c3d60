import type { GuardPolicy, Guardrails } from '../guard-policy.ts';
import { withRevision } from '../guard-revision.ts';
import { toUsd } from '../money.ts';
import type { Plan } from './plan.ts';

/** Under what a child plan runs. */
export interface ChildTerms {
  /** That of the parent, as it is locked there: whatever has become of the profile since. */
  readonly profile: Plan['profile'];
  readonly policy: GuardPolicy;
}

/**
 * A child plan inherits (design sections 6, 7 and 10): the profile that is locked in its parent, and the guards in force there when it is
 * spawned, revisions and floor included. Its action's guardrails and what was carved for it (micro-USD; null: nothing is limited) only
 * tighten them, so nothing is allowed to a child that is not allowed to its parent.
 */
export function childTerms(
  { profile, policy }: Pick<Plan, 'profile' | 'policy'>,
  guardrails: Guardrails,
  carvedMicroUsd: number | null,
): ChildTerms {
  const own = withRevision(policy, guardrails, 'action');
  const carved = carvedMicroUsd === null ? {} : { tool_budget: toUsd(carvedMicroUsd) };
  return { profile, policy: withRevision(own, carved, 'plan') };
}
