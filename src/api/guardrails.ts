import * as z from 'zod';
import { capUsd, count, optional, text } from './schemas.ts';

const toolNames = z.array(text(200)).max(1000, 'at most 1000 entries');

/**
 * Guardrails as given to `plan/use`, actions and message metadata: the flat union of `AutomationGuard` and `AutonomyGuardrails`
 * without the runtime counters (guards.md; design section 12). `null` is no limit, 0 is a limit. They only tighten.
 */
export const guardrails = z
  .strictObject({
    max_tool_calls_per_step: optional(z.nullable(count(1_000_000)).meta({ description: 'Tool calls per step' })),
    max_total_cost: optional(z.nullable(capUsd).meta({ description: 'Cap on the cost of the plan, in US dollars' })),
    tool_allowlist: optional(z.nullable(toolNames).meta({ description: 'Only these tools run without asking; [] allows none' })),
    tool_denylist: optional(z.nullable(toolNames).meta({ description: 'These tools always ask' })),
    require_approval_for_writes: optional(z.boolean().meta({ description: 'Every write asks' })),
    require_approval_for_apply: optional(z.boolean().meta({ description: 'Apply asks' })),
    max_steps: optional(z.nullable(count(1_000_000)).meta({ description: 'Steps of the plan' })),
    tool_budget: optional(z.nullable(capUsd).meta({ description: 'Cap on the cost of tools, in US dollars' })),
    max_wall_clock_seconds: optional(
      z
        .nullable(z.number().min(0, 'must not be negative').max(31_536_000, 'must be at most a year'))
        .meta({ description: 'Seconds of work; waiting for a human does not count' }),
    ),
    actor_limits: optional(
      z.strictObject({
        max_tool_calls_per_invocation: optional(z.nullable(count(1_000_000))),
        max_retries_per_failure: optional(z.nullable(count(1000))),
      }),
    ),
    required_confirmations: optional(toolNames.meta({ description: 'Operations that a human confirms' })),
    audit_max_entries: optional(count(1_000_000).meta({ description: 'Entries kept in the bounded view of the trail' })),
  })
  .meta({ description: 'Limits of this plan; they tighten the profile, never loosen it' });
export type Guardrails = z.output<typeof guardrails>;
