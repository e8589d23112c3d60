import * as z from 'zod';
import type { JsonObject } from '../../core/json.ts';
import type { DecoderTable } from '../decoder.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, type Message, type Part, type PushConfigInput } from '../model.ts';
import { ROLE_SPELLINGS } from '../proto-names.ts';
import {
  authScheme,
  base64Text,
  compact,
  countSchema,
  decodeWith,
  headerSecret,
  isRecord,
  MAX_INT32,
  namedValue,
  optionalObject,
  optionalText,
  optionalTexts,
  ownMember,
  requiredText,
  timestampText,
  wireObject,
} from '../wire-schema.ts';
import { STATE_SPELLINGS } from './rest-names.ts';

/**
 * Parameters of A2A 0.3 over HTTP+JSON: ProtoJSON of its proto, which is not the shape of 0.3 over JSON-RPC (contract section 12.2).
 * A member that is absent and one that has its proto's default are the same: peers do not write defaults.
 */

const fileMembers = wireObject('proto', {
  fileWithBytes: base64Text.optional(),
  fileWithUri: requiredText.optional(),
  mimeType: optionalText,
});

const partMembers = wireObject('proto', {
  text: z.string().optional(),
  file: fileMembers.optional(),
  data: wireObject('proto', { data: z.custom<JsonObject>(isRecord, 'must be an object') }).optional(),
});

const part = partMembers.transform(({ text, file, data }, context): Part => {
  const given = [text, file, data].filter((content) => content !== undefined);
  if (given.length !== 1) {
    context.addIssue({ code: 'custom', message: 'must hold exactly one of text, file, data' });
    return z.NEVER;
  }
  if (text !== undefined) return { kind: 'text', text };
  if (data !== undefined) return { kind: 'data', data: data.data };
  const { fileWithBytes: raw, fileWithUri: url, mimeType: mediaType } = file ?? {};
  if (raw !== undefined && url === undefined) return compact({ kind: 'raw', raw, mediaType });
  if (url !== undefined && raw === undefined) return compact({ kind: 'url', url, mediaType });
  context.addIssue({ code: 'custom', path: ['file'], message: 'must hold exactly one of fileWithBytes, fileWithUri' });
  return z.NEVER;
});

const pushConfigMembers = wireObject('proto', {
  id: optionalText,
  url: requiredText,
  token: unset(headerSecret),
  authentication: wireObject('proto', {
    schemes: z.array(authScheme).min(1, 'must hold at least one scheme'),
    credentials: unset(headerSecret),
  }).optional(),
});

function pushConfig({ authentication, ...config }: z.infer<typeof pushConfigMembers>): PushConfigInput {
  return compact({ ...config, authentication: authentication && compact(authentication) });
}

/** A text whose default is written out, as some peers do, is absent. */
function unset(schema: z.ZodType<string>) {
  return z.preprocess((text) => (text === '' ? undefined : text), schema.optional());
}

/** Zero is the proto's default and means all (contract section 14, choice 20). */
const historyLength = countSchema('proto', { min: 0, max: MAX_INT32 })
  .optional()
  .transform((count) => (count === 0 ? undefined : count));

function sendParams(messageId: z.ZodType<string | undefined>) {
  return wireObject('proto', {
    message: wireObject('proto', {
      messageId,
      role: namedValue(ROLE_SPELLINGS, 'must be ROLE_USER or ROLE_AGENT'),
      content: z.array(part).min(1, 'must hold at least one part'),
      contextId: optionalText,
      taskId: optionalText,
      metadata: optionalObject,
      extensions: optionalTexts,
    }),
    configuration: wireObject('proto', {
      acceptedOutputModes: optionalTexts,
      historyLength,
      blocking: z.boolean().optional(),
      pushNotification: pushConfigMembers.optional(),
    }).optional(),
    metadata: optionalObject,
  });
}

const strictSend = sendParams(requiredText);
const lenientSend = sendParams(optionalText);

