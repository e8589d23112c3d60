/** Webhooks of a task, as the standard operations have them: neutral in, neutral out. What is secret in one is never in an answer. */
import type { PushConfig, PushConfigInput, PushListPage, SendRequest } from '../a2a/model.ts';
import type { OperationParams } from '../a2a/operations.ts';
import { isPlanId } from '../core/plan/plan-id.ts';
import { hasRole } from '../core/principal.ts';
import { MAX_PUSH_CONFIGS, type PushOrder, type PushStatus, type PushTarget, type PushWire } from '../core/push/push-config.ts';
import { checkPushUrl } from '../core/push/push-url.ts';
import { invalidField, invalidState, notFound, type Refusal, withFieldPrefix } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';
import { actorOf } from './caller.ts';
import type { CallContext } from './handler.ts';
import type { Services, Settings } from './services.ts';

/** Who asks, in which version: a webhook reads the wire of the request that registered it. */
export interface PushContext extends CallContext {
  readonly version: PushWire;
}

type PushOperation = 'pushCreate' | 'pushGet' | 'pushList' | 'pushDelete';

export type PushRequest = { [O in PushOperation]: { readonly op: O; readonly params: OperationParams[O] } }[PushOperation];

/** Asked before anything else of a request: where the card declares no notifications, nothing about them is looked at. */
export function requirePush({ pushNotifications }: Pick<Settings, 'pushNotifications'>): Result<null, Refusal> {
  return pushNotifications
    ? ok(null)
    : err(invalidState('Push notifications are not supported', { reason: 'PUSH_NOTIFICATION_NOT_SUPPORTED' }));
}

export async function runPush(
  request: PushRequest,
  call: PushContext,
  services: Services,
): Promise<Result<PushConfig | PushListPage | undefined, Refusal>> {
  const supported = requirePush(services.settings);
  if (!supported.ok) return supported;
  switch (request.op) {
    case 'pushCreate': {
      const { taskId, config, tenant } = request.params;
      const prefix = call.version === '1.0' ? '' : 'pushNotificationConfig.';
      const created = await register({ taskId, config, prefix }, call, services);
      return created.ok ? ok(shown(taskId, created.value, tenant)) : created;
    }
    case 'pushGet': {
      const { taskId, configId, tenant } = request.params;
      const configs = await configsOf(taskId, call, services);
      if (!configs.ok) return configs;
      const found = find(configs.value, taskId, configId, call);
      return found === null ? err(unknownConfig(configId ?? taskId, taskId)) : ok(shown(taskId, found, tenant));
    }
    case 'pushList': {
      const configs = await configsOf(request.params.taskId, call, services);
      return configs.ok ? page(configs.value, request.params) : configs;
    }
    case 'pushDelete': {
      const { taskId, configId } = request.params;
      const configs = await configsOf(taskId, call, services);
      if (!configs.ok) return configs;
      const found = find(configs.value, taskId, configId, call);
      // Deleting what is not there is done already (specification section 3.1.10).
      if (found === null) return ok(undefined);
      const deleted = await services.plans.plan(call.principal.org, taskId).deletePush(found.id, actorOf(call.principal));
      if (deleted === null) return err(notFound('task', taskId));
      return deleted.ok ? ok(undefined) : deleted;
    }
  }
}

/** The webhook that comes with a message, judged before the message does anything. Nothing: none came. */
export async function checkInlinePush(request: SendRequest, call: PushContext, services: Services): Promise<Result<null, Refusal>> {
  const { pushConfig } = request.configuration;
  if (pushConfig === undefined) return ok(null);
  const supported = requirePush(services.settings);
  if (!supported.ok) return supported;
  if (!hasRole(call.principal.roles, 'operator')) {
    const message = 'registering a webhook needs the role operator';
    return err({ kind: 'forbidden', message, details: { needed_role: 'operator' } });
  }
  const prefix = inlinePrefix(call);
  const target = targetOf(pushConfig, prefix, call, services);
  if (!target.ok) return target;
  const { taskId } = request.message;
  if (taskId === undefined || !isPlanId(taskId)) return ok(null);
  const known = await services.plans.plan(call.principal.org, taskId).pushes();
  const isFull = known !== null && known.length >= MAX_PUSH_CONFIGS && known.every(({ id }) => id !== (pushConfig.id ?? taskId));
  return isFull ? err(withFieldPrefix(tooMany(taskId), prefix)) : ok(null);
}

/** Registers what came with a message, once its task is there. Told is all that happened to the task since `afterSeq`. */
export async function registerInlinePush(
  request: SendRequest,
  task: { readonly id: string; readonly afterSeq: number },
  call: PushContext,
  services: Services,
): Promise<Result<null, Refusal>> {
  const { pushConfig: config } = request.configuration;
  if (config === undefined) return ok(null);
  const made = await register({ taskId: task.id, config, prefix: inlinePrefix(call), afterSeq: task.afterSeq }, call, services);
  return made.ok ? ok(null) : made;
}

const inlinePrefix = ({ version }: PushContext): string =>
  `configuration.${version === '1.0' ? 'taskPushNotificationConfig' : 'pushNotificationConfig'}.`;

interface Registration {
  readonly taskId: string;
  readonly config: PushConfigInput;
  /** Where its fields stand in the parameters. */
  readonly prefix: string;
  readonly afterSeq?: number;
}

