/** A running service inside workerd, for tests of plans: real objects, real D1, the test tools. */

import { evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { createHash } from 'node:crypto';
import { ulid } from 'ulid';
import { afterEach, expect } from 'vitest';
import type { Services } from '../../src/app/services.ts';
import { type StartRequest, startPlan } from '../../src/app/start-plan.ts';
import { parseAction } from '../../src/core/action.ts';
import { windowEndMs } from '../../src/core/budget/window.ts';
import { auditEntryOf } from '../../src/core/plan/audit.ts';
import type { Answer, Caller } from '../../src/core/plan/commands.ts';
import type { LogRow } from '../../src/core/plan/events.ts';
import { replay } from '../../src/core/plan/evolve.ts';
import { nextTask } from '../../src/core/plan/next-task.ts';
import { type Approval, type Plan, pendingApprovals } from '../../src/core/plan/plan.ts';
import type { PlanSnapshot } from '../../src/core/plan/snapshot.ts';
import type { Principal } from '../../src/core/principal.ts';
import type { Refusal } from '../../src/core/refusal.ts';
import type { Result } from '../../src/core/result.ts';
import { HeadStore } from '../../src/objects/plan/head-store.ts';
import { LeaseStore } from '../../src/objects/plan/lease-store.ts';
import { indexRowOf } from '../../src/objects/plan/outbox-rows.ts';
import { PlanStore } from '../../src/objects/plan/plan-store.ts';
import { openLog } from '../../src/objects/plan/verify-log.ts';
import { objectName } from '../../src/storage/objects.ts';
import { PERFORMED } from '../worker/test-tools.ts';
import { connect } from '../worker/test-worker.ts';

export const services: Services = connect(env as never);

export const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex');

/** An org of its own for each test, with a person who may approve. */
export async function newOrg(): Promise<Principal> {
  return addKey(`org-${ulid().toLowerCase()}`, 'human');
}

/** A further key of an org. Humans get every role, agents may operate. */
export async function addKey(org: string, kind: 'human' | 'agent'): Promise<Principal> {
  const roles = kind === 'human' ? (['viewer', 'operator', 'approver', 'admin'] as const) : (['viewer', 'operator'] as const);
  const principal: Principal = { org, keyId: ulid(), name: kind, kind, roles: [...roles] };
  await services.keys.create({
    org,
    id: principal.keyId,
    name: kind,
    kind,
    roles: principal.roles,
    secretHash: sha256(ulid()),
    createdAt: now(),
    expiresAt: null,
    revokedAt: null,
  });
  return principal;
}

export const now = (): string => new Date().toISOString();

export async function addAction(principal: Principal, document: Record<string, unknown>): Promise<string> {
  const parsed = parseAction({ description: 'test', actor: 'scripted/steps', ...document });
  if (!parsed.ok) throw new Error(parsed.error.message);
  await services.actions.add({
    org: principal.org,
    name: parsed.value.name,
    version: 1,
    body: parsed.value as never,
    createdAt: now(),
    updatedAt: now(),
  });
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
    changes: Object.entries(files).map(([path, text]) => ({
      path,
      entry: { mode: '100644', blob: sha256(text), sizeBytes: new TextEncoder().encode(text).byteLength },
    })),
    message: 'import',
    by: principal.keyId,
  });
  if (!done.ok) throw new Error(done.error.message);
  return name;
}

export type StartOptions = Partial<StartRequest> & { readonly actionName: string };

export async function start(principal: Principal, request: StartOptions): Promise<PlanSnapshot> {
  const started = await tryStart(principal, request);
  if (!started.ok) throw new Error(JSON.stringify(started.error));
  return started.value;
}

export async function tryStart(principal: Principal, request: StartOptions): Promise<Result<PlanSnapshot, Refusal>> {
  const started = await startPlan(
    { arguments: {}, input: '', message: null, idempotency: null, fieldPrefix: '', ...request },
    principal,
    services,
  );
  if (started.ok) track(principal, started.value.plan.id);
  return started;
}

/** A plan of the given steps, at work under a profile; `label` tells its tools' effects from those of other tests. */
export async function startSteps(
  principal: Principal,
  steps: readonly object[],
  options: { readonly profile?: string; readonly guardrails?: object; readonly project?: string; readonly apply?: 'none' | 'project' } = {},
): Promise<string> {
  const actionName = await addAction(principal, { name: `a-${ulid().toLowerCase()}`, execute: steps, apply: options.apply ?? 'none' });
  const made = await start(principal, {
    actionName,
    automationProfile: options.profile ?? 'auto',
    ...(options.guardrails === undefined ? {} : { guardrails: options.guardrails }),
    ...(options.project === undefined ? {} : { project: options.project }),
  });
  return made.plan.id;
}

export const planOf = (principal: Principal, planId: string) => services.plans.plan(principal.org, planId);

