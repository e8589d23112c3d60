/** One way to make a plan, whoever asks: an operation, a message, later a trigger. */
import { type ActionDocument, parseAction, validateArguments } from '../core/action.ts';
import { digestOf } from '../core/digest.ts';
import { type GuardPolicy, type Guardrails, parseGuardrails } from '../core/guard-policy.ts';
import type { JsonObject, JsonValue } from '../core/json.ts';
import type { CreateCommand } from '../core/plan/commands.ts';
import type { ProjectRef } from '../core/plan/plan.ts';
import type { PlanSnapshot } from '../core/plan/snapshot.ts';
import type { Principal } from '../core/principal.ts';
import type { AutomationProfile } from '../core/profile.ts';
import type { Refusal } from '../core/refusal.ts';
import { invalidField, invalidState, notFound, withFieldPrefix } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';
import { admissionIssue } from './admission.ts';
import { actorOf } from './caller.ts';
import { policyForPlan } from './plan-policy.ts';
import { findProfile, lockProfile, sandboxOf } from './profiles.ts';
import type { Services } from './services.ts';

export interface StartRequest {
  readonly actionName: string;
  readonly arguments: unknown;
  readonly project?: string | undefined;
  readonly automationProfile?: string | undefined;
  readonly environmentProfile?: string | undefined;
  readonly guardrails?: unknown;
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
  /** Where the parameters stood, for messages about them: `` or `message.metadata.<uri>.`. */
  readonly fieldPrefix: string;
}

/** Paths that a project protects unless its settings say otherwise (design section 6). */
export const DEFAULT_PROTECTED_PATHS: readonly string[] = ['.git/**', '.github/**', '.env*'];

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

/** Finds the action and what an answer without a plan needs; for the caller that may get by without one. */
export async function findAction(name: string, principal: Principal, services: Services): Promise<Result<ActionDocument, Refusal>> {
  const stored = await services.actions.get(principal.org, name);
  if (stored === null) return err(notFound('action', name, { action_name: name }));
  // A stored row is an edge too.
  return parseAction(stored.body);
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
  const action = await findAction(request.actionName, principal, services);
  if (!action.ok) return action;
  const args = validateArguments(action.value, request.arguments);
  if (!args.ok) return err(withFieldPrefix(args.error, request.fieldPrefix));
  const guardrails =
    request.guardrails === undefined ? ok<Guardrails>({}) : parseGuardrails(request.guardrails, `${request.fieldPrefix}guardrails`);
  if (!guardrails.ok) return guardrails;
  const orgConfig = await services.config.list(org, 'org');
  const project = await takeProject(request, action.value, org, orgConfig, services);
  if (!project.ok) return project;
  const projectConfig = project.value === null ? NO_SETTINGS : await services.config.list(org, `project:${project.value.name}`);
  const choice = {
    plan: request.automationProfile ?? null,
    action: action.value.automation_profile ?? null,
    project: textAt(projectConfig, 'core.automation-profile'),
    global: textAt(orgConfig, 'core.automation-profile'),
    environment: request.environmentProfile ?? null,
  };
  const profile = await lockProfile(choice, org, services, request.fieldPrefix);
  if (!profile.ok) return profile;
  const actionProfile = await bindingProfile(request, action.value, principal, services);
  if (!actionProfile.ok) return actionProfile;
  const policy = await policyForPlan(
    {
      actionProfile: actionProfile.value,
      ...{ org, orgConfig, projectConfig, profile: profile.value.document },
      ...{ actionGuardrails: action.value.guardrails, planGuardrails: guardrails.value },
    },
    services,
  );
  if (!policy.ok) return policy;
  const sessionId = request.sessionId ?? sessionFor(planId, services);
  const sandbox = sandboxOf(projectConfig, orgConfig);
  const forbidden =
    safetyIssue(policy.value, sandbox, profile.value.name, project.value) ?? (await admissionIssue({ org, sessionId }, services));
  if (forbidden !== null && request.ifForbidden !== 'plan') return err(forbidden);
  const session = await enterSession(sessionId, principal, services);
  if (!session.ok) return session;
  const statistics = await services.outcomes.statistics({
    org,
    project: project.value?.name ?? null,
    actor: action.value.actor,
    action: action.value.name,
  });
  return ok({
    type: 'create',
    planId,
    org,
    sessionId: session.value,
    action: action.value,
    arguments: args.value,
    input: request.input,
    project: project.value,
    profile: profile.value,
    policy: policy.value,
    sandbox,
    statistics,
    by: actorOf(principal),
    message: request.message,
    rejection: forbidden?.message ?? null,
  });
}

