import type { Operation } from '../a2a/operations.ts';
import { hasRole, type Principal, type Role } from '../core/principal.ts';
import { notFound, type Refusal } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';

/** The caller of a public operation: nobody. It belongs to no org and has no role, so nothing that looks at either lets it through. */
export const NOBODY: Principal = { org: '', keyId: 'nobody', name: 'nobody', kind: 'agent', roles: [] };

/**
 * The roles of which one is needed for a standard A2A method; our own operations say theirs in their rows. A message may start work
 * (operator) or answer an approval (approver): which of the two it does is found out with the state.
 */
const NEEDED_ROLES: { readonly [O in Operation]: readonly Role[] } = {
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

/** Whether the caller may use a standard method at all; `method` is its name in the caller's version. */
export function authorizeStandard(operation: Operation, method: string, principal: Principal): Result<null, Refusal> {
  const needed = NEEDED_ROLES[operation];
  if (needed.some((role) => hasRole(principal.roles, role))) return ok(null);
  return err({
    kind: 'forbidden',
    message: `${method} needs the role ${needed.join(' or ')}`,
    details: { needed_role: needed.join(' or '), operation: method },
  });
}

/** The tenants of A2A are the orgs: a caller has his own, and every other name, of an org or of none, is unknown to him. */
export function authorizeTenant(tenant: string | undefined, principal: Principal): Result<null, Refusal> {
  return tenant === undefined || tenant === principal.org ? ok(null) : err(notFound('tenant', tenant));
}
