import type { Guardrails } from '../../core/guard-policy.ts';
import type { GuardChange, GuardList, GuardrailChanges } from '../../core/guard-revision.ts';
import type { GuardrailSetting } from '../../core/guardrail-settings.ts';
import { invalidField } from '../../core/refusal.ts';
import { err, ok } from '../../core/result.ts';
import { approvingCaller } from '../caller.ts';
import { guardViewOf } from '../guard-view.ts';
import type { CallContext, Handlers } from '../handler.ts';
import type { Services } from '../services.ts';
import { commandPlan } from './plan-handlers.ts';

/** Guard configuration of a running plan: the plan decides what a change does and who may make it (core/guard-revision.ts). */
export const guardRevisionHandlers = {
  '_cleveragents/plan/guard/set': async (params, call, services) => {
    const { guardrails = {}, drop = [] } = params;
    const given = [...Object.keys(guardrails), ...Object.keys(guardrails.actor_limits ?? {}).map((member) => `actor_limits.${member}`)];
    const twice = drop.find((name) => given.includes(name));
    if (twice !== undefined) return err(invalidField('drop', `${twice} is set and dropped at once`));
    if (given.length === 0 && drop.length === 0) return err(invalidField('guardrails', 'says nothing to set, and drop names nothing'));
    return revise(params.plan_id, { kind: 'set', guardrails: changesOf(guardrails, drop) }, call, services);
  },

  '_cleveragents/plan/guard/denylist/add': (params, call, services) => edit('add', 'denylist', params, call, services),
  '_cleveragents/plan/guard/denylist/remove': (params, call, services) => edit('remove', 'denylist', params, call, services),
  '_cleveragents/plan/guard/allowlist/add': (params, call, services) => edit('add', 'allowlist', params, call, services),
  '_cleveragents/plan/guard/allowlist/remove': (params, call, services) => edit('remove', 'allowlist', params, call, services),
  '_cleveragents/plan/guard/confirmation/add': (params, call, services) => edit('add', 'required_confirmations', params, call, services),
  '_cleveragents/plan/guard/confirmation/remove': (params, call, services) =>
    edit('remove', 'required_confirmations', params, call, services),
} satisfies Partial<Handlers>;

interface OnTool {
  readonly plan_id: string;
  readonly tool: string;
}

function edit(kind: 'add' | 'remove', list: GuardList, { plan_id: planId, tool }: OnTool, call: CallContext, services: Services) {
  // The same rule as for a list that is saved: an entry that names nothing hides a mistake.
  if (tool.trim() === '') return Promise.resolve(err(invalidField('tool', 'must not be blank')));
  return revise(planId, { kind, list, entry: tool }, call, services);
}

async function revise(planId: string, change: GuardChange, call: CallContext, services: Services) {
  const caller = await approvingCaller(call.principal, services);
  if (!caller.ok) return caller;
  const revised = await commandPlan(planId, call, services, { type: 'revise_guard', by: caller.value, change });
  return revised.ok ? ok(guardViewOf(revised.value.plan)) : revised;
}

/** Dropping a limit is setting it to nothing. Through JSON, so that members without a value are absent. */
function changesOf(guardrails: Guardrails, drop: readonly GuardrailSetting[]): GuardrailChanges {
  const changes = JSON.parse(JSON.stringify(guardrails)) as Record<string, unknown>;
  for (const name of drop) {
    const [group = name, member] = name.split('.');
    changes[group] = member === undefined ? null : { ...(changes[group] as object | undefined), [member]: null };
  }
  return changes as GuardrailChanges;
}
