import type { BudgetRef } from '../../app/ports.ts';
import type { LedgerView } from '../../core/budget/lease-state.ts';
import type { LeaseRow } from '../../core/budget/protocol.ts';
import type { Day } from '../../core/budget/window.ts';
import { addMicroUsd } from '../../core/money.ts';
import type { Plan } from '../../core/plan/plan.ts';
import { isBuiltinProfileName } from '../../core/profile.ts';

/** Whom a plan has leases with, by what key each is stored, and what each is shown of the plan's books. */

/** A session in which the plan is no more: it has spent nothing there, and gives back everything. It may come back. */
const LEFT: LedgerView = { days: new Map(), ended: false };

/** The session always; all plans under the profile, unless it is one that can never have a limit on them. */
export function parentsOf({ sessionId, profile }: Plan): readonly BudgetRef[] {
  const session: BudgetRef = { kind: 'session', id: sessionId };
  return isBuiltinProfileName(profile.name) ? [session] : [session, { kind: 'profile', name: profile.name }];
}

/** Those that have to cover what is reserved. */
export function holdsFrom(plan: Plan): readonly BudgetRef[] {
  return parentsOf(plan).filter(({ kind }) => kind === 'session' || plan.policy.profileCapMicroUsd !== null);
}

/** No kind holds a colon. */
export function keyOf(ref: BudgetRef): string {
  return `${ref.kind}:${ref.kind === 'session' ? ref.id : ref.kind === 'profile' ? ref.name : ''}`;
}

export function refOf(key: string): BudgetRef {
  const name = key.slice(key.indexOf(':') + 1);
  return key.startsWith('session:') ? { kind: 'session', id: name } : { kind: 'profile', name };
}

export function isParentOf(plan: Plan, key: string): boolean {
  return parentsOf(plan).some((ref) => keyOf(ref) === key);
}

/** What the parent of a key is shown: all of the plan's charges and reservations, or nothing where it is no parent any more. */
export function viewOf(plan: Plan, key: string): LedgerView {
  if (!isParentOf(plan, key)) return LEFT;
  const days = new Map<Day, { settledMicroUsd: number; reservedMicroUsd: number }>();
  for (const { day, chargedMicroUsd } of plan.ledger.days) days.set(day, { settledMicroUsd: chargedMicroUsd, reservedMicroUsd: 0 });
  for (const { day, amountMicroUsd } of plan.ledger.reservations) {
    const { settledMicroUsd, reservedMicroUsd } = days.get(day) ?? { settledMicroUsd: 0, reservedMicroUsd: 0 };
    days.set(day, { settledMicroUsd, reservedMicroUsd: addMicroUsd(reservedMicroUsd, amountMicroUsd) });
  }
  return { days, ended: plan.terminal };
}

/** Everything that was granted and not returned, spent. */
export function spentView(rows: Iterable<LeaseRow>): LedgerView {
  const spent = [...rows].map(({ day, g, r, v }) => [day, { settledMicroUsd: g - r + v, reservedMicroUsd: 0 }] as const);
  return { days: new Map(spent), ended: true };
}

/** With no less charged on any day than is said of it. */
export function atLeast({ days, ended }: LedgerView, least: ReadonlyMap<Day, number>): LedgerView {
  const raised = new Map(days);
  for (const [day, microUsd] of least) {
    const { settledMicroUsd, reservedMicroUsd } = days.get(day) ?? { settledMicroUsd: 0, reservedMicroUsd: 0 };
    raised.set(day, { settledMicroUsd: Math.max(settledMicroUsd, microUsd), reservedMicroUsd });
  }
  return { days: raised, ended };
}
