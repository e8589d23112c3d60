import { drizzle } from 'drizzle-orm/d1';
import type { OrgStore } from '../org-store.ts';
import { d1Call } from './d1-call.ts';
import { orgs } from './schema.ts';

export function makeOrgStore(db: D1Database): OrgStore {
  const orm = drizzle(db);
  return {
    async ensure(org, createdAt) {
      await d1Call('orgs.ensure', () => orm.insert(orgs).values({ id: org, createdAt }).onConflictDoNothing().run());
    },
  };
}
