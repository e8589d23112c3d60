import type { EventType, PlanEvent } from './events.ts';
import { type Approval, type Call, findApproval, type Plan } from './plan.ts';

/**
 * What a row was about and under what it was decided, as the plan stood before it: so that an entry of the trail says who, what and why by
 * itself, without the rows before it. The row's own data counts where both say something.
 */
export interface EventAbout {
  readonly profile_digest: string;
  readonly policy_digest: string;
  /** Of the one call that it was about. */
  readonly step?: number;
  readonly tool?: string;
  readonly arguments_digest?: string;
  /** The calls, where an approval was about several. */
  readonly calls?: readonly CallAbout[];
  /** Of the approval. */
  readonly kind?: Approval['kind'];
  readonly digest?: string;
  readonly gate?: Approval['gate'];
  readonly guard?: string | null;
  readonly threshold?: number | null;
  readonly confidence?: Approval['confidence'];
}

interface CallAbout {
  readonly call_id: string;
  readonly step: number;
  readonly tool: string;
  readonly arguments_digest: string;
}

/** Rows in which nothing is decided: the trail has no entry of them. */
const UNDECIDED: ReadonlySet<EventType> = new Set([
  'call_sent',
  'message_said',
  'artifact_produced',
  'message_received',
  'approval_opened',
  'approval_reminded',
] as const);

export function aboutOf(plan: Plan, { type, data }: Pick<PlanEvent, 'type' | 'data'>): EventAbout | null {
  if (UNDECIDED.has(type)) return null;
  const under = { profile_digest: plan.profile.digest, policy_digest: plan.policyDigest };
  if ('approval_id' in data && typeof data.approval_id === 'string') {
    const approval = findApproval(plan, data.approval_id);
    if (approval !== null) return { ...under, ...aboutApproval(plan, approval) };
  }
  if ('call_id' in data) return { ...under, ...aboutCalls(plan, [data.call_id]) };
  if ('call_ids' in data && data.call_ids !== undefined) return { ...under, ...aboutCalls(plan, data.call_ids) };
  return under;
}

function aboutApproval(plan: Plan, { kind, digest, gate, guard, threshold, confidence, callIds }: Approval): Partial<EventAbout> {
  return { kind, digest, gate, guard, threshold, confidence, ...aboutCalls(plan, callIds) };
}

function aboutCalls(plan: Plan, ids: readonly string[]): Partial<EventAbout> {
  const calls = ids.flatMap((id) => plan.calls[id] ?? []);
  const [first] = calls;
  if (first === undefined) return {};
  return calls.length === 1 ? memberOf(first) : { calls: calls.map((call) => ({ call_id: call.id, ...memberOf(call) })) };
}

const memberOf = ({ step, tool, argumentsDigest }: Call) => ({ step, tool, arguments_digest: argumentsDigest });
