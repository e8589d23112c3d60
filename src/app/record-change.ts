import type { Operation } from '../api/operation.ts';
import { digestOf } from '../core/digest.ts';
import type { JsonObject, JsonValue } from '../core/json.ts';
import type { OrgFact } from '../core/org-log/org-event.ts';
import { recordedMembers } from '../core/org-log/recorded-value.ts';
import type { Refusal } from '../core/refusal.ts';
import type { Result } from '../core/result.ts';
import { actorOf } from './caller.ts';
import type { CallContext } from './handler.ts';
import { LogDamaged, StorageUnavailable } from './ports.ts';
import type { Services } from './services.ts';

export interface ChangeCall {
  readonly operation: Operation;
  readonly params: JsonObject;
  readonly call: CallContext;
  readonly services: Services;
  /** Answers an operation that shows things, to the same caller; null: it refuses. */
  readonly show: (name: string, params: JsonObject) => Promise<JsonObject | null>;
  /** Called once the log says that the change is about to be made. */
  readonly recorded: () => void;
  /** Makes the change, or refuses; `changing` is its `HandlerCall.changing`. */
  readonly run: (changing: () => Promise<void>) => Promise<Result<JsonObject, Refusal>>;
}

/** The end of a change is told so often; after that the log says by itself that nobody told it. */
const ATTEMPTS = 3;

/** Whether a call with these parameters, checked or not, would change the configuration. */
export function isChange({ change }: Operation, params: unknown): boolean {
  if (change?.onlyWith === undefined) return change !== undefined;
  return typeof params === 'object' && params !== null && Reflect.get(params, change.onlyWith) !== undefined;
}

/**
 * Makes a change to the org's configuration between two rows of the org's log: that it is about to be made, written when the handler has
 * looked at everything that can refuse and says so (`HandlerCall.changing`), and how it ended. What is refused before or changes nothing has
 * neither. Where the first row cannot be written nothing is changed: the caller gets the retryable refusal of an unavailable store. Only the
 * kill switch goes ahead without (`Operation.change.unrecorded`): stopping must not depend on the log.
 */
export async function recordChange(given: ChangeCall): Promise<Result<JsonObject, Refusal>> {
  const { operation, params, call, services, show, recorded, run } = given;
  const { change } = operation;
  if (change === undefined || !isChange(operation, params)) return run(async () => {});
  const { sha256, orgLog, ids } = services;
  const { org } = call.principal;
  const actor = actorOf(call.principal);
  const changeId = ids.ulid();
  const subject = recordedMembers(sha256, params, change.subject) ?? {};
  const named = Object.fromEntries(change.subject.flatMap((name) => (params[name] === undefined ? [] : [[name, params[name]]])));
  const about = { change_id: changeId, operation: operation.name };
  const goesAhead = (cause: unknown): boolean =>
    change.unrecorded === 'goes_ahead' && (cause instanceof StorageUnavailable || cause instanceof LogDamaged);

  let before: JsonObject | null = null;
  const request = async (): Promise<void> => {
    try {
      const shown = change.shownBy === undefined ? null : await show(change.shownBy, named);
      before = recordedMembers(sha256, shown, change.recorded);
    } catch (cause) {
      if (!goesAhead(cause)) throw cause;
    }
    try {
      const data = { ...about, change: change.type, subject, params_digest: digestOf(sha256, params), before };
      await orgLog.append(org, { id: `${changeId}.requested`, fact: { type: 'change_requested', actor, data } });
    } catch (cause) {
      if (!goesAhead(cause)) throw cause;
    }
    recorded();
  };
  let requested: Promise<void> | null = null;

  // What is thrown here leaves a change that was begun open: it may have been made, and the log says in time that nobody told.
  const result = await run(() => {
    requested ??= request();
    return requested;
  });
  if (requested === null) return result;
  const fact: OrgFact = result.ok
    ? {
        type: change.type,
        actor,
        data: {
          ...about,
          subject: { ...subject, ...recordedMembers(sha256, result.value, change.named ?? []) },
          before,
          after: recordedMembers(
            sha256,
            change.within === undefined ? result.value : objectIn(result.value[change.within]),
            change.recorded,
          ),
        },
      }
    : {
        type: 'change_refused',
        actor,
        data: { ...about, change: change.type, subject, reason: `${result.error.kind}: ${clipped(result.error.message)}` },
      };
  await tell(`${changeId}.ended`, fact, org, services);
  return result;
}

/** The change is made by now and the answer has to say so: that its end could not be told is seen in the log itself. */
async function tell(id: string, fact: OrgFact, org: string, { orgLog }: Services): Promise<void> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    try {
      await orgLog.append(org, { id, fact });
      return;
    } catch (cause) {
      if (!(cause instanceof StorageUnavailable || cause instanceof LogDamaged)) throw cause;
    }
  }
}

const objectIn = (value: JsonValue | undefined): JsonObject | null =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : null;

const MAX_REASON_CHARACTERS = 500;

function clipped(text: string): string {
  return text.length <= MAX_REASON_CHARACTERS ? text : `${text.slice(0, MAX_REASON_CHARACTERS).toWellFormed()}…`;
}
