import type { Operation as StandardOperation } from '../a2a/operations.ts';
import { mayCall, type Operation } from '../api/operation.ts';
import { hasRole, type Principal, type Role } from '../core/principal.ts';
import type { Refusal } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';

/**
 * Whether a caller may call something at all. What a role may do with the plan as it is now is decided with its state.
 */

/** The caller of a public operation: nobody. It belongs to no org and has no role, so nothing that looks at either lets it through. */
export const NOBODY: Principal = { org: '', keyId: 'nobody', name: 'nobody', kind: 'agent', roles: [] };

/** A message may start work (operator) or answer an approval (approver). */
const STANDARD_ROLES: { readonly [O in StandardOperation]: readonly Role[] } = {
  send: ['operator', 'approver'],
  stream: ['operator', 'approver'],
  get: ['viewer'],
  list: ['viewer'],
  cancel: ['operator'],
  subscribe: ['viewer'],
  pushCreate: ['operator'],
  pushGet: ['viewer'],
  pushList: ['viewer'],
  pushDelete: ['operator'],
  extendedCard: ['viewer'],
};

/** The role check of one of our own operations, by its row. */
export function authorizeOperation(operation: Operation, principal: Principal): Result<null, Refusal> {
  if (operation.role === 'public' || mayCall(operation, principal.roles)) return ok(null);
  return err(forbidden(operation.name, [operation.role, ...(operation.alternativeRoles ?? [])], principal));
}

/** The role check of a standard operation; `method` is its name in the caller's version. */
export function authorizeStandard(operation: StandardOperation, method: string, principal: Principal): Result<null, Refusal> {
  const needed = STANDARD_ROLES[operation];
  return needed.some((role) => hasRole(principal.roles, role)) ? ok(null) : err(forbidden(method, needed, principal));
}

function forbidden(method: string, needed: readonly Role[], principal: Principal): Refusal {
  return {
    kind: 'forbidden',
    message: `${method} needs the role ${needed.join(' or ')}; this key has: ${principal.roles.join(', ') || 'none'}`,
    details: { required_roles: [...needed], roles: [...principal.roles] },
  };
}
