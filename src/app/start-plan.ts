/** One way to make a plan, whoever asks: an operation, a message, later a trigger. */
import { digestOf } from '../core/digest.ts';
import type { JsonObject, JsonValue } from '../core/json.ts';
import type { CreateCommand } from '../core/plan/commands.ts';
import type { PlanSnapshot } from '../core/plan/snapshot.ts';
import type { Principal } from '../core/principal.ts';
import type { Refusal } from '../core/refusal.ts';
import { invalidField } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';
import { actorOf } from './caller.ts';
import { closedSession, examinePlan, forbiddenBy, mistakeIn, type PlanRequest } from './examine-plan.ts';
import type { Services } from './services.ts';

export interface StartRequest extends PlanRequest {
  readonly sessionId?: string | undefined;
  /** Text of the message that started it, '' for an operation. */
  readonly input: string;
  readonly message: CreateCommand['message'];
  readonly idempotency: { readonly key: string; readonly body: JsonValue } | null;
  /**
   * What becomes of a request that is right and may not be carried out now (policy, kill switch, exhausted budget): it is refused and makes
   * no plan, or (`plan`) it makes one that is rejected with the reason.
   */
  readonly ifForbidden?: 'plan';
}

/** Resolves everything once, locks it into the plan, and makes it. Refused: nothing was made. The same idempotency key answers the same plan. */
export async function startPlan(request: StartRequest, principal: Principal, services: Services): Promise<Result<PlanSnapshot, Refusal>> {
  const { org } = principal;
  const claimed = await claim(request, principal, services);
  if (!claimed.ok) return claimed;
  const { planId, isRepeat } = claimed.value;
  if (isRepeat) {
    const existing = await services.plans.plan(org, planId).read();
    if (existing !== null) return ok(existing);
  }
  const prepared = await prepare(request, principal, services, planId);
  if (!prepared.ok) return prepared;
  const command = prepared.value;
  const now = new Date(services.clock.nowMs()).toISOString();
  // The index row comes first: a plan that answers is in the index, and if the index is not there, there is no plan.
  await services.planIndex.reserve({
    org,
    planId,
    sessionId: command.sessionId,
    actionName: command.action.name,
    project: command.project?.name ?? null,
    profile: command.profile.name,
    phase: 'action',
    state: 'queued',
    taskState: 'submitted',
    createdBy: principal.keyId,
    createdAt: now,
    updatedAt: now,
    statusAt: now,
    seq: 0,
    wakeAt: null,
    pendingApprovals: 0,
  });
  const made = await services.plans.plan(org, planId).create(command);
  // Of several requests with one key at once, the first makes the plan; what the others looked up meanwhile may differ, the plan may not.
  if (isRepeat && !made.ok && made.error.kind === 'already_exists') {
    const first = await services.plans.plan(org, planId).read();
    return first === null ? made : ok(first);
  }
  return made;
}

async function claim(
  request: StartRequest,
  principal: Principal,
  services: Services,
): Promise<Result<{ readonly planId: string; readonly isRepeat: boolean }, Refusal>> {
  const planId = services.ids.ulid();
  if (request.idempotency === null) return ok({ planId, isRepeat: false });
  const { key, body } = request.idempotency;
  if (key.length === 0 || key.length > 255) return err(invalidField('idempotency_key', 'must have 1 to 255 characters'));
  const bodyDigest = digestOf(services.sha256, body);
  const held = await services.idempotency.claim({
    org: principal.org,
    keyId: principal.keyId,
    idempotencyKey: key,
    bodyDigest,
    planId,
    createdAt: new Date(services.clock.nowMs()).toISOString(),
  });
  if (held.bodyDigest !== bodyDigest) {
    return err({
      kind: 'already_exists',
      message: 'this idempotency key was used with another request; use a new key for a new request',
      entity: 'idempotency_key',
      id: key,
      details: { idempotency_key: key, plan_id: held.planId },
    });
  }
  return ok({ planId: held.planId, isRepeat: held.planId !== planId });
}

async function prepare(
  request: StartRequest,
  principal: Principal,
  services: Services,
  planId: string,
): Promise<Result<CreateCommand, Refusal>> {
  const { org } = principal;
  const sessionId = request.sessionId ?? sessionFor(planId, services);
  const examined = await examinePlan(request, sessionId, principal, services);
  const mistake = mistakeIn(examined);
  if (mistake !== null) return err(mistake);
  const { basis } = examined;
  if (basis === null) throw new Error('a request without a mistake makes no plan');
  const forbidden = forbiddenBy(examined);
  if (forbidden !== null && request.ifForbidden !== 'plan') return err(forbidden);
  const session = await enterSession(sessionId, principal, services);
  if (!session.ok) return session;
  const { action, project } = basis;
  const statistics = await services.outcomes.statistics({ org, project: project?.name ?? null, actor: action.actor, action: action.name });
  return ok({
    type: 'create',
    planId,
    org,
    sessionId: session.value,
    ...basis,
    input: request.input,
    statistics,
    by: actorOf(principal),
    message: request.message,
    rejection: forbidden?.message ?? null,
  });
}

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** The session of a plan that names none: an id like any other, but the same for every repeat of the request. */
export function sessionFor(planId: string, { sha256 }: Services): string {
  const random = [...sha256(`session of ${planId}`).matchAll(/../g)].slice(0, 16);
  return planId.slice(0, 10) + random.map(([byte]) => CROCKFORD[Number.parseInt(byte, 16) % 32]).join('');
}

/** The session of the plan, made if need be; never a closed one. */
export async function enterSession(id: string, principal: Principal, services: Services): Promise<Result<string, Refusal>> {
  const session = await services.sessions.ensure({
    org: principal.org,
    id,
    actorName: null,
    status: 'open',
    createdAt: new Date(services.clock.nowMs()).toISOString(),
    closedAt: null,
    createdBy: principal.keyId,
  });
  return session.status === 'closed' ? err(closedSession(id)) : ok(id);
}

/** The arguments of a request as JSON, for what a repeat of it must equal. */
export function bodyOf(parts: { readonly [name: string]: JsonValue | undefined }): JsonObject {
  return Object.fromEntries(Object.entries(parts).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}
