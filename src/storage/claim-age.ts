/** How long an idempotency key holds (design section 12). */
const CLAIM_TTL_MS = 7 * 24 * 60 * 60 * 1_000;

/** Claims made at this time or before no longer hold at `now`. Both are ISO 8601. */
export function claimsExpireBefore(now: string): string {
  return new Date(Date.parse(now) - CLAIM_TTL_MS).toISOString();
}
