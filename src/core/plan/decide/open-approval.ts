import type { Confidence } from '../../confidence.ts';
import { digestOf } from '../../digest.ts';
import { canonicalJson, type JsonValue } from '../../json.ts';
import type { ThresholdName } from '../../profile.ts';
import type { ApprovalKind, ApprovalSubject, Call, Grant, Step } from '../plan.ts';
import { SYSTEM, type Work } from '../work.ts';

/** How long a question stays open unless it is extended (design section 12). */
export const APPROVAL_TTL_MS = 7 * 24 * 3600 * 1000;

/** When the one reminder is due before an approval expires. */
export const REMINDER_MS = 24 * 3600 * 1000;

export interface ApprovalRequest {
  readonly kind: ApprovalKind;
  readonly reason: string;
  readonly subject: ApprovalSubject;
  /** What exactly is approved; hashed together with the locked profile and the policy in force. */
  readonly binds: JsonValue;
  readonly gate?: ThresholdName;
  readonly guard?: string;
  readonly callIds?: readonly string[];
  readonly threshold?: number;
  readonly confidence?: Confidence | null;
  readonly estimateMicroUsd?: number;
  readonly suggestedGrant?: Grant | null;
  readonly step?: Step;
  readonly cursor?: JsonValue;
}

/** Opens one approval, named after its place in the log and bound by digest to exactly its subject (design invariant 4). */
export function openApproval(work: Work, request: ApprovalRequest): string {
  const plan = work.plan();
  const { now, sha256 } = work.context;
  const id = `${plan.id}.${work.nextSeq()}`;
  work.emit('approval_opened', SYSTEM, {
    approval: {
      id,
      kind: request.kind,
      status: 'pending',
      digest: digestOf(sha256, {
        v: 1,
        plan_id: plan.id,
        kind: request.kind,
        // A question that is asked again is another question: what was said to the first does not answer it.
        opened_at_seq: work.nextSeq(),
        binds: request.binds,
        profile: plan.profile.digest,
        policy: plan.policyDigest,
      }),
      reason: request.reason,
      gate: request.gate ?? null,
      guard: request.guard ?? null,
      callIds: request.callIds ?? [],
      threshold: request.threshold ?? null,
      confidence: request.confidence ?? null,
      estimateMicroUsd: request.estimateMicroUsd ?? null,
      subject: request.subject,
      suggestedGrant: request.suggestedGrant ?? null,
      openedAt: now,
      // What to do next is asked until somebody says it.
      expiresAt: request.kind === 'next_step' ? null : new Date(Date.parse(now) + APPROVAL_TTL_MS).toISOString(),
      reminded: false,
      decided: null,
    },
    ...(request.step === undefined ? {} : { step: request.step }),
    ...(request.cursor === undefined ? {} : { cursor: request.cursor }),
  });
  return id;
}

/** What all calls of one approval may take inline together. */
const SHOWN_INLINE_BYTES = 32 * 1024;

/** Calls as an approval shows them. Where they are many, what each holds is kept beside the log, so that the row that asks stays small. */
export function shownCalls(work: Work, calls: readonly Call[]): NonNullable<ApprovalSubject['calls']> {
  const inlineCharacters = SHOWN_INLINE_BYTES / 3 / Math.max(1, calls.length);
  return calls.map(({ id, tool, arguments: args, riskClass }) => {
    const text = 'inline' in args ? canonicalJson(args.inline) : '';
    const bytes = text.length > inlineCharacters ? new TextEncoder().encode(text) : null;
    return {
      call_id: id,
      tool,
      arguments: bytes === null ? args : { blob: work.storeBytes(bytes), bytes: bytes.byteLength },
      class: riskClass,
    };
  });
}

/** After a refusal, an expiry or a denial without guidance: the plan stays where it is and asks how to go on. */
export function askNextStep(work: Work, reason: string): void {
  openApproval(work, {
    kind: 'next_step',
    reason,
    subject: { question: `${reason} How should the plan go on?`, choices: ['guide', 'retry', 'cancel'] },
    binds: { reason, seq: work.nextSeq() },
  });
}

/** Fails the plan for good: nobody is there to ask. `remediation` says what would have to change. */
export function failUnattended(work: Work, reason: string): void {
  work.emit('plan_failed', SYSTEM, {
    reason,
    remediation: 'This profile is unattended, so nobody is asked. Remediation: use another profile, or change what the reason names.',
    to: { phase: work.plan().phase, state: 'errored', terminal: true },
  });
}
