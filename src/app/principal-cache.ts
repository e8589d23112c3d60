import type { Principal } from '../core/principal.ts';

/** How long a verified key may be believed without asking the store again; so long a revocation may take (design section 3). */
export const PRINCIPAL_TTL_MS = 30_000;

/**
 * The verified keys of one isolate, by the hash of what was presented. Only successes are kept: a key that was just made works at once.
 * Bounded: the oldest entry leaves first.
 */
export interface PrincipalCache {
  get(tokenHash: string, nowMs: number): Principal | null;
  /** Believed until `PRINCIPAL_TTL_MS` have passed, or the key expires. */
  put(tokenHash: string, principal: Principal, nowMs: number, expiresAtMs: number | null): void;
  drop(tokenHash: string): void;
}

export function createPrincipalCache(limit = 1_000): PrincipalCache {
  const entries = new Map<string, { readonly principal: Principal; readonly untilMs: number }>();
  return {
    get(tokenHash, nowMs) {
      const entry = entries.get(tokenHash);
      if (entry === undefined) return null;
      if (nowMs < entry.untilMs) return entry.principal;
      entries.delete(tokenHash);
      return null;
    },
    put(tokenHash, principal, nowMs, expiresAtMs) {
      entries.delete(tokenHash);
      const oldest = entries.keys().next();
      if (entries.size >= limit && oldest.done !== true) entries.delete(oldest.value);
      entries.set(tokenHash, { principal, untilMs: Math.min(nowMs + PRINCIPAL_TTL_MS, expiresAtMs ?? Number.POSITIVE_INFINITY) });
    },
    drop(tokenHash) {
      entries.delete(tokenHash);
    },
  };
}
