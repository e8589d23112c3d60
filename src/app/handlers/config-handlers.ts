import { CONFIG_KEYS, type ConfigEntryView, type ConfigKey, type ConfigScope } from '../../api/config.ts';
import { canonicalJson, type JsonValue } from '../../core/json.ts';
import { invalidField, type Refusal } from '../../core/refusal.ts';
import { err, ok, type Result } from '../../core/result.ts';
import type { Handlers } from '../handler.ts';
import { neededProfile, unknownProfile } from '../profiles.ts';
import type { Services } from '../services.ts';
import { findProject } from './find-project.ts';

/** Settings of the org and of its projects. The list of keys is closed, and a name as a value has to be that of something. */
export const configHandlers = {
  '_cleveragents/config/get': async (params, call, services) => {
    const place = await placeOf(params, call.principal.org, services);
    if (!place.ok) return place;
    return ok(entryOf(place.value, params.key, await services.config.get(call.principal.org, place.value.stored, params.key)));
  },

  '_cleveragents/config/set': async (params, call, services) => {
    const { org } = call.principal;
    const place = await placeOf(params, org, services);
    if (!place.ok) return place;
    const issue = await valueIssue(params.key, params.value, org, services);
    if (issue !== null) return err(invalidField('value', issue));
    const known = await services.config.get(org, place.value.stored, params.key);
    if (canonicalJson(known) === canonicalJson(params.value)) return ok(entryOf(place.value, params.key, params.value));
    await call.changing();
    const needs = params.key === 'core.automation-profile' && typeof params.value === 'string' ? neededProfile(params.value) : undefined;
    if (!(await services.config.set(org, place.value.stored, params.key, params.value, needs)))
      return err(
        invalidField('value', (await valueIssue(params.key, params.value, org, services)) ?? 'was deleted at the same moment; try again'),
      );
    return ok(entryOf(place.value, params.key, params.value));
  },

  '_cleveragents/config/list': async (params, call, services) => {
    const place = await placeOf(params, call.principal.org, services);
    if (!place.ok) return place;
    const values = await services.config.list(call.principal.org, place.value.stored);
    const keys = KEY_NAMES.filter((key) => scopesOf(key).includes(params.scope));
    return ok({ settings: keys.map((key) => entryOf(place.value, key, values.get(key) ?? null)), next_page_token: '' });
  },
} satisfies Pick<Handlers, '_cleveragents/config/get' | '_cleveragents/config/set' | '_cleveragents/config/list'>;

const KEY_NAMES = Object.keys(CONFIG_KEYS) as readonly ConfigKey[];

const scopesOf = (key: ConfigKey): readonly ConfigScope[] => CONFIG_KEYS[key].scopes;

/** Where values are kept: `stored` is the scope's name in the store. */
interface Place {
  readonly scope: ConfigScope;
  readonly project: string | null;
  readonly stored: string;
}

async function placeOf(
  { scope, project }: { readonly scope: ConfigScope; readonly project?: string },
  org: string,
  services: Services,
): Promise<Result<Place, Refusal>> {
  if (scope === 'org' || project === undefined) return ok({ scope: 'org', project: null, stored: 'org' });
  const found = await findProject(org, project, services);
  return found.ok ? ok({ scope, project, stored: `project:${project}` }) : found;
}

/** What a value names must exist now. Null removes a setting, whatever it was. */
async function valueIssue(key: ConfigKey, value: JsonValue, org: string, services: Services): Promise<string | null> {
  if (typeof value !== 'string') return null;
  if (key === 'core.automation-profile') return unknownProfile(value, org, services);
  if (key === 'core.default-action') {
    return (await services.actions.get(org, value)) === null ? `no action is named '${value}'; add it first` : null;
  }
  if (key === 'core.default-project') {
    return (await services.projectStore.get(org, value)) === null ? `no project is named '${value}'; create it first` : null;
  }
  return null;
}

function entryOf({ scope, project }: Place, key: ConfigKey, value: JsonValue | null): ConfigEntryView {
  const { fallback, meaning } = CONFIG_KEYS[key];
  return { scope, project, key, value: value ?? fallback, is_default: value === null, meaning };
}
