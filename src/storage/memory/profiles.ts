/** Profiles and policy floors in memory: every version is kept, a number is given once. */
import type { OrgPolicyStore, OrgPolicyVersion, ProfileStore, ProfileVersion } from '../../app/ports.ts';
import { compareText, Documents } from './documents.ts';

export function makeMemoryProfileStore(): ProfileStore {
  const rows = new Documents<ProfileVersion>();
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
      return rows.add(version, version.org, version.name, String(version.version));
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
