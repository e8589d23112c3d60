import { Guardrails } from '../core/guard-policy.ts';

const { shape } = Guardrails;
const limits = shape.actor_limits.unwrap();

/** The core's guardrails with a meaning beside every member, for the reference and for flags. */
export const guardrailParams = Guardrails.extend({
  max_tool_calls_per_step: shape.max_tool_calls_per_step.meta({ description: 'Tool calls per step' }),
  max_total_cost: shape.max_total_cost.meta({ description: 'Cap on the cost of the plan, in US dollars' }),
  tool_allowlist: shape.tool_allowlist.meta({ description: 'Only these tools run without asking; an empty list allows none' }),
  tool_denylist: shape.tool_denylist.meta({ description: 'These tools always ask' }),
  require_approval_for_writes: shape.require_approval_for_writes.meta({ description: 'Every write asks' }),
  require_approval_for_apply: shape.require_approval_for_apply.meta({ description: 'Apply asks' }),
  max_steps: shape.max_steps.meta({ description: 'Steps of the plan' }),
  tool_budget: shape.tool_budget.meta({ description: 'Cap on the cost of tools, in US dollars' }),
  max_wall_clock_seconds: shape.max_wall_clock_seconds.meta({ description: 'Seconds of work; waiting for a human does not count' }),
  actor_limits: limits
    .extend({
      max_tool_calls_per_invocation: limits.shape.max_tool_calls_per_invocation.meta({ description: 'Tool calls per call of the actor' }),
      max_retries_per_failure: limits.shape.max_retries_per_failure.meta({ description: 'Retries per failure' }),
    })
    .optional(),
  required_confirmations: shape.required_confirmations.meta({ description: 'Tools that a human confirms each time' }),
}).meta({ description: 'Limits of this plan; they tighten its profile, never loosen it' });
