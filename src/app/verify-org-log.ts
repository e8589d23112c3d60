/**
 * Verification of the org's own log, and of every plan that it knows: a plan's log may only have grown since the plan reported where it
 * stood. So a plan whose object is gone, whose log was cut, or that stands there with another log is named, whatever was done to the
 * plan's own signatures and to its entries in D1.
 */
import { readOrgEntryOf } from '../core/org-log/audit.ts';
import type { OrgLogRow } from '../core/org-log/org-event.ts';
import type { KnownPlan } from '../core/org-log/plan-report.ts';
import { ORG_LOG_ID } from '../core/plan/chain.ts';
import { StorageUnavailable } from './ports.ts';
import type { Services } from './services.ts';
import { type LogSource, type TrailVerdict, verifyLog } from './verify-trail.ts';

export interface PlanProblem {
  readonly planId: string;
  readonly problem: 'deleted' | 'truncated' | 'replaced' | 'damaged' | 'unreached';
  readonly reportedSeq: number;
  readonly seq: number | null;
}

/** Plans that are asked at the same time; each is two calls, and a request may make a thousand. */
const AT_ONCE = 10;

/** The log of an org that never had a plan or a change. */
const NOTHING: TrailVerdict = {
  valid: true,
  entries: 0,
  head: '',
  headSignature: 'missing',
  signedSeq: null,
  trail: 'complete',
  problem: null,
  findings: [],
};

export async function verifyOrgLog(org: string, services: Services): Promise<TrailVerdict> {
  const verdict = await verifyLog(sourceOf(org, services), services);
  if (verdict !== null) return verdict;
  // Every plan reports itself when it is made: where there are plans there was a log.
  const plans = await services.planIndex.list({ org, pageSize: 1 });
  if (!plans.ok || plans.value.rows.length === 0) return NOTHING;
  const problem = { seq: 1, problem: 'deleted' } as const;
  return { ...NOTHING, valid: false, trail: 'changed', problem, findings: [problem] };
}

/** What is wrong with these plans; none of them: nothing is. */
export async function verifyReportedPlans(org: string, plans: readonly KnownPlan[], services: Services): Promise<readonly PlanProblem[]> {
  const problems: PlanProblem[] = [];
  for (let start = 0; start < plans.length; start += AT_ONCE) {
    const found = await Promise.all(plans.slice(start, start + AT_ONCE).map((plan) => problemOf(org, plan, services)));
    problems.push(...found.filter((problem) => problem !== null));
  }
  return problems;
}

async function problemOf(org: string, known: KnownPlan, services: Services): Promise<PlanProblem | null> {
  const named = (problem: PlanProblem['problem'], seq: number | null): PlanProblem => ({
    planId: known.plan_id,
    problem,
    reportedSeq: known.seq,
    seq,
  });
  try {
    const port = services.plans.plan(org, known.plan_id);
    const heads = await port.heads({ sign: false });
    if (heads === null) return named('deleted', null);
    const [first] = (await port.log(0, 1)) ?? [];
    const [row] = known.seq === 1 ? [first] : ((await port.log(known.seq - 1, 1)) ?? []);
    if (first === undefined) return named('deleted', null);
    if (known.createdHash !== null && first.hash !== known.createdHash) return named('replaced', heads.seq);
    if (row?.seq !== known.seq) return named(heads.damage === null || heads.seq < known.seq ? 'truncated' : 'damaged', heads.seq);
    if (row.hash !== known.hash) return named('replaced', heads.seq);
    return heads.damage === null ? null : named('damaged', heads.seq);
  } catch (cause) {
    if (cause instanceof StorageUnavailable) return named('unreached', null);
    throw cause;
  }
}

function sourceOf(org: string, { orgLog }: Services): LogSource<OrgLogRow> {
  return {
    org,
    logId: ORG_LOG_ID,
    verify: () => orgLog.verify(org),
    heads: async () => {
      const heads = await orgLog.heads(org, { sign: false });
      return heads === null ? null : { ...heads, damage: null };
    },
    rows: async (afterSeq, limit) => (await orgLog.page(org, { afterSeq, limit }))?.rows ?? [],
    entryOf: readOrgEntryOf,
    flushed: async () => {
      const heads = await orgLog.heads(org, { sign: false });
      if (heads === null) return null;
      const [row] = (await orgLog.page(org, { afterSeq: heads.flushedSeq - 1, limit: 1 }))?.rows ?? [];
      return { seq: heads.flushedSeq, at: row?.at ?? '', isAtRest: false };
    },
  };
}
