import { maskJson } from '../core/audit/mask.ts';
import type { JsonObject, JsonValue } from '../core/json.ts';
import type { FieldIssue, Refusal } from '../core/refusal.ts';
import { EXTENSION_URI } from './extension.ts';
import type { ProtocolVersion } from './version.ts';

/**
 * Refusals as JSON-RPC errors, in two families that share numbers with different meanings: the standard A2A methods (contract section
 * 13) and our own methods (CleverAgents protocol document, "Error Codes").
 *
 * A refusal of kind `invalid` or `invalid_state` may carry `details.reason`: one of `A2aReason` picks that A2A error on the standard
 * methods (TASK_NOT_CANCELABLE, PUSH_NOTIFICATION_NOT_SUPPORTED, CONTENT_TYPE_NOT_SUPPORTED, EXTENSION_SUPPORT_REQUIRED …); any other
 * reason is told as `cause` there. In the extension's family `data.reason` is the refusal's own reason if it has one.
 */
export interface ProtocolError {
  readonly code: number;
  readonly message: string;
  readonly data: JsonValue;
  /** Status of the HTTP response over JSON-RPC: 200, but for authentication, size and unavailability, which proxies and clients must see. */
  readonly httpStatus: 200 | 401 | 403 | 413 | 503;
}

/** Reasons of ErrorInfo and the codes that go with them. */
const A2A_CODES = {
  TASK_NOT_FOUND: -32001,
  TASK_NOT_CANCELABLE: -32002,
  PUSH_NOTIFICATION_NOT_SUPPORTED: -32003,
  UNSUPPORTED_OPERATION: -32004,
  CONTENT_TYPE_NOT_SUPPORTED: -32005,
  INVALID_AGENT_RESPONSE: -32006,
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: -32007,
  EXTENSION_SUPPORT_REQUIRED: -32008,
  VERSION_NOT_SUPPORTED: -32009,
  PARSE_ERROR: -32700,
  INVALID_REQUEST: -32600,
  METHOD_NOT_FOUND: -32601,
  INVALID_PARAMS: -32602,
  INTERNAL_ERROR: -32603,
  UNAUTHENTICATED: -32600,
  FORBIDDEN: -32600,
  // No standard code exists; -32000 is JSON-RPC's first server error and outside both families' lists.
  UNAVAILABLE: -32000,
} as const;

export type A2aReason = keyof typeof A2A_CODES;

/** Codes of the CleverAgents protocol document. */
export const EXTENSION_CODES = {
  notFound: -32001,
  unauthenticated: -32002,
  forbidden: -32003,
  invalidState: -32004,
  alreadyExists: -32005,
  budgetExceeded: -32006,
  versionMismatch: -32007,
  planError: -32008,
} as const;

const A2A_DOMAIN = 'a2a-protocol.org';

/** What a client reads when something broke on our side; the cause is in the log under the incident's id. */
export const INTERNAL_ERROR_MESSAGE = 'Internal error';

export interface ErrorContext {
  readonly version: ProtocolVersion;
}

/** The error of a standard A2A method in the shape of a version. */
export function standardError(told: Refusal, { version }: ErrorContext): ProtocolError {
  const refusal = maskRefusal(told);
  const reason = standardReason(refusal);
  const cause = ownReason(refusal) ?? CAUSES.get(refusal.kind);
  const members = { ...visibleMembers(refusal, camelCase), ...(cause === undefined || cause === reason ? {} : { cause }) };
  return {
    code: A2A_CODES[reason],
    message: refusal.message,
    data: version === '1.0' ? errorInfo(reason, members, issuesIn(refusal)) : errorObject(reason, members, issuesIn(refusal), A2A_DOMAIN),
    httpStatus: httpStatusOf(refusal),
  };
}

