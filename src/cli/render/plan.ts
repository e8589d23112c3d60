import type { ResultOf } from '../../api/operations.ts';
import type { PlanSummary, PlanView } from '../../api/views.ts';
import { renderApproval } from './approval.ts';
import { clip, oneLine, type Style, table, usd } from './style.ts';

/** A plan at a glance: where it stands, what it used of its limits, what it waits for, what to type next. */
export function renderPlan(plan: PlanView, style: Style): string {
  const { budget, steps, wall_clock: clock } = plan;
  const cap =
    budget.cap_usd === null ? 'no cap' : `of ${usd(budget.cap_usd)}${budget.cap_source === undefined ? '' : ` (${budget.cap_source})`}`;
  const lines = [
    `${style.paint('bold', plan.plan_id)}  ${stateOf(plan, style)}`,
    field('action', oneLine(plan.action_name)),
    field('project', plan.project === null ? '(none)' : oneLine(plan.project)),
    field('profile', `${oneLine(plan.profile.name)} (from ${plan.profile.level}), ${clip(plan.profile.digest, 13)}`),
    field(
      'spent',
      `${usd(budget.spent_usd)} ${cap}${budget.reserved_usd > 0 ? `, reserved ${usd(budget.reserved_usd)}` : ''}${budget.overrun_usd > 0 ? `, overrun ${usd(budget.overrun_usd)}` : ''}`,
    ),
    field(
      'steps',
      `${steps.used}${steps.limit === null ? '' : ` of ${steps.limit}`}${steps.current === undefined ? '' : `, now ${oneLine(steps.current)}`}`,
    ),
    field('worked', `${clock.worked_seconds} s${clock.limit_seconds === null ? '' : ` of ${clock.limit_seconds} s`}`),
    ...(plan.attempt > 1 ? [field('attempt', String(plan.attempt))] : []),
    ...(plan.applied_head === undefined ? [] : [field('applied', `${plan.applied_at ?? ''} head ${clip(plan.applied_head, 13)}`)]),
    ...(plan.cancel_reason === undefined ? [] : [field('cancelled', oneLine(plan.cancel_reason))]),
    ...(plan.halted === undefined
      ? []
      : [
          field(
            'halted',
            style.paint('red', `${oneLine(plan.halted.reason)} (${plan.halted.level}, by ${oneLine(plan.halted.by)} at ${plan.halted.at})`),
          ),
        ]),
    ...(plan.error === undefined ? [] : [field('error', style.paint('red', oneLine(plan.error.last.message)))]),
    field('log', `${plan.seq} rows, head ${clip(plan.head_hash, 13)}`),
  ];
  if (plan.pending.length > 0) {
    lines.push('', style.paint('yellow', `waits for ${plan.pending.length === 1 ? 'an answer' : `${plan.pending.length} answers`}:`));
    for (const approval of plan.pending) lines.push(renderApproval(approval, style));
    const [first] = plan.pending;
    if (first !== undefined)
      lines.push(style.paint('dim', `  → agents approvals approve ${first.approval_id}   or   agents approvals deny ${first.approval_id}`));
  }
  return lines.join('\n');
}

const field = (name: string, value: string): string => `  ${name.padEnd(10)} ${value}`;

function stateOf({ phase, state, resume_state: resume }: PlanView, style: Style): string {
  const text = `${phase}/${state}${resume === undefined ? '' : ` (then ${resume})`}`;
  switch (state) {
    case 'applied':
    case 'complete':
      return style.paint('green', text);
    case 'waiting':
    case 'constrained':
      return style.paint('yellow', text);
    case 'errored':
    case 'rejected':
    case 'cancelled':
      return style.paint('red', text);
    case 'queued':
    case 'running':
      return style.paint('cyan', text);
  }
}

/** One line per plan. */
export function renderPlans(result: ResultOf<'_cleveragents/plan/list'>, style: Style): string {
  if (result.plans.length === 0) return style.paint('dim', 'no plans');
  const row = (plan: PlanSummary): readonly string[] => [
    plan.plan_id,
    `${plan.phase}/${plan.state}`,
    plan.pending_approvals === 0 ? '' : String(plan.pending_approvals),
    clip(oneLine(plan.action_name), 40),
    clip(oneLine(plan.project ?? '-'), 30),
    clip(oneLine(plan.profile), 20),
    plan.updated_at,
  ];
  const shown = table(['plan', 'state', 'asks', 'action', 'project', 'profile', 'updated'], result.plans.map(row), style);
  const more = result.next_page_token === '' ? '' : `; more with --page-token ${result.next_page_token}`;
  return `${shown}\n${style.paint('dim', `${result.plans.length} of ${result.total_size}${more}`)}`;
}
