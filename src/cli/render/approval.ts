import type { ApprovalView } from '../../api/views.ts';
import { clip, oneLine, printable, type Style, usd } from './style.ts';

/** One approval as a person reads it before deciding: what exactly, why it asks, what it is bound to. */
export function renderApproval(approval: ApprovalView, style: Style): string {
  const lines = [
    `${style.paint('bold', approval.approval_id)}  ${style.paint(approval.status === 'pending' ? 'yellow' : 'dim', approval.status)}  ${titleOf(approval)}`,
    field('why', oneLine(approval.reason)),
    ...subjectLines(approval, style),
    ...confidenceLines(approval),
    ...(approval.estimate_usd === undefined ? [] : [field('estimate', usd(approval.estimate_usd))]),
    ...(approval.choices === undefined ? [] : [field('choices', oneLine(approval.choices.join(', ')))]),
    ...(approval.suggested_grant === undefined ? [] : [field('suggested', oneLine(JSON.stringify(approval.suggested_grant)))]),
    field('digest', approval.digest),
    ...(approval.expires_at === null ? [] : [field('expires', approval.expires_at)]),
    ...(approval.decided_by === undefined ? [] : [field('decided', `by ${oneLine(approval.decided_by)} at ${approval.decided_at ?? '?'}`)]),
  ];
  return lines.join('\n');
}

/** All approvals with the command that answers each. */
export function renderApprovals(
  result: { readonly approvals: readonly ApprovalView[]; readonly next_page_token: string },
  style: Style,
): string {
  if (result.approvals.length === 0) return style.paint('dim', 'nothing waits for approval');
  const blocks = result.approvals.map((approval) => `${renderApproval(approval, style)}\n${hint(approval, style)}`);
  const more = result.next_page_token === '' ? [] : [style.paint('dim', `more with --page-token ${result.next_page_token}`)];
  return [...blocks, ...more].join('\n\n');
}

function hint(approval: ApprovalView, style: Style): string {
  if (approval.status !== 'pending') return '';
  const answers = approval.kind === 'question' || approval.kind === 'next_step' || approval.kind === 'unknown_outcome';
  const command = answers ? `agents approvals answer ${approval.approval_id} "…"` : `agents approvals approve ${approval.approval_id}`;
  return style.paint('dim', `  → ${command}`);
}

function titleOf(approval: ApprovalView): string {
  const parts: string[] = [approval.kind];
  if (approval.gate !== undefined) parts.push(approval.gate);
  if (approval.guard !== undefined) parts.push(approval.guard);
  return oneLine(parts.join(' · '));
}

const field = (name: string, value: string): string => `  ${name.padEnd(10)} ${value}`;

function subjectLines(approval: ApprovalView, style: Style): readonly string[] {
  const { call, calls, diff, question, decision, details } = approval;
  return [
    ...(call === undefined ? [] : [callLine(call)]),
    ...(calls ?? []).map(callLine),
    ...(question === undefined ? [] : [field('question', printable(question))]),
    ...(decision === undefined ? [] : memberLines(decision)),
    ...(details === undefined ? [] : memberLines(details)),
    ...(diff === undefined
      ? []
      : [
          field(
            'diff',
            `${diff.files.length} files, ${style.paint('green', `+${diff.additions}`)} ${style.paint('red', `-${diff.deletions}`)}`,
          ),
          ...diff.files.map(
            (file) => `             ${file.status.padEnd(12)} +${file.additions} -${file.deletions}  ${printable(file.path)}`,
          ),
        ]),
  ];
}

/** What else is shown, a member per line. */
function memberLines(members: Readonly<Record<string, unknown>>): readonly string[] {
  return Object.entries(members).map(([name, value]) =>
    field(oneLine(name), clip(printable(typeof value === 'string' ? value : JSON.stringify(value)), 500)),
  );
}

const callLine = (call: { readonly tool: string; readonly class?: string | undefined; readonly arguments: unknown }): string =>
  field(
    'call',
    `${oneLine(call.tool)}${call.class === undefined ? '' : ` (${call.class})`} ${clip(printable(JSON.stringify(call.arguments)), 2000)}`,
  );

function confidenceLines({ confidence, threshold, components }: ApprovalView): readonly string[] {
  if (threshold === undefined) return [];
  const shown = confidence === null || confidence === undefined ? 'none' : String(confidence);
  const made =
    components === undefined
      ? ''
      : ` (${Object.entries(components)
          .map(([name, value]) => `${name} ${String(value)}`)
          .join(', ')})`;
  return [field('confidence', `${shown}, threshold ${threshold}${made}`)];
}
