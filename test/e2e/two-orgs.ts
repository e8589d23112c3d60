/** A server in this process, so that its database can hold a second org, which no operation makes. */
import { createHash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { ensureWorkerBuilt, TEST_BUILD } from '../../src/cli/build-worker.ts';
import { startLocalServer } from '../../src/cli/local-server.ts';
import { seedDevelopment } from '../../src/cli/seed-development.ts';
import { type Client, createClient } from '../../src/client/client.ts';
import { formatApiKey } from '../../src/core/api-key.ts';
import { temporaryFolder } from '../support/server.ts';
import { startReceiver } from './receiver.ts';
import { makeWorld, type RunningServer, type World } from './world.ts';

export interface TwoOrgs {
  readonly world: World<RunningServer>;
  /** A person of the other org, with all roles. */
  readonly stranger: Client;
  readonly strangerKey: string;
  /** Lines that the Worker logged: an incident shows here. */
  readonly log: readonly string[];
}

export async function startTwoOrgs(): Promise<TwoOrgs> {
  const stateDir = await temporaryFolder();
  const log: string[] = [];
  const local = await startLocalServer({
    stateDir,
    port: 0,
    bundlePath: await ensureWorkerBuilt(TEST_BUILD),
    log: (line) => log.push(line),
  });
  const d1 = await local.d1();
  const { org, key, agent_key } = await seedDevelopment({ url: local.url, d1, open: false });
  const strangerKey = await addPerson(d1, 'other');
  const server: RunningServer = {
    connection: { url: local.url, org, key, agent_key },
    stop: async () => {
      await local.stop();
      await rm(stateDir, { recursive: true, force: true });
    },
  };
  const world = makeWorld(server, await startReceiver());
  return { world, stranger: createClient({ url: local.url, key: strangerKey }), strangerKey, log };
}

async function addPerson(d1: D1Database, org: string): Promise<string> {
  const secret = 'a-secret-of-the-other-org-0000000000000000000';
  const id = `${org}-person`;
  const roles = JSON.stringify(['viewer', 'operator', 'approver', 'admin']);
  const now = new Date().toISOString();
  await d1.batch([
    d1.prepare('INSERT INTO orgs (id, created_at) VALUES (?, ?)').bind(org, now),
    d1
      .prepare('INSERT INTO keys (id, org, name, kind, roles, secret_hash, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)')
      .bind(id, org, 'Another person', 'human', roles, createHash('sha256').update(secret).digest('hex'), now),
  ]);
  return formatApiKey({ id, secret });
}
