import { type ActionDocument, parseAction } from '../core/action.ts';
import type { Guardrails } from '../core/guard-policy.ts';
import type { JsonValue } from '../core/json.ts';
import type { CreateCommand } from '../core/plan/commands.ts';
import { DEFAULT_RETENTION_DAYS } from '../core/plan/external/external.ts';
import type { PlanSnapshot } from '../core/plan/snapshot.ts';
import type { Principal } from '../core/principal.ts';
import type { Refusal } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';
import { admissionIssue } from './admission.ts';
import { actorOf } from './caller.ts';
import { approvalTaskStateOf, textAt } from './examine-plan.ts';
import { policyForPlan } from './plan-policy.ts';
import { lockProfile } from './profiles.ts';
import type { Services } from './services.ts';
import { enterSession, sessionFor } from './start-plan.ts';

/** The action of every plan whose executor is outside: it says so, and nothing of it is run here. */
export const EXTERNAL_ACTION: ActionDocument = {
  name: 'external',
  description: 'The executor of this plan is outside; its calls are decided and recorded here',
  actor: 'external',
  apply: 'none',
};

export interface OpenRequest {
  readonly planId: string;
  readonly guardrails: Guardrails;
  readonly automationProfile: string | undefined;
  readonly sessionId: string | undefined;
}

/** Opens a plan under the caller's id with everything that binds the org's plans, resolved once and locked into it. Refused: nothing was made. */
export async function openExternalPlan(
  request: OpenRequest,
  principal: Principal,
  services: Services,
): Promise<Result<PlanSnapshot, Refusal>> {
  const prepared = await prepare(request, principal, services);
  if (!prepared.ok) return prepared;
  const command = prepared.value;
  const now = new Date(services.clock.nowMs()).toISOString();
  // The index row comes first: a plan that answers is in the index, and if the index is not there, there is no plan.
  await services.planIndex.reserve({
    org: principal.org,
    planId: request.planId,
    sessionId: command.sessionId,
    actionName: command.action.name,
    project: null,
    profile: command.profile.name,
    phase: 'execute',
    state: 'running',
    taskState: 'working',
    createdBy: principal.keyId,
    createdAt: now,
    updatedAt: now,
    statusAt: now,
    seq: 0,
    wakeAt: null,
    pendingApprovals: 0,
  });
  return services.plans.plan(principal.org, request.planId).create(command);
}

async function prepare(request: OpenRequest, principal: Principal, services: Services): Promise<Result<CreateCommand, Refusal>> {
  const { org } = principal;
  const action = parseAction(EXTERNAL_ACTION);
  if (!action.ok) return action;
  const orgConfig = await services.config.list(org, 'org');
  const choice = {
    plan: request.automationProfile ?? null,
    action: null,
    project: null,
    global: textAt(orgConfig, 'core.automation-profile'),
    environment: null,
  };
  const profile = await lockProfile(choice, org, services, '');
  if (!profile.ok) return profile;
  const policy = await policyForPlan(
    {
      org,
      orgConfig,
      projectConfig: new Map(),
      profile: profile.value.document,
      actionProfile: null,
      actionGuardrails: undefined,
      planGuardrails: request.guardrails,
    },
    services,
  );
  if (!policy.ok) return policy;
  const sessionId = request.sessionId ?? sessionFor(request.planId, services);
  const forbidden = await admissionIssue({ org, sessionId }, services);
  if (forbidden !== null) return err(forbidden);
  const session = await enterSession(sessionId, principal, services);
  if (!session.ok) return session;
  const statistics = await services.outcomes.statistics({ org, project: null, actor: action.value.actor, action: action.value.name });
  return ok({
    type: 'create',
    planId: request.planId,
    org,
    sessionId: session.value,
    action: action.value,
    arguments: {},
    input: '',
    project: null,
    profile: profile.value,
    policy: policy.value,
    approvalTaskState: approvalTaskStateOf(orgConfig),
    statistics,
    by: actorOf(principal),
    message: null,
    rejection: null,
    external: true,
    retentionDays: retentionOf(orgConfig),
  });
}

function retentionOf(orgConfig: ReadonlyMap<string, JsonValue>): number {
  const days = orgConfig.get('core.external-plan-retention-days');
  return typeof days === 'number' ? days : DEFAULT_RETENTION_DAYS;
}
