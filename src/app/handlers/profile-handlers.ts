import type { ProfileView } from '../../api/profile.ts';
import { BUILTIN_PROFILES } from '../../core/builtin-profiles.ts';
import { digestOf } from '../../core/digest.ts';
import type { JsonObject } from '../../core/json.ts';
import { isReservedProfileName, type ParsedProfile, parseProfile, THRESHOLD_NAMES, THRESHOLDS } from '../../core/profile.ts';
import { readProfileYaml, writeProfileYaml } from '../../core/profile-yaml.ts';
import type { FieldIssue, Refusal } from '../../core/refusal.ts';
import { invalidField, invalidState, notFound } from '../../core/refusal.ts';
import { err, ok, type Result } from '../../core/result.ts';
import { invalidWith } from '../../core/schema-issues.ts';
import type { CallContext, Handlers } from '../handler.ts';
import type { ProfileVersion } from '../ports.ts';
import { type FoundProfile, findProfile, neededProfile, readStored, savingContext, validProfileNames } from '../profiles.ts';
import type { Services } from '../services.ts';

/** Automation profiles. A custom one is stored complete, so nothing that it extends can change it later; every version is kept. */
export const profileHandlers = {
  '_cleveragents/profile/list': async (_params, call, services) => {
    const stored = await services.profiles.list(call.principal.org);
    // One document that an older version wrote must not hide the others; using or showing it says what is wrong.
    const custom = stored.map(readStored).flatMap((read) => (read.ok ? [read.value] : []));
    const builtin = [...BUILTIN_PROFILES.values()].map((document): FoundProfile => ({ document, stored: null }));
    return ok({ profiles: [...builtin, ...custom].map((found) => viewOf(found, services)), next_page_token: '' });
  },

  '_cleveragents/profile/show': async ({ name, yaml }, call, services) => {
    const found = await findProfile(name, call.principal.org, services);
    if (!found.ok) return found;
    if (found.value === null) return err(await unknown(name, call, services));
    const view = viewOf(found.value, services);
    return ok(yaml === true ? { ...view, yaml: writeProfileYaml(found.value.document) } : view);
  },

  '_cleveragents/profile/add': async (params, call, services) => {
    const parsed = await readProfile(params, null, call, services);
    if (!parsed.ok) return parsed;
    const { name } = parsed.value.profile;
    const last = await services.profiles.latest(call.principal.org, name);
    const taken: Refusal = {
      kind: 'already_exists',
      message: `A profile named '${name}' exists; update it or choose another name`,
      entity: 'profile',
      id: name,
      details: { profile_name: name },
    };
    if (last !== null && last.document !== null) return err(taken);
    await call.changing();
    const added = nextVersion(name, last, parsed.value, call, services);
    const isSaved = await services.profiles.save(added, neededProfile(parsed.value.profile.extends));
    if (isSaved) return ok(viewOf({ document: parsed.value.profile, stored: added }, services));
    // What it extends may have gone meanwhile: then it is refused as it is now.
    const again = await readProfile(params, null, call, services);
    return again.ok ? err(taken) : again;
  },

  '_cleveragents/profile/update': async (params, call, services) => {
    const last = await findCustom(params.name, call, services);
    if (!last.ok) return last;
    const parsed = await readProfile(params, params.name, call, services);
    if (!parsed.ok) return parsed;
    await call.changing();
    const updated = nextVersion(params.name, last.value, parsed.value, call, services);
    if (!(await services.profiles.save(updated, neededProfile(parsed.value.profile.extends)))) {
      const again = await readProfile(params, params.name, call, services);
      return again.ok ? err(changedMeanwhile(params.name)) : again;
    }
    return ok(viewOf({ document: parsed.value.profile, stored: updated }, services));
  },

  '_cleveragents/profile/delete': async ({ name }, call, services) => {
    const last = await findCustom(name, call, services);
    if (!last.ok) return last;
    const named = await namedRefusal(name, call, services);
    if (named !== null) return err(named);
    await call.changing();
    const deletion = nextVersion(name, last.value, null, call, services);
    // What comes to name it at the same moment is stored before it or not at all.
    if (!(await services.profiles.save(deletion))) return err((await namedRefusal(name, call, services)) ?? changedMeanwhile(name));
    return ok({ name, deleted: true, version: deletion.version });
  },
} satisfies Pick<
  Handlers,
  | '_cleveragents/profile/list'
  | '_cleveragents/profile/show'
  | '_cleveragents/profile/add'
  | '_cleveragents/profile/update'
  | '_cleveragents/profile/delete'
>;

