import { mayCall } from '../api/operation.ts';
import type { FoundOperation, OperationName } from '../api/operations.ts';
import { parseParams } from '../api/parse-params.ts';
import type { JsonObject } from '../core/json.ts';
import type { Refusal } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';
import type { CallContext, Handler, Handlers } from './handler.ts';
import { actionHandlers } from './handlers/action-handlers.ts';
import { approvalHandlers } from './handlers/approval-handlers.ts';
import { auditHandlers } from './handlers/audit-handlers.ts';
import { calibrationHandlers } from './handlers/calibration-handlers.ts';
import { configHandlers } from './handlers/config-handlers.ts';
import { guardHandlers } from './handlers/guard-handlers.ts';
import { guardRevisionHandlers } from './handlers/guard-revision-handlers.ts';
import { guardServiceHandlers } from './handlers/guard-service-handlers.ts';
import { haltHandlers } from './handlers/halt-handlers.ts';
import { healthHandlers } from './handlers/health-handlers.ts';
import { keyHandlers } from './handlers/key-handlers.ts';
import { orgHandlers } from './handlers/org-handlers.ts';
import { planHandlers } from './handlers/plan-handlers.ts';
import { profileHandlers } from './handlers/profile-handlers.ts';
import { projectHandlers } from './handlers/project-handlers.ts';
import { registryHandlers } from './handlers/registry-handlers.ts';
import { sessionHandlers } from './handlers/session-handlers.ts';
import type { Services } from './services.ts';

/** One handler per row of the one list of operations. */
export const HANDLERS: Handlers = {
  ...planHandlers,
  ...approvalHandlers,
  ...guardHandlers,
  ...guardServiceHandlers,
  ...guardRevisionHandlers,
  ...haltHandlers,
  ...auditHandlers,
  ...actionHandlers,
  ...projectHandlers,
  ...sessionHandlers,
  ...keyHandlers,
  ...configHandlers,
  ...profileHandlers,
  ...calibrationHandlers,
  ...orgHandlers,
  ...registryHandlers,
  ...healthHandlers,
};

/** Checks role and parameters by the row and runs its handler. Legacy names answer with `_meta.deprecated`. */
export async function dispatchOperation(
  found: FoundOperation,
  params: unknown,
  call: CallContext,
  services: Services,
): Promise<Result<JsonObject, Refusal>> {
  const { operation, name, alias } = found;
  if (operation.role !== 'public' && !mayCall(operation, call.principal.roles)) {
    const roles = [operation.role, ...(operation.alternativeRoles ?? [])].join(' or ');
    return err({
      kind: 'forbidden',
      message: `${name} needs the role ${roles}`,
      details: { needed_role: operation.role, operation: name },
    });
  }
  if (operation.humanOnly === true && call.principal.kind !== 'human') {
    return err({ kind: 'forbidden', message: `${name} is for keys of kind human`, details: { needed_kind: 'human', operation: name } });
  }
  const parsed = parseParams(operation, params);
  if (!parsed.ok) return parsed;
  const handler = HANDLERS[name] as Handler<OperationName>;
  const result = await handler(parsed.value as never, call, services);
  if (!result.ok) return result;
  const value = result.value as unknown as JsonObject;
  return ok(alias === undefined ? value : { ...value, _meta: { deprecated: { name: alias, use: name } } });
}
