/** A deployment in memory for tests of the edge: the memory adapters, a clock that is set by hand, no plans and no projects. */
import { createHash } from 'node:crypto';
import type { Hono } from 'hono';
import { makeCardSigner } from '../../src/a2a/card-signature.ts';
import type { KeyRecord, PlanPort, ProjectPort } from '../../src/app/ports.ts';
import type { Services, Settings } from '../../src/app/services.ts';
import { formatApiKey, hashSecret } from '../../src/core/api-key.ts';
import { invalidState, notFound } from '../../src/core/refusal.ts';
import { err } from '../../src/core/result.ts';
import { makeToolCatalogue } from '../../src/core/tool.ts';
import { createApp } from '../../src/http/app.ts';
import { makeMemoryOrgLog } from '../../src/storage/memory/org-log.ts';
import { makeMemoryOutcomeStore } from '../../src/storage/memory/outcomes.ts';
import { makeMemoryPlanIndex } from '../../src/storage/memory/plan-index.ts';
import { makeMemoryOrgPolicyStore } from '../../src/storage/memory/profiles.ts';
import { makeMemoryKeyStore, makeMemoryNames, makeMemoryProjectStore, makeMemorySessionStore } from '../../src/storage/memory/registry.ts';
import { makeMemoryAuditStore, makeMemoryIdempotencyStore } from '../../src/storage/memory/trail.ts';
import { newAuditKeys, newSigningKey } from '../support/audit-keys.ts';
import { makeMemoryBudgets } from '../support/memory-budgets.ts';
import { makeMemoryFloors, makeMemoryHalts } from '../support/memory-halts.ts';
import { noTokens } from '../support/no-tokens.ts';

export const START_MS = Date.parse('2026-11-30T12:00:00.000Z');

export const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex');

/** One for all deployments of a file, as one deployment keeps it. */
const CARD_KEY = newSigningKey();

export interface Deployment {
  readonly services: Services;
  readonly app: Hono;
  /** What the edge wrote to the log. */
  readonly log: Readonly<Record<string, string>>[];
  /** The ids of keys that the key store was asked for. */
  readonly keyReads: readonly string[];
  advance(ms: number): void;
  /** Stores a key and answers its text. */
  addKey(record?: Partial<KeyRecord>): Promise<string>;
}

export interface DeploymentOptions {
  readonly settings?: Partial<Settings>;
  readonly services?: Partial<Services>;
}

export function deploy(options: DeploymentOptions = {}): Deployment {
  let nowMs = START_MS;
  let ids = 0;
  const keyReads: string[] = [];
  const log: Readonly<Record<string, string>>[] = [];
  const keys = makeMemoryKeyStore();
  const catalogue = makeToolCatalogue([]);
  if (!catalogue.ok) throw new Error(catalogue.error.message);
  const services: Services = {
    clock: { nowMs: () => nowMs },
    ids: {
      ulid: () => {
        ids += 1;
        return `01HXRCF1${String(ids).padStart(18, '0')}`;
      },
      secret: () => 'a-secret_of-tests-000000000000000000000000',
    },
    sha256,
    settings: {
      version: '1.2.3',
      publicUrl: null,
      authMode: 'bearer',
      publicOrg: 'acme',
      openOrg: 'development',
      protocolVersions: ['1.0', '0.3'],
      streaming: true,
      extendedCard: true,
      requiredExtensions: [],
      pushNotifications: true,
      pushRules: { allowLoopback: false },
      ...options.settings,
    },
    keys: {
      ...keys,
      find: (id) => {
        keyReads.push(id);
        return keys.find(id);
      },
    },
    ...makeMemoryNames(),
    orgPolicies: makeMemoryOrgPolicyStore(),
    projectStore: makeMemoryProjectStore(),
    projects: { project: () => noProject },
    budgets: makeMemoryBudgets(() => nowMs),
    halts: makeMemoryHalts(),
    floors: makeMemoryFloors(),
    sessions: makeMemorySessionStore(),
    planIndex: makeMemoryPlanIndex(),
    audit: makeMemoryAuditStore(),
    auditKeys: newAuditKeys(),
    cardSigner: makeCardSigner(CARD_KEY, sha256),
    tokens: noTokens,
    idempotency: makeMemoryIdempotencyStore(),
    outcomes: makeMemoryOutcomeStore(),
    orgLog: makeMemoryOrgLog({ sha256, nowMs: () => nowMs }),
    plans: { plan: () => noPlan },
    catalogue: catalogue.value,
    callFacts: () => null,
    actors: { names: () => [], immediateReply: () => null },
    ...options.services,
  };
  const app = createApp(() => services, { report: (entry) => log.push(entry) });
  return {
    services,
    app: app as unknown as Hono,
    log,
    keyReads,
    advance: (ms) => {
      nowMs += ms;
    },
    addKey: async (record = {}) => {
      const id = record.id ?? services.ids.ulid();
      const secret = `s-${sha256(id)}`;
      await keys.create({
        org: 'acme',
        id,
        name: 'test',
        kind: 'human',
        roles: ['admin'],
        secretHash: hashSecret(sha256, secret),
        createdAt: new Date(START_MS).toISOString(),
        expiresAt: null,
        revokedAt: null,
        ...record,
      });
      return formatApiKey({ id, secret });
    },
  };
}

/** A deployment in which no plan was ever made. */
const noPlan: PlanPort = {
  create: async () => err(invalidState('plans cannot be made here')),
  command: async () => null,
  external: async () => null,
  value: async () => null,
  read: async () => null,
  log: async () => null,
  diff: async () => null,
  checkpoints: async () => null,
  verify: async () => null,
  heads: async () => null,
  retire: async () => null,
  setPush: async () => null,
  pushes: async () => null,
  deletePush: async () => null,
  retryPush: async () => null,
  wake: async () => {},
  follow: async () => null,
};

const noProject: ProjectPort = {
  create: async () => {
    throw new Error('projects cannot be made here');
  },
  head: async () => null,
  missingBlobs: async (digests) => digests,
  putBlobs: async () => err(notFound('project', 'none')),
  getBlobs: async () => new Map(),
  manifest: async () => null,
  commit: async () => err(notFound('project', 'none')),
  committed: async () => null,
  search: async () => ({ hits: [], truncated: false }),
  history: async () => [],
};

export interface RpcAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: {
    readonly jsonrpc: string;
    readonly id: unknown;
    readonly result?: Readonly<Record<string, unknown>>;
    readonly error?: { readonly code: number; readonly message: string; readonly data: unknown };
  };
}

export interface RpcCallOptions {
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly key?: string;
  readonly id?: unknown;
}

/** Posts a body as it is. */
export async function post(app: Hono, body: BodyInit, { path = '/a2a', headers = {}, key }: RpcCallOptions = {}): Promise<RpcAnswer> {
  const response = await app.request(path, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', ...(key === undefined ? {} : { authorization: `Bearer ${key}` }), ...headers },
  });
  return { status: response.status, headers: response.headers, body: (await response.json()) as RpcAnswer['body'] };
}

/** Calls a method. */
export function call(app: Hono, method: string, params: unknown = {}, options: RpcCallOptions = {}): Promise<RpcAnswer> {
  return post(app, JSON.stringify({ jsonrpc: '2.0', id: options.id ?? 'r1', method, params }), options);
}
