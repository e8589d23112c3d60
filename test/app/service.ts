/** The application in Node: the real operations over adapters in memory. Calls go the way of every edge: role, parameters, handler. */
import { randomBytes } from 'node:crypto';
import { ulid } from 'ulid';
import type * as z from 'zod';
import { makeCardSigner } from '../../src/a2a/card-signature.ts';
import { findOperation, OPERATIONS, type OperationName, type ParamsInputOf, type ResultOf } from '../../src/api/operations.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import type { KeyRecord } from '../../src/app/ports.ts';
import type { Services } from '../../src/app/services.ts';
import type { Principal } from '../../src/core/principal.ts';
import type { Refusal } from '../../src/core/refusal.ts';
import type { Result } from '../../src/core/result.ts';
import { makeActorRegistry } from '../../src/engine/actors/registry.ts';
import { outsideFactsOf } from '../../src/engine/outside-facts.ts';
import { makeToolbox } from '../../src/engine/tools/toolbox.ts';
import { WORKSPACE_TOOL_PACKAGE } from '../../src/engine/tools/workspace-tools.ts';
import { sha256 } from '../../src/objects/sha256.ts';
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
import { makeMemoryPlans } from './memory-plans.ts';
import { makeSqliteProjects, type TestProjects } from './sqlite-projects.ts';

export const START = Date.parse('2026-11-30T12:00:00.000Z');

export interface TestService {
  readonly services: Services;
  readonly projects: TestProjects;
  /** A time that stands still until it is moved. */
  readonly clock: { ms: number };
  /** A key of an org that is stored, and the caller that it makes. */
  caller(org: string, rest?: Partial<KeyRecord>): Promise<TestCaller>;
}

export interface TestCaller {
  readonly principal: Principal;
  /** The result; throws the refusal. */
  call<N extends OperationName>(name: N, params: ParamsInputOf<N>): Promise<ResultOf<N>>;
  /** The refusal; throws when there is none. */
  refused<N extends OperationName>(name: N, params: ParamsInputOf<N>): Promise<Refusal>;
}

export function makeService(replace: Partial<Services> = {}): TestService {
  const clock = { ms: START };
  const toolbox = makeToolbox([WORKSPACE_TOOL_PACKAGE]);
  if (!toolbox.ok) throw new Error(toolbox.error.message);
  const { catalogue } = toolbox.value;
  const projects = makeSqliteProjects();
  const planIndex = makeMemoryPlanIndex();
  const audit = makeMemoryAuditStore();
  const auditKeys = replace.auditKeys ?? newAuditKeys();
  const services: Services = {
    clock: { nowMs: () => clock.ms },
    ids: { ulid: () => ulid(), secret: () => randomBytes(32).toString('base64url') },
    sha256,
    settings: {
      version: '9.9.9',
      publicUrl: 'https://agents.example',
      authMode: 'bearer',
      publicOrg: null,
      openOrg: 'dev',
      protocolVersions: ['1.0', '0.3'],
      streaming: true,
      extendedCard: true,
      requiredExtensions: [],
      pushNotifications: true,
      pushRules: { allowLoopback: false },
    },
    keys: makeMemoryKeyStore(),
    ...makeMemoryNames(),
    orgPolicies: makeMemoryOrgPolicyStore(),
    projectStore: makeMemoryProjectStore(),
    projects,
    sessions: makeMemorySessionStore(),
    planIndex,
    audit,
    auditKeys,
    cardSigner: makeCardSigner(newSigningKey(), sha256),
    tokens: noTokens,
    idempotency: makeMemoryIdempotencyStore(),
    outcomes: makeMemoryOutcomeStore(),
    orgLog: makeMemoryOrgLog({ sha256, nowMs: () => clock.ms, auditKeys }),
    plans: makeMemoryPlans({ index: planIndex, audit, auditKeys, sha256, catalogue, nowMs: () => clock.ms }),
    budgets: makeMemoryBudgets(() => clock.ms),
    halts: makeMemoryHalts(),
    floors: makeMemoryFloors(),
    catalogue,
    callFacts: (call, protectedPaths) => outsideFactsOf(toolbox.value, call, protectedPaths),
    actors: { names: () => makeActorRegistry().names, immediateReply: () => null },
    ...replace,
  };
  return { services, projects, clock, caller: (org, rest) => makeCaller(services, org, rest) };
}

async function makeCaller(services: Services, org: string, rest: Partial<KeyRecord> = {}): Promise<TestCaller> {
  const record: KeyRecord = {
    org,
    id: services.ids.ulid(),
    name: `a key of ${org}`,
    kind: 'human',
    roles: ['admin'],
    secretHash: sha256('secret'),
    createdAt: new Date(services.clock.nowMs()).toISOString(),
    expiresAt: null,
    revokedAt: null,
    ...rest,
  };
  await services.keys.create(record);
  const principal: Principal = { org, keyId: record.id, name: record.name, kind: record.kind, roles: record.roles };
  const dispatch = (name: OperationName, params: unknown) => {
    const found = findOperation(name);
    if (found === null) throw new Error(`no operation ${name}`);
    return dispatchOperation(found, JSON.parse(JSON.stringify(params)), { principal, idempotencyKey: null }, services);
  };
  return {
    principal,
    async call<N extends OperationName>(name: N, params: ParamsInputOf<N>) {
      const result: Result<unknown, Refusal> = await dispatch(name, params);
      if (!result.ok) throw new Error(`${name}: ${JSON.stringify(result.error)}`);
      // Every answer is held to its row, and is plain JSON.
      const schema: z.ZodType = OPERATIONS[name].result;
      schema.parse(JSON.parse(JSON.stringify(result.value)));
      return result.value as ResultOf<N>;
    },
    async refused<N extends OperationName>(name: N, params: ParamsInputOf<N>) {
      const result = await dispatch(name, params);
      if (result.ok) throw new Error(`${name} was not refused: ${JSON.stringify(result.value)}`);
      if (!(OPERATIONS[name].errors as readonly string[]).includes(result.error.kind)) {
        throw new Error(`${name} refused as ${result.error.kind}, which its row does not name`);
      }
      return result.error;
    },
  };
}

export const textOf = (base64: string): string => Buffer.from(base64, 'base64').toString();

/** A blob as it is put and committed. */
export function blobOf(content: string | Uint8Array) {
  const bytes = Buffer.from(content);
  const digest = sha256(bytes);
  return { put: { digest, base64: bytes.toString('base64') }, entry: { mode: '100644' as const, digest, size_bytes: bytes.length } };
}