export const stubOf = (principal: Principal, planId: string) => env.PLANS.getByName(objectName(principal.org, 'plan', planId));

export const isAt =
  (phase: string, state: string) =>
  ({ plan }: PlanSnapshot): boolean =>
    plan.phase === phase && plan.state === state;

export const isWaiting = ({ plan }: PlanSnapshot): boolean => plan.state === 'waiting';

export const isTerminal = ({ plan }: PlanSnapshot): boolean => plan.terminal;

/** Nothing moves the plan any more but somebody outside. */
export const isSettled = (snapshot: PlanSnapshot): boolean =>
  isTerminal(snapshot) || isWaiting(snapshot) || snapshot.plan.state === 'errored';

/** Follows the plan until the condition holds; fails with what it saw last. */
export async function until(
  principal: Principal,
  planId: string,
  holds: (snapshot: PlanSnapshot) => boolean,
  ms = 15_000,
): Promise<PlanSnapshot> {
  // Not by `Date`, which some tests move.
  const deadline = performance.now() + ms;
  for (;;) {
    const snapshot = await planOf(principal, planId).read();
    if (snapshot !== null && holds(snapshot)) return snapshot;
    if (performance.now() > deadline) {
      const { phase, state, failure, approvals } = snapshot?.plan ?? {};
      throw new Error(
        `plan is in ${phase}/${state}: ${JSON.stringify(failure)} ${JSON.stringify(approvals?.filter((each) => each.status === 'pending'))}`,
      );
    }
    await pause(10);
  }
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

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

/* ---------------------------------------------------------------- people */

/** The principal as a caller of commands; an agent may never approve. */
export function callerOf(principal: Principal, rest: Partial<Caller> = {}): Caller {
  return {
    actor: { kind: principal.kind, id: principal.keyId, name: principal.name },
    mayApprove: principal.kind === 'human',
    separateRequester: false,
    requireDigest: false,
    ...rest,
  };
}

export const pendingOf = ({ plan }: PlanSnapshot): readonly Approval[] => pendingApprovals(plan);

/** The one thing that is asked. */
export function onlyPending(snapshot: PlanSnapshot): Approval {
  const [approval, second] = pendingOf(snapshot);
  if (approval === undefined || second !== undefined) throw new Error(`${pendingOf(snapshot).length} approvals are pending`);
  return approval;
}

export async function answer(
  principal: Principal,
  planId: string,
  approval: Pick<Approval, 'id' | 'digest'>,
  rest: Partial<Answer> = {},
  caller: Caller = callerOf(principal),
): Promise<Result<PlanSnapshot, Refusal>> {
  const answered = await planOf(principal, planId).command({
    type: 'answer',
    by: caller,
    answer: { approvalId: approval.id, decision: 'approve', digest: approval.digest, reason: null, text: null, grant: null, ...rest },
  });
  if (answered === null) throw new Error('there is no such plan');
  return answered;
}

export async function approve(principal: Principal, planId: string, approval: Pick<Approval, 'id' | 'digest'>): Promise<PlanSnapshot> {
  const answered = await answer(principal, planId, approval);
  if (!answered.ok) throw new Error(JSON.stringify(answered.error));
  return answered.value;
}

export async function cancel(principal: Principal, planId: string, reason: string | null = null): Promise<Result<PlanSnapshot, Refusal>> {
  const result = await planOf(principal, planId).command({ type: 'cancel', by: callerOf(principal).actor, reason });
  if (result === null) throw new Error('there is no such plan');
  return result;
}

/* ---------------------------------------------------------------- looking inside */

/** Effects of the test tools with this label in their arguments. */
export const performed = (label: string): typeof PERFORMED => PERFORMED.filter((each) => each.args['label'] === label);

/** Rows that are read at once. */
const PAGE = 500;

export async function logOf(principal: Principal, planId: string): Promise<readonly LogRow[]> {
  const rows: LogRow[] = [];
  for (;;) {
    const page = await planOf(principal, planId).log(rows.at(-1)?.seq ?? 0, PAGE);
    if (page === null) throw new Error('there is no such plan');
    rows.push(...page);
    if (page.length < PAGE) return rows;
  }
}

export async function rowsOf<T extends LogRow['type']>(
  principal: Principal,
  planId: string,
  type: T,
): Promise<readonly Extract<LogRow, { type: T }>[]> {
  return (await logOf(principal, planId)).filter((row): row is Extract<LogRow, { type: T }> => row.type === type);
}

/** The whole state as the object holds it. */
export function stateOf(principal: Principal, planId: string): Promise<Plan> {
  return runInDurableObject(stubOf(principal, planId), (object) => {
    const plan = object.plan();
    if (plan === null) throw new Error('there is no such plan');
    return plan;
  });
}

export function alarmOf(principal: Principal, planId: string): Promise<number | null> {
  return runInDurableObject(stubOf(principal, planId), (_object, state) => state.storage.getAlarm());
}

/** Takes the object out of memory in an orderly way, as the platform does with one that is idle. */
export async function evict(principal: Principal, planId: string, webSockets: 'hibernate' | 'close' = 'hibernate'): Promise<void> {
  await planOf(principal, planId).read();
  await evictDurableObject(stubOf(principal, planId), { webSockets });
}

/** Kills the object in the middle of whatever it does. */
export async function crash(principal: Principal, planId: string): Promise<void> {
  await runInDurableObject(stubOf(principal, planId), (_object, state) => state.abort('killed by a test')).catch(() => undefined);
}

/* ---------------------------------------------------------------- what holds after every test */

const TRACKED = new Map<string, Principal>();

/** The invariants are checked of this plan when the test has ended. */
export function track(principal: Principal, planId: string): void {
  TRACKED.set(planId, principal);
}

afterEach(async () => {
  const plans = [...TRACKED];
  TRACKED.clear();
  await inTurns(plans, 8, ([planId, principal]) => expectSound(principal, planId));
}, 120_000);

/** Does something for each item, a few at a time. */
export async function inTurns<T>(items: readonly T[], atOnce: number, work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
    }),
  );
}