/** Reads a profile given as an object or as YAML. Every issue names its field below the parameter, and the line where there are lines. */
async function readProfile(
  given: { readonly profile?: JsonObject; readonly yaml?: string },
  name: string | null,
  call: CallContext,
  services: Services,
): Promise<Result<ParsedProfile, Refusal>> {
  const root = given.yaml === undefined ? 'profile' : 'yaml';
  const read = given.yaml === undefined ? ok({ value: given.profile as unknown, lineOf: () => null }) : readProfileYaml(given.yaml, root);
  if (!read.ok) return read;
  const { value, lineOf } = read.value;
  const located = ({ field, message }: FieldIssue): FieldIssue => {
    const line = lineOf(field);
    return { field: field === 'profile' ? root : `${root}.${field}`, message: line === null ? message : `line ${line}: ${message}` };
  };
  const document = name === null ? value : withName(value, name);
  const parsed = parseProfile(document, await savingContext(call.principal.org, services));
  if (!parsed.ok) return parsed.error.kind === 'invalid' ? err(invalidWith('profile', parsed.error.issues.map(located))) : parsed;
  const { profile } = parsed.value;
  if (name !== null && profile.name !== name) {
    return err(
      invalidWith('profile', [
        located({ field: 'name', message: `is '${profile.name}', but '${name}' is to be updated; a profile keeps its name` }),
      ]),
    );
  }
  if (profile.extends === profile.name)
    return err(invalidWith('profile', [located({ field: 'extends', message: 'a profile cannot extend itself' })]));
  return parsed;
}

/** An update may leave out the name that it is for. */
function withName(document: unknown, name: string): unknown {
  const isObject = typeof document === 'object' && document !== null && !Array.isArray(document);
  return isObject && !Object.hasOwn(document, 'name') ? Object.fromEntries([...Object.entries(document), ['name', name]]) : document;
}

/** A profile that can be changed: one of the org's own, which is there. */
async function findCustom(name: string, call: CallContext, services: Services): Promise<Result<ProfileVersion, Refusal>> {
  if (isReservedProfileName(name)) {
    return err(invalidField('name', `'${name}' is reserved for a built-in profile, which cannot be changed; add one that extends it`));
  }
  const last = await services.profiles.latest(call.principal.org, name);
  return last === null || last.document === null ? err(await unknown(name, call, services)) : ok(last);
}

/**
 * What names a profile would name nothing: plans that get it would be refused, and a profile that extends it could not be saved again as it is
 * shown. So it is not deleted before.
 */
async function namedRefusal(name: string, { principal }: CallContext, services: Services): Promise<Refusal | null> {
  const { actions, scopes, profiles } = await services.profiles.namedBy(principal.org, name);
  const users = [
    ...scopes.map((scope) =>
      scope === 'org' ? 'core.automation-profile of the org' : `core.automation-profile of the project '${scope.slice('project:'.length)}'`,
    ),
    ...profiles.map((profile) => `the profile '${profile}', which extends it`),
    ...actions.map((action) => `the action '${action}'`),
  ];
  if (users.length === 0) return null;
  const shown = users.length > MAX_NAMED ? [...users.slice(0, MAX_NAMED), `${users.length - MAX_NAMED} more`] : users;
  const steps = [
    ...(scopes.length > 0 ? ['set another value there, or null'] : []),
    ...(profiles.length > 0 ? ['update or delete what extends it'] : []),
  ];
  const whatToDo =
    actions.length > 0
      ? 'an action keeps the profile that it was added with, so update this one instead of deleting it'
      : `first ${steps.join(', and ')}`;
  return invalidState(`profile '${name}' is named by ${shown.join(', ')}; ${whatToDo}`, {
    profile_name: name,
    actions: actions.slice(0, MAX_NAMED),
    settings: scopes.slice(0, MAX_NAMED),
    profiles: profiles.slice(0, MAX_NAMED),
  });
}

/** So many users of a profile are listed in one refusal. */
const MAX_NAMED = 20;

async function unknown(name: string, call: CallContext, services: Services): Promise<Refusal> {
  const names = await validProfileNames(call.principal.org, services);
  const refusal = notFound('profile', name, { profile_name: name, valid_names: names });
  return { ...refusal, message: `No profile is named '${name}'; valid names: ${names.join(', ')}` };
}

const changedMeanwhile = (name: string) => invalidState(`profile '${name}' was changed meanwhile; read it again`, { profile_name: name });

/** The version after `last`; `parsed` null is a deletion. */
function nextVersion(
  name: string,
  last: ProfileVersion | null,
  parsed: ParsedProfile | null,
  call: CallContext,
  services: Services,
): ProfileVersion {
  const now = new Date(services.clock.nowMs()).toISOString();
  const isThere = last !== null && last.document !== null;
  return {
    org: call.principal.org,
    name,
    version: (last?.version ?? 0) + 1,
    document: parsed === null ? null : (JSON.parse(JSON.stringify(parsed.profile)) as JsonObject),
    defaulted: parsed === null ? [] : [...parsed.defaulted],
    createdAt: isThere ? last.createdAt : now,
    savedAt: now,
    savedBy: call.principal.keyId,
  };
}

function viewOf({ document, stored }: FoundProfile, services: Services): ProfileView {
  const plain = JSON.parse(JSON.stringify(document)) as JsonObject;
  return {
    name: document.name,
    description: document.description ?? null,
    built_in: stored === null,
    version: stored?.version ?? 1,
    digest: digestOf(services.sha256, document),
    thresholds: THRESHOLD_NAMES.map((name) => ({
      name,
      value: document[name],
      meaning: THRESHOLDS[name],
      ...(stored?.defaulted.includes(name) === true ? { is_default: true } : {}),
    })),
    safety: { ...document.safety },
    guard: document.guard === null ? null : { ...document.guard },
    unattended: document.unattended === true,
    document: plain,
    created_at: stored?.createdAt ?? null,
    updated_at: stored?.savedAt ?? null,
  };
}
