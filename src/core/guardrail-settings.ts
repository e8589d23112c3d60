import { type Guardrails, parseGuardrails } from './guard-policy.ts';
import type { JsonValue } from './json.ts';
import type { Refusal } from './refusal.ts';
import type { Result } from './result.ts';

/**
 * Guardrails as settings of an org or a project, one per member: `guardrails.max_steps`. They bind every plan of the org or project and
 * combine with everything else to the strictest (design section 7).
 */
export const GUARDRAIL_SETTINGS = [
  'max_tool_calls_per_step',
  'max_total_cost',
  'tool_allowlist',
  'tool_denylist',
  'require_approval_for_writes',
  'require_approval_for_apply',
  'max_steps',
  'tool_budget',
  'max_wall_clock_seconds',
  'actor_limits.max_tool_calls_per_invocation',
  'actor_limits.max_retries_per_failure',
  'required_confirmations',
] as const;

export type GuardrailSetting = (typeof GUARDRAIL_SETTINGS)[number];

const PREFIX = 'guardrails.';
const NESTED = 'actor_limits.';

/** The guardrails that the settings of one scope make. A stored value that cannot be read is refused: a limit must not vanish. */
export function guardrailsFromSettings(values: ReadonlyMap<string, JsonValue>): Result<Guardrails, Refusal> {
  const flat: [string, JsonValue][] = [];
  const actor: [string, JsonValue][] = [];
  for (const name of GUARDRAIL_SETTINGS) {
    const value = values.get(`${PREFIX}${name}`);
    if (value === undefined || value === null) continue;
    if (name.startsWith(NESTED)) actor.push([name.slice(NESTED.length), value]);
    else flat.push([name, value]);
  }
  return parseGuardrails({ ...Object.fromEntries(flat), ...(actor.length === 0 ? {} : { actor_limits: Object.fromEntries(actor) }) });
}
