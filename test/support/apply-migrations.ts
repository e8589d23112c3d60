/** Setup of the `worker` runner: brings the D1 database of the test Worker to the current schema. Applying twice does nothing. */
import { applyD1Migrations } from 'cloudflare:test';
import { env } from 'cloudflare:workers';

await applyD1Migrations(env.DB, env.TEST_MIGRATIONS);
