/**
 * Verification of the org's own log, and of every plan that it knows: a plan's log may only have grown since the plan reported where it
 * stood. So a plan whose object is gone, whose log was cut, or that stands there with another log is named, whatever was done to the
 * plan's own signatures and to its entries in D1.
 */
import { readOrgEntryOf } from '../core/org-log/audit.ts';
import type { OrgLogRow } from '../core/org-log/org-event.ts';
import type { ListedPlan } from '../core/org-log/plan-report.ts';
import { type LogPosition, ORG_LOG_ID } from '../core/plan/chain.ts';
import { StorageUnavailable } from './ports.ts';
import type { Services } from './services.ts';
import { type LogSource, type TrailVerdict, type VerifiedRows, verifyLog } from './verify-trail.ts';

export interface PlanProblem {
  readonly planId: string;
  readonly problem: 'deleted' | 'truncated' | 'replaced' | 'damaged' | 'unrecorded' | 'unreached';
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

/** Rows that one call verifies: each is read from the object and from the database, and a call may make a thousand calls of its own. */
const ROWS_AT_ONCE = 5_000;

/** The rows behind a position (null: from the beginning), as many as one call verifies. */
export async function verifyOrgLog(org: string, from: LogPosition | null, services: Services): Promise<VerifiedRows> {
  const verified = await verifyLog(sourceOf(org, services), services, { from, maxRows: ROWS_AT_ONCE });
  if (verified !== null) return verified;
  // Every plan reports itself when it is made: where there are plans there was a log.
  const plans = await services.planIndex.list({ org, pageSize: 1 });
  if (!plans.ok || plans.value.rows.length === 0) return { verdict: NOTHING, next: null };
  const problem = { seq: 1, problem: 'deleted' } as const;
  return { verdict: { ...NOTHING, valid: false, trail: 'changed', problem, findings: [problem] }, next: null };
}

/** What is wrong with these plans; none of them: nothing is. */
export async function verifyReportedPlans(org: string, plans: readonly ListedPlan[], services: Services): Promise<readonly PlanProblem[]> {
  const problems: PlanProblem[] = [];
  for (let start = 0; start < plans.length; start += AT_ONCE) {
    const found = await Promise.all(plans.slice(start, start + AT_ONCE).map((plan) => problemOf(org, plan, services)));
    problems.push(...found.filter((problem) => problem !== null));
  }
  return problems;
}

async function problemOf(org: string, known: ListedPlan, services: Services): Promise<PlanProblem | null> {
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
    if (heads.damage !== null) return named('damaged', heads.seq);
    // As it is, and yet the org's own log never heard of it: what is known of it was put there by somebody else.
    return known.isRecorded ? null : named('unrecorded', heads.seq);
  } catch (cause) {
    if (cause instanceof StorageUnavailable) return named('unreached', null);
    throw cause;
  }
}

function sourceOf(org: string, { orgLog }: Services): LogSource<OrgLogRow> {
  return {
    org,
    logId: ORG_LOG_ID,
    verify: (from) => orgLog.verify(org, from),
    heads: async (after) => {
      const heads = await orgLog.heads(org, { sign: false, ...(after === undefined ? {} : { after }) });
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
