import type { ProjectPort } from '../app/ports.ts';
import type { Refusal } from '../core/refusal.ts';
import { ok, type Result } from '../core/result.ts';

const MAX_PUT_BATCH_BYTES = 4 * 1024 * 1024;

/** Sends the project those of the blobs that it does not hold yet, a few megabytes at a time. */
export async function putMissingBlobs(
  project: ProjectPort,
  digests: readonly string[],
  blob: (digest: string) => Uint8Array | null,
): Promise<Result<null, Refusal>> {
  const missing = await project.missingBlobs(digests);
  for (const batch of batches(missing, blob)) {
    const put = await project.putBlobs(batch);
    if (!put.ok) return put;
  }
  return ok(null);
}

function* batches(
  digests: readonly string[],
  blob: (digest: string) => Uint8Array | null,
): Generator<readonly { readonly digest: string; readonly bytes: Uint8Array }[]> {
  let batch: { digest: string; bytes: Uint8Array }[] = [];
  let size = 0;
  for (const digest of digests) {
    const bytes = blob(digest);
    if (bytes === null) continue;
    if (size + bytes.byteLength > MAX_PUT_BATCH_BYTES && batch.length > 0) {
      yield batch;
      batch = [];
      size = 0;
    }
    batch.push({ digest, bytes });
    size += bytes.byteLength;
  }
  if (batch.length > 0) yield batch;
}
