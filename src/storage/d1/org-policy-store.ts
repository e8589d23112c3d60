import { desc, eq } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/d1';
import type { OrgPolicyStore } from '../../app/ports.ts';
import { d1Call } from './d1-call.ts';
import { orgPolicyVersions } from './schema.ts';

export function makeOrgPolicyStore(db: D1Database): OrgPolicyStore {
  const orm = drizzle(db);
  return {
    async latest(org) {
      const row = await d1Call('orgPolicies.latest', () =>
        orm.select().from(orgPolicyVersions).where(eq(orgPolicyVersions.org, org)).orderBy(desc(orgPolicyVersions.version)).limit(1).get(),
      );
      return row ?? null;
    },

    async save(row) {
      const result = await d1Call('orgPolicies.save', () => orm.insert(orgPolicyVersions).values(row).onConflictDoNothing().run());
      return result.meta.changes > 0;
    },
  };
}
