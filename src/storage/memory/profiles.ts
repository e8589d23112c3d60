/** Profiles and policy floors in memory: every version is kept, a number is given once. */
import type { NeededProfile, OrgPolicyStore, OrgPolicyVersion, ProfileStore, ProfileUse, ProfileVersion } from '../../app/ports.ts';
import { compareText, Documents } from './documents.ts';

/** Whether a custom profile is there, or none is needed. */
export function isThere(rows: Documents<ProfileVersion>, org: string, needs: NeededProfile | undefined): boolean {
  return needs === undefined || (versionsOf(rows, org, needs.profile).at(-1)?.document ?? null) !== null;
}

/** `names`: what names a profile, in the other tables. */
export function makeMemoryProfileStore(
  rows: Documents<ProfileVersion>,
  names: {
    readonly actions: (org: string, profile: string) => readonly string[];
    readonly scopes: (org: string, profile: string) => readonly string[];
  },
): ProfileStore {
  const live = (org: string) => {
    const all = new Set(rows.where((row) => row.org === org).map(({ name }) => name));
    return [...all].sort(compareText).flatMap((name) => {
      const last = versionsOf(rows, org, name).at(-1);
      return last === undefined || last.document === null ? [] : [last];
    });
  };
  const useOf = (org: string, name: string): ProfileUse => ({
    actions: names.actions(org, name),
    scopes: names.scopes(org, name),
    profiles: live(org).flatMap((version) => (version.document?.['extends'] === name ? [version.name] : [])),
  });
  return {
    async latest(org, name) {
      return versionsOf(rows, org, name).at(-1) ?? null;
    },
    async list(org) {
      return live(org);
    },
    async versions(org, name) {
      return versionsOf(rows, org, name);
    },
    async save(version, needs) {
      const { org, name, document } = version;
      const isAllowed =
        document === null ? Object.values(useOf(org, name)).every((users) => users.length === 0) : isThere(rows, org, needs);
      if (!isAllowed) return false;
      return rows.add(version, org, name, String(version.version));
    },
    async namedBy(org, name) {
      return useOf(org, name);
    },
  };
}

function versionsOf(rows: Documents<ProfileVersion>, org: string, name: string): ProfileVersion[] {
  return rows.where((row) => row.org === org && row.name === name).sort((a, b) => a.version - b.version);
}

export function makeMemoryOrgPolicyStore(): OrgPolicyStore {
  const rows = new Documents<OrgPolicyVersion>();
  return {
    async latest(org) {
      return rows.where((row) => row.org === org).sort((a, b) => b.version - a.version)[0] ?? null;
    },
    async save(version) {
      return rows.add(version, version.org, String(version.version));
    },
  };
}
