/** Whether a plan may be made now (design section 8): the kill switches above it, and what its org still has to spend. */
import { haltRefusal } from '../core/halt-word.ts';
import { formatUsd, toUsd } from '../core/money.ts';
import { haltOf } from '../core/plan/plan.ts';
import type { Refusal } from '../core/refusal.ts';
import type { Services } from './services.ts';

/**
 * Why no plan can be made in this session now; null: one can. Of the budgets only that of the org stands in the way: a session that has
 * nothing left still runs what is free, and its cap is met by the first call that costs something. What cannot be read is thrown as an
 * unavailable store, never told as used up.
 */
export async function admissionIssue(
  { org, sessionId }: { readonly org: string; readonly sessionId: string },
  services: Pick<Services, 'halts' | 'budgets'>,
): Promise<Refusal | null> {
  const [halted, spent] = await Promise.all([haltedAbove({ org, sessionId }, services), exhaustedOrg(org, services)]);
  return halted ?? spent;
}

/** A kill switch of the session or the org. */
export async function haltedAbove(
  { org, sessionId }: { readonly org: string; readonly sessionId: string },
  { halts }: Pick<Services, 'halts'>,
): Promise<Refusal | null> {
  const halt = haltOf({ halts: await halts.current(org, sessionId) });
  return halt === null ? null : haltRefusal(halt, { session_id: sessionId });
}

/** Only what is spent is gone: what others have leased and do not use comes back when it is asked for. */
export async function exhaustedOrg(org: string, { budgets }: Pick<Services, 'budgets'>): Promise<Refusal | null> {
  const { caps } = await budgets.node(org, { kind: 'org' }).show(null);
  const used = caps.find(({ capMicroUsd, spentMicroUsd }) => capMicroUsd !== null && spentMicroUsd >= capMicroUsd);
  if (used === undefined || used.capMicroUsd === null) return null;
  const { window, capMicroUsd, spentMicroUsd } = used;
  return {
    kind: 'budget_exceeded',
    message: `the ${window} budget of the org is used up: ${formatUsd(spentMicroUsd)} of ${formatUsd(capMicroUsd)} are spent. Remediation: raise the cap of the org${window === 'total' ? '' : ', or wait for the next window'}.`,
    details: { exceeded_level: 'org', window, cap_usd: toUsd(capMicroUsd), spent_usd: toUsd(spentMicroUsd) },
  };
}
