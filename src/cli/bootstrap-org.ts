/**
 * The first keys of a development org. They cannot be made through the service, which asks for a key: so they are written where it
 * looks them up.
 */
import { createHash, randomBytes } from 'node:crypto';

/** An org and its two keys, as text. */
export interface BootstrappedOrg {
  readonly org: string;
  /** A person's, with all roles. */
  readonly key: string;
  /** An agent's: may start work, never approve. */
  readonly agent_key: string;
}

/** Fixed ids: a repeated start gives the same identities new secrets, so what an earlier attempt began stays theirs. */
const PERSON = { id: 'dev-person', name: 'Development person', kind: 'human', roles: ['viewer', 'operator', 'approver', 'admin'] } as const;
const AGENT = { id: 'dev-agent', name: 'Development agent', kind: 'agent', roles: ['operator'] } as const;

const UPSERT_KEY = `
  INSERT INTO keys (id, org, name, kind, roles, secret_hash, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (id) DO UPDATE SET
    org = excluded.org, name = excluded.name, kind = excluded.kind, roles = excluded.roles, secret_hash = excluded.secret_hash,
    expires_at = NULL, revoked_at = NULL`;

/** Makes the org unless it is there, and its two keys with new secrets: one transaction, and may be called again. */
export async function bootstrapOrg(d1: D1Database, org: string): Promise<BootstrappedOrg> {
  const now = new Date().toISOString();
  const secrets = { person: newSecret(), agent: newSecret() };
  const upsert = ({ id, name, kind, roles }: typeof PERSON | typeof AGENT, secret: string): D1PreparedStatement =>
    d1.prepare(UPSERT_KEY).bind(id, org, name, kind, JSON.stringify(roles), hashOf(secret), now);
  await d1.batch([
    d1.prepare('INSERT INTO orgs (id, created_at) VALUES (?, ?) ON CONFLICT (id) DO NOTHING').bind(org, now),
    upsert(PERSON, secrets.person),
    upsert(AGENT, secrets.agent),
  ]);
  return { org, key: keyText(PERSON.id, secrets.person), agent_key: keyText(AGENT.id, secrets.agent) };
}

/** 256 bits, URL-safe. */
const newSecret = (): string => randomBytes(32).toString('base64url');

/** The forms of core/api-key.ts, which this layer does not import: the first call of the seed fails if they differ. */
const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('hex');

const keyText = (id: string, secret: string): string => `ca_${id}_${secret}`;
