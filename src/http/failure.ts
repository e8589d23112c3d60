import { LogDamaged, StorageUnavailable } from '../app/ports.ts';
import type { Refusal } from '../core/refusal.ts';

/** Why there is no result: a refusal, or a bug of ours of which a caller learns only the id of its log entry. */
export type Failure = Refusal | { readonly kind: 'incident'; readonly incidentId: string };

/** Writes one structured entry to the log. */
export type Report = (entry: Readonly<Record<string, string>>) => void;

export const reportToConsole: Report = (entry) => console.error(JSON.stringify(entry));

/** How soon a call that met an unreachable store may be repeated. */
const RETRY_AFTER_SECONDS = 2;

export interface FailureContext {
  readonly report: Report;
  readonly newId: () => string;
  /** What was called, for the log. */
  readonly called: string;
}

/** What is told of something that was thrown. Its cause goes to the log and nowhere else. */
export function failureOf(error: unknown, { report, newId, called }: FailureContext): Failure {
  if (error instanceof LogDamaged) return error.refusal;
  if (error instanceof StorageUnavailable) {
    report({ event: 'storage_unavailable', called, error: error.message, cause: textOf(error.cause) });
    return {
      kind: 'unavailable',
      message: 'The service does not reach its storage now; repeat the call in a moment',
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    };
  }
  const incidentId = newId();
  report({ event: 'internal_error', incident_id: incidentId, called, error: textOf(error) });
  return { kind: 'incident', incidentId };
}

function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? `${error.name}: ${error.message}`) : String(error);
}
