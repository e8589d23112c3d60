import type { GuardPolicy } from '../guard-policy.ts';
import { isHostName, matchesHost } from '../host.ts';
import type { RiskClass } from '../tool.ts';
import type { Guard, GuardedCall } from './guard.ts';

const LEAVES_THE_PLAN: readonly RiskClass[] = ['external_write_revertible', 'external_write', 'unsafe'];

/**
 * What came from outside may not decide by itself what goes outside: such a call needs a human, whatever the threshold, unless every host
 * that it reaches is one that the profile names. In the workspace it only lowers the confidence.
 */
export const taintGuard: Guard = {
  name: 'taint',
  events: { allowed: 'taint_allowed', refused: 'taint_blocked' },
  check: (policy, call, { tainted }) => {
    if (!tainted || !LEAVES_THE_PLAN.includes(call.effectiveClass) || isPermitted(policy, call)) return null;
    return {
      reason:
        `Arguments of tool '${call.shownName}' derive from outside content and ${whereTo(call)}. ` +
        'Remediation: check the arguments and request human approval, or name the host in safety.tainted_write_hosts.',
      approval: 'call',
      limitField: 'tainted_write_hosts',
    };
  },
};

/** An unsafe tool can reach what it does not say, so no host speaks for it. */
function isPermitted({ taintedWriteHosts }: GuardPolicy, { effectiveClass, hosts }: GuardedCall): boolean {
  if (effectiveClass === 'unsafe' || hosts == null || hosts.length === 0 || taintedWriteHosts.length === 0) return false;
  return hosts.every((host) => taintedWriteHosts.every(({ entries }) => entries.some((pattern) => matchesHost(pattern, host))));
}

function whereTo({ hosts, appliesAtOnce }: GuardedCall): string {
  if (appliesAtOnce === true) return 'would be in the project at once';
  if (hosts == null || hosts.length === 0 || !hosts.every(isHostName)) return 'would go to a host that is not known';
  return `would go to ${hosts.slice(0, 5).join(', ')}${hosts.length > 5 ? ` and ${hosts.length - 5} more` : ''}`;
}
