import { and, asc, desc, eq, isNotNull, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/d1';
import type { ProfileStore } from '../../app/ports.ts';
import { d1Call } from './d1-call.ts';
import { actionsNaming, isThere, profilesNaming, scopesNaming } from './profile-names.ts';
import { profileVersions } from './schema.ts';

export function makeProfileStore(db: D1Database): ProfileStore {
  const orm = drizzle(db);
  const { org: ofOrg, name: ofName, version } = profileVersions;
  return {
    async latest(org, name) {
      const row = await d1Call('profiles.latest', () =>
        orm
          .select()
          .from(profileVersions)
          .where(and(eq(ofOrg, org), eq(ofName, name)))
          .orderBy(desc(version))
          .limit(1)
          .get(),
      );
      return row ?? null;
    },

    list(org) {
      const newest = sql`(select max(v.version) from profile_versions v where v.org = profile_versions.org and v.name = profile_versions.name)`;
      return d1Call('profiles.list', () =>
        orm
          .select()
          .from(profileVersions)
          .where(and(eq(ofOrg, org), isNotNull(profileVersions.document), eq(version, newest)))
          .orderBy(asc(ofName))
          .all(),
      );
    },

    versions(org, name) {
      return d1Call('profiles.versions', () =>
        orm
          .select()
          .from(profileVersions)
          .where(and(eq(ofOrg, org), eq(ofName, name)))
          .orderBy(asc(version))
          .all(),
      );
    },

    async save(row, needs) {
      const { org, name, document, defaulted, createdAt, savedAt, savedBy } = row;
      const naming = [scopesNaming(org, name), actionsNaming(org, name), profilesNaming(org, name)];
      const isAllowed =
        document === null
          ? sql.join(
              naming.map((each) => sql`NOT EXISTS (${each})`),
              sql` AND `,
            )
          : isThere(org, needs);
      const result = await d1Call('profiles.save', () =>
        orm.run(
          sql`INSERT INTO profile_versions (org, name, version, document, defaulted, created_at, saved_at, saved_by)
            SELECT ${org}, ${name}, ${row.version}, ${document === null ? null : JSON.stringify(document)}, ${JSON.stringify(defaulted)},
              ${createdAt}, ${savedAt}, ${savedBy}
            WHERE ${isAllowed} ON CONFLICT DO NOTHING`,
        ),
      );
      return result.meta.changes > 0;
    },

    async namedBy(org, name) {
      type Named = { readonly name: string };
      const [scopes, actions, profiles] = await d1Call('profiles.namedBy', () =>
        Promise.all([
          orm.all<{ readonly scope: string }>(sql`${scopesNaming(org, name)} ORDER BY scope`),
          orm.all<Named>(sql`${actionsNaming(org, name)} ORDER BY name`),
          orm.all<Named>(sql`${profilesNaming(org, name)} ORDER BY name`),
        ]),
      );
      const namesOf = (rows: readonly Named[]) => rows.map((row) => row.name);
      return { scopes: scopes.map(({ scope }) => scope), actions: namesOf(actions), profiles: namesOf(profiles) };
    },
  };
}
