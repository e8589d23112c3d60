/**
 * Whether a plan could be made, and of what: every check that stands before a plan, each with its own answer. Making one (start-plan.ts) and
 * asking whether one would be made (`plan/preflight`) read the same, so they cannot differ. Nothing is changed here.
 */
import { PREFLIGHT_CHECKS } from '../api/preflight.ts';
import { type ActionDocument, parseAction, validateArguments } from '../core/action.ts';
import { type GuardPolicy, type Guardrails, parseGuardrails } from '../core/guard-policy.ts';
import type { JsonObject, JsonValue } from '../core/json.ts';
import { writesAtOnce } from '../core/plan/at-once.ts';
import type { LockedProfile, ProjectRef } from '../core/plan/plan.ts';
import { APPROVAL_TASK_STATES, type ApprovalTaskState } from '../core/plan/task-state.ts';
import type { Principal } from '../core/principal.ts';
import type { AutomationProfile } from '../core/profile.ts';
import type { Refusal } from '../core/refusal.ts';
import { invalidState, notFound, withFieldPrefix } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';
import type { SandboxSettings } from '../core/sandbox.ts';
import { DEFAULT_PROTECTED_PATHS } from '../core/workspace/protected-paths.ts';
import { exhaustedOrg, haltedAbove } from './admission.ts';
import { policyForPlan } from './plan-policy.ts';
import { findProfile, lockProfile, sandboxOf } from './profiles.ts';
import type { Services } from './services.ts';

export interface PlanRequest {
  readonly actionName: string;
  readonly arguments: unknown;
  readonly project?: string | undefined;
  readonly automationProfile?: string | undefined;
  readonly environmentProfile?: string | undefined;
  readonly guardrails?: unknown;
  /** Where the parameters stood, for messages about them: `` or `message.metadata.<uri>.`. */
  readonly fieldPrefix: string;
}

export type PlanCheckName = (typeof PREFLIGHT_CHECKS)[number];

/** What may not be carried out now, though the request is right. */
const FORBIDS: ReadonlySet<PlanCheckName> = new Set(['sandbox', 'checkpoints', 'halts', 'budget'] as const);

export interface PlanCheck {
  readonly name: PlanCheckName;
  readonly refusal: Refusal | null;
  /** It could not be looked at, since this one failed. */
  readonly waitsFor: PlanCheckName | null;
}

/** All that a plan is made of, resolved once. */
export interface PlanBasis {
  readonly action: ActionDocument;
  readonly arguments: JsonObject;
  readonly project: ProjectRef | null;
  readonly profile: LockedProfile;
  readonly policy: GuardPolicy;
  readonly sandbox: SandboxSettings;
  readonly approvalTaskState: ApprovalTaskState;
}

export interface Examination {
  /** One per name, in order. */
  readonly checks: readonly PlanCheck[];
  /** Null: the request itself is wrong. */
  readonly basis: PlanBasis | null;
  readonly profile: LockedProfile | null;
  readonly policy: GuardPolicy | null;
  readonly project: ProjectRef | null;
  readonly sandbox: SandboxSettings | null;
}

/** Looks at everything that a plan of this session would need. */
export async function examinePlan(request: PlanRequest, sessionId: string, principal: Principal, services: Services): Promise<Examination> {
  const { org } = principal;
  const found = new Map<PlanCheckName, Refusal>();
  const take = <T>(name: PlanCheckName, result: Result<T, Refusal>): { readonly value: T } | null => {
    if (result.ok) return result;
    if (!found.has(name)) found.set(name, result.error);
    return null;
  };
  const waits = new Map<PlanCheckName, PlanCheckName>();

  const action = take('action', await findAction(request.actionName, principal, services));
  const args = action && take('arguments', argumentsOf(action.value, request));
  const guardrails = take('guardrails', guardrailsOf(request));
  const orgConfig = await services.config.list(org, 'org');
  const project = action && take('project', await takeProject(request, action.value, org, orgConfig, services));
  const projectConfig = project?.value ? await services.config.list(org, `project:${project.value.name}`) : NO_SETTINGS;
  const choice = {
    plan: request.automationProfile ?? null,
    action: action?.value.automation_profile ?? null,
    project: textAt(projectConfig, 'core.automation-profile'),
    global: textAt(orgConfig, 'core.automation-profile'),
    environment: request.environmentProfile ?? null,
  };
  const profile = project && take('profile', await lockProfile(choice, org, services, request.fieldPrefix));
  const binding = action && profile && take('profile', await bindingProfile(request, action.value, principal, services));
  const policy =
    action &&
    guardrails &&
    profile &&
    binding &&
    take(
      'policy',
      await policyForPlan(
        {
          actionProfile: binding.value,
          ...{ org, orgConfig, projectConfig, profile: profile.value.document },
          ...{ actionGuardrails: action.value.guardrails, planGuardrails: guardrails.value },
        },
        services,
      ),
    );
  const sandbox = project && sandboxOf(projectConfig, orgConfig);
  if (action && policy && sandbox && profile && project) {
    const isUnboxed = writesAtOnce({ sandbox, project: project.value, action: action.value });
    take('sandbox', isUnboxed ? orNone(sandboxIssue(policy.value, profile.value.name, project.value)) : ok(null));
    take('checkpoints', orNone(checkpointIssue(policy.value, sandbox, profile.value.name, project.value)));
  }
  const [halted, exhausted, session] = await Promise.all([
    haltedAbove({ org, sessionId }, services),
    exhaustedOrg(org, services),
    services.sessions.get(org, sessionId),
  ]);
  take('halts', orNone(halted));
  take('budget', orNone(exhausted));
  take('session', orNone(session?.status === 'closed' ? closedSession(sessionId) : null));

  if (action === null)
    for (const name of ['arguments', 'project', 'profile', 'policy', 'sandbox', 'checkpoints'] as const) waits.set(name, 'action');
  else if (project === null) for (const name of ['profile', 'policy', 'sandbox', 'checkpoints'] as const) waits.set(name, 'project');
  else if (profile === null || binding === null)
    for (const name of ['policy', 'sandbox', 'checkpoints'] as const) waits.set(name, 'profile');
  else if (guardrails === null) for (const name of ['policy', 'sandbox', 'checkpoints'] as const) waits.set(name, 'guardrails');
  else if (policy === null) for (const name of ['sandbox', 'checkpoints'] as const) waits.set(name, 'policy');

  const isRight = action && args && guardrails && project && profile && policy && sandbox;
  return {
    checks: PREFLIGHT_CHECKS.map((name) => ({ name, refusal: found.get(name) ?? null, waitsFor: waits.get(name) ?? null })),
    basis: isRight
      ? {
          action: action.value,
          arguments: args.value,
          project: project.value,
          profile: profile.value,
          policy: policy.value,
          sandbox,
          approvalTaskState: approvalTaskStateOf(projectConfig, orgConfig),
        }
      : null,
    profile: profile?.value ?? null,
    policy: policy?.value ?? null,
    project: project?.value ?? null,
    sandbox: sandbox ?? null,
  };
}

