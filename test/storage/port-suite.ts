/**
 * What every adapter of the storage ports must do, written once. Each test uses an org of its own, so that adapters over one shared
 * database can run it without being emptied.
 */
import { describe, expect, it } from 'vitest';
import type {
  ActionStore,
  AuditRow,
  AuditStore,
  ConfigStore,
  IdempotencyStore,
  KeyRecord,
  KeyStore,
  NamedDocument,
  OrgPolicyStore,
  OutcomeStore,
  PlanIndex,
  ProfileStore,
  ProfileVersion,
  ProjectStore,
  SessionRecord,
  SessionStore,
} from '../../src/app/ports.ts';
import type { OrgStore } from '../../src/storage/org-store.ts';
import { outcomeSuite } from './outcome-suite.ts';
import { planIndexSuite } from './plan-index-suite.ts';

export interface Stores {
  readonly orgs: OrgStore;
  readonly keys: KeyStore;
  readonly actions: ActionStore;
  readonly profiles: ProfileStore;
  readonly orgPolicies: OrgPolicyStore;
  readonly projects: ProjectStore;
  readonly sessions: SessionStore;
  readonly config: ConfigStore;
  readonly plans: PlanIndex;
  readonly audit: AuditStore;
  readonly idempotency: IdempotencyStore;
  readonly outcomes: OutcomeStore;
}

