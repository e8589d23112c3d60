import * as z from 'zod';
import { GUARDRAIL_SETTINGS } from '../core/guardrail-settings.ts';
import { planGuardView } from './guard.ts';
import { guardrailParams } from './guardrail-params.ts';
import { COMMON_ERRORS, defineOperation } from './operation.ts';
import { optional, planId, text } from './schemas.ts';

/** Changes of a running plan's guards: anybody who operates it may tighten, giving back takes the right to approve. */
const common = {
  role: 'operator',
  alternativeRoles: ['approver'],
  freshKey: true,
  result: planGuardView,
  errors: [...COMMON_ERRORS, 'not_found', 'invalid_state'],
} as const;

const tool = text(256).meta({ description: 'Name of the tool, or a pattern with *' });
const onTool = z.strictObject({ plan_id: planId, tool });
const at = (...command: readonly string[]) => ({ command: ['plan', 'guard', ...command], positional: ['plan_id', 'tool'] });

export const planGuardSet = defineOperation({
  ...common,
  name: '_cleveragents/plan/guard/set',
  summary: 'Set limits of a running plan: below what is locked into it, and back up to that by somebody who may approve',
  params: z.strictObject({
    plan_id: planId,
    guardrails: optional(guardrailParams.meta({ description: 'What holds from now on; a list replaces the one that the plan had set' })),
    drop: optional(
      z
        .array(z.enum(GUARDRAIL_SETTINGS))
        .max(GUARDRAIL_SETTINGS.length)
        .meta({ description: 'Limits that the plan has set and gives back; what is locked into it stays' }),
    ),
  }),
  cli: {
    command: ['plan', 'guard', 'set'],
    positional: ['plan_id'],
    flagAliases: { 'max-cost': 'guardrails.tool_budget', 'max-tool-calls': 'guardrails.max_tool_calls_per_step' },
    examples: [
      '01HXRCF1ABCDE12345678901AB --max-cost 10.00',
      '01HXRCF1ABCDE12345678901AB --max-tool-calls 20',
      '01HXRCF1ABCDE12345678901AB --drop tool_budget',
    ],
  },
});

export const planGuardDenylistAdd = defineOperation({
  ...common,
  name: '_cleveragents/plan/guard/denylist/add',
  summary: 'Deny a tool in a running plan: every call of it asks from now on',
  params: onTool,
  cli: { ...at('denylist', 'add'), examples: ['01HXRCF1ABCDE12345678901AB shell_exec'] },
});

export const planGuardDenylistRemove = defineOperation({
  ...common,
  name: '_cleveragents/plan/guard/denylist/remove',
  summary: 'Take a tool off the denylist again; only what was added to the running plan can be removed',
  params: onTool,
  cli: { ...at('denylist', 'remove'), examples: ['01HXRCF1ABCDE12345678901AB shell_exec'] },
});

export const planGuardAllowlistAdd = defineOperation({
  ...common,
  name: '_cleveragents/plan/guard/allowlist/add',
  summary: "Put a tool on the running plan's own allowlist; with the first one, every tool that is not on it asks",
  params: onTool,
  cli: at('allowlist', 'add'),
});

export const planGuardAllowlistRemove = defineOperation({
  ...common,
  name: '_cleveragents/plan/guard/allowlist/remove',
  summary: "Take a tool off the running plan's own allowlist; a list that has run empty allows nothing",
  params: onTool,
  cli: at('allowlist', 'remove'),
});

export const planGuardConfirmationAdd = defineOperation({
  ...common,
  name: '_cleveragents/plan/guard/confirmation/add',
  summary: 'Have a human confirm each call of a tool in a running plan',
  params: onTool,
  cli: at('confirmation', 'add'),
});

export const planGuardConfirmationRemove = defineOperation({
  ...common,
  name: '_cleveragents/plan/guard/confirmation/remove',
  summary: 'Have a tool confirmed no more; only what was added to the running plan can be removed',
  params: onTool,
  cli: at('confirmation', 'remove'),
});
