/** Whether a plan may be made now (design section 8): the kill switches above it, and what its session and its org still have to spend. */
import { haltRefusal } from '../core/halt-word.ts';
import { formatUsd, toUsd } from '../core/money.ts';
import { haltOf } from '../core/plan/plan.ts';
import type { Refusal } from '../core/refusal.ts';
import type { BudgetRef } from './ports.ts';
import type { Services } from './services.ts';

/** Why no plan can be made in this session now; null: one can. What cannot be read is thrown as an unavailable store, never told as used up. */
export async function admissionIssue(
  { org, sessionId }: { readonly org: string; readonly sessionId: string },
  services: Pick<Services, 'halts' | 'budgets'>,
): Promise<Refusal | null> {
  const [words, ofSession, ofOrg] = await Promise.all([
    services.halts.current(org, sessionId),
    exhausted(org, { kind: 'session', id: sessionId }, services),
    exhausted(org, { kind: 'org' }, services),
  ]);
  const halt = haltOf({ halts: words });
  return halt === null ? (ofSession ?? ofOrg) : haltRefusal(halt, { session_id: sessionId });
}

/** Only what is spent is gone: what others have leased and do not use comes back when it is asked for. */
async function exhausted(org: string, ref: BudgetRef, { budgets }: Pick<Services, 'budgets'>): Promise<Refusal | null> {
  const { caps } = await budgets.node(org, ref).show(null);
  const used = caps.find(({ capMicroUsd, spentMicroUsd }) => capMicroUsd !== null && spentMicroUsd >= capMicroUsd);
  if (used === undefined || used.capMicroUsd === null) return null;
  const { window, capMicroUsd, spentMicroUsd } = used;
  return {
    kind: 'budget_exceeded',
    message: `the ${window} budget of the ${ref.kind} is used up: ${formatUsd(spentMicroUsd)} of ${formatUsd(capMicroUsd)} are spent. Remediation: raise the cap of the ${ref.kind}${window === 'total' ? '' : ', or wait for the next window'}.`,
    details: { exceeded_level: ref.kind, window, cap_usd: toUsd(capMicroUsd), spent_usd: toUsd(spentMicroUsd) },
  };
}