/** Chain, replay, snapshot, index, audit trail and alarm of a plan that has come to rest. */
export async function expectSound(principal: Principal, planId: string): Promise<void> {
  const { plan, stored: reloaded, alarm, row, atMs, dueMs } = await untilQuiet(principal, planId);
  const log = await logOf(principal, planId);
  expect(await planOf(principal, planId).verify()).toEqual({ valid: true, entries: log.length, head: plan.headHash });
  expect(JSON.parse(JSON.stringify(replay(log)))).toEqual(JSON.parse(JSON.stringify(plan)));
  expect(JSON.parse(JSON.stringify(reloaded))).toEqual(JSON.parse(JSON.stringify(plan)));
  for (const row of log) expect(JSON.stringify(row).length, `row ${row.seq} (${row.type})`).toBeLessThan(64 * 1024);

  expect(alarm, 'the alarm is set for the next deadline and nothing else').toBe(dueMs);
  expect(row).toEqual(indexRowOf(plan, atMs === null ? null : new Date(atMs).toISOString()));

  const entries = log.flatMap((each) => auditEntryOf(each) ?? []);
  const stored = await auditOf(principal, planId);
  expect(stored.map(({ org: _org, planId: _plan, ...rest }) => rest)).toEqual(
    entries.map(({ timestamp, actor, ...entry }) => ({ ...entry, at: timestamp, actorKind: actor.kind, actorId: actor.id })),
  );
}

export async function auditOf(principal: Principal, planId: string) {
  const rows = [];
  for (;;) {
    const page = await services.audit.list(principal.org, planId, rows.at(-1)?.seq ?? 0, PAGE);
    rows.push(...page);
    if (page.length < PAGE) return rows;
  }
}

/** Waits until the plan has nothing to do, its outbox is empty and its alarm is set; answers what it found then. */
async function untilQuiet(principal: Principal, planId: string) {
  const deadline = performance.now() + 20_000;
  for (;;) {
    const seen = await runInDurableObject(stubOf(principal, planId), async (object, state) => ({
      plan: object.plan(),
      stored: openLog(new PlanStore(state.storage.sql), new HeadStore(state.storage.sql)).plan,
      alarm: await state.storage.getAlarm(),
      leases: [...new LeaseStore(state.storage.sql).load().values()].flat(),
    }));
    const { plan, stored, alarm, leases } = seen;
    if (plan === null) throw new Error(`plan ${planId} is gone`);
    const row = await services.planIndex.get(principal.org, planId);
    const task = nextTask(plan, Date.now());
    // A lease of today is closed with the day; one that the budget above has not heard of yet is on its way.
    const due = leases.some(({ phase }) => phase === 'open') ? earliest(task, windowEndMs('daily', Date.now())) : atOf(task);
    const isTold = leases.every(({ phase }) => phase !== 'closing');
    if (task.kind === 'sleep' && row?.seq === plan.seq && isTold && alarm === due)
      return { plan, stored, alarm, row, atMs: task.atMs, dueMs: due };
    if (performance.now() > deadline) {
      throw new Error(
        `plan ${planId} does not come to rest: ${plan.phase}/${plan.state} ${task.kind}, row ${row?.seq} of ${plan.seq}, alarm ${alarm}`,
      );
    }
    await pause(20);
  }
}

const atOf = (task: ReturnType<typeof nextTask>): number | null => (task.kind === 'sleep' ? task.atMs : null);

const earliest = (task: ReturnType<typeof nextTask>, atMs: number | null): number | null => {
  const at = [atOf(task), atMs].filter((each) => each !== null);
  return at.length === 0 ? null : Math.min(...at);
};
