import { beforeEach, describe, expect, it } from 'vitest';
import type { KeyRecord } from '../../src/app/ports.ts';
import { hashSecret, parseApiKey } from '../../src/core/api-key.ts';
import { sha256 } from '../../src/objects/sha256.ts';
import { makeService, START, type TestCaller, type TestService } from './service.ts';

let service: TestService;
let admin: TestCaller;
beforeEach(async () => {
  service = makeService();
  admin = await service.caller('acme');
});

const stored = async (id: string): Promise<KeyRecord> => {
  const record = await service.services.keys.find(id);
  if (record === null) throw new Error(`no key ${id}`);
  return record;
};

describe('key/create', () => {
  it('answers a key that works, once, and stores only the hash of its secret', async () => {
    const made = await admin.call('_cleveragents/key/create', { name: 'ci', kind: 'agent', roles: ['operator'] });
    const parsed = parseApiKey(made.key);
    expect(parsed?.id).toBe(made.key_id);
    const record = await stored(made.key_id);
    expect(record.secretHash).toBe(hashSecret(sha256, parsed?.secret ?? ''));
    expect(JSON.stringify(record)).not.toContain(parsed?.secret);
    expect(made).toMatchObject({ name: 'ci', kind: 'agent', roles: ['operator'], expires_at: null, revoked_at: null });

    const { keys } = await admin.call('_cleveragents/key/list', {});
    expect(keys.map(({ name }) => name)).toEqual(['a key of acme', 'ci']);
    for (const key of keys) {
      expect(Object.keys(key).sort()).toEqual(['created_at', 'expires_at', 'key_id', 'kind', 'name', 'revoked_at', 'roles']);
    }
  });

  it('gives every key an id and a secret of its own', async () => {
    const params = { name: 'x', kind: 'agent', roles: ['viewer' as const] } as const;
    const made = [
      await admin.call('_cleveragents/key/create', { ...params, roles: ['viewer'] }),
      await admin.call('_cleveragents/key/create', { ...params, roles: ['viewer'] }),
    ];
    expect(new Set(made.map(({ key_id: id }) => id)).size).toBe(2);
    expect(new Set(made.map(({ key }) => parseApiKey(key)?.secret)).size).toBe(2);
  });

  it('keeps each role once, in their order', async () => {
    const roles = ['approver', 'viewer', 'approver'] as ('approver' | 'viewer')[];
    expect((await admin.call('_cleveragents/key/create', { name: 'x', kind: 'human', roles })).roles).toEqual(['viewer', 'approver']);
  });

  it('brings the time of expiry into the one form that is compared', async () => {
    const made = await admin.call('_cleveragents/key/create', {
      name: 'x',
      kind: 'agent',
      roles: ['viewer'],
      expires_at: '2027-01-01T00:00:00Z',
    });
    expect(made.expires_at).toBe('2027-01-01T00:00:00.000Z');
  });

  it.each(['2026-11-30T12:00:00Z', '2020-01-01T00:00:00Z'])('refuses the expiry %s, which is not in the future', async (expiresAt) => {
    const params = { name: 'x', kind: 'agent', roles: ['viewer' as const], expires_at: expiresAt } as const;
    expect(await admin.refused('_cleveragents/key/create', { ...params, roles: ['viewer'] })).toMatchObject({
      issues: [{ field: 'expires_at' }],
    });
    expect(await service.services.keys.list('acme')).toHaveLength(1);
  });

  it.each<[string, object, string]>([
    ['no role', { roles: [] }, 'roles'],
    ['an unknown role', { roles: ['root'] }, 'roles.0'],
    ['an unknown kind', { kind: 'robot' }, 'kind'],
    ['no name', { name: '' }, 'name'],
    ['a time that is none', { expires_at: 'tomorrow' }, 'expires_at'],
  ])('refuses %s by its field', async (_what, change, field) => {
    const params = { name: 'x', kind: 'agent', roles: ['viewer'], ...change } as never;
    expect(await admin.refused('_cleveragents/key/create', params)).toMatchObject({ kind: 'invalid', issues: [{ field }] });
  });

  it('does not let an agent make or revoke keys, whatever its roles: with one it could approve what it asks for', async () => {
    const agent = await service.caller('acme', { kind: 'agent', roles: ['admin'] });
    const human = { name: 'me', kind: 'human' as const, roles: ['approver' as const] };
    expect(await agent.refused('_cleveragents/key/create', human)).toMatchObject({ kind: 'forbidden' });
    expect(await service.services.keys.countApprovers('acme', new Date(START).toISOString())).toBe(1);
    expect(await agent.refused('_cleveragents/key/create', { ...human, kind: 'agent' })).toMatchObject({ kind: 'forbidden' });
    expect(await agent.refused('_cleveragents/key/revoke', { key_id: 'x' })).toMatchObject({ kind: 'forbidden' });
  });

  it.each(['key/create', 'key/list', 'key/revoke'] as const)('%s needs the role admin', async (operation) => {
    const other = await service.caller('acme', { roles: ['operator', 'approver', 'viewer'] });
    const params = { 'key/create': { name: 'x', kind: 'human', roles: ['viewer'] }, 'key/list': {}, 'key/revoke': { key_id: 'x' } }[
      operation
    ];
    expect(await other.refused(`_cleveragents/${operation}`, params as never)).toMatchObject({ kind: 'forbidden' });
  });
});