/** The error of one of our own methods: `_cleveragents/*`, `session.*` and the legacy names. */
export function extensionError(told: Refusal): ProtocolError {
  const refusal = maskRefusal(told);
  const { code, reason } = extensionCode(refusal);
  return {
    code,
    message: refusal.message,
    data: errorObject(ownReason(refusal) ?? reason, visibleMembers(refusal, identity), issuesIn(refusal), EXTENSION_URI),
    httpStatus: httpStatusOf(refusal),
  };
}

/** The answer to a bug of ours: nothing of its cause, only the id under which it was logged. */
export function internalError(incidentId: string, family: ErrorContext | 'extension'): ProtocolError {
  const reason = 'INTERNAL_ERROR';
  const data =
    family === 'extension'
      ? errorObject(reason, { incident_id: incidentId }, [], EXTENSION_URI)
      : family.version === '1.0'
        ? errorInfo(reason, { incidentId }, [])
        : errorObject(reason, { incidentId }, [], A2A_DOMAIN);
  return { code: A2A_CODES.INTERNAL_ERROR, message: INTERNAL_ERROR_MESSAGE, data, httpStatus: 200 };
}

/** Kinds that A2A has no reason for: they are told as `cause` beside the nearest one. */
/** What somebody typed in a wrong place comes back in what is wrong with it: without the secret in it. */
function maskRefusal(refusal: Refusal): Refusal {
  return maskJson(refusal as unknown as JsonObject) as unknown as Refusal;
}

const CAUSES: ReadonlyMap<Refusal['kind'], string> = new Map<Refusal['kind'], string>([
  ['already_exists', 'ALREADY_EXISTS'],
  ['budget_exceeded', 'BUDGET_EXCEEDED'],
  ['plan_error', 'PLAN_ERROR'],
  ['too_large', 'TOO_LARGE'],
]);

/** Entities that are a task, or belong to one, on the standard methods; another one that is unknown is a wrong parameter there. */
const TASK_ENTITIES: ReadonlySet<string> = new Set(['task', 'plan', 'push_config']);

/** The reason that the standard methods give for a refusal. */
export function standardReason(refusal: Refusal): A2aReason {
  const own = ownReason(refusal);
  switch (refusal.kind) {
    case 'invalid':
      return isA2aReason(own) ? own : 'INVALID_PARAMS';
    case 'not_found':
      if (refusal.entity === 'method') return 'METHOD_NOT_FOUND';
      return TASK_ENTITIES.has(refusal.entity) ? 'TASK_NOT_FOUND' : 'INVALID_PARAMS';
    case 'unauthenticated':
      return 'UNAUTHENTICATED';
    case 'forbidden':
      return 'FORBIDDEN';
    case 'invalid_state':
      return isA2aReason(own) ? own : 'UNSUPPORTED_OPERATION';
    case 'already_exists':
      return 'INVALID_PARAMS';
    case 'budget_exceeded':
    case 'plan_error':
      return 'UNSUPPORTED_OPERATION';
    case 'too_large':
      return 'INVALID_REQUEST';
    case 'unavailable':
      return 'UNAVAILABLE';
  }
}

