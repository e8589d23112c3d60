/** Profiles and policy floors in memory: every version is kept, a number is given once. */
import type { OrgPolicyStore, OrgPolicyVersion, ProfileStore, ProfileVersion } from '../../app/ports.ts';
import { compareText, Documents } from './documents.ts';

/** `names`: what names a profile, in the other tables. */
export function makeMemoryProfileStore(
  rows: Documents<ProfileVersion>,
  names: {
    readonly actions: (org: string, profile: string) => readonly string[];
    readonly scopes: (org: string, profile: string) => readonly string[];
  },
): ProfileStore {
  const versionsOf = (org: string, name: string) =>
    rows.where((row) => row.org === org && row.name === name).sort((a, b) => a.version - b.version);
  return {
    async latest(org, name) {
      return versionsOf(org, name).at(-1) ?? null;
    },
    async list(org) {
      const names = new Set(rows.where((row) => row.org === org).map(({ name }) => name));
      return [...names].sort(compareText).flatMap((name) => {
        const last = versionsOf(org, name).at(-1);
        return last === undefined || last.document === null ? [] : [last];
      });
    },
    async versions(org, name) {
      return versionsOf(org, name);
    },
    async save(version) {
      const { org, name, document } = version;
      if (document === null && names.actions(org, name).length + names.scopes(org, name).length > 0) return false;
      return rows.add(version, org, name, String(version.version));
    },
    async namedBy(org, name) {
      return { actions: names.actions(org, name), scopes: names.scopes(org, name) };
    },
  };
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
