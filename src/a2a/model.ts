import type { JsonObject, JsonValue } from '../core/json.ts';

/**
 * The A2A objects as the service sees them, without the wire of any version: the codecs (`codec.ts`) translate to and from
 * 1.0 and 0.3. A member that is absent on the wire is absent (or undefined) here; `null` never appears outside data and metadata.
 * Timestamps are ISO 8601 texts in UTC with milliseconds.
 */

/** What happens inside a task, in one word. The service never says `unknown` (0.3) or UNSPECIFIED (1.0). */
export type TaskState = 'submitted' | 'working' | 'input-required' | 'auth-required' | 'completed' | 'failed' | 'canceled' | 'rejected';

export const TASK_STATES = [
  'submitted',
  'working',
  'input-required',
  'auth-required',
  'completed',
  'failed',
  'canceled',
  'rejected',
] as const satisfies readonly TaskState[];

/** A task in one of these never changes again. */
export const TERMINAL_STATES: ReadonlySet<TaskState> = new Set<TaskState>(['completed', 'failed', 'canceled', 'rejected']);

/** A task in one of these waits for somebody; a blocking send answers. */
export const INTERRUPTED_STATES: ReadonlySet<TaskState> = new Set<TaskState>(['input-required', 'auth-required']);

export const isTerminal = (state: TaskState): boolean => TERMINAL_STATES.has(state);

export const isInterrupted = (state: TaskState): boolean => INTERRUPTED_STATES.has(state);

/** Members that every kind of part may carry. */
export interface PartCommon {
  readonly metadata?: JsonObject | undefined;
  readonly filename?: string | undefined;
  readonly mediaType?: string | undefined;
}

export interface TextPart extends PartCommon {
  readonly kind: 'text';
  readonly text: string;
}

/** Bytes of a file, as standard base64 with padding. */
export interface RawPart extends PartCommon {
  readonly kind: 'raw';
  readonly raw: string;
}

/** A file by reference. */
export interface UrlPart extends PartCommon {
  readonly kind: 'url';
  readonly url: string;
}

/** Any JSON value, `null` included. */
export interface DataPart extends PartCommon {
  readonly kind: 'data';
  readonly data: JsonValue;
}

export type Part = TextPart | RawPart | UrlPart | DataPart;

export type Role = 'user' | 'agent';

export interface Message {
  readonly messageId: string;
  readonly role: Role;
  /** At least one. */
  readonly parts: readonly Part[];
  readonly contextId?: string | undefined;
  readonly taskId?: string | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly extensions?: readonly string[] | undefined;
  readonly referenceTaskIds?: readonly string[] | undefined;
}

export interface Artifact {
  /** Unique within its task. */
  readonly artifactId: string;
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  /** At least one. */
  readonly parts: readonly Part[];
  readonly metadata?: JsonObject | undefined;
  readonly extensions?: readonly string[] | undefined;
}

export interface TaskStatus {
  readonly state: TaskState;
  readonly message?: Message | undefined;
  readonly timestamp?: string | undefined;
}

export interface Task {
  readonly id: string;
  readonly contextId: string;
  readonly status: TaskStatus;
  /** `undefined` leaves the member out of the answer; an empty list is sent as such. */
  readonly artifacts?: readonly Artifact[] | undefined;
  /** Oldest first. `undefined` leaves the member out. */
  readonly history?: readonly Message[] | undefined;
  readonly metadata?: JsonObject | undefined;
}

export interface TaskEvent {
  readonly kind: 'task';
  readonly task: Task;
}

export interface MessageEvent {
  readonly kind: 'message';
  readonly message: Message;
}

export interface StatusEvent {
  readonly kind: 'status';
  readonly taskId: string;
  readonly contextId: string;
  readonly status: TaskStatus;
  /** True on the event after which the stream closes (told to 0.3 clients only; 1.0 has no such member). */
  readonly final: boolean;
  readonly metadata?: JsonObject | undefined;
}