function extensionCode(refusal: Refusal): { readonly code: number; readonly reason: string } {
  switch (refusal.kind) {
    case 'invalid':
      switch (ownReason(refusal)) {
        case 'VERSION_NOT_SUPPORTED':
          return { code: EXTENSION_CODES.versionMismatch, reason: 'VERSION_MISMATCH' };
        case 'PARSE_ERROR':
          return { code: A2A_CODES.PARSE_ERROR, reason: 'PARSE_ERROR' };
        case 'INVALID_REQUEST':
        case 'CONTENT_TYPE_NOT_SUPPORTED':
          return { code: A2A_CODES.INVALID_REQUEST, reason: 'INVALID_REQUEST' };
        default:
          return { code: A2A_CODES.INVALID_PARAMS, reason: 'INVALID_PARAMS' };
      }
    case 'not_found':
      return refusal.entity === 'method'
        ? { code: A2A_CODES.METHOD_NOT_FOUND, reason: 'METHOD_NOT_FOUND' }
        : { code: EXTENSION_CODES.notFound, reason: 'NOT_FOUND' };
    case 'unauthenticated':
      return { code: EXTENSION_CODES.unauthenticated, reason: 'UNAUTHENTICATED' };
    case 'forbidden':
      return { code: EXTENSION_CODES.forbidden, reason: 'FORBIDDEN' };
    case 'invalid_state':
      return { code: EXTENSION_CODES.invalidState, reason: 'INVALID_STATE' };
    case 'already_exists':
      return { code: EXTENSION_CODES.alreadyExists, reason: 'ALREADY_EXISTS' };
    case 'budget_exceeded':
      return { code: EXTENSION_CODES.budgetExceeded, reason: 'BUDGET_EXCEEDED' };
    case 'plan_error':
      return { code: EXTENSION_CODES.planError, reason: 'PLAN_ERROR' };
    case 'too_large':
      return { code: A2A_CODES.INVALID_REQUEST, reason: 'TOO_LARGE' };
    case 'unavailable':
      return { code: A2A_CODES.UNAVAILABLE, reason: 'UNAVAILABLE' };
  }
}

function httpStatusOf(refusal: Refusal): ProtocolError['httpStatus'] {
  switch (refusal.kind) {
    case 'unauthenticated':
      return 401;
    case 'forbidden':
      return 403;
    case 'too_large':
      return 413;
    case 'unavailable':
      return 503;
    case 'invalid':
    case 'not_found':
    case 'invalid_state':
    case 'already_exists':
    case 'budget_exceeded':
    case 'plan_error':
      return 200;
  }
}

const isA2aReason = (reason: string | undefined): reason is A2aReason => reason !== undefined && Object.hasOwn(A2A_CODES, reason);

function ownReason(refusal: Refusal): string | undefined {
  const reason = refusal.details?.['reason'];
  return typeof reason === 'string' ? reason : undefined;
}

const issuesIn = (refusal: Refusal): readonly FieldIssue[] => (refusal.kind === 'invalid' ? refusal.issues : []);

const identity = (name: string): string => name;

const camelCase = (name: string): string => name.replace(/_([a-z0-9])/g, (_match, letter: string) => letter.toUpperCase());

/** The domain fields of a refusal that a client may see. */
function visibleMembers(refusal: Refusal, rename: (name: string) => string): JsonObject {
  const members: Record<string, JsonValue> = {};
  for (const [name, value] of Object.entries(refusal.details ?? {})) {
    if (name !== 'reason' && value !== null && value !== undefined) members[rename(name)] = value;
  }
  if (refusal.kind === 'too_large') members[rename('limit_bytes')] = refusal.limitBytes;
  if (refusal.kind === 'unavailable') members[rename('retry_after_seconds')] = refusal.retryAfterSeconds;
  return members;
}

/** 1.0: a list of google.rpc objects; metadata values are texts. */
function errorInfo(reason: A2aReason, members: JsonObject, issues: readonly FieldIssue[]): JsonValue {
  const metadata = Object.entries(members).map(
    ([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)] as const,
  );
  const info: JsonObject = {
    '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
    reason,
    domain: A2A_DOMAIN,
    ...(metadata.length === 0 ? {} : { metadata: Object.fromEntries(metadata) }),
  };
  if (issues.length === 0) return [info];
  const fieldViolations = issues.map(({ field, message }): JsonObject => ({ field, description: message }));
  return [info, { '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations }];
}

/** 0.3 and our own methods: one object with the domain fields beside `reason` and `domain`. */
function errorObject(reason: string, members: JsonObject, issues: readonly FieldIssue[], domain: string): JsonObject {
  const list = issues.map(({ field, message }): JsonObject => ({ field, message }));
  return { ...members, ...(list.length === 0 ? {} : { issues: list }), reason, domain };
}