/** What the plan's safety requires and the settings of its project or org do not have: without it no plan begins. */
function safetyIssue(
  { requireSandbox, requireCheckpoints }: GuardPolicy,
  { strategy, checkpointsEnabled }: ReturnType<typeof sandboxOf>,
  profile: string,
  project: ProjectRef | null,
): Refusal | null {
  const where = project === null ? 'the org' : `project '${project.name}'`;
  const details = { profile, project: project?.name ?? null };
  if (requireSandbox && strategy === 'none') {
    return invalidState(
      `this plan requires a sandbox, and ${where} has sandbox.strategy none. Remediation: use strategy workspace, or a profile that requires none.`,
      { ...details, sandbox_strategy: 'none' },
    );
  }
  if (requireCheckpoints && !checkpointsEnabled) {
    return invalidState(
      `this plan requires checkpoints, and ${where} has sandbox.checkpoint.enabled false. Remediation: enable checkpoints, or use a profile that requires none.`,
      { ...details, checkpoints_enabled: false },
    );
  }
  return null;
}

/** The project that is named by the call, the action, or the org's default for actions that apply to one; its head is pinned here. */
async function takeProject(
  request: StartRequest,
  action: ActionDocument,
  org: string,
  orgConfig: ReadonlyMap<string, JsonValue>,
  services: Services,
): Promise<Result<ProjectRef | null, Refusal>> {
  const fallback = action.apply === 'none' ? null : textAt(orgConfig, 'core.default-project');
  const name = request.project ?? action.project ?? fallback;
  if (name === null) return ok(null);
  const record = await services.projectStore.get(org, name);
  const head = record === null ? null : await services.projects.project(org, name).head();
  if (record === null || head === null) return err(notFound('project', name, { project: name }));
  const protectedPaths = record.settings['protected_paths'];
  return ok({
    name,
    base: head.head,
    protectedPaths: Array.isArray(protectedPaths)
      ? protectedPaths.filter((path): path is string => typeof path === 'string')
      : DEFAULT_PROTECTED_PATHS,
  });
}

const NO_SETTINGS: ReadonlyMap<string, JsonValue> = new Map();

export function textAt(settings: ReadonlyMap<string, JsonValue>, key: string): string | null {
  const value = settings.get(key);
  return typeof value === 'string' ? value : null;
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
  return session.status === 'closed' ? err(invalidState('the session is closed; use another session_id', { session_id: id })) : ok(id);
}

/** The arguments of a request as JSON, for what a repeat of it must equal. */
export function bodyOf(parts: { readonly [name: string]: JsonValue | undefined }): JsonObject {
  return Object.fromEntries(Object.entries(parts).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}

/**
 * What an agent cannot loosen by naming another profile: the one that the action names. An agent approves nothing, so it cannot choose
 * that nobody is asked either; where the action leaves the profile open, the agent's choice counts like anybody's.
 */
async function bindingProfile(
  { automationProfile }: StartRequest,
  action: ActionDocument,
  principal: Principal,
  services: Services,
): Promise<Result<AutomationProfile | null, Refusal>> {
  const named = action.automation_profile;
  if (principal.kind !== 'agent' || automationProfile === undefined || named === undefined) return ok(null);
  const found = await findProfile(named, principal.org, services);
  if (!found.ok) return found;
  return found.value === null
    ? err(invalidState(`the action names the profile '${named}', which does not exist`, { profile: named }))
    : ok(found.value.document);
}