export function portSuite(adapter: string, stores: Stores): void {
  describe(`${adapter}: orgs`, () => {
    it('makes an org any number of times', async () => {
      const org = newOrg();
      await stores.orgs.ensure(org, at(1));
      await expect(stores.orgs.ensure(org, at(2))).resolves.toBeUndefined();
    });
  });

  describe(`${adapter}: keys`, () => {
    it('finds a key by its id with everything it was stored with', async () => {
      const key = keyOf(newOrg(), { roles: ['operator', 'approver'], expiresAt: at(99) });
      await stores.keys.create(key);
      expect(await stores.keys.find(key.id)).toEqual(key);
      expect(await stores.keys.find(`${key.id}x`)).toBeNull();
    });

    it('refuses a second key with the same id loudly', async () => {
      const key = keyOf(newOrg());
      await stores.keys.create(key);
      await expect(stores.keys.create(keyOf(newOrg(), { id: key.id }))).rejects.toThrow();
      expect(await stores.keys.find(key.id)).toEqual(key);
    });

    it('lists the keys of one org only, oldest first', async () => {
      const org = newOrg();
      const late = keyOf(org, { createdAt: at(5) });
      const early = keyOf(org, { createdAt: at(1) });
      for (const key of [late, early, keyOf(newOrg())]) await stores.keys.create(key);
      expect(await stores.keys.list(org)).toEqual([early, late]);
    });

    it('revokes once: the first time is kept, and a foreign org has no such key', async () => {
      const key = keyOf(newOrg());
      await stores.keys.create(key);
      expect(await stores.keys.revoke(newOrg(), key.id, at(3))).toBe(false);
      expect((await stores.keys.find(key.id))?.revokedAt).toBeNull();
      expect(await stores.keys.revoke(key.org, key.id, at(4))).toBe(true);
      expect(await stores.keys.revoke(key.org, key.id, at(5))).toBe(true);
      expect((await stores.keys.find(key.id))?.revokedAt).toBe(at(4));
    });

    it('counts as approvers only people who may approve and whose key is live', async () => {
      const org = newOrg();
      const keys = [
        keyOf(org, { roles: ['approver'] }),
        keyOf(org, { roles: ['operator', 'admin'], expiresAt: at(51) }),
        keyOf(org, { roles: ['approver'], expiresAt: at(50) }),
        keyOf(org, { roles: ['approver'], revokedAt: at(2) }),
        keyOf(org, { roles: ['approver'], kind: 'agent' }),
        keyOf(org, { roles: ['viewer', 'operator'] }),
        keyOf(newOrg(), { roles: ['approver'] }),
      ];
      for (const key of keys) await stores.keys.create(key);
      expect(await stores.keys.countApprovers(org, at(50))).toBe(2);
      expect(await stores.keys.countApprovers(newOrg(), at(50))).toBe(0);
    });
  });

  describe(`${adapter}: actions`, () => {
    it('adds a name once per org and keeps the first document', async () => {
      const action = actionOf(newOrg(), 'deploy', { steps: [{ say: 'ü' }], nothing: null });
      expect(await stores.actions.add(action)).toBe(true);
      expect(await stores.actions.add({ ...action, body: {}, version: 2 })).toBe(false);
      expect(await stores.actions.get(action.org, 'deploy')).toEqual(action);
      expect(await stores.actions.add(actionOf(newOrg(), 'deploy'))).toBe(true);
    });

    it('answers null for an unknown name and for a name of another org', async () => {
      const action = actionOf(newOrg(), 'secret');
      await stores.actions.add(action);
      expect(await stores.actions.get(newOrg(), 'secret')).toBeNull();
      expect(await stores.actions.get(action.org, 'Secret')).toBeNull();
    });

    it('lists the actions of an org by name', async () => {
      const org = newOrg();
      for (const name of ['b', 'c', 'a']) await stores.actions.add(actionOf(org, name));
      expect((await stores.actions.list(org)).map(({ name }) => name)).toEqual(['a', 'b', 'c']);
    });

    it('lists as public exactly what says public: true', async () => {
      const org = newOrg();
      const marks = { open: true, closed: false, text: 'true', none: null };
      for (const [name, mark] of Object.entries(marks)) await stores.actions.add(actionOf(org, name, { public: mark }));
      const mine = await stores.actions.listPublic(org);
      expect(mine).toEqual([actionOf(org, 'open', { public: true })]);
    });
  });

  describe(`${adapter}: profiles`, () => {
    const versionOf = (org: string, name: string, version: number, rest: Partial<ProfileVersion> = {}): ProfileVersion => ({
      ...{ org, name, version, document: { name, edit_code: 0.5, safety: { nothing: null } }, defaulted: ['approve_plan'] },
      ...{ createdAt: at(1), savedAt: at(version), savedBy: 'key', ...rest },
    });

    it('answers the newest version, whole, and every earlier one', async () => {
      const org = newOrg();
      const versions = [1, 2, 3].map((version) => versionOf(org, 'ns/p', version, { document: { version } }));
      for (const version of versions) expect(await stores.profiles.save(version)).toBe(true);
      expect(await stores.profiles.latest(org, 'ns/p')).toEqual(versions[2]);
      expect(await stores.profiles.versions(org, 'ns/p')).toEqual(versions);
    });

    it('gives each version number once and keeps what has it', async () => {
      const org = newOrg();
      const first = versionOf(org, 'p', 1);
      const saved = await Promise.all([stores.profiles.save(first), stores.profiles.save({ ...first, document: {}, savedBy: 'other' })]);
      expect(saved).toEqual([true, false]);
      expect(await stores.profiles.versions(org, 'p')).toEqual([first]);
    });

    it('keeps a deletion as a version, which is not listed', async () => {
      const org = newOrg();
      await stores.profiles.save(versionOf(org, 'gone', 1));
      const deletion = versionOf(org, 'gone', 2, { document: null, defaulted: [] });
      await stores.profiles.save(deletion);
      expect(await stores.profiles.latest(org, 'gone')).toEqual(deletion);
      expect(await stores.profiles.list(org)).toEqual([]);
    });

    it('deletes none that a setting, an action or a profile of the org names, and tells what does', async () => {
      const [org, other] = [newOrg(), newOrg()];
      for (const each of [org, other]) await stores.profiles.save(versionOf(each, 'ns/p', 1));
      const deletion = (of: string) => versionOf(of, 'ns/p', 2, { document: null, defaulted: [] });
      await stores.config.set(org, 'project:web', 'core.automation-profile', 'ns/p');
      await stores.config.set(org, 'org', 'core.default-action', 'ns/p');
      await stores.actions.add(actionOf(org, 'fix', { automation_profile: 'ns/p' }));
      await stores.actions.add(actionOf(org, 'other', { automation_profile: 'ns/pp' }));
      await stores.profiles.save(versionOf(org, 'made', 1, { document: { name: 'made', extends: 'ns/p' } }));
      expect(await stores.profiles.namedBy(org, 'ns/p')).toEqual({ scopes: ['project:web'], actions: ['fix'], profiles: ['made'] });
      expect(await stores.profiles.save(deletion(org))).toBe(false);
      expect((await stores.profiles.latest(org, 'ns/p'))?.version).toBe(1);
      expect(await stores.profiles.namedBy(other, 'ns/p')).toEqual({ scopes: [], actions: [], profiles: [] });
      expect(await stores.profiles.save(deletion(other))).toBe(true);
    });

    it.each(['setting', 'action', 'profile'] as const)(
      'deletes none that one %s names, and any whose name is only in older versions',
      async (kind) => {
        const org = newOrg();
        await stores.profiles.save(versionOf(org, 'p', 1));
        await stores.profiles.save(versionOf(org, 'was', 1, { document: { extends: 'p' } }));
        await stores.profiles.save(versionOf(org, 'was', 2, { document: { extends: 'auto' } }));
        await stores.profiles.save(versionOf(org, 'gone', 1, { document: { extends: 'p' } }));
        await stores.profiles.save(versionOf(org, 'gone', 2, { document: null }));
        if (kind === 'setting') await stores.config.set(org, 'org', 'core.automation-profile', 'p');
        if (kind === 'action') await stores.actions.add(actionOf(org, 'a', { automation_profile: 'p' }));
        if (kind === 'profile') await stores.profiles.save(versionOf(org, 'made', 1, { document: { extends: 'p' } }));
        const deletion = versionOf(org, 'p', 2, { document: null });
        expect(await stores.profiles.save(deletion)).toBe(false);
        if (kind === 'action') return;
        if (kind === 'setting') await stores.config.set(org, 'org', 'core.automation-profile', 'auto');
        if (kind === 'profile') await stores.profiles.save(versionOf(org, 'made', 2, { document: null }));
        expect(await stores.profiles.namedBy(org, 'p')).toEqual({ scopes: [], actions: [], profiles: [] });
        expect(await stores.profiles.save(deletion)).toBe(true);
      },
    );

    it('stores no name of one that is not there, where it is needed', async () => {
      const org = newOrg();
      const needs = { profile: 'p' };
      const store = async (name: string) => [
        await stores.config.set(org, 'org', 'core.automation-profile', 'p', needs),
        await stores.actions.add(actionOf(org, name, { automation_profile: 'p' }), needs),
        await stores.profiles.save(versionOf(org, name, 1, { document: { extends: 'p' } }), needs),
      ];
      const nowhere = [false, false, false];
      expect(await store('a')).toEqual(nowhere);
      await stores.profiles.save(versionOf(newOrg(), 'p', 1));
      expect(await store('a')).toEqual(nowhere);
      await stores.profiles.save(versionOf(org, 'p', 1));
      await stores.profiles.save(versionOf(org, 'p', 2, { document: null, defaulted: [] }));
      expect(await store('a')).toEqual(nowhere);
      expect(await stores.profiles.latest(org, 'a')).toBeNull();
      expect(await stores.config.get(org, 'org', 'core.automation-profile')).toBeNull();
      expect(await stores.actions.get(org, 'a')).toBeNull();
      await stores.profiles.save(versionOf(org, 'p', 3));
      expect(await store('a')).toEqual([true, true, true]);
      expect(await stores.actions.get(org, 'a')).toEqual(actionOf(org, 'a', { automation_profile: 'p' }));
    });

    it('that is deleted while names of it are stored: either it stays, or nothing names it', async () => {
      for (let round = 0; round < 10; round += 1) {
        const org = newOrg();
        await stores.profiles.save(versionOf(org, 'p', 1));
        const needs = { profile: 'p' };
        const [deleted, set, added, made] = await Promise.all([
          stores.profiles.save(versionOf(org, 'p', 2, { document: null, defaulted: [] })),
          stores.config.set(org, 'org', 'core.automation-profile', 'p', needs),
          stores.actions.add(actionOf(org, 'a', { automation_profile: 'p' }), needs),
          stores.profiles.save(versionOf(org, 'made', 1, { document: { extends: 'p' } }), needs),
        ]);
        expect(deleted).toBe(!(set || added || made));
      }
    });

    it('lists the newest of each name of the org, by name, whatever other names and orgs have', async () => {
      const org = newOrg();
      const other = newOrg();
      for (const row of [versionOf(org, 'b', 1), versionOf(org, 'b', 2), versionOf(org, 'a', 1), versionOf(org, 'c', 1)]) {
        await stores.profiles.save(row);
      }
      for (const version of [1, 2, 3, 4, 5]) await stores.profiles.save(versionOf(other, 'a', version));
      await stores.profiles.save(versionOf(org, 'c', 2, { document: null }));
      await stores.profiles.save(versionOf(org, 'c', 3));
      expect((await stores.profiles.list(org)).map(({ name, version }) => [name, version])).toEqual([
        ['a', 1],
        ['b', 2],
        ['c', 3],
      ]);
      expect(await stores.profiles.latest(newOrg(), 'a')).toBeNull();
      expect(await stores.profiles.latest(org, 'A')).toBeNull();
      expect(await stores.profiles.versions(newOrg(), 'a')).toEqual([]);
    });
  });

  describe(`${adapter}: policy floors`, () => {
    it('answers the newest version of the org, and gives each number once', async () => {
      const org = newOrg();
      const row = (version: number) => ({
        org,
        version,
        policy: { guardrails: { max_steps: version } },
        savedAt: at(version),
        savedBy: 'key',
      });
      expect(await stores.orgPolicies.latest(org)).toBeNull();
      for (const version of [1, 2]) expect(await stores.orgPolicies.save(row(version))).toBe(true);
      expect(await stores.orgPolicies.save({ ...row(2), policy: {} })).toBe(false);
      expect(await stores.orgPolicies.latest(org)).toEqual(row(2));
      expect(await stores.orgPolicies.latest(newOrg())).toBeNull();
    });
  });

  describe(`${adapter}: projects`, () => {
    it('adds, finds and lists projects inside the walls of their org', async () => {
      const org = newOrg();
      const project = { org, name: 'site', settings: { protected_paths: ['.git/**'] }, createdAt: at(1) };
      expect(await stores.projects.add(project)).toBe(true);
      expect(await stores.projects.add({ ...project, settings: {} })).toBe(false);
      await stores.projects.add({ ...project, name: 'api' });
      expect(await stores.projects.get(org, 'site')).toEqual(project);
      expect(await stores.projects.get(newOrg(), 'site')).toBeNull();
      expect((await stores.projects.list(org)).map(({ name }) => name)).toEqual(['api', 'site']);
    });
  });

  describe(`${adapter}: sessions`, () => {
    it('makes a session once and answers the one that is stored', async () => {
      const session = sessionOf(newOrg());
      expect(await stores.sessions.ensure(session)).toEqual(session);
      expect(await stores.sessions.ensure({ ...session, actorName: 'other', createdBy: 'k9' })).toEqual(session);
      expect(await stores.sessions.get(session.org, session.id)).toEqual(session);
      expect(await stores.sessions.get(newOrg(), session.id)).toBeNull();
    });

    it('closes a session once; a foreign one is not there', async () => {
      const session = sessionOf(newOrg());
      await stores.sessions.ensure(session);
      expect(await stores.sessions.close(newOrg(), session.id, at(2))).toBe(false);
      expect(await stores.sessions.close(session.org, session.id, at(3))).toBe(true);
      expect(await stores.sessions.close(session.org, session.id, at(4))).toBe(true);
      expect(await stores.sessions.ensure(session)).toEqual({ ...session, status: 'closed', closedAt: at(3) });
    });

    it('lists sessions newest first', async () => {
      const org = newOrg();
      for (const n of [1, 3, 2]) await stores.sessions.ensure(sessionOf(org, { id: `s${n}`, createdAt: at(n) }));
      expect((await stores.sessions.list(org)).map(({ id }) => id)).toEqual(['s3', 's2', 's1']);
    });
  });

  describe(`${adapter}: config values`, () => {
    it.each([['text'], [0], [false], [null], [{ a: [1, { b: 'ü' }] }], [[]]] as const)('keeps %j as it is', async (value) => {
      const org = newOrg();
      await stores.config.set(org, 'org', 'key', value);
      expect(await stores.config.get(org, 'org', 'key')).toEqual(value);
      expect(await stores.config.list(org, 'org')).toEqual(new Map([['key', value]]));
    });

    it('keeps scopes and orgs apart, and the last value of a key', async () => {
      const org = newOrg();
      await stores.config.set(org, 'org', 'core.default-action', 'a');
      await stores.config.set(org, 'project:x', 'core.default-action', 'b');
      await stores.config.set(org, 'org', 'core.default-action', 'c');
      expect(await stores.config.get(org, 'org', 'core.default-action')).toBe('c');
      expect(await stores.config.list(org, 'project:x')).toEqual(new Map([['core.default-action', 'b']]));
      expect(await stores.config.get(newOrg(), 'org', 'core.default-action')).toBeNull();
      expect(await stores.config.list(org, 'project:y')).toEqual(new Map());
    });
  });

  planIndexSuite(adapter, stores.plans);

  outcomeSuite(adapter, stores.outcomes);

  describe(`${adapter}: audit entries`, () => {
    it('appends in any order and more than once, and keeps the first entry of a position', async () => {
      const org = newOrg();
      await stores.audit.append([auditOf(org, 3), auditOf(org, 1)]);
      await stores.audit.append([auditOf(org, 1, { reason: 'changed' }), auditOf(org, 2)]);
      expect(await stores.audit.list(org, 'p', 0, 10)).toEqual([auditOf(org, 1), auditOf(org, 2), auditOf(org, 3)]);
    });

    it('pages by position within one plan of one org', async () => {
      const org = newOrg();
      await stores.audit.append([1, 2, 3, 4].map((seq) => auditOf(org, seq)));
      await stores.audit.append([auditOf(org, 1, { planId: 'q' }), auditOf(newOrg(), 5)]);
      expect((await stores.audit.list(org, 'p', 1, 2)).map(({ seq }) => seq)).toEqual([2, 3]);
      expect((await stores.audit.list(org, 'p', 3, 10)).map(({ seq }) => seq)).toEqual([4]);
    });

    it('keeps every value as it was: nulls, quotes, nested contexts', async () => {
      const entry = auditOf(newOrg(), 1, {
        result: 'denied',
        reason: `it's "quoted" — ü`,
        context: { guards: [{ name: 'budget', allowed: false, why: null }], n: 0.5, empty: {} },
      });
      await stores.audit.append([entry]);
      expect(await stores.audit.list(entry.org, 'p', 0, 1)).toEqual([entry]);
    });

    it('appends hundreds of large entries at once', async () => {
      const org = newOrg();
      const rows = Array.from({ length: 300 }, (_, n) => auditOf(org, n + 1, { context: { text: 'é'.repeat(10_000) } }));
      await stores.audit.append(rows);
      await stores.audit.append([]);
      const stored = await stores.audit.list(org, 'p', 0, 1_000);
      expect(stored).toHaveLength(300);
      expect(stored[299]).toEqual(rows[299]);
    });
  });

  describe(`${adapter}: idempotency`, () => {
    const claimOf = (org: string, more: { keyId?: string; planId?: string; bodyDigest?: string; createdAt?: string } = {}) => ({
      org,
      keyId: 'k1',
      idempotencyKey: 'once',
      bodyDigest: 'd1',
      planId: 'p1',
      createdAt: '2026-01-08T00:00:00.000Z',
      ...more,
    });

    it('answers the first claim to the second, whatever its body', async () => {
      const org = newOrg();
      expect(await stores.idempotency.claim(claimOf(org))).toEqual(claimOf(org));
      expect(await stores.idempotency.claim(claimOf(org, { planId: 'p2', bodyDigest: 'd2' }))).toEqual(claimOf(org));
    });

    it('keeps keys and orgs apart', async () => {
      const org = newOrg();
      await stores.idempotency.claim(claimOf(org));
      expect((await stores.idempotency.claim(claimOf(org, { keyId: 'k2', planId: 'p2' }))).planId).toBe('p2');
      expect((await stores.idempotency.claim(claimOf(newOrg(), { planId: 'p3' }))).planId).toBe('p3');
    });

    it('lets exactly one of many simultaneous claims win', async () => {
      const org = newOrg();
      const answers = await Promise.all(Array.from({ length: 10 }, (_, n) => stores.idempotency.claim(claimOf(org, { planId: `p${n}` }))));
      expect(new Set(answers.map(({ planId }) => planId)).size).toBe(1);
    });

    it('forgets a claim after seven days and not before', async () => {
      const org = newOrg();
      await stores.idempotency.claim(claimOf(org));
      const almost = claimOf(org, { planId: 'p2', createdAt: '2026-01-14T23:59:59.999Z' });
      expect((await stores.idempotency.claim(almost)).planId).toBe('p1');
      const later = claimOf(org, { planId: 'p2', createdAt: '2026-01-15T00:00:00.000Z' });
      expect(await stores.idempotency.claim(later)).toEqual(later);
    });

    it('purges what is older and counts it', async () => {
      const org = newOrg();
      const old = claimOf(org, { createdAt: '1999-01-01T00:00:00.000Z' });
      await stores.idempotency.claim(old);
      await stores.idempotency.claim(claimOf(org, { keyId: 'k2' }));
      expect(await stores.idempotency.purge('2000-01-01T00:00:00.000Z')).toBe(1);
      expect(await stores.idempotency.purge('2000-01-01T00:00:00.000Z')).toBe(0);
      expect((await stores.idempotency.claim(claimOf(org, { keyId: 'k2', planId: 'p9' }))).planId).toBe('p1');
    });
  });
}

