import type { JsonObject, JsonValue } from '../core/json.ts';
import type { Refusal } from '../core/refusal.ts';
import type { Result } from '../core/result.ts';
import type { StreamEvent } from './model.ts';
import type { Operation, OperationParams, OperationResults, UnaryOperation } from './operations.ts';

/** What a version folder gives to `codec.ts`: one decoder per operation, one encoder per result, one for events. */

export interface DecodeOptions {
  /**
   * Given when the client activated our extension by header: a message without messageId gets one from here, and in 0.3 a part
   * without `kind` is read by its content (the source document's own example message). Absent: both are refused.
   */
  readonly lenientMessageId?: (() => string) | undefined;
}

export type DecoderTable = {
  readonly [O in Operation]: (params: unknown, options: DecodeOptions) => Result<OperationParams[O], Refusal>;
};

export type EncoderTable = { readonly [O in UnaryOperation]: (value: OperationResults[O]) => JsonValue };

export type EventEncoder = (event: StreamEvent) => JsonObject;
