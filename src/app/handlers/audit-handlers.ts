import { readEntryOf } from '../../core/plan/audit.ts';
import type { LogDamage } from '../../core/plan/chain.ts';
import { ok } from '../../core/result.ts';
import { exportPage } from '../export-log.ts';
import type { Handlers } from '../handler.ts';
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
        heads: () => port.heads({ sign: true }),
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
    const heads = await planPort(planId, call, services).heads({ sign: true });
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

/** For an answer that shows what can be read of a damaged log. */
export function logProblemOf(damage: LogDamage | null) {
  return damage === null ? {} : { log_problem: { problem: damage.problem, first_bad_seq: damage.seq, detail: damage.detail } };
}

export function signingOf({ auditKeys }: Services): 'on' | 'off' {
  return auditKeys.signs ? 'on' : 'off';
}
