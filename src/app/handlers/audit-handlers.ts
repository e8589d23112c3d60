import { readEntryOf } from '../../core/plan/audit.ts';
import type { LogDamage } from '../../core/plan/chain.ts';
import { ok } from '../../core/result.ts';
import { exportPage } from '../export-log.ts';
import type { CallContext, Handlers } from '../handler.ts';
import type { PlanHeads } from '../ports.ts';
import type { Services } from '../services.ts';
import { planPort, unknownPlan } from './plan-handlers.ts';

export const auditHandlers = {
  '_cleveragents/audit/export': async ({ plan_id: planId, format, limit, after_seq: afterSeq = 0 }, call, services) => {
    const port = planPort(planId, call, services);
    const page = await exportPage(
      {
        org: call.principal.org,
        logId: planId,
        rows: (after, count) => port.log(after, count),
        heads: () => vouchedHeads(planId, call, services),
        signedAfter: (after) => signedHeads(planId, after, call, services),
        entryOf: readEntryOf,
      },
      { format, limit, afterSeq },
      services,
    );
    if (page === null) return unknownPlan(planId);
    return ok({
      plan_id: planId,
      format,
      content: page.content,
      rows: page.rows,
      signing: signingOf(services),
      ...logProblemOf(page.heads.damage),
      ...(page.nextAfterSeq === null ? {} : { next_after_seq: page.nextAfterSeq }),
    });
  },

  '_cleveragents/audit/head': async ({ plan_id: planId }, call, services) => {
    const heads = await vouchedHeads(planId, call, services);
    if (heads === null) return unknownPlan(planId);
    const { seq, hash, signed, damage } = heads;
    const newest = signed.at(-1);
    return ok({
      plan_id: planId,
      seq,
      hash,
      signed_head: newest === undefined ? null : { ...newest },
      signing: signingOf(services),
      ...logProblemOf(damage),
    });
  },
} satisfies Partial<Handlers>;

/** Signed heads behind a row, as they may be handed over. */
async function signedHeads(planId: string, after: number, call: CallContext, services: Services) {
  return (await vouchedHeads(planId, call, services, after))?.signed ?? [];
}

/**
 * The end of a plan's log for what is handed over: signed, unless rows are missing. Of a log that was cut no signature is shown that would
 * pass for its end; one of a later row stays, since it shows what is missing.
 */
async function vouchedHeads(planId: string, call: CallContext, services: Services, after?: number): Promise<PlanHeads | null> {
  const port = planPort(planId, call, services);
  // Read before the log: the index is never ahead of it.
  const known = (await services.planIndex.get(call.principal.org, planId))?.seq ?? 0;
  const behind = after === undefined ? {} : { after };
  const heads = await port.heads({ sign: false, ...behind });
  if (heads === null) return null;
  const { seq, damage } = heads;
  const cut: LogDamage | null =
    damage === null && seq < known ? { seq: seq + 1, problem: 'truncated', detail: `the index knows of row ${known}` } : damage;
  if (cut === null) return after === undefined ? port.heads({ sign: true }) : heads;
  return { ...heads, damage: cut, signed: cut.problem === 'truncated' ? heads.signed.filter((head) => head.seq > seq) : heads.signed };
}

/** For an answer that shows what can be read of a damaged log. */
export function logProblemOf(damage: LogDamage | null) {
  return damage === null ? {} : { log_problem: { problem: damage.problem, first_bad_seq: damage.seq, detail: damage.detail } };
}

export function signingOf({ auditKeys }: Services): 'on' | 'off' {
  return auditKeys.signs ? 'on' : 'off';
}
