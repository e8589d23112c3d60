import type { ResultOf } from '../api/operations.ts';
import type { ApprovalView, PlanView } from '../api/views.ts';
import { type CommandContext, confirmShown } from './command-context.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { renderApproval } from './render/approval.ts';
import { renderPatch } from './render/diff.ts';

/** The gates that `plan execute` and `plan apply` answer; everything else is answered by `approvals`. */
const EXECUTE_GATES: ReadonlySet<string> = new Set(['decompose_task', 'create_tool']);

/** The environment's profile travels as its own lowest level, never as the plan's. */
export function addEnvironmentProfile({ io, params }: CommandContext): Readonly<Record<string, unknown>> {
  const profile = io.env['CLEVERAGENTS_AUTOMATION_PROFILE'];
  if (profile === undefined || profile === '' || 'environment_profile' in params) return params;
  return { ...params, environment_profile: profile };
}

/** Shows what executing approves, and sends the digest of exactly that. */
export async function bindExecute(context: CommandContext): Promise<Readonly<Record<string, unknown>>> {
  const { params } = context;
  if ('digest' in params) return params;
  const approval = (await pendingOf(context)).find((pending) => pending.gate !== undefined && EXECUTE_GATES.has(pending.gate));
  if (approval === undefined) return params;
  await confirmShown(context, renderApproval(approval, context.style), 'Execute this plan?');
  return { ...params, digest: approval.digest };
}

/** Shows the diff that applying approves, and sends the digest of exactly that. */
export async function bindApply(context: CommandContext): Promise<Readonly<Record<string, unknown>>> {
  const { client, params, style } = context;
  if ('digest' in params) return { approve: true, ...params };
  const approval = (await pendingOf(context)).find((pending) => pending.gate === 'select_tool' || pending.diff !== undefined);
  if (approval === undefined) return params;
  const patch = approval.diff?.patch ?? (await client.call('_cleveragents/plan/diff', { plan_id: approval.plan_id })).patch;
  await confirmShown(context, `${renderPatch(patch, style)}\n${renderApproval(approval, style)}`, 'Apply these changes?');
  return { approve: true, ...params, digest: approval.digest };
}

async function pendingOf({ client, params }: CommandContext): Promise<readonly ApprovalView[]> {
  const planId = params['plan_id'];
  const plan: ResultOf<'_cleveragents/plan/status'> = await client.call('_cleveragents/plan/status', { plan_id: String(planId) });
  return plan.pending;
}

/** A plan that waits is no failure and no success; a plan that failed must not look fine to a script. */
export function exitCodeOfPlan(plan: PlanView): ExitCode {
  switch (plan.state) {
    case 'waiting':
      return EXIT.waiting;
    case 'errored':
    case 'constrained':
    case 'rejected':
      return EXIT.error;
    case 'queued':
    case 'running':
    case 'complete':
    case 'applied':
    case 'cancelled':
      return EXIT.ok;
  }
}
