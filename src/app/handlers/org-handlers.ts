import type { OrgPolicyView } from '../../api/org.ts';
import { digestOf } from '../../core/digest.ts';
import type { JsonObject } from '../../core/json.ts';
import { NO_FLOOR, parseOrgPolicy } from '../../core/org-policy.ts';
import { invalidState } from '../../core/refusal.ts';
import { err, ok } from '../../core/result.ts';
import { actorOf } from '../caller.ts';
import type { Handlers } from '../handler.ts';
import type { OrgPolicyVersion } from '../ports.ts';
import { pushToPlans } from '../push-to-plans.ts';
import type { Services } from '../services.ts';

/** The policy floor of the org. It is replaced as a whole, so that what is read is what holds; earlier versions stay stored. */
export const orgHandlers = {
  '_cleveragents/org/policy/show': async (_params, call, services) =>
    ok(viewOf(await services.orgPolicies.latest(call.principal.org), services)),

  '_cleveragents/org/policy/set': async (params, call, services) => {
    const { org, keyId } = call.principal;
    const parsed = parseOrgPolicy(params.policy);
    if (!parsed.ok) return parsed;
    const current = await services.orgPolicies.latest(org);
    const version = current?.version ?? 0;
    if (params.expected_version !== undefined && params.expected_version !== version) return err(changedMeanwhile(version));
    const next: OrgPolicyVersion = {
      org,
      version: version + 1,
      policy: JSON.parse(JSON.stringify(parsed.value)) as JsonObject,
      savedAt: new Date(services.clock.nowMs()).toISOString(),
      savedBy: keyId,
    };
    await call.changing();
    // Told to the org's object first: from here on it looks for the version by itself, whatever becomes of this call.
    await services.floors.announce(org, next.version);
    if (!(await services.orgPolicies.save(next))) return err(changedMeanwhile(version));
    const by = actorOf(call.principal);
    await services.floors.put(org, { version: next.version, policy: next.policy, by });
    const { reached, unreached } = await pushToPlans({ org, sessionId: null }, { type: 'apply_floor', by, floor: parsed.value }, services);
    const done = unreached.length === 0;
    if (done) await services.floors.told(org, next.version);
    return ok({ ...viewOf(next, services), done, reached, unreached: [...unreached] });
  },
} satisfies Pick<Handlers, '_cleveragents/org/policy/show' | '_cleveragents/org/policy/set'>;

function viewOf(stored: OrgPolicyVersion | null, services: Services): OrgPolicyView {
  const policy = stored?.policy ?? JSON.parse(JSON.stringify(NO_FLOOR));
  return {
    version: stored?.version ?? 0,
    digest: digestOf(services.sha256, policy),
    policy,
    updated_at: stored?.savedAt ?? null,
    updated_by: stored?.savedBy ?? null,
  };
}

const changedMeanwhile = (version: number) =>
  invalidState('the policy was changed meanwhile; read it again and send the change with its version', { last_seen_version: version });
