import { StorageUnavailable } from '../../app/ports.ts';

/**
 * Runs one call to D1. Whatever D1 throws becomes `StorageUnavailable`, except what would fail in the same way for ever
 * (a broken constraint, a value too large): that is a bug of ours and stays what it is.
 */
export async function d1Call<T>(operation: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    if (isOurFault(cause)) throw cause;
    throw new StorageUnavailable(operation, cause);
  }
}

function isOurFault(error: unknown): boolean {
  // Drizzle wraps what D1 throws.
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth += 1) {
    if (at instanceof TypeError || at instanceof RangeError || /SQLITE_(?:CONSTRAINT|TOOBIG|MISMATCH)/.test(at.message)) return true;
  }
  return false;
}
