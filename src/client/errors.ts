/**
 * The errors of the protocol as classes with the source's names (a2a-protocol.md "Error Codes", "Error Types").
 * `errorFromResponse` is the one place that knows which code is which class.
 */
import { EXTENSION_CODES } from '../a2a/errors.ts';

/** JSON-RPC's own codes, and the first server error, which says "busy". */
const RPC_CODES = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  unavailable: -32000,
} as const;

/** One wrong field, by its dotted path. */
export interface FieldProblem {
  readonly field: string;
  readonly message: string;
}

/** What the server said: JSON-RPC code, message for people, and the members of `error.data`. */
export interface ErrorDetails {
  readonly code: number;
  readonly message: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** HTTP status of the answer; 0 when there was none. */
  readonly httpStatus: number;
}

/** Base of everything that the client throws. */
export class A2aError extends Error {
  override readonly name: string = 'A2aError';
  readonly code: number;
  readonly data: Readonly<Record<string, unknown>>;
  readonly httpStatus: number;

  constructor(details: ErrorDetails, options?: ErrorOptions) {
    super(details.message, options);
    this.code = details.code;
    this.data = details.data;
    this.httpStatus = details.httpStatus;
  }
}

/** No usable answer: the server was not reached, or what answered is not a CleverAgents endpoint. */
export class A2aConnectionError extends A2aError {
  override readonly name = 'A2aConnectionError';

  constructor(message: string, httpStatus: number, options?: ErrorOptions) {
    super({ code: 0, message, data: {}, httpStatus }, options);
  }
}

/** -32601: unknown operation name. */
export class A2aOperationNotFoundError extends A2aError {
  override readonly name = 'A2aOperationNotFoundError';
  readonly operation: string;

  constructor(details: ErrorDetails, operation: string) {
    super(details);
    this.operation = operation;
  }
}

/** -32601 for an operation that exists, but not in this mode. */
export class A2aNotAvailableError extends A2aError {
  override readonly name = 'A2aNotAvailableError';
}

/** -32007. */
export class A2aVersionMismatchError extends A2aError {
  override readonly name = 'A2aVersionMismatchError';
}

/** -32602: which fields are wrong is in `issues`. */
export class ValidationError extends A2aError {
  override readonly name = 'ValidationError';

  get issues(): readonly FieldProblem[] {
    const issues = this.data['issues'];
    return Array.isArray(issues) ? issues.filter(isFieldProblem) : [];
  }
}

/** -32001. */
export class ResourceNotFoundError extends A2aError {
  override readonly name = 'ResourceNotFoundError';
}

/** -32002. */
export class AuthenticationError extends A2aError {
  override readonly name = 'AuthenticationError';
}

/** -32003. */
export class AuthorizationError extends A2aError {
  override readonly name = 'AuthorizationError';
}

/** -32004: the thing exists, but what was asked is not possible in its state. */
export class BusinessRuleViolation extends A2aError {
  override readonly name = 'BusinessRuleViolation';
}

/** -32005. */
export class DuplicateEntityError extends A2aError {
  override readonly name = 'DuplicateEntityError';
}

/** -32006. */
export class BudgetExceededError extends A2aError {
  override readonly name = 'BudgetExceededError';
}

/** -32008. */
export class PlanError extends A2aError {
  override readonly name = 'PlanError';
}

/** -32600 and -32700: the request itself is malformed or too large. */
export class InvalidRequestError extends A2aError {
  override readonly name = 'InvalidRequestError';
}

/** HTTP 429 or 503: nothing was done, the same call may be made again after `retryAfterSeconds`. */
export class ServiceUnavailableError extends A2aError {
  override readonly name = 'ServiceUnavailableError';

  get retryAfterSeconds(): number | null {
    const seconds = this.data['retry_after_seconds'];
    return typeof seconds === 'number' && seconds >= 0 ? seconds : null;
  }
}

/** The class of an error answer to a call of `operation`. A code that is not known becomes the base class. */
export function errorFromResponse(details: ErrorDetails, operation: string): A2aError {
  if (details.httpStatus === 429 || details.httpStatus === 503) return new ServiceUnavailableError(details);
  switch (details.code) {
    case RPC_CODES.methodNotFound:
      return details.data['reason'] === 'NOT_AVAILABLE'
        ? new A2aNotAvailableError(details)
        : new A2aOperationNotFoundError(details, operation);
    case RPC_CODES.invalidParams:
      return new ValidationError(details);
    case RPC_CODES.invalidRequest:
    case RPC_CODES.parseError:
      return new InvalidRequestError(details);
    case RPC_CODES.unavailable:
      return new ServiceUnavailableError(details);
    case EXTENSION_CODES.notFound:
      return new ResourceNotFoundError(details);
    case EXTENSION_CODES.unauthenticated:
      return new AuthenticationError(details);
    case EXTENSION_CODES.forbidden:
      return new AuthorizationError(details);
    case EXTENSION_CODES.invalidState:
      return new BusinessRuleViolation(details);
    case EXTENSION_CODES.alreadyExists:
      return new DuplicateEntityError(details);
    case EXTENSION_CODES.budgetExceeded:
      return new BudgetExceededError(details);
    case EXTENSION_CODES.versionMismatch:
      return new A2aVersionMismatchError(details);
    case EXTENSION_CODES.planError:
      return new PlanError(details);
    default:
      return new A2aError(details);
  }
}

function isFieldProblem(value: unknown): value is FieldProblem {
  if (typeof value !== 'object' || value === null) return false;
  const { field, message } = value as Partial<FieldProblem>;
  return typeof field === 'string' && typeof message === 'string';
}