/** What is wrong with the request; null: it is right, whether or not it may be carried out now. */
export function mistakeIn({ checks }: Examination): Refusal | null {
  return checks.find(({ name, refusal }) => refusal !== null && !FORBIDS.has(name) && name !== 'session')?.refusal ?? null;
}

/** Why a request that is right may not be carried out now. */
export function forbiddenBy({ checks }: Examination): Refusal | null {
  return checks.find(({ name, refusal }) => refusal !== null && FORBIDS.has(name))?.refusal ?? null;
}

const orNone = (refusal: Refusal | null): Result<null, Refusal> => (refusal === null ? ok(null) : err(refusal));

export function closedSession(id: string): Refusal {
  return invalidState('the session is closed; use another session_id', { session_id: id });
}

/** Finds the action and what an answer without a plan needs; for the caller that may get by without one. */
export async function findAction(name: string, principal: Principal, services: Services): Promise<Result<ActionDocument, Refusal>> {
  const stored = await services.actions.get(principal.org, name);
  if (stored === null) return err(notFound('action', name, { action_name: name }));
  // A stored row is an edge too.
  return parseAction(stored.body);
}

function argumentsOf(action: ActionDocument, request: PlanRequest): Result<JsonObject, Refusal> {
  const args = validateArguments(action, request.arguments);
  return args.ok ? args : err(withFieldPrefix(args.error, request.fieldPrefix));
}

function guardrailsOf({ guardrails, fieldPrefix }: PlanRequest): Result<Guardrails, Refusal> {
  return guardrails === undefined ? ok({}) : parseGuardrails(guardrails, `${fieldPrefix}guardrails`);
}

/** The project that is named by the call, the action, or the org's default for actions that apply to one; its head is pinned here. */
async function takeProject(
  request: PlanRequest,
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

/**
 * What an agent cannot loosen by naming another profile: the one that the action names. An agent approves nothing, so it cannot choose
 * that nobody is asked either; where the action leaves the profile open, the agent's choice counts like anybody's.
 */
async function bindingProfile(
  { automationProfile }: PlanRequest,
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

/** A sandbox that the plan's safety requires and the settings of its project or org take away: without it no plan begins. */
function sandboxIssue({ requireSandbox }: GuardPolicy, profile: string, project: ProjectRef | null): Refusal | null {
  if (!requireSandbox) return null;
  return invalidState(
    `this plan requires a sandbox, and ${placeOf(project)} has sandbox.strategy none. Remediation: use strategy workspace, or a profile that requires none.`,
    { profile, project: project?.name ?? null, sandbox_strategy: 'none' },
  );
}

function checkpointIssue(
  { requireCheckpoints }: GuardPolicy,
  { checkpointsEnabled }: SandboxSettings,
  profile: string,
  project: ProjectRef | null,
): Refusal | null {
  if (!requireCheckpoints || checkpointsEnabled) return null;
  return invalidState(
    `this plan requires checkpoints, and ${placeOf(project)} has sandbox.checkpoint.enabled false. Remediation: enable checkpoints, or use a profile that requires none.`,
    { profile, project: project?.name ?? null, checkpoints_enabled: false },
  );
}

const placeOf = (project: ProjectRef | null): string => (project === null ? 'the org' : `project '${project.name}'`);

/** The narrower scope first; a stored value that cannot be set counts as none. */
export function approvalTaskStateOf(...scopes: readonly ReadonlyMap<string, JsonValue>[]): ApprovalTaskState {
  const set = scopes.map((scope) => textAt(scope, 'approvals.task_state')).find((value) => value !== null);
  return APPROVAL_TASK_STATES.find((name) => name === set) ?? 'input-required';
}

const NO_SETTINGS: ReadonlyMap<string, JsonValue> = new Map();

export function textAt(settings: ReadonlyMap<string, JsonValue>, key: string): string | null {
  const value = settings.get(key);
  return typeof value === 'string' ? value : null;
}
