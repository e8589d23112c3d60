import { mayCall } from '../api/operation.ts';
import { type FoundOperation, findOperation, type OperationName } from '../api/operations.ts';
import { parseParams } from '../api/parse-params.ts';
import type { JsonObject } from '../core/json.ts';
import type { Refusal } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';
import type { CallContext, Handler, HandlerCall, Handlers } from './handler.ts';
import { actionHandlers } from './handlers/action-handlers.ts';
import { approvalHandlers } from './handlers/approval-handlers.ts';
import { auditHandlers } from './handlers/audit-handlers.ts';
import { budgetHandlers } from './handlers/budget-handlers.ts';
import { calibrationHandlers } from './handlers/calibration-handlers.ts';
import { checkpointHandlers } from './handlers/checkpoint-handlers.ts';
import { configHandlers } from './handlers/config-handlers.ts';
import { guardHandlers } from './handlers/guard-handlers.ts';
import { guardRevisionHandlers } from './handlers/guard-revision-handlers.ts';
import { guardServiceHandlers } from './handlers/guard-service-handlers.ts';
import { haltHandlers } from './handlers/halt-handlers.ts';
import { healthHandlers } from './handlers/health-handlers.ts';
import { keyHandlers } from './handlers/key-handlers.ts';
import { orgHandlers } from './handlers/org-handlers.ts';
import { orgLogHandlers } from './handlers/org-log-handlers.ts';
import { planHandlers } from './handlers/plan-handlers.ts';
import { preflightHandlers } from './handlers/preflight-handlers.ts';
import { profileHandlers } from './handlers/profile-handlers.ts';
import { projectHandlers } from './handlers/project-handlers.ts';
import { pushHandlers } from './handlers/push-handlers.ts';
import { registryHandlers } from './handlers/registry-handlers.ts';
import { retireHandlers } from './handlers/retire-handlers.ts';
import { sessionHandlers } from './handlers/session-handlers.ts';
import { noteRefusal } from './note-refusal.ts';
import { isChange, recordChange } from './record-change.ts';
import type { Services } from './services.ts';

/** One handler per row of the one list of operations. */
export const HANDLERS: Handlers = {
  ...planHandlers,
  ...approvalHandlers,
  ...guardHandlers,
  ...guardServiceHandlers,
  ...guardRevisionHandlers,
  ...haltHandlers,
  ...checkpointHandlers,
  ...pushHandlers,
  ...preflightHandlers,
  ...retireHandlers,
  ...budgetHandlers,
  ...auditHandlers,
  ...actionHandlers,
  ...projectHandlers,
  ...sessionHandlers,
  ...keyHandlers,
  ...configHandlers,
  ...profileHandlers,
  ...calibrationHandlers,
  ...orgHandlers,
  ...orgLogHandlers,
  ...registryHandlers,
  ...healthHandlers,
};

/**
 * Checks role and parameters by the row and runs its handler. Legacy names answer with `_meta.deprecated`. Refused access and, by the row,
 * changes to the configuration and the refusals of such are written to the org's log here, for every operation alike.
 */
export async function dispatchOperation(
  found: FoundOperation,
  params: unknown,
  call: CallContext,
  services: Services,
): Promise<Result<JsonObject, Refusal>> {
  // A change that was refused on the way has its own row; one that was refused before is counted.
  let isRecorded = false;
  const result = await answer(found, params, call, services, () => {
    isRecorded = true;
  });
  if (!result.ok) {
    const ofChange = !isRecorded && isChange(found.operation, params);
    noteRefusal(result.error, found.name, call.principal, services, { ofChange });
  }
  return result;
}

async function answer(
  { operation, name, alias }: FoundOperation,
  params: unknown,
  call: CallContext,
  services: Services,
  recorded: () => void,
): Promise<Result<JsonObject, Refusal>> {
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
  const result = await recordChange({
    operation,
    params: parsed.value as JsonObject,
    call,
    services,
    show: (shownBy, subject) => show(shownBy, subject, call, services),
    recorded,
    run: (changing) => run(name, parsed.value, { ...call, changing }, services),
  });
  if (!result.ok) return result;
  return ok(alias === undefined ? result.value : { ...result.value, _meta: { deprecated: { name: alias, use: name } } });
}

async function run(name: OperationName, params: unknown, call: HandlerCall, services: Services): Promise<Result<JsonObject, Refusal>> {
  const handler = HANDLERS[name] as Handler<OperationName>;
  return (await handler(params as never, call, services)) as Result<JsonObject, Refusal>;
}

/** What an operation shows before something is changed; null: it refuses, which is not the refusal of what was asked for. */
async function show(name: string, params: JsonObject, call: CallContext, services: Services): Promise<JsonObject | null> {
  const found = findOperation(name);
  if (found === null) return null;
  const taken = Object.keys(found.operation.params.shape).flatMap((member) => (member in params ? [[member, params[member]]] : []));
  const parsed = parseParams(found.operation, Object.fromEntries(taken));
  const shown = parsed.ok ? await run(found.name, parsed.value, { ...call, changing: nothing }, services) : parsed;
  return shown.ok ? shown.value : null;
}

/** What only shows, changes nothing. */
const nothing = async (): Promise<void> => {};
