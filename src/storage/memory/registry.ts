/** The registry's ports in memory: for tests of what is built on them, and as the plain statement of what they promise. */
import type {
  ActionStore,
  ConfigStore,
  KeyRecord,
  KeyStore,
  NamedDocument,
  NeededProfile,
  ProfileStore,
  ProfileVersion,
  ProjectRecord,
  ProjectStore,
  SessionRecord,
  SessionStore,
} from '../../app/ports.ts';
import type { JsonValue } from '../../core/json.ts';
import { hasRole } from '../../core/principal.ts';
import type { OrgStore } from '../org-store.ts';
import { compareText, Documents } from './documents.ts';
import { isThere, makeMemoryProfileStore } from './profiles.ts';

export function makeMemoryOrgStore(): OrgStore {
  const orgs = new Documents<string>();
  return {
    async ensure(org, createdAt) {
      orgs.add(createdAt, org);
    },
  };
}

export function makeMemoryKeyStore(): KeyStore {
  const keys = new Documents<KeyRecord>();
  const isLive = (key: KeyRecord, now: string) => key.revokedAt === null && (key.expiresAt === null || key.expiresAt > now);
  return {
    async find(id) {
      return keys.get(id);
    },
    async create(record) {
      if (!keys.add(record, record.id)) throw new Error('a key with this id exists');
    },
    async list(org) {
      return keys.where((key) => key.org === org).sort((a, b) => compareText(a.createdAt, b.createdAt) || compareText(a.id, b.id));
    },
    async revoke(org, id, at) {
      const key = keys.get(id);
      if (key === null || key.org !== org) return false;
      keys.set({ ...key, revokedAt: key.revokedAt ?? at }, id);
      return true;
    },
    async countApprovers(org, now) {
      return keys.where((key) => key.org === org && key.kind === 'human' && hasRole(key.roles, 'approver') && isLive(key, now)).length;
    },
  };
}

/** Actions, profiles and settings, which name each other: no name of a profile is stored that leads nowhere, and none is deleted that is named. */
export function makeMemoryNames(): { readonly actions: ActionStore; readonly profiles: ProfileStore; readonly config: ConfigStore } {
  const actions = new Documents<NamedDocument>();
  const values = new Documents<ConfigValue>();
  const versions = new Documents<ProfileVersion>();
  const profiles = makeMemoryProfileStore(versions, {
    actions: (org, profile) =>
      actions
        .where((action) => action.org === org && action.body['automation_profile'] === profile)
        .map(({ name }) => name)
        .sort(compareText),
    scopes: (org, profile) =>
      values
        .where((row) => row.org === org && row.key === 'core.automation-profile' && row.value === profile)
        .map(({ scope }) => scope)
        .sort(compareText),
  });
  const isNeedMet: IsThere = (org, needs) => isThere(versions, org, needs);
  return { actions: actionStore(actions, isNeedMet), profiles, config: configStore(values, isNeedMet) };
}

type IsThere = (org: string, needs: NeededProfile | undefined) => boolean;

interface ConfigValue {
  readonly org: string;
  readonly scope: string;
  readonly key: string;
  readonly value: JsonValue;
}

function actionStore(actions: Documents<NamedDocument>, isThere: IsThere): ActionStore {
  const byName = (a: NamedDocument, b: NamedDocument) => compareText(a.name, b.name) || compareText(a.org, b.org);
  return {
    async get(org, name) {
      return actions.get(org, name);
    },
    async list(org) {
      return actions.where((action) => action.org === org).sort(byName);
    },
    async add(action, needs) {
      return isThere(action.org, needs) && actions.add(action, action.org, action.name);
    },
    async listPublic(org) {
      return actions.where((action) => action.org === org && action.body['public'] === true).sort(byName);
    },
  };
}

export function makeMemoryProjectStore(): ProjectStore {
  const projects = new Documents<ProjectRecord>();
  return {
    async get(org, name) {
      return projects.get(org, name);
    },
    async list(org) {
      return projects.where((project) => project.org === org).sort((a, b) => compareText(a.name, b.name));
    },
    async add(record) {
      return projects.add(record, record.org, record.name);
    },
  };
}

export function makeMemorySessionStore(): SessionStore {
  const sessions = new Documents<SessionRecord>();
  return {
    async get(org, id) {
      return sessions.get(org, id);
    },
    async list(org) {
      return sessions
        .where((session) => session.org === org)
        .sort((a, b) => compareText(b.createdAt, a.createdAt) || compareText(a.id, b.id));
    },
    async ensure(record) {
      sessions.add(record, record.org, record.id);
      return sessions.get(record.org, record.id) ?? record;
    },
    async close(org, id, at) {
      const session = sessions.get(org, id);
      if (session === null) return false;
      sessions.set({ ...session, status: 'closed', closedAt: session.closedAt ?? at }, org, id);
      return true;
    },
  };
}

function configStore(values: Documents<ConfigValue>, isThere: IsThere): ConfigStore {
  return {
    async get(org, scope, key) {
      return values.get(org, scope, key)?.value ?? null;
    },
    async set(org, scope, key, value, needs) {
      if (!isThere(org, needs)) return false;
      values.set({ org, scope, key, value }, org, scope, key);
      return true;
    },
    async list(org, scope) {
      const rows = values.where((row) => row.org === org && row.scope === scope).sort((a, b) => compareText(a.key, b.key));
      return new Map(rows.map(({ key, value }) => [key, value]));
    },
  };
}
