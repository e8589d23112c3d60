import { readOrgEntryOf } from '../../core/org-log/audit.ts';
import { ORG_LOG_ID } from '../../core/plan/chain.ts';
import { notFound } from '../../core/refusal.ts';
import { err, ok } from '../../core/result.ts';
import { exportPage } from '../export-log.ts';
import type { Handlers } from '../handler.ts';
import { entryView, verdictView } from '../trail-view.ts';
import { verifyOrgLog, verifyReportedPlans } from '../verify-org-log.ts';
import { signingOf } from './audit-handlers.ts';

/** The org's own log. An org that has none yet has an empty one. */
export const orgLogHandlers = {
  '_cleveragents/org/log/list': async ({ type, plan_id: planId, since, limit, after_seq: afterSeq = 0 }, call, services) => {
    const page = await services.orgLog.page(call.principal.org, {
      afterSeq,
      limit,
      ...(type === undefined ? {} : { types: type }),
      ...(planId === undefined ? {} : { planId }),
      // One form for all times: they are compared as text.
      ...(since === undefined ? {} : { since: new Date(since).toISOString() }),
    });
    return ok({
      // What is no row that was written here is for verifying to name.
      entries: (page?.rows ?? []).flatMap((row) => readOrgEntryOf(row) ?? []).map(entryView),
      ...(page === null || page.nextAfterSeq === null ? {} : { next_after_seq: page.nextAfterSeq }),
    });
  },

  '_cleveragents/org/log/verify': async ({ plan_id: planId, after_plan_id: afterPlanId, limit }, call, services) => {
    const { org } = call.principal;
    const only = planId === undefined ? null : await services.orgLog.plan(org, planId);
    if (planId !== undefined && only === null) return err(notFound('plan', planId));
    const log = afterPlanId === undefined ? await verifyOrgLog(org, services) : null;
    const known = only === null ? await services.orgLog.plans(org, afterPlanId ?? '', limit) : [only];
    const problems = await verifyReportedPlans(org, known, services);
    const last = known.at(-1);
    return ok({
      valid: log?.valid !== false && problems.length === 0,
      ...(log === null ? {} : { log: verdictView(log) }),
      plans_checked: known.length,
      plan_problems: problems.map(({ planId: plan_id, problem, reportedSeq, seq }) => ({
        plan_id,
        problem,
        reported_seq: reportedSeq,
        ...(seq === null ? {} : { seq }),
      })),
      ...(planId === undefined && known.length === limit && last !== undefined ? { next_after_plan_id: last.plan_id } : {}),
    });
  },

  '_cleveragents/org/log/export': async ({ format, limit, after_seq: afterSeq = 0 }, call, services) => {
    const { org } = call.principal;
    const page = await exportPage(
      {
        org,
        logId: ORG_LOG_ID,
        rows: async (after, count) => (await services.orgLog.page(org, { afterSeq: after, limit: count }))?.rows ?? [],
        heads: async () => (await services.orgLog.heads(org, { sign: true })) ?? { seq: 0, signed: [] },
        entryOf: readOrgEntryOf,
      },
      { format, limit, afterSeq },
      services,
    );
    return ok({
      plan_id: ORG_LOG_ID,
      format,
      content: page?.content ?? '',
      rows: page?.rows ?? 0,
      signing: signingOf(services),
      ...(page === null || page.nextAfterSeq === null ? {} : { next_after_seq: page.nextAfterSeq }),
    });
  },

  '_cleveragents/org/log/head': async (_params, call, services) => {
    const heads = await services.orgLog.heads(call.principal.org, { sign: true });
    const newest = heads?.signed.at(-1);
    return ok({
      seq: heads?.seq ?? 0,
      hash: heads?.hash ?? '',
      signed_head: newest === undefined ? null : { ...newest, plan_id: ORG_LOG_ID },
      signing: signingOf(services),
    });
  },
} satisfies Partial<Handlers>;
