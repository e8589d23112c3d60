import { and, desc, eq, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/d1';
import type { SessionStore } from '../../app/ports.ts';
import { d1Call } from './d1-call.ts';
import { sessions } from './schema.ts';

export function makeSessionStore(db: D1Database): SessionStore {
  const orm = drizzle(db);
  const select = (org: string, id: string) =>
    orm
      .select()
      .from(sessions)
      .where(and(eq(sessions.org, org), eq(sessions.id, id)));
  return {
    async get(org, id) {
      return (await d1Call('sessions.get', () => select(org, id).get())) ?? null;
    },

    list(org) {
      return d1Call('sessions.list', () =>
        orm.select().from(sessions).where(eq(sessions.org, org)).orderBy(desc(sessions.createdAt), sessions.id).all(),
      );
    },

    async ensure(record) {
      // One transaction: the row that is read is the one that was there or the one just made.
      const [, rows] = await d1Call('sessions.ensure', () =>
        orm.batch([orm.insert(sessions).values(record).onConflictDoNothing(), select(record.org, record.id)]),
      );
      return rows[0] ?? record;
    },

    async close(org, id, at) {
      const result = await d1Call('sessions.close', () =>
        orm
          .update(sessions)
          .set({ status: 'closed', closedAt: sql`coalesce(${sessions.closedAt}, ${at})` })
          .where(and(eq(sessions.org, org), eq(sessions.id, id)))
          .run(),
      );
      return result.meta.changes > 0;
    },
  };
}
