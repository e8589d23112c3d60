import type { Services } from './services.ts';

/** A plan whose wake is this late is woken by the sweeper (design section 8). */
const OVERDUE_MS = 2 * 60_000;

/** Plans that one sweep wakes at most; the next goes on. */
const SWEEP_LIMIT = 200;

/** How long an idempotency key is remembered (design section 12). */
const IDEMPOTENCY_TTL_MS = 7 * 24 * 3600 * 1000;

/** Periodic care: wakes plans whose alarm was lost, and forgets old idempotency keys. */
export async function sweep(services: Services): Promise<void> {
  const now = services.clock.nowMs();
  const overdue = await services.planIndex.listOverdue(new Date(now - OVERDUE_MS).toISOString(), SWEEP_LIMIT);
  // One plan that cannot be reached must not keep the others asleep.
  await Promise.allSettled(overdue.map((row) => services.plans.plan(row.org, row.planId).wake()));
  await services.idempotency.purge(new Date(now - IDEMPOTENCY_TTL_MS).toISOString());
}
