import type { KeyView } from '../../api/key.ts';
import { formatApiKey, hashSecret } from '../../core/api-key.ts';
import { hasRole, ROLES } from '../../core/principal.ts';
import { invalidField, invalidState, notFound } from '../../core/refusal.ts';
import { err, ok } from '../../core/result.ts';
import type { Handlers } from '../handler.ts';
import type { KeyRecord } from '../ports.ts';

/** Keys of the org. A secret leaves once, in the answer to its creation; nothing here ever shows a hash. */
export const keyHandlers = {
  '_cleveragents/key/create': async (params, call, services) => {
    const nowMs = services.clock.nowMs();
    // An agent with such a key could answer its own approvals: the human gate has to hold on this path too.
    if (params.kind === 'human' && call.principal.kind !== 'human') {
      return err({ kind: 'forbidden', message: "Only a person's key can make a person's key; make one of kind agent" });
    }
    const expiresAt = params.expires_at === undefined ? null : new Date(params.expires_at);
    if (expiresAt !== null && !(expiresAt.getTime() > nowMs)) return err(invalidField('expires_at', 'must be in the future'));

    const secret = services.ids.secret();
    const record: KeyRecord = {
      org: call.principal.org,
      id: services.ids.ulid(),
      name: params.name,
      kind: params.kind,
      roles: ROLES.filter((role) => params.roles.includes(role)),
      secretHash: hashSecret(services.sha256, secret),
      createdAt: new Date(nowMs).toISOString(),
      // One form for all times: they are compared as text.
      expiresAt: expiresAt?.toISOString() ?? null,
      revokedAt: null,
    };
    await call.changing();
    await services.keys.create(record);
    return ok({ ...keyViewOf(record), key: formatApiKey({ id: record.id, secret }) });
  },

  '_cleveragents/key/list': async (_params, call, services) =>
    ok({ keys: (await services.keys.list(call.principal.org)).map(keyViewOf), next_page_token: '' }),

  '_cleveragents/key/revoke': async (params, call, services) => {
    const { org } = call.principal;
    const now = new Date(services.clock.nowMs()).toISOString();
    const keys = await services.keys.list(org);
    const key = keys.find(({ id }) => id === params.key_id);
    if (key === undefined) return err(notFound('key', params.key_id));
    if (leavesNoAdmin(keys, key, now)) {
      const needed = key.kind === 'human' ? "person's key with the role admin" : 'key with the role admin';
      return err(invalidState(`This is the last ${needed}; make another one first`, { key_id: key.id }));
    }
    if (key.revokedAt !== null) return ok(keyViewOf(key));
    await call.changing();
    await services.keys.revoke(org, key.id, now);
    return ok(keyViewOf({ ...key, revokedAt: now }));
  },
} satisfies Pick<Handlers, '_cleveragents/key/create' | '_cleveragents/key/list' | '_cleveragents/key/revoke'>;

/** Whether nobody could administer the org afterwards. An agent's key does not stand in for a person's: it cannot make one. */
function leavesNoAdmin(keys: readonly KeyRecord[], key: KeyRecord, now: string): boolean {
  const isLiveAdmin = ({ roles, revokedAt, expiresAt }: KeyRecord): boolean =>
    hasRole(roles, 'admin') && revokedAt === null && (expiresAt === null || expiresAt > now);
  if (!isLiveAdmin(key)) return false;
  return !keys.some((other) => other.id !== key.id && isLiveAdmin(other) && (key.kind === 'agent' || other.kind === 'human'));
}

function keyViewOf({ id, name, kind, roles, createdAt, expiresAt, revokedAt }: KeyRecord): KeyView {
  return { key_id: id, name, kind, roles: [...roles], created_at: createdAt, expires_at: expiresAt, revoked_at: revokedAt };
}