const decodeSend: DecoderTable['send'] = (params, { lenientMessageId }) => {
  const decoded = decodeWith(lenientMessageId ? lenientSend : strictSend, params);
  if (!decoded.ok) return decoded;
  const { message, configuration, metadata } = decoded.value;
  const { content, messageId, ...members } = message;
  const neutral: Message = { ...members, parts: content, messageId: messageId ?? lenientMessageId?.() ?? '' };
  const push = configuration?.pushNotification;
  return {
    ok: true,
    value: compact({
      message: compact(neutral),
      configuration: compact({
        acceptedOutputModes: configuration?.acceptedOutputModes,
        historyLength: configuration?.historyLength,
        // `blocking: false` is a default that peers leave out: a configuration without it says so. Without any, 0.3 blocks (choice 16).
        returnImmediately: configuration !== undefined && configuration.blocking !== true,
        pushConfig: push && pushConfig(push),
      }),
      metadata,
    }),
  };
};

const taskRef = { id: requiredText };
const getParams = wireObject('proto', { ...taskRef, historyLength }).transform(compact);
const cancelParams = wireObject('proto', { ...taskRef, metadata: optionalObject }).transform(compact);
const subscribeParams = wireObject('proto', taskRef);

/** The version has no parameters here; those of 1.0 are taken, in either version's spelling of the states. */
const listParams = wireObject('proto', {
  contextId: optionalText,
  status: namedValue(STATE_SPELLINGS, 'must be the name of a task state').optional(),
  pageSize: countSchema('proto', { min: 1, max: MAX_PAGE_SIZE }).default(DEFAULT_PAGE_SIZE),
  pageToken: optionalText,
  historyLength,
  statusTimestampAfter: timestampText.optional(),
  includeArtifacts: z.boolean().default(false),
}).transform(({ status, ...query }) => compact({ ...query, state: status === 'any' ? undefined : status }));

const configResource = { name: optionalText, pushNotificationConfig: pushConfigMembers };

/** The resource as the body, or the whole request of the proto with the resource in `config`: peers send either. */
const pushCreateParams = z.preprocess(
  (input) => {
    const config = isRecord(input) ? ownMember(input, 'config') : undefined;
    return isRecord(input) && isRecord(config) ? { ...input, ...config } : input;
  },
  wireObject('proto', { taskId: requiredText, configId: optionalText, ...configResource }).transform((params) => {
    const config = pushConfig(params.pushNotificationConfig);
    const id = config.id ?? params.configId ?? idIn(params.name);
    return { taskId: params.taskId, config: compact({ ...config, id }) };
  }),
);

/** The id of a config in the name of its resource, `tasks/{task}/pushNotificationConfigs/{config}`. */
function idIn(name: string | undefined): string | undefined {
  return /^tasks\/[^/]*\/pushNotificationConfigs\/([^/]+)$/.exec(name ?? '')?.[1];
}

const pushRefParams = wireObject('proto', { taskId: requiredText, id: requiredText }).transform(({ taskId, id }) => ({
  taskId,
  configId: id,
}));

const pushListParams = wireObject('proto', {
  taskId: requiredText,
  pageSize: countSchema('proto', { min: 0, max: MAX_INT32 }).optional(),
  pageToken: optionalText,
}).transform(({ pageSize, ...query }) => compact({ ...query, pageSize: pageSize === 0 ? undefined : pageSize }));

const noParams = wireObject('proto', {});

export const DECODERS: DecoderTable = {
  send: decodeSend,
  stream: decodeSend,
  get: (params) => decodeWith(getParams, params),
  list: (params) => decodeWith(listParams, params),
  cancel: (params) => decodeWith(cancelParams, params),
  subscribe: (params) => decodeWith(subscribeParams, params),
  pushCreate: (params) => decodeWith(pushCreateParams, params),
  pushGet: (params) => decodeWith(pushRefParams, params),
  pushList: (params) => decodeWith(pushListParams, params),
  pushDelete: (params) => decodeWith(pushRefParams, params),
  extendedCard: (params) => decodeWith(noParams, params),
};
