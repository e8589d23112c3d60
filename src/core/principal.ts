/** Roles of a key, weakest first. Each includes what is said of it only, not the ones before it (design section 12). */
export const ROLES = ['viewer', 'operator', 'approver', 'admin'] as const;
export type Role = (typeof ROLES)[number];

/** Keys of kind `agent` never approve anything, whatever their roles: most A2A callers are agents. */
export type KeyKind = 'human' | 'agent';

/** A verified caller. `keyId` is the identity that is written into logs; names are for people only. */
export interface Principal {
  readonly org: string;
  readonly keyId: string;
  readonly name: string;
  readonly kind: KeyKind;
  readonly roles: readonly Role[];
  /** Of a caller with a token of the identity provider: until when it holds. Absent: a key of ours. */
  readonly tokenExpiresAtMs?: number | undefined;
}

const INCLUDED: Record<Role, readonly Role[]> = {
  viewer: ['viewer'],
  operator: ['viewer', 'operator'],
  approver: ['viewer', 'approver'],
  admin: ['viewer', 'operator', 'approver', 'admin'],
};

/** Whether any of the roles grants what `needed` stands for. */
export function hasRole(roles: readonly Role[], needed: Role): boolean {
  return roles.some((role) => INCLUDED[role].includes(needed));
}

/** Whether this caller may answer an approval at all; separation from the requester is checked with the plan's state. */
export function mayApprove(principal: Principal): boolean {
  return principal.kind === 'human' && hasRole(principal.roles, 'approver');
}
