import { waitUntil } from 'cloudflare:workers';
import { type HeadsQuery, LogDamaged, type OrgLog, type OrgLogHeads, type OrgLogPage, type OrgLogQuery } from '../app/ports.ts';
import type { OrgLogEntry } from '../core/org-log/org-event.ts';
import type { ListedPlan, PlanReport } from '../core/org-log/plan-report.ts';
import type { RefusalNote } from '../core/org-log/refusals.ts';
import type { LogPosition, LogStretch } from '../core/plan/chain.ts';
import { invalidState } from '../core/refusal.ts';
import { objectName, reachObject as reach } from './objects.ts';
import type { RefusalDesk } from './refusal-desk.ts';

/** What an org's object offers of its log over RPC. */
interface OrgLogRpc {
  logAppend(org: string, entries: readonly OrgLogEntry[]): Promise<'recorded' | 'damaged'>;
  logRefused(org: string, batchId: string, notes: readonly RefusalNote[]): Promise<'recorded' | 'damaged'>;
  logReported(org: string, reports: readonly PlanReport[]): Promise<'recorded' | 'damaged'>;
  logPage(query: OrgLogQuery): Promise<OrgLogPage | null>;
  logVerify(org: string, from: LogPosition | null): Promise<LogStretch | null>;
  logHeads(options: HeadsQuery): Promise<OrgLogHeads | null>;
  logPlan(planId: string): Promise<ListedPlan | null>;
  logPlans(afterPlanId: string, limit: number): Promise<readonly ListedPlan[]>;
}

/** The logs of all orgs, each in the object of its org. `desk` belongs to the isolate. */
export function makeOrgLog(namespace: DurableObjectNamespace, desk: RefusalDesk): OrgLog {
  const call = <T>(operation: string, org: string, ask: (rpc: OrgLogRpc) => Promise<T>): Promise<T> =>
    reach(`orgLog.${operation}`, () => ask(namespace.getByName(objectName(org, 'org', org)) as unknown as OrgLogRpc));
  return {
    append: async (org, entry) => mustBeWhole(await call('append', org, (rpc) => rpc.logAppend(org, [entry]))),
    refused(org, note) {
      const work = desk.take(org, note, async (batchId, notes) =>
        mustBeWhole(await call('refused', org, (rpc) => rpc.logRefused(org, batchId, notes))),
      );
      if (work !== null) waitUntil(work);
    },
    report: async (org, reports) => mustBeWhole(await call('report', org, (rpc) => rpc.logReported(org, reports))),
    page: (org, query) => call('page', org, (rpc) => rpc.logPage(query)),
    verify: (org, from = null) => call('verify', org, (rpc) => rpc.logVerify(org, from)),
    heads: (org, options) => call('heads', org, (rpc) => rpc.logHeads(options)),
    plan: (org, planId) => call('plan', org, (rpc) => rpc.logPlan(planId)),
    plans: (org, afterPlanId, limit) => call('plans', org, (rpc) => rpc.logPlans(afterPlanId, limit)),
  };
}

function mustBeWhole(recorded: 'recorded' | 'damaged'): void {
  if (recorded === 'recorded') return;
  const message = 'the log of the org is damaged: nothing can be recorded in it, so nothing is changed; verify it (org log verify)';
  throw new LogDamaged(invalidState(message, { reason: 'LOG_DAMAGED' }));
}
