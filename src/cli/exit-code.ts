import {
  A2aOperationNotFoundError,
  BusinessRuleViolation,
  DuplicateEntityError,
  ResourceNotFoundError,
  ValidationError,
} from '../client/errors.ts';
import { UsageError } from './cli-io.ts';

/** The exit codes of `agents`. */
export const EXIT = { ok: 0, error: 1, usage: 2, notFound: 3, conflict: 4, waiting: 5 } as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The exit code of a failure. */
export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof UsageError || error instanceof ValidationError) return EXIT.usage;
  if (error instanceof ResourceNotFoundError || error instanceof A2aOperationNotFoundError) return EXIT.notFound;
  if (error instanceof BusinessRuleViolation || error instanceof DuplicateEntityError) return EXIT.conflict;
  return EXIT.error;
}
