/**
 * The store behind a port did not answer, or answered that it cannot now. Nothing is known about whether a write took place, so every
 * port's writes are safe to repeat. The edges answer it as a retryable 503; everything else that is thrown is a bug.
 */
export class StorageUnavailable extends Error {
  override readonly name = 'StorageUnavailable';

  /** `operation` names the port's method (`plans.upsert`) for the log; the cause is never shown to a caller. */
  constructor(operation: string, cause: unknown) {
    super(`storage unavailable: ${operation}`, { cause });
  }
}
