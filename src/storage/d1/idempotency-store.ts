import { and, eq, lt, lte } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/d1';
import type { IdempotencyStore } from '../../app/ports.ts';
import { claimsExpireBefore } from '../claim-age.ts';
import { d1Call } from './d1-call.ts';
import { idempotency } from './schema.ts';

export function makeIdempotencyStore(db: D1Database): IdempotencyStore {
  const orm = drizzle(db);
  return {
    async claim(claim) {
      const { bodyDigest, planId, createdAt } = claim;
      // One transaction: of two claims at once, one is stored and both read that one.
      const [, rows] = await d1Call('idempotency.claim', () =>
        orm.batch([
          orm
            .insert(idempotency)
            .values(claim)
            .onConflictDoUpdate({
              target: [idempotency.org, idempotency.keyId, idempotency.idempotencyKey],
              set: { bodyDigest, planId, createdAt },
              setWhere: lte(idempotency.createdAt, claimsExpireBefore(createdAt)),
            }),
          orm
            .select()
            .from(idempotency)
            .where(
              and(eq(idempotency.org, claim.org), eq(idempotency.keyId, claim.keyId), eq(idempotency.idempotencyKey, claim.idempotencyKey)),
            ),
        ]),
      );
      return rows[0] ?? claim;
    },

    async purge(before) {
      const result = await d1Call('idempotency.purge', () => orm.delete(idempotency).where(lt(idempotency.createdAt, before)).run());
      return result.meta.changes;
    },
  };
}