export interface ArtifactEvent {
  readonly kind: 'artifact';
  readonly taskId: string;
  readonly contextId: string;
  readonly artifact: Artifact;
  readonly append?: boolean | undefined;
  readonly lastChunk?: boolean | undefined;
  readonly metadata?: JsonObject | undefined;
}

/** One event of a stream, in the order of generation. */
export type StreamEvent = TaskEvent | MessageEvent | StatusEvent | ArtifactEvent;

/** The answer to a send: a task once there is one, else a message. */
export type SendResult = TaskEvent | MessageEvent;

export interface SendConfiguration {
  readonly acceptedOutputModes?: readonly string[] | undefined;
  /** 0 = no history; absent = the server's default. */
  readonly historyLength?: number | undefined;
  /** False: wait for a terminal or interrupted state. */
  readonly returnImmediately: boolean;
  readonly pushConfig?: PushConfigInput | undefined;
}

export interface SendRequest {
  readonly message: Message;
  readonly configuration: SendConfiguration;
  readonly metadata?: JsonObject | undefined;
  readonly tenant?: string | undefined;
}

/** Parameters of get. */
export interface TaskQuery {
  readonly id: string;
  readonly historyLength?: number | undefined;
  readonly tenant?: string | undefined;
}

/** Parameters of cancel. */
export interface CancelRequest {
  readonly id: string;
  readonly metadata?: JsonObject | undefined;
  readonly tenant?: string | undefined;
}

/** Parameters of subscribe. */
export interface SubscribeRequest {
  readonly id: string;
  readonly tenant?: string | undefined;
}

export const DEFAULT_PAGE_SIZE = 50;
export const MAX_PAGE_SIZE = 100;

export interface ListTasksQuery {
  readonly contextId?: string | undefined;
  /** Absent = all states. */
  readonly state?: TaskState | undefined;
  /** Inclusive; compared with the time of the task's last status. ISO 8601 in UTC with milliseconds. */
  readonly statusTimestampAfter?: string | undefined;
  /** 1 to 100, filled in with the default. */
  readonly pageSize: number;
  readonly pageToken?: string | undefined;
  readonly historyLength?: number | undefined;
  /** False: `artifacts` must be `undefined` in every task of the page. */
  readonly includeArtifacts: boolean;
  readonly tenant?: string | undefined;
}

export interface ListTasksPage {
  readonly tasks: readonly Task[];
  /** `''` on the last page. */
  readonly nextPageToken: string;
  /** The size that was used. */
  readonly pageSize: number;
  /** Matches before paging. */
  readonly totalSize: number;
}

export interface PushAuthentication {
  /** At least one; 1.0 knows exactly one. Compared without case. */
  readonly schemes: readonly string[];
  readonly credentials?: string | undefined;
}

/** A webhook as a client gives it; the server assigns `id` when it is absent. */
export interface PushConfigInput {
  readonly id?: string | undefined;
  readonly url: string;
  readonly token?: string | undefined;
  readonly authentication?: PushAuthentication | undefined;
}

/** A webhook as it is kept for a task. */
export interface PushConfig extends PushConfigInput {
  readonly id: string;
  readonly taskId: string;
  readonly tenant?: string | undefined;
}

export interface PushCreateRequest {
  readonly taskId: string;
  readonly config: PushConfigInput;
  readonly tenant?: string | undefined;
}

export interface PushGetRequest {
  readonly taskId: string;
  /** Absent only in 0.3, where it means the first (or only) config of the task. */
  readonly configId?: string | undefined;
  readonly tenant?: string | undefined;
}

export interface PushListRequest {
  readonly taskId: string;
  readonly pageSize?: number | undefined;
  readonly pageToken?: string | undefined;
  readonly tenant?: string | undefined;
}

export interface PushListPage {
  readonly configs: readonly PushConfig[];
  /** `''` on the last page. */
  readonly nextPageToken: string;
}

export interface PushDeleteRequest {
  readonly taskId: string;
  /** Absent only in 0.3, see `PushGetRequest`. */
  readonly configId?: string | undefined;
  readonly tenant?: string | undefined;
}

export interface ExtendedCardRequest {
  readonly tenant?: string | undefined;
}
