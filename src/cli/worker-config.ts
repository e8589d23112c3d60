/**
 * wrangler.toml in the shape that the local runtime takes. Loading wrangler for this would cost more than a second of every first
 * start; a test holds the two translations equal. A key that is not known here is an error, never ignored in silence.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { MiniflareOptions } from 'miniflare';
import { parse } from 'smol-toml';
import * as z from 'zod';
import { REPOSITORY } from './build-worker.ts';

/** The part of a miniflare Worker's configuration that wrangler.toml decides. The bundle is added by the server. */
export type WorkerConfig = Omit<MiniflareOptions['workers'][number]['config'], 'manifest'>;

const WranglerFile = z.strictObject({
  name: z.string(),
  compatibility_date: z.string(),
  compatibility_flags: z.array(z.string()),
  d1_databases: z.array(z.strictObject({ binding: z.string(), database_name: z.string(), migrations_dir: z.string() })),
  durable_objects: z.strictObject({ bindings: z.array(z.strictObject({ name: z.string(), class_name: z.string() })) }),
  migrations: z.array(z.strictObject({ tag: z.string(), new_sqlite_classes: z.array(z.string()) })),
  triggers: z.strictObject({ crons: z.array(z.string()) }),
  vars: z.record(z.string(), z.string()),
  // How the Worker is built, uploaded and observed: nothing that the runtime needs.
  main: z.unknown(),
  no_bundle: z.unknown(),
  upload_source_maps: z.unknown(),
  build: z.unknown(),
  send_metrics: z.unknown(),
  observability: z.unknown(),
});

/** Reads wrangler.toml. `variables` replace or join its `vars`. Throws with the names of keys that cannot be translated. */
export async function readWorkerConfig(variables: Readonly<Record<string, string>> = {}): Promise<WorkerConfig> {
  const text = await readFile(join(REPOSITORY, 'wrangler.toml'), 'utf8');
  const parsed = WranglerFile.safeParse(parse(text));
  if (!parsed.success) throw new Error(`wrangler.toml: ${z.prettifyError(parsed.error)}`);
  const file = parsed.data;
  const classes = file.migrations.flatMap((migration) => migration.new_sqlite_classes);
  return {
    name: file.name,
    compatibilityDate: file.compatibility_date,
    compatibilityFlags: file.compatibility_flags,
    env: {
      ...Object.fromEntries(Object.entries({ ...file.vars, ...variables }).map(([name, value]) => [name, { type: 'text', value }])),
      ...Object.fromEntries(file.d1_databases.map(({ binding }) => [binding, { type: 'd1', id: binding }])),
      ...Object.fromEntries(
        file.durable_objects.bindings.map(({ name, class_name }) => [
          name,
          { type: 'durable-object', worker: file.name, exportName: class_name },
        ]),
      ),
    },
    exports: Object.fromEntries(classes.map((name) => [name, { type: 'durable-object', storage: 'sqlite' }])),
    triggers: file.triggers.crons.map((schedule) => ({ type: 'scheduled', schedule })),
  };
}
