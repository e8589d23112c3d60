import { maskJson } from '../../core/audit/mask.ts';
import type { JsonValue } from '../../core/json.ts';
import { toUsd } from '../../core/money.ts';
import type { Checkpoint } from '../../core/plan/checkpoint.ts';
import { ok } from '../../core/result.ts';
import type { Handlers } from '../handler.ts';
import { planPort, unknownPlan } from './plan-handlers.ts';

/** Reading what a plan could be taken back to. */
export const checkpointHandlers = {
  '_cleveragents/plan/checkpoint/list': async ({ plan_id: planId }, call, services) => {
    const found = await planPort(planId, call, services).checkpoints();
    if (found === null) return unknownPlan(planId);
    const { enabled, required, made, checkpoints } = found;
    return ok({
      plan_id: planId,
      enabled,
      required,
      made,
      dropped: made - checkpoints.length,
      checkpoints: checkpoints.toReversed().map(viewOf),
      next_page_token: '',
    });
  },
} satisfies Pick<Handlers, '_cleveragents/plan/checkpoint/list'>;

function viewOf({ id, seq, at, tree, phase, cursor, decision, counters, reason }: Checkpoint) {
  return {
    checkpoint_id: id,
    seq,
    at,
    tree,
    phase,
    decision_cursor: ('inline' in cursor ? maskJson(cursor.inline) : { digest: cursor.blob, bytes: cursor.bytes }) as JsonValue,
    decision_id: decision,
    counters: {
      attempt: counters.attempt,
      step: counters.step,
      calls_in_step: counters.callsInStep,
      calls_in_invocation: counters.callsInInvocation,
      decisions: counters.decisions,
      results: counters.results,
      spent_usd: toUsd(counters.spentMicroUsd),
    },
    reason,
  };
}
