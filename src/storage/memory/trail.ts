import type { AuditRow, AuditStore, IdempotencyClaim, IdempotencyStore } from '../../app/ports.ts';
import { claimsExpireBefore } from '../claim-age.ts';
import { Documents } from './documents.ts';

/** The audit trail in memory. */
export function makeMemoryAuditStore(): AuditStore {
  const entries = new Documents<AuditRow>();
  return {
    async append(rows) {
      for (const row of rows) entries.add(row, row.org, row.planId, String(row.seq));
    },
    async list(org, planId, afterSeq, limit) {
      return entries
        .where((row) => row.org === org && row.planId === planId && row.seq > afterSeq)
        .sort((a, b) => a.seq - b.seq)
        .slice(0, limit);
    },
  };
}

/** Idempotency claims in memory. */
export function makeMemoryIdempotencyStore(): IdempotencyStore {
  const claims = new Documents<IdempotencyClaim>();
  return {
    async claim(claim) {
      const key = [claim.org, claim.keyId, claim.idempotencyKey];
      const held = claims.get(...key);
      if (held !== null && held.createdAt > claimsExpireBefore(claim.createdAt)) return held;
      claims.set(claim, ...key);
      return claim;
    },
    async purge(before) {
      return claims.remove((claim) => claim.createdAt < before);
    },
  };
}
