/** The profiles of an org: the eight that everybody has and its own, found by name, and the one that a plan gets. */
import { BUILTIN_PROFILES } from '../core/builtin-profiles.ts';
import { digestOf } from '../core/digest.ts';
import type { JsonValue } from '../core/json.ts';
import type { LockedProfile } from '../core/plan/plan.ts';
import { AutomationProfile, type ProfileChoice, type ProfileContext, resolveProfile } from '../core/profile.ts';
import type { Refusal } from '../core/refusal.ts';
import { invalidField } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';
import type { SandboxSettings } from '../core/sandbox.ts';
import { invalidDocument } from '../core/schema-issues.ts';
import type { NeededProfile, ProfileVersion } from './ports.ts';
import type { Services } from './services.ts';

export interface FoundProfile {
  readonly document: AutomationProfile;
  /** Null for a built-in one. */
  readonly stored: ProfileVersion | null;
}

/** One profile by name; null when nothing is called so. A stored document is an edge too: one that no longer reads is refused, never repaired. */
export async function findProfile(name: string, org: string, services: Services): Promise<Result<FoundProfile | null, Refusal>> {
  const builtin = BUILTIN_PROFILES.get(name);
  if (builtin !== undefined) return ok({ document: builtin, stored: null });
  const stored = await services.profiles.latest(org, name);
  return stored === null || stored.document === null ? ok(null) : readStored(stored);
}

export function readStored(stored: ProfileVersion): Result<FoundProfile, Refusal> {
  const parsed = AutomationProfile.safeParse(stored.document);
  return parsed.success
    ? ok({ document: parsed.data, stored })
    : err(invalidDocument(`stored profile '${stored.name}'; update it`, parsed.error));
}

/** All names that can be used, built-in first: what a refusal of an unknown name lists. */
export async function validProfileNames(org: string, services: Services): Promise<readonly string[]> {
  return [...BUILTIN_PROFILES.keys(), ...(await services.profiles.list(org)).map(({ name }) => name)];
}

/** Whether a name can be used, as the sentence that refuses it; null when it can. */
export async function unknownProfile(name: string, org: string, services: Services): Promise<string | null> {
  const found = await findProfile(name, org, services);
  if (!found.ok) return found.error.message;
  if (found.value !== null) return null;
  return `no profile is named '${name}'; valid names: ${(await validProfileNames(org, services)).join(', ')}`;
}

/** What has to hold in the moment in which a profile's name is stored: a built-in one is always there. */
export function neededProfile(name: string | undefined): NeededProfile | undefined {
  return name === undefined || BUILTIN_PROFILES.has(name) ? undefined : { profile: name };
}

/** What a profile that is being saved may extend, and the sandbox of the org, by which the source's two constraints are judged. */
export async function savingContext(org: string, services: Services): Promise<ProfileContext> {
  const [stored, config] = await Promise.all([services.profiles.list(org), services.config.list(org, 'org')]);
  const own = new Map(stored.map((version) => [version.name, version]));
  return {
    lookup: (name) => {
      const version = own.get(name);
      const read = version === undefined ? null : readStored(version);
      return BUILTIN_PROFILES.get(name) ?? (read?.ok === true ? read.value.document : null);
    },
    names: [...BUILTIN_PROFILES.keys(), ...own.keys()],
    sandbox: sandboxOf(config),
  };
}

/** The sandbox that settings ask for, the narrower scope first. A stored value that is none of those that can be set counts as the safe one. */
export function sandboxOf(...scopes: readonly ReadonlyMap<string, JsonValue>[]): SandboxSettings {
  const setting = (key: string): JsonValue | undefined =>
    scopes.map((scope) => scope.get(key)).find((value) => value !== undefined && value !== null);
  return {
    strategy: setting('sandbox.strategy') === 'none' ? 'none' : 'workspace',
    checkpointsEnabled: setting('sandbox.checkpoint.enabled') !== false,
  };
}

/**
 * The profile that a plan gets, resolved once: the first level that is set wins, and a name that nothing has is refused with the valid
 * ones, whichever level it comes from. `fieldPrefix` is where the parameters of the call stood.
 */
export async function lockProfile(
  choice: ProfileChoice,
  org: string,
  services: Services,
  fieldPrefix: string,
): Promise<Result<LockedProfile, Refusal>> {
  const { name, level } = resolveProfile(choice);
  const found = await findProfile(name, org, services);
  if (!found.ok) return found;
  if (found.value !== null) {
    const { document } = found.value;
    return ok({ name, level, document, digest: digestOf(services.sha256, document) });
  }
  const names = await validProfileNames(org, services);
  const field = level === 'environment' ? 'environment_profile' : `${fieldPrefix}automation_profile`;
  const message = `no profile is named '${name}' (set at level ${level}); valid names: ${names.join(', ')}`;
  return err(invalidField(field, message, { profile: name, level, valid_names: names }));
}
