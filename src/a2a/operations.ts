import type { JsonObject } from '../core/json.ts';
import type {
  CancelRequest,
  ExtendedCardRequest,
  ListTasksPage,
  ListTasksQuery,
  PushConfig,
  PushCreateRequest,
  PushDeleteRequest,
  PushGetRequest,
  PushListPage,
  PushListRequest,
  SendRequest,
  SendResult,
  SubscribeRequest,
  Task,
  TaskQuery,
} from './model.ts';

/**
 * The closed list of the standard operations by neutral name, and what each takes and gives. Their wire names per version are in
 * the codecs' method tables.
 */
export const OPERATIONS = [
  'send',
  'stream',
  'get',
  'list',
  'cancel',
  'subscribe',
  'pushCreate',
  'pushGet',
  'pushList',
  'pushDelete',
  'extendedCard',
] as const;

export type Operation = (typeof OPERATIONS)[number];

/** Neutral parameters by operation; made by `Codec.decodeParams`. */
export interface OperationParams {
  readonly send: SendRequest;
  readonly stream: SendRequest;
  readonly get: TaskQuery;
  readonly list: ListTasksQuery;
  readonly cancel: CancelRequest;
  readonly subscribe: SubscribeRequest;
  readonly pushCreate: PushCreateRequest;
  readonly pushGet: PushGetRequest;
  readonly pushList: PushListRequest;
  readonly pushDelete: PushDeleteRequest;
  readonly extendedCard: ExtendedCardRequest;
}

/** Neutral results by operation, for `Codec.encodeResult`. The two streams have none: their events go through `encodeEvent`. */
export interface OperationResults {
  readonly send: SendResult;
  readonly get: Task;
  readonly list: ListTasksPage;
  readonly cancel: Task;
  readonly pushCreate: PushConfig;
  readonly pushGet: PushConfig;
  readonly pushList: PushListPage;
  readonly pushDelete: undefined;
  /** A card from `buildCard`; it already has the shape of its version. */
  readonly extendedCard: JsonObject;
}

/** Operations that answer with one result, not with a stream. */
export type UnaryOperation = keyof OperationResults;

export type StreamingOperation = Exclude<Operation, UnaryOperation>;

export const isStreaming = (operation: Operation): operation is StreamingOperation => operation === 'stream' || operation === 'subscribe';
