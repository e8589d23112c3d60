import { readOrgEntryOf } from '../../core/org-log/audit.ts';
import { ORG_LOG_ID } from '../../core/plan/chain.ts';
import { notFound } from '../../core/refusal.ts';
import { err, ok } from '../../core/result.ts';
import { exportPage } from '../export-log.ts';
import type { Handlers } from '../handler.ts';
import { entryView, verdictView } from '../trail-view.ts';
import { verifyOrgLog, verifyReportedPlans } from '../verify-org-log.ts';
import { decodeVerifyToken, encodeVerifyToken, type VerifyToken } from '../verify-token.ts';
import { signingOf } from './audit-handlers.ts';

const BEGINNING: VerifyToken = { at: { seq: 0, head: '' }, problem: null, isValid: true };

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

  '_cleveragents/org/log/verify': async ({ plan_id: planId, page_token: token, limit }, call, services) => {
    const { org } = call.principal;
    const only = planId === undefined ? null : await services.orgLog.plan(org, planId);
    if (planId !== undefined && only === null) return err(notFound('plan', planId));
    const before = token === undefined ? ok(BEGINNING) : decodeVerifyToken(token);
    if (!before.ok) return before;
    const { at, problem: foundBefore, isValid: wasValid } = before.value;
    const rows = 'seq' in at ? await verifyOrgLog(org, at.seq === 0 ? null : at, services) : null;
    const problem = foundBefore ?? rows?.verdict.problem ?? null;
    const logIsValid = wasValid && rows?.verdict.valid !== false;
    // What was wrong before is wrong on every page: the last one has the word on the whole.
    const log =
      rows === null
        ? {}
        : {
            log: {
              ...verdictView(rows.verdict),
              ...(problem === null ? {} : { valid: false, problem: problem.problem, first_bad_seq: problem.seq }),
            },
          };
    if (rows !== null && rows.next !== null) {
      const next_page_token = encodeVerifyToken({ at: rows.next, problem, isValid: logIsValid });
      return ok({ valid: logIsValid, ...log, plans_checked: 0, plan_problems: [], next_page_token });
    }
    const known = only === null ? await services.orgLog.plans(org, 'seq' in at ? '' : at.afterPlanId, limit) : [only];
    const problems = await verifyReportedPlans(org, known, services);
    const valid = logIsValid && problems.length === 0;
    const last = known.at(-1);
    const isLast = only !== null || known.length < limit || last === undefined;
    return ok({
      valid,
      ...log,
      plans_checked: known.length,
      plan_problems: problems.map(({ planId: plan_id, problem: named, reportedSeq, seq }) => ({
        plan_id,
        problem: named,
        reported_seq: reportedSeq,
        ...(seq === null ? {} : { seq }),
      })),
      next_page_token: isLast ? '' : encodeVerifyToken({ at: { afterPlanId: last.plan_id }, problem, isValid: valid }),
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
        signedAfter: async (after) => (await services.orgLog.heads(org, { sign: false, after }))?.signed ?? [],
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
