/** The policy of a new plan: everything that binds it, combined to the strictest (design section 7, "Which limits bind"). */
import { combinePolicies, type GuardPolicy, type Guardrails } from '../core/guard-policy.ts';
import { guardrailsFromSettings } from '../core/guardrail-settings.ts';
import type { JsonValue } from '../core/json.ts';
import { floorSource, NO_FLOOR, type OrgPolicy, parseOrgPolicy } from '../core/org-policy.ts';
import type { AutomationProfile } from '../core/profile.ts';
import type { Refusal } from '../core/refusal.ts';
import { ok, type Result } from '../core/result.ts';
import type { Services } from './services.ts';

export interface PlanPolicyInput {
  readonly org: string;
  readonly orgConfig: ReadonlyMap<string, JsonValue>;
  readonly projectConfig: ReadonlyMap<string, JsonValue>;
  readonly profile: AutomationProfile;
  /** A profile that binds beside the locked one: the action's own, where an agent chose another. */
  readonly actionProfile: AutomationProfile | null;
  readonly actionGuardrails: Guardrails | undefined;
  readonly planGuardrails: Guardrails;
}

/** Combines the org's floor, the settings of org and project, the locked profile, the action and the call. What is stored and does not read refuses. */
export async function policyForPlan(input: PlanPolicyInput, services: Services): Promise<Result<GuardPolicy, Refusal>> {
  const floor = await floorOf(input.org, services);
  if (!floor.ok) return floor;
  const ofOrg = guardrailsFromSettings(input.orgConfig);
  if (!ofOrg.ok) return ofOrg;
  const ofProject = guardrailsFromSettings(input.projectConfig);
  if (!ofProject.ok) return ofProject;
  return ok(
    combinePolicies([
      floorSource(floor.value),
      { origin: 'org_config', guardrails: ofOrg.value },
      { origin: 'project', guardrails: ofProject.value },
      { origin: 'profile', profile: input.profile },
      ...(input.actionProfile === null ? [] : [{ origin: 'action' as const, profile: input.actionProfile }]),
      ...(input.actionGuardrails === undefined ? [] : [{ origin: 'action' as const, guardrails: input.actionGuardrails }]),
      { origin: 'plan', guardrails: input.planGuardrails },
    ]),
  );
}

/** The policy floor in force; an org that set none has one that binds nothing. */
export async function floorOf(org: string, services: Services): Promise<Result<OrgPolicy, Refusal>> {
  const stored = await services.orgPolicies.latest(org);
  return stored === null ? ok(NO_FLOOR) : parseOrgPolicy(stored.policy, 'org policy');
}
