import type { Caller } from '../core/plan/commands.ts';
import type { ActorRef } from '../core/plan/plan.ts';
import { mayApprove, type Principal } from '../core/principal.ts';
import type { Refusal } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';
import { CLOCK_SKEW_SECONDS } from './identity-tokens.ts';
import type { Services } from './services.ts';

export function actorOf(principal: Principal): ActorRef {
  return { kind: principal.kind, id: principal.keyId, name: principal.name };
}

/**
 * The caller of something that may approve: the key is read fresh, so that a right that was taken away a second ago is gone
 * (design section 12), and the org's rules for approvals come with it.
 */
export async function approvingCaller(principal: Principal, services: Services): Promise<Result<Caller, Refusal>> {
  const fresh = await freshPrincipal(principal, services);
  if (!fresh.ok) return fresh;
  const { org } = principal;
  const now = new Date(services.clock.nowMs()).toISOString();
  const [separate, requireDigest] = await Promise.all([
    services.config.get(org, 'org', 'approvals.separate_requester'),
    services.config.get(org, 'org', 'approvals.require_digest'),
  ]);
  // Who may approve by a token of the identity provider is not in our store: there may be others.
  const hasOthers = services.tokens.openIdConnectUrl !== null || (await services.keys.countApprovers(org, now)) >= 2;
  const separateRequester = typeof separate === 'boolean' ? separate : hasOthers;
  return ok({ actor: actorOf(fresh.value), mayApprove: mayApprove(fresh.value), separateRequester, requireDigest: requireDigest === true });
}

async function freshPrincipal(principal: Principal, services: Services): Promise<Result<Principal, Refusal>> {
  if (services.settings.authMode === 'open') return ok(principal);
  // A token says for itself who its bearer is until it expires; nobody can be asked in between.
  if (principal.tokenExpiresAtMs !== undefined) {
    const holds = services.clock.nowMs() < principal.tokenExpiresAtMs + CLOCK_SKEW_SECONDS * 1000;
    return holds ? ok(principal) : err({ kind: 'unauthenticated', message: 'the token is no longer valid' });
  }
  const record = await services.keys.find(principal.keyId);
  const now = new Date(services.clock.nowMs()).toISOString();
  const isLive =
    record !== null && record.org === principal.org && record.revokedAt === null && (record.expiresAt === null || record.expiresAt > now);
  if (!isLive) return err({ kind: 'unauthenticated', message: 'the key is no longer valid' });
  return ok({ org: record.org, keyId: record.id, name: record.name, kind: record.kind, roles: record.roles });
}
