import type { PlanSnapshot } from '../../core/plan/snapshot.ts';
import { notFound } from '../../core/refusal.ts';
import { err, ok } from '../../core/result.ts';
import { approvingCaller } from '../caller.ts';
import type { Handlers } from '../handler.ts';
import { approvalViewOf, pendingOf, planViewOf } from '../plan-view.ts';
import { readListed } from '../read-listed.ts';
import { commandPlan, readPlan } from './plan-handlers.ts';

export const approvalHandlers = {
  '_cleveragents/approval/list': async (params, call, services) => {
    const ofKind = (snapshot: PlanSnapshot) =>
      pendingOf(snapshot.plan)
        .filter((approval) => params.kind === undefined || approval.kind === params.kind)
        .map((approval) => approvalViewOf(snapshot, approval));
    if (params.plan_id !== undefined) {
      const read = await readPlan(params.plan_id, call, services);
      return read.ok ? ok({ approvals: ofKind(read.value), next_page_token: '' }) : read;
    }
    const page = await services.planIndex.list({
      org: call.principal.org,
      withPendingApprovals: true,
      pageSize: params.page_size,
      ...(params.page_token === undefined ? {} : { pageToken: params.page_token }),
    });
    if (!page.ok) return page;
    // The objects are the truth: what was answered since the index was written is not shown as pending.
    const snapshots = await readListed(page.value.rows, services);
    return ok({
      approvals: snapshots.flatMap((snapshot) => ofKind(snapshot)),
      next_page_token: page.value.nextPageToken,
    });
  },

  '_cleveragents/approval/decide': async (params, call, services) => {
    const planId = params.approval_id.split('.')[0] ?? '';
    const caller = await approvingCaller(call.principal, services);
    if (!caller.ok) return caller;
    const decided = await commandPlan(planId, call, services, {
      type: 'answer',
      by: caller.value,
      answer: {
        approvalId: params.approval_id,
        decision: params.decision,
        digest: params.digest ?? null,
        reason: params.reason ?? null,
        text: params.text ?? null,
        grant: params.grant ?? null,
      },
    });
    // Whose plan it is must not show: an approval of an unknown plan is an unknown approval.
    if (!decided.ok) return decided.error.kind === 'not_found' ? err(notFound('approval', params.approval_id)) : decided;
    const approval = decided.value.plan.approvals.find((each) => each.id === params.approval_id);
    if (approval === undefined) return err(notFound('approval', params.approval_id));
    return ok({ approval: approvalViewOf(decided.value, approval), plan: planViewOf(decided.value, services.clock.nowMs()) });
  },
} satisfies Partial<Handlers>;
