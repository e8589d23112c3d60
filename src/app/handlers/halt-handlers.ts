import type { HaltView } from '../../api/halt.ts';
import type { PlanSnapshot } from '../../core/plan/snapshot.ts';
import { ok } from '../../core/result.ts';
import { actorOf, approvingCaller } from '../caller.ts';
import type { Handlers } from '../handler.ts';
import { commandPlan, readPlan } from './plan-handlers.ts';

/** The kill switch. The plan's own counts for itself; those of the levels above are told to it by their nodes. */
export const haltHandlers = {
  '_cleveragents/halt/set': async ({ level, plan_id: planId, reason }, call, services) => {
    const halted = await commandPlan(planId, call, services, { type: 'halt', by: actorOf(call.principal), level, epoch: null, reason });
    return halted.ok ? ok(haltViewOf(halted.value)) : halted;
  },

  '_cleveragents/halt/clear': async ({ level, plan_id: planId }, call, services) => {
    const caller = await approvingCaller(call.principal, services);
    if (!caller.ok) return caller;
    const cleared = await commandPlan(planId, call, services, { type: 'clear_halt', by: caller.value, level, epoch: null });
    return cleared.ok ? ok(haltViewOf(cleared.value)) : cleared;
  },

  '_cleveragents/halt/show': async ({ plan_id: planId }, call, services) => {
    const read = await readPlan(planId, call, services);
    return read.ok ? ok(haltViewOf(read.value)) : read;
  },
} satisfies Partial<Handlers>;

function haltViewOf({ plan }: PlanSnapshot): HaltView {
  const halts = plan.halts.flatMap(({ level, epoch, reason, by, at }) =>
    reason === null ? [] : [{ level, reason, epoch, halted_by: by.id, halted_at: at }],
  );
  return { level: 'plan', plan_id: plan.id, halted: halts.length > 0, halts };
}
