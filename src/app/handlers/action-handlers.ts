import type { ActionSummary } from '../../api/action.ts';
import type { ResultOf } from '../../api/operations.ts';
import { type ActionDocument, parseAction } from '../../core/action.ts';
import type { JsonObject, JsonValue } from '../../core/json.ts';
import type { FieldIssue, Refusal } from '../../core/refusal.ts';
import { notFound } from '../../core/refusal.ts';
import { err, ok } from '../../core/result.ts';
import { invalidWith } from '../../core/schema-issues.ts';
import type { Handlers } from '../handler.ts';
import type { NamedDocument } from '../ports.ts';
import { neededProfile, unknownProfile } from '../profiles.ts';
import type { Services } from '../services.ts';

/** Actions of the org. What is added can be used: actor, profile and tools exist, here and now. */
export const actionHandlers = {
  '_cleveragents/action/add': async (params, call, services) => {
    const parsed = parseAction(params.action);
    if (!parsed.ok) return err(belowAction(parsed.error));
    const action = parsed.value;
    const issues = [...(await unknownProfileOf(action, call.principal.org, services)), ...unknownNames(action, services)];
    if (issues.length > 0) return err(invalidWith('action', issues));

    const taken: Refusal = {
      kind: 'already_exists',
      message: `An action named '${action.name}' exists; choose another name`,
      entity: 'action',
      id: action.name,
      details: { action_name: action.name },
    };
    if ((await services.actions.get(call.principal.org, action.name)) !== null) return err(taken);
    await call.changing();
    const now = new Date(services.clock.nowMs()).toISOString();
    const document: NamedDocument = {
      org: call.principal.org,
      name: action.name,
      version: 1,
      body: JSON.parse(JSON.stringify(action)) as JsonObject,
      createdAt: now,
      updatedAt: now,
    };
    if (await services.actions.add(document, neededProfile(action.automation_profile))) return ok(actionViewOf(document));
    const gone = await unknownProfileOf(action, call.principal.org, services);
    return err(gone.length > 0 ? invalidWith('action', gone) : taken);
  },

  '_cleveragents/action/show': async (params, call, services) => {
    const document = await services.actions.get(call.principal.org, params.name);
    return document === null ? err(notFound('action', params.name, { action_name: params.name })) : ok(actionViewOf(document));
  },

  '_cleveragents/action/list': async (_params, call, services) => ok(await listActions(call.principal.org, services)),
} satisfies Pick<Handlers, '_cleveragents/action/add' | '_cleveragents/action/show' | '_cleveragents/action/list'>;

/** All actions of the org by name; also the answer of `registry/action/list`. */
export async function listActions(org: string, services: Services): Promise<ResultOf<'_cleveragents/action/list'>> {
  return { actions: (await services.actions.list(org)).map(actionSummaryOf), next_page_token: '' };
}

/** The profile that the action names, if nothing has that name in the org. */
async function unknownProfileOf(action: ActionDocument, org: string, services: Services): Promise<readonly FieldIssue[]> {
  if (action.automation_profile === undefined) return [];
  const message = await unknownProfile(action.automation_profile, org, services);
  return message === null ? [] : [{ field: 'action.automation_profile', message }];
}

/** Names that nothing answers to. Guard lists are left alone: denying what does not exist yet is a sensible thing to do. */
function* unknownNames(action: ActionDocument, services: Services): Generator<FieldIssue> {
  const actors = services.actors.names();
  if (!actors.includes(action.actor)) {
    yield { field: 'action.actor', message: `no actor is named '${action.actor}'; valid names: ${actors.join(', ')}` };
  }
  for (const [index, step] of (action.execute ?? []).entries()) {
    const calls = step.call === undefined ? [] : [{ field: `action.execute[${index}].call.tool`, tool: step.call.tool }];
    const batch = (step.calls ?? []).map(({ tool }, at) => ({ field: `action.execute[${index}].calls[${at}].tool`, tool }));
    for (const { field, tool } of [...calls, ...batch]) {
      if (services.catalogue.find(tool) !== null) continue;
      const names = services.catalogue.specs().map((spec) => spec.name);
      yield { field, message: `no tool is named '${tool}'; valid names: ${names.join(', ')}` };
    }
  }
}

/** The document stands in the parameter `action`, and a caller is told where in the parameters something is wrong. */
function belowAction(refusal: Refusal): Refusal {
  if (refusal.kind !== 'invalid') return refusal;
  const issues = refusal.issues.map(({ field, message }) => ({ field: field === 'action' ? field : `action.${field}`, message }));
  return { ...invalidWith('action', issues), ...(refusal.details === undefined ? {} : { details: refusal.details }) };
}

function actionViewOf({ name, version, body, createdAt, updatedAt }: NamedDocument): ResultOf<'_cleveragents/action/show'> {
  return { name, description: textIn(body['description']) ?? '', version, document: body, created_at: createdAt, updated_at: updatedAt };
}

/** Reads leniently: one row that an older version wrote must not hide the others. Using an action checks its document again. */
function actionSummaryOf({ name, version, body, createdAt }: NamedDocument): ActionSummary {
  const args = body['arguments'];
  return {
    name,
    description: textIn(body['description']) ?? '',
    actor: textIn(body['actor']) ?? '',
    arguments: isObject(args) ? args : null,
    project: textIn(body['project']),
    automation_profile: textIn(body['automation_profile']),
    public: body['public'] === true,
    version,
    created_at: createdAt,
  };
}

const textIn = (value: JsonValue | undefined): string | null => (typeof value === 'string' ? value : null);

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
