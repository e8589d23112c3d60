import type { Guardrails } from '../../guard-policy.ts';
import type { GuardVerdict } from '../../guards/guard.ts';
import type { JsonObject, JsonValue } from '../../json.ts';
import type { CallFacts } from '../commands.ts';
import type { ActorRef } from '../plan.ts';
import type { ExternalOutcome } from './external.ts';

/** A call as an executor outside asks for it. Everything but the tool's name has been checked. */
export interface AuthorizeRequest {
  /** As it came: a name that is none is refused by name, and recorded. */
  readonly toolName: JsonValue | undefined;
  readonly arguments: JsonObject;
  readonly isWrite: boolean | null;
  readonly costUsd: number | null;
  readonly step: number | null;
  readonly operation: string | null;
  readonly idempotencyKey: string | null;
}

/** One question of the source's service, asked about numbers that the caller keeps (guards.md "Enforcement Methods"). */
export type CheckRequest =
  | { readonly check: 'step_limit'; readonly currentStep: number }
  | { readonly check: 'tool_budget'; readonly costUsd: number }
  | { readonly check: 'budget_hierarchy'; readonly costUsd: number }
  | { readonly check: 'wall_clock' }
  | { readonly check: 'actor_tool_calls'; readonly currentCalls: number }
  | { readonly check: 'retries_per_failure'; readonly currentRetries: number }
  | { readonly check: 'confirmation_required'; readonly operation: string };

/** What was kept of another service's plan (guards.md "Persisting Guardrail State"), checked. */
export interface ImportedState {
  /** Null, here and below: it did not come. */
  readonly stepCount: number | null;
  readonly budgetSpentUsd: number | null;
  readonly startTime: string | null;
  readonly entries: readonly JsonObject[];
  /** How many entries its trail shows at most. */
  readonly maxEntries: number | null;
  /** Of all entries ever, those that have left the trail included. */
  readonly allowed: number | null;
  readonly denied: number | null;
  readonly evicted: number | null;
  /** Limits that came with it; they tighten those of the plan. */
  readonly guardrails: Guardrails;
}

export interface ExternalCommands {
  readonly authorize: {
    readonly type: 'authorize';
    readonly by: ActorRef;
    readonly request: AuthorizeRequest;
    /** What the arguments say of the call where its tool is registered here; absent: nothing is known of it. */
    readonly facts?: CallFacts;
  };
  readonly settle_external: {
    readonly type: 'settle_external';
    readonly by: ActorRef;
    readonly callId: string;
    readonly outcome: ExternalOutcome;
    readonly costUsd: number | null;
  };
  readonly check: { readonly type: 'check'; readonly by: ActorRef; readonly request: CheckRequest };
  readonly associate: { readonly type: 'associate'; readonly by: ActorRef; readonly sessionId: string };
  readonly import_state: { readonly type: 'import_state'; readonly by: ActorRef; readonly state: ImportedState };
  readonly complete: { readonly type: 'complete'; readonly by: ActorRef };
}

/** Commands that only external plans take. */
export type ExternalCommand = ExternalCommands[keyof ExternalCommands];

/** What each of them answers. */
export interface ExternalAnswers {
  readonly authorize: AuthorizationAnswer;
  readonly settle_external: SettlementAnswer;
  readonly check: CheckAnswer;
  readonly associate: null;
  readonly import_state: { readonly entries: number; readonly stepCount: number; readonly spentMicroUsd: number };
  readonly complete: null;
}

export type ExternalAnswer = ExternalAnswers[keyof ExternalAnswers];

export interface AuthorizationAnswer {
  readonly callId: string;
  readonly allowed: boolean;
  readonly reason: string | null;
  readonly requiresApproval: boolean;
  /** The question that is open about it. */
  readonly approvalId: string | null;
  /** When the authorisation, or the open question, expires. */
  readonly expiresAt: string | null;
  /** The row of the decision; where `guards` is null it has them. */
  readonly decidedSeq: number;
  /** Null: nothing was decided anew, this is the answer to an earlier request. */
  readonly guards: readonly GuardVerdict[] | null;
}

export interface SettlementAnswer {
  readonly callId: string;
  readonly outcome: ExternalOutcome;
  readonly chargedMicroUsd: number;
  readonly marks: readonly string[];
  readonly isLate: boolean;
  /** After it. */
  readonly spentMicroUsd: number;
  readonly reservedMicroUsd: number;
  readonly remainingMicroUsd: number | null;
}

export interface CheckAnswer {
  readonly allowed: boolean;
  readonly reason: string | null;
  readonly exceededLevel: string | null;
}
