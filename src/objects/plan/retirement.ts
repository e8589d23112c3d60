import type { PlanRetirement, RetireOrder } from '../../app/ports.ts';
import { addMicroUsd } from '../../core/money.ts';
import { genesisHash, type LogDamage, verifyChain } from '../../core/plan/chain.ts';
import { sha256 } from '../sha256.ts';
import type { PlanLeases } from './plan-leases.ts';
import type { PlanStore } from './plan-store.ts';
import { readableRows } from './verify-log.ts';

/**
 * Closes a plan whose log is damaged: durable together with the lease rows, whatever becomes of the log afterwards. What it holds of the
 * budgets above is charged in full, since what of it was reserved is not known any more; silence never frees money. The same answer again
 * where it was closed before.
 */
export function retirePlan(
  { store, leases, transact }: { readonly store: PlanStore; readonly leases: PlanLeases; readonly transact: (write: () => void) => void },
  damage: LogDamage,
  { org, planId, by, reason, at, profile }: RetireOrder,
): PlanRetirement {
  const before = store.retirement();
  if (before !== null) return before;
  const lastGood = lastGoodOf(store, org, planId);
  const { problem, seq: firstBadSeq } = damage;
  let made: PlanRetirement | null = null;
  transact(() => {
    const spend = leases.retire({ org, id: planId }, profile);
    const chargedMicroUsd = addMicroUsd(...spend.days.map((each) => each.chargedMicroUsd));
    made = { org, planId, problem, firstBadSeq, lastGood, chargedMicroUsd, spend, by, reason, at };
    store.setRetirement(made);
    store.setDamage(damage);
  });
  if (made === null) throw new Error('the transaction wrote nothing');
  return made;
}

/** The end of the part of the chain that holds. */
function lastGoodOf(store: PlanStore, org: string, planId: string): PlanRetirement['lastGood'] {
  const genesis = genesisHash(sha256, org, planId);
  const verdict = verifyChain(sha256, genesis, readableRows(store, 0, Number.MAX_SAFE_INTEGER));
  return { seq: verdict.valid ? verdict.entries : verdict.entries - 1, hash: verdict.head };
}
