import type { JsonObject, JsonValue } from '../json.ts';

/** Kinds of nodes in the decision tree that an actor may propose; the root (`prompt_definition`) is made with the plan. */
export const DECISION_TYPES = [
  'prompt_definition',
  'strategy_choice',
  'implementation_choice',
  'tool_choice',
  'resource_choice',
  'subplan_spawn',
  'user_intervention',
  'invariant_enforced',
  'error_recovery',
  'reversion',
] as const;
export type DecisionType = (typeof DECISION_TYPES)[number];

/** One tool call as an actor wishes it: names and arguments are fully resolved, nothing has been checked yet. */
export interface ProposedCall {
  readonly tool: string;
  readonly arguments: JsonObject;
  /** What the actor declares the call to cost; adds to the tool's price, never lowers it. */
  readonly declaredCostUsd?: number;
  /** What the actor says of its own confidence, 0..1; can only lower the computed value. */
  readonly statedConfidence?: number;
}

export interface ProposedDecision {
  readonly type: DecisionType;
  readonly question: string;
  readonly chosen: string;
  readonly alternatives: readonly string[];
  readonly rationale: string;
  readonly statedConfidence?: number;
}

/** Part of an artifact or a message, version-neutral: exactly one of text, raw (base64), url, data. */
export type ContentPart = { readonly mediaType?: string; readonly filename?: string; readonly metadata?: JsonObject } & (
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'raw'; readonly base64: string }
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'data'; readonly data: JsonValue }
);

export interface ProposedArtifact {
  readonly artifactId: string;
  readonly name?: string;
  readonly description?: string;
  readonly parts: readonly ContentPart[];
  readonly append?: boolean;
  readonly lastChunk?: boolean;
}

/**
 * What an actor answers when it is asked for the next thing. It only proposes: the plan decides, performs and records.
 * `stepId` names the step in results and templates; `cursor` is where the actor wants to go on after this proposal has been dealt with.
 */
export type Proposal =
  | { readonly kind: 'decide'; readonly stepId: string; readonly decision: ProposedDecision; readonly cursor: JsonValue }
  | {
      readonly kind: 'calls';
      readonly stepId: string;
      readonly calls: readonly ProposedCall[];
      readonly onRefused: 'fail' | 'continue';
      readonly cursor: JsonValue;
    }
  | { readonly kind: 'say'; readonly stepId: string; readonly text: string; readonly cursor: JsonValue }
  | { readonly kind: 'ask'; readonly stepId: string; readonly question: string; readonly cursor: JsonValue }
  | { readonly kind: 'artifact'; readonly stepId: string; readonly artifact: ProposedArtifact; readonly cursor: JsonValue }
  | { readonly kind: 'done' }
  | { readonly kind: 'fail'; readonly message: string };

/** How a step ended, as later steps and templates see it. `value` is the tool's result (a list for a batch) or the answer to a question. */
export interface StepResult {
  readonly status: 'succeeded' | 'failed' | 'refused';
  readonly value: JsonValue;
  readonly reason?: string;
}
