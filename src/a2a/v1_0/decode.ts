import * as z from 'zod';
import type { JsonValue } from '../../core/json.ts';
import { sentenceOf } from '../../core/schema-issues.ts';
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
  requiredText,
  timestampText,
  wireObject,
} from '../wire-schema.ts';
import { STATE_SPELLINGS } from './names.ts';

/**
 * Parameters of A2A 1.0: ProtoJSON of the proto (specification sections 5.5 to 5.7). Both spellings of names, enum numbers, integers
 * as texts and base64url are accepted; unknown members are ignored.
 */

const CONTENTS = ['text', 'raw', 'url', 'data'] as const;

const partMembers = wireObject('proto', {
  text: z.string().optional(),
  raw: base64Text.optional(),
  url: requiredText.optional(),
  data: z.unknown().optional(),
  metadata: optionalObject,
  filename: optionalText,
  mediaType: optionalText,
});

const part = z.unknown().transform((input, context): Part => {
  const parsed = partMembers.safeParse(input);
  if (!parsed.success) {
    for (const issue of parsed.error.issues) context.addIssue({ code: 'custom', path: [...issue.path], message: sentenceOf(issue) });
    return z.NEVER;
  }
  const { text, raw, url, data, ...common } = parsed.data;
  const present = CONTENTS.filter((content) => parsed.data[content] !== undefined);
  // A data member that is null is the JSON value null, unless another content is there: then it is a client that writes out what is unset.
  const nullData = present.length === 0 && isRecord(input) && Object.hasOwn(input, 'data') && input['data'] === null;
  if (present.length + (nullData ? 1 : 0) !== 1) {
    context.addIssue({ code: 'custom', message: 'must hold exactly one of text, raw, url, data' });
    return z.NEVER;
  }
  if (text !== undefined) return compact({ kind: 'text', text, ...common });
  if (raw !== undefined) return compact({ kind: 'raw', raw, ...common });
  if (url !== undefined) return compact({ kind: 'url', url, ...common });
  return compact({ kind: 'data', data: nullData ? null : (data as JsonValue), ...common });
});

const messageMembers = {
  role: namedValue(ROLE_SPELLINGS, 'must be ROLE_USER or ROLE_AGENT'),
  parts: z.array(part).min(1, 'must hold at least one part'),
  contextId: optionalText,
  taskId: optionalText,
  metadata: optionalObject,
  extensions: optionalTexts,
  referenceTaskIds: optionalTexts,
};

const pushConfigMembers = {
  id: optionalText,
  url: requiredText,
  token: headerSecret.optional(),
  authentication: wireObject('proto', { scheme: authScheme, credentials: headerSecret.optional() }).optional(),
};

type WirePushConfig = z.infer<z.ZodObject<typeof pushConfigMembers>>;

function pushConfig({ id, url, token, authentication }: WirePushConfig): PushConfigInput {
  return compact({
    id,
    url,
    token,
    authentication: authentication && compact({ schemes: [authentication.scheme], credentials: authentication.credentials }),
  });
}

const historyLength = countSchema('proto', { min: 0, max: MAX_INT32 }).optional();

function sendRequest(messageId: z.ZodType<string | undefined>) {
  return wireObject('proto', {
    message: wireObject('proto', { messageId, ...messageMembers }),
    configuration: wireObject('proto', {
      acceptedOutputModes: optionalTexts,
      historyLength,
      returnImmediately: z.boolean().optional(),
      taskPushNotificationConfig: wireObject('proto', pushConfigMembers).optional(),
    }).optional(),
    metadata: optionalObject,
    tenant: optionalText,
  });
}

const strictSend = sendRequest(requiredText);
const lenientSend = sendRequest(optionalText);

const decodeSend: DecoderTable['send'] = (params, { lenientMessageId }) => {
  const decoded = decodeWith(lenientMessageId ? lenientSend : strictSend, params);
  if (!decoded.ok) return decoded;
  const { message, configuration, metadata, tenant } = decoded.value;
  const push = configuration?.taskPushNotificationConfig;
  const neutral: Message = { ...message, messageId: message.messageId ?? lenientMessageId?.() ?? '' };
  return {
    ok: true,
    value: compact({
      message: compact(neutral),
      configuration: compact({
        acceptedOutputModes: configuration?.acceptedOutputModes,
        historyLength: configuration?.historyLength,
        returnImmediately: configuration?.returnImmediately ?? false,
        pushConfig: push && pushConfig(push),
      }),
      metadata,
      tenant,
    }),
  };
};

const taskRef = { id: requiredText, tenant: optionalText };
const getParams = wireObject('proto', { ...taskRef, historyLength }).transform(compact);
const cancelParams = wireObject('proto', { ...taskRef, metadata: optionalObject }).transform(compact);
const subscribeParams = wireObject('proto', taskRef).transform(compact);

const listParams = wireObject('proto', {
  contextId: optionalText,
  status: namedValue(STATE_SPELLINGS, 'must be the name of a task state').optional(),
  pageSize: countSchema('proto', { min: 1, max: MAX_PAGE_SIZE }).default(DEFAULT_PAGE_SIZE),
  pageToken: optionalText,
  historyLength,
  statusTimestampAfter: timestampText.optional(),
  includeArtifacts: z.boolean().default(false),
  tenant: optionalText,
}).transform(({ status, ...query }) => compact({ ...query, state: status === 'any' ? undefined : status }));

const pushCreateParams = wireObject('proto', { ...pushConfigMembers, taskId: requiredText, tenant: optionalText }).transform(
  ({ taskId, tenant, ...config }) => compact({ taskId, config: pushConfig(config), tenant }),
);

const pushRefParams = wireObject('proto', { taskId: requiredText, id: requiredText, tenant: optionalText }).transform(
  ({ taskId, id, tenant }) => compact({ taskId, configId: id, tenant }),
);

const pushListParams = wireObject('proto', {
  taskId: requiredText,
  // Zero is the proto's default and means the server's choice.
  pageSize: countSchema('proto', { min: 0, max: MAX_INT32 }).optional(),
  pageToken: optionalText,
  tenant: optionalText,
}).transform(({ pageSize, ...query }) => compact({ ...query, pageSize: pageSize === 0 ? undefined : pageSize }));

const extendedCardParams = wireObject('proto', { tenant: optionalText }).transform(compact);

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
  extendedCard: (params) => decodeWith(extendedCardParams, params),
};
