import * as z from 'zod';
import type { JsonObject, JsonValue } from '../../core/json.ts';
import { sentenceOf } from '../../core/schema-issues.ts';
import type { DecoderTable } from '../decoder.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, type Message, type Part, type PushConfigInput } from '../model.ts';
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
  requiredMessage,
  requiredText,
  timestampText,
  wireObject,
} from '../wire-schema.ts';
import { STATE_SPELLINGS, WRAPPED_DATA_MARK } from './names.ts';

/** Parameters of A2A 0.3 over JSON-RPC: the shapes of types.ts v0.3.0 with `kind` discriminators, camelCase only. */

const textPart = wireObject('camel', { text: z.string(), metadata: optionalObject }).transform(
  ({ text, metadata }): Part => compact({ kind: 'text', text, metadata }),
);

const filePart = wireObject('camel', {
  file: wireObject('camel', {
    bytes: base64Text.optional(),
    uri: requiredText.optional(),
    name: optionalText,
    mimeType: optionalText,
  }),
  metadata: optionalObject,
}).transform(({ file, metadata }, context): Part => {
  const common = { metadata, filename: file.name, mediaType: file.mimeType };
  if (file.bytes !== undefined && file.uri === undefined) return compact({ kind: 'raw', raw: file.bytes, ...common });
  if (file.uri !== undefined && file.bytes === undefined) return compact({ kind: 'url', url: file.uri, ...common });
  context.addIssue({ code: 'custom', path: ['file'], message: 'must hold exactly one of bytes, uri' });
  return z.NEVER;
});

const dataPart = wireObject('camel', { data: z.custom<JsonObject>(isRecord, 'must be an object'), metadata: optionalObject }).transform(
  ({ data, metadata }): Part => {
    if (metadata?.[WRAPPED_DATA_MARK] !== true || !Object.hasOwn(data, 'value')) return compact({ kind: 'data', data, metadata });
    const { [WRAPPED_DATA_MARK]: _mark, ...rest } = metadata;
    const value: JsonValue = data['value'] ?? null;
    return compact({ kind: 'data', data: value, metadata: Object.keys(rest).length === 0 ? undefined : rest });
  },
);

const PART_SCHEMAS: ReadonlyMap<unknown, z.ZodType<Part>> = new Map<unknown, z.ZodType<Part>>([
  ['text', textPart],
  ['file', filePart],
  ['data', dataPart],
]);

function partSchema(kindByContent: boolean) {
  return z.unknown().transform((input, context): Part => {
    if (!isRecord(input)) {
      context.addIssue({ code: 'custom', message: 'must be an object' });
      return z.NEVER;
    }
    const contents = [...PART_SCHEMAS.keys()].filter((kind) => ownMember(input, String(kind)) !== undefined);
    const kind = ownMember(input, 'kind') ?? (kindByContent ? contents[0] : undefined);
    const schema = PART_SCHEMAS.get(kind);
    if (schema === undefined) {
      context.addIssue({ code: 'custom', path: ['kind'], message: kind === undefined ? 'is required' : 'must be text, file or data' });
      return z.NEVER;
    }
    if (contents.length > 1) {
      context.addIssue({ code: 'custom', message: 'must hold exactly one of text, file, data' });
      return z.NEVER;
    }
    const parsed = schema.safeParse(input, { error: requiredMessage });
    if (parsed.success) return parsed.data;
    for (const issue of parsed.error.issues) context.addIssue({ code: 'custom', path: [...issue.path], message: sentenceOf(issue) });
    return z.NEVER;
  });
}

const pushConfigMembers = wireObject('camel', {
  id: optionalText,
  url: requiredText,
  token: headerSecret.optional(),
  authentication: wireObject('camel', {
    schemes: z.array(authScheme).min(1, 'must hold at least one scheme'),
    credentials: headerSecret.optional(),
  }).optional(),
});

function pushConfig({ authentication, ...config }: z.infer<typeof pushConfigMembers>): PushConfigInput {
  return compact({ ...config, authentication: authentication && compact(authentication) });
}

const historyLength = countSchema('camel', { min: 0, max: MAX_INT32 }).optional();

function sendParams(messageId: z.ZodType<string | undefined>, kindByContent: boolean) {
  return wireObject('camel', {
    message: wireObject('camel', {
      // Always written by real clients; its absence is unambiguous here.
      kind: z.literal('message', "must be 'message'").optional(),
      messageId,
      role: z.enum(['user', 'agent'], { error: (issue) => (issue.input === undefined ? 'is required' : 'must be user or agent') }),
      parts: z.array(partSchema(kindByContent)).min(1, 'must hold at least one part'),
      contextId: optionalText,
      taskId: optionalText,
      metadata: optionalObject,
      extensions: optionalTexts,
      referenceTaskIds: optionalTexts,
    }),
    configuration: wireObject('camel', {
      acceptedOutputModes: optionalTexts,
      historyLength,
      blocking: z.boolean().optional(),
      pushNotificationConfig: pushConfigMembers.optional(),
    }).optional(),
    metadata: optionalObject,
  });
}

const strictSend = sendParams(requiredText, false);
const lenientSend = sendParams(optionalText, true);

const decodeSend: DecoderTable['send'] = (params, { lenientMessageId }) => {
  const decoded = decodeWith(lenientMessageId ? lenientSend : strictSend, params);
  if (!decoded.ok) return decoded;
  const { message, configuration, metadata } = decoded.value;
  const { kind: _kind, ...members } = message;
  const neutral: Message = { ...members, messageId: members.messageId ?? lenientMessageId?.() ?? '' };
  const push = configuration?.pushNotificationConfig;
  return {
    ok: true,
    value: compact({
      message: compact(neutral),
      configuration: compact({
        acceptedOutputModes: configuration?.acceptedOutputModes,
        historyLength: configuration?.historyLength,
        // Both 0.3 SDKs' servers block unless told not to (contract section 14, choice 16).
        returnImmediately: configuration?.blocking === false,
        pushConfig: push && pushConfig(push),
      }),
      metadata,
    }),
  };
};

const taskId = { id: requiredText };
const getParams = wireObject('camel', { ...taskId, historyLength }).transform(compact);
const cancelParams = wireObject('camel', { ...taskId, metadata: optionalObject }).transform(compact);
const subscribeParams = wireObject('camel', taskId);

const listParams = wireObject('camel', {
  contextId: optionalText,
  status: namedValue(STATE_SPELLINGS, 'must be the name of a task state').optional(),
  pageSize: countSchema('camel', { min: 1, max: MAX_PAGE_SIZE }).default(DEFAULT_PAGE_SIZE),
  pageToken: optionalText,
  historyLength,
  statusTimestampAfter: timestampText.optional(),
  includeArtifacts: z.boolean().default(false),
}).transform(({ status, ...query }) => compact({ ...query, state: status }));

const pushCreateParams = wireObject('camel', { taskId: requiredText, pushNotificationConfig: pushConfigMembers }).transform((params) => ({
  taskId: params.taskId,
  config: pushConfig(params.pushNotificationConfig),
}));

const pushRefParams = wireObject('camel', { ...taskId, pushNotificationConfigId: optionalText }).transform((params) =>
  compact({ taskId: params.id, configId: params.pushNotificationConfigId }),
);

const pushListParams = wireObject('camel', taskId).transform((params) => ({ taskId: params.id }));

const noParams = wireObject('camel', {});

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
