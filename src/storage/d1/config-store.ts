import { and, asc, eq, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/d1';
import type { ConfigStore } from '../../app/ports.ts';
import type { JsonValue } from '../../core/json.ts';
import { d1Call } from './d1-call.ts';
import { isThere } from './profile-names.ts';
import { configValues } from './schema.ts';

export function makeConfigStore(db: D1Database): ConfigStore {
  const orm = drizzle(db);
  return {
    async get(org, scope, key) {
      const row = await d1Call('config.get', () =>
        orm
          .select({ value: configValues.value })
          .from(configValues)
          .where(and(eq(configValues.org, org), eq(configValues.scope, scope), eq(configValues.key, key)))
          .get(),
      );
      return row === undefined ? null : parseValue(row.value);
    },

    async set(org, scope, key, value, needs) {
      const result = await d1Call('config.set', () =>
        orm.run(
          sql`INSERT INTO config_values (org, scope, key, value)
            SELECT ${org}, ${scope}, ${key}, ${JSON.stringify(value)} WHERE ${isThere(org, needs)}
            ON CONFLICT (org, scope, key) DO UPDATE SET value = excluded.value`,
        ),
      );
      return result.meta.changes > 0;
    },

    async list(org, scope) {
      const rows = await d1Call('config.list', () =>
        orm
          .select({ key: configValues.key, value: configValues.value })
          .from(configValues)
          .where(and(eq(configValues.org, org), eq(configValues.scope, scope)))
          .orderBy(asc(configValues.key))
          .all(),
      );
      return new Map(rows.map(({ key, value }) => [key, parseValue(value)]));
    },
  };
}

function parseValue(text: string): JsonValue {
  const value: JsonValue = JSON.parse(text);
  return value;
}