describe('key/revoke', () => {
  const revoke = (id: string) => admin.call('_cleveragents/key/revoke', { key_id: id });

  it('revokes, and a second time answers the first time', async () => {
    const { key_id: id } = await admin.call('_cleveragents/key/create', { name: 'x', kind: 'agent', roles: ['operator'] });
    const revoked = await revoke(id);
    expect(revoked).toMatchObject({ key_id: id, revoked_at: '2026-11-30T12:00:00.000Z' });
    service.clock.ms += 60_000;
    expect(await revoke(id)).toEqual(revoked);
    expect((await stored(id)).revokedAt).toBe('2026-11-30T12:00:00.000Z');
  });

  it('says that an unknown key is unknown', async () => {
    expect(await admin.refused('_cleveragents/key/revoke', { key_id: 'nope' })).toMatchObject({
      kind: 'not_found',
      entity: 'key',
      id: 'nope',
    });
  });

  const past = new Date(START - 1).toISOString();
  it.each<[string, Partial<KeyRecord> | null, boolean]>([
    ['nobody else', null, false],
    ['an operator', { roles: ['operator', 'approver'] }, false],
    ['an admin whose key is revoked', { roles: ['admin'], revokedAt: past }, false],
    ['an admin whose key has expired', { roles: ['admin'], expiresAt: past }, false],
    ["an agent's admin key, which cannot make a person's", { roles: ['admin'], kind: 'agent' }, false],
    ['another person with the role admin', { roles: ['admin'] }, true],
  ])("with %s beside it, the person's admin key can be revoked: %#", async (_who, other, isPossible) => {
    if (other !== null) await service.caller('acme', other);
    const { keyId } = admin.principal;
    if (isPossible) expect(await revoke(keyId)).toMatchObject({ key_id: keyId });
    else
      expect(await admin.refused('_cleveragents/key/revoke', { key_id: keyId })).toMatchObject({
        kind: 'invalid_state',
        details: { key_id: keyId },
      });
    expect((await stored(keyId)).revokedAt === null).toBe(!isPossible);
  });

  it('is not stopped by an admin of another org, nor helped by one', async () => {
    await service.caller('other');
    expect(await admin.refused('_cleveragents/key/revoke', { key_id: admin.principal.keyId })).toMatchObject({ kind: 'invalid_state' });
  });

  it("revokes an agent's admin key while a person's is left", async () => {
    const agent = await service.caller('acme', { kind: 'agent', roles: ['admin'] });
    await revoke(agent.principal.keyId);
    expect((await stored(agent.principal.keyId)).revokedAt).not.toBeNull();
  });
});
