import type { FieldIssue, Refusal } from '../../core/refusal.ts';
import { err, ok, type Result } from '../../core/result.ts';
import { MAX_FILE_BYTES } from '../../core/workspace/tree.ts';
import { sha256 } from '../sha256.ts';

/** Largest sum of blobs in one message, in bytes; the platform refuses messages of 32 MiB. */
export const MAX_BATCH_BYTES = 8 * 1_048_576;

/** Digests in one statement: their JSON stays below the platform's 2 MB for one value. */
const DIGESTS_PER_STATEMENT = 10_000;

const MAX_NAMED = 20;

/** The contents of files by digest. Blobs are only ever added. */
export class BlobTable {
  private readonly sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.sql = sql;
  }

  /** Those that are not here, each once, in the order they were asked for. */
  missing(digests: readonly string[]): string[] {
    const stored = this.sizes(digests);
    return [...new Set(digests)].filter((digest) => !stored.has(digest));
  }

  /** Size in bytes of each that is here. */
  sizes(digests: readonly string[]): ReadonlyMap<string, number> {
    const sizes = new Map<string, number>();
    for (let start = 0; start < digests.length; start += DIGESTS_PER_STATEMENT) {
      const asked = JSON.stringify(digests.slice(start, start + DIGESTS_PER_STATEMENT));
      for (const row of this.sql.exec('SELECT digest, size_bytes FROM blobs WHERE digest IN (SELECT value FROM json_each(?))', asked)) {
        sizes.set(String(row['digest']), Number(row['size_bytes']));
      }
    }
    return sizes;
  }

  get(digest: string): Uint8Array | null {
    return bytesOf(this.sql.exec('SELECT bytes FROM blobs WHERE digest = ?', digest).toArray());
  }

  /** The blob if it holds the text as it stands (case counts), else null: most files hold nothing and never leave the database. */
  getIfContains(digest: string, text: Uint8Array): Uint8Array | null {
    return bytesOf(this.sql.exec('SELECT bytes FROM blobs WHERE digest = ? AND instr(bytes, ?) > 0', digest, bufferOf(text)).toArray());
  }

  /** As many of the first digests as fit one message; absent ones are taken and left out. */
  read(digests: readonly string[]): { readonly blobs: ReadonlyMap<string, Uint8Array>; readonly taken: number } {
    const blobs = new Map<string, Uint8Array>();
    let total = 0;
    for (const [index, digest] of digests.entries()) {
      if (blobs.has(digest)) continue;
      const bytes = this.get(digest);
      if (bytes === null) continue;
      total += bytes.byteLength;
      if (total > MAX_BATCH_BYTES) return { blobs, taken: index };
      blobs.set(digest, bytes);
    }
    return { blobs, taken: digests.length };
  }

  /** Stores all or none; inside a transaction of the caller. See `checkBatch` for what must have been checked. */
  put(blobs: readonly { readonly digest: string; readonly bytes: Uint8Array }[]): void {
    for (const { digest, bytes } of blobs) {
      this.sql.exec('INSERT OR IGNORE INTO blobs (digest, size_bytes, bytes) VALUES (?, ?, ?)', digest, bytes.byteLength, bufferOf(bytes));
    }
  }
}

/** Refused (`too_large`): a blob above 1 MiB, by name, or a batch above 8 MiB. Refused (`invalid`): a digest that is not that of its bytes. */
export function checkBatch(blobs: readonly { readonly digest: string; readonly bytes: Uint8Array }[]): Result<null, Refusal> {
  const large = blobs.filter(({ bytes }) => bytes.byteLength > MAX_FILE_BYTES).map(({ digest }) => digest);
  if (large.length > 0) {
    const named = large.slice(0, MAX_NAMED);
    const message = `blobs above the limit of ${MAX_FILE_BYTES} bytes: ${named.join(', ')}`;
    return err({ kind: 'too_large', message, limitBytes: MAX_FILE_BYTES, details: { digests: named } });
  }
  const total = blobs.reduce((sum, { bytes }) => sum + bytes.byteLength, 0);
  if (total > MAX_BATCH_BYTES) {
    const message = `the batch holds ${total} bytes; at most ${MAX_BATCH_BYTES} at once`;
    return err({ kind: 'too_large', message, limitBytes: MAX_BATCH_BYTES });
  }
  const issues: FieldIssue[] = [];
  for (const [index, { digest, bytes }] of blobs.entries()) {
    const actual = sha256(bytes);
    if (actual !== digest) issues.push({ field: `blobs.${index}.digest`, message: `the SHA-256 of these bytes is ${actual}` });
    if (issues.length >= MAX_NAMED) break;
  }
  const [first] = issues;
  if (first !== undefined) return err({ kind: 'invalid', message: `${first.field}: ${first.message}`, issues });
  return ok(null);
}

function bytesOf(rows: readonly Record<string, SqlStorageValue>[]): Uint8Array | null {
  const bytes = rows[0]?.['bytes'];
  return bytes instanceof ArrayBuffer ? new Uint8Array(bytes) : null;
}

/** Exactly these bytes: a view may be a part of a larger buffer. */
export function bufferOf(bytes: Uint8Array): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}
