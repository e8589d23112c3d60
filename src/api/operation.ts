import type * as z from 'zod';
import type { ChangeType } from '../core/org-log/org-event.ts';
import { hasRole, type Role } from '../core/principal.ts';
import type { Refusal } from '../core/refusal.ts';

/**
 * One operation of the service as data. Dispatch, OpenRPC, the reference, the typed client and the command line are made from
 * these rows; a method without a row does not exist, and a row without a handler does not compile (design section 5).
 */
export interface Operation {
  /** Method name on the wire, for example `_cleveragents/plan/use`. */
  readonly name: string;
  /** One line for people: reference, OpenRPC and `--help`. */
  readonly summary: string;
  /** The minimum role; `public` answers without a key. Whether a caller may approve what is pending is decided with the state. */
  readonly role: Role | 'public';
  /** Roles that suffice as well, for operations that two kinds of people need for different reasons. */
  readonly alternativeRoles?: readonly Role[];
  /** A strict object: unknown members are refused by name. */
  readonly params: z.ZodObject;
  /** An object that may grow: clients ignore members they do not know. */
  readonly result: z.ZodObject;
  /** The refusals that this operation can answer with. */
  readonly errors: readonly Refusal['kind'][];
  /** Approvals and administration read the caller's key fresh; everything else may use the cache of 30 seconds. */
  readonly freshKey?: true;
  /** Only keys of kind human, whatever their roles: these decide what agents may do, or go around what a human has to accept. */
  readonly humanOnly?: true;
  /** Repeating the call changes nothing more; a client may retry it by itself. */
  readonly idempotent?: true;
  /** A change to the org's configuration: a row of the org's log says that it was asked for, before it is made, and another how it ended. */
  readonly change?: RecordedChange;
  readonly deprecated?: { readonly since: string; readonly use: string };
  /** Legacy names of the source (a2a-protocol.md "Legacy Operations"); their answers carry `_meta.deprecated`. */
  readonly aliases?: readonly string[];
  /** Answers with a stream of events instead of one result. */
  readonly stream?: true;
  /** Where the command line offers it; absent = not offered as a command of its own. */
  readonly cli?: OperationCommand;
}

/** What the org's log records of a change (core/org-log); secrets in it are masked. */
export interface RecordedChange {
  readonly type: ChangeType;
  /** Members of the parameters that name what is changed. */
  readonly subject: readonly string[];
  /** Members of the answer that name it as well, where the parameters do not. */
  readonly named?: readonly string[];
  /** The operation that shows it as it is, called with those of the subject that it takes; what it refuses is recorded as nothing. */
  readonly shownBy?: string;
  /** The member of the answer that has the form of what `shownBy` answers; default: the answer itself. */
  readonly within?: string;
  /** Members of the answer, and of what `shownBy` answers, that are recorded. */
  readonly recorded: readonly string[];
  /** The parameter without which nothing of the configuration is changed. */
  readonly onlyWith?: string;
  /** `goes_ahead`: made even where the log cannot be written. Default: refused as unavailable. */
  readonly unrecorded?: 'goes_ahead';
}

export interface OperationCommand {
  /** Words after `agents`, for example `['plan', 'use']`. */
  readonly command: readonly string[];
  /** Parameters given by position, in order; all others are flags. */
  readonly positional?: readonly string[];
  /** Shorter flags for members: flag → dotted path (`max-cost` → `guardrails.tool_budget`). */
  readonly flagAliases?: Readonly<Record<string, string>>;
  /** Members that are given as repeated `--<flag> name=value`: flag → member. */
  readonly pairFlags?: Readonly<Record<string, string>>;
  /** Example argument lists for `--help`, without the command words. */
  readonly examples?: readonly string[];
}

/** Identity; keeps the literal types of a row, so that parameters and results are inferred from it. */
export const defineOperation = <const O extends Operation>(operation: O): O => operation;

/** Whether a caller with these roles may call the operation at all. */
export function mayCall(operation: Operation, roles: readonly Role[]): boolean {
  if (operation.role === 'public' || hasRole(roles, operation.role)) return true;
  return (operation.alternativeRoles ?? []).some((role) => hasRole(roles, role));
}

/** What every call without a key in public operations can answer. */
export const PUBLIC_ERRORS = ['invalid', 'too_large', 'unavailable'] as const;

/** What every call with a key can answer. */
export const COMMON_ERRORS = [...PUBLIC_ERRORS, 'unauthenticated', 'forbidden'] as const;
