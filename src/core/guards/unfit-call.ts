import type { FieldIssue } from '../refusal.ts';
import type { GuardVerdict } from './guard.ts';

/** What is known of a call beside what the guards of a policy judge. */
export interface UnfitCall {
  readonly toolName: string;
  /** What is wrong with the arguments against the schema of the tool. */
  readonly issues: readonly FieldIssue[];
  /** What it writes would be in the project at once. */
  readonly appliesAtOnce: boolean;
  readonly isStrategy: boolean;
}

/**
 * Why a call is refused for good by something that is no guard of the policy; null: it is not. `tool` is the guard that refuses a name that
 * is none, beside which nothing else needs to be said.
 */
export function unfitVerdict({ toolName, issues, appliesAtOnce, isStrategy }: UnfitCall, refusedBy: string | null): GuardVerdict | null {
  const refused = { allowed: false, requiresApproval: false, approval: 'none' } as const;
  if (issues.length > 0 && refusedBy !== 'tool') {
    const reason = `Invalid arguments: ${issues.map((issue) => `${issue.field}: ${issue.message}`).join('; ')}`;
    return { ...refused, guard: 'arguments', eventType: 'tool_blocked', reason };
  }
  if (!appliesAtOnce || !isStrategy) return null;
  // The strategy is not agreed on yet, and nothing would stand between this call and the project.
  const reason = `Tool '${toolName}' would write to the project while the strategy is made. Remediation: write in Execute, or use sandbox.strategy workspace.`;
  return { ...refused, guard: 'sandbox', eventType: 'sandbox_blocked', reason };
}
