import type { ThresholdName } from './profile.ts';
import type { RiskClass } from './tool.ts';

/** Gates: the eleven transitions that a confidence threshold guards, and the rule by which one opens (design section 6). */

export type GateOutcome = 'proceed' | 'ask' | 'fail';

export interface GateQuestion {
  readonly threshold: number;
  /** 0 to 1; null when there is none. Anything else counts as none. */
  readonly confidence: number | null;
  /** Nobody answers: a question becomes a failure. */
  readonly unattended: boolean;
}

/** 0.0 proceeds; 1.0 asks, whatever the confidence; otherwise proceed iff confidence ≥ threshold; no confidence asks. */
export function evaluateGate({ threshold, confidence, unattended }: GateQuestion): GateOutcome {
  const ask = unattended ? 'fail' : 'ask';
  if (!isFraction(threshold)) return ask;
  if (threshold === 0) return 'proceed';
  if (threshold === 1 || !isFraction(confidence)) return ask;
  return confidence >= threshold ? 'proceed' : ask;
}

/** How a gate finds its risk class: fixed, or from the calls or the target that it is about. */
export type GateRisk = RiskClass | 'riskiest_call' | 'failed_call' | 'apply_target';

export interface Gate {
  readonly threshold: ThresholdName;
  readonly transition: string;
  /** What the human sees. */
  readonly shows: string;
  readonly ifRefused: string;
  readonly risk: GateRisk;
  /** Which form of confidence applies: of a phase change, or of calls. */
  readonly form: 'phase' | 'call';
  /** The gate exists to answer a failed validation, so that failure does not cap its confidence. */
  readonly answersFailedValidation: boolean;
}

const gate = (
  threshold: ThresholdName,
  transition: string,
  shows: string,
  ifRefused: string,
  risk: GateRisk,
  answersFailedValidation = false,
): Gate => ({
  threshold,
  transition,
  shows,
  ifRefused,
  risk,
  form: risk === 'riskiest_call' || risk === 'failed_call' ? 'call' : 'phase',
  answersFailedValidation,
});

/** One row per threshold. */
export const GATES: Readonly<Record<ThresholdName, Gate>> = {
  decompose_task: gate(
    'decompose_task',
    'after plan/use, enter Strategize',
    'arguments, profile',
    'waits with a next_step question',
    'read',
  ),
  edit_code: gate('edit_code', 'each decision in Strategize', 'question, alternatives, rationale', 'guidance, re-decided', 'read'),
  create_tool: gate('create_tool', 'Strategize → Execute', 'the strategy and its digest', 'back to Strategize with guidance', 'write'),
  execute_command: gate(
    'execute_command',
    'each decision (batch of tool calls) in Execute',
    'the calls with resolved arguments and estimates',
    'the actor is told "refused: reason"',
    'riskiest_call',
  ),
  create_file: gate('create_file', 'automatic fix of a failed validation', 'failing checks', 'constrained', 'write', true),
  delete_content: gate('delete_content', 'automatic strategy revision on a constraint', 'constraint report', 'constrained', 'write', true),
  install_dependency: gate('install_dependency', 'spawn and run a child plan', 'child action, carved limits', 'no child', 'write'),
  modify_config: gate('modify_config', 'automatic retry of a transient failure', 'error, attempt n of m', 'errored', 'failed_call'),
  approve_plan: gate(
    'approve_plan',
    'automatic restore of a checkpoint on failure',
    'checkpoint, impact',
    'errored, workspace kept',
    'read',
  ),
  select_tool: gate('select_tool', 'Execute → Apply', 'diff, outbox, their digest', 'back to Execute or cancel', 'apply_target'),
  access_network: gate('access_network', 'Apply (constrained) → Strategize', 'conflict report', 'stays constrained', 'write'),
};

/** The class of an apply: a project or branch can be reverted, a fast-forward or an outbox cannot. */
export function applyRiskClass(target: { readonly fastForward: boolean; readonly outboxEntries: number }): RiskClass {
  return target.fastForward || target.outboxEntries > 0 ? 'external_write' : 'external_write_revertible';
}

function isFraction(value: number | null): value is number {
  return typeof value === 'number' && value >= 0 && value <= 1;
}