function newOrg(): string {
  return `org-${crypto.randomUUID()}`;
}

/** The n-th second of a day. */
function at(n: number): string {
  return new Date(Date.UTC(2026, 0, 1) + n * 1_000).toISOString();
}

function keyOf(org: string, more: Partial<KeyRecord> = {}): KeyRecord {
  return {
    org,
    id: crypto.randomUUID(),
    name: 'a key',
    kind: 'human',
    roles: ['viewer'],
    secretHash: 'ab'.repeat(32),
    createdAt: at(1),
    expiresAt: null,
    revokedAt: null,
    ...more,
  };
}

function actionOf(org: string, name: string, body: NamedDocument['body'] = {}): NamedDocument {
  return { org, name, version: 1, body, createdAt: at(1), updatedAt: at(1) };
}

function sessionOf(org: string, more: Partial<SessionRecord> = {}): SessionRecord {
  return { org, id: 'ctx:1', actorName: null, status: 'open', createdAt: at(1), closedAt: null, createdBy: 'k1', ...more };
}

function auditOf(org: string, seq: number, more: Partial<AuditRow> = {}): AuditRow {
  return {
    org,
    planId: 'p',
    seq,
    at: at(seq),
    eventType: 'call_allowed',
    guardName: 'budget',
    result: 'allowed',
    reason: null,
    actorKind: 'script',
    actorId: 'scripted/commands',
    context: {},
    hash: 'cd'.repeat(32),
    ...more,
  };
}
