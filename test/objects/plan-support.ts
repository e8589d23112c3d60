/** A running service inside workerd, for tests of plans: real objects, real D1, the test tools. */
import { createHash } from 'node:crypto';
import { env } from 'cloudflare:workers';
import { ulid } from 'ulid';
import { parseAction } from '../../src/core/action.ts';
import type { PlanSnapshot } from '../../src/core/plan/snapshot.ts';
import type { Principal } from '../../src/core/principal.ts';
import { startPlan, type StartRequest } from '../../src/app/start-plan.ts';
import type { Services } from '../../src/app/services.ts';
import { connect } from '../worker/test-worker.ts';

export const services: Services = connect(env as never);

export const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex');

/** An org of its own for each test, with a person who may approve. */
export async function newOrg(): Promise<Principal> {
  const org = `org-${ulid().toLowerCase()}`;
  const principal: Principal = { org, keyId: ulid(), name: 'person', kind: 'human', roles: ['viewer', 'operator', 'approver', 'admin'] };
  await services.keys.create({ org, id: principal.keyId, name: 'person', kind: 'human', roles: principal.roles, secretHash: sha256(ulid()), createdAt: now(), expiresAt: null, revokedAt: null });
  return principal;
}

export const now = (): string => new Date().toISOString();

export async function addAction(principal: Principal, document: Record<string, unknown>): Promise<string> {
  const parsed = parseAction({ description: 'test', actor: 'scripted/steps', ...document });
  if (!parsed.ok) throw new Error(parsed.error.message);
  await services.actions.add({ org: principal.org, name: parsed.value.name, version: 1, body: parsed.value as never, createdAt: now(), updatedAt: now() });
  return parsed.value.name;
}

/** A project with these files as its head. */
export async function addProject(principal: Principal, files: Record<string, string>): Promise<string> {
  const name = `p-${ulid().toLowerCase()}`;
  await services.projectStore.add({ org: principal.org, name, settings: {}, createdAt: now() });
  const port = services.projects.project(principal.org, name);
  await port.create();
  const blobs = Object.values(files).map((text) => ({ digest: sha256(text), bytes: new TextEncoder().encode(text) }));
  await port.putBlobs([...new Map(blobs.map((blob) => [blob.digest, blob])).values()]);
  const done = await port.commit({
    commitId: ulid(),
    expectedHead: null,
    mode: 'replace',
    changes: Object.entries(files).map(([path, text]) => ({ path, entry: { mode: '100644', blob: sha256(text), sizeBytes: new TextEncoder().encode(text).byteLength } })),
    message: 'import',
    by: principal.keyId,
  });
  if (!done.ok) throw new Error(done.error.message);
  return name;
}

export async function start(principal: Principal, request: Partial<StartRequest> & { actionName: string }): Promise<PlanSnapshot> {
  const started = await startPlan({ arguments: {}, input: '', message: null, idempotency: null, fieldPrefix: '', ...request }, principal, services);
  if (!started.ok) throw new Error(JSON.stringify(started.error));
  return started.value;
}

export const planOf = (principal: Principal, planId: string) => services.plans.plan(principal.org, planId);

/** Follows the plan until the condition holds; fails with what it saw last. */
export async function until(principal: Principal, planId: string, holds: (snapshot: PlanSnapshot) => boolean, ms = 15_000): Promise<PlanSnapshot> {
  const deadline = Date.now() + ms;
  for (;;) {
    const snapshot = await planOf(principal, planId).read();
    if (snapshot !== null && holds(snapshot)) return snapshot;
    if (Date.now() > deadline) throw new Error(`plan is in ${snapshot?.plan.phase}/${snapshot?.plan.state}: ${JSON.stringify(snapshot?.plan.failure)} ${JSON.stringify(snapshot?.plan.approvals.filter((each) => each.status === 'pending'))}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export const isAt = (phase: string, state: string) => ({ plan }: PlanSnapshot): boolean => plan.phase === phase && plan.state === state;

export const isWaiting = ({ plan }: PlanSnapshot): boolean => plan.state === 'waiting';

export async function fileOf(principal: Principal, project: string, path: string): Promise<string | null> {
  const port = services.projects.project(principal.org, project);
  const head = await port.head();
  const manifest = head === null ? null : await port.manifest(head.head);
  const line = manifest?.split('\n').find((each) => each.endsWith(` ${path}`));
  const digest = line?.split(' ')[1];
  if (digest === undefined) return null;
  const bytes = (await port.getBlobs([digest])).get(digest);
  return bytes === undefined ? null : new TextDecoder().decode(bytes);
}
