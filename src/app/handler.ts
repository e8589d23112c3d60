import type { OperationName, ParamsOf, ResultOf } from '../api/operations.ts';
import type { Principal } from '../core/principal.ts';
import type { Refusal } from '../core/refusal.ts';
import type { Result } from '../core/result.ts';
import type { Services } from './services.ts';

/** Who calls, and what came with the request beside its parameters. */
export interface CallContext {
  /** Null only for operations of role `public`. */
  readonly principal: Principal;
  /** `Idempotency-Key` header, if any. */
  readonly idempotencyKey: string | null;
}

/** The same for a handler. */
export interface HandlerCall extends CallContext {
  /**
   * Says that the configuration is about to be changed, by an operation whose row has `change`: awaited after everything that can refuse was
   * looked at and right before the first write. Durable when it answers; where it throws, nothing may be changed. A call that changes
   * nothing does not say it, and leaves no row. Saying it again adds nothing.
   */
  readonly changing: () => Promise<void>;
}

/** One operation's work: parameters are parsed, the role is checked; what the state says is the handler's to judge. */
export type Handler<N extends OperationName> = (
  params: ParamsOf<N>,
  call: HandlerCall,
  services: Services,
) => Promise<Result<ResultOf<N>, Refusal>>;

/** One handler per row; a row without one does not compile. */
export type Handlers = { readonly [N in OperationName]: Handler<N> };
