import { and, asc, eq } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/d1';
import type { ProjectStore } from '../../app/ports.ts';
import { d1Call } from './d1-call.ts';
import { projects } from './schema.ts';

export function makeProjectStore(db: D1Database): ProjectStore {
  const orm = drizzle(db);
  return {
    async get(org, name) {
      const row = await d1Call('projects.get', () =>
        orm
          .select()
          .from(projects)
          .where(and(eq(projects.org, org), eq(projects.name, name)))
          .get(),
      );
      return row ?? null;
    },

    list(org) {
      return d1Call('projects.list', () => orm.select().from(projects).where(eq(projects.org, org)).orderBy(asc(projects.name)).all());
    },

    async add(record) {
      const result = await d1Call('projects.add', () => orm.insert(projects).values(record).onConflictDoNothing().run());
      return result.meta.changes > 0;
    },
  };
}
