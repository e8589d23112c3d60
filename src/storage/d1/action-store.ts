import { and, asc, eq, getTableColumns, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/d1';
import type { ActionStore } from '../../app/ports.ts';
import { d1Call } from './d1-call.ts';
import { isThere } from './profile-names.ts';
import { actions } from './schema.ts';

export function makeActionStore(db: D1Database): ActionStore {
  const orm = drizzle(db);
  const { isPublic: _, ...document } = getTableColumns(actions);
  return {
    async get(org, name) {
      const row = await d1Call('actions.get', () =>
        orm
          .select(document)
          .from(actions)
          .where(and(eq(actions.org, org), eq(actions.name, name)))
          .get(),
      );
      return row ?? null;
    },

    list(org) {
      return d1Call('actions.list', () => orm.select(document).from(actions).where(eq(actions.org, org)).orderBy(asc(actions.name)).all());
    },

    async add({ org, name, version, body, createdAt, updatedAt }, needs) {
      const result = await d1Call('actions.add', () =>
        orm.run(
          sql`INSERT INTO actions (org, name, version, body, is_public, created_at, updated_at)
            SELECT ${org}, ${name}, ${version}, ${JSON.stringify(body)}, ${body['public'] === true ? 1 : 0}, ${createdAt}, ${updatedAt}
            WHERE ${isThere(org, needs)} ON CONFLICT DO NOTHING`,
        ),
      );
      return result.meta.changes > 0;
    },

    listPublic(org) {
      return d1Call('actions.listPublic', () =>
        orm
          .select(document)
          .from(actions)
          .where(and(eq(actions.org, org), eq(actions.isPublic, true)))
          .orderBy(asc(actions.name))
          .all(),
      );
    },
  };
}
