import type { ResultOf } from '../../api/operations.ts';
import type { ProfileView } from '../../api/registry.ts';
import { BUILTIN_PROFILES } from '../../core/builtin-profiles.ts';
import { digestOf } from '../../core/digest.ts';
import type { JsonObject } from '../../core/json.ts';
import { toUsd } from '../../core/money.ts';
import { type AutomationProfile, THRESHOLD_NAMES, THRESHOLDS } from '../../core/profile.ts';
import { notFound } from '../../core/refusal.ts';
import { err, ok } from '../../core/result.ts';
import type { ToolSpec } from '../../core/tool.ts';
import type { Handlers } from '../handler.ts';
import type { Services } from '../services.ts';
import { listActions } from './action-handlers.ts';
import { listProjects } from './project-handlers.ts';

/** What there is to work with: tools, actors, actions, projects, automation profiles. */
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

  '_cleveragents/profile/list': async (_params, _call, services) =>
    ok({ profiles: [...BUILTIN_PROFILES.values()].map((profile) => profileViewOf(profile, services)), next_page_token: '' }),

  '_cleveragents/profile/show': async ({ name }, _call, services) => {
    const profile = BUILTIN_PROFILES.get(name);
    if (profile !== undefined) return ok(profileViewOf(profile, services));
    const names = [...BUILTIN_PROFILES.keys()];
    const refusal = notFound('profile', name, { profile_name: name, valid_names: names });
    return err({ ...refusal, message: `No profile is named '${name}'; valid names: ${names.join(', ')}` });
  },
} satisfies Pick<
  Handlers,
  | '_cleveragents/registry/tool/list'
  | '_cleveragents/registry/actor/list'
  | '_cleveragents/registry/action/list'
  | '_cleveragents/registry/project/list'
  | '_cleveragents/profile/list'
  | '_cleveragents/profile/show'
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

function profileViewOf(profile: AutomationProfile, services: Services): ProfileView {
  return {
    name: profile.name,
    description: profile.description ?? null,
    built_in: true,
    digest: digestOf(services.sha256, profile),
    document: profile as unknown as JsonObject,
    thresholds: THRESHOLD_NAMES.map((name) => ({ name, value: profile[name], meaning: THRESHOLDS[name] })),
  };
}