async function register(
  { taskId, config, prefix, afterSeq }: Registration,
  call: PushContext,
  services: Services,
): Promise<Result<PushStatus, Refusal>> {
  const target = targetOf(config, prefix, call, services);
  // A task that is not the caller's is unknown, whatever else is wrong.
  if (!isPlanId(taskId)) return err(notFound('task', taskId));
  const port = services.plans.plan(call.principal.org, taskId);
  if (!target.ok) return (await port.pushes()) === null ? err(notFound('task', taskId)) : target;
  const order: PushOrder = {
    ...(config.id === undefined ? {} : { id: config.id }),
    wire: call.version,
    target: target.value,
    by: actorOf(call.principal),
    ...(afterSeq === undefined ? {} : { afterSeq }),
  };
  const made = await port.setPush(order);
  if (made === null) return err(notFound('task', taskId));
  return made.ok ? made : err(withFieldPrefix(made.error, prefix));
}

const CONFIG_ID = /^[\x21-\x7e]{1,128}$/;
const MAX_SECRET_LENGTH = 8192;

/** What is sent to, as it may be kept. Called with the deployment's rules; they are asked again before each delivery. */
function targetOf({ id, url, token, authentication }: PushConfigInput, prefix: string, call: PushContext, { settings }: Services) {
  const refuse = (field: string, message: string): Result<PushTarget, Refusal> => err(invalidField(`${prefix}${field}`, message));
  if (id !== undefined && !CONFIG_ID.test(id)) return refuse('id', 'must be 1 to 128 visible ASCII characters');
  const checked = checkPushUrl(url, settings.pushRules);
  if (!checked.ok) return refuse('url', checked.error);
  if ((token?.length ?? 0) > MAX_SECRET_LENGTH) return refuse('token', `must have at most ${MAX_SECRET_LENGTH} characters`);
  if ((authentication?.credentials?.length ?? 0) > MAX_SECRET_LENGTH)
    return refuse('authentication.credentials', `must have at most ${MAX_SECRET_LENGTH} characters`);
  // In 0.3 the schemes alone say what the receiver understands; in 1.0 they say what is to be sent.
  if (call.version === '1.0' && authentication !== undefined && authentication.credentials === undefined)
    return refuse('authentication.credentials', 'must not be blank where a scheme is named');
  const target: PushTarget = {
    url,
    ...(token === undefined ? {} : { token }),
    ...(authentication === undefined
      ? {}
      : {
          authentication: {
            schemes: authentication.schemes,
            ...(authentication.credentials === undefined ? {} : { credentials: authentication.credentials }),
          },
        }),
  };
  return ok(target);
}

async function configsOf(taskId: string, call: PushContext, services: Services): Promise<Result<readonly PushStatus[], Refusal>> {
  const configs = isPlanId(taskId) ? await services.plans.plan(call.principal.org, taskId).pushes() : null;
  return configs === null ? err(notFound('task', taskId)) : ok(configs);
}

/**
 * 0.3 clients may leave the id out, or say `default`: then it is the one that was registered without an id, else the first. In 1.0 an id
 * is an id.
 */
function find(configs: readonly PushStatus[], taskId: string, configId: string | undefined, { version }: PushContext): PushStatus | null {
  const byId = (id: string) => configs.find((config) => config.id === id);
  const named = configId === undefined ? undefined : byId(configId);
  if (named !== undefined) return named;
  const isDefault = configId === undefined || (version === '0.3' && configId === 'default');
  return isDefault ? (byId(taskId) ?? configs[0] ?? null) : null;
}

const MAX_PAGE_SIZE = 100;

function page(configs: readonly PushStatus[], query: OperationParams['pushList']): Result<PushListPage, Refusal> {
  const { taskId, pageSize = MAX_PAGE_SIZE, pageToken, tenant } = query;
  const after = pageToken === undefined ? '' : idIn(pageToken);
  if (after === null) return err(invalidField('pageToken', 'is not one that this server gave'));
  const left = configs.filter(({ id }) => id > after);
  const shownNow = left.slice(0, Math.min(pageSize, MAX_PAGE_SIZE));
  const last = shownNow.at(-1);
  const nextPageToken = last === undefined || shownNow.length === left.length ? '' : btoa(last.id).replaceAll('=', '');
  return ok({ configs: shownNow.map((config) => shown(taskId, config, tenant)), nextPageToken });
}

function idIn(token: string): string | null {
  try {
    const id = atob(token);
    return CONFIG_ID.test(id) ? id : null;
  } catch {
    return null;
  }
}

function shown(taskId: string, { id, url, schemes }: PushStatus, tenant: string | undefined): PushConfig {
  return {
    id,
    taskId,
    url,
    ...(schemes.length === 0 ? {} : { authentication: { schemes } }),
    ...(tenant === undefined ? {} : { tenant }),
  };
}

function unknownConfig(configId: string, taskId: string): Refusal {
  const message = `Task ${taskId} has no push notification configuration with the id '${configId}'`;
  return { kind: 'not_found', message, entity: 'push_config', id: configId, details: { task_id: taskId } };
}

function tooMany(taskId: string): Refusal {
  return invalidField('id', `the task has ${MAX_PUSH_CONFIGS} configurations already, and may not have more`, {
    limit: MAX_PUSH_CONFIGS,
    task_id: taskId,
  });
}
