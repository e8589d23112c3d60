import type { Refusal } from '../core/refusal.ts';
import { err, ok, type Result } from '../core/result.ts';

/** The largest body that is read (design section 12). */
export const MAX_BODY_BYTES = 4 * 1024 * 1024;

/**
 * A body that is too large is read on to its end, and thrown away, up to this size. A server that closes while its client still writes
 * resets the connection, and the client never sees why.
 */
const MAX_DISCARDED_BYTES = 4 * MAX_BODY_BYTES;

/**
 * The body as text. Refused as `too_large` once the limit is passed; never holds more than the limit. What is announced to be larger
 * than what is worth throwing away is refused before anything is read. Text that is not UTF-8, and a body that breaks off, are refused
 * as no JSON.
 */
export async function readBody(request: Request, limitBytes: number = MAX_BODY_BYTES): Promise<Result<string, Refusal>> {
  const announced = Number(request.headers.get('content-length') ?? 0);
  if (announced > MAX_DISCARDED_BYTES) return err(tooLarge(limitBytes));
  if (request.body === null) return ok('');
  const reader: ReadableStreamDefaultReader<Uint8Array> = request.body.getReader();
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false });
  let parts: string[] = [];
  let sizeBytes = 0;
  try {
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      sizeBytes += chunk.value.byteLength;
      if (sizeBytes > MAX_DISCARDED_BYTES) {
        await reader.cancel();
        break;
      }
      if (Math.max(announced, sizeBytes) > limitBytes) parts = [];
      else parts.push(decoder.decode(chunk.value, { stream: true }));
    }
    if (sizeBytes > limitBytes) return err(tooLarge(limitBytes));
    parts.push(decoder.decode());
    return ok(parts.join(''));
  } catch {
    return err({ kind: 'invalid', message: 'The body is not complete UTF-8 text', issues: [], details: { reason: 'PARSE_ERROR' } });
  }
}

/** A body that cannot be used. `status` stands where HTTP has one of its own for it. */
export interface UnreadBody {
  readonly refusal: Refusal;
  readonly status?: number;
}

/** The text of a body that says it is JSON (415 where it says something else). */
export async function readJsonText(request: Request): Promise<Result<string, UnreadBody>> {
  if (!describesJson(request.headers)) return err({ refusal: UNSUPPORTED_MEDIA_TYPE, status: 415 });
  const text = await readBody(request);
  return text.ok ? text : err({ refusal: text.error });
}

/**
 * Whether the headers speak of JSON that we can read: `application/json`, `application/<anything>+json`, or no type at all. A compressed
 * body is none: it could grow without bound while it is unpacked.
 */
export function describesJson(headers: Headers): boolean {
  const encoding = headers.get('content-encoding')?.trim().toLowerCase() ?? '';
  const type = headers.get('content-type')?.split(';')[0]?.trim().toLowerCase() ?? '';
  return (encoding === '' || encoding === 'identity') && (type === '' || /^application\/(?:[\w.!#$&^-]+\+)?json$/.test(type));
}

const UNSUPPORTED_MEDIA_TYPE: Refusal = {
  kind: 'invalid',
  message: 'Send the request as Content-Type: application/json, without Content-Encoding',
  issues: [],
  details: { reason: 'CONTENT_TYPE_NOT_SUPPORTED' },
};

function tooLarge(limitBytes: number): Refusal {
  return {
    kind: 'too_large',
    message: `The request body is larger than ${limitBytes} bytes; send files in several batches (_cleveragents/project/blob/put)`,
    limitBytes,
  };
}
