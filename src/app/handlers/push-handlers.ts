import type { ResultOf } from '../../api/operations.ts';
import type { PushStatus } from '../../core/push/push-config.ts';
import { ok } from '../../core/result.ts';
import { actorOf } from '../caller.ts';
import type { Handlers } from '../handler.ts';
import { planPort, unknownPlan } from './plan-handlers.ts';

/** How the notifications of a plan are doing. Webhooks are registered by A2A's own operations. */
export const pushHandlers = {
  '_cleveragents/push/list': async ({ plan_id: planId }, call, services) => {
    const configs = await planPort(planId, call, services).pushes();
    return configs === null ? unknownPlan(planId) : ok({ plan_id: planId, configs: configs.map(viewOf) });
  },
  '_cleveragents/push/retry': async ({ plan_id: planId, config_id: configId = planId, sequence = null }, call, services) => {
    const retried = await planPort(planId, call, services).retryPush(configId, sequence, actorOf(call.principal));
    if (retried === null) return unknownPlan(planId);
    return retried.ok ? ok({ plan_id: planId, config: viewOf(retried.value) }) : retried;
  },
} satisfies Pick<Handlers, '_cleveragents/push/list' | '_cleveragents/push/retry'>;

function viewOf(status: PushStatus): ResultOf<'_cleveragents/push/retry'>['config'] {
  return {
    config_id: status.id,
    url: status.url,
    version: status.wire,
    created_at: status.createdAt,
    status: status.stopped === null ? 'active' : 'stopped',
    reason: status.stopped,
    delivered: status.delivered,
    waiting: status.waiting,
    tries: status.tries,
    next_try_at: status.nextTryAt,
    last_error: status.lastError,
    last_delivered_at: status.lastDeliveredAt,
    given_up: status.givenUp,
    dead_letters: status.deadLetters.map((letter) => ({
      delivery_id: letter.deliveryId,
      sequence: letter.sequence,
      seq: letter.seq,
      reason: letter.reason,
      tries: letter.tries,
      last_error: letter.lastError,
      given_up_at: letter.at,
      queued: letter.again,
    })),
  };
}
