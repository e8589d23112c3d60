import { isTerminal, type TaskState } from '../../a2a/model.ts';
import { maskText } from '../../core/audit/mask.ts';
import { toUsd } from '../../core/money.ts';
import { invalidField, invalidState } from '../../core/refusal.ts';
import { err, ok } from '../../core/result.ts';
import { actorOf } from '../caller.ts';
import type { Handlers } from '../handler.ts';
import { planPort, unknownPlan } from './plan-handlers.ts';

/**
 * Closing a plan that decides nothing any more, since its log was damaged. Whoever repeats it gets the same answer, and what was left undone
 * by a crash in between is done then.
 */
export const retireHandlers = {
  '_cleveragents/plan/retire': async ({ plan_id: planId, reason }, call, services) => {
    if (reason.trim() === '') return err(invalidField('reason', 'must not be blank'));
    const { org } = call.principal;
    const port = planPort(planId, call, services);
    const heads = await port.heads({ sign: false });
    if (heads === null) return unknownPlan(planId);
    if (heads.damage === null) {
      const message = `the log of plan ${planId} is whole: cancel the plan instead`;
      return err(invalidState(message, { plan_id: planId, reason: 'LOG_WHOLE' }));
    }
    if (heads.damage.retired === undefined) await call.changing();
    const at = new Date(services.clock.nowMs()).toISOString();
    const row = await services.planIndex.get(org, planId);
    const retired = await port.retire({ by: actorOf(call.principal), reason: maskText(reason), at, profile: row?.profile ?? null });
    if (retired === null) return unknownPlan(planId);
    if (row !== null) {
      // How a plan has ended stays; one that had not is cancelled.
      const end = isTerminal(row.taskState as TaskState) ? {} : { state: 'cancelled', taskState: 'canceled', updatedAt: at, statusAt: at };
      // Nobody waits for it any more: neither the sweeper, nor the kill switch, nor whoever lists what is to be approved.
      await services.planIndex.upsert({ ...row, ...end, wakeAt: null, pendingApprovals: 0 });
      await services.planIndex.closeSpending(row, retired.spend ?? { days: [] });
    }
    const { problem, firstBadSeq, lastGood, chargedMicroUsd, by } = retired;
    return ok({
      plan_id: planId,
      problem,
      first_bad_seq: firstBadSeq,
      last_good: lastGood,
      charged_usd: toUsd(chargedMicroUsd),
      retired_by: by.id,
      retired_at: retired.at,
    });
  },
} satisfies Partial<Handlers>;
