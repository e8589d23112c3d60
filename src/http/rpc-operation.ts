import type { FoundOperation } from '../api/operations.ts';
import { authenticate } from '../app/authenticate.ts';
import { NOBODY } from '../app/authorize.ts';
import { dispatchOperation } from '../app/dispatch.ts';
import type { JsonObject } from '../core/json.ts';
import type { Principal } from '../core/principal.ts';
import type { Refusal } from '../core/refusal.ts';
import { ok, type Result } from '../core/result.ts';
import type { Answer, Call } from './call.ts';

/** One of our own operations, in any version. The caller is known, and has the role, before a parameter is looked at. */
export async function callOperation(call: Call, found: FoundOperation, params: JsonObject): Promise<Result<Answer, Refusal>> {
  const principal = await callerOf(call, found);
  if (!principal.ok) return principal;
  const context = { principal: principal.value, idempotencyKey: call.idempotencyKey };
  const result = await dispatchOperation(found, params, context, call.edge.services);
  return result.ok ? ok({ kind: 'result', result: result.value }) : result;
}

async function callerOf({ headers, edge }: Call, { operation, name }: FoundOperation): Promise<Result<Principal, Refusal>> {
  if (operation.role === 'public') return ok(NOBODY);
  return authenticate(headers.presented, edge.services, { cache: edge.principals, fresh: operation.freshKey === true, called: name });
}
