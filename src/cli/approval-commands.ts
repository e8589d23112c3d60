import { approvalDecide } from '../api/approval.ts';
import type { ResultOf } from '../api/operations.ts';
import type { ApprovalView } from '../api/views.ts';
import { ResourceNotFoundError } from '../client/errors.ts';
import { type CommandContext, checkedParams, confirmShown } from './command-context.ts';
import { renderApproval } from './render/approval.ts';

type Decided = ResultOf<'_cleveragents/approval/decide'>;

/**
 * Decides one approval as the person saw it: it is fetched and shown first, and the digest that was shown is sent, so that nothing
 * else is approved if it has changed since. `params` holds `approval_id` and what was given of reason, text, grant and digest.
 */
export async function decideShown(context: CommandContext, decision: 'approve' | 'deny' | 'answer'): Promise<Decided> {
  const { client, params, style } = context;
  const id = String(params['approval_id']);
  // Checked before the lookup: a malformed id is a mistake of the call, not an approval that does not exist.
  checkedParams(approvalDecide, { ...params, decision });
  const approval = await findApproval(context, id);
  if (decision === 'approve') await confirmShown(context, renderApproval(approval, style), 'Approve exactly this?');
  const suggested = approval.kind === 'limit' && decision === 'approve' && !('grant' in params) ? approval.suggested_grant : undefined;
  return client.call(
    '_cleveragents/approval/decide',
    checkedParams(approvalDecide, {
      digest: approval.digest,
      ...(suggested === undefined ? {} : { grant: suggested }),
      ...params,
      decision,
    }),
  );
}

async function findApproval({ client }: CommandContext, id: string): Promise<ApprovalView> {
  const planId = id.slice(0, id.indexOf('.'));
  for (let pageToken = ''; ; ) {
    const page = await client.call('_cleveragents/approval/list', {
      plan_id: planId,
      page_size: 100,
      ...(pageToken === '' ? {} : { page_token: pageToken }),
    });
    const found = page.approvals.find((approval) => approval.approval_id === id);
    if (found !== undefined) return found;
    if (page.next_page_token === '') {
      throw new ResourceNotFoundError({
        code: -32001,
        message: `Approval ${id} is not pending (agents approvals list shows what is)`,
        data: { approval_id: id },
        httpStatus: 200,
      });
    }
    pageToken = page.next_page_token;
  }
}
