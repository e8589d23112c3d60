import type { RiskClass } from './tool.ts';

/**
 * Confidence: computed, explainable, the same for the same input (design section 6):
 * `0.30·success + 0.20·familiarity + 0.30·(1 − risk) + 0.20·(1 − invariant complexity)`, then capped.
 * Nothing that a tool returned is an input, and what an actor claims can only lower the value.
 */

/** How often something like this went well: of (project, actor, operation class), or of the action's plans on the project. The last 50 count. */
export interface Outcomes {
  readonly ok: number;
  readonly total: number;
}

/** How well the plan knows what it is about to touch. */
export type Familiarity =
  /** A call: the paths and hosts it touches. `known`: read by the plan or held by the project's head; `newInKnownFolder` counts one half. */
  | { readonly kind: 'call'; readonly known: number; readonly newInKnownFolder: number; readonly unknown: number }
  /** A phase change: completed plans of the action on the project. */
  | { readonly kind: 'phase'; readonly completedPlans: number };

export interface ConfidenceInput {
  readonly riskClass: RiskClass;
  readonly outcomes: Outcomes;
  readonly familiarity: Familiarity;
  readonly touchesProtectedPath: boolean;
  readonly files: number;
  readonly bytes: number;
  readonly matchingInvariants: number;
  readonly lastValidationFailed: boolean;
  /** True for create_file and delete_content, which exist to answer a failed validation. */
  readonly answersFailedValidation: boolean;
  readonly tainted: boolean;
  /** What the actor says of itself; null or absent when it says nothing. Anything but a number from 0 to 1 counts as 0. */
  readonly claimed?: unknown;
}

export type ConfidenceCap = 'failed_validation' | 'tainted' | 'claimed';

export interface Confidence {
  /** 0 to 1, six decimals, rounded down. */
  readonly value: number;
  readonly components: {
    readonly success: number;
    readonly familiarity: number;
    readonly risk: number;
    readonly invariantComplexity: number;
  };
  /** The caps that lowered the value, with the value of each. */
  readonly caps: readonly { readonly cap: ConfidenceCap; readonly value: number }[];
}

/** The base risk of each class. */
export const RISK_OF_CLASS: Readonly<Record<RiskClass, number>> = {
  read: 0.05,
  write: 0.2,
  external_read: 0.3,
  external_write_revertible: 0.5,
  external_write: 0.8,
  unsafe: 0.95,
};

/** How many of the newest outcomes count. */
export const OUTCOME_WINDOW = 50;

const MANY_FILES = 20;
const MANY_BYTES = 64 * 1024;

export function computeConfidence(input: ConfidenceInput): Confidence {
  const components = {
    success: successOf(input.outcomes),
    familiarity: familiarityOf(input.familiarity),
    risk: riskOf(input),
    invariantComplexity: Math.min(1, count(input.matchingInvariants) / 5),
  };
  const computed =
    0.3 * components.success + 0.2 * components.familiarity + 0.3 * (1 - components.risk) + 0.2 * (1 - components.invariantComplexity);

  let value = roundDown(computed);
  const caps: { cap: ConfidenceCap; value: number }[] = [];
  const lower = (cap: ConfidenceCap, at: number): void => {
    if (at >= value) return;
    value = at;
    caps.push({ cap, value: at });
  };
  if (input.lastValidationFailed && !input.answersFailedValidation) lower('failed_validation', 0.5);
  if (input.tainted) lower('tainted', 0.6);
  if (input.claimed !== undefined && input.claimed !== null) lower('claimed', isFraction(input.claimed) ? input.claimed : 0);
  return { value, components, caps };
}

/** (ok + 1) / (total + 2): one half when nothing is known. Statistics that cannot be right count as failures. */
function successOf({ ok, total }: Outcomes): number {
  const all = count(total);
  return (Math.min(count(ok), all) + 1) / (all + 2);
}

function familiarityOf(familiarity: Familiarity): number {
  if (familiarity.kind === 'phase') return Math.min(1, count(familiarity.completedPlans) / 3);
  const { known, newInKnownFolder, unknown } = familiarity;
  const all = count(known) + count(newInKnownFolder) + count(unknown);
  return all === 0 ? 0 : (count(known) + count(newInKnownFolder) / 2) / all;
}

function riskOf(input: ConfidenceInput): number {
  const large = input.files > MANY_FILES || input.bytes > MANY_BYTES;
  return Math.min(1, RISK_OF_CLASS[input.riskClass] + (input.touchesProtectedPath ? 0.2 : 0) + (large ? 0.1 : 0));
}

function count(value: number): number {
  return Number.isFinite(value) && value > 0 ? value : 0;
}

/** Six decimals, down; what lies within a double's noise below a step belongs to the step, so that .7 meets a threshold of .7. */
function roundDown(value: number): number {
  return Math.floor(value * 1e6 + 1e-6) / 1e6;
}

function isFraction(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= 1;
}
