import type { GuardVerdict } from '../../guards/guard.ts';
import type { JsonObject } from '../../json.ts';
import { parseCostUsd, toUsd } from '../../money.ts';

/**
 * What a refusal by a limit says as data, for the question that is asked about it: the limit that bound, its value and what stands against
 * it (units as in the limit: US dollars, seconds, counts). For money also the level, and `spent`: what is charged and reserved there
 * already, without the call that was refused.
 */
export function limitDetails({ limitField, limit, actual, exceededLevel }: GuardVerdict, estimateMicroUsd: number): JsonObject | null {
  if (limit === undefined) return null;
  const used = exceededLevel === undefined ? null : parseCostUsd(actual);
  return {
    ...(limitField === undefined ? {} : { limit_field: limitField }),
    limit,
    ...(actual === undefined ? {} : { actual }),
    ...(exceededLevel === undefined ? {} : { exceeded_level: exceededLevel }),
    ...(used?.ok === true ? { spent: toUsd(used.value - estimateMicroUsd) } : {}),
  };
}
