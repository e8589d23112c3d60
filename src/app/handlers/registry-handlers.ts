import type { ResultOf } from '../../api/operations.ts';
import { toUsd } from '../../core/money.ts';
import { ok } from '../../core/result.ts';
import type { ToolSpec } from '../../core/tool.ts';
import type { Handlers } from '../handler.ts';
import { listActions } from './action-handlers.ts';
import { listProjects } from './project-handlers.ts';

/** What there is to work with: tools, actors, actions, projects. */
export const registryHandlers = {
  '_cleveragents/registry/tool/list': async ({ namespace }, _call, services) => {
    const specs = services.catalogue.specs();
    const shown = namespace === undefined ? specs : specs.filter((spec) => isInNamespace(spec, namespace));
    return ok({ tools: shown.map(toolViewOf), next_page_token: '' });
  },

  '_cleveragents/registry/actor/list': async (_params, _call, services) =>
    ok({ actors: services.actors.names().map((name) => ({ name })), next_page_token: '' }),

  '_cleveragents/registry/action/list': async (_params, call, services) => ok(await listActions(call.principal.org, services)),

  '_cleveragents/registry/project/list': async (_params, call, services) => ok(await listProjects(call.principal.org, services)),
} satisfies Pick<
  Handlers,
  | '_cleveragents/registry/tool/list'
  | '_cleveragents/registry/actor/list'
  | '_cleveragents/registry/action/list'
  | '_cleveragents/registry/project/list'
>;

/** By any of its names: `git` has `git/commit` and `git:hub/issue`, and `git:hub` has the latter; `gi` has neither. */
function isInNamespace(spec: ToolSpec, namespace: string): boolean {
  return [spec.name, ...spec.aliases].some((name) => name.startsWith(`${namespace}/`) || name.startsWith(`${namespace}:`));
}

function toolViewOf(spec: ToolSpec): ResultOf<'_cleveragents/registry/tool/list'>['tools'][number] {
  return {
    name: spec.name,
    aliases: [...spec.aliases],
    description: spec.summary,
    class: spec.riskClass,
    skill: spec.skillCategory ?? null,
    price_usd: toUsd(spec.priceMicroUsd),
    idempotent: spec.idempotent,
    input_schema: spec.parameters,
  };
}
