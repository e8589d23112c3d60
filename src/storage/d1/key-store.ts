import { and, asc, eq, gt, isNull, or, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/d1';
import type { KeyStore } from '../../app/ports.ts';
import { hasRole, ROLES } from '../../core/principal.ts';
import { d1Call } from './d1-call.ts';
import { keys } from './schema.ts';

const APPROVING_ROLES = JSON.stringify(ROLES.filter((role) => hasRole([role], 'approver')));

export function makeKeyStore(db: D1Database): KeyStore {
  const orm = drizzle(db);
  return {
    async find(id) {
      return (await d1Call('keys.find', () => orm.select().from(keys).where(eq(keys.id, id)).get())) ?? null;
    },

    async create(record) {
      await d1Call('keys.create', () => orm.insert(keys).values(record).run());
    },

    list(org) {
      return d1Call('keys.list', () => orm.select().from(keys).where(eq(keys.org, org)).orderBy(asc(keys.createdAt), asc(keys.id)).all());
    },

    async revoke(org, id, at) {
      const result = await d1Call('keys.revoke', () =>
        orm
          .update(keys)
          .set({ revokedAt: sql`coalesce(${keys.revokedAt}, ${at})` })
          .where(and(eq(keys.org, org), eq(keys.id, id)))
          .run(),
      );
      return result.meta.changes > 0;
    },

    countApprovers(org, now) {
      return d1Call('keys.countApprovers', () =>
        orm.$count(
          keys,
          and(
            eq(keys.org, org),
            eq(keys.kind, 'human'),
            isNull(keys.revokedAt),
            or(isNull(keys.expiresAt), gt(keys.expiresAt, now)),
            sql`exists (select 1 from json_each(${keys.roles}) as role where role.value in (select value from json_each(${APPROVING_ROLES})))`,
          ),
        ),
      );
    },
  };
}
