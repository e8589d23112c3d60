import type { ActionDocument } from '../../core/action.ts';
import type { JsonObject, JsonValue } from '../../core/json.ts';
import type { Proposal, StepResult } from '../../core/plan/proposal.ts';

/**
 * Who proposes what a plan does next. An actor has no effects: it reads its context and answers a proposal, and the plan decides,
 * performs and records. Asked again with the same context (after a crash, say), a scripted actor answers the same.
 */
export interface Actor {
  readonly name: string;
  /** The next thing to do in this phase. Never throws for what stands in the context: what cannot go on is a `fail` proposal. */
  propose(context: ActorContext): Promise<Proposal>;
  /**
   * The answer to a first message that needs no plan, or null when it needs one. Asked before a plan is made: `results` is empty,
   * `cursor` null, `phase` execute.
   */
  immediateReply?(context: ActorContext): string | null;
}

export interface ActorContext {
  readonly action: ActionDocument;
  /** Validated against the action's schema. */
  readonly arguments: JsonObject;
  readonly phase: 'strategize' | 'execute';
  /** `cursor` of the proposal dealt with last in this phase; null at the start of a phase. */
  readonly cursor: JsonValue;
  /** By step id, over both phases; of a step that ran several times, the last. */
  readonly results: ReadonlyMap<string, StepResult>;
  /** Text of the first message of the caller; '' if there is none. */
  readonly input: string;
  /** Ids of the messages that callers have sent, as they gave them, oldest first. */
  readonly messageIds: readonly string[];
  /** Guidance that arrived since the actor was asked last, oldest first. */
  readonly guidance: readonly string[];
  /** Guidance that the actor was shown before, in this phase or an earlier one, oldest first. With `guidance` it is all there is. */
  readonly earlierGuidance: readonly string[];
  /** 1 for the first run; a restart of the phase counts on. */
  readonly attempt: number;
  /** Result of the step proposed last; null at the start of a phase. */
  readonly last: StepResult | null;
}
