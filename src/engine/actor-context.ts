import type { JsonValue } from '../core/json.ts';
import type { FinishedStep, Plan, Stored } from '../core/plan/plan.ts';
import type { StepResult } from '../core/plan/proposal.ts';
import type { ActorContext } from './actors/actor.ts';

/** What an actor is told: a projection of the plan, so that asking again after a crash tells it the same. */
export function actorContextOf(plan: Plan, blob: (digest: string) => Uint8Array | null): ActorContext {
  const results = new Map(plan.results.map((finished) => [finished.stepId, stepResultOf(finished, blob)]));
  return {
    action: plan.action,
    arguments: resolveStored(plan.arguments, blob),
    phase: plan.phase === 'strategize' ? 'strategize' : 'execute',
    cursor: plan.cursor,
    results,
    input: resolveStored(plan.input, blob),
    messageIds: plan.messages.flatMap(({ role, messageId }) => (role === 'user' ? [messageId] : [])),
    guidance: plan.guidance.slice(plan.guidanceSeen),
    earlierGuidance: plan.guidance.slice(0, plan.guidanceSeen),
    attempt: plan.attempt,
    last: plan.step === null ? null : (results.get(plan.step.id) ?? { status: 'succeeded', value: null }),
  };
}

function stepResultOf(finished: FinishedStep, blob: (digest: string) => Uint8Array | null): StepResult {
  return {
    status: finished.status,
    // Read when it is asked for: a plan may have far more results than fit into memory at once.
    get value() {
      const values = finished.values.map((value) => resolveStored(value, blob));
      return values.length === 1 ? (values[0] ?? null) : values;
    },
    ...(finished.reason === null ? {} : { reason: finished.reason }),
  };
}

/** The value behind what the log holds: inline, or the JSON in a blob of the plan. A lost blob is a bug of the store and is said so. */
export function resolveStored<T extends JsonValue>(stored: Stored<T>, blob: (digest: string) => Uint8Array | null): T {
  if ('inline' in stored) return stored.inline;
  const bytes = blob(stored.blob);
  if (bytes === null) throw new Error(`blob ${stored.blob} of the plan is lost`);
  return JSON.parse(new TextDecoder().decode(bytes)) as T;
}
